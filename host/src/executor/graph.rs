//! Carries out a plan with the strategy `graph`.

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::observation::Health;
use configurator_core::graph::order::Order;
use configurator_core::plan::attempt::{Attempt, AttemptOutcome, StepEnd};
use configurator_core::plan::{AwaitedStep, Plan, PlannedAction, PlannedStep};
use configurator_core::request::{Operation, Readiness};
use configurator_core::result::RequestResult;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use super::{Executed, Executor, Sending, StepResult};
use crate::objects::{hash, text};
use crate::readiness::ReadyWhen;

/// The conditions by which the objects of a plan are ready, one for each step.
#[derive(Default)]
pub(crate) struct ReadyConditions(Vec<Option<ReadyWhen>>);

impl ReadyConditions {
    /// Compiles the conditions of a plan.
    ///
    /// # Errors
    /// When an expression does not compile; the message names the request.
    pub(crate) fn of(plan: &Plan) -> Result<Self, Fault> {
        if plan.order.is_none() {
            return Ok(Self::default());
        }
        let condition = |step: &PlannedStep| {
            let readiness = step.request.ready_when.as_ref();
            let compiled = ReadyWhen::new(readiness.unwrap_or(&Readiness::Observed));
            compiled.map(Some).map_err(|error| {
                let name = &step.request.name;
                let message = format!("the output is invalid: request {name:?}: {error}");
                Fault::new(FaultKind::ResourceGeneric, message)
            })
        };
        let conditions = plan.steps.iter().map(condition);
        conditions.collect::<Result<_, _>>().map(Self)
    }

    fn health(&self, index: usize, object: &Value, is_status_older: bool) -> Health {
        match self.0.get(index) {
            Some(Some(ready_when)) => ready_when.health(object, is_status_older),
            _ => Health::Ready,
        }
    }
}

/// One attempt to carry out a plan that has an order.
#[derive(Clone, Copy)]
pub(crate) struct GraphPlan<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) order: &'a Order,
    pub(crate) ready_when: &'a ReadyConditions,
}

/// One step of it.
#[derive(Clone, Copy)]
struct GraphStep<'a> {
    graph: GraphPlan<'a>,
    index: usize,
    step: &'a PlannedStep,
}

impl GraphStep<'_> {
    /// Returns a read of the object that a result is about. `None`: nothing is to be waited for.
    fn reading(self, result: &RequestResult) -> Option<Operation> {
        let Self { graph, index, step } = self;
        match step.request.operation.object_name() {
            Some(name) => graph.plan.reading(index, name),
            None => {
                let object = first(&result.query_objects);
                graph.plan.reading(index, text(&object, "/metadata/name"))
            }
        }
    }

    fn health(self, object: &Value, is_status_older: bool) -> Health {
        let ready_when = self.graph.ready_when;
        ready_when.health(self.index, object, is_status_older)
    }

    fn deletes_object(self) -> bool {
        self.step.request.operation.deletes_object()
    }
}

impl Executor {
    /// Carries out as much of a plan as can be without a wait for an object: each request when what it depends on is ready, side by side within
    /// the Configurator's concurrency.
    pub(crate) async fn execute_graph(
        &self,
        graph: GraphPlan<'_>,
        sending: Sending<'_>,
    ) -> Executed {
        let mut attempt = Attempt::new(&graph.plan.steps, graph.order);
        let mut under_way = FuturesUnordered::new();
        let mut executed = Executed::default();
        let mut sent = Vec::new();
        loop {
            while under_way.len() < sending.width()
                && let Some((index, step)) = attempt.next_step()
            {
                let step = GraphStep { graph, index, step };
                under_way.push(self.carry_out(step, sending));
            }
            let Some(ended) = under_way.next().await else {
                break;
            };
            let (index, end, settled) = ended;
            if let Some(settled) = settled {
                executed.has_written |= settled.changed;
                executed.own_writes.extend(settled.own_write);
                sent.push((index, settled.result));
            }
            attempt.end(index, end);
        }
        match attempt.finish(self.clock.now()) {
            AttemptOutcome::Over(results) => executed.results = results,
            AttemptOutcome::Unready(unready) => {
                sent.sort_unstable_by_key(|(index, _)| *index);
                (executed.sent, executed.results) = sent.into_iter().unzip();
                executed.unready = Some(unready);
            }
        }
        executed
    }

    /// Carries out one step. Returns what its request came to, if it was sent.
    async fn carry_out(
        &self,
        step: GraphStep<'_>,
        sending: Sending<'_>,
    ) -> (usize, StepEnd, Option<StepResult>) {
        let index = step.index;
        match &step.step.action {
            PlannedAction::Keep(result) => {
                let end = match result.error {
                    None => StepEnd::Ready,
                    Some(_) => StepEnd::Failed,
                };
                (index, end(result.clone()), None)
            }
            PlannedAction::Await(awaited) => {
                let end = self.look(step, awaited, sending).await;
                (index, end, None)
            }
            PlannedAction::Send(_) | PlannedAction::Refuse(_) => {
                let settled = self.step(index, step.step, sending).await;
                let end = end_of(step, &settled, sending);
                (index, end, Some(settled))
            }
        }
    }

    /// Finds out whether the object of a step is ready.
    async fn look(
        &self,
        step: GraphStep<'_>,
        awaited: &AwaitedStep,
        sending: Sending<'_>,
    ) -> StepEnd {
        let result = awaited.result.clone();
        let Some(read) = step.reading(&result) else {
            return StepEnd::Ready(result);
        };
        let read = sending.run.with_operation(step.step, read);
        let RequestResult {
            query_objects,
            error,
            ..
        } = self.step(step.index, &read, sending).await.result;
        let is_deletion = step.deletes_object();
        match error {
            Some(fault) if fault.kind == FaultKind::ResourceNotFound => match is_deletion {
                true => StepEnd::Ready(result),
                false => StepEnd::Absent("its object is gone".to_owned()),
            },
            Some(fault) => failed(result, fault),
            None => {
                let object = first(&query_objects);
                if is_deletion {
                    // One that is not being deleted is another of the same name.
                    return match text(&object, "/metadata/deletionTimestamp") {
                        "" => StepEnd::Ready(result),
                        _ => deleted(result),
                    };
                }
                let is_status_older = awaited.written_status == Some(hash(object.get("status")));
                let health = step.health(&object, is_status_older);
                let result = RequestResult {
                    query_objects,
                    ..result
                };
                by_health(health, result, awaited.written_status)
            }
        }
    }
}

/// How a step ends whose request came to this.
fn end_of(step: GraphStep<'_>, settled: &StepResult, sending: Sending<'_>) -> StepEnd {
    let request = &step.step.request;
    let result = settled.result.clone();
    if let Some(fault) = &result.error {
        let is_awaited = request.ready_when.is_some() && !request.operation.is_mutating();
        return match fault.kind {
            FaultKind::ResourceNotFound if is_awaited => {
                StepEnd::Absent("its object does not exist".to_owned())
            }
            _ => StepEnd::Failed(result),
        };
    }
    let Some(read) = step.reading(&result) else {
        return StepEnd::Ready(result);
    };
    // Without the right to read it, the answer has no more than the identity of the object.
    if let PlannedAction::Refuse(fault) = sending.run.with_operation(step.step, read).action {
        return failed(result, fault);
    }
    if step.deletes_object() {
        return deleted(result);
    }
    let object = first(&result.query_objects);
    let written_status = settled.changed.then(|| hash(object.get("status")));
    let health = step.health(&object, written_status.is_some());
    by_health(health, result, written_status)
}

fn by_health(health: Health, result: RequestResult, written_status: Option<u64>) -> StepEnd {
    match health {
        Health::Ready => StepEnd::Ready(result),
        Health::Waiting(reason) => StepEnd::Unready {
            result,
            written_status,
            reason,
        },
        Health::Failed(reason) => {
            let message = format!("its object has failed: {reason}");
            failed(result, Fault::new(FaultKind::ResourceGeneric, message))
        }
    }
}

fn deleted(result: RequestResult) -> StepEnd {
    StepEnd::Unready {
        result,
        written_status: None,
        reason: "its object is being deleted".to_owned(),
    }
}

fn failed(result: RequestResult, fault: Fault) -> StepEnd {
    StepEnd::Failed(RequestResult {
        error: Some(fault),
        ..result
    })
}

fn first(objects: &[Document]) -> Value {
    let object = objects.first();
    object.map(|object| object.to_value()).unwrap_or_default()
}
