//! `cargo xtask bench`: what a run through both phases of pod-config costs, on durable embedded stores and on real servers,
//! and what many objects cost that nothing happens to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use configurator_apiserver::ApiServerOptions;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::handler::{
    CallLimits, Cause, Context, HandlerInput, ResourceObject, WatchEvent, WatchedObject,
};
use configurator_core::result::Answer;
use configurator_core::time::Timestamp;
use configurator_guest::log::no_log;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_host::sinks::{Scope, Sink, Sinks};
use configurator_tests::guests;
use configurator_tests::world::{Place, World};
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

mod fairness;
mod flow;
mod graph;
mod kept;
mod measure;
mod modules;
mod objects;
mod real;
mod sets;
mod shares;
mod swap;
mod waits;

use measure::{allocated, count_allocations, cpu_time, resident_bytes, stop_counting};

#[global_allocator]
static ALLOCATOR: measure::Counting = measure::Counting;

const PODS: usize = 10_000;
/// Idle Configurators that are there before the memory of further ones is measured.
const FIRST_IDLE: usize = 50;
/// So many that the cache of the stores, which holds a megabyte more at one time than at another, makes no difference.
const IDLE: usize = 800;
/// The time in which Configurators come to rest.
const QUIET: Duration = Duration::from_secs(5);
/// How many times memory is measured, a second apart.
const MOMENTS: usize = 5;
const CALLS: usize = 20_000;

fn main() -> Result<()> {
    // `cargo bench` adds flags of its own.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    // These need real servers, so they are measured only where they are named.
    let is_named = |part: &str| wanted.iter().any(|name| name == part);
    let is_wanted = |part: &str| wanted.iter().all(|name| name == "keep") || is_named(part);
    let mut figures = Vec::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    if is_named("modules") {
        let others = wanted
            .iter()
            .filter_map(|word| word.strip_prefix("module="));
        modules::measure(others)?;
        return runtime.block_on(swap::measure());
    }
    println!("| what | figure |\n|---|---|");
    // First, since what other parts leave behind would count as resident.
    if is_wanted("chain") {
        let chain = runtime.block_on(chain(false))?;
        row(
            "Pods through both phases, durable",
            &format!(
                "{:.0} runs/s, {:.0} CPU-µs a run in all",
                chain.rate, chain.cpu_us
            ),
        );
        row(
            "resident with all of them",
            &format!("{:.0} MiB", chain.resident_mib),
        );
        row(
            "each further idle Configurator",
            &format!(
                "{:.1} KiB of heap; {:.0} KiB resident, with what the allocator keeps for later",
                chain.idle_heap_kib, chain.idle_kib
            ),
        );
        figures.push(("runs per second".to_owned(), chain.rate));
        figures.push((
            format!("resident MiB at {PODS} objects"),
            chain.resident_mib,
        ));
        figures.push((
            "KiB resident per further idle Configurator".to_owned(),
            chain.idle_kib,
        ));
        figures.push((
            "KiB of heap per further idle Configurator".to_owned(),
            chain.idle_heap_kib,
        ));
    }
    if is_wanted("call") {
        calls(&mut figures)?;
    }
    if is_wanted("host") {
        let host = runtime.block_on(chain(true))?;
        row(
            "the same in memory, with sinks that answer at once",
            &format!(
                "{:.0} runs/s, {:.0} CPU-µs a run, of which {:.0} in the handlers",
                host.rate, host.cpu_us, host.guest_us
            ),
        );
        figures.push(("guest cpu us per run".to_owned(), host.guest_us));
        figures.push((
            "host cpu us per run".to_owned(),
            host.cpu_us - host.guest_us,
        ));
    }
    if is_named("real") {
        runtime.block_on(real::measure(&mut figures))?;
    }
    if is_named("flow") {
        let temporal = wanted
            .iter()
            .find_map(|word| word.strip_prefix("temporal="));
        let temporal = temporal.map(std::path::Path::new);
        runtime.block_on(flow::measure(temporal, &mut figures))?;
    }
    if is_named("waits") {
        runtime.block_on(waits::measure(&mut figures))?;
    }
    if is_named("fairness") {
        let kinds: Vec<String> = wanted
            .iter()
            .filter_map(|word| word.strip_prefix("kind=").map(str::to_owned))
            .collect();
        runtime.block_on(fairness::measure(&kinds, &mut figures))?;
        if kinds.is_empty() || kinds.iter().any(|kind| kind == "Shares") {
            runtime.block_on(shares::measure(&mut figures))?;
        }
    }
    if is_named("graph") {
        graph::measure(&mut figures);
        runtime.block_on(sets::embedded(&mut figures))?;
        runtime.block_on(sets::real(&mut figures))?;
    }
    if is_named("objects") {
        runtime.block_on(objects::measure(&mut figures))?;
    }
    println!();
    for (name, figure) in &figures {
        println!("{name}: {figure:.2}");
    }
    match is_named("keep") {
        true => kept::keep(&figures),
        false => kept::compare(&figures),
    }
}

fn calls(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let pod = std::fs::read_to_string(
        guests::workspace().join("configurators/pod-config/testdata/pod.json"),
    )?;
    let root = call(&pod, "pod_config.wasm", "root")?;
    row(
        "fresh instance and call, root on a Pod of 4 KiB",
        &format!("{root:.1} µs at the median"),
    );
    let nothing = call(&pod, "nothing.wasm", "root")?;
    row(
        "fresh instance and call, a handler that does nothing",
        &format!("{nothing:.1} µs at the median"),
    );
    figures.push(("fresh instance and call, median us".to_owned(), root));
    figures.push((
        "fresh instance and call of a handler that does nothing, median us".to_owned(),
        nothing,
    ));
    Ok(())
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

/// The median of a fresh instance and its call, in microseconds, on this thread.
fn call(pod: &str, module: &str, handler: &str) -> Result<f64> {
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        ..GuestOptions::default()
    })?;
    let module = guest.load_blocking(&std::fs::read(guests::folder()?.join(module))?, module)?;
    let input = input(ResourceObject::One(watched(pod)?));
    let limits = CallLimits::default();
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let since = Instant::now();
        let report = guest.call_blocking(&module, handler, &input, &limits, no_log());
        took.push(since.elapsed());
        report.result.map_err(|fault| anyhow::anyhow!("{fault}"))?;
    }
    took.sort_unstable();
    Ok(took[took.len() / 2].as_secs_f64() * 1e6)
}

fn watched(object: &str) -> Result<WatchedObject> {
    Ok(WatchedObject {
        object: Document::parse(object)?,
        event: WatchEvent::Added,
    })
}

/// That of a root phase.
fn input(resource_object: ResourceObject) -> HandlerInput {
    HandlerInput {
        resource_object,
        request_results: Vec::new(),
        pass_through_args: Vec::new(),
        last: None,
        outputs: Vec::new(),
        plan: None,
        context: Context {
            configurator: "bench".into(),
            phase: "root".into(),
            node: "root".into(),
            entry: 1,
            attempt: 1,
            cause: Cause::Entered,
            now: Timestamp::from_millis(0),
            seed: 0,
            parameters: Document::empty_object(),
            run_id: "bench".into(),
        },
    }
}

struct Chain {
    rate: f64,
    cpu_us: f64,
    guest_us: f64,
    resident_mib: f64,
    idle_kib: f64,
    idle_heap_kib: f64,
}

/// Takes all Pods through both phases. `stubbed`: the sinks answer at once, so that what is left is the host.
async fn chain(stubbed: bool) -> Result<Chain> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: (!stubbed).then(|| folder.path().to_owned()),
    };
    let executed = Arc::new(AtomicU64::new(0));
    let counter = executed.clone();
    let world = World::start_at(&place, move |builder| {
        if stubbed {
            builder.decorate_sinks(move |_| Stub::sinks(counter))
        } else {
            builder
        }
    })
    .await?;
    fill(&world).await?;
    let (wall, cpu) = (Instant::now(), cpu_time());
    world
        .configure("pod-config", |object| {
            object["spec"]["concurrency"] = json!(32)
        })
        .await?;
    world
        .settled_within(&["pod-config"], Duration::from_secs(600))
        .await?;
    let (wall, cpu) = (wall.elapsed(), cpu_time() - cpu);
    let guest_us = guest_time(&world)? * 1e6 / PODS as f64;
    let resident = resident_bytes()?;
    // The first Configurators cause costs that further ones do not. The API keeps a fixed number of bytes of changes for watches, however many
    // Configurators there are, so that history is filled first.
    count_allocations();
    idle(&world, 0..FIRST_IDLE).await?;
    fill_history(&world).await?;
    let before = least_memory().await?;
    idle(&world, FIRST_IDLE..FIRST_IDLE + IDLE).await?;
    let after = least_memory().await?;
    stop_counting();
    let for_each = |before: i64, after: i64| (after - before) as f64 / 1024.0 / IDLE as f64;
    let idle_kib = for_each(before.resident, after.resident);
    let idle_heap_kib = for_each(before.heap, after.heap);
    world.stop().await?;
    Ok(Chain {
        rate: PODS as f64 / wall.as_secs_f64(),
        cpu_us: cpu.as_secs_f64() * 1e6 / PODS as f64,
        guest_us,
        resident_mib: resident as f64 / (1 << 20) as f64,
        idle_kib,
        idle_heap_kib,
    })
}

/// Adds Configurators that select no object, and returns when they are at rest.
async fn idle(world: &World, numbers: std::ops::Range<usize>) -> Result<()> {
    let names: Vec<String> = numbers.map(|number| format!("idle-{number}")).collect();
    for name in &names {
        world
            .configure("pod-config", |object| be_idle(object, name))
            .await?;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world
        .settled_within(&names, Duration::from_secs(60))
        .await?;
    // Their rights are reviewed and their statuses written meanwhile.
    tokio::time::sleep(QUIET).await;
    Ok(())
}

/// Bytes of this process.
struct Memory {
    heap: i64,
    resident: i64,
}

/// Returns the least memory at several moments, since the host also works while nothing happens.
async fn least_memory() -> Result<Memory> {
    let mut least = Memory {
        heap: i64::MAX,
        resident: i64::MAX,
    };
    for _ in 0..MOMENTS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        least.heap = least.heap.min(allocated());
        least.resident = least.resident.min(i64::try_from(resident_bytes()?)?);
    }
    Ok(least)
}

/// Names a Configurator, and makes it select no object.
fn be_idle(configurator: &mut Value, name: &str) {
    configurator["metadata"]["name"] = json!(name);
    configurator["spec"]["watch"]["labelSelector"] = json!({"matchLabels": {"nobody": "has-this"}});
}

/// Fills the history that the API keeps of Configurators.
async fn fill_history(world: &World) -> Result<()> {
    const BYTES: usize = 128 << 10;
    let bound = ApiServerOptions::new(jiff::Timestamp::now).history_bytes;
    for number in 0..=bound / BYTES {
        world
            .configure("pod-config", |object| {
                be_idle(object, "changing");
                object["metadata"]["annotations"] =
                    json!({"text": "x".repeat(BYTES), "number": number.to_string()});
            })
            .await?;
    }
    tokio::time::sleep(QUIET).await;
    Ok(())
}

/// Ten Nodes, twenty Namespaces with a Deployment each, and the Pods of these.
async fn fill(world: &World) -> Result<()> {
    let pod: Value = serde_json::from_str(&std::fs::read_to_string(
        guests::workspace().join("configurators/pod-config/testdata/pod.json"),
    )?)?;
    for node in 0..10 {
        let annotations =
            json!({"config.configurator.dev/disk": "fast", "config.configurator.dev/zone": "a"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{node}"), "annotations": annotations}});
        world.apply(&node).await?;
    }
    for namespace in 0..20 {
        let name = format!("ns-{namespace}");
        let annotations = json!({"config.configurator.dev/region": "north"});
        world
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}))
            .await?;
        world
            .apply(&json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"name": "web", "namespace": name, "annotations": {"config.configurator.dev/cache": "1Gi"}},
                "spec": {
                    "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
                },
            }))
            .await?;
    }
    let mut owners = Vec::new();
    for namespace in 0..20 {
        let api = world
            .objects("apps/v1", "StatefulSet", &format!("ns-{namespace}"))
            .await?;
        owners.push(api.get("web").await?.metadata.uid.context("a uid")?);
    }
    let creates = (0..PODS).map(|number| {
        let mut pod = pod.clone();
        let namespace = number % 20;
        pod["metadata"]["name"] = json!(format!("web-{number}"));
        pod["metadata"]["namespace"] = json!(format!("ns-{namespace}"));
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": owners[namespace], "controller": true,
        }]);
        pod["spec"]["nodeName"] = json!(format!("node-{}", number % 10));
        for volatile in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            pod["metadata"].as_object_mut().unwrap().remove(volatile);
        }
        async move {
            let api: Api<DynamicObject> = world.objects("v1", "Pod", &format!("ns-{namespace}")).await?;
            let pod: DynamicObject = serde_json::from_value(pod)?;
            api.create(&PostParams::default(), &pod).await?;
            Ok::<(), anyhow::Error>(())
        }
    });
    let mut creates = futures::stream::iter(creates).buffer_unordered(64);
    while let Some(created) = creates.next().await {
        created?;
    }
    Ok(())
}

/// Answers everything at once: nothing is found, every write succeeds.
struct Stub {
    executed: Arc<AtomicU64>,
}

impl Stub {
    fn sinks(executed: Arc<AtomicU64>) -> Sinks {
        let stub: Arc<dyn Sink> = Arc::new(Self { executed });
        Sinks {
            kubernetes: stub.clone(),
            configstore: stub.clone(),
            secretstore: stub.clone(),
            http: stub.clone(),
            extension: stub,
        }
    }
}

#[async_trait]
impl Sink for Stub {
    async fn execute(&self, operation: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        self.executed.fetch_add(1, Ordering::Relaxed);
        if operation.is_mutating() {
            Ok(Answer::default())
        } else {
            Err(Fault::new(
                FaultKind::ResourceNotFound,
                "the stub has nothing",
            ))
        }
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// CPU time of all calls so far, instances included, in seconds.
fn guest_time(world: &World) -> Result<f64> {
    let line = world.metric("configurator_call_cpu_seconds_sum");
    let (_, seconds) = line.rsplit_once(' ').context("the metric of calls")?;
    Ok(seconds.parse()?)
}
