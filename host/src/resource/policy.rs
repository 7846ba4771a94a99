//! The resource ConfiguratorPolicy: what Configurators of namespaces may do at most.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CapabilitiesSpec;

/// Limits what the Configurators of the selected namespaces may do. If several policies select a namespace, all of them must allow something.
/// A Configurator in a namespace that no policy selects does not run.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "ConfiguratorPolicy",
    plural = "configuratorpolicies",
    shortname = "cfgrpolicy",
    category = "cfgrs",
    doc = "Limits what the Configurators of the selected namespaces may do.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguratorPolicySpec {
    /// Selects namespaces by their labels. Empty selects all namespaces.
    #[serde(default)]
    pub namespace_selector: LabelSelector,
    /// The ServiceAccount of Configurators that name none. Defaults to `default`. If several policies name one, that of the policy whose name is
    /// first in alphabetical order is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Names of the ServiceAccounts that Configurators may act as. `*` stands for any number of characters. Defaults to all.
    #[serde(default = "any_account")]
    pub service_accounts: Vec<String>,
    /// What requests may do. A rule for Kubernetes with the verb `watch` also allows Configurators to watch these objects; it must allow all names.
    /// A rule without namespaces is for the namespaces of the Configurators.
    #[serde(default)]
    pub capabilities: CapabilitiesSpec,
    /// Limits of the Configurators.
    #[serde(default)]
    pub limits: PolicyLimitsSpec,
    /// Which modules Configurators may run. Policies that allow registries and signers must all allow a module.
    #[serde(default)]
    pub modules: ModulePolicySpec,
    /// The share of the CPU time of modules that a namespace gets while others wait, relative to theirs. Defaults to 1. The lowest weight of
    /// several policies applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: Option<u32>,
    /// Limits what the Configurators of a namespace use together.
    #[serde(default)]
    pub quotas: QuotasSpec,
}

/// The highest values that a Configurator may state, or have by default.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLimitsSpec {
    /// Of `spec.limits.memory`, such as `64Mi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub memory: Option<String>,
    /// Of `spec.limits.deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// Of `spec.concurrency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: Option<u32>,
}

/// Which modules Configurators may run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ModulePolicySpec {
    /// Repositories that modules may be pulled from, such as `ghcr.io/our-team/greeter`, or all below a path, such as `ghcr.io/our-team/*`.
    /// Defaults to all. An empty list allows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registries: Option<Vec<String>>,
    /// Public keys in PEM. If there are any, a module must be signed by one of them. Modules in ConfigMaps have no signature.
    #[serde(default)]
    pub signers: Vec<String>,
}

/// Limits what the Configurators of a namespace use together. The lowest value of several policies applies.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct QuotasSpec {
    /// The number of Configurators that run. The oldest run, and the others are Stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurators: Option<u32>,
    /// The number of watched objects. An object counts once for each Configurator that watches it. The oldest Configurators run, and the others
    /// are Stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// The number of runs that begin per second, on all hosts together. Further runs wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub runs_per_second: Option<u32>,
}

fn any_account() -> Vec<String> {
    vec!["*".to_owned()]
}
