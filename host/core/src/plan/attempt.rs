//! One attempt to carry out a plan with the strategy `graph`.

use super::dispatch::{Dispatch, StepState};
use super::{AwaitedStep, Plan, PlannedAction, PlannedStep, failed, is_uncaught, not_sent};
use crate::authorization::AuthorizedOperation;
use crate::graph::order::Order;
use crate::result::RequestResult;
use crate::run::UnreadyPlan;
use crate::time::Timestamp;

/// How a step of an attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum StepEnd {
    /// It has succeeded, and what depends on it may be sent.
    Ready(RequestResult),
    /// It has succeeded, and its object is not ready.
    Unready {
        /// What it came to.
        result: RequestResult,
        /// As in [`AwaitedStep::written_status`].
        written_status: Option<u64>,
        /// Why the object is not ready.
        reason: String,
    },
    /// The object is not there: the request is sent again later. The text says so.
    Absent(String),
    /// It has failed.
    Failed(RequestResult),
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptOutcome {
    /// Nothing is left to wait for: one result for each step, in order.
    Over(Vec<RequestResult>),
    /// Requests wait for objects.
    Unready(Box<UnreadyPlan>),
}

/// One attempt to carry out a plan with the strategy `graph`. Steps are named by their indexes.
#[derive(Debug)]
pub struct Attempt<'a> {
    steps: &'a [PlannedStep],
    order: &'a Order,
    dispatch: Dispatch<'a>,
    ends: Vec<Option<StepEnd>>,
}

impl<'a> Attempt<'a> {
    /// Begins an attempt with the steps of a plan that has this order.
    #[must_use]
    pub fn new(steps: &'a [PlannedStep], order: &'a Order) -> Self {
        Self {
            dispatch: Dispatch::new(order),
            ends: vec![None; steps.len()],
            steps,
            order,
        }
    }

    /// Returns a step that is to be carried out, each once. `None`: none is until another has ended.
    pub fn next_step(&mut self) -> Option<(usize, &'a PlannedStep)> {
        let index = self.dispatch.next_index()?;
        Some((index, self.steps.get(index)?))
    }

    /// A step has ended.
    pub fn end(&mut self, index: usize, end: StepEnd) {
        let state = match &end {
            StepEnd::Ready(_) => StepState::Ready,
            StepEnd::Unready { .. } | StepEnd::Absent(_) => StepState::Unready,
            StepEnd::Failed(_) => StepState::Failed,
        };
        if let Some(known) = self.ends.get_mut(index) {
            *known = Some(end);
        }
        self.dispatch.end(index, state);
    }

    /// Ends the attempt. A failure that nothing catches ends the wait for objects as well: nothing more would come of it.
    #[must_use]
    pub fn finish(self, now: Timestamp) -> AttemptOutcome {
        let culprit = self.steps.iter().zip(&self.ends).find(
            |(step, end)| matches!(end, Some(StepEnd::Failed(result)) if is_uncaught(step, result)),
        );
        let waits = |state: &StepState| matches!(state, StepState::Unready | StepState::Unsent);
        let is_waiting = self.dispatch.states().iter().any(waits);
        match culprit {
            None if is_waiting => AttemptOutcome::Unready(Box::new(self.unready(now))),
            culprit => {
                let culprit = culprit.map_or("", |(step, _)| &*step.request.name);
                AttemptOutcome::Over(self.results(culprit, now))
            }
        }
    }

    fn results(&self, culprit: &str, now: Timestamp) -> Vec<RequestResult> {
        let ended = self.ended(now);
        let result = |(step, ended): (&PlannedStep, Option<RequestResult>)| {
            ended.unwrap_or_else(|| failed(&step.request, not_sent(culprit), now))
        };
        self.steps.iter().zip(ended).map(result).collect()
    }

    /// The result of each step that has one.
    fn ended(&self, now: Timestamp) -> Vec<Option<RequestResult>> {
        let states = self.dispatch.states().iter();
        let steps = self.steps.iter().zip(&self.ends).zip(states);
        let result = |((step, end), state): ((&PlannedStep, &Option<StepEnd>), &StepState)| match (
            end, state,
        ) {
            (Some(StepEnd::Ready(result) | StepEnd::Failed(result)), _)
            | (Some(StepEnd::Unready { result, .. }), _) => Some(result.clone()),
            (None, StepState::Behind(culprit)) => {
                let culprit = self.steps.get(*culprit);
                let culprit = culprit.map_or("", |step| &step.request.name);
                Some(failed(&step.request, not_sent(culprit), now))
            }
            (Some(StepEnd::Absent(_)) | None, _) => None,
        };
        steps.map(result).collect()
    }

    fn unready(&self, now: Timestamp) -> UnreadyPlan {
        let steps = || self.steps.iter().zip(&self.ends);
        let reason = steps().find_map(|(step, end)| {
            let reason = end.as_ref()?.reason()?;
            Some(format!("request {:?}: {reason}", step.request.name))
        });
        let is_deleted = |(step, end): (&PlannedStep, &Option<StepEnd>)| {
            let is_unready = matches!(end, Some(StepEnd::Unready { .. }));
            is_unready && is_sent(step) && step.request.operation.deletes_object()
        };
        let rest = steps().zip(self.ended(now));
        let rest = rest.map(|((step, end), result)| PlannedStep {
            action: next_action(&step.action, end.as_ref(), result),
            request: step.request.clone(),
            on_error: step.on_error,
        });
        UnreadyPlan {
            plan: Plan {
                is_serial: false,
                order: Some(self.order.clone()),
                steps: rest.collect(),
            },
            reason: reason.unwrap_or_default(),
            has_progressed: steps().any(|(step, end)| has_progressed(step, end.as_ref())),
            reads_at_once: steps().any(is_deleted),
        }
    }
}

impl StepEnd {
    /// Why what depends on the step has to wait, if it has.
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Unready { reason, .. } | Self::Absent(reason) => Some(reason),
            Self::Ready(_) | Self::Failed(_) => None,
        }
    }
}

const fn is_sent(step: &PlannedStep) -> bool {
    matches!(step.action, PlannedAction::Send(_))
}

/// Whether a step has come further in the attempt.
fn has_progressed(step: &PlannedStep, end: Option<&StepEnd>) -> bool {
    match end {
        Some(StepEnd::Unready { .. }) => is_sent(step),
        Some(StepEnd::Ready(_)) => !matches!(step.action, PlannedAction::Keep(_)),
        Some(StepEnd::Absent(_) | StepEnd::Failed(_)) | None => false,
    }
}

/// What is to be done for a step in the next attempt.
fn next_action(
    action: &PlannedAction,
    end: Option<&StepEnd>,
    result: Option<RequestResult>,
) -> PlannedAction {
    match (end, sent_by(action), result) {
        (Some(StepEnd::Unready { written_status, .. }), Some(sent), Some(result)) => {
            PlannedAction::Await(Box::new(AwaitedStep {
                sent: sent.clone(),
                result,
                written_status: *written_status,
            }))
        }
        (_, _, Some(result)) => PlannedAction::Keep(result),
        (Some(StepEnd::Absent(_)), Some(sent), None) => PlannedAction::Send(Box::new(sent.clone())),
        (_, _, None) => action.clone(),
    }
}

fn sent_by(action: &PlannedAction) -> Option<&AuthorizedOperation> {
    match action {
        PlannedAction::Send(sent) => Some(sent),
        PlannedAction::Await(awaited) => Some(&awaited.sent),
        PlannedAction::Keep(_) | PlannedAction::Refuse(_) => None,
    }
}
