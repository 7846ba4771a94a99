//! The host as a library: everything that an embedder brings, and the one thing that runs.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use configurator_background::work::Background;
use configurator_core::backoff::DEFAULT_MAX_RETRY_AFTER;
use configurator_core::capability::Capabilities;
use configurator_core::ceiling::Ceiling;
use configurator_core::handler::DEFAULT_MAX_STATUS_SIZE;
#[cfg(not(feature = "http"))]
use configurator_core::request::SinkName;
use configurator_guest::memory::available_memory;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::{GuestError, GuestRuntime};
use kube::Client;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::answers::{ANSWER_MEMORY, AnswerBudget};
use crate::clock::{Clock, SharedClock, SystemClock};
use crate::cluster::{self, Cluster};
use crate::controller::call_mode::CallMode;
use crate::controller::namespace_changes::NamespaceChanges;
use crate::controller::namespaces::{self, Namespaces};
use crate::controller::parking::{Availability, Prober};
use crate::controller::partitions;
use crate::controller::pending::CommandLimits;
pub use crate::controller::policies::Unselected;
use crate::controller::policies::{self, Policies};
use crate::controller::quota_usage::QuotaUsage;
use crate::controller::rbac_changes;
use crate::controller::report::HostReport;
use crate::controller::requesters::Requesters;
use crate::controller::rights::MAX_REVIEWS;
use crate::controller::run_rates::RunRates;
use crate::controller::supervisor::Supervisor;
use crate::declaration::FlowSet;
use crate::declarative::DeclarativeRequests;
use crate::events::{self, Publisher};
use crate::executor::Executor;
use crate::metrics::Metrics;
use crate::module_source::{Guarded, ModuleDirectory, ModuleSource, Permitted};
use crate::observer::{NoObserver, RunObserver, SharedObserver};
use crate::recording::Recorder;
use crate::scope::HostScope;
use crate::seal::{HostKey, StateKey};
use crate::shards::{ClaimClient, Election, Sharding, ShardingError, Shards};
#[cfg(not(feature = "http"))]
use crate::sinks::AbsentSink;
use crate::sinks::configstore::{ClaimedStore, ConfigStore, ConfigstoreSink, EmbeddedConfigStore};
use crate::sinks::extensions::Extensions;
#[cfg(feature = "http")]
use crate::sinks::http::{HttpOptions, HttpSink};
use crate::sinks::kubernetes::KubernetesSink;
use crate::sinks::partitions::{KubernetesPartitions, Partitions};
use crate::sinks::secretstore::{
    EmbeddedSecretStore, RandomSecrets, SealingKey, SecretGenerator, SecretStore, SecretstoreSink,
};
use crate::sinks::{Sink, Sinks};
use crate::tasks::{TaskKind, Tasks};

/// What every Configurator of a host shares.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) config_store: Arc<dyn ConfigStore>,
    pub(crate) secret_store: Arc<dyn SecretStore>,
    pub(crate) secret_generator: Arc<dyn SecretGenerator>,
    pub(crate) partitions: Arc<dyn Partitions>,
    pub(crate) answers: AnswerBudget,
    pub(crate) guest: GuestRuntime,
    pub(crate) call_mode: CallMode,
    pub(crate) modules: Arc<dyn ModuleSource>,
    pub(crate) executor: Executor,
    pub(crate) declarative: DeclarativeRequests,
    pub(crate) clock: SharedClock,
    /// What holds for the Configurators of each namespace.
    pub(crate) policies: Policies,
    pub(crate) publisher: Publisher,
    pub(crate) observer: SharedObserver,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) availability: Arc<Availability>,
    pub(crate) max_retry_after: Duration,
    pub(crate) max_status_size: u64,
    pub(crate) command_limits: CommandLimits,
    pub(crate) requesters: Arc<Requesters>,
    /// Changes of roles and their bindings.
    pub(crate) rbac_changes: NamespaceChanges,
    /// Limits the reviews of rights.
    pub(crate) reviews: Arc<Semaphore>,
    /// Limits how often runs of each namespace begin.
    pub(crate) run_rates: RunRates,
    /// What the Configurators of each namespace use of its quotas.
    pub(crate) quota_usage: QuotaUsage,
    pub(crate) namespaces: Namespaces,
    pub(crate) state_retention: Duration,
    pub(crate) seed: u64,
    /// Where hosts share the objects: which are this host's.
    pub(crate) shards: Option<Arc<Shards>>,
    /// Claims Configurators for the group of this host; `None` if no hosts share the objects.
    pub(crate) claims: Option<Arc<ClaimClient>>,
    /// The Configurators that this host runs.
    pub(crate) scope: HostScope,
    /// Seals states in a machine.
    pub(crate) state_key: Arc<HostKey>,
    /// The flows that are resources of their own; `None` as long as they are not known.
    pub(crate) flows: watch::Sender<Option<Arc<FlowSet>>>,
}

/// A host that has not been started.
pub struct Host {
    shared: Arc<Shared>,
    tasks: Tasks,
    reports: watch::Sender<HostReport>,
    prober: Prober,
    events: mpsc::Receiver<events::HostEvent>,
    grace: Duration,
}

/// Why a host could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No client was given.
    #[error("a host needs a Kubernetes client: call `client`")]
    NoClient,
    /// The engine for modules could not be started.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// There was no key for secrets in memory.
    #[error(transparent)]
    Secrets(#[from] crate::sinks::secretstore::KeyError),
    /// Hosts cannot share objects like this.
    #[error(transparent)]
    Sharding(#[from] ShardingError),
    /// The scope is limited, but the host does not claim its Configurators.
    #[error(
        "a host whose scope is limited must claim its Configurators by Leases: call `sharding`, with a name for the hosts that have this scope"
    )]
    Scope,
}

/// The default time for which the states of machines outlive their Configurator.
pub const DEFAULT_STATE_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Builds a [`Host`]. Only [`client`](Self::client) must be given; what is left out is kept in memory.
#[derive(Default)]
pub struct HostBuilder {
    cluster: Option<Cluster>,
    config_store: Option<Arc<dyn ConfigStore>>,
    secret_store: Option<Arc<dyn SecretStore>>,
    secret_generator: Option<Arc<dyn SecretGenerator>>,
    sink_decorator: Option<Box<dyn FnOnce(Sinks) -> Sinks + Send>>,
    #[cfg(feature = "http")]
    http: HttpOptions,
    http_sink: Option<Arc<dyn Sink>>,
    extensions: Extensions,
    modules: Option<Arc<dyn ModuleSource>>,
    clock: Option<SharedClock>,
    policy: Option<Capabilities>,
    unselected: Option<Unselected>,
    guest: Option<GuestRuntime>,
    guest_options: GuestOptions,
    answer_memory: Option<u64>,
    background: Background,
    call_mode: CallMode,
    observer: Option<SharedObserver>,
    recorder: Option<Arc<Recorder>>,
    grace: Option<Duration>,
    max_retry_after: Option<Duration>,
    max_status_size: Option<u64>,
    command_limits: CommandLimits,
    state_retention: Option<Duration>,
    seed: Option<u64>,
    sharding: Option<Sharding>,
    scope: HostScope,
    state_key: Option<StateKey>,
}

impl HostBuilder {
    /// The Kubernetes API: a cluster of [`cluster::connect`], or the client of any other, as of an embedded one. Those
    /// repeat nothing by themselves; so should others.
    #[must_use]
    pub fn client(mut self, cluster: impl Into<Cluster>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// The config store. Default: in memory.
    #[must_use]
    pub fn config_store(mut self, store: impl ConfigStore) -> Self {
        self.config_store = Some(Arc::new(store));
        self
    }

    /// The secret store. Default: in memory, sealed with a key that nobody knows.
    #[must_use]
    pub fn secret_store(mut self, store: impl SecretStore) -> Self {
        self.secret_store = Some(Arc::new(store));
        self
    }

    /// Makes the values of secrets that a request leaves to the host. Default: random.
    #[must_use]
    pub fn secret_generator(mut self, generator: impl SecretGenerator) -> Self {
        self.secret_generator = Some(Arc::new(generator));
        self
    }

    /// What HTTP requests may reach beyond public addresses. Default: nothing.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(mut self, options: HttpOptions) -> Self {
        self.http = options;
        self
    }

    /// A sink of one's own for HTTP requests.
    #[must_use]
    pub fn http_sink(mut self, sink: impl Sink) -> Self {
        self.http_sink = Some(Arc::new(sink));
        self
    }

    /// Adds a sink for requests to the extension of this name. It gets operations that the Configurator's capabilities and the policy
    /// of the host allow, and reads them from [`Operation::Extension`](configurator_core::request::Operation::Extension). Default: none.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, sink: impl Sink) -> Self {
        self.extensions.add(name, Arc::new(sink));
        self
    }

    /// Wraps the sinks, to see or change what passes.
    #[must_use]
    pub fn decorate_sinks(
        mut self,
        decorate: impl FnOnce(Sinks) -> Sinks + Send + 'static,
    ) -> Self {
        self.sink_decorator = Some(Box::new(decorate));
        self
    }

    /// Where modules come from. Default: files under the current directory.
    #[must_use]
    pub fn modules(mut self, source: impl ModuleSource) -> Self {
        self.modules = Some(Arc::new(source));
        self
    }

    /// The clock. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The ceiling of all capabilities: an author of a Configurator cannot grant what is not in here.
    /// Default: everything, so that a Configurator's own capabilities decide.
    #[must_use]
    pub fn policy(mut self, policy: Capabilities) -> Self {
        self.policy = Some(policy);
        self
    }

    /// What holds for namespaces that no [`ConfiguratorPolicy`](crate::resource::policy::ConfiguratorPolicy) selects. Default:
    /// [`Unselected::Denied`]. An API without RBAC of its own, such as the embedded one, is a reason for [`Unselected::Allowed`].
    #[must_use]
    pub fn unselected(mut self, unselected: Unselected) -> Self {
        self.unselected = Some(unselected);
        self
    }

    /// The runtime of modules, to share it between hosts.
    #[must_use]
    pub fn guest(mut self, guest: GuestRuntime) -> Self {
        self.guest = Some(guest);
        self
    }

    /// Options of the runtime of modules, when none is shared.
    #[must_use]
    pub fn guest_options(mut self, options: GuestOptions) -> Self {
        self.guest_options = options;
        self
    }

    /// The memory of answers to runs under way, in bytes; at least
    /// [`LEAST_ANSWER_MEMORY`](crate::answers::LEAST_ANSWER_MEMORY). A request waits until there is room for its answer. Default: an
    /// eighth of the memory that the process may have.
    #[must_use]
    pub fn answer_memory(mut self, bytes: u64) -> Self {
        self.answer_memory = Some(bytes);
        self
    }

    /// Processes large answers, unless handlers are called in virtual time. Default: [`Background::default`], which an embedded API shares.
    #[must_use]
    pub fn background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// How handlers are called. Default: several at a time.
    #[must_use]
    pub fn call_mode(mut self, mode: CallMode) -> Self {
        self.call_mode = mode;
        self
    }

    /// Keeps runs, so that their calls can be made again. By default none is kept.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Sees what runs do. Default: nobody.
    #[must_use]
    pub fn observer(mut self, observer: impl RunObserver) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// How long runs may take to end when the host stops. Default: 30 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// The longest `Retry-After` of a server that is honored; a longer one counts as this. Default: 1 h.
    #[must_use]
    pub fn max_retry_after(mut self, max_retry_after: Duration) -> Self {
        self.max_retry_after = Some(max_retry_after);
        self
    }

    /// Sets the largest status, in bytes, that handlers may give an object. Every client that watches the object receives it. Default:
    /// [`DEFAULT_MAX_STATUS_SIZE`].
    #[must_use]
    pub fn max_status_size(mut self, bytes: u64) -> Self {
        self.max_status_size = Some(bytes);
        self
    }

    /// How long the states of machines are still accepted after their Configurator was deleted, should one of the same name be
    /// made; zero: not at all. Default: 30 days.
    #[must_use]
    pub fn state_retention(mut self, retention: Duration) -> Self {
        self.state_retention = Some(retention);
        self
    }

    /// Limits of the Commands of each Configurator with a machine. Default: 1,000 that wait; those that have finished are deleted
    /// after seven days.
    #[must_use]
    pub fn command_limits(mut self, limits: CommandLimits) -> Self {
        self.command_limits = limits;
        self
    }

    /// Decides all jitter. Default: chosen by chance.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Shares the objects with other hosts of the same cluster. They must have the config store and the secret
    /// store in common as well.
    /// Default: this host has every object.
    #[must_use]
    pub fn sharding(mut self, sharding: Sharding) -> Self {
        self.sharding = Some(sharding);
        self
    }

    /// Limits the Configurators that this host runs. Default: all.
    ///
    /// A scope that is limited needs [`sharding`](Self::sharding). Hosts with the same [`Sharding::name`] are a group, and must have the same
    /// scope. Scopes of different groups may overlap: each Configurator is claimed by one group, by a Lease. If another scope chooses it, the hosts of the
    /// first group let its runs end before the other group begins.
    #[must_use]
    pub fn scope(mut self, scope: HostScope) -> Self {
        self.scope = scope;
        self
    }

    /// Seals the states of objects in a machine. Default: a key that the secret store has, under `configurator.dev/state-key`; it
    /// is made where there is none.
    #[must_use]
    pub fn state_key(mut self, key: StateKey) -> Self {
        self.state_key = Some(key);
        self
    }

    /// Builds the host. Nothing is started, and no server is spoken to.
    ///
    /// # Errors
    /// When there is no client, or the engine for modules cannot be started.
    pub fn build(self) -> Result<Host, BuildError> {
        let cluster = self.cluster.ok_or(BuildError::NoClient)?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let config_store = self
            .config_store
            .unwrap_or_else(|| Arc::new(EmbeddedConfigStore::memory()));
        let own_client = cluster::patient(&cluster.client);
        let config_store = if config_store.is_shared() {
            Arc::new(ClaimedStore::new(config_store, own_client.clone()))
        } else {
            config_store
        };
        let secret_store = match self.secret_store {
            Some(store) => store,
            None => Arc::new(EmbeddedSecretStore::memory(&SealingKey::random()?)),
        };
        let state_key = Arc::new(HostKey::new(secret_store.clone(), self.state_key));
        let max_retry_after = self.max_retry_after.unwrap_or(DEFAULT_MAX_RETRY_AFTER);
        let generator = self
            .secret_generator
            .unwrap_or_else(|| Arc::new(RandomSecrets));
        #[cfg(feature = "http")]
        let default_http: Arc<dyn Sink> = Arc::new(HttpSink::new(self.http));
        #[cfg(not(feature = "http"))]
        let default_http: Arc<dyn Sink> = Arc::new(AbsentSink(SinkName::Http));
        let guest = match self.guest {
            Some(guest) => guest,
            None => GuestRuntime::new(self.guest_options)?,
        };
        // Virtual time must not advance while an answer is read.
        let background = match &self.call_mode {
            CallMode::Parallel => self.background,
            CallMode::Inline | CallMode::Charged(_) => Background::inline(),
        };
        let kubernetes = KubernetesSink::new(&cluster)
            .max_retry_after(max_retry_after)
            .background(background.clone());
        let partitions: Arc<dyn Partitions> =
            Arc::new(KubernetesPartitions::new(cluster.client.clone()));
        let configstore = ConfigstoreSink::new(config_store.clone()).partitions(partitions.clone());
        let secretstore = SecretstoreSink::new(secret_store.clone(), generator.clone())
            .partitions(partitions.clone());
        let sinks = Sinks {
            kubernetes: Arc::new(kubernetes),
            configstore: Arc::new(configstore),
            secretstore: Arc::new(secretstore),
            http: self.http_sink.unwrap_or(default_http),
            extension: Arc::new(self.extensions),
        };
        let sinks = match self.sink_decorator {
            Some(decorate) => decorate(sinks),
            None => sinks,
        };
        let answer_memory = self.answer_memory;
        let answer_memory = answer_memory.unwrap_or_else(|| ANSWER_MEMORY.of(available_memory()));
        let answers = AnswerBudget::new(answer_memory);
        let metrics = Arc::new(Metrics::new(guest.clone(), answers.clone(), background));
        let seed = self
            .seed
            .unwrap_or_else(|| getrandom::u64().unwrap_or_default());
        let availability = Availability::new(seed, max_retry_after, clock.clone(), metrics.clone());
        let sinks = availability.observe(sinks);
        let policy = Arc::new(self.policy.unwrap_or_else(Capabilities::everything));
        let unselected = self.unselected.unwrap_or(Unselected::Denied);
        let policies = Policies::new(Ceiling::of_host(policy.clone()), unselected);
        let sinks = policies.govern(sinks);
        let tasks = Tasks::default();
        let (publisher, events) = Publisher::new(metrics.clone());
        let declarative = DeclarativeRequests::new(
            sinks.clone(),
            clock.clone(),
            tasks.clone(),
            publisher.clone(),
            metrics.clone(),
            answers.clone(),
        );
        let executor = Executor::new(
            sinks.clone(),
            clock.clone(),
            declarative.clone(),
            metrics.clone(),
        );
        let prober = Prober {
            sinks,
            availability: availability.clone(),
        };
        let chance = || getrandom::u64().unwrap_or_default();
        let shards = self
            .sharding
            .map(|sharding| Shards::new(sharding, clock.clone(), chance()))
            .transpose()?;
        if self.scope.is_limited() && shards.is_none() {
            return Err(BuildError::Scope);
        }
        let claims = shards.as_ref().map(|shards| {
            let claims = ClaimClient::new(shards.clone(), own_client.clone(), config_store.clone());
            Arc::new(claims)
        });
        let requesters = Arc::new(Requesters::new(own_client.clone(), clock.clone()));
        let run_rates = RunRates::new(shards.clone());
        let shared = Arc::new(Shared {
            shards,
            claims,
            scope: self.scope,
            state_key,
            flows: watch::Sender::new(None),
            client: own_client,
            config_store,
            secret_store,
            secret_generator: generator,
            partitions,
            guest,
            call_mode: self.call_mode,
            modules: Arc::new(Permitted {
                source: Arc::new(Guarded(
                    self.modules
                        .unwrap_or_else(|| Arc::new(ModuleDirectory::new("."))),
                )),
                policy,
            }),
            executor,
            answers,
            declarative,
            clock,
            policies,
            publisher,
            observer: self.observer.unwrap_or_else(|| Arc::new(NoObserver)),
            recorder: self.recorder,
            metrics,
            availability,
            max_retry_after,
            max_status_size: self.max_status_size.unwrap_or(DEFAULT_MAX_STATUS_SIZE),
            command_limits: self.command_limits,
            requesters,
            rbac_changes: NamespaceChanges::default(),
            reviews: Arc::new(Semaphore::new(MAX_REVIEWS)),
            run_rates,
            quota_usage: QuotaUsage::default(),
            namespaces: Namespaces::default(),
            state_retention: self.state_retention.unwrap_or(DEFAULT_STATE_RETENTION),
            seed,
        });
        let (reports, _) = watch::channel(HostReport::default());
        Ok(Host {
            shared,
            tasks,
            reports,
            prober,
            events,
            grace: self.grace.unwrap_or(Duration::from_secs(30)),
        })
    }
}

impl Host {
    /// Begins to build a host.
    ///
    /// # Example
    /// ```no_run
    /// # async fn embed(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use configurator_host::host::Host;
    /// use configurator_host::module_source::ModuleDirectory;
    ///
    /// let host = Host::builder().client(client).modules(ModuleDirectory::new("modules")).build()?;
    /// host.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// What the host says of itself, from now on.
    #[must_use]
    pub fn report(&self) -> watch::Receiver<HostReport> {
        self.reports.subscribe()
    }

    /// Numbers about the host.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }

    /// Ends the host at once when it is cancelled by [`Tasks::abort`]; for a second signal.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        self.tasks.clone()
    }

    /// Runs until `shutdown` resolves, then ends in two stages: nothing new begins and runs may finish; after the
    /// grace period what still runs is dropped. Nothing half-done is left that the next start does not mend.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self {
            shared,
            tasks,
            reports,
            prober,
            events,
            grace,
        } = self;
        let clock = shared.clock.clone();
        tasks.spawn(
            TaskKind::Publisher,
            events::publish(shared.client.clone(), events),
        );
        tasks.spawn(TaskKind::Worker, prober.run(tasks.clone()));
        if let Some(shards) = &shared.shards {
            let election = Election::new(
                shards.clone(),
                shared.client.clone(),
                shared.config_store.clone(),
                shared.metrics.clone(),
                shared.publisher.clone(),
            );
            tasks.spawn(TaskKind::Election, election.run(tasks.clone()));
        }
        let watch = TaskKind::Watch;
        tasks.spawn_until_drained(watch, rbac_changes::run(shared.clone()));
        tasks.spawn_until_drained(watch, policies::run(shared.clone()));
        tasks.spawn_until_drained(watch, namespaces::run(shared.clone()));
        tasks.spawn_until_drained(watch, partitions::run(shared.clone()));
        tasks.spawn(
            TaskKind::Worker,
            Supervisor::new(shared, tasks.clone(), reports).run(),
        );
        shutdown.await;
        tasks.drain();
        let is_over = tokio::select! {
            () = tasks.wait() => true,
            () = clock.sleep(grace) => false,
        };
        if !is_over {
            tracing::warn!(?grace, "runs are still under way; they are dropped");
            tasks.abort();
            tasks.wait().await;
        }
    }
}
