//! What follows from an event.

mod commands;
mod ends;
mod flows;
mod phases;
mod turns;
mod wakes;

use super::action::{Action, Notice};
use super::event::Event;
use super::phase::Machine;
use super::state::{NodeState, State};
use super::tree::Node;
use crate::request::ObjectKey;
use crate::time::Timestamp;

/// What an event makes of a state, and what is to be done about it.
///
/// # Guarantees
/// - A leaf that is done is not entered again, unless its phase or flow begins anew.
/// - At most one entry of a leaf is under way, and only its own end counts.
/// - Where what is done depends on it, the new state is stored first: see [`Action::Persist`].
/// - Time and work are bounded by the size of the tree and the number of phases.
#[must_use]
pub fn apply(
    machine: &Machine,
    state: State,
    event: Event,
    now: Timestamp,
) -> (State, Vec<Action>) {
    let mut engine = Engine {
        machine,
        state,
        now,
        abandoned: Vec::new(),
        notices: Vec::new(),
        begun: Vec::new(),
        is_dirty: false,
        moves: 0,
    };
    engine.on(event);
    engine.into_parts()
}

/// When [`Event::Tick`] is next worth telling; `None`: something else happens first.
#[must_use]
pub fn deadline(machine: &Machine, state: &State) -> Option<Timestamp> {
    if state.is_halted {
        return None;
    }
    let root = state.root()?;
    root.deadline(machine.tree_of(&state.phase, Some(root))?)
}

/// Objects that leaves wait for, each with the version that the leaf was last told of. To be told of another wakes the leaf.
#[must_use]
pub fn awaited<'s>(machine: &Machine, state: &'s State) -> Vec<(&'s ObjectKey, Option<&'s str>)> {
    let mut objects = Vec::new();
    if !state.is_halted
        && let Some(root) = state.root()
        && let Some(tree) = machine.tree_of(&state.phase, Some(root))
    {
        root.awaited(tree, &mut objects);
    }
    objects
}

struct Engine<'m> {
    machine: &'m Machine,
    state: State,
    now: Timestamp,
    abandoned: Vec<u64>,
    notices: Vec<Notice>,
    begun: Vec<Action>,
    is_dirty: bool,
    moves: usize,
}

impl<'m> Engine<'m> {
    fn into_parts(self) -> (State, Vec<Action>) {
        let abandoned = self
            .abandoned
            .into_iter()
            .map(|token| Action::Abandon { token });
        let persist = self.is_dirty.then_some(Action::Persist);
        let notices = self.notices.into_iter().map(Action::Tell);
        let actions = abandoned.chain(persist).chain(notices).chain(self.begun);
        (self.state, actions.collect())
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Observed {
                is_changed,
                is_cancelled,
            } => self.observed(is_changed, is_cancelled),
            Event::Deleted => {
                self.state.checking = None;
                self.in_tree(|engine, _, root| engine.call_off(root, None));
            }
            Event::Recovered => self.recovered(),
            Event::Sending { token } => self.sending(token),
            Event::Ended { token, end } => self.ended(token, end),
            Event::Renewed { token } => self.renewed(token),
            Event::Checked { token, is_so } => self.checked(token, is_so),
            Event::Tick => self.tick(),
            Event::Changed(seen) => self.changed(&seen),
            Event::Command(command) => self.command(command),
        }
    }

    /// The tree of a phase: the one that it has begun with, where that is a flow's.
    fn tree(&self, phase: &str) -> Option<&'m Node> {
        self.machine.tree_of(phase, self.state.nodes.get(phase))
    }

    /// Does something with the tree of the phase, and what it has come to.
    fn in_tree(&mut self, act: impl FnOnce(&mut Self, &'m Node, &mut NodeState)) {
        let Some(tree) = self.tree(&self.state.phase) else {
            return;
        };
        let phase = self.state.phase.clone();
        let mut root = self.state.nodes.remove(&phase).unwrap_or_default();
        act(self, tree, &mut root);
        self.state.nodes.insert(phase, root);
    }
}
