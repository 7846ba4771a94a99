use std::collections::{BTreeMap, VecDeque};

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::backoff::RetryPolicy;
use crate::configurator::BatchOptions;
use crate::fixtures::{
    answered, apply, asks, at, configurator, content, document, get, key, member, post, put, secret,
};
use crate::graph::order::Order;
use crate::handler::EventType;
use crate::module::RunModule;
use crate::plan::attempt::{Attempt, AttemptOutcome, StepEnd};
use crate::plan::{PlannedAction, PlannedStep};
use crate::request::{
    BatchErrorStrategy, ExecuteStrategy, KubernetesVerb, OnError, Operation, Request, SecretVerb,
};

mod batch;
mod chain;
mod effects;
mod failure;
mod graph;
mod laws;
mod leaf;
mod sets;

/// The sinks of a test: a request fails with the faults that are scripted for its name, one after another, and then
/// succeeds.
#[derive(Default)]
struct Sinks {
    faults: BTreeMap<String, Vec<Fault>>,
    answers: BTreeMap<String, Vec<Document>>,
    /// Of requests of a graph: how often their object is found not ready.
    unready: BTreeMap<String, u32>,
}

impl Sinks {
    fn failing(scripts: &[(&str, &[FaultKind])]) -> Self {
        let script = |(name, kinds): &(&str, &[FaultKind])| {
            let faults = kinds
                .iter()
                .map(|kind| Fault::new(*kind, "it failed"))
                .collect();
            ((*name).to_owned(), faults)
        };
        Self {
            faults: scripts.iter().map(script).collect(),
            ..Self::default()
        }
    }

    fn send(&mut self, request: &Request, now: Timestamp) -> RequestResult {
        let faults = self
            .faults
            .get_mut(&request.name)
            .filter(|faults| !faults.is_empty());
        if let Some(faults) = faults {
            return plan::failed(request, faults.remove(0), now);
        }
        let mut result = answered(request);
        if let Some(answers) = self.answers.get(&request.name) {
            result.query_objects.clone_from(answers);
        }
        result.finished = Some(now);
        if request.is_declarative {
            result.query_objects.clear();
            result.finished = None;
        }
        result
    }
}

type Handler<'a> = Box<dyn FnMut(&Call) -> Result<HandlerOutput, CallFault> + 'a>;

/// Drives a run as the host does, with a scripted handler and scripted sinks, writes down what happens, and holds
/// the run to what is true of every run. A second passes with every step.
struct Stage<'a> {
    run: Run,
    step: Option<Step>,
    now: Timestamp,
    handler: Handler<'a>,
    sinks: Sinks,
    calls: Vec<Call>,
    /// Changes that have succeeded, by phase and request name.
    done: BTreeMap<(String, String), Operation>,
    departed: Vec<Departed>,
    /// The outcomes of the object's set, one for each attempt.
    sets: VecDeque<SetOutcome>,
    text: String,
}

impl<'a> Stage<'a> {
    fn new(
        configurator: Configurator,
        names: &[&str],
        handler: impl FnMut(&Call) -> Result<HandlerOutput, CallFault> + 'a,
    ) -> Self {
        Self::of(start(configurator, names), handler)
    }

    fn of(
        start: RunStart,
        handler: impl FnMut(&Call) -> Result<HandlerOutput, CallFault> + 'a,
    ) -> Self {
        Self::at_step(Run::start(start, at(0)), handler)
    }

    fn at_step(
        (run, step): (Run, Step),
        handler: impl FnMut(&Call) -> Result<HandlerOutput, CallFault> + 'a,
    ) -> Self {
        Self {
            run,
            step: Some(step),
            now: at(0),
            handler: Box::new(handler),
            sinks: Sinks::default(),
            calls: Vec::new(),
            done: BTreeMap::new(),
            departed: Vec::new(),
            sets: VecDeque::new(),
            text: String::new(),
        }
    }

    fn failing(mut self, scripts: &[(&str, &[FaultKind])]) -> Self {
        self.sinks = Sinks::failing(scripts);
        self
    }

    /// Until it is over.
    fn play(&mut self) -> Finish {
        for _ in 0..1000 {
            if let Some(finish) = self.advance() {
                return finish;
            }
        }
        panic!("the run does not end:\n{:.2000}", self.text)
    }

    /// One step.
    fn advance(&mut self) -> Option<Finish> {
        let members = self.run.members().to_vec();
        let (id, failures) = (self.run.id().to_owned(), self.run.failures());
        self.now = self.now.after(Duration::from_secs(1));
        let step = match self.step.take()? {
            Step::Call(call) => self.call(*call),
            Step::Execute(plan) => self.execute(&plan),
            Step::Reconcile(request) => {
                let names = request.set.entries.iter().map(|entry| &*entry.name);
                let names: Vec<&str> = names.collect();
                self.set(&format!("set of {}", names.join(", ")))
            }
            Step::Dismantle => self.set("dismantle"),
            Step::Pause(pause) => self.pause(&pause),
            Step::Finish(finish) => {
                self.note(&finish_text(&finish));
                return Some(finish);
            }
        };
        for departed in self.run.take_departed() {
            let text = format!(
                "{} leaves, {}",
                departed.member.key,
                failure_text(&departed.failure)
            );
            self.note(&text);
            self.departed.push(departed);
        }
        let is_parked = matches!(&step, Step::Pause(Pause::Park { .. }));
        assert!(
            self.run
                .members()
                .iter()
                .all(|member| members.contains(member)),
            "a run has grown"
        );
        assert_eq!(self.run.id(), id, "the name of a run has changed");
        assert!(
            !is_parked || self.run.failures() == failures,
            "parking has consumed an attempt"
        );
        self.step = Some(step);
        None
    }

    fn call(&mut self, call: Call) -> Step {
        self.note(&call_text(&call));
        let called = (self.handler)(&call);
        if let Err(fault) = &called {
            self.note(&format!("  {fault}"));
        }
        self.calls.push(call);
        self.run.on_call(called, self.now)
    }

    fn execute_graph(&mut self, plan: &Plan, order: &Order) -> Step {
        let mut attempt = Attempt::new(&plan.steps, order);
        while let Some((index, step)) = attempt.next_step() {
            let result = match &step.action {
                PlannedAction::Await(awaited) => awaited.result.clone(),
                PlannedAction::Keep(result) => {
                    self.note(&format!("  keep {}", step.request.name));
                    result.clone()
                }
                _ => self.settle(step, None),
            };
            let unready = self.sinks.unready.get_mut(&step.request.name);
            let is_kept = matches!(step.action, PlannedAction::Keep(_));
            let end = match unready.filter(|times| **times > 0) {
                _ if result.error.is_some() => StepEnd::Failed(result),
                Some(times) if !is_kept => {
                    *times -= 1;
                    self.note(&format!("  {} is not ready", step.request.name));
                    StepEnd::Unready {
                        result,
                        written_status: None,
                        reason: "it is not ready".to_owned(),
                    }
                }
                _ => StepEnd::Ready(result),
            };
            attempt.end(index, end);
        }
        match attempt.finish(self.now) {
            AttemptOutcome::Over(results) => self.run.on_results(results, self.now),
            AttemptOutcome::Unready(unready) => self.run.on_unready(*unready),
        }
    }

    fn execute(&mut self, plan: &Plan) -> Step {
        if let Some(order) = &plan.order {
            return self.execute_graph(plan, order);
        }
        let mut results: BTreeMap<usize, RequestResult> = BTreeMap::new();
        let mut culprit: Option<String> = None;
        for wave in plan.waves() {
            let earlier = culprit.clone();
            for index in wave {
                let step = &plan.steps[index];
                let stopped = if plan.is_serial { &culprit } else { &earlier };
                let result = self.settle(step, stopped.as_deref());
                if result.error.is_some() && step.on_error == OnError::Fail {
                    culprit.get_or_insert_with(|| result.request_name.clone());
                }
                results.insert(index, result);
            }
        }
        self.run
            .on_results(results.into_values().collect(), self.now)
    }

    fn settle(&mut self, step: &PlannedStep, culprit: Option<&str>) -> RequestResult {
        let request = &step.request;
        let place = (self.run.phase().to_owned(), request.name.clone());
        let result = match (&step.action, culprit) {
            (PlannedAction::Keep(result), _) => {
                assert!(request.operation.is_mutating(), "a read was not repeated");
                assert_eq!(self.done.get(&place), Some(&request.operation));
                self.note(&format!("  keep {}", request.name));
                return result.clone();
            }
            (_, Some(culprit)) => plan::failed(request, plan::not_sent(culprit), self.now),
            (PlannedAction::Await(awaited), None) => return awaited.result.clone(),
            (PlannedAction::Refuse(fault), None) => plan::failed(request, fault.clone(), self.now),
            (PlannedAction::Send(_), None) => {
                assert_ne!(
                    self.done.get(&place),
                    Some(&request.operation),
                    "{} was sent again after it had succeeded",
                    request.name
                );
                self.sinks.send(request, self.now)
            }
        };
        match &result.error {
            Some(fault) => self.note(&format!("  {}: {}", request.name, fault.kind)),
            None => self.note(&format!("  {}", request.name)),
        }
        if result.error.is_none() && request.operation.is_mutating() {
            self.done.insert(place, request.operation.clone());
        }
        result
    }

    fn set(&mut self, text: &str) -> Step {
        let outcome = self.sets.pop_front();
        let outcome = outcome.unwrap_or_else(|| SetOutcome::Ready(Vec::new()));
        let came = match &outcome {
            SetOutcome::Ready(_) => "ready".to_owned(),
            SetOutcome::Waiting { .. } => "waiting".to_owned(),
            SetOutcome::Failed(failure) => failure_text(failure),
        };
        self.note(&format!("{text}: {came}"));
        self.run.on_set(outcome, self.now)
    }

    fn pause(&mut self, pause: &Pause) -> Step {
        let text = match pause {
            Pause::Unready { after, reason } => format!("rest for {}, {reason}", millis(*after)),
            Pause::Members { after } => match after {
                Some(after) => {
                    self.now = self.now.after(*after);
                    format!("wait for members for {}", millis(*after))
                }
                None => "wait for members".to_owned(),
            },
            Pause::Resend { after, failure, .. } => {
                self.now = self.now.after(*after);
                format!("resend after {}, {}", millis(*after), failure_text(failure))
            }
            Pause::Park { after, failure, .. } => {
                self.now = self.now.after(*after);
                let server = failure.server.as_ref().map(ToString::to_string);
                format!(
                    "park at {} for {}, {}",
                    server.unwrap_or_default(),
                    millis(*after),
                    failure_text(failure)
                )
            }
        };
        self.note(&text);
        self.run.resume()
    }

    fn note(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Plays to the end and compares what happened.
    #[track_caller]
    fn check(&mut self, expected: Expect) -> Finish {
        let finish = self.play();
        expected.assert_eq(&self.text);
        finish
    }

    fn statuses(&mut self) -> Vec<String> {
        self.run
            .take_statuses()
            .iter()
            .map(|status| status.status.to_string())
            .collect()
    }

    fn events(&mut self) -> Vec<String> {
        self.run
            .take_events()
            .into_iter()
            .map(|event| event.reason)
            .collect()
    }
}

fn start(configurator: Configurator, names: &[&str]) -> RunStart {
    RunStart {
        configurator: Arc::new(configurator),
        ceiling: Arc::new(Ceiling::unlimited()),
        members: names.iter().map(|name| member(name)).collect(),
        chain: Chain::Phases,
        tries: Tries::default(),
        module: RunModule::default(),
    }
}

fn millis(wait: Duration) -> String {
    format!("{} ms", wait.as_millis())
}

fn failure_text(failure: &Failure) -> String {
    let who = if failure.request_name.is_empty() {
        "the handler"
    } else {
        &failure.request_name
    };
    format!("{who}: {}", failure.fault.kind)
}

fn finish_text(finish: &Finish) -> String {
    match finish {
        Finish::Succeeded => "succeeded".into(),
        Finish::Rest { after } => format!("rest for {after:?}"),
        Finish::Restart {
            after,
            failure,
            tries,
        } => {
            format!(
                "restart after {}, {} failed, {}",
                millis(*after),
                tries.failures,
                failure_text(failure)
            )
        }
        Finish::Failed { failure, failures } => {
            format!("failed, {failures} failed, {}", failure_text(failure))
        }
        Finish::Split { failure } => format!("split, {}", failure_text(failure)),
    }
}

/// What a handler sees, in one line.
fn call_text(call: &Call) -> String {
    let HandlerInput {
        request_results,
        pass_through_args,
        context,
        ..
    } = &*call.input;
    let cause = if context.cause == Cause::Entered {
        ""
    } else {
        " again"
    };
    let mut text = format!("{}{cause} (attempt {})", call.handler, context.attempt);
    for (name, document) in pass_through_args {
        text += &format!(" {name}={document}");
    }
    let one = |result: &RequestResult| {
        let fault = result
            .error
            .as_ref()
            .map_or("ok", |fault| fault.kind.name());
        format!("{}:{fault}", result.request_name)
    };
    for (name, entry) in request_results {
        text += &match entry {
            ResultEntry::One(result) => format!(" {}", one(result)),
            ResultEntry::Group(members) => {
                format!(
                    " {name}[{}]",
                    members.iter().map(one).collect::<Vec<_>>().join(" ")
                )
            }
        };
    }
    text
}

fn with(mut request: Request, change: impl FnOnce(&mut Request)) -> Request {
    change(&mut request);
    request
}

fn of(request: Request, object: &str) -> Request {
    with(request, |request| request.of = Some(key(object)))
}

fn serial(mut output: HandlerOutput) -> HandlerOutput {
    output.requests.execute_strategy = ExecuteStrategy::Serial;
    output
}

fn nothing() -> HandlerOutput {
    HandlerOutput::default()
}

fn phases(names: &[&str]) -> Configurator {
    let phase = |name: &&str| Phase {
        name: (*name).into(),
        handler: (*name).into(),
    };
    Configurator {
        phases: names.iter().map(phase).collect(),
        ..configurator()
    }
}

fn in_batches(configurator: Configurator) -> Configurator {
    let batch = BatchOptions {
        max_size: 100,
        max_delay: Duration::ZERO,
    };
    Configurator {
        batch: Some(batch),
        ..configurator
    }
}

fn attempts(max_attempts: u32) -> Configurator {
    let retry = RetryPolicy {
        max_attempts,
        ..RetryPolicy::default()
    };
    Configurator {
        retry,
        ..configurator()
    }
}

fn handler_error(fatal: bool, retry_after: Option<Duration>) -> HandlerError {
    HandlerError {
        message: "no node yet".into(),
        fatal,
        retry_after,
        code: None,
    }
}

fn status(text: &str) -> StatusUpdate {
    StatusUpdate {
        of: None,
        status: document(text),
    }
}

fn event(reason: &str) -> Event {
    Event {
        of: None,
        event_type: EventType::Normal,
        reason: reason.into(),
        message: String::new(),
    }
}
