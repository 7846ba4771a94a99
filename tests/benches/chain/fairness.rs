//! The latency of healthy objects beside poisoned ones, on durable embedded stores.

use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_tests::poison::{self, OF, Poison, percentile};
use configurator_tests::world::Place;

/// Healthy objects of each of the two Configurators, in each round.
const HEALTHY: usize = 200;
/// Rounds that each kind is measured in. The latency without poison varies by half from one host to the next, so all rounds count together.
const ROUNDS: usize = 3;
/// How long poisoned objects are there before healthy ones. The first runs of 50 objects that each list 60 MB take some seconds.
const BEFORE: Duration = Duration::from_secs(5);
/// The numbers of poisoned objects to measure.
const POISONED: [usize; 3] = [1, 10, 50];

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
        let mut without = <[Vec<f64>; 2]>::default();
        let mut with = POISONED.map(|_| <[Vec<f64>; 2]>::default());
        for _ in 0..ROUNDS {
            add(&mut without, run(kind, 0).await?);
            for (all, poisoned) in with.iter_mut().zip(POISONED) {
                let more = run(kind, poisoned).await;
                add(all, more.with_context(|| format!("{kind:?} {poisoned}"))?);
            }
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

/// Measures on durable embedded stores.
async fn run(kind: Poison, poisoned: usize) -> Result<[Vec<f64>; 2]> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    poison::latencies(&place, kind, poisoned, HEALTHY, BEFORE, |builder| builder).await
}

/// Adds the latencies of a round.
fn add(all: &mut [Vec<f64>; 2], more: [Vec<f64>; 2]) {
    for (all, more) in all.iter_mut().zip(more) {
        all.extend(more);
        all.sort_by(f64::total_cmp);
    }
}

fn cell(latencies: &[f64]) -> String {
    format!(
        "{:.1}, {:.1} ms",
        percentile(latencies, 50),
        percentile(latencies, 99)
    )
}
