//! One call, as `cases.yaml` has it. Documents are JSON texts, so that they reach the module byte for byte.

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::handler::{
    Cause, Context, HandlerError, HandlerInput, HandlerState, ResourceObject, WatchEvent,
    WatchedObject,
};
use configurator_core::request::SinkName;
use configurator_core::result::{HttpResponse, RequestResult, ResultEntry};
use configurator_tests::pipeline_plan::Planned;
use serde::Deserialize;
use serde_json::{Value, json};

/// A call. What is not given has a plain default.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub handler: String,
    #[serde(default)]
    object: Option<String>,
    /// In place of an object, one with a list of so many.
    #[serde(default)]
    items: u32,
    #[serde(default)]
    batch: Vec<Batched>,
    #[serde(default)]
    parameters: Option<String>,
    #[serde(default)]
    results: Vec<(String, Entry)>,
    #[serde(default)]
    args: Vec<(String, String)>,
    #[serde(default)]
    outputs: Vec<(String, String)>,
    #[serde(default)]
    last: Option<Last>,
    #[serde(default)]
    cause: Option<Value>,
    #[serde(default)]
    plan: Option<Planned>,
    #[serde(default)]
    pub seed: u64,
    /// Documents that are passed on are told as they stand.
    #[serde(default)]
    pub as_written: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batched {
    event: String,
    object: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Group(Vec<Answer>),
    One(Answer),
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Answer {
    name: String,
    #[serde(default)]
    objects: Vec<String>,
    #[serde(default)]
    error: Option<Failure>,
    #[serde(default)]
    response: Option<Response>,
    #[serde(default)]
    declarative: bool,
    #[serde(default)]
    sink: Option<SinkName>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: String,
    message: String,
    #[serde(default)]
    status: Option<u16>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Response {
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    /// In place of a body, one that need not be text.
    #[serde(default)]
    bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    fatal: bool,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    results: Vec<(String, Entry)>,
}

const NOW: &str = "2026-02-28T23:59:58.125Z";

impl Case {
    /// A call of a handler with nothing but a seed.
    pub fn of_seed(handler: &str, seed: u64) -> Self {
        Self {
            name: handler.into(),
            handler: handler.into(),
            object: None,
            items: 0,
            batch: Vec::new(),
            parameters: None,
            results: Vec::new(),
            args: Vec::new(),
            outputs: Vec::new(),
            last: None,
            cause: None,
            plan: None,
            seed,
            as_written: false,
        }
    }

    pub fn input(&self) -> HandlerInput {
        HandlerInput {
            resource_object: self.objects(),
            request_results: entries(&self.results),
            pass_through_args: documents(&self.args),
            last: self.last.as_ref().map(state),
            outputs: documents(&self.outputs),
            plan: self.plan.as_ref().map(Planned::plan),
            context: Context {
                configurator: "conformance".into(),
                phase: "install".into(),
                node: "install/prepare".into(),
                entry: 2,
                attempt: 3,
                cause: self.cause.as_ref().map_or(Cause::Entered, cause),
                now: NOW.parse().unwrap(),
                seed: self.seed,
                parameters: document(self.parameters.as_deref().unwrap_or("{}")),
                run_id: "run-1".into(),
            },
        }
    }

    fn objects(&self) -> ResourceObject {
        let watched = |batched: &Batched| WatchedObject {
            object: document(&batched.object),
            event: match &*batched.event {
                "modified" => WatchEvent::Modified,
                "deleted" => WatchEvent::Deleted,
                "resync" => WatchEvent::Resync,
                _ => WatchEvent::Added,
            },
        };
        if !self.batch.is_empty() {
            return ResourceObject::Batch(self.batch.iter().map(watched).collect());
        }
        ResourceObject::One(WatchedObject {
            object: match (self.items, &self.object) {
                (0, None) => document("{}"),
                (0, Some(object)) => document(object),
                (items, _) => large(items),
            },
            event: WatchEvent::Added,
        })
    }
}

fn cause(value: &Value) -> Cause {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn large(items: u32) -> Document {
    let item = |index: u32| json!({"index": index, "name": format!("item {index}"), "half": f64::from(index) / 2.0});
    let items: Vec<Value> = (0..items).map(item).collect();
    Document::of(&json!({"items": items})).unwrap()
}

fn document(text: &str) -> Document {
    Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn documents(texts: &[(String, String)]) -> Vec<(String, Document)> {
    let of = |(name, text): &(String, String)| (name.clone(), document(text));
    texts.iter().map(of).collect()
}

fn entries(entries: &[(String, Entry)]) -> Vec<(String, ResultEntry)> {
    let of = |(name, entry): &(String, Entry)| {
        let entry = match entry {
            Entry::One(answer) => ResultEntry::One(result(answer)),
            Entry::Group(answers) => ResultEntry::Group(answers.iter().map(result).collect()),
        };
        (name.clone(), entry)
    };
    entries.iter().map(of).collect()
}

fn result(answer: &Answer) -> RequestResult {
    let sink = match (answer.sink, &answer.response) {
        (Some(sink), _) => sink,
        (None, Some(_)) => SinkName::Http,
        (None, None) => SinkName::Kubernetes,
    };
    RequestResult {
        request_name: answer.name.clone(),
        sink,
        is_declarative: answer.declarative,
        query_objects: answer.objects.iter().map(|text| document(text)).collect(),
        created: NOW.parse().unwrap(),
        finished: (!answer.declarative).then(|| NOW.parse().unwrap()),
        error: answer.error.as_ref().map(fault),
        http_response: answer.response.as_ref().map(|response| HttpResponse {
            status: response.status,
            headers: response.headers.clone(),
            body: match response.bytes.as_slice() {
                [] => response.body.clone().into_bytes(),
                bytes => bytes.to_owned(),
            },
        }),
    }
}

fn fault(failure: &Failure) -> Fault {
    let named = |kind: &FaultKind| format!("{kind:?}") == failure.kind;
    let kind = FaultKind::ALL.into_iter().find(named);
    let kind = kind.unwrap_or_else(|| panic!("{} is no kind of fault", failure.kind));
    Fault {
        status: failure.status,
        ..Fault::new(kind, &*failure.message)
    }
}

fn state(last: &Last) -> HandlerState {
    HandlerState {
        failed: last.error.is_some(),
        fatal: last.fatal,
        error: last.error.as_ref().map(|message| HandlerError {
            message: message.clone(),
            fatal: last.fatal,
            retry_after: None,
            code: None,
        }),
        data: last.data.as_deref().map(document),
        request_results: entries(&last.results),
        ..HandlerState::default()
    }
}
