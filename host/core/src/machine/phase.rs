//! The phases of a machine, and which follows which.

use std::collections::BTreeMap;
use std::time::Duration;

use super::tree::Node;

/// A checked declaration: the phases that it names exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Where an object begins.
    pub initial: String,
    /// The wait before a failure that is not fatal is tried again.
    pub requeue_after: Duration,
    /// No two share a name.
    pub phases: Vec<Phase>,
    /// What is done about errors of handlers, by their code.
    pub error_codes: BTreeMap<String, ErrorCode>,
}

/// A stage of an object's life.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What happens in it.
    pub kind: PhaseKind,
}

/// What happens in a phase.
#[derive(Debug, Clone, PartialEq)]
pub enum PhaseKind {
    /// Work is done.
    Active {
        /// The work. A phase without any has failed.
        tree: Option<Node>,
        /// What follows when it is done. `None`: it stays.
        on_done: Option<String>,
        /// What follows when it has failed for good, or is cancelled. `None`: it stays until somebody does something.
        on_error: Option<String>,
    },
    /// Nothing is done until one of these is so; the first of them counts.
    Stable(Vec<Check>),
    /// The end.
    Terminal,
}

/// What makes an object leave a stable phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What must be so.
    pub when: When,
    /// The phase that follows.
    pub to: String,
}

/// What must be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// A CEL expression over `object` is true.
    Expression(String),
    /// This handler ends with `done`.
    Handler(String),
}

/// What is done about an error of this code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorCode {
    /// For the person who is to act, in Markdown.
    pub guidance: String,
    /// Who acts.
    pub remedy: Remedy,
}

/// Who acts on an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A person: the failure is fatal, whatever the handler says.
    Manual,
    /// A handler, after which the one that failed is entered again.
    Handler {
        /// Its name in the module.
        handler: String,
        /// How often in all it may run for one leaf. Past that, the failure is fatal.
        attempts: u32,
    },
}

impl Machine {
    /// The phase of this name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The tree of the phase of this name.
    #[must_use]
    pub fn tree(&self, phase: &str) -> Option<&Node> {
        match &self.phase(phase)?.kind {
            PhaseKind::Active { tree, .. } => tree.as_ref(),
            PhaseKind::Stable(_) | PhaseKind::Terminal => None,
        }
    }
}
