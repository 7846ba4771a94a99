//! Records what runs do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use configurator_core::handler::{CallFault, CallLimits, HandlerInput, HandlerOutput};
use configurator_core::request::{ObjectKey, ObjectRef, Operation};
use configurator_core::run::{Call, Chain, Finish, Pause, Run};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::view;
use crate::observer::{Notice, RunEnd, RunObserver};
use crate::redaction::Redactor;

/// How the end of an attempt begins that goes on when objects change.
const WAITS: &str = "waits for ";

/// What was seen so far.
#[derive(Default)]
pub(super) struct Recorder {
    seen: Mutex<Seen>,
    calls: Option<Calls>,
}

/// Calls as they were made, so that they can be made again.
struct Calls {
    made: Mutex<Vec<MadeCall>>,
    max: usize,
    too_many: CancellationToken,
}

/// A call.
pub(super) struct MadeCall {
    pub(super) handler: String,
    pub(super) input: Arc<HandlerInput>,
    pub(super) limits: CallLimits,
    pub(super) result: Result<HandlerOutput, CallFault>,
}

/// Runs in the order in which they began.
#[derive(Default, Clone)]
pub(super) struct Seen {
    pub(super) runs: Vec<SeenRun>,
    pub(super) objects: BTreeMap<ObjectKey, String>,
    pub(super) notices: Vec<Notice>,
}

/// One run: its calls, and how it ended.
#[derive(Clone)]
pub(super) struct SeenRun {
    id: String,
    is_over: bool,
    pub(super) view: Map<String, Value>,
}

impl Recorder {
    /// One that keeps calls as well, and lets no more than `max` be made.
    pub(super) fn of_calls(max: usize) -> Self {
        Self {
            calls: Some(Calls {
                made: Mutex::default(),
                max,
                too_many: CancellationToken::new(),
            }),
            ..Self::default()
        }
    }

    /// Returns when there were this many calls, and another was to be made.
    pub(super) async fn too_many_calls(&self) -> usize {
        let Some(calls) = &self.calls else {
            return std::future::pending().await;
        };
        calls.too_many.cancelled().await;
        calls.max
    }

    /// The calls, which are not kept any more.
    pub(super) fn take_calls(&self) -> Vec<MadeCall> {
        let made = self.calls.as_ref().map(|calls| &calls.made);
        made.map(|made| std::mem::take(&mut *made.lock().unwrap_or_else(PoisonError::into_inner)))
            .unwrap_or_default()
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn with_run(&self, run: &Run, note: impl FnOnce(&mut Map<String, Value>) -> bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // The entries of all leaves of a phase have the same id.
        let id = match run.token() {
            Some(token) => format!("{} {token}", run.id()),
            None => run.id().to_owned(),
        };
        let at = seen
            .runs
            .iter()
            .position(|known| known.id == id && !known.is_over);
        let at = at.unwrap_or_else(|| {
            let objects: Vec<Value> = run
                .members()
                .iter()
                .map(|member| format!("{} {}", member.event.name(), member.key).into())
                .collect();
            let mut view = Map::new();
            view.insert("objects".into(), objects.into());
            if run.chain() == Chain::Deletion {
                view.insert("chain".into(), "deletion".into());
            }
            view.insert("calls".into(), Value::Array(Vec::new()));
            seen.runs.push(SeenRun {
                id,
                is_over: false,
                view,
            });
            seen.runs.len() - 1
        });
        if let Some(known) = seen.runs.get_mut(at) {
            known.is_over = note(&mut known.view);
        }
    }
}

/// Without what the secret store has answered.
fn redacted(run: &Run, view: Map<String, Value>) -> Value {
    let mut redactor = Redactor::default();
    redactor.learn(run.secrets());
    redactor.redact_value(Value::Object(view))
}

impl RunObserver for Arc<Recorder> {
    fn may_call(&self, _: &Run) -> bool {
        let Some(calls) = &self.calls else {
            return true;
        };
        let made = calls.made.lock().unwrap_or_else(PoisonError::into_inner);
        let may = made.len() < calls.max;
        if !may {
            calls.too_many.cancel();
        }
        may
    }

    fn called(&self, run: &Run, call: &Call, result: &Result<HandlerOutput, CallFault>) {
        if let Some(calls) = &self.calls {
            let mut made = calls.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push(MadeCall {
                handler: call.handler.clone(),
                input: call.input.clone(),
                limits: run.configurator().limits,
                result: result.clone(),
            });
        }
        let context = &call.input.context;
        let mut view = Map::new();
        view.insert("phase".into(), context.phase.as_str().into());
        if run.token().is_some() {
            view.insert("node".into(), context.node.as_str().into());
            view.insert("entry".into(), context.entry.into());
            view.insert("cause".into(), view::cause(&context.cause));
        }
        view.insert("attempt".into(), context.attempt.into());
        match result {
            Ok(output) => {
                view.insert("requests".into(), view::requests(&output.requests).into());
                if let Some(set) = &output.desired {
                    view.insert("desired".into(), view::desired(set));
                }
                if !output.pass_through_args.is_empty() {
                    let args: Map<String, Value> = output
                        .pass_through_args
                        .iter()
                        .map(|(name, arg)| (name.clone(), arg.to_value()))
                        .collect();
                    view.insert("passes".into(), args.into());
                }
                view::said(output, &mut view);
                let statuses: Vec<Value> = output
                    .statuses
                    .iter()
                    .map(|status| status.status.to_value())
                    .collect();
                if !statuses.is_empty() {
                    view.insert("statuses".into(), statuses.into());
                }
                let events: Vec<Value> = output
                    .events
                    .iter()
                    .map(|event| json!({ &event.reason: event.message }))
                    .collect();
                if !events.is_empty() {
                    view.insert("events".into(), events.into());
                }
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                for request in &output.requests.resource_requests {
                    if let Operation::Kubernetes(kubernetes) = &request.operation
                        && kubernetes.verb.is_mutating()
                    {
                        seen.objects
                            .insert(kubernetes.object_key(), kubernetes.kind.clone());
                    }
                }
            }
            Err(fault) => {
                let text = fault.to_string();
                let first = text.lines().next().unwrap_or_default();
                view.insert("fault".into(), first.into());
            }
        }
        let view = redacted(run, view);
        self.with_run(run, |run| {
            if let Some(calls) = run.get_mut("calls").and_then(Value::as_array_mut) {
                calls.push(view);
            }
            false
        });
    }

    fn ended(&self, run: &Run, end: &RunEnd) {
        let (text, is_over) = match end {
            RunEnd::Finished(Finish::Succeeded | Finish::Rest { .. }) => {
                ("succeeded".to_owned(), true)
            }
            RunEnd::Finished(Finish::Restart { failure, .. }) => {
                (format!("begins again: {}", failure.fault), true)
            }
            RunEnd::Finished(Finish::Failed { failure, failures }) => (
                format!("given up after {failures}: {}", failure.fault),
                true,
            ),
            RunEnd::Finished(Finish::Split { failure }) => {
                (format!("halved: {}", failure.fault), true)
            }
            RunEnd::Paused(Pause::Resend { failure, .. }) => {
                (format!("sent again: {}", failure.fault), false)
            }
            RunEnd::Paused(Pause::Members { .. }) => {
                ("waits for members of its set".to_owned(), false)
            }
            RunEnd::Paused(Pause::Unready { reason, .. }) => (format!("waits for {reason}"), false),
            RunEnd::Paused(Pause::Park { failure, .. }) => {
                let sink = failure
                    .server
                    .as_ref()
                    .map_or("", |server| server.sink.name());
                (
                    format!("parked for the {sink} sink: {}", failure.fault),
                    false,
                )
            }
        };
        let first = text.lines().next().unwrap_or_default().to_owned();
        self.with_run(run, |run| {
            let ends = run
                .entry("ends")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Some(ends) = ends.as_array_mut() {
                // How often objects are looked at is no behaviour of the handler.
                let last = ends.last().and_then(Value::as_str);
                if last.is_some_and(|last| last.starts_with(WAITS)) {
                    ends.pop();
                }
                ends.push(first.into());
            }
            is_over
        });
    }

    fn noticed(&self, _: &ObjectRef, notice: &Notice) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .notices
            .push(notice.clone());
    }
}
