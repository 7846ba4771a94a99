//! Whole runs: modules, host, embedded API and stores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use anyhow::Result;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, Servers, World};
use expect_test::expect;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {config.configurator.dev/region: north, config.configurator.dev/level: low}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, annotations: {config.configurator.dev/disk: fast}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  annotations: {config.configurator.dev/level: high}
spec:
  nodeName: n1
  containers: [{name: c, image: "nginx:1"}]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_configured_and_its_configuration_goes_with_it() -> Result<()> {
    a_pod_lives(Place::default().open().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_real_servers_as_well() -> Result<()> {
    a_pod_lives(ControlPlane::shared().await?.servers().await?).await
}

async fn a_pod_lives(servers: Servers) -> Result<()> {
    let world = World::start_on(servers, |builder| builder).await?;
    world.configure("pod-config", |_| {}).await?;
    world.apply_yaml(SHOP).await?;
    world.settled(&["pod-config"]).await?;
    world
        .until("the pod's entry", || async {
            Ok(!world.keys().await?.is_empty())
        })
        .await?;
    world.settled(&["pod-config"]).await?;
    let keys: Vec<String> = world
        .keys()
        .await?
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    expect![[r#"
        appconf/shop/web/disk
        appconf/shop/web/level
        appconf/shop/web/region
        resources/pod/shop/web
        two/pods.shop.Pod.web
        two/pods.shop.Pod.web/web"#]]
    .assert_eq(&keys.join("\n"));
    let config_maps = world.objects("v1", "ConfigMap", "shop").await?;
    let config_map = config_maps.get("web-config").await?;
    expect![[r#"{"disk":"fast","level":"high","region":"north"}"#]]
        .assert_eq(&config_map.data["data"].to_string());
    assert!(world.has_secret("pod-shop.web").await?);

    // A change flows through.
    let namespaces = world.objects("v1", "Pod", "shop").await?;
    let patch = json!({"metadata": {"annotations": {"config.configurator.dev/level": null}}});
    namespaces
        .patch("web", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    world
        .until("the changed ConfigMap", || async {
            Ok(config_maps.get("web-config").await?.data["data"]["level"] == "low")
        })
        .await?;

    // What is gone leaves nothing behind.
    namespaces.delete("web", &DeleteParams::default()).await?;
    world
        .until("nothing left", || async {
            Ok(world.keys().await?.is_empty())
        })
        .await?;
    world
        .until("no secret", || async {
            Ok(!world.has_secret("pod-shop.web").await?)
        })
        .await?;
    world
        .until("no ConfigMap", || async {
            Ok(config_maps.get_opt("web-config").await?.is_none())
        })
        .await?;
    world.stop().await
}
