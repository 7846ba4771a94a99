//! A config store in front of another, which sees what the host keeps for itself there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::request::ConfigOperation;
use configurator_host::sinks::configstore::{Condition, ConfigStore, Fence, Transacted};
use tokio::sync::watch;

/// A config store that notes the host's own writes and can hold those that remove keys. Cloning shares it.
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

    /// Writes that remove keys wait from now on.
    pub fn hold_removals(&self) {
        self.is_holding.send_replace(true);
    }

    /// Writes that remove keys go through again.
    pub fn release_removals(&self) {
        self.is_holding.send_replace(false);
    }

    /// Each write that was sent, with the number of its fences.
    #[must_use]
    pub fn written(&self) -> Vec<(Write, usize)> {
        self.note().clone()
    }

    /// What is stored under keys that begin so.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn kept(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        self.inner.scan(prefix).await
    }

    fn note(&self) -> MutexGuard<'_, Vec<(Write, usize)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn admit(&self, writes: &[Write], fences: &[Fence]) {
        let noted = writes.iter().map(|write| (write.clone(), fences.len()));
        self.note().extend(noted);
        if !writes.iter().all(|write| matches!(write, Write::Put(..))) {
            // The sender is held here.
            let mut is_holding = self.is_holding.subscribe();
            let _ = is_holding.wait_for(|is_holding| !is_holding).await;
        }
    }
}

#[async_trait]
impl ConfigStore for Books {
    async fn transact(
        &self,
        operations: &[ConfigOperation],
        default_namespace: &str,
        fences: &[Fence],
    ) -> Result<Transacted, Fault> {
        self.inner
            .transact(operations, default_namespace, fences)
            .await
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        self.inner.scan(prefix).await
    }

    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        self.admit(&writes, fences).await;
        self.inner.write(writes, fences).await
    }

    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        self.admit(&writes, fences).await;
        self.inner.write_if(writes, conditions, fences).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}
