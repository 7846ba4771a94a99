//! The object's set while nothing is done in its phase: the upkeep of the phase repairs it; without one, what others do to members is told.

use std::sync::Arc;

use configurator_core::machine::action::{Entry, Role};
use configurator_core::plan::Failure;
use configurator_core::run::{Finish, Run, RunEnd, RunOutcome, RunStart};
use futures::FutureExt as _;
use futures::future::abortable;

use super::standing::{Parked, Rest};
use super::{LeafEnd, MachineRun, TurnEnd, end_by_failure};
use crate::answers::RestingAnswers;

/// The token of the upkeep. No entry of a machine has it.
pub(super) const UPKEEP: u64 = u64::MAX;

impl MachineRun {
    /// Begins the upkeep of the phase. Without one, looks at the set as far as the host has it in memory. Both are done once in a turn, and
    /// again after something has happened to the object. Returns whether anything has begun.
    pub(super) fn keep_up(&mut self) -> Result<bool, TurnEnd> {
        let is_left = self.is_kept_up || self.is_going || self.stop.is_cancelled();
        let context = self.context.clone();
        let Some(sets) = context.sets.as_deref().filter(|_| !is_left) else {
            return Ok(false);
        };
        self.is_kept_up = true;
        let has_set = |parked: &Parked| {
            parked.run.token() == Some(UPKEEP) || matches!(parked.why, Rest::Members)
        };
        let machine = self.machine.clone();
        let Some(phase) = machine.phase(&self.standing.state.phase) else {
            return Ok(false);
        };
        let is_nothing = phase.upkeep.is_none() && !sets.is_at_rest(&self.member.uid);
        if is_nothing || self.standing.parked.iter().any(has_set) {
            return Ok(false);
        }
        let start = self.leaf_start(context.rollout.choose(&self.start.members))?;
        match &phase.upkeep {
            Some(handler) => {
                let visit = self.standing.state.visit;
                let entry = Entry::of_phase(Role::Upkeep, UPKEEP, phase, visit, handler);
                let now = context.clock.now();
                let (run, step) = Run::enter_leaf(start, &phase.name, entry, Vec::new(), now);
                self.drive(run, step, LeafEnd::Upkeep);
            }
            None => self.inspect(start),
        }
        Ok(true)
    }

    /// Looks at the set, and tells what others have done to its members.
    fn inspect(&mut self, start: RunStart) {
        let context = self.context.clone();
        let permit = self.permit.clone();
        let (run, _) = Run::start(start, context.clock.now());
        let inspecting = async move {
            let answers = context.answers.resume(RestingAnswers::default());
            let redactor = Arc::default();
            let failure = match context.set_run(&run, &answers, permit.as_deref(), &redactor) {
                Some(set_run) => set_run.inspect().await.err(),
                None => None,
            };
            LeafEnd::Inspected(failure.map(Box::new))
        };
        let (inspecting, abort) = abortable(inspecting);
        self.aborts.insert(UPKEEP, abort);
        self.leaves.push(inspecting.map(Result::ok).boxed());
    }

    /// Takes in what came of the upkeep.
    pub(super) fn kept_up(&mut self, outcome: RunOutcome<Run>) -> Result<(), TurnEnd> {
        if self.aborts.remove(&UPKEEP).is_none() {
            // It was broken off after it had ended.
            return Ok(());
        }
        let failure = match &outcome.end {
            RunEnd::Finished(Finish::Failed { failure, .. }) => Some(failure.clone()),
            RunEnd::Finished(_) | RunEnd::Paused(_) => None,
        };
        let (run, pause) = self.seen(outcome);
        if let Some((why, after)) = pause.and_then(Rest::of) {
            self.park(run, why, after);
        }
        failure.map_or(Ok(()), |failure| Err(self.not_kept_up(failure)))
    }

    /// The turn ends with this failure of the upkeep.
    pub(super) fn not_kept_up(&self, failure: Failure) -> TurnEnd {
        TurnEnd::Ended(end_by_failure(&self.start, failure))
    }

    /// Breaks the upkeep off, so that the set is free for what comes next.
    pub(super) fn end_upkeep(&mut self) {
        self.is_kept_up = false;
        self.abandon(UPKEEP);
    }
}
