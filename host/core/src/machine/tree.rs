//! What is done in a phase: a tree of handlers.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::digest::digest_of;
use crate::document::{Document, DocumentError};
use crate::handler::View;

/// A node of the tree. Siblings have different names, none of which is empty or has a `/` in it.
///
/// Its form as a document is how hosts store it: see [`stored`](Self::stored).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// A root is named after its phase; a leaf, unless the author says otherwise, after its handler.
    pub name: String,
    /// For a person.
    pub description: String,
    /// What a person sees of it.
    pub view: View,
    /// Laid over those of the node above.
    pub parameters: Option<Document>,
    /// How failures of leaves in it are retried.
    pub retry: NodeRetry,
    /// How long it may take in all, with waits and retries. It has then failed for good.
    pub timeout: Option<Duration>,
    /// What it is made of.
    pub kind: NodeKind,
}

/// What a node is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeKind {
    /// One handler.
    Leaf {
        /// Its name in the module.
        handler: String,
        /// Whether its requests are never sent a second time.
        once: bool,
    },
    /// One after another; halts at the first that is not done, or has failed.
    Serial(Vec<Node>),
    /// All at once; when one fails, those that have not finished are called off.
    Parallel(Vec<Node>),
    /// A tree that is declared under a name.
    #[serde(with = "shared")]
    Flow(Arc<Flow>),
}

/// A serial tree with a name, which several phases and Configurators can use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Where it goes on when it is resumed.
    pub recover_from: RecoverFrom,
    /// What happens when it is to begin while another has not finished.
    pub when_unfinished: WhenUnfinished,
    /// Its steps, one after another.
    pub steps: Vec<Node>,
}

/// Where a flow goes on when it is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RecoverFrom {
    /// At the step that failed.
    #[default]
    FailedStep,
    /// At the first, as if none had been done.
    FirstStep,
}

/// What becomes of an unfinished flow when another is to begin on the same object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WhenUnfinished {
    /// It is resumed, and the other begins when it is done.
    #[default]
    Finish,
    /// It is given up.
    Cancel,
    /// The other does not begin.
    Refuse,
}

/// How failures are retried that are not fatal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRetry {
    /// How many failures in a row are fatal. `None`: as the node above, and without one, none is.
    pub threshold: Option<u32>,
    /// The wait before the next attempt. `None`: as the node above, and without one, the machine's `requeue_after`.
    pub delay: Option<Duration>,
}

impl NodeRetry {
    /// What holds in a node with this, below one where `above` holds.
    #[must_use]
    pub fn below(self, above: Self) -> Self {
        Self {
            threshold: self.threshold.or(above.threshold),
            delay: self.delay.or(above.delay),
        }
    }
}

impl Node {
    /// A node with this name and nothing else.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: NodeKind) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            view: View::None,
            parameters: None,
            retry: NodeRetry::default(),
            timeout: None,
            kind,
        }
    }

    /// The tree as hosts store it, and the digest that it goes by: see [`digest_of`].
    ///
    /// # Errors
    /// When it is nested so deep that no document can hold it.
    pub fn stored(&self) -> Result<(String, Document), DocumentError> {
        let document = Document::of(self)?;
        Ok((digest_of([document.as_str().as_bytes()]), document))
    }

    /// The tree of this digest, from its stored form. `None`: somebody has changed that, or it is of another version of this program.
    #[must_use]
    pub fn restored(digest: &str, text: &str) -> Option<Self> {
        let is_it = digest_of([text.as_bytes()]) == digest;
        is_it.then(|| serde_json::from_str(text).ok()).flatten()
    }

    /// A leaf that is named after its handler.
    #[must_use]
    pub fn leaf(handler: impl Into<String>) -> Self {
        let handler = handler.into();
        Self::new(
            handler.clone(),
            NodeKind::Leaf {
                handler,
                once: false,
            },
        )
    }

    /// The nodes below it, in order; none for a leaf.
    #[must_use]
    pub fn children(&self) -> &[Self] {
        match &self.kind {
            NodeKind::Leaf { .. } => &[],
            NodeKind::Serial(children) | NodeKind::Parallel(children) => children,
            NodeKind::Flow(flow) => &flow.steps,
        }
    }

    /// Whether its children have their turns at once.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        matches!(self.kind, NodeKind::Parallel(_))
    }

    /// Whether it is a handler.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, NodeKind::Leaf { .. })
    }

    /// The node at this path, which begins with this node's own name.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('/').skip(1).try_fold(self, |node, name| {
            node.children().iter().find(|child| child.name == name)
        })
    }

    /// Paths of the leaves that hand on to the leaf at `path`, which is given from this node's own name on, where those that
    /// hand on to this node are `before`. `None`: there is no such leaf.
    #[must_use]
    pub fn before(&self, path: &str, before: Vec<String>) -> Option<Vec<String>> {
        self.before_in(&self.name, path, before)
    }

    fn before_in(&self, own: &str, path: &str, mut before: Vec<String>) -> Option<Vec<String>> {
        if self.is_leaf() {
            return (own == path).then_some(before);
        }
        for child in self.children() {
            let below = [own, "/", &child.name].concat();
            if is_within(path, &below) {
                return child.before_in(&below, path, before);
            }
            if !self.is_parallel() {
                before = child.last_in(&below);
            }
        }
        None
    }

    /// Paths of the leaves that may have their turns at the same time as the leaf at `path`.
    #[must_use]
    pub fn beside(&self, path: &str) -> Vec<String> {
        let mut beside = Vec::new();
        self.beside_in(&self.name, path, &mut beside);
        beside
    }

    fn beside_in(&self, own: &str, path: &str, beside: &mut Vec<String>) {
        for child in self.children() {
            let below = [own, "/", &child.name].concat();
            if is_within(path, &below) {
                child.beside_in(&below, path, beside);
            } else if self.is_parallel() {
                child.leaves_in(&below, beside);
            }
        }
    }

    fn leaves_in(&self, own: &str, leaves: &mut Vec<String>) {
        if self.is_leaf() {
            leaves.push(own.to_owned());
        }
        for child in self.children() {
            child.leaves_in(&[own, "/", &child.name].concat(), leaves);
        }
    }

    /// Paths of the leaves that hand on to what comes after this node.
    #[must_use]
    pub fn last(&self) -> Vec<String> {
        self.last_in(&self.name)
    }

    fn last_in(&self, own: &str) -> Vec<String> {
        let below = |child: &Self| child.last_in(&[own, "/", &child.name].concat());
        match &self.kind {
            NodeKind::Leaf { .. } => vec![own.to_owned()],
            NodeKind::Parallel(children) => children.iter().flat_map(below).collect(),
            NodeKind::Serial(_) | NodeKind::Flow(_) => {
                self.children().last().map(below).unwrap_or_default()
            }
        }
    }

    /// The first flow of the tree, in order.
    #[must_use]
    pub fn flow(&self) -> Option<&Arc<Flow>> {
        match &self.kind {
            NodeKind::Flow(flow) => Some(flow),
            _ => self.children().iter().find_map(Self::flow),
        }
    }
}

/// Whether a path is that of a node, or of one below it.
fn is_within(path: &str, node: &str) -> bool {
    let rest = path.strip_prefix(node);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A flow that several trees have.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Flow;

    pub(super) fn serialize<S: Serializer>(
        flow: &Arc<Flow>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Flow::serialize(flow, serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Flow>, D::Error> {
        Flow::deserialize(deserializer).map(Arc::new)
    }
}
