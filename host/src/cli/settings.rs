//! Settings of `configurator run`: from defaults, a file, the environment and flags, each over the ones before.

mod names;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use configurator_core::backoff::DEFAULT_MAX_RETRY_AFTER;
use configurator_core::handler::DEFAULT_MAX_STATUS_SIZE;
use configurator_guest::code_size::CodeLimits;
use configurator_guest::options::GuestOptions;
use figment::error::Kind;
use figment::providers::{Env, Format as _, Serialized, Toml};
use figment::{Figment, Source};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::servers::{EtcdSettings, RegistrySettings, ShardingSettings};
use crate::controller::pending::CommandLimits;
use crate::declaration::{format_bytes, parse_bytes};
use crate::host::DEFAULT_STATE_RETENTION;
use crate::network::{DEFAULT_IDLE_CONNECTIONS, DEFAULT_IDLE_TIMEOUT, DEFAULT_SERVERS, InnerHost};
use crate::sinks::secretstore::vault::VaultOptions;

/// Everything that can be set. In a file as `data_dir = "…"`, in the environment as `CONFIGURATOR_DATA_DIR`; what lies
/// in a table `[etcd]` of the file, in the environment as `CONFIGURATOR_ETCD__PREFIX`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where the embedded API and stores keep their files; without it they are kept in memory.
    pub data_dir: Option<PathBuf>,
    /// Where the embedded API is served for kubectl; a loopback address.
    pub listen: Option<SocketAddr>,
    /// Where metrics and health are served.
    pub metrics_listen: Option<SocketAddr>,
    /// Folders with modules: a list, or one text in which colons part them.
    #[serde(deserialize_with = "folders")]
    pub modules: Vec<PathBuf>,
    /// Use the cluster of this kubeconfig instead of the embedded API.
    pub kubeconfig: Option<PathBuf>,
    /// Use the cluster whose Pod this is instead of the embedded API.
    pub in_cluster: bool,
    /// etcd as the config store.
    pub etcd: EtcdSettings,
    /// Other hosts with which the objects are shared.
    pub sharding: ShardingSettings,
    /// Namespaces whose Configurators this host runs. Default: all.
    #[serde(deserialize_with = "list")]
    pub namespaces: Vec<String>,
    /// Label selector of the namespaces whose Configurators this host runs, and of the ClusterConfigurators that it runs, as in
    /// `tier=gold,stage in (test,live)`. Default: all.
    pub selector: Option<String>,
    /// Vault as the secret store.
    #[serde(default, skip_serializing)]
    pub vault: Option<VaultOptions>,
    /// The file with the key of the embedded secret store; made where there is none.
    pub secret_key_file: Option<PathBuf>,
    /// The key itself, in Base64. Wins over the file.
    pub secret_key: Option<String>,
    /// Registries that modules are pulled from.
    pub registries: RegistrySettings,
    /// Where copies of modules are kept for when their source is away; by default under the user's cache folder.
    pub module_copies: Option<PathBuf>,
    /// Where every run is kept, so that its calls can be made again; without it, only Configurators that ask for it are recorded, in the data folder.
    pub record: Option<PathBuf>,
    /// The file with the ceiling of all capabilities, in the form of `spec.capabilities`, and with what is allowed of modules; without it, a
    /// Configurator's own capabilities decide.
    pub policy: Option<PathBuf>,
    /// Hosts that HTTP requests may reach at addresses that are not public.
    #[serde(deserialize_with = "inner_hosts")]
    pub http_inner_hosts: Vec<InnerHost>,
    /// Number of HTTP servers that a Configurator keeps connections to.
    pub http_servers: usize,
    /// Idle connections that a Configurator keeps to one HTTP server.
    pub http_idle_connections: usize,
    /// Seconds that an idle connection to an HTTP server is kept.
    pub http_idle_seconds: u64,
    /// The longest time in seconds for which a server is left alone when it asks for it (`Retry-After`).
    pub max_retry_after_seconds: u64,
    /// The largest status that handlers may give an object.
    pub max_status_size: ByteSize,
    /// Commands of one Configurator that may wait for objects which it does not select.
    pub max_pending_commands: usize,
    /// Seconds after which finished Commands are deleted, and waiting ones refused; 0: never.
    pub command_ttl_seconds: u64,
    /// Seconds for which states of machines are kept after their Configurator was deleted; 0: not at all.
    pub state_retention_seconds: u64,
    /// How lines are logged.
    pub log_format: LogFormat,
    /// What is logged, as in `info,configurator=debug`; by default `warn` for people, who see a line for each run
    /// anyway, and `info` for machines.
    pub log: Option<String>,
    /// Where traces are sent, as in `http://127.0.0.1:4318`.
    pub otlp_endpoint: Option<String>,
    /// Calls of handlers that run at a time; by default one for each core.
    pub parallel_calls: Option<u32>,
    /// Calls of more than 10 ms that run at a time beside those, at a low priority; by default one less than there are processors.
    pub parallel_long_calls: Option<u32>,
    /// Large answers, and large lists of the embedded API, that are processed at a time, at a low priority; by default one less than there
    /// are processors.
    pub background_work: Option<NonZeroU32>,
    /// Memory of modules in the whole process: of the calls that run and of the instances that are kept. By default a quarter of
    /// the memory that the process may have.
    pub guest_memory: Option<ByteSize>,
    /// Memory of the answers that servers have given to runs under way. By default an eighth of the memory that the process may
    /// have.
    pub answer_memory: Option<ByteSize>,
    /// Modules that are compiled at a time, each in a process of its own.
    pub parallel_compilations: u32,
    /// Memory of a process that compiles a module.
    pub compile_memory: ByteSize,
    /// CPU time in seconds of a process that compiles a module.
    pub compile_seconds: u64,
    /// The largest module.
    pub max_module_size: ByteSize,
    /// Code of all functions of a module together.
    pub max_code_size: ByteSize,
    /// Code of one function of a module.
    pub max_function_size: ByteSize,
    /// Functions of a module.
    pub max_functions: u64,
    /// Where precompiled modules are kept; by default under the user's cache folder.
    pub module_cache: Option<PathBuf>,
    /// Seconds that runs may take to end when the host stops.
    pub grace_seconds: u64,
    /// Messages about variables that were ignored.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A number of bytes: a number, or a text with a unit as in `512Mi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ByteSizeText", into = "String")]
pub struct ByteSize(pub u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum ByteSizeText {
    Number(u64),
    Text(String),
}

impl TryFrom<ByteSizeText> for ByteSize {
    type Error = String;

    fn try_from(text: ByteSizeText) -> Result<Self, String> {
        match text {
            ByteSizeText::Number(bytes) => parse_bytes(&bytes.to_string()),
            ByteSizeText::Text(text) => parse_bytes(&text),
        }
        .map(Self)
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        format_bytes(size.0)
    }
}

/// How lines are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people: one line for each run.
    Text,
    /// For machines: one JSON object for each line.
    Json,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: None,
            listen: None,
            metrics_listen: None,
            modules: Vec::new(),
            kubeconfig: None,
            in_cluster: false,
            etcd: EtcdSettings::default(),
            sharding: ShardingSettings::default(),
            namespaces: Vec::new(),
            selector: None,
            vault: None,
            secret_key_file: None,
            secret_key: None,
            registries: RegistrySettings::default(),
            module_copies: None,
            record: None,
            policy: None,
            http_inner_hosts: Vec::new(),
            http_servers: DEFAULT_SERVERS,
            http_idle_connections: DEFAULT_IDLE_CONNECTIONS,
            http_idle_seconds: DEFAULT_IDLE_TIMEOUT.as_secs(),
            max_retry_after_seconds: DEFAULT_MAX_RETRY_AFTER.as_secs(),
            max_status_size: ByteSize(DEFAULT_MAX_STATUS_SIZE),
            max_pending_commands: CommandLimits::default().max_pending,
            command_ttl_seconds: CommandLimits::default().ttl.as_secs(),
            state_retention_seconds: DEFAULT_STATE_RETENTION.as_secs(),
            log_format: LogFormat::Text,
            log: None,
            otlp_endpoint: None,
            parallel_calls: None,
            parallel_long_calls: None,
            background_work: None,
            guest_memory: None,
            answer_memory: None,
            parallel_compilations: 2,
            compile_memory: ByteSize(640 << 20),
            compile_seconds: 120,
            max_module_size: ByteSize(GuestOptions::default().max_module_size),
            max_code_size: ByteSize(CodeLimits::default().code_size),
            max_function_size: ByteSize(CodeLimits::default().function_size),
            max_functions: CodeLimits::default().functions,
            module_cache: None,
            grace_seconds: 30,
            warnings: Vec::new(),
        }
    }
}

impl Settings {
    /// The folders in which the host keeps its files, as far as they are not those of the user.
    ///
    /// # Errors
    /// When there is no current folder.
    pub fn own_folders(&self) -> std::io::Result<Vec<PathBuf>> {
        let folders = [
            &self.data_dir,
            &self.record,
            &self.module_copies,
            &self.module_cache,
        ];
        folders
            .into_iter()
            .flatten()
            .map(|folder| {
                folder
                    .canonicalize()
                    .or_else(|_| std::path::absolute(folder))
            })
            .collect()
    }

    /// Reads the settings. `flags` holds only what was given on the command line. A variable that is not a setting is
    /// ignored with one of the [`warnings`](Self::warnings), unless it is a near miss of a setting that guards something.
    ///
    /// # Errors
    /// When the file cannot be read, or something in it or in the environment is wrong; the message names it.
    pub fn read(file: Option<&Path>, flags: &impl Serialize) -> anyhow::Result<Self> {
        let mut figment = Figment::from(Serialized::defaults(Self::default()));
        if let Some(file) = file {
            anyhow::ensure!(
                file.is_file(),
                "the configuration file {} does not exist",
                file.display()
            );
            figment = figment.merge(Toml::file(file));
        }
        let variables = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        let unknown = names::unknown(variables)?;
        let ignored = unknown.names;
        let settings: Self = figment
            .merge(
                Env::prefixed(names::PREFIX)
                    .filter(move |name| {
                        let name = name.as_str().to_ascii_lowercase();
                        names::is_for_settings(&name) && !ignored.contains(&name)
                    })
                    .split("__"),
            )
            .merge(Serialized::defaults(flags))
            .extract()
            .map_err(explained)?;
        Ok(Self {
            warnings: unknown.warnings,
            ..settings
        })
    }

    /// What is logged.
    pub fn log_filter(&self) -> &str {
        match (&self.log, self.log_format) {
            (Some(filter), _) => filter,
            (None, LogFormat::Text) => "warn",
            (None, LogFormat::Json) => "info",
        }
    }

    /// Whether a cluster is used instead of the embedded API.
    pub fn is_cluster(&self) -> bool {
        self.in_cluster || self.kubeconfig.is_some()
    }

    /// How long runs may take to end when the host stops.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }

    /// Limits of the Commands of each Configurator.
    #[must_use]
    pub fn command_limits(&self) -> CommandLimits {
        CommandLimits {
            max_pending: self.max_pending_commands,
            ttl: Duration::from_secs(self.command_ttl_seconds),
        }
    }

    /// How long states outlive their Configurator.
    #[must_use]
    pub fn state_retention(&self) -> Duration {
        Duration::from_secs(self.state_retention_seconds)
    }

    /// The longest `Retry-After` that is honored.
    #[must_use]
    pub fn max_retry_after(&self) -> Duration {
        Duration::from_secs(self.max_retry_after_seconds)
    }
}

/// Names the place of the mistake as its author knows it.
fn explained(error: figment::Error) -> anyhow::Error {
    let what = match &error.kind {
        Kind::UnknownField(name, known) => {
            let all = names::all();
            let all = all.iter().map(String::as_str);
            match names::near_miss(name, known.iter().copied().chain(all)) {
                Some(meant) => format!("unknown setting; did you mean {meant}?"),
                None => format!("unknown setting; there are {}", known.join(", ")),
            }
        }
        Kind::UnknownVariant(found, known) => format!("{found:?} is none of {}", known.join(", ")),
        Kind::InvalidType(found, expected) if expected == "a sequence" => {
            format!("{found} is no list; write it in brackets")
        }
        kind => kind.to_string().trim_end().to_owned(),
    };
    let setting = error.path.join(".");
    let source = error.metadata.and_then(|metadata| metadata.source);
    match (source, setting.as_str()) {
        (Some(Source::File(file)), "") => anyhow::anyhow!("{}: {what}", file.display()),
        (Some(Source::File(file)), _) => anyhow::anyhow!("{}: {setting}: {what}", file.display()),
        _ => anyhow::anyhow!(
            "CONFIGURATOR_{}: {what}",
            setting.replace('.', "__").to_uppercase()
        ),
    }
}

/// As [`list`], of folders or files; colons part them.
pub fn folders<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Folders {
        List(Vec<PathBuf>),
        Text(String),
    }
    Ok(match Folders::deserialize(deserializer)? {
        Folders::List(folders) => folders,
        Folders::Text(text) => std::env::split_paths(&text).collect(),
    })
}

/// A list, or one text in which commas part its entries.
pub fn list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entries {
        List(Vec<String>),
        Text(String),
    }
    Ok(match Entries::deserialize(deserializer)? {
        Entries::List(entries) => entries,
        Entries::Text(text) => text
            .split(',')
            .map(|entry| entry.trim().to_owned())
            .filter(|entry| !entry.is_empty())
            .collect(),
    })
}

/// As [`list`], of hosts that may have addresses that are not public.
pub fn inner_hosts<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<InnerHost>, D::Error> {
    let hosts = list(deserializer)?.into_iter();
    let hosts = hosts.map(InnerHost::try_from);
    hosts.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// A folder of the user's, as the XDG conventions name it.
pub fn user_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let from_variable = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let from_home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(below_home));
    Some(from_variable.or_else(from_home)?.join("configurator"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Flags {
        #[serde(skip_serializing_if = "Option::is_none")]
        listen: Option<SocketAddr>,
    }

    #[test]
    fn flags_win_over_the_file_and_unknown_settings_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("configurator.toml");
        std::fs::write(&file, "listen = \"127.0.0.1:1\"\ngrace_seconds = 5\n").unwrap();
        let flags = Flags {
            listen: Some("127.0.0.1:2".parse().unwrap()),
        };
        let settings = Settings::read(Some(&file), &flags).unwrap();
        assert_eq!(settings.listen, flags.listen);
        assert_eq!(settings.grace(), Duration::from_secs(5));
        let settings = Settings::read(Some(&file), &Flags { listen: None }).unwrap();
        assert_eq!(settings.listen, Some("127.0.0.1:1".parse().unwrap()));

        std::fs::write(&file, "guest_memory = \"512Mi\"\nanswer_memory = 100\n").unwrap();
        let settings = Settings::read(Some(&file), &flags).unwrap();
        assert_eq!(settings.guest_memory, Some(ByteSize(512 << 20)));
        assert_eq!(settings.answer_memory, Some(ByteSize(100)));
        std::fs::write(&file, "guest_memory = \"much\"\n").unwrap();
        let error = Settings::read(Some(&file), &flags).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.ends_with(r#"guest_memory: "much" is no number of bytes such as 64Mi"#),
            "{error}"
        );

        std::fs::write(&file, "http_inner_hosts = [\"a = loopback\"]\n").unwrap();
        let error = Settings::read(Some(&file), &flags).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("http_inner_hosts: \"a = loopback\""),
            "{error}"
        );

        std::fs::write(&file, "lissen = 1\n").unwrap();
        let error = Settings::read(Some(&file), &flags).unwrap_err();
        assert!(format!("{error:#}").contains("lissen"), "{error:#}");
    }
}
