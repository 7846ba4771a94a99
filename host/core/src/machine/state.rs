//! What is kept of an object between events.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::tree::{Node, NodeKind};
use crate::document::Document;
use crate::handler::{Cause, HandlerError, HandlerState, Progress, Signal};
use crate::request::ObjectKey;
use crate::time::Timestamp;

/// Executions of flows that are remembered.
pub const MAX_HISTORY: usize = 10;
/// Signals that are kept for who will wait for them; the oldest goes first.
pub const MAX_SIGNALS: usize = 32;
/// Commands that are remembered, so that they act but once.
pub const MAX_COMMANDS: usize = 64;

/// How far an object has come. The default is that of one that was never seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct State {
    /// The phase; empty before the first.
    #[serde(skip)]
    pub phase: String,
    /// What each phase's tree has come to, by the phase's name. That of a phase that is over stays until it is entered again.
    #[serde(skip)]
    pub nodes: BTreeMap<String, NodeState>,
    /// The phase that was broken off or has failed, and can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// The phase that waits for [`unfinished`](Self::unfinished) to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
    /// Whether the phase has come to its end and nothing follows.
    #[serde(skip_serializing_if = "is_default")]
    pub is_halted: bool,
    /// Why the phase is being broken off, while requests are under way that cannot be called off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<String>,
    /// The phase that a handler has named, while requests are under way that cannot be called off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether the mark that cancels the object was seen.
    #[serde(skip_serializing_if = "is_default")]
    pub is_marked: bool,
    /// What the last leaf of the phase before passed on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<(String, Document)>,
    /// Signals that nobody has waited for yet, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
    /// The uids of commands that have acted, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Executions of flows, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Execution>,
    /// The check that is being made, by the token of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checking: Option<(u64, usize)>,
    /// What handlers have said of the object's status. The engine only keeps it, for whoever carries out its actions.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub status: Value,
    /// How often a phase has begun from its first step.
    pub visit: u64,
    /// The next token.
    pub token: u64,
}

/// What a node has come to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NodeState {
    /// Whether its work is over, whatever came of it.
    pub done: bool,
    /// When it was first entered; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Timestamp>,
    /// Whether it has failed.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: bool,
    /// Whether that is for good.
    #[serde(skip_serializing_if = "is_default")]
    pub fatal: bool,
    /// What it, or the nodes below, failed with.
    #[serde(
        rename = "error",
        with = "errors",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub errors: Vec<NodeError>,
    /// What the nodes below have come to, by name; those that were never entered are absent.
    #[serde(rename = "state", skip_serializing_if = "BTreeMap::is_empty")]
    pub children: BTreeMap<String, NodeState>,
    /// Whether a composite has failed by itself: it is empty, or its time is over.
    #[serde(skip_serializing_if = "is_default")]
    pub is_broken: bool,
    /// Of a root: the number of the visit that it began with.
    #[serde(skip_serializing_if = "is_default")]
    pub visit: u64,
    /// Of a root whose tree has a flow: the digest of the tree that it began with.
    #[serde(skip)]
    pub tree: Option<String>,
    /// Of a root: the digest of the module that it began with, where its entries are to stay on it.
    #[serde(skip)]
    pub module: Option<String>,
    /// Whether this execution of a flow is in the history.
    #[serde(skip_serializing_if = "is_default")]
    pub is_recorded: bool,
    /// Why a person had it skipped, and who.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Of a leaf.
    #[serde(skip)]
    pub leaf: LeafState,
}

/// What only a leaf has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LeafState {
    /// What it is up to.
    #[serde(skip_serializing_if = "is_default")]
    pub turn: Turn,
    /// The number of its entry, the next one where none is under way. Counts from 1; 0 before the first.
    #[serde(skip_serializing_if = "is_default")]
    pub entry: u32,
    /// How often it has failed in a row.
    #[serde(skip_serializing_if = "is_default")]
    pub failures: u32,
    /// The handler's own notes.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub data: Option<Document>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// For later steps of the flow.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub output: Option<Document>,
    /// What a person sees.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Document>,
    /// What the next leaf gets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<(String, Document)>,
    /// The remedy that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<RemedyState>,
    /// How often remedies have run, by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub remedies: BTreeMap<String, u32>,
    /// The signal that woke it, until an entry that was told of it has ended without a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// Objects that it has waited for, as it was last told of them: unchanged, they do not wake it again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// Whether nobody knows what became of its requests.
    #[serde(skip_serializing_if = "is_default")]
    pub is_unknown: bool,
}

/// An object that somebody was told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The object.
    pub object: ObjectKey,
    /// Its `resourceVersion`; empty: it was not there.
    pub version: String,
}

impl Seen {
    /// Puts it in the place of what is known of the object.
    pub fn replace_in(self, known: &mut Vec<Self>) {
        known.retain(|before| before.object != self.object);
        known.push(self);
    }
}

/// How far a remedy has come. It is entered in the leaf's place, with notes of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RemedyState {
    /// The code of the error that is being remedied.
    pub code: String,
    /// As that of a leaf; how often it was entered again.
    #[serde(skip_serializing_if = "is_default")]
    pub again: u32,
    /// Its own notes.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub data: Option<Document>,
}

/// What a leaf is up to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Turn {
    /// Nothing: it has not begun, is over, or was called off.
    #[default]
    Idle,
    /// It is to be entered.
    Ready(Cause),
    /// It was entered.
    Running {
        /// Names its end.
        token: u64,
        /// Whether requests were sent that may be sent but once.
        #[serde(default, skip_serializing_if = "is_default")]
        is_sent: bool,
    },
    /// It is to be entered then, or when the object changes.
    Due {
        /// When.
        at: Timestamp,
        /// Why.
        cause: Cause,
    },
    /// It is to be entered at the first of these; without any, when the object changes.
    Waiting {
        /// When.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Names of signals.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signals: Vec<String>,
        /// Objects that change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        objects: Vec<ObjectKey>,
    },
}

/// What a node failed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredError", into = "StoredError")]
pub struct NodeError {
    /// For a person.
    pub message: String,
    /// Looked up in the machine's error codes.
    pub code: Option<String>,
}

/// An execution of a flow that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Execution {
    /// The flow's name.
    pub flow: String,
    /// The phase that it was in.
    pub phase: String,
    /// When it began.
    pub started: Timestamp,
    /// When it was over.
    pub ended: Timestamp,
    /// Why it was broken off; `None`: it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What became of its steps, by path within the flow, in order.
    pub steps: Vec<StepRecord>,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepRecord {
    /// Its path within the flow.
    pub path: String,
    /// When it was first entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The number of its entries.
    #[serde(default, skip_serializing_if = "is_default")]
    pub entries: u32,
    /// What it failed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it was skipped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_skipped: bool,
    /// What it left for later steps.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub output: Option<Document>,
}

/// Keeps the newest.
pub(super) fn push_bounded<T>(items: &mut Vec<T>, item: T, most: usize) {
    if items.len() >= most {
        items.remove(0);
    }
    items.push(item);
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What is there is there, also when it is `null`.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Document>, D::Error> {
    Document::deserialize(from).map(Some)
}

/// An error without a code is a text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredError {
    Message(String),
    Coded {
        message: String,
        code: Option<String>,
    },
}

/// One error is stored by itself, several as a list.
mod errors {
    use super::{Deserialize, Deserializer, NodeError, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        One(NodeError),
        Many(Vec<NodeError>),
    }

    pub fn serialize<S: Serializer>(errors: &[NodeError], to: S) -> Result<S::Ok, S::Error> {
        match errors {
            [error] => error.serialize(to),
            errors => errors.serialize(to),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NodeError>, D::Error> {
        Ok(match Stored::deserialize(from)? {
            Stored::One(error) => vec![error],
            Stored::Many(errors) => errors,
        })
    }
}

impl From<StoredError> for NodeError {
    fn from(stored: StoredError) -> Self {
        match stored {
            StoredError::Message(message) => Self::new(message),
            StoredError::Coded { message, code } => Self { message, code },
        }
    }
}

impl From<NodeError> for StoredError {
    fn from(error: NodeError) -> Self {
        match error.code {
            None => Self::Message(error.message),
            code => Self::Coded {
                message: error.message,
                code,
            },
        }
    }
}

impl From<&HandlerError> for NodeError {
    fn from(error: &HandlerError) -> Self {
        Self {
            message: error.message.clone(),
            code: error.code.clone(),
        }
    }
}

impl NodeError {
    /// One without a code.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: None,
        }
    }
}

impl State {
    /// What the tree of the phase that is under way has come to.
    #[must_use]
    pub fn root(&self) -> Option<&NodeState> {
        self.nodes.get(&self.phase)
    }

    /// The node at this path: `InFlight/attach/bind-eips`.
    #[must_use]
    pub fn node(&self, path: &str) -> Option<&NodeState> {
        let mut names = path.split('/');
        let mut state = self.nodes.get(names.next()?)?;
        for name in names {
            state = state.children.get(name)?;
        }
        Some(state)
    }

    /// As [`node`](Self::node), among these, to change it.
    pub(super) fn node_mut<'a>(
        nodes: &'a mut BTreeMap<String, NodeState>,
        path: &str,
    ) -> Option<&'a mut NodeState> {
        let mut names = path.split('/');
        let mut state = nodes.get_mut(names.next()?)?;
        for name in names {
            state = state.children.get_mut(name)?;
        }
        Some(state)
    }
}

impl LeafState {
    /// The version of this object that it was last told of; empty: the object was not there.
    #[must_use]
    pub fn seen(&self, key: &ObjectKey) -> Option<&str> {
        let seen = self.seen.iter().find(|seen| seen.object == *key);
        seen.map(|seen| seen.version.as_str())
    }
}

impl NodeState {
    /// Whether it needs no turn any more: it is done, or has failed for good.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.done || self.fatal
    }

    /// Whether it is over and has not failed.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.done && !self.failed
    }

    /// Whether it, or a leaf below it, was entered and has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.leaf.turn, Turn::Running { .. })
            || self.children.values().any(Self::is_running)
    }

    /// Whether requests of it, or of a leaf below it, are under way that cannot be called off.
    pub(super) fn is_sent(&self) -> bool {
        matches!(self.leaf.turn, Turn::Running { is_sent: true, .. })
            || self.children.values().any(Self::is_sent)
    }

    /// What it failed with, in one line.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let messages: Vec<&str> = self
            .errors
            .iter()
            .map(|error| error.message.as_str())
            .collect();
        (!messages.is_empty()).then(|| messages.join("; "))
    }

    /// Visits it and every node below.
    pub fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        for child in self.children.values() {
            child.each(visit);
        }
    }

    /// As [`each`](Self::each), to change them.
    pub(super) fn each_mut(&mut self, change: &mut impl FnMut(&mut Self)) {
        change(self);
        for child in self.children.values_mut() {
            child.each_mut(change);
        }
    }

    /// Fails for good.
    pub(super) fn break_off(&mut self, error: NodeError, now: Timestamp) {
        self.done = true;
        self.failed = true;
        self.fatal = true;
        self.errors = vec![error];
        self.end_time = Some(now);
        self.leaf.turn = Turn::Idle;
    }

    /// Takes away what says that it has failed.
    pub(super) fn mend(&mut self) {
        self.failed = false;
        self.fatal = false;
        self.errors = Vec::new();
        self.leaf.failures = 0;
        self.leaf.signal = None;
    }

    /// Nobody knows what became of its requests.
    pub(super) fn lose(&mut self, now: Timestamp) {
        const LOST: &str = "nobody knows what became of its requests, which may be sent but once: see at the server, then skip the step or resume";
        self.leaf.is_unknown = true;
        self.break_off(NodeError::new(LOST), now);
    }

    /// What the handler is told of its earlier entries.
    pub(super) fn last(&self) -> HandlerState {
        HandlerState {
            start_time: self.start_time,
            end_time: self.end_time,
            done: self.done,
            failed: self.failed,
            fatal: self.fatal,
            error: self.errors.first().map(|error| HandlerError {
                message: error.message.clone(),
                fatal: self.fatal,
                retry_after: None,
                code: error.code.clone(),
            }),
            data: self.leaf.data.clone(),
            request_results: Vec::new(),
        }
    }

    /// Derives what the composites below, and it, have come to.
    pub(super) fn derive(&mut self, node: &Node, now: Timestamp) {
        if node.is_leaf() || self.start_time.is_none() {
            return;
        }
        let mut is_done = true;
        let mut fatal = false;
        let mut errors = Vec::new();
        for child in node.children() {
            let Some(state) = self.children.get_mut(&child.name) else {
                is_done = false;
                continue;
            };
            state.derive(child, now);
            is_done &= state.done;
            fatal |= state.fatal;
            if state.failed {
                errors.extend(state.errors.iter().cloned());
            }
        }
        if self.is_broken || self.skipped.is_some() {
            return;
        }
        self.done = is_done;
        self.failed = !errors.is_empty();
        self.fatal = fatal;
        self.errors = errors;
        self.end_time = match self.is_over() {
            true => self.end_time.or(Some(now)),
            false => None,
        };
    }

    /// When the first thing in it is due that nothing else brings about.
    pub(super) fn deadline(&self, node: &Node) -> Option<Timestamp> {
        if self.is_over() {
            return None;
        }
        let turn = match &self.leaf.turn {
            Turn::Due { at, .. } => Some(*at),
            Turn::Waiting { until, .. } => *until,
            Turn::Idle | Turn::Ready(_) | Turn::Running { .. } => None,
        };
        let timeout = node
            .timeout
            .and_then(|timeout| Some(self.start_time?.after(timeout)));
        let below = node.children().iter().filter_map(|child| {
            let state = self.children.get(&child.name)?;
            state.deadline(child)
        });
        below.chain(turn).chain(timeout).min()
    }

    /// Objects that its leaves wait for, each with the version that the leaf was last told of.
    pub(super) fn awaited<'s>(
        &'s self,
        node: &Node,
        objects: &mut Vec<(&'s ObjectKey, Option<&'s str>)>,
    ) {
        if self.is_over() {
            return;
        }
        if let Turn::Waiting { objects: keys, .. } = &self.leaf.turn
            && node.is_leaf()
        {
            objects.extend(keys.iter().map(|key| (key, self.leaf.seen(key))));
        }
        for child in node.children() {
            if let Some(state) = self.children.get(&child.name) {
                state.awaited(child, objects);
            }
        }
    }

    /// What a flow's steps have come to, by path within it.
    pub(super) fn records(&self, node: &Node, path: &str, records: &mut Vec<StepRecord>) {
        for child in node.children() {
            let path = match path {
                "" => child.name.clone(),
                above => format!("{above}/{}", child.name),
            };
            let state = self.children.get(&child.name);
            if let NodeKind::Leaf { .. } = child.kind {
                records.push(StepRecord {
                    path,
                    started: state.and_then(|state| state.start_time),
                    ended: state.and_then(|state| state.end_time),
                    entries: state.map_or(0, |state| state.leaf.entry),
                    error: state.and_then(Self::error),
                    is_skipped: state.is_some_and(|state| state.skipped.is_some()),
                    output: state.and_then(|state| state.leaf.output.clone()),
                });
            } else if let Some(state) = state {
                state.records(child, &path, records);
            }
        }
    }
}
