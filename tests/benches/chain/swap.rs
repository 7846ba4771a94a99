//! What a swap of a running module costs the runs that are under way: how long the change of an object takes to the end of its run, with and
//! without swaps.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use configurator_core::request::ObjectRef;
use configurator_core::run::Run;
use configurator_host::observer::{Notice, RunEnd, RunObserver};
use configurator_tests::guests::{self, digest, variant};
use configurator_tests::shelf::Shelf;
use configurator_tests::world::{PATIENCE, Place, World};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::measure::median;

const LANGUAGES: [&str; 2] = ["rust", "javascript"];
/// Each changes all the time, and waits for its run before it changes again.
const OBJECTS: usize = 4;
const SWAPS: u8 = 20;
/// How long it is looked how things go without swaps.
const CALM: Duration = Duration::from_secs(5);

/// Tells of runs that have ended, and of the module that was swapped in.
#[derive(Clone)]
struct Watcher {
    /// By the mark that an object must have.
    awaited: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>,
    swapped: watch::Sender<String>,
}

impl RunObserver for Watcher {
    fn ended(&self, run: &Run, end: &RunEnd) {
        if let RunEnd::Finished(_) = end {
            let mut awaited = self.awaited.lock().unwrap();
            for member in run.members() {
                let object = member.object.to_value();
                let mark = object.pointer("/metadata/annotations/mark");
                let mark = mark.and_then(Value::as_str).unwrap_or_default();
                if let Some(waiting) = awaited.remove(mark) {
                    let _ = waiting.send(());
                }
            }
        }
    }

    fn noticed(&self, _: &ObjectRef, notice: &Notice) {
        if let Notice::Swapped { digest, .. } | Notice::Started { digest, .. } = notice {
            self.swapped.send_replace(digest.clone());
        }
    }
}

fn deployment(name: &str, mark: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "default", "name": name, "annotations": {"mark": mark}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

/// Changes an object until it is told to stop; in milliseconds, how long each change took to the end of its run.
async fn change(
    world: &World,
    watcher: &Watcher,
    name: String,
    stop: &AtomicBool,
) -> Result<Vec<f64>> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mark = format!("{name}-{}", took.len());
        let (ended, end) = oneshot::channel();
        watcher.awaited.lock().unwrap().insert(mark.clone(), ended);
        world.apply(&deployment(&name, &mark)).await?;
        let since = Instant::now();
        tokio::time::timeout(PATIENCE, end)
            .await
            .with_context(|| format!("{mark} has no run"))??;
        took.push(since.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// Changes objects as long as this takes.
async fn during(
    world: &World,
    watcher: &Watcher,
    name: &str,
    doing: impl Future<Output = Result<()>>,
) -> Result<Vec<f64>> {
    let stop = AtomicBool::new(false);
    let changing =
        (0..OBJECTS).map(|number| change(world, watcher, format!("{name}-{number}"), &stop));
    let doing = async {
        let done = doing.await;
        stop.store(true, Ordering::Relaxed);
        done
    };
    let (took, done) = tokio::join!(futures::future::try_join_all(changing), doing);
    done?;
    Ok(took?.concat())
}

/// Prints a table, and a line for each figure.
pub async fn measure() -> Result<()> {
    println!(
        "\n| change of an object to the end of its run, ms | median | longest | longest during {SWAPS} swaps |"
    );
    println!("|---|---|---|---|");
    let mut figures = Vec::new();
    for language in LANGUAGES {
        let folder = guests::folder()?;
        let folder = match language {
            "rust" => folder,
            other => folder.join(other),
        };
        let module = std::fs::read(folder.join("workload_config.wasm"))?;
        let shelf = Shelf::with(module.clone());
        let watcher = Watcher {
            awaited: Arc::default(),
            swapped: watch::Sender::new(String::new()),
        };
        let world = World::start_at(&Place::default(), |builder| {
            builder.modules(shelf.clone()).observer(watcher.clone())
        })
        .await?;
        world
            .configure("workload-config", |object| {
                object["spec"]["chain"]["batch"] = json!({"maxSize": 1, "maxDelay": "1ms"});
            })
            .await?;
        until_runs(&watcher, &digest(&module)).await?;
        let calm = async {
            tokio::time::sleep(CALM).await;
            Ok(())
        };
        let calm = during(&world, &watcher, "calm", calm).await?;
        let swapping = async {
            // Of this minute, so that no cache has their code: each is compiled while the runs go on.
            let minute = std::time::UNIX_EPOCH.elapsed()?.as_secs();
            let module = [&*module, b"\x00\x0a\x01t", &minute.to_le_bytes()].concat();
            for number in 0..SWAPS {
                let next = variant(&module, number);
                shelf.put(Ok(next.clone()));
                until_runs(&watcher, &digest(&next)).await?;
            }
            Ok(())
        };
        let swapping = during(&world, &watcher, "swapping", swapping).await?;
        world.stop().await?;
        let longest = |took: &[f64]| took.iter().copied().fold(0.0, f64::max);
        let (calm_longest, longest) = (longest(&calm), longest(&swapping));
        let usual = median(calm);
        println!("| {language} | {usual:.1} | {calm_longest:.1} | {longest:.1} |");
        figures.push(format!(
            "swap of a running module, longest stall of a run, ms, {language}: {:.1}",
            longest - usual
        ));
    }
    println!("\n{}", figures.join("\n"));
    Ok(())
}

async fn until_runs(watcher: &Watcher, wanted: &str) -> Result<()> {
    let mut swapped = watcher.swapped.subscribe();
    let waiting = swapped.wait_for(|digest| digest == wanted);
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .context("the module is not swapped in")??;
    Ok(())
}
