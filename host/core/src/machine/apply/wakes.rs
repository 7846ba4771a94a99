//! What happens without a handler having ended: the object is seen, time passes, somebody comes back.

use super::Engine;
use super::turns::joined;
use crate::handler::{Cause, Signal};
use crate::machine::action::Notice;
use crate::machine::phase::PhaseKind;
use crate::machine::state::{MAX_SIGNALS, NodeError, NodeState, Seen, State, Turn, push_bounded};
use crate::machine::tree::Node;

impl<'m> Engine<'m> {
    pub(super) fn observed(&mut self, is_changed: bool, is_cancelled: bool) {
        let is_newly_marked = is_cancelled && !self.state.is_marked;
        if is_cancelled != self.state.is_marked {
            self.state.is_marked = is_cancelled;
            self.is_dirty = true;
        }
        if self.state.phase.is_empty() {
            self.begin_anew(&self.machine.initial);
        }
        let Some(phase) = self.machine.phase(&self.state.phase) else {
            let phase = self.state.phase.clone();
            return self.notices.push(Notice::UnknownPhase { phase });
        };
        match &phase.kind {
            PhaseKind::Terminal => {}
            PhaseKind::Stable(_) => self.check(0),
            PhaseKind::Active { .. } => {
                if is_newly_marked && !self.state.is_halted {
                    let why = "the object is marked as cancelled".to_owned();
                    self.state.interrupt.get_or_insert(why);
                }
                if is_changed {
                    self.in_tree(|_, _, root| root.each_mut(&mut hurry));
                }
                self.settle();
            }
        }
    }

    pub(super) fn recovered(&mut self) {
        let phase = self.state.phase.clone();
        if let Some(mut root) = self.state.nodes.remove(&phase) {
            self.recover(&mut root, &phase);
            self.state.nodes.insert(phase, root);
        }
        if self.state.checking.take().is_some() {
            return self.check(0);
        }
        self.settle();
    }

    /// Also of nodes that the tree does not have any more.
    fn recover(&mut self, state: &mut NodeState, path: &str) {
        if let Turn::Running { is_sent, .. } = state.leaf.turn {
            state.leaf.turn = Turn::Ready(Cause::Recovered);
            if is_sent {
                state.lose(self.now);
                self.is_dirty = true;
                let path = path.to_owned();
                self.notices.push(Notice::OutcomeUnknown { path });
            }
        }
        for (name, child) in &mut state.children {
            self.recover(child, &joined(path, name));
        }
    }

    pub(super) fn sending(&mut self, token: u64) {
        let Some(running) = self.running(token) else {
            return;
        };
        let path = running.path;
        if let Some(leaf) = State::node_mut(&mut self.state.nodes, &path)
            && let Turn::Running { is_sent, .. } = &mut leaf.leaf.turn
        {
            *is_sent = true;
            self.is_dirty = true;
        }
    }

    pub(super) fn renewed(&mut self, token: u64) {
        let Some(running) = self.running(token) else {
            return;
        };
        if let Some(leaf) = State::node_mut(&mut self.state.nodes, &running.path)
            && let Turn::Running { is_sent: false, .. } = leaf.leaf.turn
        {
            leaf.leaf.turn = Turn::Ready(Cause::Recovered);
        }
        self.settle();
    }

    pub(super) fn tick(&mut self) {
        if self.state.is_halted {
            return;
        }
        self.in_tree(|engine, tree, root| engine.pass_time(tree, root, &tree.name));
        self.settle();
    }

    /// Ends what has lasted too long, and readies what is due.
    fn pass_time(&mut self, node: &Node, state: &mut NodeState, path: &str) {
        if state.is_over() {
            return;
        }
        if let Some((start, timeout)) = state.start_time.zip(node.timeout)
            && start.after(timeout) <= self.now
        {
            let error = NodeError::new(format!("{:?} took longer than {timeout:?}", node.name));
            self.is_dirty = true;
            if matches!(state.leaf.turn, Turn::Running { is_sent: true, .. }) {
                // Somebody else will have to find out.
                self.abandon(state);
                state.lose(self.now);
                let path = path.to_owned();
                return self.notices.push(Notice::OutcomeUnknown { path });
            }
            self.call_off(state, None);
            state.is_broken = !node.is_leaf();
            state.break_off(error, self.now);
            if node.is_leaf() {
                self.step_ended(path, state.start_time, state.error());
            }
            return;
        }
        match &state.leaf.turn {
            Turn::Due { at, cause } if *at <= self.now => {
                state.leaf.turn = Turn::Ready(cause.clone());
            }
            Turn::Waiting {
                until: Some(until), ..
            } if *until <= self.now => state.leaf.turn = Turn::Ready(Cause::Timer),
            _ => {}
        }
        for child in node.children() {
            if let Some(state) = state.children.get_mut(&child.name) {
                self.pass_time(child, state, &joined(path, &child.name));
            }
        }
    }

    pub(super) fn changed(&mut self, seen: &Seen) {
        let key = &seen.object;
        self.in_tree(|_, _, root| {
            root.each_mut(&mut |node| {
                if let Turn::Waiting { objects, .. } = &node.leaf.turn
                    && objects.contains(key)
                    && node.leaf.seen(key) != Some(&seen.version)
                {
                    seen.clone().replace_in(&mut node.leaf.seen);
                    node.leaf.turn = Turn::Ready(Cause::Changed(key.clone()));
                }
            });
        });
        self.settle();
        // One whose turn has not come yet has been told all the same.
        if let Some(root) = self.state.root() {
            let is_dirty = &mut self.is_dirty;
            root.each(&mut |node| {
                *is_dirty |= matches!(node.leaf.turn, Turn::Ready(Cause::Changed(_)));
            });
        }
    }

    /// Whether a leaf of the current phase waits for this signal.
    pub(super) fn is_awaited(&self, name: &str) -> bool {
        let mut is_awaited = false;
        if let Some(root) = self.state.root() {
            root.each(&mut |node| {
                is_awaited |= matches!(&node.leaf.turn, Turn::Waiting { signals, .. } if signals.iter().any(|signal| signal == name));
            });
        }
        is_awaited
    }

    pub(super) fn signalled(&mut self, signal: Signal) {
        let mut is_heard = false;
        self.in_tree(|_, _, root| {
            root.each_mut(&mut |node| {
                if let Turn::Waiting { signals, .. } = &node.leaf.turn
                    && signals.contains(&signal.name)
                {
                    node.leaf.turn = Turn::Ready(Cause::Again);
                    node.leaf.signal = Some(signal.clone());
                    is_heard = true;
                }
            });
        });
        self.is_dirty = true;
        if !is_heard {
            push_bounded(&mut self.state.signals, signal, MAX_SIGNALS);
        }
        self.settle();
    }
}

/// A change of the object ends every backoff, and a wait for nothing else.
fn hurry(node: &mut NodeState) {
    match &node.leaf.turn {
        Turn::Due { cause, .. } => node.leaf.turn = Turn::Ready(cause.clone()),
        Turn::Waiting {
            until: None,
            signals,
            objects,
        } if signals.is_empty() && objects.is_empty() => {
            node.leaf.turn = Turn::Ready(Cause::Again);
        }
        _ => {}
    }
}
