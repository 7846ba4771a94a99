//! Many objects of a real control plane, to which nothing happens.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use configurator_core::projection::Projection;
use configurator_tests::configurator::configurator;
use configurator_tests::controlplane::{ControlPlane, Plan};
use configurator_tests::world::World;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};

use crate::measure::{allocated, count_allocations, median, stop_counting};
use crate::row;

const OBJECTS: usize = 100_000;
const ROUNDS: usize = 3;
const NAMESPACE: &str = "objects";
const FIELDS: [&str; 2] = [".data", ".metadata.labels"];
const PATIENCE: Duration = Duration::from_secs(300);

/// Start to ready beside a bare watcher, and memory.
pub async fn measure(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let plane = ControlPlane::start(&Plan {
        audit: false,
        ..Plan::default()
    })
    .await?;
    let client = plane.about().client().await?;
    let since = Instant::now();
    fill(&client).await?;
    eprintln!(
        "bench: {OBJECTS} ConfigMaps made in {:.0?}",
        since.elapsed()
    );

    let mut bare = Vec::new();
    let mut host = Vec::new();
    for round in 0..ROUNDS {
        let (listed, _) = list(plane.about().client().await?).await?;
        bare.push(listed.as_secs_f64());
        host.push(start(&plane, &format!("idle-{round}"), "Modified").await?);
        eprintln!(
            "bench: round {round}: bare {listed:.1?}, host {:.1} s",
            host[round]
        );
    }
    let (bare, host) = (median(bare), median(host));

    let (_, documents) = list(plane.about().client().await?).await?;
    count_allocations();
    let (_, world) = start_world(&plane, "counted", "Modified").await?;
    stop_counting();
    let own = (allocated() as f64 - documents as f64) / OBJECTS as f64;
    end(world, "counted").await?;
    let with_runs = start(&plane, "run", "Added").await?;

    row(
        &format!("{OBJECTS} ConfigMaps, a bare watcher until all are listed"),
        &format!("{bare:.2} s"),
    );
    row(
        "the host, from its Configurator to ready, when objects that appear start no run",
        &format!("{host:.2} s"),
    );
    row(
        "the same, when each has its run of a handler that does nothing",
        &format!("{with_runs:.2} s"),
    );
    figures.push(("start to ready, ratio to bare watcher".into(), host / bare));
    figures.push(("bytes of our own per idle object".into(), own));
    Ok(())
}

async fn fill(client: &Client) -> Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await?;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    futures::stream::iter(0..OBJECTS)
        .map(|number| {
            let object: Result<ConfigMap, _> = serde_json::from_value(json!({
                "metadata": {"name": format!("object-{number:06}"), "labels": {"app": format!("app-{}", number % 100)}},
                "data": {
                    "level": "info", "number": number.to_string(),
                    "text": "what a small ConfigMap holds: some lines of settings that a program reads at its start",
                },
            }));
            let api = api.clone();
            async move {
                api.create(&PostParams::default(), &object?).await?;
                Ok::<(), anyhow::Error>(())
            }
        })
        .buffer_unordered(64)
        .try_collect::<()>()
        .await
}

/// How long a bare watcher takes to list, and the bytes of all documents as the projection keeps them.
async fn list(client: Client) -> Result<(Duration, usize)> {
    let projection = Projection::parse(&FIELDS)?;
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let mut events = pin!(watcher(api, watcher::Config::default().streaming_lists()));
    let mut sample = None;
    let mut found = 0;
    let since = Instant::now();
    while let Some(event) = events.next().await {
        match event? {
            Event::InitApply(object) => {
                found += 1;
                sample.get_or_insert(object);
            }
            Event::InitDone => break,
            _ => {}
        }
    }
    let took = since.elapsed();
    anyhow::ensure!(found >= OBJECTS, "only {found} objects were listed");
    let mut document: Value = serde_json::to_value(sample.context("an object")?)?;
    document["apiVersion"] = "v1".into();
    document["kind"] = "ConfigMap".into();
    projection.apply(&mut document);
    // All have names, values and versions of nearly the same length.
    Ok((took, document.to_string().len() * OBJECTS))
}

/// Seconds until the host is ready, when these events start runs.
async fn start(plane: &ControlPlane, name: &str, event: &str) -> Result<f64> {
    let (took, world) = start_world(plane, name, event).await?;
    end(world, name).await?;
    Ok(took)
}

async fn start_world(plane: &ControlPlane, name: &str, event: &str) -> Result<(f64, World)> {
    let world = World::start_on(plane.about().servers().await?, |builder| builder).await?;
    // By one that has no objects, the module is loaded and connections are made.
    let nobody = json!({"matchLabels": {"nobody": "has-this"}});
    watch(&world, &format!("{name}-warm"), nobody, event).await?;
    let took = watch(&world, name, json!({}), event).await?;
    Ok((took.as_secs_f64(), world))
}

/// How long it takes from a Configurator to its objects being ready.
async fn watch(world: &World, name: &str, selector: Value, event: &str) -> Result<Duration> {
    let since = Instant::now();
    let mut watching = configurator(
        name,
        "nothing.wasm",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "namespaces": [NAMESPACE],
            "labelSelector": selector, "events": [event], "fields": FIELDS,
        }),
    );
    watching["spec"]["concurrency"] = json!(32);
    world.apply(&watching).await?;
    world.settled_within(&[name], PATIENCE).await?;
    Ok(since.elapsed())
}

/// Stops the host; the next one is not to find what this one did.
async fn end(world: World, name: &str) -> Result<()> {
    let configurators = world
        .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
        .await?;
    for name in [&format!("{name}-warm"), name] {
        configurators.delete(name, &DeleteParams::default()).await?;
    }
    world.stop().await
}
