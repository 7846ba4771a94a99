//! The latency of healthy objects beside poisoned ones, on durable embedded stores.

use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_tests::poison::{self, OF, Poison, percentile};
use configurator_tests::world::Place;

/// Healthy objects of each of the two Configurators whose latencies make a percentile.
const HEALTHY: usize = 200;
/// How many times so many healthy objects follow each other on a host.
const SERIES: usize = 3;
/// How many hosts each number of poisoned objects is measured on, in turn with the others.
const ROUNDS: usize = 3;
/// The percentile of all series that counts. One stall of the disk or of the machine decides the 99th percentile of a series, and on a shared
/// machine there are periods with many stalls. They only add to latencies, and hit some series and not others, with poison or without, whereas
/// poison is there in each series. So the quieter series show what poison adds.
const QUIETER: usize = 25;
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
        let mut without = <[Latencies; 2]>::default();
        let mut with = POISONED.map(|_| <[Latencies; 2]>::default());
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
                .map(|one| one[index].percentile(99) / without.percentile(99));
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
    let healthy = SERIES * HEALTHY;
    poison::latencies(&place, kind, poisoned, healthy, BEFORE, |builder| builder).await
}

/// The latencies of the healthy objects of all rounds, in the order in which the objects were created.
#[derive(Default)]
struct Latencies(Vec<f64>);

impl Latencies {
    /// Returns this percentile of the [quieter](QUIETER) series.
    fn percentile(&self, percent: usize) -> f64 {
        let series = self.0.chunks(HEALTHY);
        let of_series: Vec<f64> = series.map(|one| percentile(one, percent)).collect();
        percentile(&of_series, QUIETER)
    }
}

/// Adds the latencies of a round.
fn add(all: &mut [Latencies; 2], more: [Vec<f64>; 2]) {
    for (all, more) in all.iter_mut().zip(more) {
        all.0.extend(more);
    }
}

fn cell(latencies: &Latencies) -> String {
    format!(
        "{:.1}, {:.1} ms",
        latencies.percentile(50),
        latencies.percentile(99)
    )
}
