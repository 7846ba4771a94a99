//! Modules that mean harm. Each is stopped, says why, and leaves everything else alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use configurator_core::handler::{CallFault, CallLimits};
use configurator_guest::log::{LogSink, no_log};
use configurator_guest::options::GuestOptions;
use configurator_guest::report::CallReport;
use configurator_guest::runtime::GuestRuntime;
use expect_test::{Expect, expect};
use fixture::{Guest, input, runtime};
use serde_json::{Value, json};

const LOG: &str =
    "(call $log (i32.const 3) (i32.const 16) (i32.const 20) (i32.const 0) (i32.const 0))";

fn limits() -> CallLimits {
    CallLimits {
        deadline: Duration::from_millis(100),
        memory: 4 << 20,
        ..CallLimits::default()
    }
}

fn call_with(guest: &Guest, limits: &CallLimits, log: LogSink) -> CallReport {
    let runtime = runtime();
    let module = runtime.load_blocking(guest.build(), "hostile").unwrap();
    let report = runtime.call_blocking(&module, "root", &input("{}"), limits, log);
    let good = runtime.load_blocking(Guest::new().build(), "good").unwrap();
    let next = runtime.call_blocking(
        &good,
        "root",
        &input("{}"),
        &CallLimits::default(),
        no_log(),
    );
    next.result.expect("another module is not harmed");
    report
}

fn call(guest: &Guest) -> CallFault {
    call_with(guest, &limits(), no_log()).result.unwrap_err()
}

#[track_caller]
fn check(guest: &Guest, expected: Expect) {
    expected.assert_eq(&call(guest).to_string());
}

#[track_caller]
fn check_returned(value: Value, expected: Expect) {
    check(&Guest::new().returns(value), expected);
}

#[test]
fn a_trap_carries_frames_and_the_end_of_the_log() {
    let guest = Guest::new()
        .items("(func $inner (unreachable)) (func $outer (call $inner))")
        .body(&format!("{LOG} (call $outer)"));
    check(
        &guest,
        expect![[r#"
        the handler trapped: wasm trap: wasm `unreachable` instruction executed
          in guest!inner
          in guest!outer
          in guest!handle
        the end of its log:
        warn: hello from the guest"#]],
    );
}

#[test]
fn an_endless_loop_ends_at_the_deadline() {
    let report = call_with(
        &Guest::new().body(&format!("{LOG} (loop $again (br $again))")),
        &limits(),
        no_log(),
    );
    assert!(report.cost.cpu_time >= limits().deadline);
    let CallFault::Deadline { deadline, message } = report.result.unwrap_err() else {
        panic!("no deadline");
    };
    assert_eq!(deadline, limits().deadline);
    assert!(message.starts_with("it used "), "{message}");
    assert!(message.contains("CPU time"), "{message}");
    assert!(message.contains("hello from the guest"), "{message}");
}

#[test]
fn endless_recursion_overflows_the_guests_stack_only() {
    let guest = Guest::new()
        .items("(func $dive (param i64) (result i64) (i64.add (call $dive (local.get 0)) (call $dive (i64.add (local.get 0) (i64.const 1)))))")
        .body("(drop (call $dive (i64.const 0)))");
    let CallFault::Stack { message } = call(&guest) else {
        panic!("no stack overflow");
    };
    assert!(message.starts_with("too many nested calls"), "{message}");
    assert!(message.contains("dive"), "{message}");
}

#[test]
fn endless_allocation_stops_at_the_limit() {
    let report = call_with(
        &Guest::new().body("(loop $more (drop (memory.grow (i32.const 1))) (br $more))"),
        &limits(),
        no_log(),
    );
    assert_eq!(report.cost.memory_peak, 4 << 20);
    let CallFault::Memory { limit, message } = report.result.unwrap_err() else {
        panic!("no memory fault");
    };
    assert_eq!(limit, 4 << 20);
    assert!(
        message.starts_with("it asked for 4259840 bytes of memory in all"),
        "{message}"
    );
}

#[test]
fn a_module_that_begins_too_large_is_a_memory_fault() {
    let CallFault::Memory { .. } = call(&Guest::new().memory(100)) else {
        panic!("no memory fault");
    };
}

#[test]
fn a_hundred_megabytes_are_refused_before_they_are_copied() {
    // The message of the error is said to begin at 0 and to have 100 MB.
    let guest = Guest::new()
        .returns(json!({"err": {"message": "x"}}))
        .memory(1600)
        .body("(i32.store offset=12 (local.get $result) (i32.const 100000000)) (i32.store offset=8 (local.get $result) (i32.const 0))");
    let limits = CallLimits {
        memory: 128 << 20,
        ..limits()
    };
    let fault = call_with(&guest, &limits, no_log()).result.unwrap_err();
    expect!["the output has 5242880 bytes or more; limits.outputSize allows 1048576"]
        .assert_eq(&fault.to_string());
}

#[test]
fn an_output_past_the_limit_is_refused() {
    let guest = Guest::new().returns(json!({"err": {"message": "x".repeat(2000)}}));
    let limits = CallLimits {
        output_size: 1000,
        ..limits()
    };
    let fault = call_with(&guest, &limits, no_log()).result.unwrap_err();
    expect!["the output has 2000 bytes or more; limits.outputSize allows 1000"]
        .assert_eq(&fault.to_string());
}

#[test]
fn an_input_past_the_limit_is_not_handed_over() {
    let limits = CallLimits {
        input_size: 3,
        ..limits()
    };
    let report = call_with(&Guest::new().body("(unreachable)"), &limits, no_log());
    expect!["the input has 4 bytes; limits.inputSize allows 3"]
        .assert_eq(&report.result.unwrap_err().to_string());
}

#[test]
fn a_flood_of_log_lines_is_cut() {
    let seen = Arc::new(AtomicUsize::new(0));
    let of_sink = Arc::clone(&seen);
    let sink: LogSink = Arc::new(move |_| {
        of_sink.fetch_add(1, Ordering::SeqCst);
    });
    let guest = Guest::new().body(&format!(
        "(loop $more {LOG} (br_if $more (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5000))))"
    ));
    let report = call_with(
        &guest,
        &CallLimits {
            deadline: Duration::from_secs(10),
            ..limits()
        },
        sink,
    );
    report.result.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 1000);
    assert_eq!(
        (report.cost.log_lines, report.cost.log_dropped),
        (1000, 4000)
    );
}

#[test]
fn a_log_line_out_of_bounds_is_a_trap() {
    let guest = Guest::new().body("(call $log (i32.const 3) (i32.const 16) (i32.const 200000000) (i32.const 0) (i32.const 0))");
    let CallFault::Trap { message } = call(&guest) else {
        panic!("no trap");
    };
    assert!(message.contains("out of bounds"), "{message}");
}

#[test]
fn pointers_out_of_bounds_are_a_trap() {
    let guest = Guest::new().body("(local.set $result (i32.const 131064))");
    let CallFault::Trap { message } = call(&guest) else {
        panic!("no trap");
    };
    assert!(message.contains("bounds"), "{message}");
}

fn nested(levels: usize) -> String {
    "[".repeat(levels)
}

#[test]
fn documents_are_checked() {
    let write = |body: &str| {
        json!({"ok": {"requests": {"resource-requests": [{
            "request-name": "write",
            "operation": {"kubernetes": {"verb": "apply", "resource-body": body}},
        }]}}})
    };
    check_returned(
        write("{"),
        expect![[
            r#"the output is invalid: request "write": resource-body is not well-formed JSON: EOF while parsing an object at line 1 column 1"#
        ]],
    );
    check_returned(
        write(&nested(101)),
        expect![[
            r#"the output is invalid: request "write": resource-body is nested more than 100 levels deep (at byte 100)"#
        ]],
    );
    check_returned(
        write(&nested(1_000_000)),
        expect![[
            r#"the output is invalid: request "write": resource-body is nested more than 100 levels deep (at byte 100)"#
        ]],
    );
    check_returned(
        json!({"ok": {"pass-through-args": [["notes", "nope"]]}}),
        expect![[
            r#"the output is invalid: pass-through-args "notes" is not well-formed JSON: expected ident at line 1 column 2"#
        ]],
    );
    check_returned(
        json!({"ok": {"data": "1 2"}}),
        expect![
            "the output is invalid: data is not well-formed JSON: trailing characters at line 1 column 3"
        ],
    );
    check_returned(
        json!({"ok": {"desired": {"entries": [{"name": "a", "content": {"kubernetes": ""}}]}}}),
        expect![[
            r#"the output is invalid: entry "a": object is not well-formed JSON: EOF while parsing a value at line 1 column 0"#
        ]],
    );
    check_returned(
        json!({"ok": {"progress": {"percent": 101, "message": ""}}}),
        expect!["the output is invalid: progress: percent is 101, and must be 0 to 100"],
    );
}

#[test]
fn an_error_of_the_handler_is_handed_on() {
    check_returned(
        json!({"err": {"message": "no node yet", "retry-after": 5000, "code": "WAIT"}}),
        expect!["the handler returned an error: no node yet"],
    );
}

#[tokio::test]
async fn a_loop_does_not_keep_others_waiting() {
    let runtime = runtime();
    let hostile = Guest::new().body("(loop $again (br $again))");
    let hostile = runtime.load_blocking(hostile.build(), "hostile").unwrap();
    let good = runtime.load_blocking(Guest::new().build(), "good").unwrap();
    let endless = {
        let (runtime, limits) = (
            runtime.clone(),
            CallLimits {
                deadline: Duration::from_millis(500),
                ..limits()
            },
        );
        tokio::spawn(async move {
            runtime
                .call(&hostile, "root", input("{}"), limits, no_log())
                .await
        })
    };
    for _ in 0..10 {
        let report = runtime
            .call(&good, "root", input("{}"), limits(), no_log())
            .await;
        report.result.unwrap();
    }
    let fault = endless.await.unwrap().result.unwrap_err();
    assert!(matches!(fault, CallFault::Deadline { .. }), "{fault}");
}

#[tokio::test]
async fn more_loops_than_turns_keep_no_short_call_waiting() {
    const LOOPS: usize = 4;
    let runtime = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        ..GuestOptions::default()
    })
    .unwrap();
    let hostile = Guest::new().body(&format!("{LOG} (loop $again (br $again))"));
    let hostile = runtime.load_blocking(hostile.build(), "hostile").unwrap();
    let good = runtime.load_blocking(Guest::new().build(), "good").unwrap();
    let lines = Arc::new(AtomicUsize::new(0));
    let endless = [(); LOOPS].map(|()| {
        let (runtime, hostile, lines) = (runtime.clone(), hostile.clone(), lines.clone());
        let limits = CallLimits {
            deadline: Duration::from_millis(500),
            ..limits()
        };
        let log: LogSink = Arc::new(move |_| {
            lines.fetch_add(1, Ordering::SeqCst);
        });
        tokio::spawn(async move {
            let called = runtime.call(&hostile, "root", input("{}"), limits, log);
            called.await
        })
    });
    // All have begun, and all but one were given up at their first tick.
    while runtime.waiting_long_calls() < LOOPS - 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(lines.load(Ordering::SeqCst), LOOPS);
    for _ in 0..10 {
        let called = runtime.call(&good, "root", input("{}"), limits(), no_log());
        called.await.result.unwrap();
    }
    assert!(!endless.iter().all(tokio::task::JoinHandle::is_finished));
    for call in endless {
        let fault = call.await.unwrap().result.unwrap_err();
        assert!(matches!(fault, CallFault::Deadline { .. }), "{fault}");
    }
    // Those that were made again have delivered their line once.
    assert_eq!(lines.load(Ordering::SeqCst), LOOPS);
}

#[tokio::test]
async fn a_call_that_the_system_interrupts_for_some_ticks_is_a_short_one() {
    let runtime = runtime();
    // It logs, reaches points where ticks are looked at, and logs again.
    let spin = "(local.set $i (i32.const 10)) (loop $more (br_if $more (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))";
    let guest = Guest::new().body(&format!("{LOG} {spin} {LOG}"));
    let guest = runtime.load_blocking(guest.build(), "short").unwrap();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let of_lines = Arc::clone(&threads);
    // While this thread sleeps, it uses no CPU time, as when the system runs another one.
    let log: LogSink = Arc::new(move |_| {
        let interruption = 5 * GuestOptions::default().tick;
        std::thread::sleep(interruption);
        of_lines.lock().unwrap().push(std::thread::current().id());
    });
    let called = runtime.call(&guest, "root", input("{}"), limits(), log);
    called.await.result.unwrap();
    // One that lasts goes on on another thread.
    let here = std::thread::current().id();
    assert_eq!(*threads.lock().unwrap(), [here, here]);
}

#[tokio::test]
async fn a_long_call_gets_cpu_time_though_all_processors_are_busy() {
    let is_over = Arc::new(AtomicBool::new(false));
    let processors = std::thread::available_parallelism().unwrap().get();
    let busy: Vec<_> = (0..processors)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let runtime = runtime();
    let endless = Guest::new().body("(loop $again (br $again))");
    let endless = runtime.load_blocking(endless.build(), "endless").unwrap();
    let limits = CallLimits {
        deadline: Duration::from_secs(1),
        ..limits()
    };
    let called = runtime.call(&endless, "root", input("{}"), limits, no_log());
    let fault = called.await.result.unwrap_err();
    is_over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    // It used up its CPU time before ten times that had passed.
    assert!(fault.to_string().contains("of CPU time"), "{fault}");
}

#[tokio::test]
async fn loops_leave_the_thread_of_their_callers() {
    let runtime = runtime();
    let hostile = Guest::new().body("(loop $again (br $again))");
    let hostile = runtime.load_blocking(hostile.build(), "hostile").unwrap();
    let limits = CallLimits {
        deadline: Duration::from_millis(500),
        ..limits()
    };
    let endless = [(); 3].map(|()| {
        let (runtime, hostile) = (runtime.clone(), Arc::clone(&hostile));
        tokio::spawn(async move {
            runtime
                .call(&hostile, "root", input("{}"), limits, no_log())
                .await
        })
    });
    // This runtime has one thread: that of the test.
    tokio::task::yield_now().await;
    assert!(!endless.iter().any(tokio::task::JoinHandle::is_finished));
    for call in endless {
        let report = call.await.unwrap();
        let fault = report.result.unwrap_err();
        assert!(matches!(fault, CallFault::Deadline { .. }), "{fault}");
        let cost = report.cost;
        assert!(cost.cpu_time <= cost.wall_time, "{cost:?}");
    }
}
