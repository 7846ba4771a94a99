//! A real cluster that one test at a time has for itself, and accounts in it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use configurator_core::time::Timestamp;
use configurator_host::clock::{Clock, SystemClock};
use configurator_host::resource::{ClusterConfigurator, definitions};
use configurator_host::{cluster, objects};
use configurator_tests::controlplane::{About, ControlPlane};
use configurator_tests::world::{PATIENCE, Servers};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// Each host serves every Configurator of its cluster, so two tests would disturb each other.
static TURN: Mutex<()> = Mutex::const_new(());

/// The cluster of all tests, for one of them.
pub struct Cluster {
    pub about: About,
    /// May do everything.
    pub client: Client,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// With the definition of Configurators, and none of them.
    pub async fn new() -> Result<Self> {
        let turn = TURN.lock().await;
        let about = ControlPlane::shared().await?;
        let cluster = Self {
            client: cluster::patient(&about.client().await?),
            about,
            _turn: turn,
        };
        for definition in definitions() {
            cluster.apply(&definition).await?;
        }
        let all: Api<ClusterConfigurator> = Api::all(cluster.client.clone());
        all.delete_collection(&DeleteParams::default(), &ListParams::default())
            .await?;
        cluster
            .until(
                "the Configurators of the test before have gone",
                async || Ok(all.list(&ListParams::default()).await?.items.is_empty()),
            )
            .await?;
        Ok(cluster)
    }

    /// The API for whoever has this client, a config store of its own and the secret store.
    pub async fn servers(&self, client: Client) -> Result<Servers> {
        Ok(Servers {
            cluster: client.into(),
            ..self.about.servers().await?
        })
    }

    /// Applies an object.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        let params = PatchParams::apply("operator").force();
        objects::apply(&self.client, object, &params).await?;
        Ok(())
    }

    /// Makes a namespace.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await
    }

    /// The token of a new ServiceAccount in `default`, which may do nothing.
    pub async fn account(&self, name: &str) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), "default");
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "default"}});
        self.apply(&account).await?;
        let request: TokenRequest =
            serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}}))?;
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        let token = answer.status.and_then(|status| status.token);
        token.context("no token")
    }

    /// Grants the account of this name rules everywhere, under the name of the grant.
    pub async fn grant(&self, account: &str, grant: &str, rules: Value) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": grant}, "rules": rules,
        }))
        .await?;
        self.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": grant},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": grant},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        }))
        .await
    }

    /// The kubeconfig of whoever has the credential `user`, for a server with this URL and authority.
    pub fn kubeconfig(&self, server: &str, ca: &Path, user: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": server, "certificate-authority": ca}}],
            "users": [{"name": "it", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        })
    }

    /// A client of whoever has this token.
    pub async fn client_of(&self, token: &str) -> Result<Client> {
        let url = &self.about.kubernetes.url;
        let kubeconfig = self.kubeconfig(url, &self.about.ca, json!({"token": token}));
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(cluster::connect(&config)?.client)
    }

    /// A condition of a Configurator, in one line.
    pub async fn condition(&self, configurator: &str, kind: &str) -> Result<String> {
        condition(&self.client, configurator, kind).await
    }

    /// Returns when a condition of a Configurator begins so.
    pub async fn until_condition(
        &self,
        configurator: &str,
        kind: &str,
        beginning: &str,
    ) -> Result<String> {
        until_condition(&self.client, configurator, kind, beginning).await
    }

    /// Returns when `holds` does.
    pub async fn until(&self, what: &str, holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        until(what, PATIENCE, holds).await
    }
}

/// A condition of a Configurator, in one line.
pub async fn condition(client: &Client, configurator: &str, kind: &str) -> Result<String> {
    let api: Api<ClusterConfigurator> = Api::all(client.clone());
    let status = api.get(configurator).await?.status.unwrap_or_default();
    let mut conditions = status.conditions.into_iter();
    let found = conditions.find(|condition| condition.type_ == kind);
    Ok(found.map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    }))
}

/// Returns when a condition of a Configurator begins so.
pub async fn until_condition(
    client: &Client,
    configurator: &str,
    kind: &str,
    beginning: &str,
) -> Result<String> {
    let mut last = String::new();
    let waiting = until(beginning, PATIENCE, async || {
        last = condition(client, configurator, kind).await?;
        Ok(last.starts_with(beginning))
    });
    waiting.await.with_context(|| format!("{kind}: {last}"))?;
    Ok(last)
}

/// Returns when `holds` does.
pub async fn until(
    what: &str,
    patience: Duration,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let waiting = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    tokio::time::timeout(patience, waiting)
        .await
        .with_context(|| format!("in vain: {what}"))?
}

/// A clock by which twenty seconds pass in one.
pub struct Hurried;

#[async_trait]
impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis().saturating_mul(20))
    }

    async fn sleep(&self, span: Duration) {
        SystemClock.sleep(span / 20).await;
    }
}
