//! The resource ClusterConfigurator.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configurator, ConfiguratorSpec, ConfiguratorStatus};

/// Declares which objects of the cluster to watch, which module handles them, in which phases, and with which capabilities.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "ClusterConfigurator",
    plural = "clusterconfigurators",
    shortname = "ccfgr",
    doc = "Declares which objects of the cluster to watch, which module handles them, in which phases, and with which capabilities.",
    status = "ConfiguratorStatus",
    category = "cfgrs"
)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct ClusterConfiguratorSpec(pub ConfiguratorSpec);

/// A Configurator without a namespace.
impl From<ClusterConfigurator> for Configurator {
    fn from(resource: ClusterConfigurator) -> Self {
        let ClusterConfiguratorSpec(spec) = resource.spec;
        Self {
            metadata: resource.metadata,
            spec,
            status: resource.status,
        }
    }
}
