//! `configurator run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use configurator_apiserver::{ApiServer, ServeOptions};
use configurator_guest::code_size::CodeLimits;
use configurator_guest::compiler::{Compiler, CompilerLimits, CompilerProcess};
use configurator_guest::functions::CompiledFunctions;
use configurator_guest::options::GuestOptions;
use kube::Client;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::servers::RegistrySettings;
use super::settings::{LogFormat, Settings, user_folder};
use super::terminal::{BAD, FAINT, GOOD, NAME, Terminal};
use super::{embedded, manifests, policy, probes, servers, telemetry};
use crate::cluster::{self, Cluster};
use crate::host::{Host, HostBuilder, Unselected};
use crate::module_source::oci::{Authority, Registries, RegistryOptions};
use crate::module_source::{
    ConfigMaps, Copies, DEFAULT_COPIES, ModuleDirectory, ModulePolicy, ModuleSources,
};
use crate::network::Reach;
use crate::objects;
use crate::recording::{DEFAULT_RECORDINGS, Recorder, make_folder};
use crate::sinks::configstore::ConfigStore;
use crate::sinks::http::HttpOptions;
use crate::sinks::secretstore::SecretStore;
use crate::sinks::secretstore::vault::{VaultOptions, VaultSecretStore};

/// The first wait before a cluster that cannot be used is tried again; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// How long nothing must happen until everything counts as settled.
const STAYS_SETTLED: Duration = Duration::from_millis(500);

/// Run the host.
#[derive(Args, Serialize)]
pub struct RunArgs {
    /// Manifests to apply at start: files or folders. Repeatable.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    #[serde(skip)]
    files: Vec<PathBuf>,
    /// Settings file, in TOML.
    #[arg(long, value_name = "FILE", env = "CONFIGURATOR_CONFIG")]
    #[serde(skip)]
    config: Option<PathBuf>,
    /// Stop when every object has settled.
    #[arg(long)]
    #[serde(skip)]
    until_settled: bool,
    /// Folder for the files of the embedded API and stores. Default: everything is kept in memory.
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,
    /// Serve the embedded API for kubectl on this loopback address, such as 127.0.0.1:6480. Port 0 picks a free port.
    #[arg(long, value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
    /// Serve /metrics, /livez and /readyz on this address.
    #[arg(long, value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics_listen: Option<SocketAddr>,
    /// Folders with modules, searched before the folders of the manifests. Repeatable.
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<PathBuf>,
    /// Use the cluster of this kubeconfig instead of the embedded API.
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    kubeconfig: Option<PathBuf>,
    /// Use the cluster of the Pod this runs in, by its service account, instead of the embedded API.
    #[arg(long, conflicts_with = "kubeconfig")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_cluster: bool,
    #[command(flatten)]
    #[serde(skip_serializing_if = "EtcdArgs::is_empty")]
    etcd: EtcdArgs,
    #[command(flatten)]
    #[serde(skip_serializing_if = "ShardingArgs::is_empty")]
    sharding: ShardingArgs,
    /// Run only Configurators in these namespaces, separated by commas. Needs --shards and a `sharding.name`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<String>,
    /// Run only Configurators in namespaces with these labels, and ClusterConfigurators with these labels. Needs --shards and a `sharding.name`.
    #[arg(long, value_name = "LABELS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<String>,
    /// File with the key of the embedded secret store. Created if it does not exist.
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_key_file: Option<PathBuf>,
    /// Record every run in this folder, for `configurator replay`.
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<PathBuf>,
    /// Policy: a file in the form of `spec.capabilities` that limits what any Configurator may do.
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PathBuf>,
    /// Log format.
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    log_format: Option<LogFormat>,
    /// Log filter, such as `info,configurator=debug`.
    #[arg(long, value_name = "FILTER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// How often modules are looked at whether they are others.
    #[arg(skip)]
    #[serde(skip)]
    look: Option<Duration>,
    /// Functions of modules that need not be compiled again.
    #[arg(skip)]
    #[serde(skip)]
    functions: Option<CompiledFunctions>,
    /// A manifest that is applied again.
    #[arg(skip)]
    #[serde(skip)]
    renewed: Option<Renewed>,
    /// Send traces to this URL, by OTLP over HTTP.
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    otlp_endpoint: Option<String>,
}

/// A manifest that is applied again each time that it is said to have changed.
#[derive(Clone)]
pub struct Renewed {
    /// The file.
    pub file: PathBuf,
    /// Says so.
    pub changed: watch::Receiver<()>,
}

impl RunArgs {
    /// As with `-f` for this file too, whose module is being written: it is looked at so often, and takes these functions.
    pub fn with_module(
        &mut self,
        declaration: Renewed,
        look: Duration,
        functions: CompiledFunctions,
    ) {
        self.files.push(declaration.file.clone());
        self.renewed = Some(declaration);
        self.look = Some(look);
        self.functions = Some(functions);
    }

    /// What is set by these arguments and elsewhere.
    ///
    /// # Errors
    /// When a setting has no sense.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Settings::read(self.config.as_deref(), self)
    }
}

impl Renewed {
    /// Applies it each time, and tells what comes of it.
    async fn keep(mut self, client: &Client) {
        while self.changed.changed().await.is_ok() {
            let applied = match manifests::read(std::slice::from_ref(&self.file)) {
                Ok(objects) => manifests::apply(client, objects).await,
                Err(error) => Err(error),
            };
            match applied {
                Ok(()) => anstream::println!("{GOOD}✓{GOOD:#} {} applied", self.file.display()),
                Err(error) => anstream::eprintln!("{BAD}✗{BAD:#} {error:#}"),
            }
        }
        std::future::pending().await
    }
}

/// The settings of etcd that flags can give.
#[derive(Args, Serialize)]
struct EtcdArgs {
    /// Use this etcd member as the config store, such as https://10.0.0.1:2379. Repeatable.
    #[arg(long = "etcd-endpoint", value_name = "URL")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<String>,
    /// Prefix of every key in etcd.
    #[arg(long = "etcd-prefix", value_name = "PREFIX")]
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
}

impl EtcdArgs {
    fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.prefix.is_none()
    }
}

/// The settings of sharding that flags can give.
#[derive(Args, Serialize)]
struct ShardingArgs {
    /// Number of shards to split objects into, shared with other hosts that use the same number. 1 means leader election. Needs etcd and Vault.
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<u16>,
}

impl ShardingArgs {
    fn is_empty(&self) -> bool {
        self.shards.is_none()
    }
}

/// Runs the host until it is told to stop.
///
/// # Errors
/// When a setting has no sense, a store cannot be opened, a port is in use, or a manifest is refused.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    let telemetry = telemetry::start(&settings)?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(run_host(&args, &settings));
    runtime.shutdown_timeout(settings.grace());
    telemetry.end();
    done
}

async fn run_host(args: &RunArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let is_person = settings.log_format == LogFormat::Text;
    let stop = CancellationToken::new();
    let is_cluster = settings.is_cluster();
    servers::check(settings)?;
    let objects = manifests::read(&args.files)?;
    let config_store: Arc<dyn ConfigStore> = match servers::etcd(&settings.etcd)? {
        Some(store) => Arc::new(store),
        None => Arc::new(embedded::open_config_store(settings)?),
    };
    let secret_store: Arc<dyn SecretStore> = match &settings.vault {
        Some(options) => Arc::new(VaultSecretStore::new(VaultOptions {
            max_retry_after: settings.max_retry_after(),
            ..options.clone()
        })?),
        None => Arc::new(embedded::open_secret_store(settings).await?),
    };
    let mut awaited = None;
    let background = embedded::background(settings);
    let (cluster, serving) = if is_cluster {
        let config = servers::cluster_config(settings.kubeconfig.as_deref()).await?;
        // Who wants it settled wants an answer.
        awaited = (!args.until_settled).then(|| config.cluster_url.to_string());
        (cluster::connect(&config)?, None)
    } else {
        let server = embedded::open_api(settings, background.clone()).await?;
        let client = embedded::client(&server);
        (
            Cluster::from(client),
            serve(server, settings, &stop, is_person).await?,
        )
    };
    let mut module_folders = settings.modules.clone();
    let mut declared = Vec::new();
    for manifest in objects.iter().filter(|manifest| manifest.is_configurator()) {
        declared.push(manifest.configurator()?.key().to_string());
        let folder = manifest
            .file
            .parent()
            .map(PathBuf::from)
            .unwrap_or_default();
        if !module_folders.contains(&folder) {
            module_folders.push(folder);
        }
    }
    if module_folders.is_empty() {
        module_folders.push(PathBuf::from("."));
    }
    let client = cluster.client.clone();
    let modules = ModuleDirectory::of(module_folders);
    let modules = match args.look {
        Some(interval) => modules.every(interval),
        None => modules,
    };
    let policy = settings.policy.as_deref().map(policy::read).transpose()?;
    let policy = policy.unwrap_or_default();
    let modules = module_sources(settings, modules, policy.modules, &client)?;
    let unselected = match is_cluster {
        true => Unselected::Denied,
        // It has no RBAC, and whoever reaches it may do everything.
        false => Unselected::Allowed,
    };
    let host = builder(settings, cluster, args.functions.clone(), is_person)?
        .background(background)
        .unselected(unselected)
        .config_store(config_store)
        .secret_store(secret_store)
        .modules(modules);
    let host = match policy.capabilities {
        Some(ceiling) => host.policy(ceiling),
        None => host,
    };
    let host = match recorder(settings)? {
        Some(recorder) => host.recorder(recorder),
        None => host,
    };
    let host = match servers::sharding(settings, &client) {
        Some(sharding) => host.sharding(sharding),
        None => host,
    };
    let host = host.scope(servers::scope(settings)?);
    let host = host.build()?;
    let mut report = host.report();
    let (trouble, troubles) = watch::channel(None);
    if let Some(address) = settings.metrics_listen {
        let reports = (host.report(), troubles);
        let at = probes::serve(address, host.metrics(), reports, stop.clone()).await?;
        if is_person {
            anstream::println!(
                "{FAINT}metrics and health at http://{at}/metrics, /livez, /readyz{FAINT:#}"
            );
        }
    }
    tokio::select! {
        defined = define(&client, awaited.as_deref(), &trouble) => defined?,
        signal = signal() => {
            signal?;
            stop.cancel();
            return Ok(ExitCode::SUCCESS);
        }
    }
    let tasks = host.tasks();
    let running = tokio::spawn(host.run(stop.clone().cancelled_owned()));
    if !objects.is_empty() {
        let number = objects.len();
        if let Err(error) = manifests::apply(&cluster::patient(&client), objects).await {
            stop.cancel();
            running.await.context("the host broke off")?;
            return Err(error);
        }
        if is_person {
            let objects = if number == 1 { "object" } else { "objects" };
            anstream::println!("{FAINT}{number} {objects} applied{FAINT:#}");
        }
    }
    let settled = async {
        if !args.until_settled {
            std::future::pending::<()>().await;
        }
        // What was applied last may not have been seen yet, so it must stay settled for a while.
        loop {
            // The sender lives as long as the host.
            let _ = report
                .wait_for(|report| {
                    let is_seen = |name: &String| {
                        report.keepers.contains_key(name) || report.outside.contains(name)
                    };
                    declared.iter().all(is_seen) && report.is_ready() && report.is_settled()
                })
                .await;
            let unsettled = report.wait_for(|report| !report.is_settled());
            if tokio::time::timeout(STAYS_SETTLED, unsettled)
                .await
                .is_err()
            {
                break;
            }
        }
        for name in declared
            .iter()
            .filter(|name| report.borrow().outside.contains(*name))
        {
            tracing::warn!(
                configurator = name,
                "this host does not run the Configurator: its `namespaces` or `selector` leave it out"
            );
        }
    };
    let renewing = async {
        match args.renewed.clone() {
            Some(renewed) => renewed.keep(&client).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = settled => {}
        () = renewing => {}
        signal = signal() => signal?,
    }
    if is_person && !args.until_settled {
        anstream::println!("{FAINT}stopping; a second signal stops at once{FAINT:#}");
    }
    stop.cancel();
    tokio::select! {
        ended = running => ended.context("the host broke off")?,
        signal = signal() => {
            signal?;
            tasks.abort();
        }
    }
    if let Some(serving) = serving {
        serving.await.context("the embedded API broke off")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Applies the definition of the Configurator. At the URL `awaited`, what may end by itself is waited for: a cluster that
/// cannot be reached or trusted, does not know this host, or does not let it yet.
async fn define(
    client: &Client,
    awaited: Option<&str>,
    trouble: &watch::Sender<Option<String>>,
) -> anyhow::Result<()> {
    let mut wait = FIRST_WAIT;
    loop {
        let Err(error) = manifests::apply_crds(&cluster::patient(client)).await else {
            trouble.send_replace(None);
            return Ok(());
        };
        let Some(url) = awaited.filter(|_| manifests::may_pass(&error)) else {
            return Err(error);
        };
        let error = format!("{url}: {}", objects::explained(error.as_ref()));
        if trouble.borrow().as_ref() != Some(&error) {
            tracing::warn!(error, "the cluster cannot be used yet; it is tried again");
        }
        trouble.send_replace(Some(error));
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(MAX_WAIT);
    }
}

/// The file of this program. On Linux it is found even after another version has taken its place.
fn own_program() -> std::io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => std::env::current_exe(),
    }
}

/// A builder with what the settings say.
fn builder(
    settings: &Settings,
    cluster: Cluster,
    functions: Option<CompiledFunctions>,
    is_person: bool,
) -> anyhow::Result<HostBuilder> {
    let mut guest = GuestOptions {
        functions,
        ..GuestOptions::default()
    };
    if let Some(calls) = settings.parallel_calls {
        guest.parallel_calls = calls;
    }
    if let Some(calls) = settings.parallel_long_calls {
        guest.parallel_long_calls = calls;
    }
    if let Some(memory) = settings.guest_memory {
        guest.memory = memory.0;
    }
    guest.max_module_size = settings.max_module_size.0;
    guest.code = CodeLimits {
        function_size: settings.max_function_size.0,
        functions: settings.max_functions,
        code_size: settings.max_code_size.0,
    };
    guest.parallel_compilations = settings.parallel_compilations;
    guest.compiler = Compiler::Process(CompilerProcess {
        program: own_program()?,
        arguments: vec!["compile-module".into()],
        limits: CompilerLimits {
            memory: settings.compile_memory.0,
            time: Duration::from_secs(settings.compile_seconds),
        },
    });
    guest.module_cache = settings
        .module_cache
        .clone()
        .or_else(|| Some(user_folder("XDG_CACHE_HOME", ".cache")?.join("modules")));
    let builder = Host::builder()
        .client(cluster)
        .guest_options(guest)
        .http(HttpOptions {
            inner_hosts: settings.http_inner_hosts.clone(),
            servers: settings.http_servers,
            idle_connections: settings.http_idle_connections,
            idle_timeout: Duration::from_secs(settings.http_idle_seconds),
            ..HttpOptions::default()
        })
        .max_retry_after(settings.max_retry_after())
        .max_status_size(settings.max_status_size.0)
        .command_limits(settings.command_limits())
        .state_retention(settings.state_retention())
        .grace(settings.grace());
    let builder = match settings.answer_memory {
        Some(memory) => builder.answer_memory(memory.0),
        None => builder,
    };
    Ok(if is_person {
        builder.observer(Terminal::default())
    } else {
        builder
    })
}

/// What keeps runs: of all Configurators, or of those that ask for it.
fn recorder(settings: &Settings) -> anyhow::Result<Option<Recorder>> {
    if let Some(folder) = &settings.record {
        make_folder(folder)
            .with_context(|| format!("runs cannot be recorded in {}", folder.display()))?;
        return Ok(Some(Recorder::new(folder, DEFAULT_RECORDINGS)?));
    }
    let Some(folder) = &settings.data_dir else {
        return Ok(None);
    };
    let recorder = Recorder::new(folder.join("recordings"), DEFAULT_RECORDINGS)?;
    Ok(Some(recorder.where_asked()))
}

/// Where modules come from: these files, ConfigMaps and registries.
fn module_sources(
    settings: &Settings,
    files: ModuleDirectory,
    policy: ModulePolicy,
    client: &Client,
) -> anyhow::Result<ModuleSources> {
    let policy = Arc::new(policy);
    let RegistrySettings {
        ca,
        plain_http,
        inner_hosts,
    } = &settings.registries;
    let ca = ca.iter().map(|file| {
        let named = || format!("cannot use registries.ca {}", file.display());
        let pem = std::fs::read(file).with_context(named)?;
        Authority::from_pem(&pem).with_context(named)
    });
    let options = RegistryOptions {
        ca: ca.collect::<anyhow::Result<_>>()?,
        reach: Reach::Public(inner_hosts.clone()),
        plain_http: plain_http.clone(),
    };
    let registries = Registries::new(&options, policy.clone()).pull_secrets(client.clone());
    let sources = ModuleSources::new()
        .files(files)
        .config_maps(ConfigMaps::new(client.clone()))
        .policy(policy);
    let folder = settings.module_copies.clone();
    let folder = folder.or_else(|| Some(user_folder("XDG_CACHE_HOME", ".cache")?.join("copies")));
    let copies = folder.map(|folder| Copies::open(folder, DEFAULT_COPIES));
    match copies {
        Some(Ok(copies)) => {
            let copies = Arc::new(copies);
            let registries = registries.copies(copies.clone());
            return Ok(sources.registries(registries).copies(copies));
        }
        Some(Err(error)) => tracing::warn!("no copies of modules are kept: {error}"),
        None => {}
    }
    Ok(sources.registries(registries))
}

type Serving = tokio::task::JoinHandle<()>;

async fn serve(
    server: ApiServer,
    settings: &Settings,
    stop: &CancellationToken,
    is_person: bool,
) -> anyhow::Result<Option<Serving>> {
    let Some(addr) = settings.listen else {
        return Ok(None);
    };
    let (served, serving) = server
        .serve(
            ServeOptions { addr, token: None },
            stop.clone().cancelled_owned(),
        )
        .await?;
    if let Some(folder) = &settings.data_dir {
        let file = folder.join("kubeconfig");
        embedded::write_private(&file, &served.kubeconfig())?;
        if is_person {
            anstream::println!(
                "{GOOD}▶{GOOD:#} the API is served at {}; try {NAME}kubectl --kubeconfig {} get clusterconfigurators{NAME:#}",
                served.url,
                file.display()
            );
        }
    } else if is_person {
        anstream::println!(
            "{GOOD}▶{GOOD:#} the API is served at {}; give --data-dir for a kubeconfig",
            served.url
        );
    }
    tracing::info!(url = served.url, "the embedded API is served");
    Ok(Some(tokio::spawn(serving)))
}

/// Returns when the process is told to stop.
async fn signal() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
