//! The program on a cluster that it cannot reach, does not trust, or that does not let it in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_tests::guests;
use configurator_tests::program::{Program, Running};
use expect_test::expect;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, until};
use crate::front::{Authority, Front, closed_port, open};

/// How long a token may be in use that has been replaced in its file.
const TOKEN_IS_READ_AGAIN: Duration = Duration::from_secs(120);

/// The program, with a kubeconfig in a folder of its own.
struct Host {
    running: Running,
    health: String,
    _folder: tempfile::TempDir,
}

impl Host {
    fn start(folder: tempfile::TempDir, kubeconfig: &Value) -> Result<Self> {
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig.to_string())?;
        let running = Program::new("run")
            .arg("--kubeconfig")
            .arg(file)
            .arg("--modules")
            .arg(guests::folder()?)
            .args("--metrics-listen 127.0.0.1:0")
            .start()?;
        let printed = running.until_printed("/readyz\n")?;
        let (_, rest) = printed.split_once("http://").context("no address")?;
        let (health, _) = rest.split_once('/').context("no path")?;
        Ok(Self {
            health: health.to_owned(),
            running,
            _folder: folder,
        })
    }

    /// What `/readyz` says.
    async fn readiness(&self) -> Result<String> {
        let mut stream = TcpStream::connect(&self.health).await?;
        let request = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        Ok(body.trim().to_owned())
    }

    /// What `/readyz` says once this is part of it.
    async fn until_readiness(&self, part: &str, patience: Duration) -> Result<String> {
        let mut told = String::new();
        let waiting = until(part, patience, async || {
            told = self.readiness().await?;
            Ok(told.contains(part))
        })
        .await;
        waiting.with_context(|| format!("{told}; complaints: {}", self.running.stderr()))?;
        // Where it is differs from run to run.
        let told = match told.split_once("https://127.0.0.1:") {
            Some((before, after)) => {
                let after = after.trim_start_matches(|part: char| part.is_ascii_digit());
                format!("{before}URL{after}")
            }
            None => told,
        };
        Ok(told)
    }

    /// It goes on by itself, and ends when it is told to.
    async fn recovers(self, patience: Duration) -> Result<()> {
        self.until_readiness("ok", patience).await?;
        self.ends().await
    }

    /// It ends when it is told to.
    async fn ends(mut self) -> Result<()> {
        self.running.signal("TERM")?;
        let ended = tokio::task::spawn_blocking(move || self.running.ended());
        assert!(ended.await??.success());
        Ok(())
    }

    /// It says so to whoever reads its complaints too.
    fn complains(&self, part: &str) -> Result<()> {
        self.running.until_complained(part).map(drop)
    }
}

fn patience() -> Duration {
    configurator_tests::world::PATIENCE
}

fn written(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    std::fs::write(&file, text)?;
    Ok(file)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_that_cannot_be_reached_is_waited_for() -> Result<()> {
    let cluster = Cluster::new().await?;
    let port = closed_port().await?;
    let url = format!("https://{port}");
    let admin = json!({"token": cluster.about.kubernetes.token});
    let kubeconfig = cluster.kubeconfig(&url, &cluster.about.ca, admin);
    let host = Host::start(tempfile::tempdir()?, &kubeconfig)?;
    let told = host
        .until_readiness("Connection refused", patience())
        .await?;
    expect!["not ready: waits for the cluster: URL/: ServiceError: client error (Connect): tcp connect error: Connection refused (os error 111)"].assert_eq(&told);
    host.complains("Connection refused")?;
    // Who waits can be stopped.
    let another = Host::start(tempfile::tempdir()?, &kubeconfig)?;
    another
        .until_readiness("Connection refused", patience())
        .await?;
    another.ends().await?;
    // Who wants everything settled is told that nothing will be.
    let folder = tempfile::tempdir()?;
    let file = written(folder.path(), "kubeconfig", &kubeconfig.to_string())?;
    let program = Program::new("run")
        .args("--until-settled --kubeconfig")
        .arg(file);
    let told = tokio::task::spawn_blocking(move || program.fails()).await??;
    assert!(told.contains("Connection refused"), "{told}");
    open(port, &cluster.about).await?;
    host.recovers(patience()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_not_trusted_or_has_expired_is_named_until_it_is_replaced()
-> Result<()> {
    let cluster = Cluster::new().await?;
    let folder = tempfile::tempdir()?;
    let trusted = Authority::new(folder.path(), "trusted")?;
    let other = Authority::new(folder.path(), "other")?;
    let front = Front::start(&cluster.about, other.server(2999)?).await?;
    let admin = json!({"token": cluster.about.kubernetes.token});
    let kubeconfig = cluster.kubeconfig(&front.url, &trusted.file, admin);
    let host = Host::start(folder, &kubeconfig)?;
    let told = host.until_readiness("UnknownIssuer", patience()).await?;
    expect!["not ready: waits for the cluster: URL/: ServiceError: client error (Connect): invalid peer certificate: UnknownIssuer"].assert_eq(&told);
    host.complains("UnknownIssuer")?;
    front.certificate(trusted.server(2001)?);
    let told = host.until_readiness("expired", patience()).await?;
    assert!(told.contains("invalid peer certificate"), "{told}");
    host.complains("expired")?;
    front.certificate(trusted.server(2999)?);
    host.recovers(patience()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_not_known_is_read_again_from_its_file() -> Result<()> {
    let cluster = Cluster::new().await?;
    let folder = tempfile::tempdir()?;
    let file = written(folder.path(), "token", "nobody")?;
    let kubernetes = &cluster.about.kubernetes;
    let user = json!({"tokenFile": file});
    let kubeconfig = cluster.kubeconfig(&kubernetes.url, &cluster.about.ca, user);
    let host = Host::start(folder, &kubeconfig)?;
    let told = host.until_readiness("Unauthorized", patience()).await?;
    expect!["not ready: waits for the cluster: URL/: Unauthorized: the server does not know who asks; check the credentials of this host"].assert_eq(&told);
    host.complains("Unauthorized")?;
    std::fs::write(&file, &kubernetes.token)?;
    host.recovers(TOKEN_IS_READ_AGAIN).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_may_do_nothing_says_so_until_it_may() -> Result<()> {
    let cluster = Cluster::new().await?;
    let token = cluster.account("newcomer").await?;
    let kubernetes = &cluster.about.kubernetes;
    let user = json!({"token": token});
    let kubeconfig = cluster.kubeconfig(&kubernetes.url, &cluster.about.ca, user);
    let host = Host::start(tempfile::tempdir()?, &kubeconfig)?;
    let told = host.until_readiness("forbidden", patience()).await?;
    expect![[r#"not ready: waits for the cluster: URL/: cannot apply the CustomResourceDefinition of the Configurator: customresourcedefinitions.apiextensions.k8s.io "configurators.configurator.dev" is forbidden: User "system:serviceaccount:default:newcomer" cannot patch resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope"#]].assert_eq(&told);
    let rules = json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
    ]);
    cluster.grant("newcomer", "newcomer", rules).await?;
    // The definition is there already; what it may not do next is named.
    let told = host
        .until_readiness(
            "clusterconfigurators.configurator.dev is forbidden",
            patience(),
        )
        .await?;
    expect![[r#"not ready: waits for the cluster: clusterconfigurators.configurator.dev is forbidden: User "system:serviceaccount:default:newcomer" cannot list resource "clusterconfigurators" in API group "configurator.dev" at the cluster scope"#]].assert_eq(&told);
    let rules = json!([
        {"apiGroups": ["configurator.dev"], "resources": ["clusterconfigurators", "configurators"], "verbs": ["list", "watch"]},
    ]);
    cluster.grant("newcomer", "newcomer-lists", rules).await?;
    host.recovers(TOKEN_IS_READ_AGAIN).await
}
