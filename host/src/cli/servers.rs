//! The servers that the settings name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::{Deserialize, Serialize};

use crate::cluster;
use crate::sinks::configstore::etcd::{EtcdConfigStore, EtcdOptions};

/// etcd, as the settings name it: the table `[etcd]` of the file, `CONFIGURATOR_ETCD__…` of the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdSettings {
    /// The members; when there are any, they are the config store.
    #[serde(default, deserialize_with = "super::settings::list")]
    pub endpoints: Vec<String>,
    /// What every key begins with; `configurator/` unless it is given.
    pub prefix: Option<String>,
    /// The authority of the servers' certificates, in PEM; the system's unless it is given.
    pub ca: Option<PathBuf>,
    /// The certificate of this client, in PEM.
    pub cert: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
    /// A user of etcd.
    pub user: Option<String>,
    /// The file with that user's password.
    pub password_file: Option<PathBuf>,
    /// The password itself. Wins over the file.
    pub password: Option<String>,
    /// Seconds that one request may take.
    pub timeout_seconds: Option<u64>,
}

/// A client of the cluster: that of a kubeconfig, or the one whose Pod this is.
///
/// # Errors
/// When the kubeconfig or the service account cannot be read.
pub async fn cluster_client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    Ok(cluster::client(cluster_config(kubeconfig).await?)?)
}

/// Where the cluster is, and who asks: as a kubeconfig says, or the Pod that this is.
///
/// # Errors
/// When the kubeconfig or the service account cannot be read.
pub async fn cluster_config(kubeconfig: Option<&Path>) -> anyhow::Result<kube::Config> {
    Ok(match kubeconfig {
        Some(file) => {
            let read = Kubeconfig::read_from(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("{} leads nowhere", file.display()))?
        }
        None => kube::Config::incluster()
            .context("this is no Pod with a service account: give --kubeconfig")?,
    })
}

/// The config store on etcd, when the settings name members.
///
/// # Errors
/// When a setting has no sense, or the password cannot be read.
pub fn etcd(settings: &EtcdSettings) -> anyhow::Result<Option<EtcdConfigStore>> {
    if settings.endpoints.is_empty() {
        return Ok(None);
    }
    let defaults = EtcdOptions::default();
    let certificate = match (&settings.cert, &settings.key) {
        (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
        (None, None) => None,
        _ => anyhow::bail!("etcd.cert and etcd.key belong together: give both"),
    };
    let user = match &settings.user {
        None => None,
        Some(user) => {
            let password = secret(
                settings.password.as_deref(),
                settings.password_file.as_deref(),
            )?
            .with_context(|| format!("etcd.user is {user}: give etcd.password_file"))?;
            Some((user.clone(), password))
        }
    };
    Ok(Some(EtcdConfigStore::new(EtcdOptions {
        endpoints: settings.endpoints.clone(),
        prefix: settings.prefix.clone().unwrap_or(defaults.prefix),
        ca: settings.ca.clone(),
        certificate,
        user,
        timeout: settings
            .timeout_seconds
            .map_or(defaults.timeout, Duration::from_secs),
    })))
}

/// A secret that was given as such, or in a file.
fn secret(text: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text.to_owned())),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            Ok(Some(text.trim_end().to_owned()))
        }
        (None, None) => Ok(None),
    }
}
