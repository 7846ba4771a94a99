//! Finds the partition of the stores that a request means.

use async_trait::async_trait;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::partition::Partition;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::Api;

use crate::kubernetes_faults::fault_of;

/// Finds the partitions of namespaces.
#[async_trait]
pub trait Partitions: Send + Sync + 'static {
    /// Returns the partition of the namespace that has this name now.
    ///
    /// # Errors
    /// [`FaultKind::ResourceNotFound`] if there is no such namespace, and how asking for it failed.
    async fn of_namespace(&self, namespace: &str) -> Result<Partition, Fault>;
}

/// Reads the uid of a namespace from a Kubernetes API, for each request: a namespace that has just been created again has another partition.
pub struct KubernetesPartitions(Client);

impl KubernetesPartitions {
    /// Asks this API, with the rights of the client: `get` on namespaces.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(client)
    }
}

#[async_trait]
impl Partitions for KubernetesPartitions {
    async fn of_namespace(&self, namespace: &str) -> Result<Partition, Fault> {
        let what = format!("get the namespace {namespace}");
        let uid = namespace_uid(&self.0, namespace).await;
        let uid = uid.map_err(|error| fault_of(&what, false, &error))?;
        Ok(Partition::of_namespace(namespace, &uid))
    }
}

/// Reads the uid of a namespace from the API: a watch could lag behind, and show the uid of a deleted namespace with this name.
pub(crate) async fn namespace_uid(client: &Client, name: &str) -> kube::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_metadata(name).await?;
    Ok(found.metadata.uid.unwrap_or_default())
}

/// Knows no namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoPartitions;

#[async_trait]
impl Partitions for NoPartitions {
    async fn of_namespace(&self, namespace: &str) -> Result<Partition, Fault> {
        Err(Fault::new(
            FaultKind::UnsupportedResourceOperation,
            format!(
                "the partition of the namespace {namespace} cannot be found: the sink has no Partitions"
            ),
        ))
    }
}

/// Returns the partition that a request names, or else its Configurator's own.
pub(super) async fn partition(
    partitions: &dyn Partitions,
    named: Option<&str>,
    own: &Partition,
) -> Result<Partition, Fault> {
    match named {
        None => Ok(own.clone()),
        Some(namespace) => partitions.of_namespace(namespace).await,
    }
}
