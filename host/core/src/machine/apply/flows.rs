//! What is recorded of flows, and how they go on.

use std::collections::BTreeMap;

use super::Engine;
use crate::machine::action::Notice;
use crate::machine::state::{Execution, MAX_HISTORY, NodeState, Turn, push_bounded};
use crate::machine::tree::{Node, NodeKind, RecoverFrom};

impl<'m> Engine<'m> {
    /// Puts flows into the history that are over, or, with a reason, are broken off.
    pub(super) fn record(&mut self, node: &Node, state: &mut NodeState, why: Option<&str>) {
        for child in node.children() {
            if let Some(state) = state.children.get_mut(&child.name) {
                self.record(child, state, why);
            }
        }
        let NodeKind::Flow(flow) = &node.kind else {
            return;
        };
        let Some(started) = state.start_time else {
            return;
        };
        if state.is_recorded || !(state.is_over() || why.is_some()) {
            return;
        }
        state.is_recorded = true;
        let error = match state.is_well() {
            true => None,
            false => Some(state.error().or(why.map(str::to_owned)).unwrap_or_default()),
        };
        self.notices.push(match &error {
            None => Notice::FlowCompleted {
                flow: flow.name.clone(),
            },
            Some(message) => Notice::FlowFailed {
                flow: flow.name.clone(),
                message: message.clone(),
            },
        });
        let mut steps = Vec::new();
        state.records(node, "", &mut steps);
        let execution = Execution {
            flow: flow.name.clone(),
            phase: self.state.phase.clone(),
            started,
            ended: self.now,
            error,
            steps,
        };
        push_bounded(&mut self.state.history, execution, MAX_HISTORY);
    }

    /// Lets a phase go on that was broken off or has failed.
    pub(super) fn reopen(&mut self, phase: &str, from: Option<RecoverFrom>) {
        let Some(tree) = self.tree(phase) else {
            return;
        };
        let mut root = self.state.nodes.remove(phase).unwrap_or_default();
        if from == Some(RecoverFrom::FirstStep) && tree.flow().is_none() {
            root = NodeState::default();
        }
        if self.reopen_node(tree, &mut root, from) || root.start_time.is_none() {
            self.state.visit = self.state.visit.wrapping_add(1);
            root.visit = self.state.visit;
        }
        self.state.nodes.insert(phase.to_owned(), root);
    }

    /// Whether something begins at its first step.
    fn reopen_node(
        &mut self,
        node: &Node,
        state: &mut NodeState,
        from: Option<RecoverFrom>,
    ) -> bool {
        let mut is_anew = false;
        if state.is_well() || state.start_time.is_none() {
            return is_anew;
        }
        if let NodeKind::Flow(flow) = &node.kind {
            let from = from.unwrap_or(flow.recover_from);
            self.notices.push(Notice::FlowResumed {
                flow: flow.name.clone(),
                from,
            });
            if from == RecoverFrom::FirstStep {
                state.children = BTreeMap::new();
                is_anew = true;
            }
        }
        state.mend();
        state.done = false;
        state.end_time = None;
        // The time that it may take begins anew.
        state.start_time = Some(self.now);
        state.is_broken = false;
        state.is_recorded = false;
        state.leaf.turn = Turn::Idle;
        state.leaf.remedy = None;
        state.leaf.remedies = BTreeMap::new();
        state.leaf.is_unknown = false;
        for child in node.children() {
            if let Some(state) = state.children.get_mut(&child.name) {
                is_anew |= self.reopen_node(child, state, from);
            }
        }
        is_anew
    }
}
