//! Kinds and namespaces that are not there, or not any more.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use configurator_core::run::{Pause, Run};
use configurator_host::observer::{RunEnd, RunObserver};
use configurator_tests::configurator::{configurator, scripted};
use configurator_tests::world::World;
use expect_test::expect;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A Configurator that does nothing with objects of this kind.
fn idle(api_version: &str, kind: &str) -> Value {
    let watch = json!({"apiVersion": api_version, "kind": kind});
    configurator("idle", "nothing.wasm", watch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_or_version_that_is_not_served_is_looked_for_again() -> Result<()> {
    let cluster = Cluster::new().await?;
    let servers = cluster.servers(cluster.client.clone()).await?;
    let world = World::start_on(servers, |builder| builder).await?;
    cluster.apply(&idle("apps/v1beta9", "Deployment")).await?;
    let told = cluster
        .until_condition("idle", "Ready", "False WatchedKindMissing")
        .await?;
    expect!["False WatchedKindMissing: the API has no kind Deployment in apps/v1beta9; it is looked for again"].assert_eq(&told);
    cluster.apply(&idle("kinds.example.com/v1", "Late")).await?;
    let told = cluster
        .until_condition(
            "idle",
            "Ready",
            "False WatchedKindMissing: the API has no kind Late",
        )
        .await?;
    expect!["False WatchedKindMissing: the API has no kind Late in kinds.example.com/v1; it is looked for again"].assert_eq(&told);
    let definition = |versions: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "lates.kinds.example.com"},
            "spec": {
                "group": "kinds.example.com", "scope": "Namespaced",
                "names": {"plural": "lates", "kind": "Late"},
                "versions": versions,
            },
        })
    };
    let version = |name: &str, is_stored: bool| {
        json!({
            "name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        })
    };
    // The group is there, and its version is not.
    cluster
        .apply(&definition(json!([version("v1alpha1", true)])))
        .await?;
    let told = cluster.condition("idle", "Ready").await?;
    assert!(told.starts_with("False WatchedKindMissing"), "{told}");
    cluster
        .apply(&definition(json!([
            version("v1alpha1", true),
            version("v1", false)
        ])))
        .await?;
    cluster
        .until_condition("idle", "Ready", "True Running")
        .await?;
    world.stop().await
}

/// The kinds of fault that runs have waited for.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<Vec<String>>>);

impl RunObserver for Faults {
    fn ended(&self, _: &Run, end: &RunEnd) {
        if let RunEnd::Paused(Pause::Resend { failure, .. }) = end {
            self.0.lock().unwrap().push(failure.fault.to_string());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_being_deleted_is_waited_for_until_it_is_there_again() -> Result<()> {
    let cluster = Cluster::new().await?;
    let servers = cluster.servers(cluster.client.clone()).await?;
    let faults = Faults::default();
    let observer = faults.clone();
    let world = World::start_on(servers, |builder| builder.observer(observer)).await?;
    cluster.namespace("leaving").await?;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "leaving", "finalizers": ["tests.configurator.dev/held"]}});
    cluster.apply(&held).await?;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces
        .delete("leaving", &DeleteParams::default())
        .await?;
    let made = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "made", "namespace": "leaving"}, "data": {"a": "1"}});
    let mut maker = scripted(
        "maker",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tests.configurator.dev/make": "yes"}}}),
        json!({"requests": [{"name": "made", "apply": made}]}),
        json!({"kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["apply"]}]}),
    );
    maker["spec"]["retry"] =
        json!({"maxAttempts": 1000, "initialDelay": "100ms", "maxDelay": "500ms"});
    cluster.apply(&maker).await?;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "maker", "namespace": "default", "labels": {"tests.configurator.dev/make": "yes"}}}))
        .await?;
    let first = || faults.0.lock().unwrap().first().cloned();
    cluster
        .until("a fault", async || Ok(first().is_some()))
        .await?;
    expect![[r#"ResourceMutation: apply configmaps leaving/made: configmaps "made" is forbidden: unable to create new content in namespace leaving because it is being terminated (Forbidden)"#]].assert_eq(&first().unwrap());
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "leaving");
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("held", &PatchParams::default(), &Patch::Merge(&free))
        .await?;
    cluster
        .until("the namespace has gone", async || {
            Ok(namespaces.get_opt("leaving").await?.is_none())
        })
        .await?;
    cluster
        .until("it is missed", async || {
            let faults = faults.0.lock().unwrap();
            Ok(faults
                .iter()
                .any(|fault| fault.starts_with("ResourceNotFound")))
        })
        .await?;
    cluster.namespace("leaving").await?;
    cluster
        .until("what was to be made", async || {
            Ok(maps.get_opt("made").await?.is_some())
        })
        .await?;
    world.stop().await
}
