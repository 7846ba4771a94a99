//! A registry of OCI artifacts on loopback, as `cargo xtask controlplane --build` builds it.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A registry with TLS. It ends when it is dropped, and what was pushed goes.
pub struct RegistryServer {
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// The file with the certificate of its authority, in PEM.
    pub ca: PathBuf,
    login: Option<(&'static str, &'static str)>,
    folder: TempDir,
    child: Option<Child>,
}

impl RegistryServer {
    /// One that lets everybody do everything.
    ///
    /// # Errors
    /// When it is not built, or does not start.
    pub async fn start() -> Result<Self> {
        Self::of(None).await
    }

    /// One that lets nobody do anything but this user.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn with_login(user: &'static str, password: &'static str) -> Result<Self> {
        Self::of(Some((user, password))).await
    }

    async fn of(login: Option<(&'static str, &'static str)>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let ca = folder.path().join("ca.crt");
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        fs::write(&ca, params.self_signed(&key)?.pem())?;
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        let certificate = certificate.signed_by(&own, &issuer)?;
        fs::write(folder.path().join("server.crt"), certificate.pem())?;
        fs::write(folder.path().join("server.key"), own.serialize_pem())?;
        fs::create_dir(folder.path().join("data"))?;
        let mut server = Self {
            address: "127.0.0.1:0".to_owned(),
            ca,
            login,
            folder,
            child: None,
        };
        server.begin().await?;
        Ok(server)
    }

    /// Starts it again where it was, with what was pushed.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn begin(&mut self) -> Result<()> {
        let program = crate::guests::cache()?.join("controlplane/registry");
        let file = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(&program);
        command
            .args(["-listen", &self.address])
            .arg("-data")
            .arg(file("data"))
            .arg("-cert")
            .arg(file("server.crt"))
            .arg("-key")
            .arg(file("server.key"));
        if let Some((user, password)) = self.login {
            command.args(["-user", user, "-password", password]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| {
                format!(
                    "{}: build it by `cargo xtask controlplane --build`",
                    program.display()
                )
            })?;
        let stdout = child.stdout.take().context("the registry has no output")?;
        let mut said = BufReader::new(stdout).lines();
        self.address = said
            .next_line()
            .await?
            .context("the registry did not start")?;
        self.child = Some(child);
        Ok(())
    }

    /// A client that trusts it, and knows nothing of modules.
    ///
    /// # Errors
    /// When its authority cannot be read.
    pub fn client(&self) -> Result<reqwest::Client> {
        // Another part of the test may have done so.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(&fs::read(&self.ca)?)?;
        Ok(reqwest::Client::builder()
            .add_root_certificate(ca)
            .build()?)
    }

    /// Ends it. What was pushed stays.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub async fn end(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }
}
