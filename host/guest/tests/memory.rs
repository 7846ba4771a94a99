//! Calls share one budget of memory: what does not fit waits, and holds nothing meanwhile.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use configurator_core::handler::CallLimits;
use configurator_guest::log::{LogSink, no_log};
use configurator_guest::module::Module;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use expect_test::expect;
use fixture::{Guest, input};

const MIB: u64 = 1 << 20;
const LOG: &str =
    "(call $log (i32.const 3) (i32.const 16) (i32.const 20) (i32.const 0) (i32.const 0))";
/// Takes some ticks.
const SPIN: &str = "(local.set $i (i32.const 30000000))
    (loop $more (br_if $more (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))";

/// A runtime whose guests have so much memory in all.
fn runtime(memory: u64, parallel_calls: u32) -> GuestRuntime {
    GuestRuntime::new(GuestOptions {
        memory,
        parallel_calls,
        ..GuestOptions::default()
    })
    .unwrap()
}

/// A module whose handler grows its memory by so many pages and traps if it cannot.
fn grows(runtime: &GuestRuntime, pages: u32, then: &str) -> Arc<Module> {
    let body = format!(
        "(if (i32.eq (memory.grow (i32.const {pages})) (i32.const -1)) (then (unreachable))) {then}"
    );
    let bytes = Guest::new().body(&body).build();
    runtime.load_blocking(bytes, "grows").unwrap()
}

fn limits(memory: u64) -> CallLimits {
    CallLimits {
        memory,
        ..CallLimits::default()
    }
}

/// Waits until this holds. The test's time limit is that of the harness.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_allocate_never_hold_more_than_the_budget() {
    const CALLS: usize = 24;
    // A call that lasts longer than a tick can be made again, and would count while it waits.
    let runtime = GuestRuntime::new(GuestOptions {
        memory: 10 * MIB,
        parallel_calls: u32::try_from(CALLS).unwrap(),
        tick: Duration::from_secs(1),
        ..GuestOptions::default()
    });
    let runtime = runtime.unwrap();
    let module = grows(&runtime, 60, &format!("{LOG} {SPIN} {LOG}"));
    let (held, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = (0..CALLS).map(|_| {
        let (held, most) = (held.clone(), most.clone());
        let first = AtomicUsize::new(0);
        // A handler writes its first line when it has the memory, and its second before it ends.
        let log: LogSink = Arc::new(move |_| {
            if first.fetch_add(1, Ordering::SeqCst) == 0 {
                let now = held.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
            } else {
                held.fetch_sub(1, Ordering::SeqCst);
            }
        });
        let (runtime, module) = (runtime.clone(), module.clone());
        tokio::spawn(async move {
            let called = runtime.call(&module, "root", input("{}"), limits(4 * MIB), log);
            called.await
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().result.unwrap();
    }
    assert_eq!(held.load(Ordering::SeqCst), 0);
    let most = most.load(Ordering::SeqCst);
    assert!((1..=2).contains(&most), "{most} calls of 4 MiB at a time");
    assert_eq!(
        (runtime.memory().reserved(), runtime.memory().waiting()),
        (0, 0)
    );
}

#[tokio::test]
async fn a_call_that_waits_for_memory_holds_no_turn() {
    let runtime = runtime(8 * MIB, 1);
    let large = grows(&runtime, 60, "");
    let small = runtime
        .load_blocking(Guest::new().build(), "small")
        .unwrap();
    let held = runtime.memory().try_reserve(5 * MIB).unwrap();
    let waiting = tokio::spawn({
        let (runtime, large) = (runtime.clone(), large.clone());
        async move {
            let called = runtime.call(&large, "root", input("{}"), limits(4 * MIB), no_log());
            called.await
        }
    });
    until(|| runtime.memory().waiting() == 1).await;
    let report = runtime
        .call(&small, "root", input("{}"), limits(4 * MIB), no_log())
        .await;
    report.result.unwrap();
    assert_eq!(runtime.memory().waiting(), 1);
    assert_eq!(runtime.memory().reserved(), held.bytes());
    drop(held);
    waiting.await.unwrap().result.unwrap();
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_waits_leaves_the_queue() {
    let runtime = runtime(8 * MIB, 1);
    let large = grows(&runtime, 60, "");
    let held = runtime.memory().try_reserve(8 * MIB).unwrap();
    let waiting = tokio::spawn({
        let runtime = runtime.clone();
        async move {
            let called = runtime.call(&large, "root", input("{}"), limits(4 * MIB), no_log());
            called.await
        }
    });
    until(|| runtime.memory().waiting() == 1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(runtime.memory().waiting(), 0);
    drop(held);
    assert_eq!(runtime.memory().reserved(), 0);
}

#[tokio::test]
async fn idle_instances_give_way_before_a_call_waits() {
    let runtime = runtime(6 * MIB, 2);
    let (one, other) = (grows(&runtime, 60, ""), grows(&runtime, 61, ""));
    let limits = CallLimits {
        instance_calls: 10,
        ..limits(5 * MIB)
    };
    for module in [&one, &other, &one] {
        let called = runtime.call(module, "root", input("{}"), limits, no_log());
        called.await.result.unwrap();
        assert_eq!(runtime.idle_instances(), 1);
        assert!(runtime.memory().reserved() > 3 * MIB);
    }
    drop((one, other));
    assert_eq!(runtime.memory().reserved(), 0);
}

#[test]
fn a_call_that_can_never_fit_is_refused_with_both_numbers() {
    let runtime = runtime(8 * MIB, 1);
    let module = grows(&runtime, 1, "");
    let report = runtime.call_blocking(&module, "root", &input("{}"), &limits(9 * MIB), no_log());
    expect!["the handler passed its memory limit of 8388608 bytes: limits.memory is 9437184 bytes, and the guests of this host have 8388608 bytes in all; lower limits.memory, or raise guest_memory of the host"]
        .assert_eq(&report.result.unwrap_err().to_string());
}

#[test]
fn a_thread_that_calls_waits_for_memory_without_a_slot() {
    let runtime = runtime(8 * MIB, 1);
    let large = grows(&runtime, 60, "");
    let held = runtime.memory().try_reserve(5 * MIB).unwrap();
    std::thread::scope(|scope| {
        let call = || {
            let called =
                runtime.call_blocking(&large, "root", &input("{}"), &limits(4 * MIB), no_log());
            called.result.unwrap();
        };
        // More than there are slots for callers that block.
        let calls = [(); 6].map(|()| scope.spawn(call));
        while runtime.memory().waiting() < calls.len() {
            std::thread::yield_now();
        }
        runtime
            .load_blocking(Guest::new().build(), "small")
            .unwrap();
        drop(held);
    });
    assert_eq!(runtime.memory().reserved(), 0);
}
