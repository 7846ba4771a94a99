//! The stored form of a state.
//!
//! What people and other programs read has the shape of the document that the phase machine comes from: the phase, and by phase a node
//! `{done, startTime, endTime, failed, error, fatal, state}`, whose `state` has the nodes below by name. It is made of texts and truth
//! values, which every server gives back as they were. What only the engine reads is a text of its own, since handlers' notes must come
//! back byte for byte.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::state::{LeafState, NodeState, State};
use crate::document::{Document, DocumentError};

/// A state as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memento {
    /// The phase.
    pub phase: String,
    /// By phase, what its tree has come to.
    pub nodes: Document,
    /// What only the engine reads; to be stored as a text.
    pub engine: Document,
}

/// What only the engine reads.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Engine {
    machine: State,
    /// By path.
    leaves: BTreeMap<String, LeafState>,
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
    /// The stored form of a state.
    ///
    /// # Errors
    /// When trees are nested so deep that no document can hold them.
    pub fn of(state: &State) -> Result<Self, DocumentError> {
        let mut leaves = BTreeMap::new();
        for (phase, root) in &state.nodes {
            take_leaves(root, phase, &mut leaves);
        }
        let engine = Engine {
            machine: state.clone(),
            leaves,
        };
        Ok(Self {
            phase: state.phase.clone(),
            nodes: Document::of(&state.nodes)?,
            engine: Document::of(&engine)?,
        })
    }

    /// The state.
    ///
    /// # Errors
    /// When it is not the stored form of any.
    pub fn state(&self) -> Result<State, MementoError> {
        let wrong = |part: &'static str| {
            move |error: serde_json::Error| MementoError {
                part,
                message: error.to_string(),
            }
        };
        let mut nodes: BTreeMap<String, NodeState> =
            serde_json::from_str(self.nodes.as_str()).map_err(wrong("nodes"))?;
        let engine: Engine = serde_json::from_str(self.engine.as_str()).map_err(wrong("engine"))?;
        for (path, leaf) in engine.leaves {
            let node = State::node_mut(&mut nodes, &path).ok_or_else(|| MementoError {
                part: "engine",
                message: format!("there is no node {path:?}"),
            })?;
            node.leaf = leaf;
        }
        Ok(State {
            phase: self.phase.clone(),
            nodes,
            ..engine.machine
        })
    }
}

fn take_leaves(node: &NodeState, path: &str, leaves: &mut BTreeMap<String, LeafState>) {
    if node.leaf != LeafState::default() {
        leaves.insert(path.to_owned(), node.leaf.clone());
    }
    for (name, child) in &node.children {
        take_leaves(child, &[path, "/", name].concat(), leaves);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memento(nodes: &str, engine: &str) -> Memento {
        Memento {
            phase: "Work".into(),
            nodes: Document::parse(nodes.to_owned()).unwrap(),
            engine: Document::parse(engine.to_owned()).unwrap(),
        }
    }

    #[test]
    fn what_is_no_state_says_where_it_is_wrong() {
        for (nodes, engine, message) in [
            (
                "[]",
                "{}",
                "the stored nodes cannot be read: invalid type: sequence, expected a map at line 1 column 0",
            ),
            (
                r#"{"Work":{"done":"yes"}}"#,
                "{}",
                "the stored nodes cannot be read: invalid type: string \"yes\", expected a boolean at line 1 column 21",
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
        ] {
            let error = memento(nodes, engine).state().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert_eq!(memento("{}", "{}").state().unwrap().phase, "Work");
    }
}
