//! The phases of a machine, and which follows which.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::state::NodeState;
use super::tree::{Node, NodeKind};
use crate::document::Document;

/// A checked declaration: the phases that it names exist.
///
/// A flow keeps the tree that it has begun with, whatever is declared meanwhile, until a person resumes it: the tree of a phase that has
/// a flow is noted, by its digest, with what it comes to. Where another is declared by now, it is one that was [remembered](Self::remember).
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
    /// By phase, the digest of its tree, where that has a flow.
    digests: BTreeMap<String, String>,
    /// Trees that were declared earlier, by their digest.
    earlier: BTreeMap<String, Arc<Node>>,
}

/// A stage of an object's life.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What happens in it.
    pub kind: PhaseKind,
    /// The parameters of checks and of the upkeep, laid over those of the Configurator. A tree has its own.
    pub parameters: Option<Document>,
    /// The handler that returns the object's set while nothing is done in the phase. `None`: what others do to members is only told.
    pub upkeep: Option<String>,
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
    /// One that knows of no earlier declaration.
    #[must_use]
    pub fn new(
        initial: String,
        requeue_after: Duration,
        phases: Vec<Phase>,
        error_codes: BTreeMap<String, ErrorCode>,
    ) -> Self {
        let mut machine = Self {
            initial,
            requeue_after,
            phases,
            error_codes,
            digests: BTreeMap::new(),
            earlier: BTreeMap::new(),
        };
        machine.digests = machine
            .kept()
            .map(|(phase, digest, _)| (phase.to_owned(), digest))
            .collect();
        machine
    }

    /// What must be stored before an object enters a phase: the phases whose trees have a flow, with the digest and the
    /// [stored form](Node::stored) of the tree.
    pub fn kept(&self) -> impl Iterator<Item = (&str, String, Document)> {
        self.phases.iter().filter_map(|phase| {
            let tree = self.tree(&phase.name)?;
            tree.flow()?;
            // None is nested so deep: a declaration that is goes past its own limit first.
            let (digest, document) = tree.stored().ok()?;
            Some((phase.name.as_str(), digest, document))
        })
    }

    /// Whether a phase has an [upkeep](Phase::upkeep).
    #[must_use]
    pub fn has_upkeep(&self) -> bool {
        self.phases.iter().any(|phase| phase.upkeep.is_some())
    }

    /// Makes a tree of an earlier declaration known.
    pub fn remember(&mut self, digest: String, tree: Node) {
        self.earlier.insert(digest, Arc::new(tree));
    }

    /// The digest of the tree that this phase of a state has begun with, where nothing is known of that tree.
    #[must_use]
    pub fn lacks<'s>(&self, phase: &str, root: &'s NodeState) -> Option<&'s str> {
        let digest = root.tree.as_deref()?;
        let is_known = self.digests.get(phase).is_some_and(|known| known == digest)
            || self.earlier.contains_key(digest);
        (!is_known).then_some(digest)
    }

    /// The digest of the tree that this phase begins with.
    pub(super) fn digest(&self, phase: &str) -> Option<&str> {
        self.digests.get(phase).map(String::as_str)
    }

    /// The phase of this name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Every handler that is named, with where it is, for a message: of trees, checks, upkeep and remedies.
    #[must_use]
    pub fn handlers(&self) -> Vec<(String, &str)> {
        let mut handlers = Vec::new();
        for phase in &self.phases {
            if let Some(upkeep) = &phase.upkeep {
                handlers.push((
                    format!("the upkeep of phase {:?}", phase.name),
                    upkeep.as_str(),
                ));
            }
            match &phase.kind {
                PhaseKind::Active { tree, .. } => {
                    let tree = tree.as_ref();
                    tree.into_iter()
                        .for_each(|tree| leaves(tree, &tree.name, &mut handlers));
                }
                PhaseKind::Stable(checks) => {
                    let place = format!("an event of phase {:?}", phase.name);
                    handlers.extend(checks.iter().filter_map(|check| match &check.when {
                        When::Handler(handler) => Some((place.clone(), handler.as_str())),
                        When::Expression(_) => None,
                    }));
                }
                PhaseKind::Terminal => {}
            }
        }
        for (code, rule) in &self.error_codes {
            if let Remedy::Handler { handler, .. } = &rule.remedy {
                handlers.push((format!("the remedy for {code:?}"), handler));
            }
        }
        handlers
    }

    /// The tree of a phase that has come to this: the one that it has begun with, where that is a flow's.
    #[must_use]
    pub fn tree_of(&self, phase: &str, root: Option<&NodeState>) -> Option<&Node> {
        match root.and_then(|root| root.tree.as_deref()) {
            Some(digest) if self.digest(phase) != Some(digest) => {
                self.earlier.get(digest).map(Arc::as_ref)
            }
            _ => self.tree(phase),
        }
    }

    /// The tree that is declared for the phase of this name.
    #[must_use]
    pub fn tree(&self, phase: &str) -> Option<&Node> {
        match &self.phase(phase)?.kind {
            PhaseKind::Active { tree, .. } => tree.as_ref(),
            PhaseKind::Stable(_) | PhaseKind::Terminal => None,
        }
    }
}

fn leaves<'m>(node: &'m Node, path: &str, handlers: &mut Vec<(String, &'m str)>) {
    if let NodeKind::Leaf { handler, .. } = &node.kind {
        handlers.push((format!("the node {path:?}"), handler));
    }
    for child in node.children() {
        leaves(child, &[path, "/", &child.name].concat(), handlers);
    }
}
