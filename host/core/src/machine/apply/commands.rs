//! What a person, or another controller, has told the machine to do.

use serde_json::json;

use super::Engine;
use crate::document::Document;
use crate::handler::Signal;
use crate::machine::action::Notice;
use crate::machine::command::{APPROVED, Command, Requester, Verb};
use crate::machine::phase::PhaseKind;
use crate::machine::state::{MAX_COMMANDS, NodeState, State, push_bounded};

const CANNOT_CALL_OFF: &str = "requests are under way that may be sent but once";

impl<'m> Engine<'m> {
    pub(super) fn command(&mut self, command: Command) {
        let Command {
            uid,
            requester,
            verb,
        } = command;
        if self.state.commands.contains(&uid) {
            return;
        }
        self.is_dirty = true;
        push_bounded(&mut self.state.commands, uid.clone(), MAX_COMMANDS);
        let at = self.notices.len();
        let notice = match self.carry_out(&requester, verb) {
            Ok(()) => Notice::CommandDone { uid },
            Err(why) => Notice::CommandRefused { uid, why },
        };
        self.notices.insert(at, notice);
    }

    fn carry_out(&mut self, requester: &Requester, verb: Verb) -> Result<(), String> {
        let phase = self.machine.phase(&self.state.phase);
        let kind = phase.map(|phase| &phase.kind);
        let is_active = matches!(kind, Some(PhaseKind::Active { .. }));
        let is_under_way = is_active && !self.state.is_halted;
        match verb {
            Verb::Approve if self.is_awaited(APPROVED) => {
                let Requester { name, is_verified } = requester;
                let data = Document::of(&json!({"by": name, "verified": is_verified}));
                self.signalled(Signal {
                    name: APPROVED.to_owned(),
                    data: Some(data.map_err(|error| error.to_string())?),
                });
                Ok(())
            }
            Verb::Approve => Err("nothing waits for an approval".to_owned()),
            Verb::Cancel if is_under_way => {
                self.state.interrupt = Some(format!("cancelled by {requester}"));
                self.settle();
                Ok(())
            }
            Verb::Cancel => Err("nothing is under way".to_owned()),
            Verb::Resume(_) if is_under_way => {
                Err(format!("the phase {:?} is under way", self.state.phase))
            }
            Verb::Resume(from) => {
                let unfinished = self.state.unfinished.clone();
                let unfinished = unfinished.ok_or("nothing was broken off")?;
                // Who has it go on may have declared better what failed, or mended the module.
                if self.machine.tree(&unfinished).is_some()
                    && let Some(root) = self.state.nodes.get_mut(&unfinished)
                {
                    root.tree = self.machine.digest(&unfinished).map(str::to_owned);
                    root.module = None;
                }
                self.reopen(&unfinished, from);
                self.state.unfinished = None;
                if self.go_to(&unfinished) {
                    self.settle();
                }
                Ok(())
            }
            Verb::Restart => self.restart(),
            Verb::Signal(signal) => {
                self.signalled(signal);
                Ok(())
            }
            Verb::Skip { node, reason } => {
                self.skip(&node, format!("{reason}; skipped by {requester}"))
            }
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        let phase = self.machine.phase(&self.state.phase);
        let anew = match phase.map(|phase| &phase.kind) {
            Some(PhaseKind::Active { .. }) => self.state.phase.clone(),
            Some(PhaseKind::Terminal) => self.machine.initial.clone(),
            None if self.state.phase.is_empty() => self.machine.initial.clone(),
            Some(PhaseKind::Stable(_)) | None => {
                let unfinished = self.state.unfinished.clone();
                unfinished.ok_or("nothing was broken off, and nothing is under way")?
            }
        };
        if self.state.root().is_some_and(NodeState::is_sent) {
            return Err(CANNOT_CALL_OFF.to_owned());
        }
        self.in_tree(|engine, _, root| engine.call_off(root, None));
        if self.begin_anew(&anew) {
            self.settle();
        }
        Ok(())
    }

    fn skip(&mut self, path: &str, why: String) -> Result<(), String> {
        let now = self.now;
        let phase = path.split('/').next().unwrap_or_default();
        let is_current = phase == self.state.phase;
        if !is_current && self.state.unfinished.as_deref() != Some(phase) {
            return Err(format!(
                "{path:?} is not in the phase that is under way, nor in one that was broken off"
            ));
        }
        let tree = self.tree(phase);
        if tree.and_then(|tree| tree.at(path)).is_none() {
            return Err(format!("there is no node {path:?}"));
        }
        let root = self.state.nodes.entry(phase.to_owned()).or_default();
        let state = path.split('/').skip(1).fold(root, |state, name| {
            // One below which something is skipped has begun.
            state.start_time.get_or_insert(now);
            state.children.entry(name.to_owned()).or_default()
        });
        if state.is_well() {
            return Err(format!("{path:?} is done"));
        }
        if state.is_sent() {
            return Err(CANNOT_CALL_OFF.to_owned());
        }
        let mut taken = std::mem::take(state);
        self.call_off(&mut taken, None);
        taken.mend();
        taken.done = true;
        taken.end_time = Some(now);
        taken.skipped = Some(why);
        self.step_ended(path, taken.start_time, None);
        if let Some(state) = State::node_mut(&mut self.state.nodes, path) {
            *state = taken;
        }
        if let Some((tree, root)) = tree.zip(self.state.nodes.get_mut(phase)) {
            root.derive(tree, now);
        }
        if is_current {
            self.settle();
        }
        Ok(())
    }
}
