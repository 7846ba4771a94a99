//! What a step of a flow costs: flows of ten steps that do nothing, on durable embedded stores, and the same on a Temporal server.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use configurator_tests::configurator;
use configurator_tests::machine::definition;
use configurator_tests::world::{Place, World};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::measure::{cpu_time, median};
use crate::row;

/// Flows of each side in each turn.
const FLOWS: usize = 400;
const STEPS: usize = 10;
/// How often each side has its turn.
const TURNS: usize = 5;

/// What some steps have cost.
struct Cost {
    steps: f64,
    wall: Duration,
    cpu: Duration,
}

/// What the program of the Go module says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Temporal {
    steps: f64,
    seconds: f64,
    cpu_seconds: f64,
    server: String,
}

/// Measures turn about, so that what else the machine does falls on both sides.
pub async fn measure(temporal: Option<&Path>, figures: &mut Vec<(String, f64)>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    let world = World::start_at(&place, |builder| builder).await?;
    world.apply(&definition("Walk")).await?;
    world.apply(&walks()).await?;
    world.settled(&["walks"]).await?;
    let api = world.objects("example.org/v1", "Walk", "default").await?;
    walk(&world, &api, "warm", 50).await?;
    let mut rates = Vec::new();
    let mut per_cpu = Vec::new();
    let mut ratios = Vec::new();
    let mut server = String::new();
    for turn in 0..TURNS {
        let own = walk(&world, &api, &format!("turn{turn}"), FLOWS).await?;
        let own_per_cpu = own.steps / own.cpu.as_secs_f64();
        rates.push(own.steps / own.wall.as_secs_f64());
        per_cpu.push(own_per_cpu);
        if let Some(program) = temporal {
            let theirs = theirs(program)?;
            ratios.push(own_per_cpu / (theirs.steps / theirs.cpu_seconds));
            server = format!(
                "{}: {:.0} steps/s, {:.0} steps per CPU-second",
                theirs.server,
                theirs.steps / theirs.seconds,
                theirs.steps / theirs.cpu_seconds
            );
        }
    }
    let writes = writes_per_step(&api).await?;
    world.stop().await?;
    let (rate, per_cpu) = (median(rates), median(per_cpu));
    row(
        "flows of ten steps, durable",
        &format!(
            "{rate:.0} steps/s, {per_cpu:.0} steps per CPU-second, {writes:.2} writes of the state a step"
        ),
    );
    figures.push(("steps per second".to_owned(), rate));
    figures.push(("status writes per step".to_owned(), writes));
    if !ratios.is_empty() {
        row("the same on a Temporal server", &server);
        let name = "steps per cpu-second, ratio to temporal".to_owned();
        figures.push((name, median(ratios)));
    }
    Ok(())
}

/// So many flows from their first step to their last.
async fn walk(world: &World, api: &Api<DynamicObject>, name: &str, flows: usize) -> Result<Cost> {
    let before = done(world);
    let (wall, cpu) = (Instant::now(), cpu_time());
    futures::stream::iter(0..flows)
        .map(|number| async move {
            let object: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "example.org/v1", "kind": "Walk",
                "metadata": {"name": format!("{name}-{number}"), "labels": {"turn": name}},
                "spec": {},
            }))?;
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        })
        .buffer_unordered(32)
        .try_collect::<()>()
        .await?;
    // To look at the objects would cost as much as to walk some of them.
    while done(world) < before + flows {
        ensure!(wall.elapsed() < Duration::from_secs(120), "not done");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let cost = Cost {
        steps: (flows * STEPS) as f64,
        wall: wall.elapsed(),
        cpu: cpu_time() - cpu,
    };
    let of_turn = ListParams::default().labels(&format!("turn={name}"));
    for object in api.list(&of_turn).await? {
        ensure!(object.data["status"]["phase"] == "Done", "{object:?}");
    }
    Ok(cost)
}

/// How many flows have ended, as the host counts them.
fn done(world: &World) -> usize {
    let line = world.metric(
        "configurator_flows_total{configurator_namespace=\"\",configurator=\"walks\",flow=\"Walk\",outcome=\"completed\"}",
    );
    let count = line.rsplit(' ').next().and_then(|count| count.parse().ok());
    count.unwrap_or_default()
}

fn theirs(program: &Path) -> Result<Temporal> {
    let output = Command::new(program)
        .args(["-workflows", &FLOWS.to_string()])
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Revisions of the states, which count their writes.
async fn writes_per_step(api: &Api<DynamicObject>) -> Result<f64> {
    let mut writes = 0;
    let objects = api.list(&ListParams::default()).await?;
    for object in &objects {
        let memento = object.data["status"]["memento"].as_str();
        let revision = memento.and_then(|memento| memento.split('.').nth(1));
        writes += revision.context("no revision")?.parse::<usize>()?;
    }
    Ok(writes as f64 / (objects.items.len() * STEPS) as f64)
}

fn walks() -> Value {
    let steps: Vec<Value> = (1..=STEPS)
        .map(|number| json!({"stepName": format!("step{number}"), "handler": "root"}))
        .collect();
    configurator::of(
        "walks",
        json!({
            "watch": {"apiVersion": "example.org/v1", "kind": "Walk"},
            "module": {"file": "nothing.wasm"},
            "concurrency": 64,
            "machine": {
                "phases": [
                    {"name": "Walking", "flow": "Walk", "onDone": "Done"},
                    {"name": "Done", "terminal": true},
                ],
                "flows": {"Walk": {"steps": steps}},
            },
        }),
    )
}
