//! Objects that cost their host as much as they can, and healthy ones beside them.

#![allow(
    clippy::indexing_slicing,
    reason = "the objects that are indexed are made here"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::{ConfigOperation, Operation};
use configurator_core::result::Answer;
use configurator_host::host::HostBuilder;
use configurator_host::sinks::{Scope, Sink, Sinks};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::configurator;
use crate::world::{Place, World};

/// The namespaces that objects are in, in turn.
const NAMESPACES: [&str; 3] = ["one", "two", "three"];
/// ConfigMaps of about 1 MB each that a large answer lists.
const LARGE: usize = 60;
/// Requests of one handler that makes many.
const REQUESTS: usize = 1000;
/// The Configurators of the healthy objects.
pub const OF: [&str; 2] = ["same", "other"];
/// The time between two healthy objects of a Configurator.
const PACE: Duration = Duration::from_millis(20);
/// The time between two changes of each poisoned object. With each, its handler is called again.
const CHANGES: Duration = Duration::from_millis(500);
/// Commands for each poisoned object.
const COMMANDS: usize = 20;

/// A way in which an object costs its host much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poison {
    /// Its handler traps.
    Trap,
    /// Its handler computes until its deadline.
    Loop,
    /// Its handler allocates until its limit.
    Allocation,
    /// Its handler logs without end.
    LogFlood,
    /// Its handler makes a thousand requests.
    ManyRequests,
    /// Its request is answered with 60 MB.
    LargeAnswer,
    /// Its request is refused for a second, each time.
    Throttled,
    /// Its request is not answered.
    TimedOut,
    /// Its handler returns a status of a megabyte.
    LargeStatus,
    /// Two Configurators keep changing it in answer to each other.
    HotLoop,
    /// It makes every batch fail that it is in.
    FailingMember,
    /// There are Commands for objects that nobody selects.
    CommandFlood,
}

impl Poison {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Trap,
        Self::Loop,
        Self::Allocation,
        Self::LogFlood,
        Self::ManyRequests,
        Self::LargeAnswer,
        Self::Throttled,
        Self::TimedOut,
        Self::LargeStatus,
        Self::HotLoop,
        Self::FailingMember,
        Self::CommandFlood,
    ];

    /// Returns the script of its handler.
    fn script(self) -> Value {
        let apply_config_map = |name: &str| {
            let body = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("{name}-{{name}}"), "namespace": "{namespace}"},
            });
            json!({"requests": [{"name": "apply", "apply": body, "timeoutMs": 200}]})
        };
        match self {
            Self::Trap | Self::FailingMember => json!({"misbehave": "panic"}),
            Self::Loop => json!({"misbehave": "loop"}),
            Self::Allocation => json!({"misbehave": "allocate"}),
            Self::LogFlood => json!({"misbehave": "floodLog"}),
            Self::ManyRequests => {
                let put = json!({"key": "many-{name}-{number}", "value": "{run}"});
                json!({"requests": [{"repeat": REQUESTS, "name": "put-{number}", "put": put}]})
            }
            Self::LargeAnswer => {
                json!({"requests": [{"name": "list", "listConfigMaps": "large"}]})
            }
            Self::Throttled => apply_config_map("throttled"),
            Self::TimedOut => apply_config_map("silent"),
            Self::LargeStatus => json!({"misbehave": "largeStatus"}),
            Self::HotLoop => answer("same"),
            Self::CommandFlood => json!({}),
        }
    }

    fn is_batch(self) -> bool {
        self == Self::FailingMember
    }
}

/// Writes an annotation of this name that is another one in each run.
fn answer(name: &str) -> Value {
    let mut body = pod("{name}", "{namespace}", None);
    body["metadata"]["annotations"] = json!({name: "{run}"});
    json!({"requests": [{"name": "answer", "apply": body}]})
}

fn pod(name: &str, namespace: &str, labels: Option<&str>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    });
    if let Some(handled) = labels {
        pod["metadata"]["labels"] = json!({"handled-by": handled});
    }
    pod
}

fn watch(handled: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "labelSelector": {"matchLabels": {"handled-by": handled}}})
}

fn capabilities() -> Value {
    json!({
        "kubernetes": [
            {"apiGroups": [""], "resources": ["configmaps", "pods"], "namespaces": ["*"], "verbs": ["get", "list", "apply"]},
        ],
        "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update"]}],
    })
}

/// Writes a key when the object is handled.
fn healthy() -> Value {
    let put = json!({"key": "done-{object}", "value": "{run}"});
    json!({"requests": [{"forEach": true, "name": "done-{object}", "put": put}]})
}

/// The Configurators `same` and `other`, and what the kind of poison needs beside them. The handler of `same` misbehaves for
/// objects whose names begin with `poison`.
///
/// # Errors
/// When the API refuses one.
async fn declare(world: &World, poison: Poison) -> Result<()> {
    for namespace in NAMESPACES.into_iter().chain(["large"]) {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        world.apply(&object).await?;
    }
    let mut script = healthy();
    script["ifNamed"] = json!({"poison": poison.script()});
    let mut same = configurator::scripted("same", watch("same"), script.clone(), capabilities());
    same["spec"]["concurrency"] = 32.into();
    if poison.is_batch() {
        same["spec"]["chain"]["batch"] = json!({"maxSize": 20, "maxDelay": "10ms"});
    }
    if poison == Poison::CommandFlood {
        configurator::make_machine(&mut same, script);
    }
    world.apply(&same).await?;
    let other = configurator::scripted("other", watch("other"), healthy(), capabilities());
    world.apply(&other).await?;
    match poison {
        Poison::HotLoop => {
            let pong = configurator::scripted(
                "pong",
                watch("same"),
                json!({"ifNamed": {"poison": answer("pong")}}),
                capabilities(),
            );
            world.apply(&pong).await
        }
        Poison::LargeAnswer => {
            for number in 0..LARGE {
                let body = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": format!("large-{number}"), "namespace": "large"},
                    "data": {"text": "x".repeat(1_000_000)},
                });
                world.apply(&body).await?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Creates `healthy` objects of each Configurator of [`OF`] beside `poisoned` ones, on a new host with its stores at `place`. Returns the time in
/// milliseconds that each healthy object waited until it was handled, in the order in which the objects were created.
///
/// The poisoned objects are there for the time `before` the first healthy one: the host treats the first two runs of an object like those of others.
///
/// # Errors
/// When the host or its API fails.
pub async fn latencies(
    place: &Place,
    poison: Poison,
    poisoned: usize,
    healthy: usize,
    before: Duration,
    build: impl FnOnce(HostBuilder) -> HostBuilder,
) -> Result<[Vec<f64>; 2]> {
    let watcher = Watcher::default();
    let watching = watcher.clone();
    let world = World::start_at(place, |builder| {
        build(builder).decorate_sinks(move |sinks| watching.before(sinks))
    })
    .await?;
    declare(&world, poison).await?;
    world.settled(&OF).await?;
    let poisoning = async {
        for change in 0.. {
            for number in 0..poisoned {
                poisoned_object(&world, poison, number, change).await?;
            }
            tokio::time::sleep(CHANGES).await;
        }
        Ok::<(), anyhow::Error>(())
    };
    let working = async {
        tokio::time::sleep(before).await;
        let mut since = Vec::new();
        for number in 0..healthy {
            for of in OF {
                let name = format!("{of}-{number}");
                healthy_object(&world, of, &name, number).await?;
                since.push((of, name, Instant::now()));
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
        let of = since.iter().filter(|(its, ..)| *its == of);
        let took = of.map(|(_, name, since)| done[name].saturating_duration_since(*since));
        took.map(|took| took.as_secs_f64() * 1e3).collect()
    }))
}

/// Returns a percentile of these latencies, which must not be empty.
#[must_use]
pub fn percentile(latencies: &[f64], percent: usize) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Makes or changes an object that is poisoned, of the Configurator `same`; and for [`Poison::CommandFlood`] the Commands for it.
///
/// # Errors
/// When the API refuses it.
async fn poisoned_object(
    world: &World,
    poison: Poison,
    number: usize,
    change: usize,
) -> Result<()> {
    let namespace = NAMESPACES[number % NAMESPACES.len()];
    let name = format!("poison-{number}");
    if poison == Poison::CommandFlood {
        world.apply(&pod(&name, namespace, None)).await?;
        let pods = world.objects("v1", "Pod", namespace).await?;
        let uid = pods.get_metadata(&name).await?.metadata.uid;
        for command in COMMANDS * change..COMMANDS * (change + 1) {
            let command = json!({
                "apiVersion": "configurator.dev/v1alpha1", "kind": "Command",
                "metadata": {"name": format!("{name}-{command}"), "namespace": namespace},
                "spec": {"configurator": {"kind": "ClusterConfigurator", "name": "same"}, "target": {"kind": "Pod", "name": name, "uid": uid}, "verb": "Resume", "requestedBy": "ann"},
            });
            world.apply(&command).await?;
        }
        return Ok(());
    }
    let mut pod = pod(&name, namespace, Some("same"));
    pod["metadata"]["annotations"] = json!({"change": change.to_string()});
    world.apply(&pod).await
}

/// Makes a healthy object of the Configurator `same` or `other`. Its key is written when it is handled.
///
/// # Errors
/// When the API refuses it.
async fn healthy_object(world: &World, of: &str, name: &str, number: usize) -> Result<()> {
    let namespace = NAMESPACES[number % NAMESPACES.len()];
    world.apply(&pod(name, namespace, Some(of))).await
}

/// Notes when healthy objects are handled, and treats the requests of poisoned ones as their names say.
#[derive(Clone, Default)]
struct Watcher {
    /// When the key of an object was written, by the object's name.
    done: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl Watcher {
    /// When each healthy object was handled, by name.
    #[must_use]
    fn done(&self) -> BTreeMap<String, Instant> {
        self.held().clone()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts it before the sinks.
    #[must_use]
    fn before(&self, sinks: Sinks) -> Sinks {
        let watched = |inner| -> Arc<dyn Sink> {
            Arc::new(WatchedSink {
                watcher: self.clone(),
                inner,
            })
        };
        Sinks {
            kubernetes: watched(sinks.kubernetes),
            configstore: watched(sinks.configstore),
            ..sinks
        }
    }
}

struct WatchedSink {
    watcher: Watcher,
    inner: Arc<dyn Sink>,
}

#[async_trait]
impl Sink for WatchedSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let refused = |message: &str| Fault::new(FaultKind::ApiServerUnavailable, message);
        match operation.operation() {
            Operation::Kubernetes(request) if request.name.starts_with("throttled-") => {
                let fault = refused("too many requests").with_status(429);
                return Err(fault.with_retry_after(Some(Duration::from_secs(1))));
            }
            Operation::Kubernetes(request) if request.name.starts_with("silent-") => {
                tokio::time::sleep(scope.timeout.unwrap_or_default()).await;
                return Err(refused("no answer"));
            }
            _ => {}
        }
        let answer = self.inner.execute(operation, scope).await;
        if let Operation::Config(request) = operation.operation() {
            let now = Instant::now();
            let names = request
                .operations
                .iter()
                .filter_map(|operation| match operation {
                    ConfigOperation::Basic(basic) => basic.key.strip_prefix("done-"),
                    _ => None,
                });
            let mut done = self.watcher.held();
            done.extend(names.map(|name| (name.to_owned(), now)));
        }
        answer
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}
