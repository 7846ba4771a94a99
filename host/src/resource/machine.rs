//! What mode `Machine` adds to the resource: trees of handlers, flows, error codes, and where the state is kept.

use std::collections::BTreeMap;

use kube::core::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How an object goes through the phases.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ModeSpec {
    /// Each run goes through all of them, one after another. Nothing is kept.
    #[default]
    Chain,
    /// The object is in one of them, and what was done in it is kept, until it is in a terminal one.
    Machine,
}

/// Which module the entries of a phase under way are of once another is swapped in.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ModuleUpgradeSpec {
    /// The next entry is of the new one.
    #[default]
    NextEntry,
    /// All entries of a phase are of the module that it began with.
    Pinned,
}

/// Where the state of an object is kept, in mode Machine.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StateSpec {
    /// Status is for kinds of one's own, whose schema has the fields below.
    #[serde(default, rename = "in")]
    pub place: StatePlaceSpec,
    /// In: Status. Where the phase is.
    #[serde(default = "default_phase_path")]
    pub phase_path: String,
    /// In: Status. Where it is said what the nodes of the tree have come to.
    #[serde(default = "default_state_path")]
    pub state_path: String,
    /// In: Status. Where there is what only the host reads, a text with a seal.
    #[serde(default = "default_memento_path")]
    pub memento_path: String,
}

/// Where the state of an object is kept.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StatePlaceSpec {
    /// In the object's status.
    #[default]
    Status,
    /// In a ConfigMap beside the object, which goes with it.
    ConfigMap,
    /// In the config store.
    ConfigStore,
}

/// A stage: of a chain, one handler; of a machine, a tree of handlers, or a state in which nothing is done.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct PhaseSpec {
    /// Unique.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The handler's name. In mode Chain by default the phase's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Mode Machine: nodes that have their turns one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nodes")]
    pub serial: Option<Vec<Value>>,
    /// Mode Machine: nodes that have their turns at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nodes")]
    pub parallel: Option<Vec<Value>>,
    /// Mode Machine: the name of a flow, of spec.flows or of a Flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Mode Machine, with handler: its requests are never sent a second time. Where it cannot be known what became of them, a
    /// person decides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub once: bool,
    /// Mode Machine: the phase that follows when the work is done. Without it the object stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_done: Option<String>,
    /// Mode Machine: the phase that follows when the work has failed for good, or is cancelled. Without it the object stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    /// Mode Machine: phases that handlers of this one may name in `next`. One that nothing else leads to must be named here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// Mode Machine: no work is done here, until one of the events takes place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stable: bool,
    /// Mode Machine: the end. The object is left alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminal: bool,
    /// Of a stable phase: what makes the object leave it; the first that is so counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<CheckSpec>,
    /// Mode Machine: for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Mode Machine: what people see of it; by default None.
    #[serde(default, skip_serializing_if = "is_default")]
    pub view: ViewSpec,
    /// Mode Machine: laid over spec.parameters for the handlers of this phase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, Value>,
    /// Mode Machine: how failures of its handlers are retried.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: NodeRetrySpec,
    /// Mode Machine: how long it may take in all, with waits and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// A node of a tree: a handler, or a serial, parallel or named tree below it. Deeper nodes have the same fields.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct NodeSpec {
    /// Unique among its siblings. By default that of the handler or flow.
    #[serde(default, alias = "stepName", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The handler's name.
    #[serde(default, alias = "className", skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Nodes that have their turns one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_nodes")]
    pub serial: Option<Vec<Value>>,
    /// Nodes that have their turns at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_nodes")]
    pub parallel: Option<Vec<Value>>,
    /// The name of a flow, of spec.flows or of a Flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// With handler: its requests are never sent a second time. Where it cannot be known what became of them, a person decides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub once: bool,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What people see of it; by default None.
    #[serde(default, skip_serializing_if = "is_default")]
    pub view: ViewSpec,
    /// Laid over the parameters of the node above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, Value>,
    /// How failures of the handlers in it are retried.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: NodeRetrySpec,
    /// How long it may take in all, with waits and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// What makes an object leave a stable phase. Either `when` or `handler`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CheckSpec {
    /// A CEL expression over `object`, the whole of it, that is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// A handler that ends with `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The phase that follows.
    #[schemars(length(min = 1))]
    pub to: String,
}

/// What people see of a node.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ViewSpec {
    /// Nothing of its own.
    #[default]
    None,
    /// A list of checks.
    CheckList,
    /// Details of objects.
    ObjectDetail,
}

/// How failures are retried that are not fatal.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct NodeRetrySpec {
    /// So many failures in a row are fatal. By default as in the node above, and without one there none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub threshold: Option<u32>,
    /// The wait before the next attempt. By default as in the node above, and without one there spec.requeueAfter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

/// Steps one after another, under a name. What the flow is called in is either the key in spec.flows or a resource of its own.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct FlowSpec {
    /// Its name; by default that of the key or resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_name: Option<String>,
    /// Where it goes on when it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_from: Option<RecoverFromSpec>,
    /// True: as recoverFrom: FirstStep. False: as recoverFrom: FailedStep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_from_first_step: Option<bool>,
    /// What happens when it is to begin while another has not finished; by default Finish.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_unfinished: WhenUnfinishedSpec,
    /// The steps. Either this or `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nodes")]
    pub serial: Option<Vec<Value>>,
    /// The steps, each with the name `stepName`, and the handler `className`, by default `stepName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "steps")]
    pub steps: Option<Vec<Value>>,
}

/// Where a flow goes on when it is resumed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoverFromSpec {
    /// At the step that failed.
    #[default]
    FailedStep,
    /// At the first, as if none had been done.
    FirstStep,
}

/// What becomes of an unfinished flow when another is to begin on the same object.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenUnfinishedSpec {
    /// It is resumed, and the other begins when it is done.
    #[default]
    Finish,
    /// It is given up.
    Cancel,
    /// The other does not begin.
    Refuse,
}

/// What is done about an error of a code.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ErrorCodeSpec {
    /// For the person who is to act, in Markdown. Shown in the status, in Events and by the program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub guidance: String,
    /// Who acts; by default Manual.
    #[serde(default, skip_serializing_if = "is_default")]
    pub action: ErrorActionSpec,
    /// With Remediate: the handler that runs, after which the one that failed is entered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// With Remediate: how often it may run for one leaf; then a person must act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub attempts: Option<u32>,
}

/// Who acts on an error.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorActionSpec {
    /// A person: the failure is for good.
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
    let name = json_schema!({"type": "string", "nullable": true, "description": "As name."});
    let handler = json_schema!({"type": "string", "nullable": true, "description": "As handler; by default stepName."});
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
