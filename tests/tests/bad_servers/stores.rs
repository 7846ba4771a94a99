//! Stores that are another's, or not what the host needs.

use std::sync::Arc;

use anyhow::Result;
use configurator_core::layers::Write;
use configurator_host::sinks::configstore::ConfigStore as _;
use configurator_host::sinks::configstore::etcd::EtcdConfigStore;
use configurator_host::sinks::secretstore::SecretStore as _;
use configurator_host::sinks::secretstore::vault::{VaultOptions, VaultSecretStore};
use configurator_tests::configurator::scripted;
use configurator_tests::operator::Operator;
use configurator_tests::world::{Servers, World};
use expect_test::expect;
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A Configurator of one ConfigMap with a request to a store.
fn storing(request: Value) -> Value {
    scripted(
        "storing",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tests.configurator.dev/store": "yes"}}}),
        json!({"requests": [request]}),
        json!({
            "configstore": [{"prefixes": [""], "verbs": ["update"]}],
            "secretstore": [{"names": ["*"], "verbs": ["create"]}],
        }),
    )
}

fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "stored", "namespace": "default", "labels": {"tests.configurator.dev/store": "yes"}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_another_cluster_are_left_alone_until_they_are_free() -> Result<()> {
    let cluster = Cluster::new().await?;
    let options = cluster.about.etcd_options("tests/claimed/");
    let store = Arc::new(EtcdConfigStore::new(options));
    store.claim("another").await?;
    let servers = Servers {
        config: store.clone(),
        ..cluster.servers(cluster.client.clone()).await?
    };
    let world = World::start_on(servers, |builder| builder).await?;
    let put = json!({"name": "kept", "put": {"key": "kept", "value": "1"}});
    cluster.apply(&storing(put)).await?;
    cluster.apply(&object()).await?;
    let told = cluster
        .until_condition("storing", "Degraded", "True SinkUnavailable")
        .await?;
    let uid = told.split("this is ").nth(1).unwrap_or_default();
    let uid = uid.split(':').next().unwrap_or_default();
    expect![[r#"True SinkUnavailable: runs are parked until the configstore sink is back: the config store: the keys under "tests/claimed/" belong to the cluster another, and this is UID: give this host another prefix"#]].assert_eq(&told.replace(uid, "UID"));
    assert!(world.keys().await?.is_empty());
    store
        .write(vec![Write::Delete("owner".into())], &[])
        .await?;
    cluster
        .until_condition("storing", "Degraded", "False AsExpected")
        .await?;
    cluster
        .until("the key", async || Ok(!world.keys().await?.is_empty()))
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mount_that_is_missing_or_of_the_first_version_is_waited_for() -> Result<()> {
    let cluster = Cluster::new().await?;
    let vault = Operator::new(&cluster.about)?;
    let secrets = Arc::new(VaultSecretStore::new(VaultOptions {
        mount: "later".into(),
        ..cluster.about.vault_options()
    })?);
    let servers = Servers {
        secrets: secrets.clone(),
        ..cluster.servers(cluster.client.clone()).await?
    };
    let world = World::start_on(servers, |builder| builder).await?;
    let secret = json!({"name": "made", "secret": "made"});
    cluster.apply(&storing(secret)).await?;
    cluster.apply(&object()).await?;
    let told = cluster
        .until_condition("storing", "Degraded", "True SinkUnavailable")
        .await?;
    expect![[r#"True SinkUnavailable: runs are parked until the secretstore sink is back: create secret "made": Vault has nothing mounted at later/: mount a KV engine of version 2 there with `vault secrets enable -path=later kv-v2`, or correct the setting `mount`"#]].assert_eq(&told);
    vault
        .write(
            "sys/mounts/later",
            json!({"type": "kv", "options": {"version": "1"}}),
        )
        .await?;
    cluster
        .until("the probe has seen the mount", async || {
            let probed = secrets.probe().await;
            Ok(probed.is_err_and(|fault| fault.message.contains("version 1")))
        })
        .await?;
    vault
        .write(
            "sys/mounts/later/tune",
            json!({"options": {"version": "2"}}),
        )
        .await?;
    cluster
        .until_condition("storing", "Degraded", "False AsExpected")
        .await?;
    cluster
        .until("the secret", async || world.has_secret("made").await)
        .await?;
    world.stop().await
}
