//! The Command resource: what a person, or another controller, tells a machine to do.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::RecoverFromSpec;

/// Controls the machine of one object. Create a Command in the namespace of the object; for a cluster-scoped object, in `default`. A Command acts
/// once and cannot be changed.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Command",
    plural = "commands",
    shortname = "cfgrcmd",
    category = "cfgrs",
    doc = "Controls the machine of one object. A Command acts once and cannot be changed.",
    namespaced,
    status = "CommandStatus",
    printcolumn = r#"{"name":"Configurator","type":"string","jsonPath":".spec.configurator.name"}"#,
    printcolumn = r#"{"name":"Object","type":"string","jsonPath":".spec.target.name"}"#,
    printcolumn = r#"{"name":"Verb","type":"string","jsonPath":".spec.verb"}"#,
    printcolumn = r#"{"name":"Requester","type":"string","jsonPath":".spec.requestedBy"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf").message("a Command cannot be changed: create another one"),
    validation = Rule::new("self.verb != 'Signal' || has(self.signal)").message("Signal needs a signal").field_path(".signal"),
    validation = Rule::new("self.verb != 'Skip' || has(self.skip)").message("Skip needs a node and a reason").field_path(".skip")
)]
pub struct CommandSpec {
    /// The Configurator whose machine the object has.
    pub configurator: ConfiguratorReference,
    /// The object to control.
    pub target: CommandTarget,
    /// The action to take.
    pub verb: CommandVerb,
    /// The user who makes the request. The admission policy `configurator-commands` checks that it is the user who creates the Command, and that
    /// this user may use the verb. Without that policy the user is shown as unverified.
    #[schemars(length(min = 1, max = 253))]
    pub requested_by: String,
    /// With Resume, the step where a flow continues. Defaults to `recoverFrom` of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RecoverFromSpec>,
    /// With Signal, the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<CommandSignal>,
    /// With Skip, the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<CommandSkip>,
    /// The time in seconds after which the finished Command is deleted. Defaults to the setting `command_ttl_seconds` of the host, which is also
    /// the longest time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u32>,
}

/// A Configurator in the namespace of the Command, or a ClusterConfigurator.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguratorReference {
    /// The kind: `Configurator` or `ClusterConfigurator`.
    #[serde(default)]
    pub kind: ConfiguratorKind,
    /// The name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// The kind of a Configurator.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ConfiguratorKind {
    /// A Configurator in the namespace of the Command.
    #[default]
    Configurator,
    /// A ClusterConfigurator.
    ClusterConfigurator,
}

/// The object that a Command controls.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandTarget {
    /// Its API version, such as `apps/v1`. If it is absent, the kind is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub api_version: Option<String>,
    /// Its kind. It must be the kind that the Configurator watches.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its uid. A later object with the same name is not affected. If it is absent, the host looks it up when it sees the Command, and stores it in
    /// `status.targetUid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub uid: Option<String>,
}

/// The action to take.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandVerb {
    /// Send the signal `approved` to the steps that wait for it. Refused if no step waits for it.
    Approve,
    /// Cancel the work under way. It can be resumed.
    Cancel,
    /// Continue the work that was cancelled or has failed.
    Resume,
    /// Start the phase again; in a terminal phase, start at the initial phase.
    Restart,
    /// Send a signal to the steps that wait for it. If no step waits for it yet, it is kept.
    Signal,
    /// Mark a node as done.
    Skip,
}

/// A signal.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandSignal {
    /// The name that handlers wait for.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Data for the handlers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub data: Option<serde_json::Value>,
}

/// A node to mark as done.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandSkip {
    /// The path of the node, starting with the phase: `InFlight/attach/bind-eips`.
    #[schemars(length(min = 1))]
    pub node: String,
    /// The reason.
    #[schemars(length(min = 1))]
    pub reason: String,
}

/// The outcome of a Command.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandStatus {
    /// Pending, Done or Refused. Absent until a host has seen the Command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<CommandPhase>,
    /// Why the Command was refused, or what it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the phase was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The uid of the object, if the Command does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_uid: Option<String>,
    /// Whether the API server checked the requester.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<RequesterStatus>,
}

/// Whether the API server checked the requester of a Command.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequesterStatus {
    /// The admission policy `configurator-commands` was in place when a host first saw the Command.
    Verified,
    /// It was not: whoever created the Command may have stated any user.
    Unverified,
}

/// The outcome of a Command.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPhase {
    /// The Command waits until the Configurator selects its object.
    Pending,
    /// The Command was carried out.
    Done,
    /// The Command was refused.
    Refused,
}

fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"nullable": true, "x-kubernetes-preserve-unknown-fields": true})
}
