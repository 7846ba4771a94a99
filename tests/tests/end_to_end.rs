//! Whole runs: modules, host, embedded API and stores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeSet;

use anyhow::Result;
use configurator_tests::configurator::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, Servers, World};
use expect_test::expect;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::{Value, json};

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

/// More than fit two pages of a listing.
const MANY: usize = 1_200;

/// Each of many objects, in a namespace of their own, is listed and has its run.
async fn many_are_listed(servers: Servers, namespace: &str) -> Result<()> {
    let world = World::start_on(servers, |builder| builder).await?;
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
        .await?;
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), namespace);
    futures::stream::iter(0..MANY)
        .map(|number| {
            let metadata = json!({"name": format!("map-{number}"), "labels": {"app": namespace}});
            let object: ConfigMap =
                serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            let api = api.clone();
            async move { api.create(&PostParams::default(), &object).await.map(drop) }
        })
        .buffer_unordered(32)
        .try_collect::<()>()
        .await?;
    world
        .apply(&configurator(
            namespace,
            "nothing.wasm",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "namespaces": [namespace],
                "labelSelector": {"matchLabels": {"app": namespace}},
            }),
        ))
        .await?;
    world.settled(&[namespace]).await?;
    let runs = world.metric("configurator_runs_total");
    let own: Vec<&str> = runs
        .lines()
        .filter(|line| line.contains(namespace))
        .collect();
    assert!(
        own.len() == 1 && own[0].ends_with(&format!(" {MANY}")),
        "{runs}"
    );
    world
        .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
        .await?
        .delete(namespace, &DeleteParams::default())
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_is_streamed() -> Result<()> {
    let about = ControlPlane::shared().await?;
    many_are_listed(about.servers().await?, "streamed").await?;
    let record = std::fs::read_to_string(&about.kubernetes.audit)?;
    let asked: BTreeSet<String> = record
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| {
            let of = |field: &str| event["objectRef"][field].as_str();
            of("namespace") == Some("streamed") && of("resource") == Some("configmaps")
        })
        .filter_map(|event| {
            let streams = event["requestURI"]
                .as_str()?
                .contains("sendInitialEvents=true");
            let verb = event["verb"]
                .as_str()
                .filter(|verb| matches!(*verb, "list" | "watch"))?;
            Some(format!("{verb}, initial events: {streams}"))
        })
        .collect();
    assert_eq!(
        asked,
        BTreeSet::from(["watch, initial events: true".to_owned()])
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_api_streams_as_well() -> Result<()> {
    many_are_listed(Place::default().open().await?, "streamed").await
}

/// A server from before lists could be streamed, or where that is switched off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_server_does_not_stream_it_is_asked_for_pages() -> Result<()> {
    let servers = Place::default().open().await?;
    let embedded = servers.cluster.client.clone();
    let front = tower::service_fn(move |request: Request<Body>| {
        let embedded = embedded.clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            if !query.contains("sendInitialEvents")
                || !request.uri().path().ends_with("/configmaps")
            {
                return embedded.send(request).await;
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
                "message": "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            });
            let answer = Response::builder().status(422);
            Ok(answer
                .body(Body::from(status.to_string().into_bytes()))
                .unwrap())
        }
    });
    let client = Client::new(front, "default");
    let servers = Servers {
        cluster: client.into(),
        ..servers
    };
    many_are_listed(servers, "paged").await
}
