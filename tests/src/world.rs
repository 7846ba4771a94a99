//! An embedded API, embedded stores and a host, in memory or in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_host::cluster::Cluster;
use configurator_host::controller::report::HostReport;
use configurator_host::host::{Host, HostBuilder, Unselected};
use configurator_host::metrics::Metrics;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::objects;
use configurator_host::resource::definitions;
use configurator_host::scope::HostScope;
use configurator_host::shards::Sharding;
use configurator_host::sinks::configstore::{ConfigStore, EmbeddedConfigStore, is_host_key};
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey, SecretStore};
use configurator_host::tasks::Tasks;
use configurator_store::{OpenError, Store, StoreOptions};
use kube::Client;
use kube::api::{Api, DynamicObject, PatchParams};
use kube::core::{Expression, Selector};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::program::SECRET_KEY;

/// The label of the Configurators that the host of a scene runs.
pub const SCENE: &str = "scene";

/// How long anything may take before a test gives up waiting.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A host under way.
pub struct World {
    /// Speaks to the API.
    pub client: Client,
    /// The API, where it is embedded.
    pub server: Option<ApiServer>,
    /// The config store.
    pub config: Arc<dyn ConfigStore>,
    /// The secret store.
    pub secrets: Arc<dyn SecretStore>,
    metrics: Arc<Metrics>,
    report: watch::Receiver<HostReport>,
    stop: CancellationToken,
    tasks: Tasks,
    running: JoinHandle<()>,
}

/// Where a world keeps its files.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Without it, in memory.
    pub folder: Option<PathBuf>,
}

/// What a host works with.
#[derive(Clone)]
pub struct Servers {
    /// Speaks to the API.
    pub cluster: Cluster,
    /// The API, where it is embedded.
    pub server: Option<ApiServer>,
    /// The config store.
    pub config: Arc<dyn ConfigStore>,
    /// The secret store.
    pub secrets: Arc<dyn SecretStore>,
}

impl Place {
    /// The embedded API and stores at this place.
    ///
    /// # Errors
    /// When something cannot be opened.
    pub async fn open(&self) -> Result<Servers> {
        let key = SealingKey::from_text(SECRET_KEY, "the test")?;
        let (store, config, secrets) = match &self.folder {
            None => (
                Store::memory(),
                EmbeddedConfigStore::memory(),
                EmbeddedSecretStore::memory(&key),
            ),
            Some(folder) => (
                freed(&folder.join("cluster.redb")).await?,
                EmbeddedConfigStore::open(&folder.join("config.redb"))?,
                EmbeddedSecretStore::open(&folder.join("secrets.redb"), &key).await?,
            ),
        };
        let server = ApiServer::open(store, ApiServerOptions::new(jiff::Timestamp::now)).await?;
        Ok(Servers {
            cluster: Client::new(server.clone(), "default").into(),
            server: Some(server),
            config: Arc::new(config),
            secrets: Arc::new(secrets),
        })
    }
}

impl World {
    /// Starts a host in memory, with the modules that `cargo xtask guests` builds.
    ///
    /// # Errors
    /// When something cannot be opened.
    pub async fn start() -> Result<Self> {
        Self::start_at(&Place::default(), |builder| builder).await
    }

    /// Starts a host at this place, with changes to its builder.
    ///
    /// # Errors
    /// When something cannot be opened.
    pub async fn start_at(
        place: &Place,
        change: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Result<Self> {
        Self::start_on(place.open().await?, change).await
    }

    /// Starts a host on these servers, with changes to its builder.
    ///
    /// # Errors
    /// When it cannot be built, or the API refuses the definition of Configurators.
    pub async fn start_on(
        servers: Servers,
        change: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Result<Self> {
        let Servers {
            cluster,
            server,
            config,
            secrets,
        } = servers;
        let client = cluster.client.clone();
        // As the program does.
        let unselected = match &server {
            Some(_) => Unselected::Allowed,
            None => Unselected::Denied,
        };
        let builder = Host::builder()
            .client(cluster)
            .unselected(unselected)
            .config_store(config.clone())
            .secret_store(secrets.clone())
            .modules(ModuleDirectory::new(crate::guests::folder()?))
            .guest(guest()?)
            .seed(7);
        let host = change(builder).build()?;
        for definition in definitions() {
            objects::apply(&client, &definition, &params()).await?;
        }
        let report = host.report();
        let metrics = host.metrics();
        let tasks = host.tasks();
        let stop = CancellationToken::new();
        let running = tokio::spawn(host.run(stop.clone().cancelled_owned()));
        Ok(Self {
            client,
            server,
            config,
            secrets,
            metrics,
            report,
            stop,
            tasks,
            running,
        })
    }

    /// Starts a host for one scene. Scenes share a real API, so there the host runs only Configurators whose label [`SCENE`] has this name. The next
    /// host of the scene waits for the Leases of this one as long as `lease`, unless this one stops.
    ///
    /// # Errors
    /// As [`start_on`](Self::start_on).
    pub async fn start_scene(servers: Servers, name: &str, lease: Duration) -> Result<Self> {
        if servers.server.is_some() {
            return Self::start_on(servers, |builder| builder).await;
        }
        let selector = Selector::from(Expression::Equal(SCENE.into(), name.into()));
        let scope = HostScope::default().selector(selector);
        let sharding = Sharding {
            shards: 1,
            name: name.to_owned(),
            lease,
            ..Sharding::new("default", "host")
        };
        Self::start_on(servers, |builder| builder.scope(scope).sharding(sharding)).await
    }

    /// Applies an object.
    ///
    /// # Errors
    /// When the API refuses it.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        apply(&self.client, object).await
    }

    /// Applies every object of a YAML text.
    ///
    /// # Errors
    /// When the text is no YAML, or the API refuses an object.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<()> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
        for object in objects.iter().filter(|object| !object.is_null()) {
            self.apply(object)
                .await
                .with_context(|| object.to_string())?;
        }
        Ok(())
    }

    /// Applies the Configurator of a folder under `configurators/`, with changes.
    ///
    /// # Errors
    /// When it cannot be read, or the API refuses it.
    pub async fn configure(&self, folder: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut object = manifest(folder, "configurator.yaml")?;
        change(&mut object);
        self.apply(&object).await
    }

    /// The objects of a kind, as `Api`.
    ///
    /// # Errors
    /// When the API has no such kind.
    pub async fn objects(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Api<DynamicObject>> {
        Ok(objects::api(&self.client, api_version, kind, namespace).await?)
    }

    /// Returns when every object has settled and these Configurators are known.
    ///
    /// # Errors
    /// When that takes longer than [`PATIENCE`].
    pub async fn settled(&self, configurators: &[&str]) -> Result<()> {
        self.settled_within(configurators, PATIENCE).await
    }

    /// As [`settled`](Self::settled), with patience of its own.
    ///
    /// # Errors
    /// When it takes longer.
    pub async fn settled_within(&self, configurators: &[&str], patience: Duration) -> Result<()> {
        let mut report = self.report.clone();
        let waiting = report.wait_for(|report| {
            report.is_ready()
                && report.is_settled()
                && configurators
                    .iter()
                    .all(|name| report.keepers.contains_key(*name))
        });
        tokio::time::timeout(patience, waiting)
            .await
            .with_context(|| format!("not settled: {:?}", self.report.borrow().clone()))??;
        Ok(())
    }

    /// Returns when `holds` does.
    ///
    /// # Errors
    /// When that takes longer than [`PATIENCE`], or `holds` fails.
    pub async fn until<F>(&self, what: &str, holds: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<bool>>,
    {
        until(what, holds).await
    }

    /// Every key of the config store with its value, without those of the host itself.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn keys(&self) -> Result<Vec<(String, String)>> {
        let mut keys = self.config.scan("").await?;
        keys.retain(|(key, _)| !is_host_key(key));
        Ok(keys)
    }

    /// Whether the secret store has this secret.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_secret(&self, name: &str) -> Result<bool> {
        Ok(self.secrets.get(name).await?.is_some())
    }

    /// What the host says of itself at the moment.
    #[must_use]
    pub fn report(&self) -> HostReport {
        self.report.borrow().clone()
    }

    /// The lines of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> String {
        let text = self.metrics.encode();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
        lines.join("\n")
    }

    /// The sum of the lines of a metric that contain this text.
    #[must_use]
    pub fn metric_sum(&self, name: &str, part: &str) -> u64 {
        let lines = self.metric(name);
        let lines = lines.lines().filter(|line| line.contains(part));
        let numbers = lines.filter_map(|line| line.rsplit(' ').next());
        numbers
            .filter_map(|number| number.parse::<u64>().ok())
            .sum()
    }

    /// Tells the host to stop, and returns when it begins nothing any more. What is under way may still run.
    pub async fn begin_stop(&self) {
        self.stop.cancel();
        self.tasks.drain_token().cancelled().await;
    }

    /// Ends the host at once, as if its process were killed.
    ///
    /// # Errors
    /// When the host broke.
    pub async fn kill(self) -> Result<()> {
        self.tasks.abort();
        self.stop.cancel();
        Ok(self.running.await?)
    }

    /// Stops the host and returns when it has ended.
    ///
    /// # Errors
    /// When the host broke.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        Ok(self.running.await?)
    }
}

/// Applies an object.
///
/// # Errors
/// When the API refuses it.
pub async fn apply(client: &Client, object: &Value) -> Result<()> {
    objects::apply(client, object, &params()).await?;
    Ok(())
}

/// A file of one document in a folder under `configurators/`.
///
/// # Errors
/// When it cannot be read, or is no YAML.
pub fn manifest(folder: &str, file: &str) -> Result<Value> {
    let folder = crate::guests::workspace()
        .join("configurators")
        .join(folder);
    Ok(serde_saphyr::from_str(&read(&folder.join(file))?)?)
}

/// Returns when `holds` does.
///
/// # Errors
/// When that takes longer than [`PATIENCE`], or `holds` fails.
pub async fn until<F>(what: &str, mut holds: impl FnMut() -> F) -> Result<()>
where
    F: Future<Output = Result<bool>>,
{
    let waiting = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .with_context(|| format!("in vain: {what}"))?
}

/// The store in this file, once whoever had it before lets go of it: the tasks of a client end a moment after the client.
async fn freed(file: &Path) -> Result<Store> {
    let opening = async {
        loop {
            match Store::open(file, StoreOptions::default()) {
                Err(OpenError::HeldByAnotherProcess { .. }) => {
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                opened => return opened,
            }
        }
    };
    let opened = tokio::time::timeout(PATIENCE, opening).await;
    Ok(opened.with_context(|| format!("{} is not let go of", file.display()))??)
}

/// One runtime for all tests of a process: starting one maps a lot of memory.
fn guest() -> Result<GuestRuntime> {
    static SHARED: std::sync::Mutex<Option<GuestRuntime>> = std::sync::Mutex::new(None);
    let mut shared = SHARED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(runtime) = shared.as_ref() {
        return Ok(runtime.clone());
    }
    let module_cache = crate::guests::folder()?
        .parent()
        .map(|cache| cache.join("modules"));
    let runtime = GuestRuntime::new(GuestOptions {
        module_cache,
        ..GuestOptions::default()
    })?;
    *shared = Some(runtime.clone());
    Ok(runtime)
}

fn params() -> PatchParams {
    PatchParams::apply("test").force()
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
