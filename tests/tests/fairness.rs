//! Objects that cost their host much delay no others, in virtual time, where a call takes a declared time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::time::Duration;

use anyhow::Result;
use configurator_core::handler::ResourceObject;
use configurator_core::run::Call;
use configurator_core::time::Timestamp;
use configurator_host::clock::VirtualClock;
use configurator_host::controller::call_mode::{CallMode, ChargedCalls};
use configurator_host::host::HostBuilder;
use configurator_tests::poison::{self, Poison};
use configurator_tests::world::Place;

/// Healthy objects of each of the two Configurators.
const HEALTHY: usize = 100;
const POISONED: usize = 50;
/// Calls at a time. More than Configurators, since these share the calls evenly and a hot loop takes two of them.
const PARALLEL_CALLS: u32 = 4;
/// How long poisoned objects are there before healthy ones.
const BEFORE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(10);
/// How long a healthy call takes.
const CALL: Duration = Duration::from_millis(2);
/// The number of times longer that a healthy object may wait than without poison, at the 99th percentile.
const RATIO: f64 = 2.0;

/// Returns how long a call takes. A poisoned object that computes or allocates goes on until its deadline.
fn duration(kind: Poison, call: &Call) -> Duration {
    let objects = match &call.input.resource_object {
        ResourceObject::One(object) => std::slice::from_ref(object),
        ResourceObject::Batch(objects) => objects.as_slice(),
    };
    let is_poisoned = objects
        .iter()
        .any(|object| object.object.as_str().contains("\"name\":\"poison"));
    match kind {
        _ if !is_poisoned => CALL,
        Poison::Loop | Poison::Allocation => Duration::from_secs(1),
        Poison::LogFlood | Poison::ManyRequests | Poison::LargeStatus => Duration::from_millis(50),
        _ => CALL,
    }
}

/// Measures how long healthy objects of each Configurator wait, in milliseconds at the 99th percentile.
async fn waits(kind: Poison, poisoned: usize) -> Result<[f64; 2]> {
    let clock = VirtualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let calls = ChargedCalls::new(PARALLEL_CALLS, TICK, move |call| duration(kind, call));
    let build = |builder: HostBuilder| {
        let mode = CallMode::Charged(calls);
        builder.clock(clock).call_mode(mode)
    };
    let place = Place::default();
    let latencies = poison::latencies(&place, kind, poisoned, HEALTHY, BEFORE, build).await?;
    Ok(latencies.map(|of| poison::percentile(&of, 99)))
}

#[tokio::test(start_paused = true)]
async fn no_kind_of_poison_delays_healthy_objects() -> Result<()> {
    let mut unfair = Vec::new();
    for kind in Poison::ALL {
        let without = waits(kind, 0).await?;
        let with = waits(kind, POISONED).await?;
        let row = format!(
            "{kind:?}: {without:?} ms without, {with:?} ms beside {POISONED} poisoned objects"
        );
        println!("{row}");
        let mut pairs = without.iter().zip(with);
        if pairs.any(|(without, with)| with > without * RATIO) {
            unfair.push(row);
        }
    }
    assert!(unfair.is_empty(), "{unfair:#?}");
    Ok(())
}
