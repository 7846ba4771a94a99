//! Who has a turn, and with what; and who has none any more.

use super::Engine;
use crate::document::Document;
use crate::handler::Cause;
use crate::machine::action::{Action, Entry, Notice, Role};
use crate::machine::phase::Remedy;
use crate::machine::state::{NodeError, NodeState, Turn};
use crate::machine::tree::{Node, NodeKind, NodeRetry};
use crate::time::Timestamp;

/// Where a node is.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) visit: u64,
    pub(super) retry: NodeRetry,
    parameters: Vec<Document>,
    deadline: Option<Timestamp>,
    /// The path within the flow, or within the tree where there is none.
    within: String,
}

/// What leaves that are done hand on.
#[derive(Clone)]
pub(super) struct Carry {
    pub(super) outputs: Vec<(String, Document)>,
    pub(super) args: Vec<(String, Document)>,
}

impl Place {
    /// Where the root of a tree is, in this visit to its phase.
    pub(super) fn root(tree: &Node, visit: u64) -> Self {
        Self {
            path: tree.name.clone(),
            within: tree.name.clone(),
            visit,
            ..Self::default()
        }
    }

    pub(super) fn below(&self, node: &Node, state: &NodeState) -> Self {
        let timeout = node
            .timeout
            .and_then(|timeout| Some(state.start_time?.after(timeout)));
        Self {
            path: self.path.clone(),
            visit: self.visit,
            retry: node.retry.below(self.retry),
            parameters: self
                .parameters
                .iter()
                .chain(&node.parameters)
                .cloned()
                .collect(),
            deadline: self.deadline.into_iter().chain(timeout).min(),
            within: match node.kind {
                NodeKind::Flow(_) => String::new(),
                _ => self.within.clone(),
            },
        }
    }

    pub(super) fn child(&self, child: &Node) -> Self {
        Self {
            path: joined(&self.path, &child.name),
            within: joined(&self.within, &child.name),
            ..self.clone()
        }
    }
}

impl Carry {
    /// What the first leaf of a tree gets.
    pub(super) fn of(args: &[(String, Document)]) -> Self {
        Self {
            outputs: Vec::new(),
            args: args.to_vec(),
        }
    }

    /// What a node that is over hands on. Of arguments that have the same name, the last counts.
    pub(super) fn add(&mut self, node: &Node, state: &NodeState, within: &str) {
        if node.is_leaf() {
            if let Some(output) = &state.leaf.output {
                self.outputs.push((within.to_owned(), output.clone()));
            }
            // One that was skipped passes on what it would have got.
            if state.skipped.is_none() {
                self.args.clone_from(&state.leaf.args);
            }
            return;
        }
        let before = self.args.clone();
        let mut together: Vec<(String, Document)> = Vec::new();
        for child in node.children() {
            let Some(state) = state.children.get(&child.name) else {
                continue;
            };
            self.add(child, state, &joined(within, &child.name));
            if node.is_parallel() {
                let args = std::mem::replace(&mut self.args, before.clone());
                together.retain(|(name, _)| !args.iter().any(|(other, _)| other == name));
                together.extend(args);
            }
        }
        if node.is_parallel() {
            self.args = together;
        }
    }
}

impl<'m> Engine<'m> {
    /// Calls off what has not finished, for good or until then. What was sent and may be sent but once goes on.
    pub(super) fn call_off(&mut self, state: &mut NodeState, until: Option<Timestamp>) {
        let later = |cause| until.map_or(Turn::Idle, |at| Turn::Due { at, cause });
        state.leaf.turn = match std::mem::take(&mut state.leaf.turn) {
            Turn::Idle => Turn::Idle,
            Turn::Ready(cause) | Turn::Due { cause, .. } => later(cause),
            Turn::Waiting { .. } => later(Cause::Retry),
            running @ Turn::Running { is_sent: true, .. } => running,
            Turn::Running { token, .. } => {
                self.abandon_token(token);
                later(Cause::Retry)
            }
        };
        for child in state.children.values_mut() {
            self.call_off(child, until);
        }
    }

    pub(super) fn abandon(&mut self, leaf: &NodeState) {
        if let Turn::Running { token, .. } = leaf.leaf.turn {
            self.abandon_token(token);
        }
    }

    fn abandon_token(&mut self, token: u64) {
        let is_it =
            |action: &Action| matches!(action, Action::Enter(entry) if entry.token == token);
        let before = self.begun.len();
        self.begun.retain(|action| !is_it(action));
        if self.begun.len() == before {
            self.abandoned.push(token);
        }
    }

    pub(super) fn next_token(&mut self) -> u64 {
        let token = self.state.token;
        self.state.token = token.wrapping_add(1);
        token
    }

    /// Gives every leaf its turn that may have one. Whether a composite turned out to be broken.
    pub(super) fn advance(
        &mut self,
        node: &'m Node,
        state: &mut NodeState,
        place: &Place,
        carry: &mut Carry,
    ) -> bool {
        if state.is_over() {
            carry.add(node, state, &place.within);
            return false;
        }
        if let NodeKind::Leaf { handler, once } = &node.kind {
            let was_entered = state.start_time.is_some();
            let cause = match &state.leaf.turn {
                Turn::Idle if was_entered => Cause::Retry,
                Turn::Idle => Cause::Entered,
                Turn::Ready(cause) => cause.clone(),
                Turn::Running { .. } | Turn::Due { .. } | Turn::Waiting { .. } => return false,
            };
            self.enter_leaf(node, handler, *once, state, place, cause, carry);
            return false;
        }
        if node.children().is_empty() {
            state.start_time.get_or_insert(self.now);
            state.is_broken = true;
            state.break_off(NodeError::new("invalid composite handler"), self.now);
            self.is_dirty = true;
            return true;
        }
        if state.start_time.is_none() {
            state.start_time = Some(self.now);
            if let NodeKind::Flow(flow) = &node.kind {
                let flow = flow.name.clone();
                self.notices.push(Notice::FlowStarted { flow });
            }
        }
        let below = place.below(node, state);
        let mut inner = Carry {
            outputs: match node.kind {
                NodeKind::Flow(_) => Vec::new(),
                _ => carry.outputs.clone(),
            },
            args: carry.args.clone(),
        };
        for child in node.children() {
            let child_state = state.children.entry(child.name.clone()).or_default();
            let place = below.child(child);
            let is_broken = match node.is_parallel() {
                true => self.advance(child, child_state, &place, &mut inner.clone()),
                false => self.advance(child, child_state, &place, &mut inner),
            };
            if is_broken {
                return true;
            }
            if !node.is_parallel() && !child_state.is_well() {
                break;
            }
        }
        false
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what the parts of an entry come from, each once"
    )]
    fn enter_leaf(
        &mut self,
        node: &Node,
        handler: &str,
        once: bool,
        state: &mut NodeState,
        place: &Place,
        cause: Cause,
        carry: &Carry,
    ) {
        let was_entered = state.start_time.is_some();
        let mut last = was_entered.then(|| state.last());
        if !was_entered {
            state.start_time = Some(self.now);
            let path = place.path.clone();
            self.notices.push(Notice::StepStarted { path });
        }
        let remedy = state.leaf.remedy.as_ref().and_then(|remedy| {
            match &self.machine.error_codes.get(&remedy.code)?.remedy {
                Remedy::Handler { handler, .. } => Some(handler.as_str()),
                Remedy::Manual => None,
            }
        });
        if remedy.is_none() {
            state.leaf.remedy = None;
        }
        let mut number = state.leaf.entry.max(1);
        if let Some(remedy) = &state.leaf.remedy {
            number = remedy.again.saturating_add(1);
            if let Some(last) = &mut last {
                last.data.clone_from(&remedy.data);
            }
        }
        let cause = match &state.leaf.signal {
            Some(signal) if remedy.is_none() => Cause::Signal(signal.clone()),
            _ => cause,
        };
        let token = self.next_token();
        state.leaf.entry = state.leaf.entry.max(1);
        state.leaf.turn = Turn::Running {
            token,
            is_sent: false,
        };
        let below = place.below(node, state);
        let entry = Entry {
            token,
            role: Role::Node,
            path: below.path,
            visit: below.visit,
            handler: remedy.unwrap_or(handler).to_owned(),
            entry: number,
            attempt: state.leaf.failures.saturating_add(1),
            cause,
            last,
            outputs: carry.outputs.clone(),
            args: carry.args.clone(),
            parameters: below.parameters,
            once: once && remedy.is_none(),
            deadline: below.deadline,
        };
        self.begun.push(Action::Enter(Box::new(entry)));
    }
}

pub(super) fn joined(above: &str, name: &str) -> String {
    match above {
        "" => name.to_owned(),
        above => [above, "/", name].concat(),
    }
}
