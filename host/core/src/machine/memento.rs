//! The stored form of a state.
//!
//! What people and other programs read has the shape of the document that the phase machine comes from: the phase, and by phase a node
//! `{done, startTime, endTime, failed, error, fatal, state}`, whose `state` has the nodes below by name. It is made of texts and truth
//! values, which every server gives back as they were. What only the engine reads is a text of its own, since handlers' notes must come
//! back byte for byte.
//!
//! A node also has, for people, its `description`, `view`, `progress` and `details`, and the `guidance` for its failure. They are made
//! anew each time, and not read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::phase::Machine;
use super::state::{LeafState, NodeState, State};
use super::tree::Node;
use crate::document::{Document, DocumentError};
use crate::handler::View;

/// Fields of a node that are for people only.
const SHOWN: [&str; 5] = ["description", "view", "progress", "details", "guidance"];

/// A state as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memento {
    /// The phase.
    pub phase: String,
    /// By phase, what its tree has come to, with what people want to see beside it.
    pub nodes: Value,
    /// What only the engine reads; to be stored as a text.
    pub engine: Document,
}

/// What only the engine reads.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Engine {
    machine: State,
    /// By path.
    leaves: BTreeMap<String, LeafState>,
    /// By phase, the digest of the tree that it began with.
    trees: BTreeMap<String, String>,
    /// By phase, the digest of the module that it began with.
    modules: BTreeMap<String, String>,
}

/// An [`Engine`] that is somebody else's.
#[derive(Serialize)]
struct EngineOf<'s> {
    machine: &'s State,
    leaves: BTreeMap<String, &'s LeafState>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    trees: BTreeMap<&'s str, &'s str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    modules: BTreeMap<&'s str, &'s str>,
}

/// Why a stored state cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored {part} cannot be read: {message}")]
pub struct MementoError {
    /// Which part: `nodes` or `engine`.
    pub part: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl Memento {
    /// The stored form of a state of this machine, and [what a seal of it is about](Self::sealed_nodes).
    ///
    /// # Errors
    /// When trees are nested so deep that no document can hold them.
    pub fn of(machine: &Machine, state: &State) -> Result<(Self, Document), DocumentError> {
        let mut leaves = BTreeMap::new();
        for (phase, root) in &state.nodes {
            take_leaves(root, phase, &mut leaves);
        }
        let roots = || state.nodes.iter().map(|(phase, root)| (&**phase, root));
        let trees = roots().filter_map(|(phase, root)| Some((phase, root.tree.as_deref()?)));
        let modules = roots().filter_map(|(phase, root)| Some((phase, root.module.as_deref()?)));
        let engine = EngineOf {
            machine: state,
            leaves,
            trees: trees.collect(),
            modules: modules.collect(),
        };
        let sealed = Self::sealed_nodes(state)?;
        let mut nodes = sealed.to_value();
        show_all(machine, state, &mut nodes);
        let memento = Self {
            phase: state.phase.clone(),
            nodes,
            engine: Document::of(&engine)?,
        };
        Ok((memento, sealed))
    }

    /// What a seal of a state is about, beside its phase and [`engine`](Self::engine): the nodes without what is for people only.
    ///
    /// # Errors
    /// When trees are nested so deep that no document can hold them.
    pub fn sealed_nodes(state: &State) -> Result<Document, DocumentError> {
        Document::of(&state.nodes)
    }

    /// The state.
    ///
    /// # Errors
    /// When it is not the stored form of any.
    pub fn into_state(self) -> Result<State, MementoError> {
        let wrong = |part: &'static str| {
            move |error: serde_json::Error| MementoError {
                part,
                message: error.to_string(),
            }
        };
        let mut nodes = self.nodes;
        bare(&mut nodes);
        let mut nodes: BTreeMap<String, NodeState> =
            serde_json::from_value(nodes).map_err(wrong("nodes"))?;
        let engine: Engine = serde_json::from_str(self.engine.as_str()).map_err(wrong("engine"))?;
        let no_node = |path: &str| MementoError {
            part: "engine",
            message: format!("there is no node {path:?}"),
        };
        for (path, leaf) in engine.leaves {
            let node = State::node_mut(&mut nodes, &path).ok_or_else(|| no_node(&path))?;
            node.leaf = leaf;
        }
        for (phase, digest) in engine.trees {
            let root = nodes.get_mut(&phase).ok_or_else(|| no_node(&phase))?;
            root.tree = Some(digest);
        }
        for (phase, digest) in engine.modules {
            let root = nodes.get_mut(&phase).ok_or_else(|| no_node(&phase))?;
            root.module = Some(digest);
        }
        Ok(State {
            phase: self.phase,
            nodes,
            ..engine.machine
        })
    }
}

fn take_leaves<'s>(node: &'s NodeState, path: &str, leaves: &mut BTreeMap<String, &'s LeafState>) {
    if node.leaf != LeafState::default() {
        leaves.insert(path.to_owned(), &node.leaf);
    }
    for (name, child) in &node.children {
        take_leaves(child, &[path, "/", name].concat(), leaves);
    }
}

/// Adds what is for people.
fn show_all(machine: &Machine, state: &State, nodes: &mut Value) {
    for (phase, root) in &state.nodes {
        if let Some(tree) = machine.tree_of(phase, Some(root))
            && let Some(Value::Object(fields)) = nodes.get_mut(phase)
        {
            show(machine, tree, root, fields);
        }
    }
}

fn show(machine: &Machine, node: &Node, state: &NodeState, fields: &mut Map<String, Value>) {
    if !node.description.is_empty() {
        fields.insert("description".into(), node.description.clone().into());
    }
    let view = match node.view {
        View::None => None,
        View::CheckList => Some("CheckList"),
        View::ObjectDetail => Some("ObjectDetail"),
    };
    fields.extend(view.map(|view| ("view".into(), view.into())));
    if let Some(progress) = &state.leaf.progress {
        let progress =
            serde_json::json!({"percent": progress.percent, "message": progress.message});
        fields.insert("progress".into(), progress);
    }
    if let Some(details) = &state.leaf.details {
        fields.insert("details".into(), details.to_value());
    }
    let code = state.errors.first().and_then(|error| error.code.as_ref());
    if node.is_leaf()
        && let Some(rule) = code.and_then(|code| machine.error_codes.get(code))
        && !rule.guidance.is_empty()
    {
        fields.insert("guidance".into(), rule.guidance.clone().into());
    }
    let Some(Value::Object(below)) = fields.get_mut("state") else {
        return;
    };
    for child in node.children() {
        if let Some(state) = state.children.get(&child.name)
            && let Some(Value::Object(fields)) = below.get_mut(&child.name)
        {
            show(machine, child, state, fields);
        }
    }
}

/// Takes away what is for people only, from nodes by name.
fn bare(nodes: &mut Value) {
    let Value::Object(nodes) = nodes else {
        return;
    };
    for node in nodes.values_mut() {
        if let Value::Object(fields) = node {
            fields.retain(|name, _| !SHOWN.contains(&name.as_str()));
            if let Some(below) = fields.get_mut("state") {
                bare(below);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn memento(nodes: &str, engine: &str) -> Memento {
        Memento {
            phase: "Work".into(),
            nodes: serde_json::from_str(nodes).unwrap(),
            engine: Document::parse(engine.to_owned()).unwrap(),
        }
    }

    #[test]
    fn what_is_no_state_says_where_it_is_wrong() {
        for (nodes, engine, message) in [
            (
                "[]",
                "{}",
                "the stored nodes cannot be read: invalid type: sequence, expected a map",
            ),
            (
                r#"{"Work":{"done":"yes"}}"#,
                "{}",
                "the stored nodes cannot be read: invalid type: string \"yes\", expected a boolean",
            ),
            (
                r#"{"Work":{"gone":true}}"#,
                "{}",
                "the stored nodes cannot be read: unknown field `gone`",
            ),
            (
                r#"{"Work":{"startTime":"today"}}"#,
                "{}",
                "the stored nodes cannot be read: failed to parse",
            ),
            (
                "{}",
                r#"{"machine":{"token":-1}}"#,
                "the stored engine cannot be read: invalid value: integer `-1`, expected u64",
            ),
            (
                "{}",
                r#"{"leaves":{"Work/a":{}}}"#,
                "the stored engine cannot be read: there is no node \"Work/a\"",
            ),
            (
                "{}",
                r#"{"trees":{"Work":"0"}}"#,
                "the stored engine cannot be read: there is no node \"Work\"",
            ),
            (
                "{}",
                r#"{"modules":{"Work":"0"}}"#,
                "the stored engine cannot be read: there is no node \"Work\"",
            ),
        ] {
            let error = memento(nodes, engine).into_state().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert_eq!(memento("{}", "{}").into_state().unwrap().phase, "Work");
    }

    #[test]
    fn the_module_of_a_phase_is_kept() {
        let engine = r#"{"modules":{"Work":"sha256:0"}}"#;
        let state = memento(r#"{"Work":{"done":false}}"#, engine).into_state();
        let state = state.unwrap();
        assert_eq!(state.nodes["Work"].module.as_deref(), Some("sha256:0"));
        let machine = Machine::new("Work".into(), Duration::ZERO, Vec::new(), BTreeMap::new());
        let (again, _) = Memento::of(&machine, &state).unwrap();
        assert_eq!(again.into_state().unwrap(), state);
    }
}
