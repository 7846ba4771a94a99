//! Sets of objects, beside clients that send the same objects themselves.

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use configurator_core::run::{Finish, Run};
use configurator_host::observer::{RunEnd, RunObserver};
use configurator_tests::configurator::scripted;
use configurator_tests::controlplane::{ControlPlane, Plan};
use configurator_tests::guests;
use configurator_tests::program::Running;
use configurator_tests::world::{Place, World};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::measure::{allocated, count_allocations, cpu_time, cpu_time_of, median, stop_counting};
use crate::row;

const MEMBERS: usize = 100;
const FEW_MEMBERS: usize = 20;
const ROUNDS: usize = 15;
/// Changes of an owner that change nothing of its set.
const TOUCHES: usize = 200;
const CONCURRENCY: usize = 32;
/// Owners whose memory is measured, with [`FEW_MEMBERS`] each.
const OWNERS: usize = 1_000;
const NAMESPACE: &str = "sets";
const WATCHED: &str = "bench";
const PATIENCE: Duration = Duration::from_secs(600);
/// The time in which watches show what was written, and nothing is left to do.
const REST: Duration = Duration::from_millis(500);

/// The successful runs of each owner.
#[derive(Clone, Default)]
struct Runs {
    ended: Arc<Mutex<HashMap<String, usize>>>,
    changed: Arc<Notify>,
}

impl RunObserver for Runs {
    fn ended(&self, run: &Run, end: &RunEnd) {
        if let (RunEnd::Finished(Finish::Succeeded), [owner]) = (end, run.members()) {
            let mut ended = self.ended.lock().unwrap();
            *ended.entry(owner.key.name.clone()).or_default() += 1;
            drop(ended);
            self.changed.notify_waiters();
        }
    }
}

impl Runs {
    fn of(&self, owner: &str) -> usize {
        let ended = self.ended.lock().unwrap();
        ended.get(owner).copied().unwrap_or_default()
    }

    async fn until(
        &self,
        what: &str,
        holds: impl Fn(&HashMap<String, usize>) -> bool,
    ) -> Result<()> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if holds(&self.ended.lock().unwrap()) {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.with_context(|| format!("in vain: {what}"))
    }

    async fn until_more(&self, owner: &str, before: usize) -> Result<()> {
        self.until(owner, |ended| {
            ended.get(owner).is_some_and(|ended| *ended > before)
        })
        .await
    }
}

/// A host with one Configurator, whose owners are ConfigMaps.
struct Host {
    world: World,
    runs: Runs,
    client: Client,
}

impl Host {
    async fn start(world: World, runs: Runs) -> Result<Self> {
        let client = world.client.clone();
        let host = Self {
            world,
            runs,
            client,
        };
        host.world
            .apply(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            )
            .await?;
        host.configure("sets", WATCHED, json!({"desiredAt": "/data/set"}))
            .await?;
        // Connections are made, and caches filled.
        host.set("warm", MEMBERS).await?;
        Ok(host)
    }

    /// Declares a Configurator for the owners with this value of the label `app`.
    async fn configure(&self, name: &str, app: &str, script: Value) -> Result<()> {
        let watch = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "namespaces": [NAMESPACE],
            "labelSelector": {"matchLabels": {"app": app}},
        });
        let verbs = ["get", "apply", "delete", "watch"];
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "namespaces": [NAMESPACE], "verbs": verbs});
        let mut object = scripted(name, watch, script, json!({"kubernetes": [rule]}));
        object["spec"]["sets"] = json!({"idleAfter": "5s"});
        object["spec"]["concurrency"] = json!(CONCURRENCY);
        self.world.apply(&object).await?;
        self.world.settled(&[name]).await
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Creates an owner with a set, and returns when the set is ready.
    async fn set(&self, owner: &str, members: usize) -> Result<()> {
        create(&self.maps(), &owner_of(owner, WATCHED, members)).await?;
        self.runs.until_more(owner, 0).await
    }

    /// Changes an object so often, so that nothing of its set changes.
    async fn touch(&self, name: &str, is_owner: bool) -> Result<()> {
        for touch in 0..TOUCHES {
            let before = self.runs.of(name);
            let patch = json!({"metadata": {"annotations": {"touch": touch.to_string()}}});
            self.maps()
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
            if is_owner {
                self.runs.until_more(name, before).await?;
            }
        }
        Ok(())
    }

    /// The requests that the host has sent for members and handlers.
    fn requests(&self) -> u64 {
        self.world.metric_sum("configurator_requests_total", "")
    }
}

fn member(owner: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{owner}-{number}"), "namespace": NAMESPACE, "labels": {"part-of": owner}},
        "data": {
            "level": "info", "number": number.to_string(),
            "text": "what a small ConfigMap holds: some lines of settings that a program reads at its start",
        },
    })
}

fn owner_of(name: &str, app: &str, members: usize) -> Value {
    let entries = (0..members)
        .map(|number| json!({"name": format!("m{number}"), "object": member(name, number)}));
    let set = json!({"entries": entries.collect::<Vec<_>>()});
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
        "data": {"set": set.to_string()},
    })
}

async fn create(api: &Api<ConfigMap>, object: &Value) -> Result<()> {
    let object: ConfigMap = serde_json::from_value(object.clone())?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Sends all members at once, within the same concurrency.
async fn send<F: Future<Output = Result<()>>>(
    owner: &str,
    members: usize,
    send: impl Fn(Value) -> F,
) -> Result<()> {
    futures::stream::iter(0..members)
        .map(|number| send(member(owner, number)))
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// A durable API in this process.
pub async fn embedded(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    let runs = Runs::default();
    let observer = runs.clone();
    let world = World::start_at(&place, |builder| builder.observer(observer)).await?;
    let host = Host::start(world, runs).await?;
    let maps = host.maps();
    let (mut by_set, mut plain) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for side in [round % 2, (round + 1) % 2] {
            let since = Instant::now();
            if side == 0 {
                host.set(&format!("set-{round}"), MEMBERS).await?;
                by_set.push(since.elapsed().as_secs_f64());
            } else {
                let name = format!("plain-{round}");
                send(&name, MEMBERS, |object| {
                    let maps = maps.clone();
                    async move { create(&maps, &object).await }
                })
                .await?;
                plain.push(since.elapsed().as_secs_f64());
            }
        }
    }
    let ratios = plain.iter().zip(&by_set).map(|(plain, set)| plain / set);
    let ratio = median(ratios.collect());
    let rate = |took: Vec<f64>| MEMBERS as f64 / median(took);
    row(
        &format!("a set of {MEMBERS} objects is created, durable"),
        &format!("{:.0} objects/s", rate(by_set)),
    );
    row(
        "the same objects created by a client side by side",
        &format!("{:.0} objects/s", rate(plain)),
    );
    row(
        "fsync in the same folder",
        &format!("{:.2} ms", fsync_ms(folder.path())?),
    );
    figures.push(("set creation ratio to plain creates".into(), ratio));

    host.set("touched", MEMBERS).await?;
    create(&maps, &owner_of("nobodys", "nobody", MEMBERS)).await?;
    tokio::time::sleep(REST).await;
    let requests = host.requests();
    let cpu = cpu_time();
    host.touch("touched", true).await?;
    let cpu = cpu_time() - cpu;
    ensure!(
        host.requests() == requests,
        "a run that changes nothing has sent requests"
    );
    let alone = cpu_time();
    host.touch("nobodys", false).await?;
    let alone = cpu_time() - alone;
    let ms = (cpu.as_secs_f64() - alone.as_secs_f64()) * 1e3 / TOUCHES as f64;
    row(
        &format!("a run that changes nothing of {MEMBERS} members, with the call of its handler"),
        &format!("{ms:.2} CPU-ms, 0 requests"),
    );
    figures.push((
        format!("graph unchanged run of {MEMBERS} members, cpu ms"),
        ms,
    ));
    host.world.stop().await
}

fn fsync_ms(folder: &Path) -> Result<f64> {
    let mut file = File::create(folder.join("fsync"))?;
    let mut took = Vec::new();
    for _ in 0..100 {
        file.write_all(&[0; 4096])?;
        let since = Instant::now();
        file.sync_all()?;
        took.push(since.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(took))
}

/// A real control plane, and a bare loop.
pub async fn real(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let plane = ControlPlane::start(&Plan::default()).await?;
    let servers = plane.about().servers().await?;
    let runs = Runs::default();
    let observer = runs.clone();
    let world = World::start_on(servers, |builder| builder.observer(observer)).await?;
    let host = Host::start(world, runs).await?;
    let rest = cpu_time();
    tokio::time::sleep(REST * 10).await;
    let rest = (cpu_time() - rest).as_secs_f64() / (REST * 10).as_secs_f64();
    let mut of_many = 0.0;
    for members in [MEMBERS, FEW_MEMBERS] {
        let (mut by_host, mut bare) = (Vec::new(), Vec::new());
        let requests = host.requests();
        for round in 0..ROUNDS {
            for side in [round % 2, (round + 1) % 2] {
                let (wall, cpu) = (Instant::now(), cpu_time());
                if side == 0 {
                    host.set(&format!("set-{members}-{round}"), members).await?;
                } else {
                    apply_bare(&host.maps(), &format!("bare-{members}-{round}"), members).await?;
                }
                tokio::time::sleep(REST).await;
                let not_its_own = if side == 1 {
                    rest * wall.elapsed().as_secs_f64()
                } else {
                    0.0
                };
                let us = ((cpu_time() - cpu).as_secs_f64() - not_its_own) * 1e6 / members as f64;
                if side == 0 {
                    by_host.push(us)
                } else {
                    bare.push(us)
                }
            }
        }
        let sent = (host.requests() - requests) as f64 / (ROUNDS * members) as f64;
        let ratio = median(
            by_host
                .iter()
                .zip(&bare)
                .map(|(host, bare)| host / bare)
                .collect(),
        );
        let us = median(by_host);
        if members == MEMBERS {
            of_many = us;
        }
        row(
            &format!("a set of {members} objects on a real API"),
            &format!("{us:.0} CPU-µs a member, {sent:.2} requests a member"),
        );
        row(
            "a bare loop that applies the same objects",
            &format!("{:.0} CPU-µs a member", median(bare)),
        );
        figures.push((
            match members {
                MEMBERS => "graph cpu ratio to bare loop".to_owned(),
                _ => format!("graph cpu ratio to bare loop at {members} members"),
            },
            ratio,
        ));
    }
    let operator = operator_us(&host, &plane.about().kubernetes.kubeconfig).await?;
    row(
        "a program of controller-runtime that keeps the same set",
        &format!("{operator:.0} CPU-µs a member"),
    );
    figures.push((
        "graph cpu ratio to controller-runtime".into(),
        of_many / operator,
    ));
    let bytes = idle_bytes(&host).await?;
    row(
        &format!("each of {} idle members", OWNERS * FEW_MEMBERS),
        &format!("{bytes:.0} bytes of heap"),
    );
    figures.push(("graph bytes of our own per idle member".into(), bytes));
    host.world.kill().await
}

/// Applies an owner's objects, as a program would that has them at hand.
async fn apply_bare(maps: &Api<ConfigMap>, owner: &str, members: usize) -> Result<()> {
    send(owner, members, |object| {
        let maps = maps.clone();
        async move {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            maps.patch(name, &PatchParams::apply("bare"), &Patch::Apply(&object))
                .await?;
            Ok(())
        }
    })
    .await
}

/// The CPU-µs a member of an operator that keeps the same sets.
async fn operator_us(host: &Host, kubeconfig: &Path) -> Result<f64> {
    let path = guests::cache()?.join("controlplane/clients");
    let mut command = Command::new(path);
    command
        .arg("sets")
        .arg("-kubeconfig")
        .arg(kubeconfig)
        .args(["-namespace", NAMESPACE])
        .stdin(Stdio::piped());
    let mut operator = Running::start(command)?;
    // It ends when this does.
    let _stdin = operator.stdin();
    let mut cpu = Duration::ZERO;
    // The first one fills its caches.
    for round in 0..=ROUNDS {
        let name = format!("operated-{round}");
        if round == 1 {
            cpu = cpu_time_of(operator.id())?;
        }
        create(&host.maps(), &owner_of(&name, "set-owner", MEMBERS)).await?;
        let applied = format!("\"owner\":\"{name}\"");
        tokio::task::block_in_place(|| operator.until_printed(&applied))?;
        tokio::time::sleep(REST).await;
    }
    let cpu = cpu_time_of(operator.id())? - cpu;
    Ok(cpu.as_secs_f64() * 1e6 / (ROUNDS * MEMBERS) as f64)
}

/// The heap of a member to which nothing happens, without that of its owner.
async fn idle_bytes(host: &Host) -> Result<f64> {
    const NOTHING: &str = "nothing";
    const IDLE: &str = "idle";
    host.configure(NOTHING, NOTHING, json!({})).await?;
    host.configure(IDLE, IDLE, json!({"desiredAt": "/data/set"}))
        .await?;
    let mut held = Vec::new();
    for app in [NOTHING, IDLE] {
        count_allocations();
        let maps = host.maps();
        futures::stream::iter(0..OWNERS)
            .map(|number| {
                let owner = owner_of(&format!("{app}-{number}"), app, FEW_MEMBERS);
                let maps = maps.clone();
                async move { create(&maps, &owner).await }
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect::<()>()
            .await?;
        let is_of_app = |name: &&String| name.starts_with(&format!("{app}-"));
        host.runs
            .until("all owners", |ended| {
                ended.keys().filter(is_of_app).count() == OWNERS
            })
            .await?;
        if app == IDLE {
            let waiting = async {
                while host.world.metric_sum("configurator_idle_sets", "") < OWNERS as u64 {
                    tokio::time::sleep(REST).await;
                }
            };
            tokio::time::timeout(PATIENCE, waiting).await?;
        }
        tokio::time::sleep(REST * 10).await;
        held.push(allocated() as f64);
        stop_counting();
    }
    Ok((held[1] - held[0]) / (OWNERS * FEW_MEMBERS) as f64)
}
