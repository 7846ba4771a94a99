//! What a fresh instance and call cost.
//!
//! `cargo bench -p configurator-guest --bench call [-- MODULE.wasm HANDLER OBJECT.json]`; without arguments it measures
//! a handler that does nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench"
)]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::sync::Arc;
use std::time::{Duration, Instant};

use configurator_core::handler::{CallLimits, HandlerInput};
use configurator_guest::log::no_log;
use configurator_guest::module::Module;
use configurator_guest::runtime::GuestRuntime;
use fixture::{Guest, input, runtime};

const CALLS: usize = 20_000;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let runtime = runtime();
    match &*arguments {
        [path, handler, object] => {
            let started = Instant::now();
            let module = runtime
                .load_blocking(std::fs::read(path).unwrap(), path)
                .unwrap_or_else(|error| panic!("{error}"));
            println!("load ms: {:.1}", started.elapsed().as_secs_f64() * 1e3);
            println!("imports: {}", module.imports().join(" "));
            let object = std::fs::read_to_string(object).unwrap();
            measure(&runtime, &module, handler, &input(&object));
        }
        _ => {
            let module = runtime.load_blocking(Guest::new().build(), "nothing");
            measure(&runtime, &module.unwrap(), "root", &input("{}"));
        }
    }
}

fn measure(runtime: &GuestRuntime, module: &Arc<Module>, handler: &str, input: &Arc<HandlerInput>) {
    let limits = CallLimits {
        memory: 512 << 20,
        ..CallLimits::default()
    };
    let first = runtime.call_blocking(module, handler, input, &limits, no_log());
    match first.result {
        Ok(output) => println!("requests: {}", output.requests.resource_requests.len()),
        Err(fault) => return println!("fault: {fault}"),
    }
    println!("memory KiB: {}", first.cost.memory_peak >> 10);
    let calls = if first.cost.wall_time > Duration::from_millis(1) {
        CALLS / 20
    } else {
        CALLS
    };
    let blocking = |limits: &CallLimits| {
        let call = |_| {
            let started = Instant::now();
            runtime
                .call_blocking(module, handler, input, limits, no_log())
                .result
                .unwrap();
            started.elapsed()
        };
        median((0..calls).map(call).collect())
    };
    println!(
        "fresh instance and call, median us: {:.1}",
        blocking(&limits)
    );
    let reused = CallLimits {
        instance_calls: 1000,
        ..limits
    };
    println!("reused instance call, median us: {:.1}", blocking(&reused));
    let pooled = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(async {
            let mut times = Vec::new();
            for _ in 0..calls {
                let started = Instant::now();
                runtime
                    .call(module, handler, Arc::clone(input), limits, no_log())
                    .await
                    .result
                    .unwrap();
                times.push(started.elapsed());
            }
            times
        });
    println!("the same of a task, median us: {:.1}", median(pooled));
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}
