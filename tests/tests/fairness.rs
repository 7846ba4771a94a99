//! Objects that cost their host much delay no others, in virtual time, where a call takes a declared time.

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
/// The time between two healthy objects of each Configurator.
const PACE: Duration = Duration::from_millis(20);
/// The time between two changes of each poisoned object. With each, its handler is called again.
const CHANGES: Duration = Duration::from_millis(500);
/// How long poisoned objects are there before the first healthy one. The host treats the first two runs of an object like those of others.
const BEFORE: Duration = Duration::from_secs(2);
const POISONED: usize = 50;
/// Calls at a time. More than Configurators, since these share the calls evenly and a hot loop takes two of them.
const PARALLEL_CALLS: u32 = 4;
const TICK: Duration = Duration::from_millis(10);
/// How long a healthy call takes.
const CALL: Duration = Duration::from_millis(2);
/// The number of times longer that a healthy object may wait than without poison, at the 99th percentile.
const RATIO: f64 = 2.0;
const OF: [&str; 2] = ["same", "other"];

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
        tokio::time::sleep(BEFORE).await;
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
