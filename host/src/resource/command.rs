//! The Command resource: what a person, or another controller, tells a machine to do.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::RecoverFromSpec;

/// An order for one object of a Configurator in mode Machine. It is in the object's namespace, or, for an object without one, in
/// `default`. It acts once, and cannot be changed.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Command",
    plural = "commands",
    shortname = "cfgrcmd",
    namespaced,
    status = "CommandStatus",
    printcolumn = r#"{"name":"Configurator","type":"string","jsonPath":".spec.configurator"}"#,
    printcolumn = r#"{"name":"Object","type":"string","jsonPath":".spec.target.name"}"#,
    printcolumn = r#"{"name":"Verb","type":"string","jsonPath":".spec.verb"}"#,
    printcolumn = r#"{"name":"By","type":"string","jsonPath":".spec.by"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf").message("a Command cannot be changed: make another"),
    validation = Rule::new("self.verb != 'Signal' || has(self.signal)").message("Signal needs a signal").field_path(".signal"),
    validation = Rule::new("self.verb != 'Skip' || has(self.skip)").message("Skip needs a node and a reason").field_path(".skip")
)]
pub struct CommandSpec {
    /// The Configurator.
    #[schemars(length(min = 1, max = 63))]
    pub configurator: String,
    /// The object.
    pub target: CommandTarget,
    /// What to do.
    pub verb: CommandVerb,
    /// Who says so. An admission policy holds it to the user that makes the Command.
    #[schemars(length(min = 1, max = 253))]
    pub by: String,
    /// With Resume: where a flow goes on; by default as the flow says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RecoverFromSpec>,
    /// With Signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<CommandSignal>,
    /// With Skip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<CommandSkip>,
}

/// The object that a Command is for.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandTarget {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its identity: another object of the name is not meant.
    #[schemars(length(min = 1))]
    pub uid: String,
}

/// What to do.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandVerb {
    /// Break off what is under way; it can be resumed.
    Cancel,
    /// Go on with what was broken off or has failed.
    Resume,
    /// Begin the phase anew; in a terminal one, begin at the initial phase.
    Restart,
    /// Wake those who wait for it; if nobody does yet, keep it for who will.
    Signal,
    /// Take a node for done.
    Skip,
}

/// A signal.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandSignal {
    /// What handlers wait for.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What they get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub data: Option<serde_json::Value>,
}

/// A node that is taken for done.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandSkip {
    /// Its path, with the phase: `InFlight/attach/bind-eips`.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Why.
    #[schemars(length(min = 1))]
    pub reason: String,
}

/// What became of a Command.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CommandStatus {
    /// Pending, Done or Refused; absent: no host has seen it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<CommandPhase>,
    /// Why it was refused, or what it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

/// What became of a Command.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPhase {
    /// It waits: the Configurator does not select its object yet.
    Pending,
    /// It was carried out.
    Done,
    /// It was not.
    Refused,
}

fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"nullable": true, "x-kubernetes-preserve-unknown-fields": true})
}
