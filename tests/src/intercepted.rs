//! A config store in front of another, whose writes a test sees and can hold.

use std::sync::Arc;

use async_trait::async_trait;
use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_host::sinks::configstore::{
    Condition, ConfigStore, ConfigTransaction, Fence, Transacted,
};

/// Sees the writes of a config store.
#[async_trait]
pub trait Interceptor: Send + Sync + 'static {
    /// Called before a write. `writes` are those of the host itself, and empty for the transaction of a request. The write is
    /// carried out when this returns.
    async fn before(&self, writes: &[Write], fences: &[Fence]);

    /// Called after a write.
    async fn after(&self) {}
}

/// A config store that shows its writes to an interceptor.
pub struct Intercepted<I> {
    inner: Arc<dyn ConfigStore>,
    interceptor: I,
}

impl<I: Interceptor> Intercepted<I> {
    /// Shows what is written to this store.
    #[must_use]
    pub fn new(inner: Arc<dyn ConfigStore>, interceptor: I) -> Self {
        Self { inner, interceptor }
    }

    async fn show<T>(
        &self,
        writes: &[Write],
        fences: &[Fence],
        write: impl Future<Output = T>,
    ) -> T {
        self.interceptor.before(writes, fences).await;
        let written = write.await;
        self.interceptor.after().await;
        written
    }
}

#[async_trait]
impl<I: Interceptor> ConfigStore for Intercepted<I> {
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault> {
        let fences = transaction.standing().to_vec();
        let write = self.inner.transact(transaction);
        self.show(&[], &fences, write).await
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        self.inner.scan(prefix).await
    }

    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        let write = self.inner.write(writes.clone(), fences);
        self.show(&writes, fences, write).await
    }

    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        let write = self.inner.write_if(writes.clone(), conditions, fences);
        self.show(&writes, fences, write).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}
