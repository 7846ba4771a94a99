//! Real servers on loopback: etcd, a Kubernetes control plane and Vault, as `cargo xtask controlplane` builds them.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_host::cluster::{self, Cluster};
use configurator_host::sinks::configstore::etcd::{EtcdConfigStore, EtcdOptions};
use configurator_host::sinks::secretstore::vault::{VaultAuth, VaultOptions, VaultSecretStore};
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, OnceCell};

use crate::world::Servers;

/// How long a member of an etcd may take to answer.
pub const ANSWER: Duration = Duration::from_secs(1);

/// The servers of a test. They end, and their files go, when the last clone is dropped or this process is killed.
#[derive(Clone)]
pub struct ControlPlane {
    about: Arc<About>,
    description: Arc<str>,
    pipe: Arc<Mutex<Pipe>>,
}

struct Pipe {
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Kept so that the process is reaped.
    _child: Child,
}

/// Which servers there are.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Members of the etcd that is a config store: 1 or 3.
    pub stores: u8,
    /// Whether the secret store has a second node.
    pub standby: bool,
    /// Whether pods become ready.
    pub kwok: bool,
    /// Whether the API keeps a record of requests.
    pub audit: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            stores: 1,
            standby: false,
            kwok: false,
            audit: true,
        }
    }
}

/// How the servers are reached. Paths are those of files in PEM.
#[derive(Debug, Clone, Deserialize)]
pub struct About {
    /// The folder of everything; gone at the end.
    pub dir: PathBuf,
    /// The authority of every certificate.
    pub ca: PathBuf,
    /// The Kubernetes API.
    pub kubernetes: Kubernetes,
    /// The etcd that is a config store.
    pub store: Store,
    /// The secret store.
    pub vault: Vault,
}

/// The Kubernetes API.
#[derive(Debug, Clone, Deserialize)]
pub struct Kubernetes {
    /// Such as `https://127.0.0.1:20001`.
    pub url: String,
    /// Of a user who may do everything.
    pub kubeconfig: PathBuf,
    /// That user's bearer token.
    pub token: String,
    /// The record of requests: one JSON event a line.
    pub audit: PathBuf,
    /// Its own etcd.
    pub etcd: String,
}

/// The etcd that is a config store.
#[derive(Debug, Clone, Deserialize)]
pub struct Store {
    /// One for each member.
    pub endpoints: Vec<String>,
    /// The certificate of a client.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The secret store. Mounted are KV of version 2 at `secret` and of version 1 at `old`, and the logins `approle` and
/// `kubernetes`.
#[derive(Debug, Clone, Deserialize)]
pub struct Vault {
    /// Such as `https://127.0.0.1:20002`.
    pub url: String,
    /// The second node.
    pub standby: Option<String>,
    /// The root token.
    pub token: String,
    /// What opens it after a restart.
    pub unseal: String,
    /// The record of requests: one JSON event a line, for a request and for its answer.
    pub audit: PathBuf,
}

/// What [`ControlPlane::command`] does to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Do {
    /// Starts it again, on the same port and data.
    Start,
    /// Kills it by SIGKILL, and waits until it is gone.
    Kill,
    /// Stops it by SIGSTOP: connections stay open and nothing answers.
    Pause,
    /// Lets it go on.
    Resume,
}

impl About {
    /// A client of the API that may do everything.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        Ok(self.cluster().await?.client)
    }

    /// The API as hosts reach it, by whoever may do everything.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn cluster(&self) -> Result<Cluster> {
        let kubeconfig = Kubeconfig::read_from(&self.kubernetes.kubeconfig)?;
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(cluster::connect(&config)?)
    }

    /// The API, a config store of its own and the secret store.
    ///
    /// # Errors
    /// When the kubeconfig or a certificate cannot be read.
    pub async fn servers(&self) -> Result<Servers> {
        Ok(Servers {
            cluster: self.cluster().await?,
            server: None,
            config: Arc::new(self.config_store()),
            secrets: Arc::new(VaultSecretStore::new(self.vault_options())?),
        })
    }

    /// How Vault is reached, as root.
    #[must_use]
    pub fn vault_options(&self) -> VaultOptions {
        let auth = VaultAuth::token(self.vault.token.as_str());
        VaultOptions {
            ca: Some(self.ca.clone()),
            ..VaultOptions::new(vec![self.vault.url.clone()], auth)
        }
    }

    /// The same as variables of the program.
    #[must_use]
    pub fn vault_variables(&self) -> [(&'static str, String); 4] {
        [
            ("CONFIGURATOR_VAULT__ADDRESSES", self.vault.url.clone()),
            ("CONFIGURATOR_VAULT__CA", self.ca.display().to_string()),
            ("CONFIGURATOR_VAULT__AUTH__METHOD", "token".into()),
            ("CONFIGURATOR_VAULT__AUTH__TOKEN", self.vault.token.clone()),
        ]
    }

    /// A client of these members of an etcd. One that is stopped is left for another.
    ///
    /// # Errors
    /// When a certificate cannot be read, or nobody answers.
    pub async fn etcd(&self, members: &[impl AsRef<str>]) -> Result<etcd_client::Client> {
        let options = self
            .etcd_tls()?
            .with_timeout(ANSWER)
            .with_connect_timeout(ANSWER)
            .with_keep_alive(ANSWER, ANSWER);
        Ok(etcd_client::Client::connect(members, Some(options)).await?)
    }

    /// Who an etcd trusts, and whom to trust.
    ///
    /// # Errors
    /// When a certificate cannot be read.
    pub fn etcd_tls(&self) -> Result<ConnectOptions> {
        let identity = Identity::from_pem(
            std::fs::read(&self.store.cert)?,
            std::fs::read(&self.store.key)?,
        );
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(std::fs::read(&self.ca)?))
            .identity(identity);
        Ok(ConnectOptions::new().with_tls(tls))
    }

    /// How etcd is reached, under this prefix.
    #[must_use]
    pub fn etcd_options(&self, prefix: &str) -> EtcdOptions {
        EtcdOptions {
            endpoints: self.store.endpoints.clone(),
            prefix: prefix.to_owned(),
            ca: Some(self.ca.clone()),
            certificate: Some((self.store.cert.clone(), self.store.key.clone())),
            ..EtcdOptions::default()
        }
    }

    /// A config store on etcd, under a prefix that nobody else has.
    #[must_use]
    pub fn config_store(&self) -> EtcdConfigStore {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        EtcdConfigStore::new(self.etcd_options(&format!("tests/{process}/{number}/")))
    }
}

#[derive(Deserialize)]
struct Answer {
    error: Option<String>,
}

impl ControlPlane {
    /// Starts the servers and returns when all are ready.
    ///
    /// # Errors
    /// When they are not built, or one does not start.
    pub async fn start(plan: &Plan) -> Result<Self> {
        let folder = programs()?;
        let mut command = Command::new(folder.join("controlplane"));
        command
            .arg("up")
            .arg("-vault")
            .arg(folder.join("vault"))
            .arg(format!("-stores={}", plan.stores))
            .arg(format!("-standby={}", plan.standby))
            .arg(format!("-kwok={}", plan.kwok));
        if !plan.audit {
            command.arg("-audit=none");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // An interrupt at the terminal is this process's to take.
            .process_group(0)
            .spawn()?;
        let commands = child.stdin.take().context("the servers have no input")?;
        let answers = child.stdout.take().context("the servers have no output")?;
        let mut answers = BufReader::new(answers).lines();
        let line = answers
            .next_line()
            .await?
            .context("the servers did not start: their messages are on standard error")?;
        Ok(Self {
            about: Arc::new(serde_json::from_str(&line)?),
            description: line.into(),
            pipe: Arc::new(Mutex::new(Pipe {
                commands,
                answers,
                _child: child,
            })),
        })
    }

    /// One set of servers for all tests of a process that leave it as it is; it takes no commands.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn shared() -> Result<About> {
        static SHARED: OnceCell<About> = OnceCell::const_new();
        let about = SHARED.get_or_try_init(|| async {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            // A pipe belongs to the runtime that made it, and each test has its own: this one outlives them all.
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let Ok(runtime) = runtime else { return };
                runtime.block_on(async {
                    let plan = Plan {
                        kwok: true,
                        ..Plan::default()
                    };
                    match Self::start(&plan).await {
                        Ok(plane) => {
                            let _ = sender.send(Ok((*plane.about).clone()));
                            std::future::pending::<()>().await;
                        }
                        Err(error) => drop(sender.send(Err(error))),
                    }
                });
            });
            receiver.await.context("the servers did not start")?
        });
        Ok(about.await?.clone())
    }

    /// How the servers are reached.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The same in JSON, as other programs read it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Does something to a server: `kube-apiserver`, `kube-controller-manager`, `etcd`, `store` (or `store-0` to
    /// `store-2`), `vault`.
    ///
    /// # Errors
    /// When there is no such server, or it is not in a state for that.
    pub async fn command(&self, what: Do, server: &str) -> Result<()> {
        let what = match what {
            Do::Start => "start",
            Do::Kill => "kill",
            Do::Pause => "pause",
            Do::Resume => "resume",
        };
        self.ask(&json!({"do": what, "server": server})).await
    }

    /// Opens Vault, after a restart or a seal; waits until it answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn unseal(&self) -> Result<()> {
        self.ask(&json!({"do": "unseal"})).await
    }

    async fn ask(&self, command: &serde_json::Value) -> Result<()> {
        let mut pipe = self.pipe.lock().await;
        pipe.commands
            .write_all(format!("{command}\n").as_bytes())
            .await?;
        let line = pipe
            .answers
            .next_line()
            .await?
            .context("the servers have ended")?;
        match serde_json::from_str::<Answer>(&line)?.error {
            None => Ok(()),
            Some(error) => anyhow::bail!("{command}: {error}"),
        }
    }
}

/// The folder with the programs.
fn programs() -> Result<PathBuf> {
    let folder = crate::guests::cache()?.join("controlplane");
    anyhow::ensure!(
        folder.join("controlplane").is_file() && folder.join("vault").is_file(),
        "the servers are not built: run `cargo xtask controlplane --build`, or the tests by `cargo xtask test`"
    );
    Ok(folder)
}
