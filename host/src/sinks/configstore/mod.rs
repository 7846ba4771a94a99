//! The config store: a trait, its implementations, and the sink above it.

mod embedded;
#[cfg(feature = "etcd")]
pub mod etcd;

use std::sync::Arc;

use async_trait::async_trait;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::Write;
use configurator_core::request::{ConfigOperation, Operation, SinkName};
use configurator_core::result::Answer;

pub use self::embedded::EmbeddedConfigStore;
use super::{Scope, Sink, misrouted};

/// Keeps configuration.
///
/// # Guarantees
/// - [`transact`](Self::transact): all of the operations, or none, under the layout of [`configurator_core::layers`]; what was there
///   already is not written again.
/// - A write that was acknowledged survives a crash.
#[async_trait]
pub trait ConfigStore: Send + Sync + 'static {
    /// Executes the operations. `default_namespace` is that of the object being handled.
    async fn transact(
        &self,
        operations: &[ConfigOperation],
        default_namespace: &str,
    ) -> Result<Transacted, Fault>;

    /// Every key that begins with `prefix`, in order, with its value.
    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault>;

    /// Writes keys outside the layout of requests: all of them, or none.
    async fn write(&self, writes: Vec<Write>) -> Result<(), Fault>;

    /// Whether the store can be reached.
    async fn probe(&self) -> Result<(), Fault>;
}

/// What operations came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transacted {
    /// One document for each operation, in order.
    pub answers: Vec<Document>,
    /// Whether anything was written.
    pub changed: bool,
}

/// The sink above a [`ConfigStore`].
pub struct ConfigstoreSink {
    store: Arc<dyn ConfigStore>,
    timeout: std::time::Duration,
}

impl ConfigstoreSink {
    /// A sink over this store.
    #[must_use]
    pub fn new(store: Arc<dyn ConfigStore>) -> Self {
        Self {
            store,
            timeout: std::time::Duration::from_secs(30),
        }
    }
}

#[async_trait]
impl Sink for ConfigstoreSink {
    async fn execute(&self, operation: &Operation, scope: &Scope) -> Result<Answer, Fault> {
        let Operation::Config(request) = operation else {
            return Err(misrouted(operation, SinkName::Configstore));
        };
        let timeout = scope.timeout.unwrap_or(self.timeout);
        let transacting = self.store.transact(&request.operations, &scope.namespace);
        let transacted = tokio::time::timeout(timeout, transacting)
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::ConfigstoreUnavailable,
                    format!("the config store: no answer within {timeout:?}"),
                ))
            })?;
        Ok(Answer {
            query_objects: transacted.answers,
            changed: transacted.changed,
            http_response: None,
        })
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.store.probe().await
    }
}
