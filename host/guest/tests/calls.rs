//! Calls of well-behaved modules.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::sync::{Arc, Mutex};

use configurator_core::handler::{CallLimits, Outcome};
use configurator_guest::log::{LogSink, no_log};
use expect_test::expect;
use fixture::{Guest, handler, input, runtime};
use serde_json::json;

fn sink() -> (LogSink, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let of_sink = Arc::clone(&lines);
    let sink: LogSink = Arc::new(move |line| of_sink.lock().unwrap().push(line.to_string()));
    (sink, lines)
}

#[test]
fn a_handler_that_does_nothing_is_done() {
    let runtime = runtime();
    let module = runtime
        .load_blocking(Guest::new().build(), "nothing")
        .unwrap();
    let report = runtime.call_blocking(
        &module,
        "root",
        &input("{}"),
        &CallLimits::default(),
        no_log(),
    );
    assert_eq!(report.result.unwrap().outcome, Outcome::Done);
    assert_eq!(report.cost.memory_peak, 2 * 65536);
}

#[test]
fn a_module_is_described_once_and_shared() {
    let runtime = runtime();
    let bytes = Guest::new()
        .describe(json!({"handlers": [
            {"name": "root", "description": "First", "view": "check-list", "accepts": "one", "capabilities": "{\"http\": []}"},
            {"name": "write", "accepts": "batch", "parameters-schema": "{\"type\": \"object\"}"},
        ]}))
        .build();
    let module = runtime.load_blocking(&bytes, "one").unwrap();
    let again = runtime.load_blocking(&bytes, "two").unwrap();
    assert!(Arc::ptr_eq(&module, &again));
    assert_eq!(module.size(), bytes.len());
    assert_eq!(module.world_version(), "0.1.0");
    assert_eq!(module.handler_names(), "root, write");
    expect![[r#"
        [
            "configurator:handler/log@0.1.0",
            "configurator:handler/types@0.1.0",
            "configurator:handler/requests@0.1.0",
            "configurator:handler/desired@0.1.0",
        ]
    "#]]
    .assert_debug_eq(&module.imports());
    expect![[r#"
        ModuleDescription {
            handlers: [
                HandlerDescription {
                    name: "root",
                    description: "First",
                    view: CheckList,
                    accepts: One,
                    parameters_schema: None,
                    capabilities: Some(
                        {"http": []},
                    ),
                },
                HandlerDescription {
                    name: "write",
                    description: "",
                    view: None,
                    accepts: Batch,
                    parameters_schema: Some(
                        {"type": "object"},
                    ),
                    capabilities: None,
                },
            ],
        }
    "#]]
    .assert_debug_eq(module.description());
}

#[test]
fn an_unknown_handler_is_refused_with_the_names_there_are() {
    let runtime = runtime();
    let bytes = Guest::new()
        .describe(json!({"handlers": [handler("root"), handler("write")]}))
        .build();
    let module = runtime.load_blocking(&bytes, "two").unwrap();
    let report = runtime.call_blocking(
        &module,
        "wirte",
        &input("{}"),
        &CallLimits::default(),
        no_log(),
    );
    assert_eq!(
        report.result.unwrap_err().to_string(),
        r#"the module has no handler "wirte"; it has: root, write"#
    );
}

#[test]
fn log_lines_reach_the_sink() {
    let runtime = runtime();
    let bytes = Guest::new()
        .body("(call $log (i32.const 3) (i32.const 16) (i32.const 20) (i32.const 0) (i32.const 0))")
        .build();
    let module = runtime.load_blocking(&bytes, "logs").unwrap();
    let (sink, lines) = sink();
    let report = runtime.call_blocking(&module, "root", &input("{}"), &CallLimits::default(), sink);
    report.result.unwrap();
    assert_eq!(*lines.lock().unwrap(), ["warn: hello from the guest"]);
    assert_eq!((report.cost.log_lines, report.cost.log_dropped), (1, 0));
}

#[tokio::test]
async fn many_calls_at_once_take_turns() {
    let runtime = runtime();
    let module = runtime.load(Guest::new().build(), "nothing").await.unwrap();
    let calls = (0..100).map(|_| {
        let (runtime, module) = (runtime.clone(), Arc::clone(&module));
        tokio::spawn(async move {
            runtime
                .call(
                    &module,
                    "root",
                    input("{}"),
                    CallLimits::default(),
                    no_log(),
                )
                .await
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().result.unwrap();
    }
}
