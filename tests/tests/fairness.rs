//! Objects that cost their host much delay no others, in virtual time: a call takes a declared time there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_core::handler::ResourceObject;
use configurator_core::run::Call;
use configurator_core::time::Timestamp;
use configurator_host::clock::VirtualClock;
use configurator_host::controller::call_mode::{CallMode, ChargedCalls};
use configurator_tests::poison::{self, Poison, Watcher};
use configurator_tests::world::{Place, World};
use tokio::time::Instant;

/// Healthy objects of each of the two Configurators.
const HEALTHY: usize = 100;
/// How often a healthy object of each is made.
const PACE: Duration = Duration::from_millis(20);
/// How often each poisoned object is changed, so that its handler is called again.
const CHANGES: Duration = Duration::from_millis(500);
const POISONED: usize = 10;
/// Calls at a time.
const PARALLEL_CALLS: u32 = 2;
const TICK: Duration = Duration::from_millis(10);
/// What a healthy call takes.
const CALL: Duration = Duration::from_millis(2);
/// How much longer than without poison a healthy object may wait, at the 99th percentile.
const RATIO: f64 = 2.0;
const OF: [&str; 2] = ["same", "other"];

/// What a call of a poisoned object takes: one that computes or allocates goes on until its deadline.
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

/// The 99th percentiles of the milliseconds that healthy objects of each Configurator wait.
async fn waits(kind: Poison, poisoned: usize) -> Result<[f64; 2]> {
    let watcher = Watcher::default();
    let before = watcher.clone();
    let clock = VirtualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let calls = ChargedCalls::new(PARALLEL_CALLS, TICK, move |call| duration(kind, call));
    let world = World::start_at(&Place::default(), |builder| {
        builder
            .clock(clock)
            .call_mode(CallMode::Charged(calls))
            .decorate_sinks(move |sinks| before.before(sinks))
    })
    .await?;
    poison::declare(&world, kind).await?;
    world.settled(&OF).await?;
    let poisoning = async {
        for change in 0.. {
            for number in 0..poisoned {
                poison::poisoned_object(&world, kind, number, change).await?;
            }
            tokio::time::sleep(CHANGES).await;
        }
        Ok::<(), anyhow::Error>(())
    };
    let working = async {
        tokio::time::sleep(CHANGES).await;
        let mut since = BTreeMap::new();
        for number in 0..HEALTHY {
            for of in OF {
                let name = format!("{of}-{number}");
                poison::healthy_object(&world, of, &name, number).await?;
                since.insert(name, Instant::now());
            }
            tokio::time::sleep(PACE).await;
        }
        let are_done = || async { Ok(watcher.done().len() >= since.len()) };
        world
            .until("the healthy objects to be handled", are_done)
            .await?;
        Ok::<_, anyhow::Error>(since)
    };
    let since = tokio::select! {
        since = working => since?,
        poisoned = poisoning => return Err(poisoned.err().context("the poison ended")?),
    };
    let done = watcher.done();
    world.kill().await?;
    Ok(OF.map(|of| {
        let of = since.iter().filter(|(name, _)| name.starts_with(of));
        let took = of.map(|(name, since)| done[name].saturating_duration_since(*since));
        let mut took: Vec<f64> = took.map(|took| took.as_secs_f64() * 1e3).collect();
        took.sort_by(f64::total_cmp);
        took[(took.len() - 1) * 99 / 100]
    }))
}

#[tokio::test(start_paused = true)]
async fn no_kind_of_poison_delays_healthy_objects() -> Result<()> {
    let mut unfair = Vec::new();
    for kind in Poison::ALL {
        let without = waits(kind, 0).await?;
        let with = waits(kind, POISONED).await?;
        println!("{kind:?}: {without:?} ms without, {with:?} ms with");
        let is_unfair = without
            .iter()
            .zip(with)
            .any(|(without, with)| with > without * RATIO);
        if is_unfair {
            unfair.push(format!(
                "{kind:?}: {without:?} ms without, {with:?} ms with"
            ));
        }
    }
    assert!(unfair.is_empty(), "{unfair:#?}");
    Ok(())
}
