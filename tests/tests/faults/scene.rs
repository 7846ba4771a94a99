//! A host at work behind proxies, what it came to, and what the servers' own records say of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use configurator_core::backoff::mix;
use configurator_core::time::Timestamp;
use configurator_host::clock::{Clock, SystemClock};
use configurator_host::cluster::{self, Cluster};
use configurator_host::objects;
use configurator_host::sinks::configstore::etcd::{EtcdConfigStore, EtcdOptions};
use configurator_host::sinks::secretstore::SecretStore;
use configurator_host::sinks::secretstore::vault::{VaultAuth, VaultOptions, VaultSecretStore};
use configurator_tests::controlplane::{ANSWER, About, ControlPlane, Plan};
use configurator_tests::operator::Operator;
use configurator_tests::proxy::{Line, Proxy, Rule};
use configurator_tests::world::{PATIENCE, Servers, World};
use etcd_client::{EventType, GetOptions, WatchOptions};
use http::{HeaderValue, header};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// Pods of a scene.
pub const PODS: usize = 40;
/// Of these, such as are changed.
const CHANGED: std::ops::Range<usize> = 0..10;
/// Of these, such as are deleted.
const DELETED: std::ops::Range<usize> = 30..35;
/// With so many pods done the host is in the middle of its work.
const BEGUN: usize = 4;
/// Longer than all back-offs of a scene together.
const LONG: Duration = Duration::from_secs(1);
/// How long everything may take to be as without a fault, once the fault is over.
const CONVERGENCE: Duration = Duration::from_secs(30);

/// A host that works on pods of its own: `pod-config`, in a namespace, and with prefixes in the stores, of this name.
pub struct Scene {
    pub name: String,
    pub about: About,
    /// Of whoever is not the host.
    pub client: Client,
    pub world: World,
    pub kubernetes: Proxy,
    /// Before each member of the config store.
    pub store: Vec<Proxy>,
    pub vault: Proxy,
    /// Of the Vault behind its proxy.
    pub operator: Operator,
    etcd: etcd_client::Client,
    /// The config store's revision before anything was written.
    revision: i64,
    /// What each member of the config store had been asked for until then.
    asked: Vec<Option<usize>>,
    secrets: VaultSecretStore,
    turn: Option<MutexGuard<'static, ()>>,
}

/// A host works for every Configurator that it finds, so there is one host at a time at the servers that are shared.
static SHARED: Mutex<()> = Mutex::const_new(());

/// What may differ between scenes.
pub struct Options {
    /// Whether the host reaches the API through the proxy that understands HTTP. Otherwise nothing is before it.
    pub is_api_proxied: bool,
    /// How the host logs in at Vault; by default with a token of its own that does not end.
    pub auth: Option<VaultAuth>,
    /// What the host takes for now.
    pub clock: Shifted,
    /// The retries of the Configurator.
    pub retry: Value,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            is_api_proxied: true,
            auth: None,
            clock: Shifted::default(),
            // All back-offs together last less than half a second.
            retry: json!({"maxAttempts": 4, "initialDelay": "50ms", "maxDelay": "200ms"}),
        }
    }
}

/// The system's clock, set wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shifted {
    /// So many seconds fast.
    pub seconds: i64,
}

#[async_trait]
impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.seconds * 1000)
    }

    async fn sleep(&self, span: Duration) {
        SystemClock.sleep(span).await;
    }
}

/// What came of a scene, in words that are the same in every scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The data of every ConfigMap.
    config_maps: BTreeMap<String, String>,
    /// Every key of the config store with its value, without the host's own book of what it has handled.
    keys: BTreeMap<String, String>,
    /// The pods that have a secret.
    secrets: Vec<String>,
}

/// What the servers' records say of a host.
#[derive(Debug, Clone)]
pub struct Record {
    /// Requests to the API, and those that were refused before it.
    pub kubernetes: usize,
    /// Requests to Vault, and those that were refused before it.
    pub vault: usize,
    /// Transactions that etcd was asked for, of such as read and such as write.
    pub asked: usize,
    /// Those that changed the config store.
    pub transactions: usize,
    /// What changed anything and succeeded, and how often that was sent.
    pub changes: BTreeMap<String, usize>,
}

/// A scene without a fault.
pub struct Quiet {
    pub outcome: Outcome,
    pub record: Record,
}

/// A scene without a fault, played once in a process.
pub async fn quiet() -> Result<&'static Quiet> {
    static QUIET: OnceCell<Quiet> = OnceCell::const_new();
    QUIET
        .get_or_try_init(|| async {
            let about = ControlPlane::shared().await?;
            let _turn = SHARED.lock().await;
            let scene = Scene::start(about, "quiet", Options::default()).await?;
            scene.create().await?;
            scene.until("every pod is configured", PODS, None).await?;
            scene.change().await?;
            scene
                .until("the changes are there", PODS, Some(CHANGED.len()))
                .await?;
            scene.delete().await?;
            let left = PODS - DELETED.len();
            scene
                .until("what is gone leaves nothing", left, None)
                .await?;
            let outcome = scene.outcome().await?;
            assert_eq!(outcome.secrets.len(), left);
            let record = scene.record().await?;
            println!("without a fault: {record}");
            scene.world.stop().await?;
            Ok(Quiet { outcome, record })
        })
        .await
}

impl Scene {
    /// Starts the host at the servers that tests share, when it is its turn.
    pub async fn on_shared(name: &str, options: Options) -> Result<Self> {
        Box::pin(quiet()).await?;
        let turn = SHARED.lock().await;
        let about = ControlPlane::shared().await?;
        let mut scene = Self::start(about, name, options).await?;
        scene.turn = Some(turn);
        Ok(scene)
    }

    /// Starts the host at servers that may be stopped and killed, when it is its turn.
    pub async fn on_own(name: &str, options: Options) -> Result<(Self, ControlPlane)> {
        static TURN: Mutex<()> = Mutex::const_new(());
        Box::pin(quiet()).await?;
        let turn = TURN.lock().await;
        let plane = own().await?;
        let mut scene = Self::start(plane.about().clone(), name, options).await?;
        scene.turn = Some(turn);
        Ok((scene, plane))
    }

    /// Starts the host, which has nothing to do yet. `name` is part of no other scene's name.
    async fn start(about: About, name: &str, options: Options) -> Result<Self> {
        let seed = name
            .bytes()
            .fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
        println!("{name}: the proxies have the seed {seed}");
        let kubernetes = Proxy::of_http(&about, &about.kubernetes.url, seed).await?;
        let vault = Proxy::of_http(&about, &about.vault.url, seed).await?;
        let mut store = Vec::new();
        for endpoint in &about.store.endpoints {
            store.push(Proxy::of_bytes(endpoint, seed).await?);
        }
        let client = about.client().await?;
        // What an earlier scene has left. At first there is no such kind.
        if let Ok(configurators) = objects::api(
            &client,
            "configurator.dev/v1alpha1",
            "ClusterConfigurator",
            "",
        )
        .await
        {
            configurators
                .delete_collection(&DeleteParams::default(), &ListParams::default())
                .await?;
        }
        let namespace: Namespace = serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {"config.configurator.dev/region": "north"}}
        }))?;
        Api::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await?;
        let operator = Operator::new(&about)?;
        let token = operator
            .token(json!({"policies": ["root"], "display_name": name}))
            .await?;
        let through = |url: String, auth| VaultOptions {
            prefix: name.to_owned(),
            timeout_seconds: 5,
            ca: Some(about.ca.clone()),
            ..VaultOptions::new(vec![url], auth)
        };
        let auth = options.auth.unwrap_or_else(|| VaultAuth::token(&*token));
        let prefix = format!("{name}/");
        let config = EtcdConfigStore::new(EtcdOptions {
            endpoints: store.iter().map(Proxy::url).collect(),
            timeout: Duration::from_secs(3),
            ..about.etcd_options(&prefix)
        });
        let servers = Servers {
            cluster: client.clone().into(),
            server: None,
            config: Arc::new(config),
            secrets: Arc::new(VaultSecretStore::with_clock(
                through(vault.url(), auth),
                options.clock,
            )?),
        };
        let url = match options.is_api_proxied {
            true => kubernetes.url(),
            false => about.kubernetes.url.clone(),
        };
        let members: Vec<&str> = about.store.endpoints.iter().map(String::as_str).collect();
        for member in &members {
            // One that was killed may still be coming back.
            patiently(async || revision(&mut about.etcd(&[member]).await?).await).await?;
        }
        let mut etcd = about.etcd(&members).await?;
        let revision = revision(&mut etcd).await?;
        let asked = asked(&about).await?;
        let hosts = hosts_cluster(&about, &url, name).await?;
        let world = World::start_on(servers, |builder| {
            builder.client(hosts).clock(options.clock)
        })
        .await?;
        world
            .configure("pod-config", |configurator| {
                configurator["metadata"]["name"] = name.into();
                configurator["spec"]["watch"]["namespaces"] = json!([name]);
                configurator["spec"]["retry"] = options.retry;
            })
            .await?;
        world.settled(&[name]).await?;
        let root = VaultAuth::token(about.vault.token.as_str());
        Ok(Self {
            secrets: VaultSecretStore::new(through(about.vault.url.clone(), root))?,
            name: name.to_owned(),
            client,
            world,
            kubernetes,
            store,
            vault,
            operator,
            etcd,
            revision,
            asked,
            turn: None,
            about,
        })
    }

    /// Creates, changes and deletes pods, without waiting for anything.
    pub async fn work(&self) -> Result<()> {
        self.create().await?;
        self.go_on().await
    }

    /// Gives the host all pods at once, so that it does not keep pace with their creation; returns when it has begun
    /// with them.
    pub async fn begin(&self) -> Result<()> {
        let api = self
            .world
            .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
            .await?;
        let suspend = async |suspend: bool| {
            let patch = json!({"spec": {"suspend": suspend}});
            api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
        };
        let generation = json!(suspend(true).await?.metadata.generation);
        self.world
            .until("the Configurator is suspended", || async {
                let found = api.get(&self.name).await?.data;
                Ok(found["status"]["observedGeneration"] == generation)
            })
            .await?;
        self.create().await?;
        suspend(false).await?;
        self.until_configured(BEGUN).await
    }

    /// Changes pods, and deletes others.
    pub async fn go_on(&self) -> Result<()> {
        self.change().await?;
        self.delete().await
    }

    /// Returns when so many pods have a ConfigMap.
    pub async fn until_configured(&self, number: usize) -> Result<()> {
        self.world
            .until("the host at work", || async {
                let every = ListParams::default();
                let found = self.config_maps().list_metadata(&every).await?;
                // One is the cluster's own.
                Ok(found.items.len() > number)
            })
            .await
    }

    /// Returns when this sink is known to be unavailable, and has been so for longer than all back-offs together.
    pub async fn outlasts_every_backoff(&self, sink: &str) -> Result<()> {
        let parked = format!("configurator_sink_parked{{sink=\"{sink}\"}} 1");
        let is_parked = || {
            self.world
                .metric("configurator_sink_parked")
                .contains(&parked)
        };
        self.world
            .until("the sink known to be unavailable", || async {
                Ok(is_parked())
            })
            .await?;
        tokio::time::sleep(LONG).await;
        Ok(())
    }

    /// Returns when objects are delayed by a server that answers but refuses, and have been so for longer than all back-offs
    /// together.
    pub async fn delays_outlast_every_backoff(&self) -> Result<()> {
        let is_delayed = || {
            let objects = self.world.metric("configurator_objects");
            let mut delayed = objects
                .lines()
                .filter(|line| line.contains(&self.name) && line.contains("state=\"delayed\""));
            delayed.any(|line| !line.ends_with(" 0"))
        };
        self.world
            .until("delayed objects", || async { Ok(is_delayed()) })
            .await?;
        tokio::time::sleep(LONG).await;
        Ok(())
    }

    /// Creates the pods.
    pub async fn create(&self) -> Result<()> {
        for number in 0..PODS {
            self.create_pod(number).await?;
        }
        Ok(())
    }

    /// Creates one of them.
    pub async fn create_pod(&self, number: usize) -> Result<()> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": pod(number), "annotations": {"config.configurator.dev/level": "low"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        }))?;
        self.pods().create(&PostParams::default(), &pod).await?;
        Ok(())
    }

    async fn change(&self) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"config.configurator.dev/level": "high"}}});
        for number in CHANGED {
            self.pods()
                .patch(&pod(number), &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
        }
        Ok(())
    }

    async fn delete(&self) -> Result<()> {
        for number in DELETED {
            // At once: that a pod is about to go is a change as well.
            let at_once = DeleteParams::default().grace_period(0);
            self.pods().delete(&pod(number), &at_once).await?;
        }
        Ok(())
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The ConfigMaps that the host makes.
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Returns when the API has come back.
    pub async fn until_api_answers(&self) -> Result<()> {
        self.world
            .until("the API is back", || async {
                Ok(self
                    .pods()
                    .list_metadata(&ListParams::default().limit(1))
                    .await
                    .is_ok())
            })
            .await
    }

    /// How often the host has listed its pods, in a stream or in pages, as the API's record has it.
    pub fn lists(&self) -> Result<usize> {
        let events = lines(&self.about.kubernetes.audit)?;
        let is_streamed = |event: &Value| {
            let uri = event["requestURI"].as_str().unwrap_or_default();
            event["stage"] == "ResponseStarted" && uri.contains("sendInitialEvents=true")
        };
        let is_list = |event: &&Value| {
            event["userAgent"] == self.name.as_str()
                && event["objectRef"]["resource"] == "pods"
                && (event["verb"] == "list" || is_streamed(event))
        };
        Ok(events.iter().filter(is_list).count())
    }

    /// How many of the host's requests the API has answered so, as its record has it.
    pub fn answers(&self, status: u16) -> Result<usize> {
        let events = lines(&self.about.kubernetes.audit)?;
        let is_meant = |event: &&Value| {
            event["userAgent"] == self.name.as_str() && event["responseStatus"]["code"] == status
        };
        Ok(events.iter().filter(is_meant).count())
    }

    /// The token that the host has used last, as Vault's record has it.
    pub fn token(&self) -> Result<String> {
        let path = format!("secret/data/{}/", self.name);
        let events = lines(&self.about.vault.audit)?;
        let last = events.iter().rev().find(|event| {
            let request = &event["request"];
            let is_hosts = request["client_token"] != self.about.vault.token.as_str();
            is_hosts
                && request["path"]
                    .as_str()
                    .is_some_and(|found| found.starts_with(&path))
        });
        let token = last.and_then(|event| event["request"]["client_token"].as_str());
        Ok(token
            .context("the host has asked for no secret")?
            .to_owned())
    }

    /// The member of the config store that leads.
    pub async fn leader(&self) -> Result<String> {
        let mut etcd = self.etcd.clone();
        let leader = etcd.status().await?.leader();
        let members = etcd.member_list().await?;
        let found = members
            .members()
            .iter()
            .find(|member| member.id() == leader);
        Ok(found.context("nobody leads")?.name().to_owned())
    }

    /// Returns when Vault does not know a token any more.
    pub async fn until_ended(&self, token: &str) -> Result<()> {
        self.world
            .until("the end of the token", || async {
                let body = json!({"token": token});
                Ok(self
                    .operator
                    .write("auth/token/lookup", body)
                    .await
                    .is_err())
            })
            .await
    }

    /// The fault is over.
    pub fn lift(&self) {
        for proxy in self.store.iter().chain([&self.kubernetes, &self.vault]) {
            proxy.set_line(Line::Open);
            proxy.set_rule(Rule::Forward);
        }
    }

    /// Lifts the fault, waits until all is as without one, and holds the servers' records to that as well. `lost` says
    /// how many answers may have been lost with the fault: what they answered to may have been sent again.
    pub async fn converges(&self, lost: usize) -> Result<()> {
        let quiet = Box::pin(quiet()).await?;
        self.lift();
        let start = tokio::time::Instant::now();
        let mut last = None;
        let waiting = async {
            loop {
                // A server that has just come back may still refuse.
                match self.outcome().await {
                    Ok(outcome) if outcome == quiet.outcome => return,
                    Ok(outcome) => last = Some(Ok(difference(&quiet.outcome, &outcome))),
                    Err(error) => last = Some(Err(error)),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(CONVERGENCE, waiting).await.is_err() {
            anyhow::bail!(
                "{}: not as without a fault: {last:#?}; {:?}",
                self.name,
                self.world.report()
            );
        }
        let took = start.elapsed();
        self.world
            .settled_within(&[&self.name], CONVERGENCE)
            .await?;
        let record = patiently(async || self.record().await).await?;
        println!(
            "{}: as without a fault {took:?} after it was over: {record}",
            self.name
        );
        self.check(&record, quiet, lost);
        let failures = self.failures().await?;
        assert!(failures.is_empty(), "{}: {failures:#?}", self.name);
        Ok(())
    }

    fn check(&self, record: &Record, quiet: &Quiet, lost: usize) {
        let name = &self.name;
        let most = &quiet.record;
        assert!(
            record.kubernetes <= 2 * most.kubernetes,
            "{name}: {record} and not {most}"
        );
        assert!(
            record.vault <= 2 * most.vault,
            "{name}: {record} and not {most}"
        );
        assert!(
            record.asked <= 2 * most.asked,
            "{name}: {record} and not {most}"
        );
        let surplus: Vec<_> = record
            .changes
            .iter()
            .filter_map(|(change, times)| {
                let mut most = most.changes.get(change).copied().unwrap_or_default();
                // A pod that is deleted is first one that is about to go. Whether that has a run is chance: it may be
                // gone before.
                if most > 0 && DELETED.clone().any(|number| change.contains(&pod(number))) {
                    most = most.max(2);
                }
                Some((change, times.checked_sub(most).filter(|more| *more > 0)?))
            })
            .collect();
        let sum: usize = surplus.iter().map(|(_, more)| *more).sum();
        assert!(
            sum <= lost,
            "{name}: changed more than without a fault: {surplus:#?}"
        );
    }

    /// What the status of the Configurator says that was given up.
    pub async fn failures(&self) -> Result<Vec<Value>> {
        let configurators = self
            .world
            .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
            .await?;
        let configurator = configurators.get(&self.name).await?;
        let failures = configurator.data.pointer("/status/failures");
        let failures = failures.and_then(Value::as_array);
        Ok(failures.cloned().unwrap_or_default())
    }

    /// What there is now.
    pub async fn outcome(&self) -> Result<Outcome> {
        let config_maps = self.config_maps().list(&ListParams::default()).await?;
        let config_maps = config_maps
            .into_iter()
            .filter(|map| map.name_any().ends_with("-config"))
            .map(|map| (map.name_any(), json!(map.data).to_string()))
            .collect();
        let prefix = format!("{}/", self.name);
        let options = GetOptions::new().with_prefix();
        let found = self.etcd.clone().get(prefix, Some(options)).await?;
        let keys = found
            .kvs()
            .iter()
            .map(|pair| (self.stored(pair.key()), self.stored(pair.value())))
            .filter(|(key, _)| !is_own(key))
            .collect();
        let mut secrets = Vec::new();
        for number in 0..PODS {
            let secret = format!("pod-{}.{}", self.name, pod(number));
            if self.secrets.get(&secret).await?.is_some() {
                secrets.push(pod(number));
            }
        }
        Ok(Outcome {
            config_maps,
            keys,
            secrets,
        })
    }

    /// Returns when there are so many ConfigMaps and entries, so many of them changed, and nothing is under way.
    pub async fn until(&self, what: &str, pods: usize, changed: Option<usize>) -> Result<()> {
        self.world
            .until(what, || async {
                let outcome = self.outcome().await?;
                let is_changed = |data: &&String| data.contains("high");
                let high = outcome.config_maps.values().filter(is_changed).count();
                let is_entry = |key: &&String| key.starts_with("resources/");
                let entries = outcome.keys.keys().filter(is_entry).count();
                Ok(outcome.config_maps.len() == pods
                    && entries == pods
                    && outcome.secrets.len() == pods
                    && changed.is_none_or(|changed| high == changed))
            })
            .await?;
        self.world.settled_within(&[&self.name], PATIENCE).await
    }

    /// Without what differs between scenes: the name, and uids.
    fn said_alike(&self, text: &str) -> String {
        without_chance(&text.replace(&self.name, "SCENE"))
    }

    /// The same of a key or value of the config store, without the prefix.
    fn stored(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let prefix = format!("{}/", self.name);
        self.said_alike(text.strip_prefix(&prefix).unwrap_or(&text))
    }

    /// What the servers' records say of the host.
    pub async fn record(&self) -> Result<Record> {
        let mut changes = BTreeMap::new();
        let mut kubernetes = self.kubernetes.refused();
        for event in lines(&self.about.kubernetes.audit)? {
            let is_watch = event["verb"] == "watch";
            let stage = if is_watch {
                "ResponseStarted"
            } else {
                "ResponseComplete"
            };
            if event["userAgent"] != self.name.as_str() || event["stage"] != stage {
                continue;
            }
            kubernetes += 1;
            let is_change = ["create", "update", "patch", "delete"]
                .iter()
                .any(|verb| event["verb"] == *verb);
            let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
            // Statuses and Events are of the host itself.
            let is_of_a_run = event["objectRef"]["resource"] == "configmaps";
            if is_change && is_of_a_run && code < 300 {
                let change = format!(
                    "{} {} {}",
                    event["verb"], event["requestURI"], event["requestObject"]
                );
                *changes.entry(self.said_alike(&change)).or_default() += 1;
            }
        }
        let mut vault = self.vault.refused();
        for event in lines(&self.about.vault.audit)? {
            let request = &event["request"];
            let is_hosts = request["client_token"] != self.about.vault.token.as_str()
                && event.to_string().contains(&self.name);
            if event["type"] != "response" || !is_hosts {
                continue;
            }
            vault += 1;
            let path = request["path"].as_str().unwrap_or_default();
            let is_change = path.starts_with("secret/") && request["operation"] != "read";
            if is_change && event["error"].is_null() {
                let change = format!(
                    "vault {} {path} {}",
                    request["operation"], request["data"]["options"]
                );
                *changes.entry(self.said_alike(&change)).or_default() += 1;
            }
        }
        let asked = asked(&self.about).await?;
        let asked = asked.iter().zip(&self.asked).map(|(now, before)| {
            let now = now.unwrap_or_default();
            // One that was killed begins anew.
            now.checked_sub(before.unwrap_or_default()).unwrap_or(now)
        });
        let asked = asked.sum();
        let transactions = self.transactions(&mut changes).await?;
        Ok(Record {
            kubernetes,
            vault,
            asked,
            transactions,
            changes,
        })
    }

    /// Every change of the config store under the host's prefix, as etcd remembers it; how many transactions made them.
    async fn transactions(&self, changes: &mut BTreeMap<String, usize>) -> Result<usize> {
        let mut etcd = self.etcd.clone();
        let end = revision(&mut etcd).await?;
        let last = format!("{}/end", self.name);
        let options = WatchOptions::new()
            .with_prefix()
            .with_start_revision(self.revision + 1);
        let mut watch = etcd.watch(format!("{}/", self.name), Some(options)).await?;
        etcd.put(last.as_str(), "", None).await?;
        let mut transactions = std::collections::BTreeSet::new();
        loop {
            let answer = watch.message().await?.context("the watch ended")?;
            for event in answer.events() {
                let pair = event.kv().context("an event without a key")?;
                if pair.key() == last.as_bytes() {
                    if pair.mod_revision() > end {
                        return Ok(transactions.len());
                    }
                    continue;
                }
                transactions.insert(pair.mod_revision());
                let key = String::from_utf8_lossy(pair.key()).into_owned();
                let value = String::from_utf8_lossy(pair.value());
                let change = match event.event_type() {
                    EventType::Put => format!("put {key} {value}"),
                    EventType::Delete => format!("delete {key}"),
                };
                *changes.entry(self.said_alike(&change)).or_default() += 1;
            }
        }
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} requests to the API, {} to Vault, {} to etcd, {} transactions in it",
            self.kubernetes, self.vault, self.asked, self.transactions
        )
    }
}

/// Servers that may be stopped and killed; whoever does that starts them again.
async fn own() -> Result<ControlPlane> {
    static OWN: OnceCell<ControlPlane> = OnceCell::const_new();
    let plane = OWN.get_or_try_init(|| async {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // Its pipe belongs to the runtime that made it, and each test has its own: this one outlives them all.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let plan = Plan {
                    stores: 3,
                    ..Plan::default()
                };
                let _ = sender.send(ControlPlane::start(&plan).await);
                std::future::pending::<()>().await;
            });
        });
        receiver.await?
    });
    Ok(plane.await?.clone())
}

/// Tries until it goes well: for questions to servers of which some may be away.
pub async fn patiently<T>(attempt: impl AsyncFn() -> Result<T>) -> Result<T> {
    let trying = async {
        loop {
            match attempt().await {
                Ok(found) => return found,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    match tokio::time::timeout(PATIENCE, trying).await {
        Ok(found) => Ok(found),
        Err(_) => attempt().await,
    }
}

/// The name of a pod.
pub fn pod(number: usize) -> String {
    format!("web-{number:02}")
}

/// Whether a key is the host's own: its book of what it has handled, and whose the prefix is.
fn is_own(key: &str) -> bool {
    key.starts_with("ledger/") || key == "owner" || key == "end"
}

fn difference(expected: &Outcome, found: &Outcome) -> Vec<String> {
    let words = |outcome: &Outcome| -> Vec<String> {
        let maps = outcome.config_maps.iter().chain(&outcome.keys);
        let maps = maps.map(|(key, value)| format!("{key} = {value}"));
        let secrets = outcome.secrets.iter().map(|pod| format!("secret of {pod}"));
        maps.chain(secrets).collect()
    };
    let (expected, found) = (words(expected), words(found));
    let missing = expected.iter().filter(|word| !found.contains(word));
    let surplus = found.iter().filter(|word| !expected.contains(word));
    missing
        .map(|word| format!("missing: {word}"))
        .chain(surplus.map(|word| format!("not expected: {word}")))
        .collect()
}

/// A text without what differs from run to run: uids, and which life of an object a record of the ledger is of.
fn without_chance(text: &str) -> String {
    const UID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let replaced = |pattern: &str, text: &str, word: &str| {
        let pattern = regex::Regex::new(pattern).unwrap();
        pattern.replace_all(text, word).into_owned()
    };
    replaced(
        "\"life\":[0-9]+",
        &replaced(UID, text, "UID"),
        "\"life\":LIFE",
    )
}

/// The events of a record. The last line may be half written.
fn lines(path: &std::path::Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)?;
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// The API as the host reaches it, whose record knows the host by its name.
async fn hosts_cluster(about: &About, url: &str, name: &str) -> Result<Cluster> {
    let kubeconfig = Kubeconfig::read_from(&about.kubernetes.kubeconfig)?;
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.cluster_url = url.parse()?;
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_str(name)?));
    Ok(cluster::connect(&config)?)
}

/// How many transactions each member of the config store has been asked for, as its own metrics have it. Tests ask for
/// none, only hosts do; these read by transactions as well. A member that is away does not tell.
async fn asked(about: &About) -> Result<Vec<Option<usize>>> {
    let ca = reqwest::Certificate::from_pem(&std::fs::read(&about.ca)?)?;
    let mut identity = std::fs::read(&about.store.cert)?;
    identity.extend(std::fs::read(&about.store.key)?);
    let http = reqwest::Client::builder()
        .tls_certs_only([ca])
        .identity(reqwest::Identity::from_pem(&identity)?)
        .timeout(ANSWER)
        .no_proxy()
        .build()?;
    let mut asked = Vec::new();
    for endpoint in &about.store.endpoints {
        let Ok(answer) = http.get(format!("{endpoint}/metrics")).send().await else {
            asked.push(None);
            continue;
        };
        let text = answer.error_for_status()?.text().await?;
        let handled = text.lines().filter(|line| {
            line.starts_with("grpc_server_handled_total") && line.contains("grpc_method=\"Txn\"")
        });
        let counts = handled.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        asked.push(Some(counts.sum::<f64>() as usize));
    }
    Ok(asked)
}

/// The newest revision.
pub async fn revision(etcd: &mut etcd_client::Client) -> Result<i64> {
    let answer = etcd.get("none", None).await?;
    Ok(answer.header().context("no header")?.revision())
}
