//! A config store whose writes by the host itself a test sees, and can hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_host::sinks::configstore::{ConfigStore, Fence};
use tokio::sync::watch;

use crate::intercepted::{Intercepted, Interceptor};

/// Notes the host's own writes to a config store, and can hold those that remove keys. Cloning shares it.
#[derive(Clone)]
pub struct Books {
    inner: Arc<dyn ConfigStore>,
    is_holding: Arc<watch::Sender<bool>>,
    written: Arc<Mutex<Vec<(Write, usize)>>>,
}

impl Books {
    /// Notes what is written to this store.
    #[must_use]
    pub fn before(inner: Arc<dyn ConfigStore>) -> Self {
        Self {
            inner,
            is_holding: Arc::new(watch::Sender::new(false)),
            written: Arc::default(),
        }
    }

    /// Returns the config store as the host is given it.
    #[must_use]
    pub fn store(&self) -> Arc<dyn ConfigStore> {
        Arc::new(Intercepted::new(self.inner.clone(), self.clone()))
    }

    /// Holds writes that remove keys from now on.
    pub fn hold_removals(&self) {
        self.is_holding.send_replace(true);
    }

    /// Lets writes that remove keys through again.
    pub fn release_removals(&self) {
        self.is_holding.send_replace(false);
    }

    /// Returns each write that was sent, with the number of its fences.
    #[must_use]
    pub fn written(&self) -> Vec<(Write, usize)> {
        self.note().clone()
    }

    /// Returns the keys that begin with `prefix`, with their values.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn kept(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        self.inner.scan(prefix).await
    }

    fn note(&self) -> MutexGuard<'_, Vec<(Write, usize)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Interceptor for Books {
    async fn before(&self, writes: &[Write], fences: &[Fence]) {
        let noted = writes.iter().map(|write| (write.clone(), fences.len()));
        self.note().extend(noted);
        if !writes.iter().all(|write| matches!(write, Write::Put(..))) {
            // The sender is held here.
            let mut is_holding = self.is_holding.subscribe();
            let _ = is_holding.wait_for(|is_holding| !is_holding).await;
        }
    }
}
