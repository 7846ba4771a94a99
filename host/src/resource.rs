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

/// Declares which objects to watch, which module handles them, in which phases, and with which capabilities.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Configurator",
    plural = "configurators",
    shortname = "cfgr",
    doc = "Declares which objects to watch, which module handles them, in which phases, and with which capabilities.",
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
    /// Suspends the Configurator: no new runs start, except for deletions that a finalizer holds.
    #[serde(default)]
    pub suspend: bool,
    /// The objects to watch.
    pub watch: WatchSpec,
    /// Whether handlers receive a list of objects.
    #[serde(default)]
    pub is_batch: bool,
    /// With `isBatch`, the limits of a batch.
    #[serde(default)]
    pub batch: BatchSpec,
    /// The WebAssembly component with the handlers.
    pub module: ModuleSpec,
    /// How long an instance of the module is used: for one call (`Fresh`), or for `limits.instanceCalls` of them (`Reuse`).
    #[serde(default)]
    pub instance: InstanceSpec,
    /// Whether runs are recorded for replay. Defaults to the setting of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<bool>,
    /// Parameters that each call receives.
    #[serde(default)]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// How objects pass through the phases.
    #[serde(default)]
    pub mode: ModeSpec,
    /// Mode Machine: where the state of an object is stored. Defaults to its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSpec>,
    /// Mode Machine: the phase of a new object. Defaults to the first phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_phase: Option<String>,
    /// Mode Machine: the wait before a failure that is not fatal is retried. Defaults to 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
    /// Mode Machine: the module that continues a phase under way when a new module takes over. Defaults to the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_upgrade: Option<ModuleUpgradeSpec>,
    /// The phases. In mode Chain, each run passes them in this order, and the first one is the root phase. In mode Machine, each object is in one of
    /// them.
    #[schemars(length(min = 1, max = 64))]
    pub phases: Vec<PhaseSpec>,
    /// Mode Machine: flows that phases use by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, FlowSpec>,
    /// Mode Machine: how errors of handlers are handled, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_codes: BTreeMap<String, ErrorCodeSpec>,
    /// How the deletion of objects is handled.
    #[serde(default)]
    pub deletion: DeletionSpec,
    /// Rules that grant what requests may do, up to the policy of the host. Requests that no rule grants are refused.
    #[serde(default)]
    pub capabilities: CapabilitiesSpec,
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
