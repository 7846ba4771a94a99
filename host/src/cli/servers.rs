//! The servers that the settings name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Selector;
use serde::{Deserialize, Serialize};

use super::settings::Settings;
use crate::cluster;
use crate::network::InnerHost;
use crate::scope::HostScope;
use crate::shards::Sharding;
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

/// Registries of modules, as the settings name them: the table `[registries]` of the file, `CONFIGURATOR_REGISTRIES__…` of the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistrySettings {
    /// Files with certificates in PEM that are trusted beside those of the system.
    #[serde(default, deserialize_with = "super::settings::folders")]
    pub ca: Vec<PathBuf>,
    /// Servers that are reached without TLS, such as `127.0.0.1:5000`: registries, and servers that these name.
    #[serde(default, deserialize_with = "super::settings::list")]
    pub plain_http: Vec<String>,
    /// Registries, and servers that these name, that may have addresses that are not public.
    #[serde(default, deserialize_with = "super::settings::inner_hosts")]
    pub inner_hosts: Vec<InnerHost>,
}

/// Hosts that share the objects, as the settings name them: the table `[sharding]` of the file,
/// `CONFIGURATOR_SHARDING__…` of the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardingSettings {
    /// Into how many parts the objects fall; without it this host has every object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u16>,
    /// The name of the group of hosts, with which the names of its Leases begin; `configurator` unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace of the Leases; that of the Pod or the kubeconfig unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What this host is called; as its machine or Pod unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Seconds that a Lease lasts after each renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u64>,
}

/// Checks that the settings fit together.
///
/// # Errors
/// When the embedded API would be served and not used, when hosts that share objects would not have all servers in common, or when a limited
/// scope is not that of a group of hosts.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    anyhow::ensure!(
        settings.listen.is_none() || !settings.is_cluster(),
        "--listen serves the embedded API, and --kubeconfig uses a cluster instead: give one of them"
    );
    if scope(settings)?.is_limited() {
        anyhow::ensure!(
            settings.sharding.shards.is_some() && settings.sharding.name.is_some(),
            "namespaces, selector: hosts claim the Configurators that they run by Leases, so that no other runs them: set sharding.shards, and \
             sharding.name to a name for the hosts with this scope"
        );
    }
    if settings.sharding.shards.is_none() {
        return Ok(());
    }
    anyhow::ensure!(
        settings.is_cluster(),
        "sharding.shards: hosts share the objects of a cluster: give --kubeconfig or --in-cluster"
    );
    anyhow::ensure!(
        !settings.etcd.endpoints.is_empty(),
        "sharding.shards: hosts that share objects need one config store: give --etcd-endpoint"
    );
    anyhow::ensure!(
        settings.vault.is_some(),
        "sharding.shards: hosts that share objects need one secret store, and the embedded one belongs to one host. Each host would \
         generate secrets of its own, and reject the states that the others have sealed: set vault.addresses and vault.auth"
    );
    Ok(())
}

/// Returns the scope of the host.
///
/// # Errors
/// When the selector is invalid.
pub fn scope(settings: &Settings) -> anyhow::Result<HostScope> {
    let text = settings.selector.as_deref().unwrap_or_default();
    let selector = configurator_apiserver::label_selector(text)
        .map_err(|error| anyhow::anyhow!("selector {text:?}: {error}"))?;
    let selector: LabelSelector = serde_json::from_value(selector)?;
    let selector = Selector::try_from(selector)?;
    Ok(HostScope::default()
        .namespaces(settings.namespaces.iter().cloned())
        .selector(selector))
}

/// How the objects are shared, when the settings say that they are.
pub fn sharding(settings: &Settings, client: &Client) -> Option<Sharding> {
    let given = &settings.sharding;
    let shards = given.shards?;
    let namespace = given.namespace.as_deref();
    let host = given.host.clone().unwrap_or_else(machine);
    let mut sharding = Sharding::new(namespace.unwrap_or(client.default_namespace()), &host);
    sharding.shards = shards;
    if let Some(name) = &given.name {
        sharding.name.clone_from(name);
    }
    if let Some(seconds) = given.lease_seconds {
        sharding.lease = Duration::from_secs(seconds);
    }
    Some(sharding)
}

/// The name of the machine or Pod, as Kubernetes would have it.
fn machine() -> String {
    let name = std::env::var("HOSTNAME")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .unwrap_or_default();
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9') => letter,
        _ => '-',
    };
    // The random ending needs some room in the name of a Lease.
    let name: String = name.trim().chars().map(plain).take(48).collect();
    match name.trim_matches('-') {
        "" => "host".to_owned(),
        name => name.to_owned(),
    }
}

/// A client of the cluster: that of a kubeconfig, or the one whose Pod this is.
///
/// # Errors
/// When the kubeconfig or the service account cannot be read.
pub async fn cluster_client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    Ok(cluster::connect(&cluster_config(kubeconfig).await?)?.client)
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
