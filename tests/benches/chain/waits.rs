//! Many flows that wait: what they take, and that they outlive the host.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use configurator_tests::configurator;
use configurator_tests::machine::{Machine, definition, text};
use configurator_tests::world::{Place, World};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use crate::measure::{allocated, count_allocations, stop_counting};
use crate::row;

const FLOWS: usize = 100_000;
const PATIENCE: Duration = Duration::from_secs(900);

/// Flows wait, the host and its stores go and come back, one flow is signalled, and a ConfigMap that all wait for wakes the others.
pub async fn measure(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    let world = World::start_at(&place, |builder| builder).await?;
    world.apply(&definition("Walk")).await?;
    world.apply(&walks()).await?;
    world.settled(&["walks"]).await?;
    let since = Instant::now();
    let api = world.objects("example.org/v1", "Walk", "default").await?;
    make(&api).await?;
    world.settled_within(&["walks"], PATIENCE).await?;
    row(
        &format!("{FLOWS} flows made, until all wait"),
        &format!("{:.1} s", since.elapsed().as_secs_f64()),
    );
    world.stop().await?;
    drop(api);

    let servers = place.open().await?;
    count_allocations();
    let since = Instant::now();
    let world = World::start_on(servers, |builder| builder).await?;
    world.settled_within(&["walks"], PATIENCE).await?;
    let took = since.elapsed();
    stop_counting();
    let held = allocated();
    row(
        "a host that begins, until all of them wait again",
        &format!("{:.1} s", took.as_secs_f64()),
    );
    let api = world.objects("example.org/v1", "Walk", "default").await?;
    let documents = waiting(&api).await?;
    let own = (held as f64 - documents as f64) / FLOWS as f64;

    let walks = Machine::of(&world.client, "walks", "example.org/v1", "Walk", "default").await?;
    let go = json!({"signal": {"name": "go"}});
    walks.command("walk-7", "Signal", go).await?;
    walks.until_phase("walk-7", "Done").await?;
    let since = Instant::now();
    let awaited = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "go", "namespace": "default"},
    });
    world.apply(&awaited).await?;
    while !are_done(&api).await? {
        ensure!(since.elapsed() < PATIENCE, "not all are done");
        world.settled_within(&["walks"], PATIENCE).await?;
    }
    row(
        "a change that all wait for, until all are done",
        &format!("{:.1} s", since.elapsed().as_secs_f64()),
    );
    world.stop().await?;
    figures.push(("waiting flows that survived a restart".into(), FLOWS as f64));
    figures.push(("bytes of our own per waiting flow".into(), own));
    Ok(())
}

async fn make(api: &Api<DynamicObject>) -> Result<()> {
    futures::stream::iter(0..FLOWS)
        .map(|number| async move {
            let object: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "example.org/v1", "kind": "Walk",
                "metadata": {"name": format!("walk-{number}")},
                "spec": {},
            }))?;
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        })
        .buffer_unordered(64)
        .try_collect::<()>()
        .await
}

/// Bytes of all objects as a host keeps them. All of them wait.
async fn waiting(api: &Api<DynamicObject>) -> Result<usize> {
    let mut bytes = 0;
    let mut found = 0;
    for mut object in api.list(&ListParams::default()).await? {
        object.metadata.managed_fields = None;
        let object = serde_json::to_value(object)?;
        ensure!(text(&object, "/status/phase") == "Waiting", "{object:#}");
        bytes += object.to_string().len();
        found += 1;
    }
    ensure!(found == FLOWS, "{found} objects");
    Ok(bytes)
}

async fn are_done(api: &Api<DynamicObject>) -> Result<bool> {
    let objects = api.list(&ListParams::default()).await?;
    let is_done = |object: &&DynamicObject| object.data["status"]["phase"] == "Done";
    Ok(objects.iter().filter(is_done).count() == FLOWS)
}

fn walks() -> Value {
    let awaited = json!({"wait": {"signals": ["go"], "configMaps": ["go"]}});
    configurator::of(
        "walks",
        json!({
            "watch": {"apiVersion": "example.org/v1", "kind": "Walk"},
            "module": {"file": "scripted.wasm"},
            "concurrency": 64,
            "capabilities": {
                "kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["get", "watch"]}],
            },
            "machine": {
                "phases": [
                    {"name": "Waiting", "flow": "Wait", "onDone": "Done"},
                    {"name": "Done", "terminal": true},
                ],
                "flows": {"Wait": {"steps": [
                    {"stepName": "wait", "handler": "root", "parameters": {"scripts": [awaited, awaited, {}]}},
                ]}},
            },
        }),
    )
}
