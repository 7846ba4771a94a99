//! Carries out a plan: sends its requests to the sinks and collects what came of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::plan::{self, Plan, PlannedAction, PlannedStep};
use configurator_core::request::{ObjectRef, OnError, Operation};
use configurator_core::result::{Answer, RequestResult};
use configurator_core::run::{Member, Run, UnreadyPlan};
use configurator_guest::owner::owner_of;
use futures::StreamExt;
use serde::Deserialize;
use tracing::Instrument as _;

use crate::answers::{AnswerRoom, RunAnswers};
use crate::clock::SharedClock;
use crate::declarative::{DeclarativeJob, DeclarativeRequests};
use crate::events::Subject;
use crate::metrics::Metrics;
use crate::redaction::Redactor;
use crate::shards::Permit;
use crate::sinks::configstore::Companion;
use crate::sinks::{Scope, Sinks};
use crate::suspect_requests::{self, SuspectRequests};

pub(crate) use self::graph::{GraphPlan, ReadyConditions};

mod graph;

/// The `Idempotency-Key` of each HTTP request that gets one, by the request's name.
pub(crate) type IdempotencyKeys = BTreeMap<String, String>;

/// The context that the requests of a plan are sent in.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'a> {
    /// The run that sends them.
    pub(crate) run: &'a Run,
    /// The keys of its HTTP requests.
    pub(crate) keys: &'a IdempotencyKeys,
    /// Accounts for the memory of their answers.
    pub(crate) answers: &'a RunAnswers,
    /// Knows the secrets of the run.
    pub(crate) redactor: &'a Arc<Redactor>,
    /// Where hosts share the objects: admits requests that change something.
    pub(crate) permit: Option<&'a Permit>,
    /// If the run is a suspect's: the limit on the requests of all suspects of the Configurator.
    pub(crate) suspects: Option<&'a SuspectRequests>,
    /// Whether other tasks run between two requests: a store in this process may answer many without a pause. A simulation does not yield,
    /// so that the order of its requests is reproducible.
    pub(crate) yields: bool,
}

impl Sending<'_> {
    /// Returns how many requests are under way at a time: the Configurator's concurrency, or less for a suspect.
    fn width(&self) -> usize {
        let concurrency = self.run.configurator().concurrency.max(1);
        self.suspects.map_or(concurrency, SuspectRequests::width)
    }
}

/// Carries out plans.
#[derive(Clone)]
pub struct Executor {
    sinks: Sinks,
    clock: SharedClock,
    declarative: DeclarativeRequests,
    metrics: Arc<Metrics>,
}

/// What carrying out a plan came to.
#[derive(Debug, Default)]
pub struct Executed {
    /// One for each step, in order; if requests are left, one for each of [`sent`](Self::sent).
    pub results: Vec<RequestResult>,
    /// The indexes of the steps that were sent, if requests are left.
    pub sent: Vec<usize>,
    /// With the strategy `graph`: the requests that are left, because they wait for objects.
    pub unready: Option<Box<UnreadyPlan>>,
    /// Whether anything changed at any server.
    pub has_written: bool,
    /// Objects of the watched kind that were written, with their new version.
    pub own_writes: Vec<(ObjectRef, u64)>,
}

struct StepResult {
    result: RequestResult,
    changed: bool,
    own_write: Option<(ObjectRef, u64)>,
}

impl StepResult {
    /// Of a step for which nothing was sent.
    const fn unchanged(result: RequestResult) -> Self {
        Self {
            result,
            changed: false,
            own_write: None,
        }
    }
}

impl Executor {
    /// An executor over these sinks.
    #[must_use]
    pub fn new(
        sinks: Sinks,
        clock: SharedClock,
        declarative: DeclarativeRequests,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            sinks,
            clock,
            declarative,
            metrics,
        }
    }

    /// The sinks.
    #[must_use]
    pub fn sinks(&self) -> &Sinks {
        &self.sinks
    }

    /// Carries out the plan of a run that has no order: see [`execute_graph`](Self::execute_graph).
    ///
    /// In each wave, requests go side by side within the Configurator's concurrency, or one after another when the
    /// plan is serial. After a failure that nothing catches, a serial plan and later waves are not sent. A request waits until there is
    /// room for its answer.
    pub(crate) async fn execute(&self, plan: &Plan, sending: Sending<'_>) -> Executed {
        let mut settled: Vec<(usize, StepResult)> = Vec::with_capacity(plan.steps.len());
        let mut culprit: Option<String> = None;
        for wave in plan.waves() {
            let steps: Vec<(usize, &PlannedStep)> = wave
                .into_iter()
                .filter_map(|index| Some((index, plan.steps.get(index)?)))
                .collect();
            if plan.is_serial || culprit.is_some() {
                for (index, step) in steps {
                    let result = match &culprit {
                        Some(culprit) => self.not_sent(step, culprit),
                        None => self.step(index, step, sending).await,
                    };
                    note_culprit(&mut culprit, step, &result);
                    settled.push((index, result));
                }
                continue;
            }
            let mut under_way = Vec::with_capacity(steps.len());
            for (index, step) in &steps {
                under_way.push(self.indexed(*index, step, sending));
            }
            let mut side_by_side =
                futures::stream::iter(under_way).buffer_unordered(sending.width());
            while let Some((index, result)) = side_by_side.next().await {
                if let Some(step) = plan.steps.get(index) {
                    note_culprit(&mut culprit, step, &result);
                }
                settled.push((index, result));
            }
        }
        settled.sort_unstable_by_key(|(index, _)| *index);
        let mut executed = Executed::default();
        for (_, step) in settled {
            executed.has_written |= step.changed;
            executed.own_writes.extend(step.own_write);
            executed.results.push(step.result);
        }
        executed
    }

    async fn indexed(
        &self,
        index: usize,
        step: &PlannedStep,
        sending: Sending<'_>,
    ) -> (usize, StepResult) {
        (index, self.step(index, step, sending).await)
    }

    async fn step(&self, index: usize, step: &PlannedStep, sending: Sending<'_>) -> StepResult {
        let Sending {
            run,
            keys,
            answers,
            redactor,
            permit,
            suspects,
            yields,
        } = sending;
        let request = &step.request;
        let created = self.clock.now();
        let settled = |answer: Result<Answer, Fault>| {
            let changed = answer.as_ref().is_ok_and(|answer| answer.changed);
            let (answer, error) = match answer {
                Ok(answer) => (answer, None),
                Err(fault) => (Answer::default(), Some(fault)),
            };
            let own_write = if changed {
                own_write(&request.operation, &answer, run)
            } else {
                None
            };
            let result = RequestResult {
                request_name: request.name.clone(),
                sink: request.operation.sink(),
                is_declarative: request.is_declarative,
                query_objects: answer.query_objects,
                created,
                finished: Some(self.clock.now()),
                error,
                http_response: answer.http_response,
            };
            StepResult {
                result,
                changed,
                own_write,
            }
        };
        match &step.action {
            PlannedAction::Keep(result) => StepResult::unchanged(result.clone()),
            PlannedAction::Await(awaited) => StepResult::unchanged(awaited.result.clone()),
            PlannedAction::Refuse(fault) => {
                self.metrics
                    .request(request.operation.sink(), Some(fault.kind));
                settled(Err(fault.clone()))
            }
            PlannedAction::Send(operation) if request.is_declarative => {
                let job = DeclarativeJob {
                    operation: (**operation).clone(),
                    scope: scope(step, run, keys),
                    request_name: request.name.clone(),
                    owner: owner(step, run).map(|member| {
                        Subject::watched(run.configurator(), &member.key, &member.uid)
                    }),
                    retry: run.configurator().retry,
                    redactor: redactor.clone(),
                    claim: permit.map(|permit| permit.claim().clone()),
                };
                let mut settled = settled(self.declarative.submit(job).map(|()| Answer::default()));
                if settled.result.error.is_none() {
                    settled.result.finished = None;
                }
                settled
            }
            PlannedAction::Send(operation) => {
                let sink = request.operation.sink();
                let span = tracing::info_span!(
                    "request",
                    name = request.name,
                    sink = sink.name(),
                    operation = %request.operation,
                    fault = tracing::field::Empty,
                );
                let mut scope = scope(step, run, keys);
                let counts = match suspects {
                    Some(suspects) => suspects.begin(index, sink, answers).await,
                    None => None,
                };
                let began = self.clock.now();
                let answered = async {
                    scope.answer = answers.begin().await?;
                    if let Some(permit) = permit
                        && request.operation.is_mutating()
                    {
                        permit.admit(&mut scope).await;
                    }
                    let answer = self.sinks.get(sink).execute(operation, &scope).await?;
                    let answer = operation.visible(answer);
                    scope.answer.keep(&answer).await?;
                    Ok::<Answer, Fault>(answer)
                };
                let answer = answered.instrument(span.clone()).await;
                if let Err(fault) = &answer {
                    span.record("fault", fault.kind.name());
                }
                self.metrics
                    .request(sink, answer.as_ref().err().map(|fault| fault.kind));
                if yields {
                    tokio::task::yield_now().await;
                }
                let settled = settled(answer);
                if counts.is_some() {
                    // Room for an answer that could not be read is not held during the rest.
                    drop(scope);
                    let took = self.clock.now().since(began);
                    suspect_requests::rest(&*self.clock, took).await;
                }
                settled
            }
        }
    }

    fn not_sent(&self, step: &PlannedStep, culprit: &str) -> StepResult {
        StepResult::unchanged(match &step.action {
            PlannedAction::Keep(result) => result.clone(),
            PlannedAction::Await(awaited) => awaited.result.clone(),
            PlannedAction::Send(_) | PlannedAction::Refuse(_) => {
                plan::failed(&step.request, plan::not_sent(culprit), self.clock.now())
            }
        })
    }
}

/// The object that a request is made for: the one it names, or the first of the run.
fn owner<'a>(step: &PlannedStep, run: &'a Run) -> Option<&'a Member> {
    let members = run.members();
    match &step.request.of {
        Some(of) => members.iter().find(|member| member.key == *of),
        None => members.first(),
    }
}

fn scope(step: &PlannedStep, run: &Run, keys: &IdempotencyKeys) -> Scope {
    Scope {
        idempotency_key: keys.get(&step.request.name).cloned().unwrap_or_default(),
        timeout: step.request.timeout,
        ..scope_for(run, owner(step, run), &step.request.name)
    }
}

/// The scope of a request of this name that a run makes for one of its objects.
pub(crate) fn scope_for(run: &Run, object: Option<&Member>, request_name: &str) -> Scope {
    Scope {
        configurator: run.configurator().key.clone(),
        partition: run.configurator().partition.clone(),
        service_account: run.configurator().service_account.clone(),
        owner: owner_of(&run.configurator().limits),
        request_name: request_name.to_owned(),
        object: object
            .map(|member| member.key.to_string())
            .unwrap_or_default(),
        attempt: run.failures().saturating_add(1),
        idempotency_key: String::new(),
        timeout: None,
        fences: Vec::new(),
        companion: Companion::default(),
        answer: AnswerRoom::default(),
    }
}

fn note_culprit(culprit: &mut Option<String>, step: &PlannedStep, settled: &StepResult) {
    if culprit.is_none() && settled.result.error.is_some() && step.on_error == OnError::Fail {
        *culprit = Some(step.request.name.clone());
    }
}

/// The new version of an object of the watched kind, so that it is not entered again from an older copy.
fn own_write(operation: &Operation, answer: &Answer, run: &Run) -> Option<(ObjectRef, u64)> {
    #[derive(Deserialize)]
    struct Written<'a> {
        kind: Option<&'a str>,
        #[serde(borrow)]
        metadata: WrittenMetadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WrittenMetadata<'a> {
        resource_version: &'a str,
    }
    let Operation::Kubernetes(request) = operation else {
        return None;
    };
    let watch = &run.configurator().watch;
    if request.group != watch.group {
        return None;
    }
    let written: Written<'_> = serde_json::from_str(answer.query_objects.first()?.as_str()).ok()?;
    if written.kind? != watch.kind {
        return None;
    }
    let key = ObjectRef {
        namespace: request.namespace.clone(),
        name: request.name.clone(),
    };
    Some((key, written.metadata.resource_version.parse().ok()?))
}
