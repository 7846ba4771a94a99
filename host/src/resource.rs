//! The resources Configurator and ClusterConfigurator, as they are written in YAML. [`configurator_core::configurator::Configurator`] is
//! their checked form.

pub mod admission;
mod capabilities;
mod chain;
mod cluster;
pub mod command;
mod counterpart;
mod deletion;
pub mod flow;
mod limits;
pub mod machine;
mod module;
pub mod object_set;
mod parameters;
pub mod policy;
mod scope;
mod sets;
mod status;
mod watch;

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use serde::{Deserialize, Serialize};

pub use self::capabilities::{
    CapabilitiesSpec, ConfigVerbSpec, ConfigstoreRuleSpec, ExtensionRuleSpec, HttpRuleSpec,
    KubernetesRuleSpec, KubernetesVerbSpec, SecretVerbSpec, SecretstoreRuleSpec,
};
pub use self::chain::{BatchSpec, ChainPhaseSpec, ChainSpec};
pub use self::cluster::{ClusterConfigurator, ClusterConfiguratorSpec};
pub use self::deletion::{DeletionBySpec, DeletionSpec, SetsDeletionSpec};
pub use self::limits::{LimitsSpec, RetrySpec};
use self::machine::{MachineSpec, any_object};
pub use self::module::{
    CanarySpec, ConfigMapSpec, InstancePolicySpec, ModuleSpec, OciSpec, RolloutSpec,
    SecretReference,
};
pub use self::parameters::{ParametersReference, ParametersSourceSpec};
pub use self::scope::{get, is_configurator, kind_of, list, read, segment_of};
pub use self::sets::SetsSpec;
pub use self::status::{
    CanaryStatus, ConfiguratorStatus, CountsStatus, DegradedStatus, DelayStatus, FailureStatus,
    HostCanaryStatus, HostStatus, ModeStatus, RolledBackStatus,
};
pub use self::watch::{EventSpec, WatchSpec};

/// Declares which objects to watch, which module handles them, in which phases, and with which capabilities.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Configurator",
    plural = "configurators",
    shortname = "cfgr",
    namespaced,
    doc = "Declares which objects of its namespace to watch, which module handles them, in which phases, and with which capabilities.",
    status = "ConfiguratorStatus",
    category = "cfgrs",
    printcolumn = r#"{"name":"Watches","type":"string","jsonPath":".spec.watch.kind"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".status.mode"}"#,
    printcolumn = r#"{"name":"Module","type":"string","jsonPath":".status.module"}"#,
    printcolumn = r#"{"name":"Objects","type":"integer","jsonPath":".status.counts.objects"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.counts.failed"}"#,
    printcolumn = r#"{"name":"Suspended","type":"boolean","jsonPath":".spec.suspend"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.chain) != has(self.machine)")
        .message("must have either a chain or a machine"),
    validation = Rule::new("self.deletion.by != 'Finalizer' || !(self.watch.apiVersion == 'v1' && self.watch.kind in ['Pod', 'Node', 'Namespace'])")
        .message("a finalizer is never placed on Pods, Nodes or Namespaces: use deletion.by: Ledger")
        .field_path(".deletion.by"),
    validation = Rule::new("!has(self.sets) || !has(self.chain) || !has(self.chain.batch)")
        .message("sets are not valid with batches: a set belongs to one object")
        .field_path(".sets"),
    validation = Rule::new("!has(self.sets) || !(self.watch.apiVersion == 'v1' && self.watch.kind in ['Pod', 'Node', 'Namespace'])")
        .message("Pods, Nodes and Namespaces cannot own a set, because they may carry no finalizer")
        .field_path(".sets")
)]
pub struct ConfiguratorSpec {
    /// Suspends the Configurator: no new runs start, except for deletions that a finalizer holds.
    #[serde(default)]
    pub suspend: bool,
    /// The objects to watch.
    pub watch: WatchSpec,
    /// The WebAssembly component with the handlers.
    pub module: ModuleSpec,
    /// How long an instance of the module is used: for one call (`Fresh`), or for `limits.instanceCalls` of them (`Reuse`).
    #[serde(default)]
    pub instance_policy: InstancePolicySpec,
    /// Whether runs are recorded for replay. Defaults to the setting of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<bool>,
    /// Parameters that each call receives.
    #[serde(default)]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// ConfigMaps and Secrets with more parameters. A later source overrides an earlier one, and `parameters` overrides them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub parameters_from: Vec<ParametersSourceSpec>,
    /// Phases that each run passes, one after another. Set either this or `machine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainSpec>,
    /// A state machine: each object is in one of its phases, and its progress is persisted. Set either this or `chain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Box<MachineSpec>>,
    /// How the deletion of objects is handled.
    #[serde(default)]
    pub deletion: DeletionSpec,
    /// Lets handlers return desired sets: the objects that the handled object is to have. Not valid with batches. Needs a watched kind that
    /// may carry a finalizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<SetsSpec>,
    /// Rules that grant what requests may do, up to the policy of the host. Requests that no rule grants are refused.
    #[serde(default)]
    pub capabilities: CapabilitiesSpec,
    /// The ServiceAccount of the namespace as which the Configurator reads and writes objects. Defaults to `default`. A ClusterConfigurator has
    /// none: it acts as the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Limits of each call of a handler.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The largest number of runs at a time, and of requests of one run at a time.
    #[serde(default = "default_concurrency")]
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: u32,
    /// How failed runs are retried.
    #[serde(default)]
    pub retry: RetrySpec,
}

fn default_concurrency() -> u32 {
    4
}

/// The CustomResourceDefinitions of the kinds that a host knows.
#[must_use]
pub fn definitions() -> Vec<serde_json::Value> {
    let definitions = [
        Configurator::crd(),
        counterpart::definition::<Configurator, ClusterConfigurator>(),
        flow::Flow::crd(),
        counterpart::definition::<flow::Flow, flow::ClusterFlow>(),
        command::Command::crd(),
        policy::ConfiguratorPolicy::crd(),
        object_set::ObjectSet::crd(),
    ];
    let definitions = definitions.into_iter().map(|definition| {
        let mut definition = serde_json::to_value(definition).unwrap_or_default();
        know_formats(&mut definition);
        definition
    });
    definitions.collect()
}

/// Numbers without a sign have a minimum; of their formats, Kubernetes knows none and warns.
fn know_formats(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(fields) => {
            if let Some(serde_json::Value::String(format)) = fields.get_mut("format")
                && format.starts_with("uint")
            {
                "int64".clone_into(format);
            }
            fields.values_mut().for_each(know_formats);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(know_formats),
        _ => {}
    }
}
