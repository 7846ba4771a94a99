//! Requests as people write them, for golden files.

use configurator_core::desired::{Content, DesiredEntry, DesiredSet, Termination};
use configurator_core::handler::{Cause, HandlerOutput, Outcome};
use configurator_core::request::{
    ConfigOperation, ConfigVerb, ExecuteStrategy, KubernetesRequest, ObjectKey, Operation,
    PatchType, PropagationPolicy, Request, Requests,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Why a leaf was entered.
pub(super) fn cause(cause: &Cause) -> Value {
    match cause {
        Cause::Entered => "entered".into(),
        Cause::Retry => "retry".into(),
        Cause::Again => "again".into(),
        Cause::Timer => "timer".into(),
        Cause::Signal(signal) => format!("signal {}", signal.name).into(),
        Cause::Changed(key) => format!("changed {}", named(key)).into(),
        Cause::Recovered => "recovered".into(),
    }
}

fn named(key: &ObjectKey) -> String {
    format!("{} {}/{}", key.plural, key.namespace, key.name)
}

/// What an output says beside its requests: how the call ended, and what is for the machine and for people.
pub(super) fn said(output: &HandlerOutput, view: &mut Map<String, Value>) {
    let (name, value) = match &output.outcome {
        Outcome::Done => ("", Value::Null),
        Outcome::Failed(error) => ("failed", error.message.as_str().into()),
        Outcome::Again(None) => ("again", "at once".into()),
        Outcome::Again(Some(after)) => ("again", format!("after {after:?}").into()),
        Outcome::Stop => ("stop", true.into()),
        Outcome::Wait(wake) => {
            let after = wake.after.map(|after| format!("{after:?}"));
            let objects: Vec<String> = wake.objects.iter().map(named).collect();
            let wait = json!({"after": after, "signals": wake.signals, "objects": objects});
            ("wait", wait)
        }
    };
    if !name.is_empty() {
        view.insert(name.into(), value);
    }
    if let Some(next) = &output.next {
        view.insert("next".into(), next.as_str().into());
    }
    if let Some(progress) = &output.progress {
        let line = format!("{} %: {}", progress.percent, progress.message);
        view.insert("progress".into(), line.into());
    }
    let documents = [
        ("data", &output.data),
        ("output", &output.output),
        ("details", &output.details),
    ];
    for (name, document) in documents {
        if let Some(document) = document {
            view.insert(name.into(), document.to_value());
        }
    }
}

/// The requests of an output: the strategy where it is not the default, then each request.
pub(super) fn requests(requests: &Requests) -> Vec<Value> {
    let mut lines = Vec::new();
    match requests.execute_strategy {
        ExecuteStrategy::Parallel => {}
        ExecuteStrategy::Serial => lines.push(json!({"strategy": "serial"})),
        ExecuteStrategy::Graph => lines.push(json!({"strategy": "graph"})),
    }
    lines.extend(requests.resource_requests.iter().map(request));
    lines
}

/// A desired set: its entries, and what differs from the defaults.
pub(super) fn desired(set: &DesiredSet) -> Value {
    let mut view = Map::new();
    unless_default(&mut view, "allowEmpty", &set.allow_empty);
    match &set.termination_policy {
        None => {}
        Some(Termination::Policy(policy)) => {
            view.insert("terminationPolicy".into(), json!(policy));
        }
        Some(Termination::Path(path)) => {
            view.insert("terminationPolicyAt".into(), path.as_str().into());
        }
    }
    let orders = set.orders.clone().unwrap_or_default();
    unless_default(&mut view, "provision", &orders.provision);
    unless_default(&mut view, "update", &orders.update);
    unless_default(&mut view, "terminate", &orders.terminate);
    let entries: Vec<Value> = set.entries.iter().map(entry).collect();
    view.insert("entries".into(), entries.into());
    if !set.pre_terminate.is_empty() {
        let requests: Vec<Value> = set.pre_terminate.iter().map(request).collect();
        view.insert("preTerminate".into(), requests.into());
    }
    view.into()
}

fn entry(entry: &DesiredEntry) -> Value {
    let mut view = Map::new();
    view.insert("name".into(), entry.name.as_str().into());
    let partition = match &entry.content {
        Content::Kubernetes(object) => {
            view.insert("object".into(), object.to_value());
            &None
        }
        Content::Config(config) => {
            view.insert("config".into(), operation(&config.write));
            &config.partition
        }
        Content::Secret(secret) => {
            view.insert("secret".into(), secret.name.as_str().into());
            if secret.value.is_some() {
                view.insert("value".into(), "given by the handler".into());
            }
            &secret.partition
        }
    };
    unless_default(&mut view, "partition", partition);
    unless_default(&mut view, "dependsOn", &entry.depends_on);
    unless_default(&mut view, "readyWhen", &entry.ready_when);
    unless_default(&mut view, "failedWhen", &entry.failed_when);
    if let Some(timeout) = entry.timeout {
        view.insert("timeout".into(), format!("{timeout:?}").into());
    }
    unless_default(&mut view, "onExisting", &entry.on_existing);
    unless_default(&mut view, "onConflict", &entry.on_conflict);
    unless_default(&mut view, "onImmutable", &entry.on_immutable);
    unless_default(&mut view, "ignoredPaths", &entry.ignored_paths);
    unless_default(&mut view, "onDelete", &entry.on_delete);
    view.into()
}

fn unless_default<T: Serialize + Default + PartialEq>(
    view: &mut Map<String, Value>,
    name: &str,
    value: &T,
) {
    if *value != T::default() {
        view.insert(name.into(), json!(value));
    }
}

fn request(request: &Request) -> Value {
    let mut view = Map::new();
    view.insert("name".into(), request.name.as_str().into());
    if let Some(namespace) = request.operation.partition() {
        view.insert("partition".into(), namespace.into());
    }
    match &request.operation {
        Operation::Kubernetes(kubernetes) => self::kubernetes(kubernetes, &mut view),
        Operation::Config(config) => {
            let operations: Vec<Value> = config.operations.iter().map(operation).collect();
            match (config.is_transaction, operations.as_slice()) {
                (false, [one]) => view.insert("config".into(), one.clone()),
                _ => view.insert("transaction".into(), operations.into()),
            };
        }
        Operation::Secret(secret) => {
            view.insert(
                "secret".into(),
                format!("{} {}", secret.verb.name(), secret.name).into(),
            );
            if secret.value.is_some() {
                view.insert("value".into(), "given by the handler".into());
            }
            if let Some(version) = secret.version {
                view.insert("version".into(), version.into());
            }
        }
        Operation::Extension(own) => {
            let line = format!("{} {} {}", own.extension, own.verb, own.target);
            view.insert("extension".into(), line.into());
            if let Some(body) = &own.body {
                view.insert("body".into(), body.to_value());
            }
        }
        Operation::Http(http) => {
            view.insert(
                "http".into(),
                format!("{} {}", http.method, http.url).into(),
            );
            if !http.headers.is_empty() {
                let headers: Map<String, Value> = http
                    .headers
                    .iter()
                    .map(|(name, value)| (name.clone(), value.as_str().into()))
                    .collect();
                view.insert("headers".into(), headers.into());
            }
            if let Some(body) = &http.body {
                view.insert("body".into(), String::from_utf8_lossy(body).into());
            }
        }
    }
    options(request, &mut view);
    view.into()
}

fn options(request: &Request, view: &mut Map<String, Value>) {
    if let Some(group) = &request.group_by {
        view.insert("groupBy".into(), group.as_str().into());
    }
    if let Some(of) = &request.of {
        view.insert("of".into(), of.to_string().into());
    }
    if let Some(on_error) = request.on_error {
        view.insert("onError".into(), format!("{on_error:?}").into());
    }
    if request.is_declarative {
        view.insert("declarative".into(), true.into());
    }
    if request.bootstrap_dep {
        view.insert("bootstrapDep".into(), true.into());
    }
    if let Some(timeout) = request.timeout {
        view.insert("timeout".into(), format!("{timeout:?}").into());
    }
    unless_default(view, "dependsOn", &request.depends_on);
    unless_default(view, "readyWhen", &request.ready_when);
}

fn kubernetes(request: &KubernetesRequest, view: &mut Map<String, Value>) {
    let line = format!("{} {request}", request.verb.name());
    view.insert("kubernetes".into(), line.into());
    let selectors = [
        ("labelSelector", &request.label_selector),
        ("fieldSelector", &request.field_selector),
    ];
    for (name, selector) in selectors {
        if let Some(selector) = selector {
            view.insert(name.into(), selector.as_str().into());
        }
    }
    if request.force {
        view.insert("force".into(), true.into());
    }
    if request.patch_type != PatchType::Merge {
        view.insert(
            "patchType".into(),
            format!("{:?}", request.patch_type).into(),
        );
    }
    if request.propagation_policy != PropagationPolicy::Background {
        view.insert(
            "propagationPolicy".into(),
            format!("{:?}", request.propagation_policy).into(),
        );
    }
    if !request.precheck_exist {
        view.insert("precheckExist".into(), false.into());
    }
    if let Some(body) = &request.body {
        view.insert("body".into(), body.to_value());
    }
}

fn operation(operation: &ConfigOperation) -> Value {
    let verb = operation.verb().name();
    let line = match operation {
        ConfigOperation::Resource(resource) => {
            let namespace = resource
                .namespace
                .as_ref()
                .map(|name| format!("{name}/"))
                .unwrap_or_default();
            let kind = resource
                .workload_kind
                .as_ref()
                .map(|kind| format!("{kind} "))
                .unwrap_or_default();
            format!(
                "{verb} {} {kind}{namespace}{}",
                resource.config_type.name(),
                resource.name
            )
        }
        ConfigOperation::AppConf(app_conf) => {
            let namespace = app_conf
                .namespace
                .as_ref()
                .map(|name| format!("{name}/"))
                .unwrap_or_default();
            format!(
                "{verb} app-conf {namespace}{} {}",
                app_conf.pod_name, app_conf.key
            )
        }
        ConfigOperation::Basic(basic) => {
            let verb = if basic.verb == ConfigVerb::Update {
                "put"
            } else {
                verb
            };
            format!("{verb} basic {}", basic.key)
        }
        ConfigOperation::TwoLayers(two) => {
            format!("{verb} two-layers {} {}", two.second_path, two.third_path)
        }
    };
    match operation.value() {
        None => line.into(),
        Some(value) => json!({ line: value }),
    }
}
