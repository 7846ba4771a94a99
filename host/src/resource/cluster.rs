//! The resource ClusterConfigurator.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt as _};
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

/// The definition, with the columns of a Configurator.
pub(super) fn definition() -> CustomResourceDefinition {
    let mut definition = ClusterConfigurator::crd();
    let columns = Configurator::crd().spec.versions.into_iter();
    for (version, same) in definition.spec.versions.iter_mut().zip(columns) {
        version.additional_printer_columns = same.additional_printer_columns;
    }
    definition
}
