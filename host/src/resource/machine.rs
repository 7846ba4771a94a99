//! A state machine: its phases, trees of handlers, flows, error codes, and where its state is stored.

use std::collections::BTreeMap;

use kube::KubeSchema;
use kube::core::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A state machine. Each object is in one of its phases, and its progress is persisted, until it reaches a terminal phase.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.phases.all(p, self.phases.exists_one(q, q.name == p.name))")
        .message("each phase must have a name of its own")
        .field_path(".phases")
)]
pub struct MachineSpec {
    /// The phase of a new object. Defaults to the first phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_phase: Option<String>,
    /// The phases.
    #[schemars(length(min = 1, max = 64))]
    pub phases: Vec<PhaseSpec>,
    /// Flows that phases use by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, FlowSpec>,
    /// How errors of handlers are handled, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_codes: BTreeMap<String, ErrorCodeSpec>,
    /// The wait before a failure that is not fatal is retried. Defaults to 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
    /// Where the state of an object is stored. Defaults to its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSpec>,
    /// The module that continues a phase under way when a new module takes over. Defaults to the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_upgrade: Option<ModuleUpgradeSpec>,
}

/// The module that continues a phase under way when a new module takes over.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ModuleUpgradeSpec {
    /// The next entry uses the new module.
    #[default]
    NextEntry,
    /// All entries of a phase use the module that it started with.
    Pinned,
}

/// Where the state of an object is stored.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StateSpec {
    /// The place of the state. `Status` needs a kind of your own whose schema has the fields below.
    #[serde(default, rename = "in")]
    pub place: StatePlaceSpec,
    /// With `in: Status`, the field with the name of the phase.
    #[serde(default = "default_phase_path")]
    pub phase_path: String,
    /// With `in: Status`, the field with the progress of the nodes.
    #[serde(default = "default_state_path")]
    pub state_path: String,
    /// With `in: Status`, the field with the sealed state that only the host reads.
    #[serde(default = "default_memento_path")]
    pub memento_path: String,
}

/// The place of the state of an object.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StatePlaceSpec {
    /// In the object's status.
    #[default]
    Status,
    /// In a ConfigMap in the namespace of the object. It is deleted with the object.
    ConfigMap,
    /// In the config store.
    ConfigStore,
}

/// A phase of a machine. It has a tree of handlers, or is stable or terminal.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct PhaseSpec {
    /// The name of the phase. Each phase needs a different name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Nodes that run one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nodes")]
    pub serial: Option<Vec<Value>>,
    /// Nodes that run side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nodes")]
    pub parallel: Option<Vec<Value>>,
    /// The name of a flow in `spec.machine.flows`, or of a Flow resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// With a handler: its requests are never sent twice. If their outcome is unknown, a person decides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub once: bool,
    /// The next phase when the work is done. Without it the object stays in this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_done: Option<String>,
    /// The next phase when the work has failed permanently or was cancelled. Without it the object stays in this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    /// Phases that handlers of this phase may choose as `next`. A phase that nothing else leads to must be listed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// The object rests in this phase until one of the events occurs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stable: bool,
    /// The object does not leave this phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminal: bool,
    /// Of a stable phase: the events that end it. The first that occurs decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<CheckSpec>,
    /// Of a stable or terminal phase: the handler that returns the desired set of the object, which keeps its members as they are to be.
    /// Without it, changes by others are reported and not corrected. Needs `spec.sets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upkeep: Option<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How the phase is displayed. Defaults to None.
    #[serde(default, skip_serializing_if = "is_default")]
    pub view: ViewSpec,
    /// Parameters for the handlers of this phase. They override `spec.parameters`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, Value>,
    /// How failures of the handlers are retried.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: NodeRetrySpec,
    /// The longest time for the phase, including waits and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// A node of a tree: a handler, a flow, or nodes in series or in parallel. Deeper nodes have the same fields.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct NodeSpec {
    /// The name of the node, unique among its siblings. Defaults to the name of the handler or flow.
    #[serde(default, alias = "stepName", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The handler.
    #[serde(default, alias = "className", skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Nodes that run one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_nodes")]
    pub serial: Option<Vec<Value>>,
    /// Nodes that run side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_nodes")]
    pub parallel: Option<Vec<Value>>,
    /// The name of a flow in `spec.machine.flows`, or of a Flow resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// With a handler: its requests are never sent twice. If their outcome is unknown, a person decides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub once: bool,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How the node is displayed. Defaults to None.
    #[serde(default, skip_serializing_if = "is_default")]
    pub view: ViewSpec,
    /// Parameters for the handlers. They override the parameters of the parent node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, Value>,
    /// How failures of the handlers are retried.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: NodeRetrySpec,
    /// The longest time for the node, including waits and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// An event that ends a stable phase: either `when` or `handler`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CheckSpec {
    /// A CEL expression over `object`. The event occurs when it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// A handler. The event occurs when it returns `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The next phase.
    #[schemars(length(min = 1))]
    pub to: String,
}

/// How a node is displayed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ViewSpec {
    /// Not separately.
    #[default]
    None,
    /// A list of checks.
    CheckList,
    /// Details of objects.
    ObjectDetail,
}

/// How failures that are not fatal are retried.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct NodeRetrySpec {
    /// After this number of consecutive failures, the failure is fatal. Defaults to the value of the parent node. Without one, no number is fatal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub threshold: Option<u32>,
    /// The wait before the next attempt. Defaults to the value of the parent node, and then to `spec.machine.requeueAfter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

/// A named sequence of steps, in `spec.machine.flows` or in a Flow resource.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct FlowSpec {
    /// The name of the flow. Defaults to the key in `spec.machine.flows` or the name of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_name: Option<String>,
    /// The step where the flow continues when it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_from: Option<RecoverFromSpec>,
    /// True means `recoverFrom: FirstStep`, false means `recoverFrom: FailedStep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_from_first_step: Option<bool>,
    /// What happens when the flow is to start while another one is unfinished. Defaults to Finish.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_unfinished: WhenUnfinishedSpec,
    /// The steps. Set either this or `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nodes")]
    pub serial: Option<Vec<Value>>,
    /// The steps, each with `stepName` and the handler `className`, which defaults to `stepName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "steps")]
    pub steps: Option<Vec<Value>>,
}

/// The step where a flow continues when it is resumed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoverFromSpec {
    /// The step that failed.
    #[default]
    FailedStep,
    /// The first step.
    FirstStep,
}

/// What happens to an unfinished flow when another one is to start on the same object.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenUnfinishedSpec {
    /// The unfinished flow is resumed. The other one starts after it.
    #[default]
    Finish,
    /// The unfinished flow is cancelled.
    Cancel,
    /// The other flow does not start.
    Refuse,
}

/// How errors with a code are handled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ErrorCodeSpec {
    /// Guidance for a person, in Markdown. It is shown in the status, in Events and by the program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub guidance: String,
    /// Who acts. Defaults to Manual.
    #[serde(default, skip_serializing_if = "is_default")]
    pub action: ErrorActionSpec,
    /// With Remediate: the handler that runs before the failed one is entered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// With Remediate: how often the handler may run for one leaf. After that a person must act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub attempts: Option<u32>,
}

/// Who acts on an error.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorActionSpec {
    /// A person. The failure is permanent.
    #[default]
    Manual,
    /// A handler.
    Remediate,
}

/// A schema of the API server does not refer to itself: the nodes of the first level are described, and those below are checked by
/// the host.
fn nodes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "nullable": true, "items": NodeSpec::json_schema(generator)})
}

fn steps(generator: &mut SchemaGenerator) -> Schema {
    let mut node = NodeSpec::json_schema(generator);
    let name =
        json_schema!({"type": "string", "nullable": true, "description": "The same as `name`."});
    let handler = json_schema!({"type": "string", "nullable": true, "description": "The same as `handler`. Defaults to `stepName`."});
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.insert("stepName".into(), name.into());
        properties.insert("className".into(), handler.into());
    }
    json_schema!({"type": "array", "nullable": true, "items": node})
}

fn any_nodes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The API server prunes what it does not know; it does not want to be told.
fn open(schema: &mut Schema) {
    schema.remove("additionalProperties");
}

/// A default in an item of a list would make `kubectl apply` see a change each time.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_phase_path() -> String {
    ".status.phase".into()
}
fn default_state_path() -> String {
    ".status.state".into()
}
fn default_memento_path() -> String {
    ".status.memento".into()
}

impl Default for StateSpec {
    fn default() -> Self {
        Self {
            place: StatePlaceSpec::default(),
            phase_path: default_phase_path(),
            state_path: default_state_path(),
            memento_path: default_memento_path(),
        }
    }
}
