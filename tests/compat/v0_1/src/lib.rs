//! A module of `configurator:handler@0.1.0` as it was released: bindings of the contract beside this file, and no SDK.
//!
//! Its handlers use every type of the contract in both directions, so that a host that has changed one does not link it, or gives another
//! transcript. Nothing in this folder changes once the version is released.

use std::cell::Cell;

wit_bindgen::generate!({
    world: "configurator",
    path: "wit",
    generate_all,
});

use configurator::handler::desired as set;
use configurator::handler::log::{Level, log};
use configurator::handler::requests as wit;
use configurator::handler::types::{ObjectKey, ObjectRef};
use exports::configurator::handler::handler::{
    Accepts, Event, EventType, Guest, HandlerDescription, HandlerError, HandlerInput,
    HandlerOutput, ModuleDescription, Outcome, Progress, StatusUpdate, View, Wake,
};

struct Module;

export!(Module);

impl Guest for Module {
    fn describe() -> ModuleDescription {
        let handler = |name: &str, view, accepts, schema: Option<&str>| HandlerDescription {
            name: name.to_owned(),
            description: format!("handler {name}"),
            view,
            accepts,
            parameters_schema: schema.map(str::to_owned),
            capabilities: schema
                .map(|_| r#"{"secretstore":[{"names":["db"],"verbs":["get"]}]}"#.to_owned()),
        };
        ModuleDescription {
            handlers: vec![
                handler("requests", View::None, Accepts::One, None),
                handler(
                    "output",
                    View::CheckList,
                    Accepts::Either,
                    Some(r#"{"type":"object"}"#),
                ),
                handler("echo", View::ObjectDetail, Accepts::Batch, None),
                handler("outcome", View::None, Accepts::Either, None),
            ],
        }
    }

    fn handle(handler: String, input: HandlerInput) -> Result<HandlerOutput, HandlerError> {
        match handler.as_str() {
            "requests" => Ok(output(every_request())),
            "output" => Ok(every_field()),
            "echo" => Ok(echo(&input)),
            "outcome" => outcome(&input),
            _ => Err(error(&handler, true)),
        }
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn error(message: &str, fatal: bool) -> HandlerError {
    HandlerError {
        message: message.to_owned(),
        fatal,
        retry_after: (!fatal).then_some(1_500),
        code: some("E7"),
    }
}

fn object() -> ObjectRef {
    ObjectRef {
        namespace: "shop".into(),
        name: "web".into(),
    }
}

fn output(requests: wit::Requests) -> HandlerOutput {
    HandlerOutput {
        requests,
        pass_through_args: Vec::new(),
        outcome: Outcome::Done,
        next: None,
        statuses: Vec::new(),
        data: None,
        events: Vec::new(),
        progress: None,
        output: None,
        details: None,
        desired: None,
        remove_from_plan: Vec::new(),
        reads: Vec::new(),
    }
}

fn nothing() -> wit::Requests {
    wit::Requests {
        execute_strategy: None,
        resource_requests: Vec::new(),
        batch_error_strategy: None,
    }
}

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// A request with nothing set that need not be.
fn request(operation: wit::Operation) -> wit::ResourceRequest {
    let number = NUMBER.get() + 1;
    NUMBER.set(number);
    wit::ResourceRequest {
        request_name: format!("r{number}"),
        is_declarative: false,
        group_by: None,
        bootstrap_dep: false,
        of: None,
        on_error: None,
        depends_on: Vec::new(),
        ready_when: None,
        once: false,
        timeout: None,
        partition: None,
        operation,
    }
}

fn kubernetes(verb: wit::KubernetesVerb) -> wit::KubernetesResourceRequest {
    wit::KubernetesResourceRequest {
        group: "apps".into(),
        version: "v1".into(),
        plural: "deployments".into(),
        kind: "Deployment".into(),
        namespace: "shop".into(),
        name: "web".into(),
        verb,
        subresource: None,
        field_selector: None,
        label_selector: None,
        resource_body: None,
        patch_type: None,
        precheck_exist: None,
        force: None,
        cached: None,
        propagation_policy: None,
        precondition: None,
    }
}

/// Every operation, every verb, and every field of a request, at least once.
fn every_request() -> wit::Requests {
    use wit::{
        ConfigAppConfVerb, ConfigBasicVerb, ConfigTwoLayersVerb, ConfigType, ConfigVerb,
        KubernetesVerb, OnError, Operation, PatchType, PropagationPolicy, SecretVerb,
    };
    let body = || {
        some(
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}"#,
        )
    };
    let of = |verb| kubernetes(verb);
    let mut all = vec![
        request(Operation::Kubernetes(wit::KubernetesResourceRequest {
            cached: Some(true),
            subresource: some("scale"),
            ..of(KubernetesVerb::Get)
        })),
        request(Operation::Kubernetes(wit::KubernetesResourceRequest {
            name: String::new(),
            field_selector: some("metadata.name=web"),
            label_selector: some("app=web"),
            ..of(KubernetesVerb::List)
        })),
    ];
    for patch_type in [PatchType::Merge, PatchType::JsonPatch, PatchType::Strategic] {
        let is_list = patch_type == PatchType::JsonPatch;
        all.push(request(Operation::Kubernetes(
            wit::KubernetesResourceRequest {
                resource_body: if is_list { some("[]") } else { some("{}") },
                patch_type: Some(patch_type),
                precondition: Some(wit::Precondition {
                    uid: some("u1"),
                    resource_version: some("7"),
                }),
                ..of(KubernetesVerb::Patch)
            },
        )));
    }
    for policy in [
        PropagationPolicy::Background,
        PropagationPolicy::Foreground,
        PropagationPolicy::Orphan,
    ] {
        all.push(request(Operation::Kubernetes(
            wit::KubernetesResourceRequest {
                propagation_policy: Some(policy),
                ..of(KubernetesVerb::Delete)
            },
        )));
    }
    for verb in [
        KubernetesVerb::Create,
        KubernetesVerb::Replace,
        KubernetesVerb::Apply,
    ] {
        all.push(request(Operation::Kubernetes(
            wit::KubernetesResourceRequest {
                resource_body: body(),
                precheck_exist: (verb == KubernetesVerb::Create).then_some(false),
                force: (verb == KubernetesVerb::Apply).then_some(true),
                ..of(verb)
            },
        )));
    }
    let value = |is_written: bool| is_written.then(|| "value".to_owned());
    for verb in [
        ConfigVerb::Get,
        ConfigVerb::Delete,
        ConfigVerb::Update,
        ConfigVerb::Create,
    ] {
        for config_type in [
            ConfigType::Pod,
            ConfigType::Node,
            ConfigType::Namespace,
            ConfigType::Workload,
        ] {
            let is_namespaced = matches!(config_type, ConfigType::Pod | ConfigType::Workload);
            all.push(request(Operation::ConfigResource(
                wit::ConfigResourceRequest {
                    config_type,
                    config_verb: verb,
                    resource_name: "web".into(),
                    resource_uid: some("u1"),
                    namespace: is_namespaced.then(|| "shop".to_owned()),
                    workload_kind: (config_type == ConfigType::Workload)
                        .then(|| "Deployment".to_owned()),
                    value: value(matches!(verb, ConfigVerb::Update | ConfigVerb::Create)),
                },
            )));
        }
    }
    for verb in [
        ConfigAppConfVerb::Create,
        ConfigAppConfVerb::Delete,
        ConfigAppConfVerb::Update,
    ] {
        all.push(request(Operation::ConfigAppConf(
            wit::ConfigAppConfRequest {
                verb,
                pod_name: "web-0".into(),
                namespace: some("shop"),
                key: "level".into(),
                value: value(verb != ConfigAppConfVerb::Delete),
            },
        )));
    }
    for verb in [
        ConfigBasicVerb::Get,
        ConfigBasicVerb::Put,
        ConfigBasicVerb::Delete,
    ] {
        all.push(request(Operation::ConfigBasic(wit::ConfigBasicRequest {
            verb,
            key: "key".into(),
            value: value(verb == ConfigBasicVerb::Put),
        })));
    }
    for verb in [
        ConfigTwoLayersVerb::Get,
        ConfigTwoLayersVerb::Create,
        ConfigTwoLayersVerb::Update,
        ConfigTwoLayersVerb::Delete,
    ] {
        let is_written = matches!(
            verb,
            ConfigTwoLayersVerb::Create | ConfigTwoLayersVerb::Update
        );
        all.push(request(Operation::ConfigTwoLayers(
            wit::ConfigTwoLayersRequest {
                verb,
                second_path: "second".into(),
                third_path: "third".into(),
                value: value(is_written),
            },
        )));
    }
    all.push(request(Operation::ConfigTransaction(
        wit::ConfigTransaction {
            operations: vec![
                wit::ConfigOperation::Resource(wit::ConfigResourceRequest {
                    config_type: ConfigType::Node,
                    config_verb: ConfigVerb::Update,
                    resource_name: "n1".into(),
                    resource_uid: None,
                    namespace: None,
                    workload_kind: None,
                    value: value(true),
                }),
                wit::ConfigOperation::AppConf(wit::ConfigAppConfRequest {
                    verb: ConfigAppConfVerb::Update,
                    pod_name: "web-0".into(),
                    namespace: None,
                    key: "level".into(),
                    value: value(true),
                }),
                wit::ConfigOperation::Basic(wit::ConfigBasicRequest {
                    verb: ConfigBasicVerb::Put,
                    key: "key".into(),
                    value: value(true),
                }),
                wit::ConfigOperation::TwoLayers(wit::ConfigTwoLayersRequest {
                    verb: ConfigTwoLayersVerb::Update,
                    second_path: "second".into(),
                    third_path: "third".into(),
                    value: value(true),
                }),
            ],
        },
    )));
    for verb in [
        SecretVerb::Get,
        SecretVerb::Create,
        SecretVerb::Update,
        SecretVerb::Delete,
    ] {
        let is_written = matches!(verb, SecretVerb::Create | SecretVerb::Update);
        all.push(request(Operation::Secret(wit::SecretRequest {
            secret_name: "login".into(),
            verb,
            value: is_written.then(|| r#""a value""#.to_owned()),
            version: (verb == SecretVerb::Update).then_some(3),
        })));
    }
    let mut in_partition = request(Operation::Secret(wit::SecretRequest {
        secret_name: "login".into(),
        verb: SecretVerb::Get,
        value: None,
        version: None,
    }));
    in_partition.partition = some("team-a");
    all.push(in_partition);
    all.push(request(Operation::Http(wit::HttpRequest {
        method: "POST".into(),
        url: "https://api.example/v1/sites".into(),
        headers: vec![("content-type".into(), "text/plain".into())],
        body: Some(vec![0, 1, 254, 255]),
    })));
    for body in [None, some("{}")] {
        all.push(request(Operation::Extension(wit::ExtensionRequest {
            extension: "dns".into(),
            verb: "upsert".into(),
            target: "example.org/www".into(),
            body,
        })));
    }
    for on_error in [OnError::Fail, OnError::CatchError, OnError::DropError] {
        let mut with_error = request(Operation::Http(wit::HttpRequest {
            method: "GET".into(),
            url: "https://api.example/v1/sites".into(),
            headers: Vec::new(),
            body: None,
        }));
        with_error.on_error = Some(on_error);
        with_error.is_declarative = on_error == OnError::Fail;
        with_error.bootstrap_dep = true;
        with_error.of = Some(object());
        with_error.once = true;
        with_error.timeout = Some(2_000);
        all.push(with_error);
    }
    let mut grouped = request(Operation::Kubernetes(of(KubernetesVerb::Get)));
    grouped.group_by = some("group");
    all.push(grouped);
    wit::Requests {
        execute_strategy: Some(wit::ExecuteStrategy::Serial),
        resource_requests: all,
        batch_error_strategy: Some(wit::BatchErrorStrategy::DropError),
    }
}

/// Every field of an output but its outcome, and the requests that only a graph has.
fn every_field() -> HandlerOutput {
    let ready = [
        wit::Readiness::Exists,
        wit::Readiness::Observed,
        wit::Readiness::Healthy,
        wit::Readiness::Expression("object.status.ready".into()),
    ];
    let mut before = Vec::new();
    let mut requests = Vec::new();
    for ready_when in ready.iter().cloned() {
        let mut one = request(wit::Operation::Kubernetes(kubernetes(
            wit::KubernetesVerb::Get,
        )));
        one.depends_on = before.clone();
        one.ready_when = Some(ready_when);
        before = vec![one.request_name.clone()];
        requests.push(one);
    }
    HandlerOutput {
        requests: wit::Requests {
            execute_strategy: Some(wit::ExecuteStrategy::Graph),
            resource_requests: requests,
            batch_error_strategy: Some(wit::BatchErrorStrategy::CatchError),
        },
        pass_through_args: vec![("one".into(), "1".into()), ("two".into(), "[2]".into())],
        outcome: Outcome::Done,
        next: some("Ready"),
        statuses: vec![StatusUpdate {
            of: Some(object()),
            status: r#"{"ready":true}"#.into(),
        }],
        data: some(r#"{"notes":1}"#),
        events: [EventType::Normal, EventType::Warning]
            .map(|event_type| Event {
                of: Some(object()),
                event_type,
                reason: "Compat".into(),
                message: "a message".into(),
            })
            .into(),
        progress: Some(Progress {
            percent: 42,
            message: "under way".into(),
        }),
        output: some(r#"{"left":1}"#),
        details: some(r#"{"seen":1}"#),
        desired: Some(every_entry(ready.into())),
        remove_from_plan: vec!["old".into()],
        reads: vec![request(wit::Operation::Kubernetes(kubernetes(
            wit::KubernetesVerb::Get,
        )))],
    }
}

/// A set with every content and every policy of an entry at least once.
fn every_entry(ready: Vec<wit::Readiness>) -> set::DesiredSet {
    let entry = |name: &str, content| set::DesiredEntry {
        name: name.to_owned(),
        content,
        depends_on: Vec::new(),
        ready_when: None,
        failed_when: None,
        timeout: None,
        on_existing: None,
        on_conflict: None,
        on_immutable: None,
        ignored_paths: Vec::new(),
        on_delete: None,
    };
    let object = || set::Content::Kubernetes(r#"{"kind":"ConfigMap"}"#.to_owned());
    let keys = [
        set::ConfigKey::Resource(set::ConfigResourceKey {
            config_type: wit::ConfigType::Workload,
            resource_name: "web".into(),
            resource_uid: some("u1"),
            namespace: some("shop"),
            workload_kind: some("Deployment"),
        }),
        set::ConfigKey::AppConf(set::ConfigAppConfKey {
            pod_name: "web-0".into(),
            namespace: some("shop"),
            key: "level".into(),
        }),
        set::ConfigKey::Basic("key".into()),
        set::ConfigKey::TwoLayers(set::ConfigTwoLayersKey {
            second_path: "second".into(),
            third_path: "third".into(),
        }),
    ];
    let mut entries = vec![entry("defaults", object())];
    for ready_when in ready {
        let mut one = entry(&format!("{ready_when:?}"), object());
        one.depends_on = vec!["other".into()];
        one.ready_when = Some(ready_when);
        entries.push(one);
    }
    for on_existing in [
        set::OnExisting::Refuse,
        set::OnExisting::Adopt,
        set::OnExisting::CreateOnly,
    ] {
        let mut one = entry(&format!("{on_existing:?}"), object());
        one.on_existing = Some(on_existing);
        entries.push(one);
    }
    for on_delete in [
        set::OnDelete::WithOwner,
        set::OnDelete::Retain,
        set::OnDelete::OnlyUnderWipeOut,
    ] {
        let mut one = entry(&format!("{on_delete:?}"), object());
        one.on_delete = Some(on_delete);
        entries.push(one);
    }
    let conflicts = [
        (set::OnConflict::Fail, set::OnImmutable::Fail),
        (set::OnConflict::Force, set::OnImmutable::Recreate),
    ];
    for (on_conflict, on_immutable) in conflicts {
        let mut one = entry(&format!("{on_conflict:?} {on_immutable:?}"), object());
        one.on_conflict = Some(on_conflict);
        one.on_immutable = Some(on_immutable);
        one.ignored_paths = vec![".spec.replicas".into()];
        one.failed_when = some("object.status.failed");
        one.timeout = Some(2_000);
        entries.push(one);
    }
    for key in keys {
        let name = format!("{key:?}");
        let content = set::Content::Config(set::ConfigContent {
            key,
            value: "value".into(),
            partition: some("team-a"),
        });
        entries.push(entry(&name, content));
    }
    for value in [None, some(r#""a value""#)] {
        let name = format!("secret {value:?}");
        let content = set::Content::Secret(set::SecretContent {
            secret_name: "login".into(),
            value,
            partition: some("team-a"),
        });
        entries.push(entry(&name, content));
    }
    set::DesiredSet {
        entries,
        allow_empty: true,
        termination_policy: Some(set::Termination::Path(".spec.policy".into())),
        orders: Some(set::Orders {
            provision: vec![vec!["a".into()], vec!["b".into(), "c".into()]],
            update: vec![vec!["b".into()]],
            terminate: vec![vec!["c".into()], vec!["a".into()]],
        }),
        pre_terminate: vec![request(wit::Operation::Kubernetes(kubernetes(
            wit::KubernetesVerb::Get,
        )))],
    }
}

/// Nothing but a termination policy.
fn terminates(policy: set::TerminationPolicy) -> HandlerOutput {
    let mut output = output(nothing());
    output.desired = Some(set::DesiredSet {
        entries: Vec::new(),
        allow_empty: false,
        termination_policy: Some(set::Termination::Policy(policy)),
        orders: None,
        pre_terminate: Vec::new(),
    });
    output
}

/// All that it was given, as its own types show it; and a line of each level.
fn echo(input: &HandlerInput) -> HandlerOutput {
    for level in [
        Level::Trace,
        Level::Debug,
        Level::Info,
        Level::Warn,
        Level::Error,
    ] {
        log(level, "echo", &[("level".to_owned(), format!("{level:?}"))]);
    }
    let mut output = output(nothing());
    output.details = Some(quoted(&format!("{input:#?}")));
    output
}

/// As a document.
fn quoted(text: &str) -> String {
    let mut document = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => document.push_str("\\\""),
            '\\' => document.push_str("\\\\"),
            '\n' => document.push_str("\\n"),
            letter => document.push(letter),
        }
    }
    document.push('"');
    document
}

/// The one that the parameters name.
fn outcome(input: &HandlerInput) -> Result<HandlerOutput, HandlerError> {
    let mut output = output(nothing());
    output.outcome = match input.context.parameters.trim_matches('"') {
        "do-not-terminate" => return Ok(terminates(set::TerminationPolicy::DoNotTerminate)),
        "keep-volumes" => return Ok(terminates(set::TerminationPolicy::KeepVolumes)),
        "delete" => return Ok(terminates(set::TerminationPolicy::Delete)),
        "wipe-out" => return Ok(terminates(set::TerminationPolicy::WipeOut)),
        "done" => Outcome::Done,
        "again" => Outcome::Again(None),
        "again-after" => Outcome::Again(Some(250)),
        "wait" => Outcome::Wait(Wake {
            after: Some(60_000),
            signals: vec!["go".into()],
            objects: vec![ObjectKey {
                group: "apps".into(),
                version: "v1".into(),
                plural: "deployments".into(),
                namespace: "shop".into(),
                name: "web".into(),
            }],
        }),
        "failed" => Outcome::Failed(error("it fails", false)),
        "stop" => Outcome::Stop,
        other => return Err(error(other, true)),
    };
    Ok(output)
}
