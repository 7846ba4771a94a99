//! Takes one run through its phases.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use configurator_core::configurator::DeletionBy;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::field_manager;
use configurator_core::handler::{
    CallFault, CallLimits, EventType, HandlerError, HandlerOutput, Outcome,
};
use configurator_core::plan::{Failure, Plan, PlannedAction, PlannedStep};
use configurator_core::request::{ObjectRef, SinkName};
use configurator_core::result::RequestResult;
use configurator_core::retry::Tries;
use configurator_core::run::{
    Call, Chain, Finish, Pause, Run, RunEnd, RunOutcome, SetOutcome, SetRequest, Step, UnreadyPlan,
    host_failure,
};
use configurator_guest::log::{LogLevel, LogLine, LogSink, no_log};
use configurator_guest::module::Module;
use configurator_guest::report::CallReport;
use configurator_guest::runtime::GuestRuntime;
use kube::Client;
use kube::api::{ApiResource, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use super::awaited::Sought;
use super::call_mode::CallMode;
use super::finalizer::Finalizer;
use super::machine_run::{MachineContext, SetClaim, Standing};
use super::places::PlaceUser;
use super::rollout::Rollout;
use crate::answers::{AnswerBudget, RestingAnswers, RunAnswers};
use crate::clock::SharedClock;
use crate::events::{CONFIGURE, HostEvent, Publisher, Subject};
use crate::executor::{Executor, GraphPlan, ReadyConditions, Sending};
use crate::idempotency::{Effects, KeyedPlan, RunEffects};
use crate::kubernetes_faults::{fault_of, is_of_another};
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::objects;
use crate::observer::SharedObserver;
use crate::recording::{Again, Recorder, Taking};
use crate::redaction::Redactor;
use crate::sets::{SetRun, Sets};
use crate::shards::Permit;
use crate::suspect_requests::SuspectRequests;

/// What every run of one Configurator shares.
pub struct RunContext {
    /// Calls handlers.
    pub guest: GuestRuntime,
    /// How.
    pub call_mode: CallMode,
    /// Which module a run is of that begins.
    pub rollout: Arc<Rollout>,
    /// Carries out plans.
    pub executor: Executor,
    /// Memory of answers.
    pub answers: AnswerBudget,
    /// Limits the requests of suspects.
    pub suspects: SuspectRequests,
    /// The time.
    pub clock: SharedClock,
    /// Reads objects and writes their statuses, as the Configurator's ServiceAccount.
    pub client: Client,
    /// Answers Commands, as the host.
    pub host_client: Client,
    /// The watched kind.
    pub resource: ApiResource,
    /// Records the objects that are handled; with `deletion.by: Ledger` and something to do at a deletion.
    pub ledger: Option<Ledger>,
    /// Makes each HTTP request take effect once.
    pub(crate) effects: Effects,
    /// Holds the objects that are handled; with `deletion.by: Finalizer`.
    pub finalizer: Option<Box<Finalizer>>,
    /// The sets of its objects; with `spec.sets`.
    pub(crate) sets: Option<Arc<Sets>>,
    /// What the machines of its objects share.
    pub(crate) machine: Option<Arc<MachineContext>>,
    /// Publishes Events.
    pub publisher: Publisher,
    /// Keeps runs, where they are to be kept.
    pub recorder: Option<Arc<Recorder>>,
    /// Sees everything.
    pub observer: SharedObserver,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

impl RunContext {
    /// Returns the set of an object in a run of it. `None`: the Configurator has no sets.
    pub(crate) fn set_run<'a>(
        &'a self,
        run: &'a Run,
        answers: &'a RunAnswers,
        permit: Option<&'a Permit>,
        redactor: &'a Arc<Redactor>,
    ) -> Option<SetRun<'a>> {
        Some(SetRun {
            run,
            sets: self.sets.as_deref()?,
            executor: &self.executor,
            answers,
            permit,
            metrics: &self.metrics,
            clock: &self.clock,
            publisher: &self.publisher,
            redactor,
            yields: matches!(self.call_mode, CallMode::Parallel),
            client: &self.client,
            resource: &self.resource,
            is_canary: self.rollout.is_canary(run.module()),
            is_new: false,
        })
    }
}

/// What is needed to go on with what rests.
#[derive(Debug)]
pub(crate) enum Resting {
    /// A run of the chain.
    Run(Box<Run>),
    /// A turn of a machine: how often the object was tried in vain. The rest is in its [`Standing`].
    Turn(Tries),
}

/// What came of a run, or of a turn of a machine.
pub(crate) struct RunReport {
    /// What it came to.
    pub(crate) outcome: RunOutcome<Resting>,
    /// Of a turn: what is to be handed to the next turn, if it is kept so long.
    pub(crate) standing: Option<Box<Standing>>,
    /// Of a turn: objects that the machine waits for.
    pub(crate) awaited: Vec<Sought>,
}

/// Asked before requests are sent that may be sent but once, with the token of the entry. They are sent when the answer comes, and
/// not when none can come any more.
pub(crate) type SendingGate = mpsc::Sender<(u64, oneshot::Sender<()>)>;

/// What a leaf has of its machine.
pub(crate) struct OfMachine {
    pub(crate) gate: SendingGate,
    pub(crate) said: Arc<Said>,
    /// `None`: the entry is none of a node, or there are no sets.
    pub(crate) set: Option<SetClaim>,
}

/// What the handlers of one object's machine have said of its status. Each apply is complete, so what one leaf says is applied together
/// with what all have said before.
#[derive(Default)]
pub(crate) struct Said {
    /// Held while it is applied: of two leaves, one says it after the other.
    applying: tokio::sync::Mutex<()>,
    status: std::sync::Mutex<Value>,
}

impl Said {
    pub(crate) fn new(status: Value) -> Arc<Self> {
        Arc::new(Self {
            status: std::sync::Mutex::new(status),
            ..Self::default()
        })
    }

    pub(crate) fn status(&self) -> Value {
        let status = self.status.lock();
        status.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, status: Value) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

/// Takes a run through its phases, until it is over or rests.
///
/// Every await may be the last: nothing is remembered here that matters after a crash.
/// Where hosts share the objects, `permit` is for those of the run. `machine` is for the entry of a leaf.
pub(crate) async fn drive(
    context: Arc<RunContext>,
    mut run: Run,
    step: Step,
    permit: Option<Arc<Permit>>,
    machine: Option<OfMachine>,
    place: PlaceUser,
) -> RunOutcome<Run> {
    let span = tracing::info_span!(
        "run",
        configurator = %run.configurator().key,
        run = run.id(),
        object = run
            .members()
            .first()
            .map(|member| tracing::field::display(&member.key)),
        objects = run.members().len(),
        failures = run.failures(),
        outcome = tracing::field::Empty,
    );
    let mut redactor = Redactor::default();
    redactor.learn(run.secrets());
    let recorder = context.recorder.as_ref();
    let taking = recorder.map(|recorder| recorder.begin(&run, run.secrets(), context.clock.now()));
    let drive = Drive {
        answers: context.answers.resume(kept_by(&mut run)),
        context,
        taking,
        run,
        redactor: Arc::new(redactor),
        effects: RunEffects::default(),
        own_writes: Vec::new(),
        has_written: false,
        holds_readiness: false,
        permit,
        machine,
        place,
    };
    drive.go(step).instrument(span).await
}

/// Takes the room for the answers that the run kept while it rested.
fn kept_by(run: &mut Run) -> RestingAnswers {
    let kept = run.detach().and_then(|kept| kept.downcast().ok());
    kept.and_then(Arc::into_inner).unwrap_or_default()
}

struct Drive {
    context: Arc<RunContext>,
    answers: RunAnswers,
    taking: Option<Taking<Arc<Module>>>,
    run: Run,
    redactor: Arc<Redactor>,
    effects: RunEffects,
    own_writes: Vec<(ObjectRef, u64)>,
    has_written: bool,
    holds_readiness: bool,
    permit: Option<Arc<Permit>>,
    machine: Option<OfMachine>,
    place: PlaceUser,
}

impl Drive {
    async fn go(mut self, mut step: Step) -> RunOutcome<Run> {
        loop {
            step = match step {
                Step::Call(call) => self.call(&call).await,
                Step::Execute(plan) => self.execute(&plan).await,
                Step::Reconcile(request) => self.reconcile(&request).await,
                Step::Dismantle => self.dismantle().await,
                Step::Pause(pause) => {
                    // What a handler says of an object is seen while it waits for others.
                    if let Pause::Members { .. } | Pause::Unready { .. } = pause
                        && let Some(failure) = self.publish_statuses().await
                    {
                        step = Step::Finish(self.run.begin_again(failure));
                        continue;
                    }
                    let size = self.run.size_of_answers();
                    if let Some(kept) = self.answers.rest(size) {
                        self.run.attach(Arc::new(kept));
                        self.publish_events();
                        return self.end(RunEnd::Paused(pause)).await;
                    }
                    tracing::info!(
                        configurator = %self.run.configurator().key,
                        run = self.run.id(),
                        size,
                        "a run cannot rest, because there is no memory for the answers that it would keep, and is made again later; the setting answer_memory gives more"
                    );
                    Step::Finish(self.run.end_in_place_of(pause))
                }
                Step::Finish(finish) => {
                    let finish = self.settle(finish).await;
                    return self.end(RunEnd::Finished(finish)).await;
                }
            }
        }
    }

    async fn call(&mut self, call: &Call) -> Step {
        let context = self.context.clone();
        if !context.observer.may_call(&self.run) {
            std::future::pending::<()>().await;
        }
        let uids = self.run.members().iter().map(|member| member.uid.as_str());
        let limits = CallLimits {
            yields: self.place.is_suspect(),
            ..self.run.configurator().limits.called_for(uids)
        };
        let span = tracing::info_span!(
            "call",
            phase = call.input.context.phase,
            handler = call.handler,
            outcome = tracing::field::Empty,
        );
        let log = self.log_sink(call, span.clone());
        let module = context.rollout.chosen(self.run.module());
        context.observer.calling(&self.run, call, &module);
        let calling = async {
            if let CallMode::Charged(calls) = &context.call_mode {
                calls.pass(call, &limits, &context.clock).await;
            }
            let (guest, handler) = (&context.guest, &call.handler);
            match &context.call_mode {
                CallMode::Parallel => {
                    let called = guest.call(&module, handler, call.input.clone(), limits, log);
                    called.instrument(span.clone()).await
                }
                CallMode::Inline | CallMode::Charged(_) => span
                    .in_scope(|| guest.call_blocking(&module, handler, &call.input, &limits, log)),
            }
        };
        let has_reserve = || self.answers.has_reserve();
        let called = self.place.call(calling, &context.clock, has_reserve);
        let CallReport { result, cost } = called.await;
        if let Some(taking) = &mut self.taking {
            taking.call(&call.handler, &module, &call.input, &result);
        }
        let result = self.redact(result);
        span.record("outcome", outcome_of(&result));
        let key = &self.run.configurator().key;
        context
            .metrics
            .call(key, outcome_of(&result), cost.cpu_time, cost.log_dropped);
        context.observer.called(&self.run, call, &result);
        self.run.on_call(result, context.clock.now())
    }

    /// Keeps the run. Calls that had to do with secrets are made once more, in an instance of their own, and with something else in their places.
    async fn keep(&self, taking: Taking<Arc<Module>>, end: &str) {
        let Some(mut ended) = taking.end(end).await else {
            return;
        };
        let limits = CallLimits {
            instance_calls: 1,
            ..self.run.configurator().limits
        };
        let guest = &self.context.guest;
        while let Some(again) = ended.next_call() {
            let Again {
                number,
                handler,
                module,
                input,
            } = again;
            let report = match &self.context.call_mode {
                CallMode::Parallel => {
                    let called = guest.call(&module, &handler, input, limits, no_log());
                    called.await
                }
                CallMode::Inline | CallMode::Charged(_) => {
                    guest.call_blocking(&module, &handler, &input, &limits, no_log())
                }
            };
            ended.made(number, report.result);
        }
        ended.keep().await;
    }

    async fn execute(&mut self, plan: &Plan) -> Step {
        let context = self.context.clone();
        let ready_when = match ReadyConditions::of(plan) {
            Ok(ready_when) => ready_when,
            Err(fault) => return self.run.refuse_output(fault),
        };
        let prepared = match self.remember(plan).await {
            Ok(()) => self.key(plan).await,
            Err(fault) => Err(fault),
        };
        let keyed = match prepared {
            Ok(keyed) => keyed,
            Err(fault) => {
                let reaction = fault.kind.reaction();
                return self.run.on_host_failure(host_failure(fault, reaction));
            }
        };
        if self.run.is_once(plan)
            && let Err(failure) = self.announce().await
        {
            return self.run.fail_leaf(failure);
        }
        let plan = keyed.plan.as_ref().unwrap_or(plan);
        let permit = self.permit.as_deref();
        let sending = Sending {
            run: &self.run,
            keys: &keyed.keys,
            answers: &self.answers,
            redactor: &self.redactor,
            permit,
            suspects: self.place.is_suspect().then_some(&context.suspects),
            yields: matches!(context.call_mode, CallMode::Parallel),
        };
        let executing = async {
            match &plan.order {
                None => context.executor.execute(plan, sending).await,
                Some(order) => {
                    let graph = GraphPlan {
                        plan,
                        order,
                        ready_when: &ready_when,
                    };
                    context.executor.execute_graph(graph, sending).await
                }
            }
        };
        let mut executed = self.place.send(executing, self.answers.slow()).await;
        let fences = Permit::fences_of(permit);
        context
            .effects
            .settle(&keyed, &executed.results, &mut self.effects, fences)
            .await;
        if executed
            .results
            .iter()
            .any(|result| result.sink == SinkName::Secretstore)
        {
            let redactor = Arc::make_mut(&mut self.redactor);
            redactor.learn_results(&executed.results);
            redactor.learn_written(plan);
        }
        // A server may repeat what it was sent.
        for fault in executed
            .results
            .iter_mut()
            .filter_map(|result| result.error.as_mut())
        {
            fault.message = self.redactor.redact(&fault.message);
        }
        self.own_writes.extend(executed.own_writes);
        self.has_written |= executed.has_written;
        let phase = self.run.phase().to_owned();
        if let Some(unready) = executed.unready {
            return self.wait(plan, *unready, &executed.sent, &executed.results);
        }
        self.holds_readiness |= plan
            .steps
            .iter()
            .zip(&executed.results)
            .any(|(step, result)| step.request.bootstrap_dep && result.error.is_some());
        context
            .observer
            .executed(&self.run, &phase, plan, &executed.results);
        if let Some(taking) = &mut self.taking {
            taking.results(&executed.results);
        }
        self.run.on_results(executed.results, context.clock.now())
    }

    /// Some requests wait for objects. Tells of those that were `sent`.
    fn wait(
        &mut self,
        plan: &Plan,
        mut unready: UnreadyPlan,
        sent: &[usize],
        results: &[RequestResult],
    ) -> Step {
        unready.reason = self.redactor.redact(&unready.reason);
        for step in &mut unready.plan.steps {
            if let PlannedAction::Keep(result) = &mut step.action
                && let Some(fault) = &mut result.error
            {
                fault.message = self.redactor.redact(&fault.message);
            }
            let has_succeeded = match &step.action {
                PlannedAction::Keep(result) => result.error.is_none(),
                PlannedAction::Await(_) => true,
                PlannedAction::Send(_) | PlannedAction::Refuse(_) => false,
            };
            self.holds_readiness |= step.request.bootstrap_dep && !has_succeeded;
        }
        if !sent.is_empty() {
            let steps = sent.iter().filter_map(|index| plan.steps.get(*index));
            let told = Plan {
                is_serial: false,
                order: None,
                steps: steps.cloned().collect(),
            };
            let phase = self.run.phase().to_owned();
            let observer = &self.context.observer;
            observer.executed(&self.run, &phase, &told, results);
        }
        self.run.on_unready(unready)
    }

    /// Brings the object's set to what its handler returned.
    async fn reconcile(&mut self, request: &SetRequest) -> Step {
        let claim = self
            .machine
            .as_ref()
            .and_then(|machine| machine.set.as_ref());
        let placed = match claim.map_or(Ok(()), SetClaim::take) {
            Ok(()) => self.place_finalizer().await,
            Err(fault) => Err(fault),
        };
        let mut secrets = request.set.secret_values().peekable();
        if secrets.peek().is_some() {
            Arc::make_mut(&mut self.redactor).learn_values(secrets);
        }
        let outcome = match (placed, self.set_run()) {
            (Err(fault), _) => SetOutcome::Failed(Failure::of_request("desired", fault)),
            (Ok(is_new), Some(set_run)) => SetRun { is_new, ..set_run }.reconcile(request).await,
            (Ok(_), None) => SetOutcome::Failed(no_sets()),
        };
        self.run.on_set(outcome, self.context.clock.now())
    }

    /// Deletes the set of a deleted object.
    async fn dismantle(&mut self) -> Step {
        let outcome = match self.set_run() {
            Some(set_run) => set_run.dismantle().await,
            None => SetOutcome::Failed(no_sets()),
        };
        self.run.on_set(outcome, self.context.clock.now())
    }

    fn set_run(&self) -> Option<SetRun<'_>> {
        let permit = self.permit.as_deref();
        let context = &self.context;
        context.set_run(&self.run, &self.answers, permit, &self.redactor)
    }

    /// Makes sure, before HTTP requests are sent, that each takes effect once.
    async fn key(&mut self, plan: &Plan) -> Result<KeyedPlan, Fault> {
        let Self {
            context,
            run,
            effects: known,
            permit,
            ..
        } = self;
        let fences = Permit::fences_of(permit.as_deref());
        let rollout = &context.rollout;
        context.effects.key(plan, run, rollout, known, fences).await
    }

    /// Makes sure, before the first effect, that a deletion of these objects will be noticed.
    async fn remember(&self, plan: &Plan) -> Result<(), Fault> {
        if self.run.chain() == Chain::Deletion || !plan.steps.iter().any(PlannedStep::is_effect) {
            return Ok(());
        }
        match self.run.configurator().deletion.by {
            DeletionBy::Ledger => {
                let Some(ledger) = &self.context.ledger else {
                    return Ok(());
                };
                let objects: Vec<(ObjectRef, String)> = self
                    .run
                    .members()
                    .iter()
                    .map(|member| (member.key.clone(), member.uid.clone()))
                    .collect();
                let fences = Permit::fences_of(self.permit.as_deref());
                ledger.record(&objects, fences).await
            }
            DeletionBy::Finalizer => self.place_finalizer().await.map(drop),
        }
    }

    /// Places the finalizer on the objects, and returns whether one of them did not have it before.
    async fn place_finalizer(&self) -> Result<bool, Fault> {
        let Some(finalizer) = &self.context.finalizer else {
            return Ok(false);
        };
        let mut is_new = false;
        for member in self.run.members() {
            self.ready().await;
            is_new |= finalizer
                .place(&member.key, &member.uid, &member.object)
                .await?;
        }
        Ok(is_new)
    }

    /// What may be sent but once is sent when the machine has heard of it.
    async fn announce(&mut self) -> Result<(), Failure> {
        let (go, may_go) = oneshot::channel();
        if let Some((machine, token)) = self.machine.as_ref().zip(self.run.token()) {
            // When nobody is there, nobody answers either.
            let _ = machine.gate.send((token, go)).await;
            if may_go.await.is_err() {
                let message = "not sent, because the state that says so could not be stored";
                let fault = Fault::new(FaultKind::NotSent, message);
                return Err(host_failure(fault, Reaction::Restart));
            }
        }
        self.run.note_sending();
        Ok(())
    }

    /// Returns when something may be written.
    async fn ready(&self) {
        if let Some(permit) = &self.permit {
            permit.ready(None).await;
        }
    }

    /// Publishes what the handlers said. A status that cannot be written makes the run begin again.
    async fn settle(&mut self, finish: Finish) -> Finish {
        self.publish_events();
        match (self.publish_statuses().await, finish) {
            (Some(failure), Finish::Succeeded) => self.run.begin_again(failure),
            (_, finish) => finish,
        }
    }

    fn publish_events(&mut self) {
        for event in self.run.take_events() {
            let Some(subject) = self.subject(event.of.as_ref()) else {
                continue;
            };
            self.context.publisher.publish(HostEvent {
                subject,
                is_warning: event.event_type == EventType::Warning,
                reason: self.redactor.redact(&event.reason),
                action: CONFIGURE.to_owned(),
                message: self.redactor.redact(&event.message),
            });
        }
    }

    /// Those of one run are one apply, since each apply is complete.
    async fn publish_statuses(&mut self) -> Option<Failure> {
        let mut statuses: BTreeMap<ObjectRef, Value> = BTreeMap::new();
        for update in self.run.take_statuses() {
            let Some(subject) = self.subject(update.of.as_ref()) else {
                continue;
            };
            let fields = self.redactor.redact_value(update.status.to_value());
            overlay(
                statuses.entry(subject.key).or_insert_with(|| json!({})),
                fields,
            );
        }
        let mut failure = None;
        for (key, status) in statuses {
            self.ready().await;
            let applied = match &self.machine {
                None => self.apply_status(&key, status).await,
                Some(OfMachine { said, .. }) => {
                    let _alone = said.applying.lock().await;
                    let mut all = said.status();
                    json_patch::merge(&mut all, &status);
                    let applied = self.apply_status(&key, all.clone()).await;
                    applied.map(|()| said.set(all))
                }
            };
            if let Err(fault) = applied {
                failure = Some(Failure::of_request("status", fault));
            }
        }
        failure
    }

    async fn apply_status(&self, key: &ObjectRef, status: Value) -> Result<(), Fault> {
        let limit = self.run.configurator().limits.status_size;
        let size = status.to_string().len() as u64;
        if size > limit {
            return Err(Fault::new(
                FaultKind::ResourceGeneric,
                format!(
                    "the status of {key} has {size} bytes; the host's setting max_status_size allows {limit}"
                ),
            ));
        }
        let resource = &self.context.resource;
        let api = objects::of(self.context.client.clone(), resource, &key.namespace);
        let uid = self
            .run
            .members()
            .iter()
            .find(|member| member.key == *key)
            .map(|member| member.uid.as_str());
        let body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": key.name, "uid": uid},
            "status": status,
        });
        let params = PatchParams {
            field_manager: Some(field_manager::of_status(&self.run.configurator().key)),
            ..PatchParams::default()
        };
        match api
            .patch_status(&key.name, &params, &Patch::Apply(&body))
            .await
        {
            Ok(_) => Ok(()),
            // The object has gone, or another has its name: its status is nobody's concern any more.
            Err(kube::Error::Api(status)) if status.code == 404 || is_of_another(&status) => Ok(()),
            Err(error) => Err(fault_of(&format!("the status of {key}"), true, &error)),
        }
    }

    /// The object that a status or an Event is about. One that has left the batch is not spoken of any more.
    fn subject(&self, of: Option<&ObjectRef>) -> Option<Subject> {
        let mut members = self.run.members().iter();
        let member = match of {
            Some(of) => members.find(|member| member.key == *of),
            None => members.next(),
        }?;
        Some(Subject::watched(
            self.run.configurator(),
            &member.key,
            &member.uid,
        ))
    }

    async fn end(mut self, end: RunEnd) -> RunOutcome<Run> {
        let departed = self.run.take_departed();
        if let RunEnd::Finished(finish) = &end {
            let rollout = &self.context.rollout;
            rollout.record(self.run.module(), finish, &departed);
        }
        let outcome = end.name();
        let key = &self.run.configurator().key;
        self.context.metrics.run(key, outcome);
        self.context.observer.ended(&self.run, &end);
        tracing::Span::current().record("outcome", outcome);
        let members = self.run.members();
        let object = members
            .first()
            .map(|member| tracing::field::display(&member.key));
        tracing::info!(target: "configurator::run", configurator = %key, run = self.run.id(), object, objects = members.len(), outcome, "a run ended");
        if let Some(taking) = self.taking.take() {
            self.keep(taking, outcome).await;
        }
        RunOutcome {
            end,
            members: self.run.members().to_vec(),
            departed,
            own_writes: self.own_writes,
            has_written: self.has_written,
            holds_readiness: self.holds_readiness,
            run: self.run,
        }
    }

    fn log_sink(&self, call: &Call, span: tracing::Span) -> LogSink {
        let redactor = self.redactor.clone();
        let configurator = self.run.configurator().key.to_string();
        let (phase, run) = (call.input.context.phase.clone(), self.run.id().to_owned());
        Arc::new(move |line: LogLine| {
            let _inside = span.enter();
            let fields: Vec<String> = line
                .fields
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let message = redactor.redact(&line.message);
            let fields = redactor.redact(&fields.join(" "));
            match line.level {
                LogLevel::Error => {
                    tracing::error!(target: "configurator::guest", configurator, phase, run, fields, "{message}")
                }
                LogLevel::Warn => {
                    tracing::warn!(target: "configurator::guest", configurator, phase, run, fields, "{message}")
                }
                LogLevel::Info => {
                    tracing::info!(target: "configurator::guest", configurator, phase, run, fields, "{message}")
                }
                LogLevel::Debug => {
                    tracing::debug!(target: "configurator::guest", configurator, phase, run, fields, "{message}")
                }
                LogLevel::Trace => {
                    tracing::trace!(target: "configurator::guest", configurator, phase, run, fields, "{message}")
                }
            }
        })
    }

    /// What is kept of a leaf's output is kept where people can read it.
    fn clean_kept(&self, output: &mut HandlerOutput) {
        let clean = |document: &mut Document| {
            let value = document.to_value();
            let clean = self.redactor.redact_value(value.clone());
            if clean != value {
                *document = Document::of(&clean).unwrap_or_else(|_| Document::null());
            }
        };
        let kept = [&mut output.data, &mut output.output, &mut output.details];
        let args = output.pass_through_args.iter_mut().map(|(_, arg)| arg);
        kept.into_iter().flatten().chain(args).for_each(clean);
        if let Some(progress) = &mut output.progress {
            progress.message = self.redactor.redact(&progress.message);
        }
    }

    /// What a handler says of a failure is shown to people: without the secrets that it was given.
    fn redact(&self, result: Result<HandlerOutput, CallFault>) -> Result<HandlerOutput, CallFault> {
        if self.redactor.is_empty() {
            return result;
        }
        let clean = |message: String| self.redactor.redact(&message);
        let clean_error = |error: HandlerError| HandlerError {
            message: clean(error.message),
            ..error
        };
        match result {
            Ok(mut output) => {
                if let Outcome::Failed(error) = output.outcome {
                    output.outcome = Outcome::Failed(clean_error(error));
                }
                if self.run.token().is_some() {
                    self.clean_kept(&mut output);
                }
                Ok(output)
            }
            Err(fault) => Err(match fault {
                CallFault::Handler(error) => CallFault::Handler(clean_error(error)),
                CallFault::Trap { message } => CallFault::Trap {
                    message: clean(message),
                },
                CallFault::Deadline { deadline, message } => CallFault::Deadline {
                    deadline,
                    message: clean(message),
                },
                CallFault::Memory { limit, message } => CallFault::Memory {
                    limit,
                    message: clean(message),
                },
                CallFault::Stack { message } => CallFault::Stack {
                    message: clean(message),
                },
                CallFault::InvalidOutput { message } => CallFault::InvalidOutput {
                    message: clean(message),
                },
                CallFault::InputTooLarge { .. }
                | CallFault::OutputTooLarge { .. }
                | CallFault::StatusTooLarge { .. }
                | CallFault::UnknownHandler { .. }
                | CallFault::Host { .. } => fault,
            }),
        }
    }
}

fn no_sets() -> Failure {
    let fault = Fault::new(FaultKind::ResourceGeneric, "the Configurator has no sets");
    host_failure(fault, Reaction::Fail)
}

fn outcome_of(result: &Result<HandlerOutput, CallFault>) -> &'static str {
    match result {
        Ok(HandlerOutput {
            outcome: Outcome::Failed(_),
            ..
        })
        | Err(CallFault::Handler(_)) => "error",
        Ok(_) => "ok",
        Err(CallFault::Trap { .. }) => "trap",
        Err(CallFault::Deadline { .. }) => "deadline",
        Err(CallFault::Memory { .. }) => "memory",
        Err(CallFault::Stack { .. }) => "stack",
        Err(CallFault::InputTooLarge { .. }) => "input_too_large",
        Err(CallFault::OutputTooLarge { .. }) => "output_too_large",
        Err(CallFault::StatusTooLarge { .. }) => "status_too_large",
        Err(CallFault::InvalidOutput { .. }) => "invalid_output",
        Err(CallFault::UnknownHandler { .. }) => "unknown_handler",
        Err(CallFault::Host { .. }) => "host",
    }
}

/// Lays `over` on `base`: objects are merged, everything else is replaced.
fn overlay(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, field) in over {
                match base.get_mut(&name) {
                    Some(known) => overlay(known, field),
                    None => {
                        base.insert(name, field);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}
