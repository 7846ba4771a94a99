//! Resolves the names of hosts.

use std::fmt;
use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Resolves names to addresses. An embedder may bring its own.
#[async_trait]
pub trait NameResolver: fmt::Debug + Send + Sync + 'static {
    /// Returns every address of a name, the preferred one first.
    ///
    /// # Errors
    /// When the name does not exist or cannot be resolved at the moment. The text is shown to handlers.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

#[async_trait]
impl NameResolver for SystemNames {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
