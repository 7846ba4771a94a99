//! A run whose requests wait for objects to become ready.

use std::sync::Arc;
use std::time::Duration;

use super::{Pause, Run, Step};
use crate::backoff::doubled;
use crate::plan::{Plan, PlannedAction};
use crate::result::RequestResult;

/// How long after requests were sent their objects are read for the first time. The wait doubles each time that nothing has become ready.
const FIRST_READ: Duration = Duration::from_secs(1);
/// The longest wait between two reads of an object that requests wait for.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The rest of a plan whose requests cannot all be sent yet.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadyPlan {
    /// The plan: steps that are over have kept their results.
    pub plan: Plan,
    /// The first request that others wait for, and why its object is not ready.
    pub reason: String,
    /// Whether anything was sent or has become ready since the last wait.
    pub has_progressed: bool,
    /// Whether objects were deleted that are most likely gone by now.
    pub reads_at_once: bool,
}

/// How far a run has come with a plan that waits.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// How often in a row nothing has become ready.
    vain: u32,
}

impl Run {
    /// Takes in that the rest of the plan waits for objects. The run goes on with it after a pause, without another call of the handler.
    /// Statuses and Events of the handler are published meanwhile.
    pub fn on_unready(&mut self, unready: UnreadyPlan) -> Step {
        let UnreadyPlan {
            plan,
            reason,
            has_progressed,
            reads_at_once,
        } = unready;
        self.learn_secrets(results_of(&plan));
        self.settle_effects();
        let plan = Arc::new(plan);
        self.plan = Some(plan.clone());
        let waiting = self.waiting.get_or_insert_default();
        if has_progressed {
            waiting.vain = 0;
        }
        if reads_at_once {
            return Step::Execute(plan);
        }
        let after = doubled(FIRST_READ, waiting.vain, LONGEST_WAIT);
        waiting.vain = waiting.vain.saturating_add(1);
        Step::Pause(Pause::Unready { after, reason })
    }

    /// Returns the plan to go on with, if the run has waited for objects.
    pub(super) fn unready_plan(&self) -> Option<Arc<Plan>> {
        self.waiting.as_ref().and(self.plan.clone())
    }

    /// Returns the bytes of the answers that a plan keeps which waits.
    pub(super) fn size_of_unready(&self) -> u64 {
        let plan = self.unready_plan();
        let plan = plan.as_deref();
        plan.map_or(0, |plan| results_of(plan).map(RequestResult::size).sum())
    }
}

fn results_of(plan: &Plan) -> impl Iterator<Item = &RequestResult> {
    plan.steps.iter().filter_map(|step| match &step.action {
        PlannedAction::Keep(result) => Some(result),
        PlannedAction::Await(awaited) => Some(&awaited.result),
        PlannedAction::Send(_) | PlannedAction::Refuse(_) => None,
    })
}
