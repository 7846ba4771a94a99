//! A handler that does what the parameters of its Configurator say: for tests of the host.
//!
//! `spec.parameters` has a script for each phase, by its name; in a machine the parameters of a node may have one under
//! `script`, or a list under `scripts`, one for each entry, the last for all that follow. In every text of a script, `{name}`,
//! `{namespace}`, `{uid}`, `{event}`, `{run}`, `{attempt}`, `{entry}`, `{cause}`, `{results}`, `{last}`, `{outputs}`, `{args}`,
//! `{now}` and `{seed}` stand for what the call was given, and `{calls}` for how many calls the instance has served before.

mod desired;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use configurator_sdk::configstore::{AppConf, Basic};
use configurator_sdk::extension::Extension;
use configurator_sdk::http::Http;
use configurator_sdk::kubernetes::{Kubernetes, Resource};
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{
    Accepts, Cause, ErrorKind, EventType, Handler, HandlerError, Input, ObjectKey, ObjectRef,
    OnError, Operation, Output, Request, RequestResult, ResultEntry, Wake, WatchedObject, log,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::desired::ScriptedSet;

/// What a phase does.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Script {
    /// Scripts that replace this one for objects whose names begin with a prefix: see [`for_names`].
    #[serde(rename = "ifNamed")]
    _if_named: IgnoredAny,
    requests: Vec<ScriptedRequest>,
    serial: bool,
    graph: bool,
    status: Option<Value>,
    event: Option<String>,
    log: Option<String>,
    /// Computes for this many steps first.
    compute: u64,
    fail: Option<Failure>,
    misbehave: Option<Misbehaviour>,
    again: bool,
    again_after_ms: Option<u64>,
    wait: Option<Wait>,
    next: Option<String>,
    data: Option<Value>,
    output: Option<Value>,
    details: Option<Value>,
    progress: Option<(u8, String)>,
    pass: BTreeMap<String, Value>,
    desired: Option<ScriptedSet>,
    /// A JSON pointer to a text of the object, with the set in the form of `desired`.
    desired_at: Option<String>,
    /// What it does instead, where a request of the phase before has failed.
    if_error: Option<Box<Script>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Wait {
    after_ms: Option<u64>,
    signals: Vec<String>,
    /// ConfigMaps of the object's namespace.
    config_maps: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptedRequest {
    name: String,
    /// The name of the object of a batch that it is made for.
    #[serde(default)]
    of: Option<String>,
    #[serde(default)]
    group_by: Option<String>,
    #[serde(default)]
    on_error: Option<Reaction>,
    #[serde(default)]
    bootstrap_dep: bool,
    #[serde(default)]
    declarative: bool,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    depends_on: Vec<String>,
    /// `exists`, `observed`, `healthy` or an expression.
    #[serde(default)]
    ready_when: Option<String>,
    /// The namespace whose partition of the stores is meant.
    #[serde(default)]
    partition: Option<String>,
    #[serde(flatten)]
    operation: ScriptedOperation,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Reaction {
    Fail,
    Catch,
    Drop,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum ScriptedOperation {
    /// Applies an object; its type and name are in the body.
    Apply(Value),
    /// Deletes a ConfigMap of the object's namespace.
    DeleteConfigMap(String),
    /// Reads a ConfigMap of the object's namespace.
    GetConfigMap(String),
    /// Lists the ConfigMaps of a namespace.
    ListConfigMaps(String),
    /// Sends any request to Kubernetes.
    Ask(Box<Asked>),
    /// Writes a plain key.
    Put { key: String, value: String },
    /// Removes a plain key.
    Remove(String),
    /// Writes a key of the application configuration of the object.
    AppConf { key: String, value: String },
    /// Makes a secret.
    Secret(String),
    /// Reads a secret.
    ReadSecret(String),
    /// Asks an HTTP endpoint.
    Http {
        method: String,
        url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        body: String,
    },
    /// Sends a request to an extension.
    Extension {
        extension: String,
        verb: String,
        target: String,
        #[serde(default)]
        body: Value,
    },
}

/// A request to Kubernetes by all of its parts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    verb: String,
    #[serde(default)]
    group: String,
    #[serde(default = "v1")]
    version: String,
    plural: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    subresource: Option<String>,
    #[serde(default)]
    body: Value,
}

fn v1() -> String {
    "v1".to_owned()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Failure {
    message: String,
    #[serde(default)]
    is_fatal: bool,
    /// Attempts that fail; the others go on.
    #[serde(default)]
    attempts: Vec<u32>,
    #[serde(default)]
    after_ms: Option<u64>,
    #[serde(default)]
    code: Option<String>,
    /// Causes for which it fails; for the others it goes on.
    #[serde(default)]
    causes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Misbehaviour {
    Panic,
    Loop,
    Recurse,
    Allocate,
    ReturnMuch,
    FloodLog,
    SameNames,
    NoJson,
    DeepJson,
    /// A status of a megabyte.
    LargeStatus,
}

fn root(input: &Input) -> Result<Output, HandlerError> {
    let parameters: Value = input.parameters()?;
    match script_of(&parameters, input) {
        Some(script) => play(script, input),
        None => Ok(Output::new()),
    }
}

/// Does what the parameters say under `remedy`.
fn remedy(input: &Input) -> Result<Output, HandlerError> {
    let parameters: Value = input.parameters()?;
    match parameters.get("remedy") {
        Some(script) => play(script, input),
        None => Ok(Output::new()),
    }
}

fn play(script: &Value, input: &Input) -> Result<Output, HandlerError> {
    let keys = keys(input)?;
    let mut filled = filled_in(for_names(script, &keys).clone(), &words(input)?);
    multiply(&mut filled, &keys);
    let mut script: Script = serde_json::from_value(filled)?;
    let has_failed = |entry: &ResultEntry| match entry {
        ResultEntry::One(result) => result.error.is_some(),
        ResultEntry::Group(results) => results.iter().any(|result| result.error.is_some()),
    };
    let results = &input.request_results;
    if let Some(other) = script.if_error.take()
        && results.iter().any(|(_, entry)| has_failed(entry))
    {
        script = *other;
    }
    let mut sum = 0_u64;
    for step in 0..script.compute {
        sum = std::hint::black_box(sum.wrapping_add(step));
    }
    if let Some(line) = &script.log {
        log::warn(line);
    }
    if let Some(misbehaviour) = &script.misbehave {
        return Ok(misbehave(misbehaviour));
    }
    if let Some(failure) = &script.fail
        && (failure.attempts.is_empty() || failure.attempts.contains(&input.context.attempt))
        && (failure.causes.is_empty() || failure.causes.contains(&cause_of(input)))
    {
        let error = if failure.is_fatal {
            HandlerError::fatal(&failure.message)
        } else {
            HandlerError::retry(&failure.message)
        };
        let error = match &failure.code {
            Some(code) => error.code(code),
            None => error,
        };
        return Err(match failure.after_ms {
            Some(after) => error.after(Duration::from_millis(after)),
            None => error,
        });
    }
    let mut output = Output::new();
    if script.serial {
        output = output.serial();
    }
    if script.graph {
        output = output.graph();
    }
    if let Some(status) = &script.status {
        output = output.status(status);
    }
    if let Some(message) = &script.event {
        output = output.event(EventType::Normal, "Scripted", message);
    }
    for request in std::mem::take(&mut script.requests) {
        output.push(made(request, input)?);
    }
    turned(output, script, input)
}

/// Returns the script under `ifNamed` whose prefix an object's name has, or the script itself.
fn for_names<'s>(script: &'s Value, keys: &[ObjectRef]) -> &'s Value {
    let others = script.get("ifNamed").and_then(Value::as_object);
    let mut others = others.into_iter().flatten();
    let is_named = |prefix: &str| keys.iter().any(|key| key.name.starts_with(prefix));
    let other = others.find(|(prefix, _)| is_named(prefix));
    other.map_or(script, |(_, other)| other)
}

/// Puts several requests in the place of one: with `forEach`, one for each object, for whose name `{object}` stands in its texts; with
/// `repeat`, so many, for whose number `{number}` stands.
fn multiply(script: &mut Value, keys: &[ObjectRef]) {
    let Some(Value::Array(requests)) = script.get_mut("requests") else {
        return;
    };
    let made = std::mem::take(requests)
        .into_iter()
        .flat_map(|mut request| {
            let mut take = |name: &str| request.as_object_mut()?.remove(name);
            let (is_for_each, repeat) = (take("forEach").is_some(), take("repeat"));
            let words: Vec<(&str, String)> = match repeat.and_then(|number| number.as_u64()) {
                Some(number) => (0..number)
                    .map(|number| ("{number}", number.to_string()))
                    .collect(),
                None if is_for_each => keys
                    .iter()
                    .map(|key| ("{object}", key.name.clone()))
                    .collect(),
                None => return vec![request],
            };
            let made = words
                .into_iter()
                .map(|word| filled_in(request.clone(), &[word]));
            made.collect()
        });
    *requests = made.collect();
}

/// That of the node, or of the phase.
fn script_of<'p>(parameters: &'p Value, input: &Input) -> Option<&'p Value> {
    if let Some(Value::Array(scripts)) = parameters.get("scripts") {
        let entry = usize::try_from(input.context.entry).unwrap_or(usize::MAX);
        return scripts.get(entry.saturating_sub(1)).or(scripts.last());
    }
    let own = parameters.get("script");
    own.or_else(|| parameters.get(&input.context.phase))
}

/// What only a machine knows.
fn turned(mut output: Output, script: Script, input: &Input) -> Result<Output, HandlerError> {
    if script.again {
        output = output.again();
    }
    if let Some(after) = script.again_after_ms {
        output = output.again_after(Duration::from_millis(after));
    }
    if let Some(wait) = script.wait {
        let [_, namespace] = own_name(input)?;
        let object = |name| ObjectKey {
            group: String::new(),
            version: "v1".into(),
            plural: "configmaps".into(),
            namespace: namespace.clone(),
            name,
        };
        output = output.wait(Wake {
            after: wait.after_ms,
            signals: wait.signals,
            objects: wait.config_maps.into_iter().map(object).collect(),
        });
    }
    if let Some(next) = script.next {
        output = output.next_phase(next);
    }
    if let Some(data) = script.data {
        output = output.data(data);
    }
    if let Some(left) = script.output {
        output = output.output(left);
    }
    if let Some(details) = script.details {
        output = output.details(details);
    }
    if let Some((percent, message)) = script.progress {
        output = output.progress(percent, message);
    }
    for (name, value) in &script.pass {
        output = output.pass(name, value)?;
    }
    if let Some(set) = script.desired {
        output = output.desired(set.made(input)?);
    }
    if let Some(pointer) = script.desired_at {
        let object: Value = input.object()?;
        let text = object.pointer(&pointer).and_then(Value::as_str);
        if let Some(text) = text {
            let set: ScriptedSet = serde_json::from_str(text)?;
            output = output.desired(set.made(input)?);
        }
    }
    Ok(output)
}

fn made(scripted: ScriptedRequest, input: &Input) -> Result<Request, HandlerError> {
    let mut request = Request::new(scripted.name, operation(scripted.operation, input)?);
    request.is_declarative = scripted.declarative;
    request.group_by = scripted.group_by;
    if let Some(name) = scripted.of {
        request.of = keys(input)?.into_iter().find(|key| key.name == name);
    }
    request.bootstrap_dep = scripted.bootstrap_dep;
    request.partition = scripted.partition;
    if let Some(reaction) = scripted.on_error {
        request = request.on_error(match reaction {
            Reaction::Fail => OnError::Fail,
            Reaction::Catch => OnError::CatchError,
            Reaction::Drop => OnError::DropError,
        });
    }
    if let Some(timeout) = scripted.timeout_ms {
        request = request.timeout(Duration::from_millis(timeout));
    }
    for name in scripted.depends_on {
        request = request.depends_on(name);
    }
    if let Some(readiness) = scripted.ready_when {
        request = request.ready_when(desired::readiness(readiness));
    }
    Ok(request)
}

fn operation(scripted: ScriptedOperation, input: &Input) -> Result<Operation, HandlerError> {
    const CONFIG_MAP: Resource = configurator_sdk::kubernetes::CONFIG_MAP;
    let [name, namespace] = own_name(input)?;
    Ok(match scripted {
        ScriptedOperation::Apply(body) => {
            let text = |pointer: &str| {
                let found = body.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            let at = (text("/metadata/namespace"), text("/metadata/name"));
            resource_of(&text("/kind"))?.apply(at, &body).into()
        }
        ScriptedOperation::DeleteConfigMap(other) => CONFIG_MAP.delete((namespace, other)).into(),
        ScriptedOperation::GetConfigMap(other) => CONFIG_MAP.get((namespace, other)).into(),
        ScriptedOperation::ListConfigMaps(namespace) => CONFIG_MAP.list(namespace).into(),
        ScriptedOperation::Ask(asked) => ask(*asked)?,
        ScriptedOperation::Put { key, value } => Basic::new(key).put(value).into(),
        ScriptedOperation::Remove(key) => Basic::new(key).delete().into(),
        ScriptedOperation::AppConf { key, value } => AppConf::new(name, key)
            .namespace(namespace)
            .create(value)
            .into(),
        ScriptedOperation::Secret(name) => Secret::new(name).create().into(),
        ScriptedOperation::ReadSecret(name) => Secret::new(name).get().into(),
        ScriptedOperation::Http {
            method,
            url,
            headers,
            body,
        } => {
            let request = Http::new(method, url).body(body);
            headers
                .into_iter()
                .fold(request, |request, (name, value)| {
                    request.header(name, value)
                })
                .into()
        }
        ScriptedOperation::Extension {
            extension,
            verb,
            target,
            body,
        } => Extension::new(extension)
            .request_with(verb, target, body)
            .into(),
    })
}

fn ask(asked: Asked) -> Result<Operation, HandlerError> {
    fn of<V>(request: Kubernetes<V>, subresource: Option<String>) -> Operation {
        match subresource {
            Some(name) => request.subresource(name).into(),
            None => request.into(),
        }
    }
    let Asked {
        verb,
        namespace,
        name,
        subresource,
        body,
        ..
    } = asked;
    // A test makes few requests.
    let resource = Resource::new(
        asked.group.leak(),
        asked.version.leak(),
        asked.plural.leak(),
        asked.kind.leak(),
    );
    let at = (namespace.clone(), name);
    Ok(match verb.as_str() {
        "get" => of(resource.get(at), subresource),
        "list" => of(resource.list(namespace), subresource),
        "create" => of(resource.create(at, &body), subresource),
        "apply" => of(resource.apply(at, &body), subresource),
        "patch" => of(resource.patch(at, &body), subresource),
        "replace" => of(resource.replace(at, &body), subresource),
        "delete" => of(resource.delete(at), subresource),
        _ => return Err(HandlerError::fatal(format!("there is no verb {verb:?}"))),
    })
}

fn resource_of(kind: &str) -> Result<Resource, HandlerError> {
    use configurator_sdk::kubernetes::{CONFIG_MAP, NAMESPACE, POD};
    let known = [CONFIG_MAP, NAMESPACE, POD];
    let found = known.into_iter().find(|resource| resource.kind == kind);
    found.ok_or_else(|| HandlerError::fatal(format!("a script cannot apply a {kind}")))
}

fn keys(input: &Input) -> Result<Vec<ObjectRef>, HandlerError> {
    let key = |object: &WatchedObject| {
        let object: Value = object.parse()?;
        let [namespace, name] = ["namespace", "name"].map(|field| {
            let found = object.pointer(&format!("/metadata/{field}"));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        });
        Ok(ObjectRef { namespace, name })
    };
    input.objects().iter().map(key).collect()
}

fn own_name(input: &Input) -> Result<[String; 2], HandlerError> {
    let mut keys = keys(input)?;
    Ok(match (keys.pop(), keys.is_empty()) {
        (Some(key), true) => [key.name, key.namespace],
        _ => [String::new(), String::new()],
    })
}

/// How many calls this instance has served.
static CALLS: AtomicU32 = AtomicU32::new(0);

fn words(input: &Input) -> Result<Vec<(&'static str, String)>, HandlerError> {
    let [name, namespace] = own_name(input)?;
    let first = input.objects().first();
    let object: Value = first
        .map(|object| object.parse())
        .transpose()?
        .unwrap_or_default();
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    let results = seen_all(&input.request_results);
    let parameters: Value = input.parameters()?;
    let parameter = parameters.get("parameter").and_then(Value::as_str);
    Ok(vec![
        ("{parameter}", parameter.unwrap_or_default().to_owned()),
        ("{name}", name),
        ("{namespace}", namespace),
        ("{uid}", uid.unwrap_or_default().to_owned()),
        (
            "{event}",
            first
                .map(|object| format!("{:?}", object.event))
                .unwrap_or_default(),
        ),
        ("{run}", input.context.run_id.clone()),
        ("{attempt}", input.context.attempt.to_string()),
        ("{entry}", input.context.entry.to_string()),
        ("{cause}", cause_of(input)),
        ("{last}", last_of(input)),
        ("{outputs}", of_names(&input.outputs)),
        ("{args}", of_names(&input.pass_through_args)),
        ("{results}", results.to_string()),
        ("{now}", input.context.now.to_string()),
        ("{seed}", input.context.seed.to_string()),
        ("{calls}", CALLS.fetch_add(1, Ordering::Relaxed).to_string()),
    ])
}

fn cause_of(input: &Input) -> String {
    match &input.context.cause {
        Cause::Entered => "entered".to_owned(),
        Cause::Retry => "retry".to_owned(),
        Cause::Again => "again".to_owned(),
        Cause::Timer => "timer".to_owned(),
        Cause::Signal(signal) => {
            let data = signal.data.as_ref().map_or("", |data| data.as_str());
            format!("signal {} {data}", signal.name)
        }
        Cause::Changed(key) => format!("changed {}/{}", key.namespace, key.name),
        Cause::Recovered => "recovered".to_owned(),
    }
}

/// What is left of the entry before.
fn last_of(input: &Input) -> String {
    let last = input.last.as_ref().map(|last| {
        json!({
            "failed": last.failed,
            "data": last.data.as_deref(),
            "results": seen_all(&last.request_results),
        })
    });
    Value::from(last).to_string()
}

fn of_names(documents: &[(String, String)]) -> String {
    let texts: Vec<String> = documents
        .iter()
        .map(|(name, document)| format!("{name}={document}"))
        .collect();
    texts.join(" ")
}

fn seen_all(results: &[(String, ResultEntry)]) -> Value {
    let results = results.iter().flat_map(|(_, entry)| match entry {
        ResultEntry::One(result) => std::slice::from_ref(result),
        ResultEntry::Group(results) => results.as_slice(),
    });
    results.map(seen).collect()
}

/// What a script sees of a result.
fn seen(result: &RequestResult) -> Value {
    let answer = result.http_response.as_ref();
    json!({
        "name": result.request_name,
        "error": result.error.as_ref().map(|error| kind_name(&error.kind)),
        "objects": result.query_objects,
        "status": answer.map(|answer| answer.status),
        "body": answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()),
    })
}

fn kind_name(kind: &ErrorKind) -> String {
    format!("{kind:?}")
        .rsplit("::")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn filled_in(value: Value, words: &[(&str, String)]) -> Value {
    let fill = |text: String| {
        words
            .iter()
            .fold(text, |text, (word, meaning)| text.replace(word, meaning))
    };
    match value {
        Value::String(text) => fill(text).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| filled_in(item, words))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| (name, filled_in(field, words)))
            .collect(),
        other => other,
    }
}

fn misbehave(how: &Misbehaviour) -> Output {
    let put = |name: &str, value: String| Request::new(name, Basic::new("never").put(value));
    match how {
        Misbehaviour::Panic => {
            #[allow(clippy::panic, reason = "the panic is what is tested")]
            {
                panic!("it was told to panic")
            }
        }
        Misbehaviour::Loop => loop {
            std::hint::black_box(());
        },
        Misbehaviour::Recurse => {
            deeper(std::hint::black_box(u64::MAX));
            Output::new()
        }
        Misbehaviour::Allocate => {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                kept.push(vec![1; 1 << 20]);
                std::hint::black_box(&kept);
            }
        }
        Misbehaviour::ReturnMuch => Output::new().request(put("much", "x".repeat(40 << 20))),
        Misbehaviour::FloodLog => {
            for _ in 0..100_000 {
                log::warn(&"flood ".repeat(100));
            }
            Output::new()
        }
        Misbehaviour::SameNames => Output::new()
            .request(put("twice", "1".into()))
            .request(put("twice", "2".into())),
        Misbehaviour::NoJson => Output::new().status("{\"phase\": "),
        Misbehaviour::LargeStatus => {
            let status = serde_json::json!({"message": "x".repeat(1_000_000)});
            Output::new().status(status)
        }
        Misbehaviour::DeepJson => {
            Output::new().status(format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)))
        }
    }
}

fn deeper(left: u64) -> u64 {
    if left == 0 {
        return 0;
    }
    std::hint::black_box(deeper(left - 1)).wrapping_add(left)
}

configurator_sdk::module! {
    handlers: [
        Handler::new("root", root).accepts(Accepts::Either).description("Does what the parameters say."),
        Handler::new("remedy", remedy).description("Does what the parameters say for a remedy."),
    ],
}
