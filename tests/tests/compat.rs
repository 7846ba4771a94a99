//! Modules of released versions of the contract: `tests/compat`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::fmt::Write as _;
use std::fs;
use std::sync::{Arc, Mutex};

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::handler::{
    CallLimits, Cause, Context, HandlerError, HandlerInput, HandlerOutput, HandlerState,
    ResourceObject, Signal, WatchEvent, WatchedObject,
};
use configurator_core::request::{ObjectKey, SinkName};
use configurator_core::result::{HttpResponse, RequestResult, ResultEntry};
use configurator_guest::log::LogLine;
use configurator_guest::module::Module;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_tests::guests;
use configurator_tests::pipeline_plan::Planned;
use expect_test::expect_file;
use serde_json::json;

const NOW: &str = "2026-02-28T23:59:58.125Z";

/// What a module of 0.1.0 asks for, and what it is given, is what it was when 0.1.0 was released.
#[test]
fn a_module_of_0_1_goes_on_running() {
    let folder = guests::workspace().join("tests/compat/v0_1");
    let path = guests::folder().unwrap().join("compat_v0_1.wasm");
    let bytes = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask guests`", path.display()));
    let runtime = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        module_cache: Some(guests::cache().unwrap().join("modules")),
        ..GuestOptions::default()
    })
    .unwrap();
    let module = runtime.load_blocking(&bytes, "compat").unwrap();
    let mut text = format!("{:#?}\n", module.description());
    let mut tell = |name: &str, handler: &str, input: &HandlerInput| {
        let answer = called(&runtime, &module, handler, input);
        writeln!(text, "\n# {name}\n{answer}").unwrap();
    };
    let plain = input("{}", Cause::Entered);
    tell("requests", "requests", &plain);
    tell("output", "output", &plain);
    for outcome in [
        "done",
        "again",
        "again-after",
        "wait",
        "failed",
        "stop",
        "do-not-terminate",
        "keep-volumes",
        "delete",
        "wipe-out",
        "error",
    ] {
        let input = input(&format!("{outcome:?}"), Cause::Entered);
        tell(outcome, "outcome", &input);
    }
    tell("everything", "echo", &everything());
    for cause in [
        Cause::Retry,
        Cause::Again,
        Cause::Timer,
        Cause::Signal(Signal {
            name: "go".into(),
            data: Some(document("[1]")),
        }),
        Cause::Changed(ObjectKey {
            group: "apps".into(),
            version: "v1".into(),
            plural: "deployments".into(),
            namespace: "shop".into(),
            name: "web".into(),
        }),
        Cause::Recovered,
    ] {
        tell(&format!("{cause:?}"), "echo", &input("{}", cause));
    }
    expect_file![folder.join("golden.txt")].assert_eq(&text);
}

/// A released version never changes a type. Before 0.1.0 is released it may, and its copy with it.
#[test]
fn the_contract_is_that_of_the_newest_version() {
    let root = guests::workspace();
    for file in [
        "desired.wit",
        "handler.wit",
        "requests.wit",
        "types.wit",
        "world.wit",
    ] {
        let read = |folder: &str| fs::read_to_string(root.join(folder).join(file)).unwrap();
        assert_eq!(
            read("wit"),
            read("tests/compat/v0_1/wit"),
            "{file}: once 0.1.0 is released, a change of a type is a new version beside it; see CONTRIBUTING.md"
        );
    }
}

fn document(text: &str) -> Document {
    Document::parse(text).unwrap()
}

fn input(parameters: &str, cause: Cause) -> HandlerInput {
    HandlerInput {
        resource_object: ResourceObject::One(WatchedObject {
            object: document(r#"{"kind":"Deployment"}"#),
            event: WatchEvent::Added,
        }),
        request_results: Vec::new(),
        pass_through_args: Vec::new(),
        last: None,
        outputs: Vec::new(),
        plan: None,
        context: Context {
            configurator: "compat".into(),
            phase: "install".into(),
            node: "install/prepare".into(),
            entry: 2,
            attempt: 3,
            cause,
            now: NOW.parse().unwrap(),
            seed: 9_007_199_254_740_991,
            parameters: document(parameters),
            run_id: "run-1".into(),
        },
    }
}

/// Every field, and every case of every type but the causes.
fn everything() -> HandlerInput {
    let watched = [
        WatchEvent::Added,
        WatchEvent::Modified,
        WatchEvent::Deleted,
        WatchEvent::Resync,
    ]
    .map(|event| WatchedObject {
        object: Document::of(&json!({"event": event.name()})).unwrap(),
        event,
    });
    let result = |name: &str, sink, error: Option<Fault>| RequestResult {
        request_name: name.into(),
        sink,
        is_declarative: sink == SinkName::Configstore,
        query_objects: vec![document("{\"a\":\"ä\"}"), document("[]")],
        created: NOW.parse().unwrap(),
        finished: error.is_none().then(|| NOW.parse().unwrap()),
        error,
        http_response: (sink == SinkName::Http).then(|| HttpResponse {
            status: 418,
            headers: vec![("content-type".into(), "text/plain".into())],
            body: vec![0, 1, 254, 255],
        }),
    };
    let sinks = [
        SinkName::Kubernetes,
        SinkName::Configstore,
        SinkName::Secretstore,
        SinkName::Http,
        SinkName::Extension,
    ];
    let group = sinks.map(|sink| result("of a sink", sink, None)).into();
    let failed = FaultKind::ALL.map(|kind| {
        let fault = Fault::new(kind, "it failed").with_status(409);
        let entry = ResultEntry::One(result("failed", SinkName::Kubernetes, Some(fault)));
        (kind.name().to_owned(), entry)
    });
    let mut results = vec![("group".to_owned(), ResultEntry::Group(group))];
    results.extend(failed);
    HandlerInput {
        resource_object: ResourceObject::Batch(watched.into()),
        request_results: results,
        pass_through_args: vec![("one".into(), document("1"))],
        last: Some(HandlerState {
            start_time: Some(NOW.parse().unwrap()),
            end_time: Some(NOW.parse().unwrap()),
            done: true,
            failed: true,
            fatal: true,
            error: Some(HandlerError {
                message: "it failed".into(),
                fatal: false,
                retry_after: Some(std::time::Duration::from_millis(1_500)),
                code: Some("E7".into()),
            }),
            data: Some(document("{\"notes\":1}")),
            request_results: Vec::new(),
        }),
        outputs: vec![("step".into(), document("{\"left\":1}"))],
        plan: Some(Planned::Everything.plan()),
        ..input("{\"p\":1}", Cause::Entered)
    }
}

fn called(
    runtime: &GuestRuntime,
    module: &Arc<Module>,
    handler: &str,
    input: &HandlerInput,
) -> String {
    let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
    let kept = Arc::clone(&lines);
    let report = runtime.call_blocking(
        module,
        handler,
        input,
        &CallLimits::default(),
        Arc::new(move |line| kept.lock().unwrap().push(line)),
    );
    let mut text = String::new();
    for line in lines.lock().unwrap().iter() {
        writeln!(text, "{line:?}").unwrap();
    }
    let shown = report.result.map(|output| match &output.details {
        // As the module shows it, line by line.
        Some(details) if handler == "echo" => details.to_value().as_str().unwrap().to_owned(),
        _ => lines_of(&output),
    });
    match shown {
        Ok(shown) => text.push_str(&shown),
        Err(fault) => write!(text, "{fault:#?}").unwrap(),
    }
    text
}

/// The requests each in a line, and the rest.
fn lines_of(output: &HandlerOutput) -> String {
    let mut text = String::new();
    for request in &output.requests.resource_requests {
        writeln!(text, "{request:?}").unwrap();
    }
    let mut rest = output.clone();
    rest.requests.resource_requests.clear();
    write!(text, "{rest:#?}").unwrap();
    text
}

/// All but the compiler: see the folder's page.
#[test]
fn what_a_released_module_is_made_of_is_pinned() {
    let mut versions = 0;
    for entry in fs::read_dir(guests::workspace().join("tests/compat")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        versions += 1;
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("\nrust-version = "),
            "{}",
            folder.display()
        );
        let (_, rest) = manifest.split_once("[dependencies]\n").unwrap();
        let dependencies = rest.lines().take_while(|line| !line.is_empty());
        for line in dependencies {
            assert!(line.contains("\"=") && !line.contains("path"), "{line}");
        }
        assert!(folder.join("Cargo.lock").is_file());
    }
    assert!(versions > 0);
}
