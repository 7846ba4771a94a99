//! A program `configurator` that is killed and started again, on an API that stays.

use std::path::PathBuf;

use anyhow::Result;
use configurator_host::resource::definitions;
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crash_points::{ApiRequest, CrashPoints};
use crate::guests;
use crate::program::{Program, SECRET_KEY};
use crate::world::{apply, until};

/// Hosts, one after the other, with the same data folder. The API is theirs alone.
pub struct CrashingHost {
    /// Where they are killed.
    pub points: CrashPoints,
    /// Speaks to the API past these points.
    pub client: Client,
    folder: TempDir,
}

impl CrashingHost {
    /// Hosts for this API, which are killed at the points of its requests.
    ///
    /// # Errors
    /// When no port is free, or the API refuses the definition of Configurators.
    pub async fn new(
        client: Client,
        point: impl Fn(&ApiRequest<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let points = CrashPoints::default();
        let address = points.before_api(client.clone(), point).await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string())?;
        let host = Self {
            points,
            client,
            folder,
        };
        host.write_settings("")?;
        for definition in definitions() {
            host.apply(&definition).await?;
        }
        Ok(host)
    }

    /// Replaces the settings of the hosts: TOML.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_settings(&self, settings: &str) -> Result<()> {
        Ok(std::fs::write(
            self.folder.path().join("settings.toml"),
            settings,
        )?)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The secret store of the hosts, while none is alive.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn secrets(&self) -> Result<EmbeddedSecretStore> {
        let key = SealingKey::from_text(SECRET_KEY, "the test")?;
        std::fs::create_dir_all(self.data())?;
        Ok(EmbeddedSecretStore::open(&self.data().join("secrets.redb"), &key).await?)
    }

    /// Applies an object.
    ///
    /// # Errors
    /// When the API refuses it.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        apply(&self.client, object).await
    }

    fn program(&self) -> Result<Program> {
        Ok(Program::new("run")
            .arg("--kubeconfig")
            .arg(self.folder.path().join("kubeconfig"))
            .arg("--config")
            .arg(self.folder.path().join("settings.toml"))
            .arg("--data-dir")
            .arg(self.data())
            .arg("--modules")
            .arg(guests::folder()?)
            .args("--log off")
            .env("CONFIGURATOR_SECRET_KEY", SECRET_KEY))
    }

    /// Starts a host whenever the one before was killed, until `is_over`. Returns how many were killed so far.
    ///
    /// # Errors
    /// When a host gets nowhere, or `is_over` fails.
    pub async fn until(&self, is_over: impl AsyncFn() -> Result<bool>) -> Result<usize> {
        loop {
            self.points.watch(self.program()?.spawn()?);
            let over = until("it is over", || is_over());
            tokio::select! {
                () = self.points.died() => {}
                over = over => {
                    if let Some(mut host) = self.points.release() {
                        host.kill()?;
                        host.wait()?;
                    }
                    return over.map(|()| self.points.kills());
                }
            }
        }
    }
}
