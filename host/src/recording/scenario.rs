//! A scenario of the simulator that is made of a recording.

use std::collections::BTreeSet;

use configurator_core::fault::FaultKind;
use configurator_core::handler::{ResourceObject, WatchEvent, WatchedObject};
use configurator_core::request::{Operation, Request, SecretVerb};
use configurator_core::result::RequestResult;
use serde_json::{Map, Value, json};

use super::Recording;
use crate::objects::text;

/// What the API writes into an object, and a scenario's API writes anew.
const WRITTEN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
];

/// Namespaces that every API begins with.
const BORN: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The world that a run has found, as far as it has looked: what a scenario begins with.
#[derive(Default)]
struct World {
    objects: Vec<Value>,
    config: Map<String, Value>,
    secrets: Map<String, Value>,
    http: Vec<Value>,
    faults: Vec<Value>,
    /// Namespaces that something was in.
    namespaces: BTreeSet<String>,
    /// What was looked at, or written: what is found there later is the run's own doing.
    seen: BTreeSet<String>,
}

impl Recording {
    /// A scenario in which the same happens: the objects of the run, what its requests have found, and the faults that they have met. It is in the form
    /// of the simulator's files; `configurator` is the file of the Configurator, from where the scenario will be.
    ///
    /// What nobody has asked for is not in it. Stand-ins for secrets stay what they are.
    #[must_use]
    pub fn to_scenario(&self, configurator: &str) -> Value {
        let mut world = World::default();
        let mut steps = Vec::new();
        let first = self.calls.first().map(|call| &call.input.resource_object);
        let watched: &[WatchedObject] = match first {
            Some(ResourceObject::One(one)) => std::slice::from_ref(one),
            Some(ResourceObject::Batch(all)) => all,
            None => &[],
        };
        for watched in watched {
            let object = world.object(watched.object.to_value());
            if watched.event == WatchEvent::Deleted {
                let text = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
                steps.push(json!({"delete": {
                    "apiVersion": text("/apiVersion"),
                    "kind": text("/kind"),
                    "namespace": text("/metadata/namespace"),
                    "name": text("/metadata/name"),
                }}));
            }
        }
        for call in &self.calls {
            let requests = call.result.as_ref().map(|output| &output.requests);
            let requests = requests.map_or(&[][..], |requests| &requests.resource_requests);
            for request in requests {
                let mut results = call.results.iter();
                if let Some(result) = results.find(|result| result.request_name == request.name) {
                    world.learn(request, result, call.input.context.attempt);
                }
            }
        }
        let description = format!(
            "As recorded of {} on {}.",
            self.objects.join(", "),
            self.time
        );
        let mut scenario = json!({
            "description": description,
            "configurator": configurator,
            "start": self.time,
        });
        let parts = [
            ("objects", Value::from(world.objects())),
            ("config", world.config.into()),
            ("secrets", world.secrets.into()),
            ("http", world.http.into()),
            ("faults", world.faults.into()),
            ("steps", steps.into()),
        ];
        for (name, part) in parts {
            let is_empty = match &part {
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            if let (false, Some(scenario)) = (is_empty, scenario.as_object_mut()) {
                scenario.insert(name.to_owned(), part);
            }
        }
        scenario
    }
}

impl World {
    /// What is there at the start, in an order in which it can be made.
    fn objects(&mut self) -> Vec<Value> {
        let mut objects = std::mem::take(&mut self.objects);
        let is_namespace = |object: &Value| text(object, "/kind") == "Namespace";
        for name in &self.namespaces {
            let is_known = objects
                .iter()
                .any(|object| is_namespace(object) && text(object, "/metadata/name") == name);
            if !is_known {
                objects.push(
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
                );
            }
        }
        objects.sort_by_key(|object| !is_namespace(object));
        objects
    }

    /// An object that is there at the start, and what it is without what the API writes.
    fn object(&mut self, mut object: Value) -> Value {
        let parts = [
            "/apiVersion",
            "/kind",
            "/metadata/namespace",
            "/metadata/name",
        ];
        self.is_in(text(&object, "/metadata/namespace"));
        let name = parts.map(|part| text(&object, part)).join(" ");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !WRITTEN.contains(&field.as_str()));
        }
        if self.seen.insert(name) {
            self.objects.push(object.clone());
        }
        object
    }

    /// Something was in this namespace, which must exist then.
    fn is_in(&mut self, namespace: &str) {
        if !namespace.is_empty() && !BORN.contains(&namespace) {
            self.namespaces.insert(namespace.to_owned());
        }
    }

    fn learn(&mut self, request: &Request, result: &RequestResult, attempt: u32) {
        if let Some(fault) = &result.error {
            // What is not there is not there in the scenario either; what was not sent needs no fault of its own.
            if !matches!(fault.kind, FaultKind::ResourceNotFound | FaultKind::NotSent) {
                self.faults.push(json!({
                    "request": request.name,
                    "attempts": [attempt],
                    "kind": fault.kind.name(),
                    "message": fault.message,
                    "status": fault.status,
                }));
            }
            return;
        }
        let mut answers = result.query_objects.iter().map(|answer| answer.to_value());
        match &request.operation {
            Operation::Kubernetes(own) if own.verb.is_mutating() => {
                self.is_in(&own.namespace);
                for answer in answers {
                    let kept = self.objects.len();
                    self.object(answer);
                    self.objects.truncate(kept);
                }
            }
            Operation::Kubernetes(_) => {
                for answer in answers {
                    match answer.get("items").and_then(Value::as_array) {
                        Some(items) => items.iter().for_each(|item| {
                            self.object(item.clone());
                        }),
                        None => {
                            self.object(answer);
                        }
                    }
                }
            }
            Operation::Config(own) => {
                let verbs = own.operations.iter().map(|operation| operation.verb());
                for (verb, answer) in verbs.zip(answers) {
                    let Some(key) = answer.get("key").and_then(Value::as_str) else {
                        continue;
                    };
                    let is_first = self.seen.insert(format!("config {key}"));
                    if is_first && !verb.is_mutating() {
                        self.config
                            .insert(key.to_owned(), stored(key, &answer).into());
                    }
                }
            }
            Operation::Secret(own) => {
                let is_first = self.seen.insert(format!("secret {}", own.name));
                let value = answers
                    .next_back()
                    .and_then(|answer| answer.get("value").cloned());
                if let (true, true, Some(value)) = (is_first, own.verb == SecretVerb::Get, value) {
                    self.secrets.insert(own.name.clone(), value);
                }
            }
            Operation::Http(own) => {
                if let Some(response) = &result.http_response {
                    let headers = response.headers.iter().cloned();
                    let headers: Map<String, Value> =
                        headers.map(|(name, value)| (name, value.into())).collect();
                    self.http.push(json!({
                        "method": own.method,
                        "url": own.url,
                        "status": response.status,
                        "headers": headers,
                        "body": String::from_utf8_lossy(&response.body),
                        "times": 1,
                    }));
                }
            }
        }
    }
}

/// An entry of the config store as it lies there.
fn stored(key: &str, answer: &Value) -> String {
    let value = answer.get("value").and_then(Value::as_str);
    if !key.starts_with("resources/") {
        return value.unwrap_or_default().to_owned();
    }
    let mut entry = Map::new();
    for field in ["uid", "value"] {
        if let Some(value) = answer.get(field) {
            entry.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(entry).to_string()
}
