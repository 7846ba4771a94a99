//! The Configurator resource, as it is written in YAML. [`configurator_core::configurator::Configurator`] is its checked form.

mod capabilities;
pub mod command;
mod deletion;
pub mod flow;
mod limits;
pub mod machine;
mod module;
mod status;
mod watch;

use std::collections::BTreeMap;

use kube::core::Duration;
use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use serde::{Deserialize, Serialize};

pub use self::capabilities::{
    CapabilitiesSpec, ConfigVerbSpec, ConfigstoreRuleSpec, HttpRuleSpec, KubernetesRuleSpec,
    KubernetesVerbSpec, SecretVerbSpec, SecretstoreRuleSpec,
};
pub use self::deletion::{DeletionBySpec, DeletionPhaseSpec, DeletionSpec};
pub use self::limits::{LimitsSpec, RetrySpec};
use self::machine::{
    ErrorCodeSpec, FlowSpec, ModeSpec, ModuleUpgradeSpec, PhaseSpec, StateSpec, any_object,
};
pub use self::module::{
    CanarySpec, ConfigMapSpec, InstanceSpec, ModuleSpec, OciSpec, RolloutSpec, SecretReference,
};
pub use self::status::{
    CanaryStatus, ConfiguratorStatus, CountsStatus, DegradedStatus, DelayStatus, FailureStatus,
    HostCanaryStatus, HostStatus, RolledBackStatus,
};
pub use self::watch::{BatchSpec, EventSpec, WatchSpec};

/// What is watched, which module decides, in which phases, and with which rights.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Configurator",
    plural = "configurators",
    shortname = "cfgr",
    status = "ConfiguratorStatus",
    printcolumn = r#"{"name":"Watches","type":"string","jsonPath":".spec.watch.kind"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Objects","type":"integer","jsonPath":".status.counts.objects"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.counts.failed"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.phases.all(p, self.phases.exists_one(q, q.name == p.name))")
        .message("each phase must have a name of its own")
        .field_path(".phases"),
    validation = Rule::new("self.deletion.by != 'Finalizer' || !(self.watch.group == '' && self.watch.kind in ['Pod', 'Node', 'Namespace'])")
        .message("a finalizer is never placed on Pods, Nodes or Namespaces: use deletion.by: Ledger")
        .field_path(".deletion.by")
)]
pub struct ConfiguratorSpec {
    /// True: no new runs begin. Deletions that a finalizer holds are dealt with all the same.
    #[serde(default)]
    pub suspend: bool,
    /// What is watched.
    pub watch: WatchSpec,
    /// True: handlers get a list of objects.
    #[serde(default)]
    pub is_batch: bool,
    /// How batches are collected. Only with isBatch.
    #[serde(default)]
    pub batch: BatchSpec,
    /// The Wasm component that has the handlers.
    pub module: ModuleSpec,
    /// Fresh: every call gets an instance of its own. Reuse: an instance serves `limits.instanceCalls` of them.
    #[serde(default)]
    pub instance: InstanceSpec,
    /// Whether runs are kept, so that their calls can be made again; by default when the host is told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<bool>,
    /// Handed to every call.
    #[serde(default)]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// How an object goes through the phases.
    #[serde(default)]
    pub mode: ModeSpec,
    /// Mode Machine: where the state of an object is kept; by default in its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSpec>,
    /// Mode Machine: the phase where an object begins; by default the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_phase: Option<String>,
    /// Mode Machine: the wait before a failure that is not fatal is tried again; by default a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
    /// Mode Machine: which module a phase that is under way goes on with when another is swapped in; by default the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_upgrade: Option<ModuleUpgradeSpec>,
    /// Mode Chain: the chain; the first is the root phase, which gets the object only. Mode Machine: the phases that an object
    /// can be in.
    #[schemars(length(min = 1, max = 64))]
    pub phases: Vec<PhaseSpec>,
    /// Mode Machine: steps that phases use, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, FlowSpec>,
    /// Mode Machine: what is done about errors of handlers, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_codes: BTreeMap<String, ErrorCodeSpec>,
    /// What happens when an object goes.
    #[serde(default)]
    pub deletion: DeletionSpec,
    /// What requests may do. Nothing is allowed that is not listed; the host's own policy is the ceiling.
    #[serde(default)]
    pub capabilities: CapabilitiesSpec,
    /// Limits of one call.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The most runs at one time, and the most requests of one run side by side.
    #[serde(default = "default_concurrency")]
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: u32,
    /// How failures are retried.
    #[serde(default)]
    pub retry: RetrySpec,
}

fn default_concurrency() -> u32 {
    4
}

/// The CustomResourceDefinitions of the kinds that a host knows: Configurator, Flow and Command.
#[must_use]
pub fn definitions() -> Vec<serde_json::Value> {
    let definitions = [
        Configurator::crd(),
        flow::Flow::crd(),
        command::Command::crd(),
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
