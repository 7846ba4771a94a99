//! The same input gives the same output and the same log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::sync::{Arc, Mutex};

use configurator_core::desired::PipelinePlan;
use configurator_core::document::Document;
use configurator_core::handler::{CallLimits, Cause, HandlerInput, HandlerOutput, Signal};
use configurator_core::result::{HttpResponse, RequestResult, ResultEntry};
use configurator_core::{fault, handler as core, request as req};
use configurator_guest::log::{LogSink, no_log};
use configurator_guest::module::Module;
use configurator_guest::runtime::GuestRuntime;
use expect_test::expect;
use fixture::{Guest, input, runtime};
use serde_json::Value;

fn call(
    runtime: &GuestRuntime,
    module: &Arc<Module>,
    input: &HandlerInput,
) -> (HandlerOutput, Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let of_sink = Arc::clone(&lines);
    let sink: LogSink = Arc::new(move |line| of_sink.lock().unwrap().push(line.to_string()));
    let report = runtime.call_blocking(module, "root", input, &CallLimits::default(), sink);
    let lines = lines.lock().unwrap().clone();
    (report.result.unwrap(), lines)
}

#[test]
fn a_nan_has_one_pattern() {
    // 0/0 has another sign on x86 than on ARM, unless it is made canonical.
    let guest = Guest::new()
        .items("(global $zero (mut f64) (f64.const 0))")
        .body(
            "(i64.store (i32.const 64) (i64.reinterpret_f64 (f64.div (global.get $zero) (global.get $zero))))
             (if (i64.ne (i64.load (i32.const 64)) (i64.const 0x7ff8000000000000)) (then (unreachable)))",
        );
    let runtime = runtime();
    let module = runtime.load_blocking(guest.build(), "nan").unwrap();
    call(&runtime, &module, &input("{}"));
}

#[test]
fn each_call_has_memory_of_its_own() {
    // Counts its calls in memory and in a global; both must be fresh each time.
    let guest = Guest::new()
        .items("(global $calls (mut i32) (i32.const 0))")
        .body(
            "(if (i32.or (global.get $calls) (i32.load (i32.const 128))) (then (unreachable)))
             (global.set $calls (i32.const 1))
             (i32.store (i32.const 128) (i32.const 1))
             (drop (memory.grow (i32.const 3)))",
        );
    let runtime = runtime();
    let module = runtime.load_blocking(guest.build(), "counter").unwrap();
    for _ in 0..20 {
        call(&runtime, &module, &input("{}"));
    }
}

/// Grows by a page with each call, and traps in its fourth.
fn counts_its_calls() -> Guest {
    Guest::new()
        .items("(global $calls (mut i32) (i32.const 0))")
        .body(
            "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
             (if (i32.ge_u (global.get $calls) (i32.const 4)) (then (unreachable)))
             (drop (memory.grow (i32.const 1)))",
        )
}

/// The peaks of memory of calls, in pages: each call of an instance grows it by one, from two.
fn pages(limits: &CallLimits, calls: u32) -> Vec<u64> {
    let runtime = runtime();
    let module = runtime
        .load_blocking(counts_its_calls().build(), "calls")
        .unwrap();
    let call = |_| {
        let report = runtime.call_blocking(&module, "root", &input("{}"), limits, no_log());
        report.result.unwrap();
        report.cost.memory_peak >> 16
    };
    (0..calls).map(call).collect()
}

#[test]
fn an_instance_may_serve_several_calls() {
    let reused = |instance_calls| CallLimits {
        instance_calls,
        ..CallLimits::default()
    };
    assert_eq!(pages(&reused(1), 3), [3, 3, 3]);
    assert_eq!(pages(&reused(2), 5), [3, 4, 3, 4, 3]);
    // The fourth call of an instance traps; it is made once more in a fresh one.
    assert_eq!(pages(&reused(100), 7), [3, 4, 5, 3, 4, 5, 3]);
    // So is one that passes the memory of all calls together.
    let four_pages = CallLimits {
        memory: 4 << 16,
        ..reused(100)
    };
    assert_eq!(pages(&four_pages, 4), [3, 4, 3, 4]);
}

#[test]
fn an_instance_serves_calls_of_one_owner() {
    let runtime = runtime();
    let module = runtime
        .load_blocking(counts_its_calls().build(), "calls")
        .unwrap();
    let reused = CallLimits {
        instance_calls: 100,
        ..CallLimits::default()
    };
    let pages = |owner: &str| {
        let limits = reused.owned_by(owner);
        let report = runtime.call_blocking(&module, "root", &input("{}"), &limits, no_log());
        report.result.unwrap();
        report.cost.memory_peak >> 16
    };
    assert_eq!(["one", "one", "other", "one"].map(pages), [3, 4, 3, 5]);
    assert_eq!(runtime.idle_instances(), 2);
    // Their memory is given back when nobody can call them any more.
    drop(module);
    assert_eq!(runtime.idle_instances(), 0);
}

#[test]
fn the_same_input_gives_the_same_output_and_log() {
    // Logs the start of the input's bytes as they lie in memory, and returns one of everything.
    let guest = Guest::new().returns(everything()).body(
        "(call $log (i32.const 3) (i32.const 16) (i32.const 20) (i32.const 0) (i32.const 0))",
    );
    let first = {
        let runtime = runtime();
        let module = runtime.load_blocking(guest.build(), "all").unwrap();
        let first = call(&runtime, &module, &input("{}"));
        assert_eq!(call(&runtime, &module, &input("{}")), first);
        first
    };
    let another = runtime();
    let module = another.load_blocking(guest.build(), "all").unwrap();
    assert_eq!(call(&another, &module, &input("{}")), first);
}

#[test]
fn one_of_everything_comes_back() {
    let runtime = runtime();
    let module = runtime
        .load_blocking(Guest::new().returns(everything()).build(), "all")
        .unwrap();
    let output = call(&runtime, &module, &input("{}")).0;
    expect![[r#"
        HandlerOutput {
            requests: Requests {
                execute_strategy: Graph,
                resource_requests: [
                    Request {
                        name: "apply",
                        is_declarative: true,
                        group_by: Some(
                            "g",
                        ),
                        bootstrap_dep: true,
                        of: Some(
                            ObjectRef {
                                namespace: "ns",
                                name: "n",
                            },
                        ),
                        on_error: Some(
                            DropError,
                        ),
                        depends_on: [
                            "get",
                        ],
                        ready_when: Some(
                            Expression(
                                "object.ok",
                            ),
                        ),
                        once: true,
                        timeout: Some(
                            1.5s,
                        ),
                        operation: Kubernetes(
                            KubernetesRequest {
                                group: "apps",
                                version: "v1",
                                plural: "deployments",
                                kind: "Deployment",
                                namespace: "ns",
                                name: "n",
                                verb: Patch,
                                subresource: Some(
                                    "status",
                                ),
                                field_selector: Some(
                                    "f",
                                ),
                                label_selector: Some(
                                    "l",
                                ),
                                body: Some(
                                    {"a": 9007199254740993},
                                ),
                                patch_type: Json,
                                precheck_exist: false,
                                force: true,
                                cached: true,
                                propagation_policy: Orphan,
                                precondition: Some(
                                    Precondition {
                                        uid: Some(
                                            "u",
                                        ),
                                        resource_version: Some(
                                            "7",
                                        ),
                                    },
                                ),
                            },
                        ),
                    },
                    Request {
                        name: "get",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Kubernetes(
                            KubernetesRequest {
                                group: "",
                                version: "v1",
                                plural: "pods",
                                kind: "",
                                namespace: "",
                                name: "",
                                verb: Get,
                                subresource: None,
                                field_selector: None,
                                label_selector: None,
                                body: None,
                                patch_type: Merge,
                                precheck_exist: true,
                                force: false,
                                cached: false,
                                propagation_policy: Background,
                                precondition: None,
                            },
                        ),
                    },
                    Request {
                        name: "resource",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Config(
                            ConfigRequest {
                                is_transaction: false,
                                operations: [
                                    Resource(
                                        ConfigResource {
                                            config_type: Workload,
                                            verb: Update,
                                            name: "w",
                                            uid: Some(
                                                "u",
                                            ),
                                            namespace: Some(
                                                "ns",
                                            ),
                                            workload_kind: Some(
                                                "Deployment",
                                            ),
                                            value: Some(
                                                "v",
                                            ),
                                        },
                                    ),
                                ],
                                partition: None,
                            },
                        ),
                    },
                    Request {
                        name: "app",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Config(
                            ConfigRequest {
                                is_transaction: false,
                                operations: [
                                    AppConf(
                                        ConfigAppConf {
                                            verb: Delete,
                                            pod_name: "p",
                                            namespace: Some(
                                                "ns",
                                            ),
                                            key: "k",
                                            value: None,
                                        },
                                    ),
                                ],
                                partition: None,
                            },
                        ),
                    },
                    Request {
                        name: "basic",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Config(
                            ConfigRequest {
                                is_transaction: false,
                                operations: [
                                    Basic(
                                        ConfigBasic {
                                            verb: Update,
                                            key: "k",
                                            value: Some(
                                                "v",
                                            ),
                                        },
                                    ),
                                ],
                                partition: None,
                            },
                        ),
                    },
                    Request {
                        name: "two",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Config(
                            ConfigRequest {
                                is_transaction: false,
                                operations: [
                                    TwoLayers(
                                        ConfigTwoLayers {
                                            verb: Create,
                                            second_path: "a",
                                            third_path: "b",
                                            value: Some(
                                                "v",
                                            ),
                                        },
                                    ),
                                ],
                                partition: None,
                            },
                        ),
                    },
                    Request {
                        name: "all",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Config(
                            ConfigRequest {
                                is_transaction: true,
                                operations: [
                                    TwoLayers(
                                        ConfigTwoLayers {
                                            verb: Delete,
                                            second_path: "a",
                                            third_path: "b",
                                            value: None,
                                        },
                                    ),
                                    Basic(
                                        ConfigBasic {
                                            verb: Get,
                                            key: "k",
                                            value: None,
                                        },
                                    ),
                                    AppConf(
                                        ConfigAppConf {
                                            verb: Create,
                                            pod_name: "p",
                                            namespace: None,
                                            key: "k",
                                            value: Some(
                                                "v",
                                            ),
                                        },
                                    ),
                                    Resource(
                                        ConfigResource {
                                            config_type: Node,
                                            verb: Get,
                                            name: "n",
                                            uid: None,
                                            namespace: None,
                                            workload_kind: None,
                                            value: None,
                                        },
                                    ),
                                ],
                                partition: None,
                            },
                        ),
                    },
                    Request {
                        name: "secret",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Secret(
                            SecretRequest {
                                name: "s",
                                verb: Create,
                                value: Some(
                                    [1],
                                ),
                                version: None,
                                partition: None,
                            },
                        ),
                    },
                    Request {
                        name: "http",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Http(
                            HttpRequest {
                                method: "POST",
                                url: "https://a",
                                headers: [
                                    (
                                        "a",
                                        "b",
                                    ),
                                ],
                                body: Some(
                                    [
                                        1,
                                        2,
                                        255,
                                    ],
                                ),
                            },
                        ),
                    },
                    Request {
                        name: "extension",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Extension(
                            ExtensionRequest {
                                extension: "dns",
                                verb: "upsert",
                                target: "t",
                                body: Some(
                                    [2],
                                ),
                            },
                        ),
                    },
                    Request {
                        name: "update",
                        is_declarative: false,
                        group_by: None,
                        bootstrap_dep: false,
                        of: None,
                        on_error: None,
                        depends_on: [],
                        ready_when: None,
                        once: false,
                        timeout: None,
                        operation: Secret(
                            SecretRequest {
                                name: "s",
                                verb: Update,
                                value: None,
                                version: Some(
                                    3,
                                ),
                                partition: None,
                            },
                        ),
                    },
                ],
                batch_error_strategy: DropError,
            },
            pass_through_args: [
                (
                    "arg",
                    1.10,
                ),
            ],
            outcome: Wait(
                Wake {
                    after: Some(
                        60s,
                    ),
                    signals: [
                        "go",
                    ],
                    objects: [
                        ObjectKey {
                            group: "",
                            version: "v1",
                            plural: "pods",
                            namespace: "ns",
                            name: "n",
                        },
                    ],
                },
            ),
            next: Some(
                "Running",
            ),
            statuses: [
                StatusUpdate {
                    of: Some(
                        ObjectRef {
                            namespace: "",
                            name: "n",
                        },
                    ),
                    status: {},
                },
            ],
            data: Some(
                null,
            ),
            events: [
                Event {
                    of: None,
                    event_type: Warning,
                    reason: "Odd",
                    message: "m",
                },
            ],
            progress: Some(
                Progress {
                    percent: 100,
                    message: "m",
                },
            ),
            output: Some(
                {},
            ),
            details: Some(
                [],
            ),
            desired: Some(
                DesiredSet {
                    entries: [
                        DesiredEntry {
                            name: "d",
                            content: Kubernetes(
                                {},
                            ),
                            depends_on: [
                                "e",
                            ],
                            ready_when: Some(
                                Healthy,
                            ),
                            failed_when: Some(
                                "f",
                            ),
                            timeout: Some(
                                1s,
                            ),
                            on_existing: CreateOnly,
                            on_conflict: Force,
                            on_immutable: Recreate,
                            ignored_paths: [
                                ".spec",
                            ],
                            on_delete: OnlyUnderWipeOut,
                        },
                        DesiredEntry {
                            name: "e",
                            content: Config(
                                ConfigContent {
                                    write: TwoLayers(
                                        ConfigTwoLayers {
                                            verb: Update,
                                            second_path: "a",
                                            third_path: "b",
                                            value: Some(
                                                "v",
                                            ),
                                        },
                                    ),
                                    partition: Some(
                                        "p",
                                    ),
                                },
                            ),
                            depends_on: [],
                            ready_when: Some(
                                Expression(
                                    "x",
                                ),
                            ),
                            failed_when: None,
                            timeout: None,
                            on_existing: Refuse,
                            on_conflict: Fail,
                            on_immutable: Fail,
                            ignored_paths: [],
                            on_delete: WithOwner,
                        },
                        DesiredEntry {
                            name: "f",
                            content: Secret(
                                SecretContent {
                                    name: "s",
                                    value: Some(
                                        [1],
                                    ),
                                    partition: None,
                                },
                            ),
                            depends_on: [],
                            ready_when: None,
                            failed_when: None,
                            timeout: None,
                            on_existing: Refuse,
                            on_conflict: Fail,
                            on_immutable: Fail,
                            ignored_paths: [],
                            on_delete: WithOwner,
                        },
                    ],
                    allow_empty: true,
                    termination_policy: Some(
                        Path(
                            ".spec.p",
                        ),
                    ),
                    orders: Some(
                        Orders {
                            provision: [
                                [
                                    "d",
                                ],
                                [
                                    "e",
                                    "f",
                                ],
                            ],
                            update: [],
                            terminate: [
                                [
                                    "f",
                                ],
                            ],
                        },
                    ),
                    pre_terminate: [
                        Request {
                            name: "before",
                            is_declarative: false,
                            group_by: None,
                            bootstrap_dep: false,
                            of: None,
                            on_error: None,
                            depends_on: [],
                            ready_when: None,
                            once: false,
                            timeout: None,
                            operation: Config(
                                ConfigRequest {
                                    is_transaction: false,
                                    operations: [
                                        Basic(
                                            ConfigBasic {
                                                verb: Delete,
                                                key: "k",
                                                value: None,
                                            },
                                        ),
                                    ],
                                    partition: None,
                                },
                            ),
                        },
                    ],
                },
            ),
            remove_from_plan: [
                "old",
            ],
            reads: [
                Request {
                    name: "read",
                    is_declarative: false,
                    group_by: None,
                    bootstrap_dep: false,
                    of: None,
                    on_error: None,
                    depends_on: [],
                    ready_when: None,
                    once: false,
                    timeout: None,
                    operation: Config(
                        ConfigRequest {
                            is_transaction: false,
                            operations: [
                                Basic(
                                    ConfigBasic {
                                        verb: Get,
                                        key: "k",
                                        value: None,
                                    },
                                ),
                            ],
                            partition: None,
                        },
                    ),
                },
            ],
        }
    "#]]
    .assert_debug_eq(&output);
}

#[test]
fn one_of_everything_goes_in_and_out_again() {
    let runtime = runtime();
    let returning = Guest::new().returns(everything()).build();
    let module = runtime.load_blocking(&returning, "all").unwrap();
    let output = call(&runtime, &module, &input("{}")).0;
    let plan = PipelinePlan {
        requests: output.requests,
        desired: output.desired,
    };
    // Returns the plan and the arguments that it was given.
    let echo = Guest::new().body(
        "(memory.copy (i32.add (local.get $result) (i32.const REQUESTS_OUT))
           (i32.add (local.get $input) (i32.const REQUESTS_IN)) (i32.const REQUESTS_SIZE))
         (memory.copy (i32.add (local.get $result) (i32.const SET_OUT))
           (i32.add (local.get $input) (i32.const SET_IN)) (i32.const SET_SIZE))
         (i64.store (i32.add (local.get $result) (i32.const ARGS_OUT))
           (i64.load (i32.add (local.get $input) (i32.const ARGS_IN))))",
    );
    let module = runtime.load_blocking(echo.build(), "echo").unwrap();
    let input = full_input(plan);
    let output = call(&runtime, &module, &input).0;
    let returned = PipelinePlan {
        requests: output.requests,
        desired: output.desired,
    };
    assert_eq!(Some(returned), input.plan);
    assert_eq!(output.pass_through_args, input.pass_through_args);
}

fn everything() -> Value {
    serde_json::from_str(include_str!("fixture/everything.json")).unwrap()
}

fn full_input(plan: PipelinePlan) -> HandlerInput {
    let document = || Document::parse("{\"a\": 1}").unwrap();
    let result = RequestResult {
        request_name: "r".into(),
        sink: req::SinkName::Http,
        is_declarative: false,
        query_objects: vec![document(), document()],
        created: input("{}").context.now,
        finished: None,
        error: Some(fault::Fault::new(fault::FaultKind::NotSent, "m").with_status(409)),
        http_response: Some(HttpResponse {
            status: 200,
            headers: vec![("a".into(), "b".into())],
            body: vec![0, 255],
        }),
    };
    let mut full = HandlerInput::clone(&input("{}"));
    full.request_results = vec![
        ("one".into(), ResultEntry::One(result.clone())),
        (
            "group".into(),
            ResultEntry::Group(vec![result.clone(), result.clone()]),
        ),
    ];
    full.pass_through_args = vec![("a".into(), document())];
    full.outputs = vec![("o".into(), document())];
    full.plan = Some(plan);
    full.last = Some(core::HandlerState {
        error: Some(core::HandlerError {
            message: "m".into(),
            fatal: true,
            retry_after: None,
            code: Some("C".into()),
        }),
        data: Some(document()),
        request_results: vec![("one".into(), ResultEntry::One(result))],
        ..core::HandlerState::default()
    });
    full.context.cause = Cause::Signal(Signal {
        name: "s".into(),
        data: Some(document()),
    });
    full
}
