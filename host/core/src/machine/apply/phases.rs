//! From phase to phase.

use super::Engine;
use super::turns::{Carry, Place};
use crate::machine::action::{Action, Notice};
use crate::machine::phase::PhaseKind;
use crate::machine::state::{NodeError, NodeState, Turn};
use crate::machine::tree::{Node, WhenUnfinished};

/// Why a phase is left.
enum Leaving {
    Done,
    /// A handler has named the next one, or a check is so.
    Elsewhere,
    Failed(String),
}

impl<'m> Engine<'m> {
    /// Goes on as far as it goes without anything else happening.
    pub(super) fn settle(&mut self) {
        loop {
            let machine = self.machine;
            let Some(phase) = machine.phase(&self.state.phase) else {
                return;
            };
            let PhaseKind::Active {
                on_done, on_error, ..
            } = &phase.kind
            else {
                return;
            };
            let tree = self.tree(&phase.name);
            if self.state.is_halted {
                return;
            }
            let now = self.now;
            let mut root = self.state.nodes.remove(&phase.name).unwrap_or_default();
            match tree {
                Some(tree) => {
                    root.derive(tree, now);
                    self.record(tree, &mut root, None);
                }
                None if root.is_over() => {}
                None => {
                    root.start_time = Some(now);
                    root.break_off(NodeError::new("no handler"), now);
                }
            }
            let is_ending =
                self.state.next.is_some() || self.state.interrupt.is_some() || root.fatal;
            if is_ending {
                self.call_off(&mut root, None);
                if root.is_running() {
                    self.state.nodes.insert(phase.name.clone(), root);
                    return;
                }
            } else if !root.is_well() {
                let is_broken = tree.is_some_and(|tree| {
                    let place = Place::root(tree, root.visit);
                    let mut carry = Carry::of(&self.state.args);
                    self.advance(tree, &mut root, &place, &mut carry)
                });
                self.state.nodes.insert(phase.name.clone(), root);
                if is_broken {
                    continue;
                }
                return;
            }
            let (to, leaving) = match (self.state.next.take(), self.state.interrupt.take()) {
                (Some(next), _) => (Some(next), Leaving::Elsewhere),
                (None, Some(why)) => (on_error.clone(), Leaving::Failed(why)),
                (None, None) if root.fatal => (
                    on_error.clone(),
                    Leaving::Failed(root.error().unwrap_or_default()),
                ),
                (None, None) => (on_done.clone(), Leaving::Done),
            };
            self.state.nodes.insert(phase.name.clone(), root);
            if !self.leave(to, &leaving) {
                return;
            }
        }
    }

    /// Whether there is another phase to go on in.
    fn leave(&mut self, to: Option<String>, leaving: &Leaving) -> bool {
        self.is_dirty = true;
        let from = self.state.phase.clone();
        let is_done = matches!(leaving, Leaving::Done);
        let to = match self.state.then.take() {
            Some(then) if is_done => Some(then),
            then => {
                self.state.then = then;
                to
            }
        };
        let why = match leaving {
            Leaving::Done => None,
            Leaving::Elsewhere => Some("another phase was named".to_owned()),
            Leaving::Failed(why) => Some(why.clone()),
        };
        if let Some(why) = why {
            self.in_tree(|engine, tree, root| engine.record(tree, root, Some(&why)));
        }
        if let Leaving::Failed(_) = leaving {
            if let Some(other) = self.state.unfinished.replace(from.clone())
                && other != from
            {
                self.forget(&other);
            }
        } else if let Some(tree) = self.tree(&from) {
            if let Some(root) = self.state.nodes.get(&from) {
                let mut carry = Carry::of(&self.state.args);
                carry.add(tree, root, "");
                self.state.args = carry.args;
            }
            if self.state.unfinished.as_ref() == Some(&from) {
                self.state.unfinished = None;
            }
            self.forget(&from);
        }
        let Some(to) = to else {
            self.state.is_halted = true;
            return false;
        };
        self.enter(&to)
    }

    /// Begins a phase, unless an unfinished flow comes first. Whether there is something to go on with.
    pub(super) fn enter(&mut self, to: &str) -> bool {
        let flow = self.machine.tree(to).and_then(Node::flow);
        let unfinished = self
            .state
            .unfinished
            .clone()
            .filter(|phase| phase != to && self.tree(phase).and_then(Node::flow).is_some());
        if let Some((flow, unfinished)) = flow.zip(unfinished) {
            match flow.when_unfinished {
                WhenUnfinished::Finish => {
                    self.state.then = Some(to.to_owned());
                    self.reopen(&unfinished, None);
                    return self.go_to(&unfinished);
                }
                WhenUnfinished::Cancel => {
                    self.forget(&unfinished);
                    self.state.unfinished = None;
                }
                WhenUnfinished::Refuse => {
                    let flow = flow.name.clone();
                    self.notices.push(Notice::FlowRefused { flow, unfinished });
                    let is_active = self.tree(&self.state.phase).is_some();
                    self.state.is_halted = is_active;
                    return false;
                }
            }
        }
        self.begin_anew(to)
    }

    pub(super) fn begin_anew(&mut self, to: &str) -> bool {
        self.state.visit = self.state.visit.wrapping_add(1);
        let root = NodeState {
            visit: self.state.visit,
            tree: self.machine.digest(to).map(str::to_owned),
            ..NodeState::default()
        };
        self.state.nodes.remove(to);
        if self.machine.tree(to).is_some() {
            self.state.nodes.insert(to.to_owned(), root);
        }
        if self.state.unfinished.as_deref() == Some(to) {
            self.state.unfinished = None;
        }
        self.go_to(to)
    }

    /// Whether there is something to go on with.
    pub(super) fn go_to(&mut self, to: &str) -> bool {
        let from = std::mem::replace(&mut self.state.phase, to.to_owned());
        // A first phase with work follows from nothing, and is stored with the end of its first step.
        self.is_dirty |= !from.is_empty() || self.tree(to).is_none();
        self.state.is_halted = false;
        self.state.interrupt = None;
        self.state.next = None;
        self.state.checking = None;
        self.moves += 1;
        if self.moves > self.machine.phases.len() + 1 {
            let phase = to.to_owned();
            self.notices.push(Notice::PhasesInCircle { phase });
            self.state.is_halted = true;
            return false;
        }
        let to = to.to_owned();
        self.notices.push(Notice::PhaseEntered { from, to });
        match self
            .machine
            .phase(&self.state.phase)
            .map(|phase| &phase.kind)
        {
            Some(PhaseKind::Active { .. }) => true,
            Some(PhaseKind::Stable(_)) => {
                self.check(0);
                false
            }
            Some(PhaseKind::Terminal) => {
                if let Some(unfinished) = self.state.unfinished.take() {
                    self.forget(&unfinished);
                }
                self.state.then = None;
                self.state.signals.clear();
                false
            }
            None => {
                let phase = self.state.phase.clone();
                self.notices.push(Notice::UnknownPhase { phase });
                false
            }
        }
    }

    /// Keeps of a phase that is over what a person may want to see.
    pub(super) fn forget(&mut self, phase: &str) {
        if let Some(root) = self.state.nodes.get_mut(phase) {
            root.each_mut(&mut |node| {
                node.leaf.data = None;
                node.leaf.output = None;
                node.leaf.args = Vec::new();
                node.leaf.turn = Turn::Idle;
                node.leaf.remedy = None;
            });
        }
    }

    pub(super) fn check(&mut self, index: usize) {
        let phase = self.machine.phase(&self.state.phase);
        let Some(PhaseKind::Stable(checks)) = phase.map(|phase| &phase.kind) else {
            return;
        };
        self.state.checking = None;
        if index < checks.len() {
            let token = self.next_token();
            self.state.checking = Some((token, index));
            self.begun.push(Action::Check { token, index });
        }
    }

    pub(super) fn checked(&mut self, token: u64, is_so: bool) {
        let Some((_, index)) = self.state.checking.filter(|(of, _)| *of == token) else {
            return;
        };
        if !is_so {
            return self.check(index + 1);
        }
        let phase = self.machine.phase(&self.state.phase);
        let Some(PhaseKind::Stable(checks)) = phase.map(|phase| &phase.kind) else {
            return;
        };
        self.state.checking = None;
        if let Some(check) = checks.get(index)
            && self.enter(&check.to)
        {
            self.settle();
        }
    }
}
