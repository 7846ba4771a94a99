//! One attempt to carry out a plan with the strategy `graph`.

use super::dispatch::{Dispatch, StepState};
use super::{AwaitedStep, Plan, PlannedAction, PlannedStep, failed, is_uncaught, not_sent};
use crate::authorization::AuthorizedOperation;
use crate::graph::order::Order;
use crate::request::{KubernetesVerb, Operation};
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
        let mut reason = String::new();
        let (mut has_progressed, mut reads_at_once) = (false, false);
        let mut steps = Vec::with_capacity(self.steps.len());
        for ((step, end), result) in self.steps.iter().zip(&self.ends).zip(self.ended(now)) {
            let was_sent = matches!(step.action, PlannedAction::Send(_)) && end.is_some();
            let was_awaited = matches!(step.action, PlannedAction::Await(_));
            if let Some(StepEnd::Unready { reason: why, .. } | StepEnd::Absent(why)) = end
                && reason.is_empty()
            {
                reason = format!("request {:?}: {why}", step.request.name);
            }
            has_progressed |= match end {
                Some(StepEnd::Unready { .. }) => was_sent,
                Some(StepEnd::Ready(_)) => was_sent || was_awaited,
                Some(StepEnd::Absent(_) | StepEnd::Failed(_)) | None => false,
            };
            let action = match (end, &step.action, result) {
                (Some(StepEnd::Unready { written_status, .. }), action, Some(result)) => {
                    reads_at_once |= was_sent && is_deletion(&step.request.operation);
                    match sent_by(action) {
                        Some(sent) => PlannedAction::Await(Box::new(AwaitedStep {
                            sent: sent.clone(),
                            result,
                            written_status: *written_status,
                        })),
                        None => PlannedAction::Keep(result),
                    }
                }
                (_, _, Some(result)) => PlannedAction::Keep(result),
                (Some(StepEnd::Absent(_)), PlannedAction::Await(awaited), None) => {
                    PlannedAction::Send(Box::new(awaited.sent.clone()))
                }
                (_, action, None) => action.clone(),
            };
            steps.push(PlannedStep {
                action,
                request: step.request.clone(),
                on_error: step.on_error,
            });
        }
        UnreadyPlan {
            plan: Plan {
                is_serial: false,
                order: Some(self.order.clone()),
                steps,
            },
            reason,
            has_progressed,
            reads_at_once,
        }
    }
}

fn sent_by(action: &PlannedAction) -> Option<&AuthorizedOperation> {
    match action {
        PlannedAction::Send(sent) => Some(sent),
        PlannedAction::Await(awaited) => Some(&awaited.sent),
        PlannedAction::Keep(_) | PlannedAction::Refuse(_) => None,
    }
}

fn is_deletion(operation: &Operation) -> bool {
    matches!(operation, Operation::Kubernetes(request) if request.verb == KubernetesVerb::Delete)
}
