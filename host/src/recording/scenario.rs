//! A scenario of the simulator that is made of a recording.

use std::collections::{BTreeMap, BTreeSet};

use configurator_core::fault::FaultKind;
use configurator_core::handler::{ResourceObject, WatchEvent, WatchedObject};
use configurator_core::partition::Partition;
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
    /// The namespace of the Configurator, which its keys and secrets are in the partition of; empty: they are in none.
    configurator: String,
    objects: Vec<Value>,
    config: Map<String, Value>,
    secrets: Map<String, Value>,
    http: Vec<Value>,
    extensions: Vec<Value>,
    faults: Vec<Value>,
    /// Namespaces that something was in.
    namespaces: BTreeSet<String>,
    /// What was looked at, or written: what is found there later is the run's own doing.
    seen: BTreeSet<String>,
    /// How often each request has come, by its name and its object.
    came: BTreeMap<(String, String), u32>,
}

impl Recording {
    /// A scenario in which the same happens: the objects of the run, what its requests have found, and the faults that they have met. It is in the form
    /// of the simulator's files; `configurator` is the file of the Configurator, from where the scenario will be.
    ///
    /// What nobody has asked for is not in it. Stand-ins for secrets stay what they are.
    #[must_use]
    pub fn to_scenario(&self, configurator: &str) -> Value {
        let mut world = World {
            configurator: self.configurator.namespace.clone(),
            ..World::default()
        };
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
                    let of = request.of.as_ref().map(ToString::to_string);
                    let object = of.as_ref().or(self.objects.first());
                    world.learn(request, result, object.map_or("*", String::as_str));
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
            ("extensions", world.extensions.into()),
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
        owners_first(objects)
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

    /// The prefix of the partition that a request is in, in the words of a scenario: the one that it names, or that of the Configurator.
    fn partition(&mut self, named: Option<&str>) -> String {
        let namespace = named.unwrap_or(&self.configurator).to_owned();
        if namespace.is_empty() {
            return String::new();
        }
        self.is_in(&namespace);
        Partition::of_namespace(&namespace, &format!("uid-of(Namespace {namespace})"))
            .prefix()
            .to_owned()
    }

    fn learn(&mut self, request: &Request, result: &RequestResult, object: &str) {
        let fault = result.error.as_ref();
        // What was not sent needs no fault of its own.
        if fault.is_some_and(|fault| fault.kind == FaultKind::NotSent) {
            return;
        }
        let came = (request.name.clone(), object.to_owned());
        let came = self.came.entry(came).or_default();
        let after = *came;
        *came += 1;
        if let Some(fault) = fault {
            // What is not there is not there in the scenario either.
            if fault.kind == FaultKind::ResourceNotFound {
                return;
            }
            let mut injected = json!({
                "request": request.name,
                "object": object,
                "times": 1,
                "kind": fault.kind.name(),
                "message": fault.message,
            });
            let retry_after = fault.retry_after.map(kube::core::Duration::from);
            let more = [
                ("after", (after > 0).then(|| after.into())),
                ("status", fault.status.map(Value::from)),
                (
                    "retryAfter",
                    retry_after.map(|span| span.to_string().into()),
                ),
            ];
            for (name, value) in more {
                if let (Some(value), Some(fields)) = (value, injected.as_object_mut()) {
                    fields.insert(name.to_owned(), value);
                }
            }
            self.faults.push(injected);
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
                let partition = self.partition(own.partition.as_deref());
                let verbs = own.operations.iter().map(|operation| operation.verb());
                for (verb, answer) in verbs.zip(answers) {
                    let Some(key) = answer.get("key").and_then(Value::as_str) else {
                        continue;
                    };
                    let place = format!("{partition}{key}");
                    let is_first = self.seen.insert(format!("config {place}"));
                    if is_first && !verb.is_mutating() {
                        self.config.insert(place, stored(key, &answer).into());
                    }
                }
            }
            Operation::Secret(own) => {
                let place = self.partition(own.partition.as_deref()) + &own.name;
                let is_first = self.seen.insert(format!("secret {place}"));
                let value = answers
                    .next_back()
                    .and_then(|answer| answer.get("value").cloned());
                if let (true, true, Some(value)) = (is_first, own.verb == SecretVerb::Get, value) {
                    self.secrets.insert(place, value);
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
            Operation::Extension(own) => {
                let objects: Vec<Value> = answers.collect();
                self.extensions.push(json!({
                    "extension": own.extension,
                    "verb": own.verb,
                    "target": own.target,
                    "objects": objects,
                    "times": 1,
                }));
            }
        }
    }
}

/// Each object after those that own it.
fn owners_first(mut waiting: Vec<Value>) -> Vec<Value> {
    let mut made: Vec<Value> = Vec::new();
    while !waiting.is_empty() {
        let is_free = |object: &Value| {
            let namespace = text(object, "/metadata/namespace");
            let mut owners = owners(object).iter();
            !owners.any(|owner| waiting.iter().any(|one| is_owner(one, owner, namespace)))
        };
        let (mut free, mut rest): (Vec<Value>, Vec<Value>) =
            waiting.iter().cloned().partition(is_free);
        if free.is_empty() {
            std::mem::swap(&mut free, &mut rest);
        }
        for mut object in free {
            keep_owners(&mut object, &made);
            made.push(object);
        }
        waiting = rest;
    }
    made
}

/// Leaves only owners that are there: an object without any of its owners is deleted.
fn keep_owners(object: &mut Value, made: &[Value]) {
    let namespace = text(object, "/metadata/namespace").to_owned();
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") else {
        return;
    };
    owners.retain_mut(|owner| {
        let found = made.iter().find(|one| is_owner(one, owner, &namespace));
        if let (Some(found), Some(owner)) = (found, owner.as_object_mut()) {
            let name = ["/metadata/namespace", "/metadata/name"].map(|part| text(found, part));
            let name = name.join("/");
            let uid = format!(
                "uid-of({} {})",
                text(found, "/kind"),
                name.trim_start_matches('/')
            );
            owner.insert("uid".to_owned(), uid.into());
        }
        found.is_some()
    });
    if owners.is_empty() {
        metadata.remove("ownerReferences");
    }
}

fn owners(object: &Value) -> &[Value] {
    let owners = object.pointer("/metadata/ownerReferences");
    owners.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the object is the owner that one in this namespace names.
fn is_owner(object: &Value, owner: &Value, namespace: &str) -> bool {
    let is_same =
        |of_object: &str, of_owner: &str| text(object, of_object) == text(owner, of_owner);
    let own = text(object, "/metadata/namespace");
    is_same("/apiVersion", "/apiVersion")
        && is_same("/kind", "/kind")
        && is_same("/metadata/name", "/name")
        && (own.is_empty() || own == namespace)
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

#[cfg(test)]
mod tests {
    use configurator_core::fault::Fault;
    use configurator_core::request::{HttpRequest, ObjectRef};
    use configurator_core::time::Timestamp;

    use super::*;

    #[test]
    fn a_fault_is_met_as_often_as_it_was() {
        let mut request = Request::new(
            "ask",
            Operation::Http(HttpRequest {
                method: "GET".into(),
                url: "https://api.example/".into(),
                headers: Vec::new(),
                body: None,
            }),
        );
        request.of = Some(ObjectRef {
            namespace: "shop".into(),
            name: "web".into(),
        });
        let result = |fault: Option<Fault>| RequestResult {
            request_name: "ask".into(),
            sink: request.operation.sink(),
            is_declarative: false,
            query_objects: Vec::new(),
            created: Timestamp::default(),
            finished: None,
            error: fault,
            http_response: None,
        };
        let away = Fault::new(FaultKind::HttpUnavailable, "away")
            .with_status(503)
            .with_retry_after(Some(std::time::Duration::from_secs(90)));
        let mut world = World::default();
        let faults = [
            None,
            Some(Fault::new(FaultKind::NotSent, "not sent")),
            Some(away),
            Some(Fault::new(FaultKind::ResourceGeneric, "strange")),
        ];
        for fault in faults {
            world.learn(&request, &result(fault), "shop/web");
        }
        assert_eq!(
            Value::from(world.faults),
            json!([
                {"request": "ask", "object": "shop/web", "after": 1, "times": 1, "kind": "HttpUnavailable", "message": "away", "status": 503, "retryAfter": "90s"},
                {"request": "ask", "object": "shop/web", "after": 2, "times": 1, "kind": "ResourceGeneric", "message": "strange"},
            ])
        );
    }

    #[test]
    fn an_object_keeps_only_owners_that_are_there() {
        let object = |kind: &str, name: &str, owners: Value| {
            json!({
                "apiVersion": "v1", "kind": kind,
                "metadata": {"namespace": "shop", "name": name, "ownerReferences": owners},
            })
        };
        let owner = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "1-2"});
        let made = owners_first(vec![
            object(
                "Pod",
                "web-0",
                json!([owner("ReplicaSet", "web"), owner("Node", "one")]),
            ),
            object("Pod", "alone", json!([owner("Job", "gone")])),
            object("ReplicaSet", "web", json!([])),
        ]);
        let names: Vec<&str> = made.iter().map(|one| text(one, "/metadata/name")).collect();
        assert_eq!(names, ["alone", "web", "web-0"]);
        assert_eq!(made[0].pointer("/metadata/ownerReferences"), None);
        let left = &owners(&made[2])[0];
        assert_eq!(owners(&made[2]).len(), 1);
        assert_eq!(text(left, "/uid"), "uid-of(ReplicaSet shop/web)");
    }
}
