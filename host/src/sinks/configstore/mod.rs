//! The config store: a trait, its implementations, and the sink above it.

mod claimed;
mod embedded;
#[cfg(feature = "etcd")]
pub mod etcd;
mod fence;
mod host_keys;
mod transaction;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{Read, Write};
use configurator_core::request::{Operation, SinkName};
use configurator_core::result::Answer;

pub(crate) use self::claimed::ClaimedStore;
pub use self::embedded::EmbeddedConfigStore;
pub use self::fence::{Fence, StandingFence};
pub use self::host_keys::is_host_key;
pub use self::transaction::{Companion, ConfigTransaction};
use super::partitions::{NoPartitions, Partitions, partition};
use super::{Scope, Sink, misrouted};

/// Keeps configuration.
///
/// # Guarantees
/// - [`transact`](Self::transact): all of the operations, or none, under the layout of [`configurator_core::layers`]; what was there
///   already is not written again.
/// - A write that was acknowledged survives a crash.
/// - Nothing is written unless every [`Fence`] stands, as seen by the transaction that writes.
#[async_trait]
pub trait ConfigStore: Send + Sync + 'static {
    /// Executes the operations.
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault>;

    /// Every key that begins with `prefix`, in order, with its value.
    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault>;

    /// Returns the value of exactly this key. `None`: there is none.
    async fn get(&self, key: &str) -> Result<Option<String>, Fault> {
        let found = self.scan(key).await?;
        let found = found.into_iter().find(|(found, _)| found == key);
        Ok(found.map(|(_, value)| value))
    }

    /// Writes keys outside the layout of requests. When it fails, some may be written; to write them again is safe.
    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault>;

    /// Writes keys as [`write`](Self::write) does, all in one transaction, if every condition holds in it. `false`: one does
    /// not. When an answer was lost, an earlier attempt of the same call may have been carried out all the same.
    ///
    /// At most 64 writes and conditions together.
    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault>;

    /// Whether hosts of other clusters may reach it as well, so that it must be claimed.
    fn is_shared(&self) -> bool {
        false
    }

    /// Takes a shared store for the cluster of this name, for ever; done before anything else.
    ///
    /// # Errors
    /// When it is another cluster's.
    async fn claim(&self, _cluster: &str) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether the store can be reached.
    async fn probe(&self) -> Result<(), Fault>;
}

/// A store that is chosen at run time.
#[async_trait]
impl ConfigStore for Arc<dyn ConfigStore> {
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault> {
        (**self).transact(transaction).await
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        (**self).scan(prefix).await
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Fault> {
        (**self).get(key).await
    }

    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        (**self).write(writes, fences).await
    }

    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        (**self).write_if(writes, conditions, fences).await
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }

    async fn claim(&self, cluster: &str) -> Result<(), Fault> {
        (**self).claim(cluster).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        (**self).probe().await
    }
}

/// A condition on a key that a write depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    key: String,
    value: Option<String>,
}

impl Condition {
    /// The key has this value.
    #[must_use]
    pub fn is(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: Some(value.into()),
        }
    }

    /// The key is absent.
    #[must_use]
    pub fn is_absent(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: None,
        }
    }

    fn key(&self) -> &str {
        &self.key
    }

    /// Returns the read that shows whether the condition holds.
    fn read(&self) -> Read {
        Read::Key(self.key.clone())
    }

    /// Returns whether the condition holds in these values.
    fn holds(&self, stored: &BTreeMap<String, String>) -> bool {
        stored.get(&self.key) == self.value.as_ref()
    }
}

/// Returns the segments that follow `prefix` in the keys that begin with it, up to the next `/`. Keys without a further `/` are left out.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn segments_below(
    store: &dyn ConfigStore,
    prefix: &str,
) -> Result<BTreeSet<String>, Fault> {
    let keys = store.scan(prefix).await?.into_iter();
    let segment = |key: &str| Some(key.strip_prefix(prefix)?.split_once('/')?.0.to_owned());
    Ok(keys.filter_map(|(key, _)| segment(&key)).collect())
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
    partitions: Arc<dyn Partitions>,
    timeout: std::time::Duration,
}

impl ConfigstoreSink {
    /// A sink over this store.
    #[must_use]
    pub fn new(store: Arc<dyn ConfigStore>) -> Self {
        Self {
            store,
            partitions: Arc::new(NoPartitions),
            timeout: std::time::Duration::from_secs(30),
        }
    }

    /// Sets where the partition that a request names is found. Default: nowhere; such requests are refused.
    #[must_use]
    pub fn partitions(self, partitions: Arc<dyn Partitions>) -> Self {
        Self { partitions, ..self }
    }
}

#[async_trait]
impl Sink for ConfigstoreSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Operation::Config(request) = operation.operation() else {
            return Err(misrouted(operation, SinkName::Configstore));
        };
        let timeout = scope.timeout.unwrap_or(self.timeout);
        let transacting = async {
            let named = request.partition.as_deref();
            let partition = partition(&*self.partitions, named, &scope.partition).await?;
            let transaction = ConfigTransaction::new(&request.operations, operation.namespace())
                .partition(partition)
                .fences(&scope.fences)
                .companion(&scope.companion);
            self.store.as_ref().transact(transaction).await
        };
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
