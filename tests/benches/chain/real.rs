//! The chain of pod-config on real servers, and a bare loop that sends the same requests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use configurator_core::handler::{CallFault, HandlerOutput};
use configurator_core::run::{Call, Finish, Run};
use configurator_host::observer::{RunEnd, RunObserver};
use configurator_tests::controlplane::{About, ControlPlane, Plan};
use configurator_tests::guests;
use configurator_tests::world::World;
use etcd_client::{
    Client as Etcd, Compare, CompareOp, GetOptions, KvClient, Txn, TxnOp, TxnOpResponse,
};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::measure::{cpu_time, median};
use crate::row;

/// Pods of one turn of a side.
const PODS: usize = 200;
const TURNS: usize = 25;
const NODES: usize = 10;
const CONCURRENCY: usize = 32;
const PREFIX: &str = "config.configurator.dev/";
const PATIENCE: Duration = Duration::from_secs(120);
/// For how long the host is watched while it has nothing to do.
const REST: Duration = Duration::from_secs(10);
const SIDES: [&str; 2] = ["host", "bare"];

/// What a side took for all its runs, from the beginning of the first to the end of the last.
struct Took {
    wall: Duration,
    cpu: Duration,
}

/// What was asked of the servers, by kind of request.
type Asked = BTreeMap<String, usize>;

/// Both sides by turns, on the same servers.
pub async fn measure(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let plane = ControlPlane::start(&Plan::default()).await?;
    let about = plane.about();
    // With the first store of secrets, the process has its provider of TLS.
    let client = about.servers().await?.cluster.client;
    // Before anything is measured, so that the servers are at work on nothing else.
    for side in SIDES {
        nodes(&client, side).await?;
        for turn in 0..=TURNS {
            fill(&client, side, turn).await?;
        }
        eprintln!("bench: {side}: {} Pods are there", (TURNS + 1) * PODS);
    }
    let bare = Bare::connect(about).await?;
    let host = Host::start(about).await?;
    let mut record = Record::new(about, bare.etcd.clone());
    let mut turns = [Vec::new(), Vec::new()];
    // The first makes connections and fills caches.
    for turn in 0..=TURNS {
        let mut asked = [Asked::new(), Asked::new()];
        // Who is first has the emptier servers.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let namespace = namespace(SIDES[side], turn);
            record.read().await?;
            let took = match side {
                0 => host.go(&namespace).await?,
                _ => bare.go(&namespace).await?,
            };
            asked[side] = record.read().await?;
            if turn > 0 {
                turns[side].push(took);
            }
        }
        let [by_host, by_bare] = &asked;
        eprintln!("bench: turn {turn}: host {by_host:?}");
        eprintln!("bench: turn {turn}: bare {by_bare:?}");
        for (what, bare) in by_bare {
            let host = by_host.get(what).copied().unwrap_or_default();
            ensure!(
                what.starts_with("etcd") || host == *bare,
                "not the same requests: {what}: the host {host}, the bare loop {bare}"
            );
        }
    }
    let rest = cpu_time();
    tokio::time::sleep(REST).await;
    let rest = (cpu_time() - rest).as_secs_f64() / REST.as_secs_f64();
    host.world.kill().await?;
    // While the bare loop is at work, the host is at rest.
    let cost = |side: usize, took: &Took| {
        let not_its_own = if side == 1 {
            rest * took.wall.as_secs_f64()
        } else {
            0.0
        };
        (took.cpu.as_secs_f64() - not_its_own) * 1e6 / PODS as f64
    };
    let rate = |took: &Took| PODS as f64 / took.wall.as_secs_f64();
    for (turn, (host, bare)) in turns[0].iter().zip(&turns[1]).enumerate() {
        eprintln!(
            "bench: turn {}: host {:.0} runs/s, {:.0} CPU-µs a run; bare {:.0} runs/s, {:.0} CPU-µs a run",
            turn + 1,
            rate(host),
            cost(0, host),
            rate(bare),
            cost(1, bare),
        );
    }
    // The two sides of a turn had the same neighbours on the machine, more or less.
    let ratio = |of: &dyn Fn(usize, &Took) -> f64| {
        let pairs = turns[0].iter().zip(&turns[1]);
        median(
            pairs
                .map(|(host, bare)| of(0, host) / of(1, bare))
                .collect(),
        )
    };
    figures.push((
        "throughput ratio to bare loop".into(),
        ratio(&|_, took| rate(took)),
    ));
    figures.push(("cpu ratio to bare loop".into(), ratio(&cost)));
    let names = [
        "the chain on real servers",
        "a bare loop that sends the same requests",
    ];
    for (side, name) in names.into_iter().enumerate() {
        let rate = median(turns[side].iter().map(rate).collect());
        let cost = median(turns[side].iter().map(|took| cost(side, took)).collect());
        row(name, &format!("{rate:.0} runs/s, {cost:.0} CPU-µs a run"));
    }
    row(
        "the host at rest",
        &format!("{:.1} CPU-ms a second", rest * 1e3),
    );
    Ok(())
}

fn namespace(side: &str, turn: usize) -> String {
    format!("{side}-{turn}")
}

/// The Nodes of a side.
async fn nodes(client: &Client, side: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 0..NODES {
        let node = json!({"metadata": {
            "name": format!("{side}-{number}"),
            "annotations": {"config.configurator.dev/disk": "fast", "config.configurator.dev/zone": "a"},
        }});
        nodes
            .create(&PostParams::default(), &serde_json::from_value(node)?)
            .await?;
    }
    Ok(())
}

/// A namespace with a Job and the Pods of this. Nobody is at work on the Job, so the Pods stay as they are.
async fn fill(client: &Client, side: &str, turn: usize) -> Result<()> {
    let name = &namespace(side, turn);
    let pod: Value = serde_json::from_str(&std::fs::read_to_string(
        guests::workspace().join("configurators/pod-config/testdata/pod.json"),
    )?)?;
    let params = PostParams::default();
    let namespace = json!({"metadata": {"name": name, "annotations": {"config.configurator.dev/region": "north"}}});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&params, &serde_json::from_value(namespace)?)
        .await?;
    let jobs: Api<Job> = Api::namespaced(client.clone(), name);
    let job = json!({
        "metadata": {"name": "web", "annotations": {"config.configurator.dev/cache": "1Gi"}},
        "spec": {
            "managedBy": "example.com/nobody",
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let job = jobs.create(&params, &serde_json::from_value(job)?).await?;
    let owner = job.metadata.uid.context("a uid")?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), name);
    futures::stream::iter(0..PODS)
        .map(|number| {
            let mut pod = pod.clone();
            pod["metadata"]["name"] = json!(format!("web-{number}"));
            pod["metadata"]["namespace"] = json!(name);
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": owner, "controller": true,
            }]);
            pod["spec"]["nodeName"] = json!(format!("{side}-{}", number % NODES));
            for set_by_the_server in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "generateName"] {
                pod["metadata"].as_object_mut().unwrap().remove(set_by_the_server);
            }
            let (pods, params) = (pods.clone(), params.clone());
            async move {
                pods.create(&params, &serde_json::from_value(pod)?).await?;
                Ok::<(), anyhow::Error>(())
            }
        })
        .buffer_unordered(64)
        .try_collect::<()>()
        .await
}

// ---- What the servers were asked ----

/// The servers' own records, as far as they were not read yet.
struct Record {
    kubernetes: Log,
    vault: Log,
    etcd: KvClient,
    revision: i64,
}

impl Record {
    fn new(about: &About, etcd: KvClient) -> Self {
        Self {
            kubernetes: Log::new(&about.kubernetes.audit),
            vault: Log::new(&about.vault.audit),
            etcd,
            revision: 0,
        }
    }

    /// How often each server was asked for what since this was called last.
    async fn read(&mut self) -> Result<Asked> {
        let mut asked = Asked::new();
        for line in self.kubernetes.read()?.lines() {
            // What fills the servers is most of the record, and long.
            if line.contains(r#""verb":"create""#) {
                continue;
            }
            let Ok(event) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let of = |field: &str| event["objectRef"][field].as_str().unwrap_or_default();
            let verb = event["verb"].as_str().unwrap_or_default();
            let is_of_a_run = match of("resource") {
                "nodes" | "jobs" => verb == "get",
                "namespaces" => verb == "get" && of("name") != "kube-system",
                "configmaps" => of("name").starts_with("web-"),
                _ => false,
            };
            if is_of_a_run && event["stage"] == "ResponseComplete" {
                *asked
                    .entry(format!("{verb} {}", of("resource")))
                    .or_default() += 1;
            }
        }
        for line in self.vault.read()?.lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let path = event["request"]["path"].as_str().unwrap_or_default();
            if event["type"] == "response" && path.starts_with("secret/data/") {
                let operation = event["request"]["operation"].as_str().unwrap_or_default();
                *asked.entry(format!("vault {operation}")).or_default() += 1;
            }
        }
        let answer = self.etcd.get("nothing", None).await?;
        let revision = answer.header().map_or(0, |header| header.revision());
        let since = std::mem::replace(&mut self.revision, revision);
        asked.insert("etcd revisions".into(), usize::try_from(revision - since)?);
        Ok(asked)
    }
}

/// A file that grows by lines.
struct Log {
    path: PathBuf,
    read: u64,
}

impl Log {
    fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, read: 0 }
    }

    /// The whole lines that were not read yet.
    fn read(&mut self) -> Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        text.truncate(text.rfind('\n').map_or(0, |last| last + 1));
        self.read += text.len() as u64;
        Ok(text)
    }
}

// ---- The host ----

/// Notes when the first run began and when the last ended.
#[derive(Default)]
struct Stopwatch {
    began: Mutex<Option<(Instant, Duration)>>,
    ended: AtomicUsize,
    took: Mutex<Option<Took>>,
    done: Notify,
}

impl Stopwatch {
    fn begin(&self) {
        let mut began = self.began.lock().unwrap();
        began.get_or_insert_with(|| (Instant::now(), cpu_time()));
    }

    fn end(&self) {
        if self.ended.fetch_add(1, Ordering::Relaxed) + 1 == PODS {
            let (wall, cpu) = self.began.lock().unwrap().unwrap();
            *self.took.lock().unwrap() = Some(Took {
                wall: wall.elapsed(),
                cpu: cpu_time() - cpu,
            });
            self.done.notify_one();
        }
    }

    async fn took(&self) -> Result<Took> {
        tokio::time::timeout(PATIENCE, self.done.notified())
            .await
            .with_context(|| format!("only {:?} runs ended", self.ended))?;
        self.took.lock().unwrap().take().context("the end")
    }
}

/// Of the turn that is under way.
#[derive(Clone, Default)]
struct Watching(Arc<Mutex<Arc<Stopwatch>>>);

impl Watching {
    fn stopwatch(&self) -> Arc<Stopwatch> {
        self.0.lock().unwrap().clone()
    }
}

impl RunObserver for Watching {
    fn called(&self, _: &Run, _: &Call, _: &Result<HandlerOutput, CallFault>) {
        self.stopwatch().begin();
    }

    fn ended(&self, _: &Run, end: &RunEnd) {
        match end {
            RunEnd::Finished(Finish::Succeeded) => self.stopwatch().end(),
            other => eprintln!("bench: a run did not succeed: {other:?}"),
        }
    }
}

struct Host {
    world: World,
    watching: Watching,
}

impl Host {
    async fn start(about: &About) -> Result<Self> {
        let watching = Watching::default();
        let observer = watching.clone();
        let servers = about.servers().await?;
        let world = World::start_on(servers, |builder| builder.observer(observer)).await?;
        Ok(Self { world, watching })
    }

    /// Has it handle the Pods of a namespace.
    async fn go(&self, namespace: &str) -> Result<Took> {
        let stopwatch = Arc::new(Stopwatch::default());
        *self.watching.0.lock().unwrap() = stopwatch.clone();
        self.world
            .configure("pod-config", |object| {
                object["metadata"]["name"] = json!(namespace);
                object["spec"]["concurrency"] = json!(CONCURRENCY);
                object["spec"]["watch"]["namespaces"] = json!([namespace]);
            })
            .await?;
        let took = stopwatch.took().await?;
        self.world.settled(&[namespace]).await?;
        Ok(took)
    }
}

// ---- The bare loop ----

/// The same requests, as one would send them without a host.
#[derive(Clone)]
struct Bare {
    client: Client,
    etcd: KvClient,
    vault: reqwest::Client,
    url: String,
    token: String,
}

impl Bare {
    async fn connect(about: &About) -> Result<Self> {
        let ca = std::fs::read(&about.ca)?;
        Ok(Self {
            client: about.client().await?,
            etcd: Etcd::connect(&about.store.endpoints, Some(about.etcd_tls()?))
                .await?
                .kv_client(),
            vault: reqwest::Client::builder()
                .http1_only()
                .no_proxy()
                .tls_certs_only(reqwest::Certificate::from_pem_bundle(&ca)?)
                .build()?,
            url: about.vault.url.clone(),
            token: about.vault.token.clone(),
        })
    }

    /// Watches the Pods and gives each its requests.
    async fn go(&self, namespace: &str) -> Result<Took> {
        let stopwatch = Arc::new(Stopwatch::default());
        let places = Arc::new(Semaphore::new(CONCURRENCY));
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let watching = async {
            let mut events =
                std::pin::pin!(watcher(api, watcher::Config::default().streaming_lists()));
            while let Some(event) = events.next().await {
                let (Event::InitApply(pod) | Event::Apply(pod)) = event? else {
                    continue;
                };
                let place = places.clone().acquire_owned().await?;
                let (bare, stopwatch) = (self.clone(), stopwatch.clone());
                tokio::spawn(async move {
                    stopwatch.begin();
                    match bare.run(&pod).await {
                        Ok(()) => stopwatch.end(),
                        Err(error) => eprintln!("bench: a bare run failed: {error:#}"),
                    }
                    drop(place);
                });
            }
            anyhow::bail!("the watch ended")
        };
        tokio::select! {
            took = stopwatch.took() => took,
            ended = watching => ended,
        }
    }

    async fn run(&self, pod: &Pod) -> Result<()> {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let uid = pod.uid().unwrap_or_default();
        let keys = Keys::of(&namespace, &name);
        // What is read, side by side.
        let nodes: Api<Node> = Api::all(self.client.clone());
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), &namespace);
        let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let (of_namespace, node, job, entry) = tokio::join!(
            namespaces.get(&namespace),
            nodes.get(node_name.unwrap_or_default()),
            jobs.get("web"),
            self.read(vec![TxnOp::get(keys.entry.as_str(), None)]),
        );
        ensure!(entry?.revisions.is_empty(), "there is an entry");
        let mut config = BTreeMap::new();
        for layer in [
            of_namespace?.metadata.annotations,
            node?.metadata.annotations,
            job?.metadata.annotations,
            pod.metadata.annotations.clone(),
        ] {
            for (key, value) in layer.unwrap_or_default() {
                if let Some(key) = key.strip_prefix(PREFIX) {
                    config.insert(key.to_owned(), value);
                }
            }
        }
        // That it is handled, before the first effect.
        let record = json!({"namespace": namespace, "name": name}).to_string();
        let record = TxnOp::put(format!("bare/ledger/{uid}"), record, None);
        self.etcd.clone().txn(Txn::new().and_then([record])).await?;
        // What is written, side by side.
        let (stored, secret, config_map) = tokio::join!(
            self.store(&keys, &uid, &config),
            self.secret(&namespace, &name),
            self.config_map(&namespace, &name, &uid, &config),
        );
        stored?;
        secret?;
        config_map
    }

    async fn read(&self, questions: Vec<TxnOp>) -> Result<Seen> {
        let answer = self
            .etcd
            .clone()
            .txn(Txn::new().and_then(questions))
            .await?;
        let mut revisions = BTreeMap::new();
        for response in answer.op_responses() {
            if let TxnOpResponse::Get(found) = response {
                for pair in found.kvs() {
                    revisions.insert(pair.key_str()?.to_owned(), pair.mod_revision());
                }
            }
        }
        let revision = answer.header().map_or(0, |header| header.revision());
        Ok(Seen {
            revisions,
            revision,
        })
    }

    /// One transaction, that holds only if nothing it rests on has changed.
    async fn store(&self, keys: &Keys, uid: &str, config: &BTreeMap<String, String>) -> Result<()> {
        let limit = i64::try_from(config.len())? + 3;
        let layer = GetOptions::new().with_prefix().with_limit(limit);
        let mut single = vec![keys.entry.clone(), keys.index.clone(), keys.leaf.clone()];
        single.extend(config.keys().map(|key| format!("{}{key}", keys.app_conf)));
        let mut questions = vec![TxnOp::get(keys.app_conf.as_str(), Some(layer))];
        questions.extend(single.iter().map(|key| TxnOp::get(key.as_str(), None)));
        let seen = self.read(questions.clone()).await?;
        let mut conditions: Vec<Compare> = single
            .iter()
            .map(|key| {
                let revision = seen.revisions.get(key).copied().unwrap_or_default();
                Compare::mod_revision(key.as_str(), CompareOp::Equal, revision)
            })
            .collect();
        let since =
            Compare::mod_revision(keys.app_conf.as_str(), CompareOp::Less, seen.revision + 1);
        conditions.push(since.with_prefix());
        let sources: BTreeMap<&String, &str> = config.keys().map(|key| (key, "pod")).collect();
        let value = json!({"config": config, "from": sources, "index": keys.index}).to_string();
        let entry = json!({"uid": uid, "value": value}).to_string();
        let mut writes = vec![
            TxnOp::put(keys.entry.as_str(), entry, None),
            TxnOp::put(keys.leaf.as_str(), "{}", None),
        ];
        if !seen.revisions.contains_key(&keys.index) {
            writes.push(TxnOp::put(keys.index.as_str(), "{}", None));
        }
        for (key, value) in config {
            writes.push(TxnOp::put(
                format!("{}{key}", keys.app_conf),
                value.as_str(),
                None,
            ));
        }
        let txn = Txn::new()
            .when(conditions)
            .and_then(writes)
            .or_else(questions);
        let answer = self.etcd.clone().txn(txn).await?;
        if !answer.succeeded() {
            // Another Pod was the first of the index: as the host does, once more.
            return Box::pin(self.store(keys, uid, config)).await;
        }
        Ok(())
    }

    /// A secret, unless there is one.
    async fn secret(&self, namespace: &str, name: &str) -> Result<()> {
        let url = format!("{}/v1/secret/data/bare-{namespace}.{name}", self.url);
        let token = ("X-Vault-Token", self.token.as_str());
        let found = self.vault.get(&url).header(token.0, token.1).send().await?;
        ensure!(
            found.status() == 404,
            "there is a secret: {}",
            found.status()
        );
        let _: Value = serde_json::from_slice(&found.bytes().await?)?;
        let value = json!("0123456789012345678901234567890123456789012").to_string();
        let body = json!({"options": {"cas": 0}, "data": {"json": value}}).to_string();
        let written = self
            .vault
            .post(&url)
            .header(token.0, token.1)
            .header("Content-Type", "application/json")
            .body(body)
            .send()
            .await?;
        ensure!(written.status().is_success(), "{}", written.status());
        let _: Value = serde_json::from_slice(&written.bytes().await?)?;
        Ok(())
    }

    async fn config_map(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        config: &BTreeMap<String, String>,
    ) -> Result<()> {
        let config_map_name = format!("{name}-config");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "namespace": namespace, "name": config_map_name,
                "labels": {"app.kubernetes.io/managed-by": "bare"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}],
            },
            "data": config,
        });
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        api.patch(
            &config_map_name,
            &PatchParams::apply("bare"),
            &Patch::Apply(&body),
        )
        .await?;
        Ok(())
    }
}

/// Where things are in etcd.
struct Keys {
    entry: String,
    /// A prefix.
    app_conf: String,
    index: String,
    leaf: String,
}

impl Keys {
    fn of(namespace: &str, name: &str) -> Self {
        let index = format!("bare/two/pods.{namespace}.Job.web");
        Self {
            entry: format!("bare/resources/pod/{namespace}/{name}"),
            app_conf: format!("bare/appconf/{namespace}/{name}/"),
            leaf: format!("{index}/{name}"),
            index,
        }
    }
}

/// What was stored at one revision: when each key was last written.
struct Seen {
    revisions: BTreeMap<String, i64>,
    revision: i64,
}
