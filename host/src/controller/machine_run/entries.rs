//! Entries of handlers, and checks that handlers make: they begin, and what comes of them is told to the machine.

use std::time::Duration;

use configurator_core::handler::{Cause, Outcome};
use configurator_core::machine::action::{Action, Entry, Role};
use configurator_core::machine::event::{End, Event, LeafFailure, LeafOutput};
use configurator_core::machine::phase::{PhaseKind, When};
use configurator_core::machine::state::{NodeError, State};
use configurator_core::machine::tree::{Node, NodeKind};
use configurator_core::module::RunModule;
use configurator_core::run::{Member, Pause, Run, RunEnd, RunOutcome, RunStart, Step};
use futures::FutureExt as _;
use futures::future::abortable;

use super::set_claims::SetClaim;
use super::standing::{Parked, Rest, Standing};
use super::upkeep::UPKEEP;
use super::{LeafEnd, MachineRun, REMEDY, TurnEnd, beside};
use crate::controller::driver::{OfMachine, drive};

impl MachineRun {
    /// Notes which module the phase begins with, where its entries are to stay on it. On one that was rolled back they do not.
    pub(super) fn pin(&mut self) {
        let mode = self.start.configurator.machine.as_ref();
        let is_pinned = mode.is_some_and(|mode| mode.pins_modules);
        let State { phase, nodes, .. } = &mut self.standing.state;
        if let Some(root) = nodes.get_mut(phase)
            && is_pinned
            && root
                .module
                .as_deref()
                .is_none_or(|module| self.context.rollout.is_rolled_back(module))
        {
            let module = self.context.rollout.choose(&self.start.members);
            root.module = Some(module.digest().to_owned());
            self.own.earlier.keep(&module);
        }
    }

    /// The module that an entry is of: by default that which runs now, and where its phase is pinned to one, that.
    pub(super) async fn module_of_entry(&mut self) -> Result<RunModule, String> {
        self.pin();
        let Self {
            own,
            standing,
            leaves,
            ..
        } = self;
        let Standing { state, ended, .. } = &mut **standing;
        let mode = self.start.configurator.machine.as_ref();
        let root = state
            .root()
            .filter(|_| mode.is_some_and(|mode| mode.pins_modules));
        let Some(pinned) = root.and_then(|root| root.module.as_deref()) else {
            return Ok(self.context.rollout.choose(&self.start.members));
        };
        let got = beside(leaves, ended, own.earlier.get(pinned)).await;
        got.map_err(|why| {
            format!(
                "the phase has begun with the module {pinned} and stays on it (spec.machine.moduleUpgrade is Pinned), but it is not to be had: {why}. Put it back, or have the phase begin anew by a Command with verb Restart"
            )
        })
    }

    /// An entry has failed before its handler was called.
    pub(super) fn not_entered(&mut self, entry: &Entry, why: String, is_fatal: bool) {
        let failure = LeafFailure {
            error: NodeError::new(why),
            is_fatal,
            is_unknown: false,
            retry_after: None,
        };
        let (token, end) = (entry.token, End::Failed(failure));
        self.events.push_back(Event::Ended { token, end });
    }

    pub(super) fn enter(&mut self, mut entry: Entry, module: RunModule) -> Result<(), TurnEnd> {
        let start = self.leaf_start(module)?;
        let module = self.context.rollout.chosen(&start.module);
        if module.description().handler(&entry.handler).is_none() {
            // Its tree was declared for another module.
            let message = format!(
                "the module does not have the handler {:?} any more; it has: {}",
                entry.handler,
                module.handler_names()
            );
            self.not_entered(&entry, message, true);
            return Ok(());
        }
        let standing = &self.standing;
        let own_results = standing
            .results
            .get(&self.results_key(&entry.path, &entry.handler));
        let is_after = matches!(entry.cause, Cause::Again | Cause::Retry);
        if is_after && own_results.is_none() {
            // What the entry before asked for was known to a host that is no more, or to this one too long ago.
            entry.cause = Cause::Recovered;
        }
        if let Some((last, results)) = entry.last.as_mut().zip(own_results) {
            last.request_results.clone_from(results);
        }
        let phase = standing.state.phase.clone();
        let tree = self.tree(&phase);
        let before = tree.and_then(|tree| tree.before(&entry.path, Vec::new()));
        let results = match before {
            Some(before) if !before.is_empty() => {
                let results = before.iter().filter_map(|path| standing.results.get(path));
                results.flatten().cloned().collect()
            }
            _ => standing.from_before.clone(),
        };
        let now = self.context.clock.now();
        let (run, step) = Run::enter_leaf(start, &phase, entry, results, now);
        self.drive(run, step, LeafEnd::Entry);
        Ok(())
    }

    pub(super) fn check(&mut self, token: u64, index: usize) -> Result<(), TurnEnd> {
        let machine = self.machine.clone();
        let Some(phase) = machine.phase(&self.standing.state.phase) else {
            return Ok(());
        };
        let PhaseKind::Stable(checks) = &phase.kind else {
            return Ok(());
        };
        match checks.get(index).map(|check| &check.when) {
            None => {}
            Some(When::Expression(text)) => {
                let holds = match self.own.conditions.get(text) {
                    Some(Ok(condition)) => condition.holds(&self.standing.held.object),
                    Some(Err(error)) => Err(error.clone()),
                    None => Ok(false),
                };
                let is_so = holds.unwrap_or_else(|error| {
                    // A field that is not there yet is the usual reason.
                    tracing::debug!(object = %self.member.key, phase = phase.name, expression = text, %error, "a check has no answer");
                    false
                });
                self.events.push_back(Event::Checked { token, is_so });
            }
            Some(When::Handler(handler)) => {
                let visit = self.standing.state.visit;
                let entry = Entry::of_phase(Role::Check, token, phase, visit, handler);
                let start = self.leaf_start(self.context.rollout.choose(&self.start.members))?;
                let now = self.context.clock.now();
                let (run, step) = Run::enter_leaf(start, &phase.name, entry, Vec::new(), now);
                self.drive(run, step, move |outcome| LeafEnd::Check(token, outcome));
            }
        }
        Ok(())
    }

    pub(super) fn drive(
        &mut self,
        mut run: Run,
        step: Step,
        end: impl FnOnce(Box<RunOutcome<Run>>) -> LeafEnd + Send + 'static,
    ) {
        run.know_secrets(&self.standing.secrets);
        let token = run.token();
        let machine = Some(OfMachine {
            gate: self.gate.clone(),
            said: self.standing.said.clone(),
            set: self.set_claim(&run),
        });
        let driving = drive(
            self.context.clone(),
            run,
            step,
            self.permit.clone(),
            machine,
            self.place.enter(),
        );
        let (driving, abort) = abortable(driving);
        if let Some(token) = token {
            self.aborts.insert(token, abort);
        }
        let end = driving.map(|outcome| Some(end(Box::new(outcome.ok()?))));
        self.leaves.push(end.boxed());
    }

    /// Returns the claim of an entry to the set of the object. `None`: the entry is none of a node, or there are no sets.
    fn set_claim(&self, run: &Run) -> Option<SetClaim> {
        let has_sets = self.context.sets.is_some();
        let tree = self.tree(&self.standing.state.phase).filter(|_| has_sets)?;
        let path = run.phase();
        tree.at(path)?;
        Some(SetClaim {
            claims: self.standing.claims.clone(),
            path: path.to_owned(),
            beside: tree.beside(path),
        })
    }

    /// The end of an entry; nothing where it rests.
    pub(super) fn ended(&mut self, outcome: RunOutcome<Run>) -> Option<Event> {
        let (mut run, pause) = self.seen(outcome);
        let token = run.token()?;
        self.aborts.remove(&token);
        if let Some((why, after)) = pause.and_then(Rest::of) {
            self.park(run, why, after);
            self.renew_stale();
            return None;
        }
        let (end, results) = run.take_end()?;
        let key = self.results_key(run.phase(), run.handler());
        self.standing.results.insert(key, results);
        Some(Event::Ended { token, end })
    }

    /// Keeps an entry until it goes on.
    pub(super) fn park(&mut self, run: Run, why: Rest, after: Option<Duration>) {
        // The first phase is stored with the end of its first entry, which may be far away.
        if !self.standing.held.is_stored() {
            self.standing.pending.push_back(Action::Persist);
        }
        let due = after.map(|after| self.context.clock.now().after(after));
        self.standing.parked.push(Parked { run, why, due });
    }

    /// Has the handlers entered again whose entries wait for objects, and began before the object or the module changed. These objects may
    /// never become ready.
    pub(super) fn renew_stale(&mut self) {
        let mode = self.start.configurator.machine.as_ref();
        let is_pinned = mode.is_some_and(|mode| mode.pins_modules);
        let module = self.context.rollout.choose(&self.start.members);
        let stale_below = self.standing.stale_below;
        let is_stale = |parked: &mut Parked| {
            let waits = matches!(parked.why, Rest::Members | Rest::Unready(_));
            let is_old = parked.run.token().is_some_and(|token| token < stale_below);
            let is_of_other = !is_pinned && parked.run.module().digest() != module.digest();
            waits && !parked.run.has_sent_once() && (is_old || is_of_other)
        };
        for parked in self.standing.parked.extract_if(.., is_stale) {
            match parked.run.token() {
                // It is made again at the end of the turn.
                Some(UPKEEP) | None => {}
                Some(token) => self.events.push_back(Event::Renewed { token }),
            }
        }
    }

    /// Drops the entry with this token.
    pub(super) fn abandon(&mut self, token: u64) {
        if let Some(abort) = self.aborts.remove(&token) {
            abort.abort();
        }
        let is_it = |run: &Run| run.token() == Some(token);
        self.standing.parked.retain(|parked| !is_it(&parked.run));
    }

    pub(super) fn checked(
        &mut self,
        token: u64,
        outcome: RunOutcome<Run>,
    ) -> Result<Event, TurnEnd> {
        let (mut run, pause) = self.seen(outcome);
        match pause {
            Some(Pause::Park { after, failure, .. }) => {
                return Err(self.end_by_refusal(&run, &failure, after));
            }
            // The check begins again.
            Some(unready @ Pause::Unready { .. }) => {
                return Err(TurnEnd::Ended(RunEnd::Paused(unready)));
            }
            // It may return no set.
            Some(Pause::Resend { .. } | Pause::Members { .. }) | None => {}
        }
        let is_done = |output: &LeafOutput| output.outcome == Outcome::Done;
        let is_so = matches!(run.take_end(), Some((End::Output(output), _)) if is_done(&output));
        Ok(Event::Checked { token, is_so })
    }

    /// Takes note of what a run has done.
    pub(super) fn seen(&mut self, outcome: RunOutcome<Run>) -> (Run, Option<Pause>) {
        let RunOutcome {
            end,
            run,
            own_writes,
            has_written,
            ..
        } = outcome;
        self.is_fresh = false;
        self.standing.state.status = self.standing.said.status();
        self.written.has_written |= has_written;
        self.written.own_writes.extend(own_writes);
        for secret in run.secrets() {
            if !self.standing.secrets.contains(secret) {
                self.standing.secrets.push(secret.clone());
            }
        }
        let pause = match end {
            RunEnd::Paused(pause) => Some(pause),
            RunEnd::Finished(_) => None,
        };
        (run, pause)
    }

    /// Under which key the results of this handler are kept, which is that of the leaf or a remedy in its place.
    pub(super) fn results_key(&self, path: &str, handler: &str) -> String {
        match self.handler_of(path) == handler {
            true => path.to_owned(),
            false => [path, REMEDY].concat(),
        }
    }

    /// The tree of a phase: the one that it has begun with, where that is a flow's.
    pub(super) fn tree(&self, phase: &str) -> Option<&Node> {
        let root = self.standing.state.nodes.get(phase);
        self.machine.tree_of(phase, root)
    }

    pub(super) fn handler_of(&self, path: &str) -> &str {
        let tree = self.tree(&self.standing.state.phase);
        match tree.and_then(|tree| tree.at(path)).map(|node| &node.kind) {
            Some(NodeKind::Leaf { handler, .. }) => handler,
            _ => "",
        }
    }

    /// What the run of a leaf is made of. Each entry is of one module; the next may be of another.
    pub(super) fn leaf_start(&mut self, module: RunModule) -> Result<RunStart, TurnEnd> {
        let object = match &self.shown {
            Some(shown) => shown.clone(),
            None => {
                let shown = self
                    .own
                    .store
                    .shown(&self.standing.held, &self.start.configurator);
                let shown = shown.map_err(|fault| self.end_by(fault))?;
                self.shown = Some(shown.clone());
                shown
            }
        };
        let members = vec![Member {
            object,
            ..self.member.clone()
        }];
        Ok(RunStart {
            module,
            members,
            ..self.start.clone()
        })
    }

    /// What the last leaves of a phase asked for is told to the first of the next.
    pub(super) fn leave(&mut self, phase: &str) {
        self.end_upkeep();
        self.standing.claims.clear();
        let Some(last) = self.tree(phase).map(Node::last) else {
            return;
        };
        let standing = &mut self.standing;
        let results = last.iter().filter_map(|path| standing.results.get(path));
        standing.from_before = results.flatten().cloned().collect();
        standing.results.clear();
    }
}
