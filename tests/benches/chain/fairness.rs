//! The latency of healthy objects beside poisoned ones.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_tests::poison::{self, Poison, Watcher};
use configurator_tests::world::{Place, World};
use tokio::time::Instant;

/// Healthy objects of each of the two Configurators.
const HEALTHY: usize = 300;
/// The time between two healthy objects of a Configurator.
const PACE: Duration = Duration::from_millis(20);
/// The time between two changes of each poisoned object. A change has its handler called again.
const CHANGES: Duration = Duration::from_millis(500);
/// How long poisoned objects are there before the first healthy one. The host treats the first two runs of an object like those of others.
const BEFORE: Duration = Duration::from_secs(2);
/// The numbers of poisoned objects to measure.
const POISONED: [usize; 3] = [1, 10, 50];

/// The Configurators of the healthy objects.
const OF: [&str; 2] = ["same", "other"];

/// Milliseconds from the moment that an object is there until it is handled, for each of [`OF`].
type Latencies = [Vec<f64>; 2];

/// Measures the kinds of these names; all, where there are none.
pub async fn measure(names: &[String], figures: &mut Vec<(String, f64)>) -> Result<()> {
    println!(
        "| kind | Configurator | p50, p99 without | with 1 | with 10 | with 50 | worst p99 ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut worst: f64 = 0.0;
    for kind in Poison::ALL {
        let name = format!("{kind:?}");
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        let without = run(kind, 0).await?;
        let mut with = Vec::new();
        for poisoned in POISONED {
            with.push(
                run(kind, poisoned)
                    .await
                    .with_context(|| format!("{kind:?} {poisoned}"))?,
            );
        }
        for (index, of) in OF.into_iter().enumerate() {
            let without = &without[index];
            let ratios = with
                .iter()
                .map(|one| percentile(&one[index], 99) / percentile(without, 99));
            let ratio = ratios.fold(0.0, f64::max);
            worst = worst.max(ratio);
            let cells: Vec<String> = with.iter().map(|one| cell(&one[index])).collect();
            println!(
                "| {name} | {of} | {} | {} | {ratio:.2} |",
                cell(without),
                cells.join(" | ")
            );
            figures.push((format!("{name}, {of}: worst p99 ratio"), ratio));
        }
    }
    figures.push(("worst p99 ratio".to_owned(), worst));
    Ok(())
}

fn cell(latencies: &[f64]) -> String {
    format!(
        "{:.1}, {:.1} ms",
        percentile(latencies, 50),
        percentile(latencies, 99)
    )
}

fn percentile(latencies: &[f64], percent: usize) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * percent / 100]
}

async fn run(kind: Poison, poisoned: usize) -> Result<Latencies> {
    let watcher = Watcher::default();
    let before = watcher.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.decorate_sinks(move |sinks| before.before(sinks))
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
        // The poison works before the first healthy object comes, and its objects are known.
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
        took.map(|took| took.as_secs_f64() * 1e3).collect()
    }))
}
