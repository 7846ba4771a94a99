//! A config store that others can reach as well: it is claimed for this host's cluster before anything else.

use std::sync::Arc;

use async_trait::async_trait;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::Write;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::OnceCell;

use super::{Condition, ConfigStore, ConfigTransaction, Fence, Transacted};
use crate::objects;

/// The namespace whose uid names a cluster: it is as old as the cluster, and cannot be deleted.
const CLUSTER: &str = "kube-system";

/// Nothing is read or written before the store is known to be this cluster's.
pub struct ClaimedStore {
    store: Arc<dyn ConfigStore>,
    client: Client,
    claimed: OnceCell<()>,
}

impl ClaimedStore {
    /// A store that is claimed for the cluster of this client with the first request.
    pub fn new(store: Arc<dyn ConfigStore>, client: Client) -> Self {
        Self {
            store,
            client,
            claimed: OnceCell::new(),
        }
    }

    async fn store(&self) -> Result<&dyn ConfigStore, Fault> {
        let claiming = || async {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            let cluster = namespaces.get_metadata(CLUSTER).await.map_err(|error| {
                Fault::new(
                    FaultKind::ConfigstoreUnavailable,
                    format!(
                        "the config store: whose it is cannot be checked, because the namespace {CLUSTER} cannot be read: {}",
                        objects::explained(&error)
                    ),
                )
            })?;
            self.store.claim(&cluster.uid().unwrap_or_default()).await
        };
        self.claimed.get_or_try_init(claiming).await?;
        Ok(self.store.as_ref())
    }
}

#[async_trait]
impl ConfigStore for ClaimedStore {
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault> {
        let store = self.store().await?;
        store.transact(transaction).await
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        self.store().await?.scan(prefix).await
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Fault> {
        self.store().await?.get(key).await
    }

    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        self.store().await?.write(writes, fences).await
    }

    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        let store = self.store().await?;
        store.write_if(writes, conditions, fences).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.store().await?.probe().await
    }
}
