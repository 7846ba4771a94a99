//! Rights that the cluster refuses are named before an object fails for them, and missed until they are granted.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use configurator_host::resource::{ClusterConfigurator, FailureStatus};
use configurator_tests::configurator::{configurator, scripted};
use configurator_tests::world::{PATIENCE, Place, Servers, World};
use expect_test::expect;
use http::{Request, Response};
use http_body_util::{Either, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service as _;

use crate::cluster::{Cluster, Hurried, condition, until, until_condition};

/// What a host needs for itself, and to watch these kinds of the core group.
fn own(watched: &str) -> Value {
    json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": ["configurator.dev"], "resources": ["clusterconfigurators", "configurators"], "verbs": ["list", "watch"]},
        {"apiGroups": ["configurator.dev"], "resources": ["clusterconfigurators/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": [watched], "verbs": ["list", "watch"]},
    ])
}

fn greeter(kubernetes: Value) -> Value {
    let watch = json!({"apiVersion": "v1", "kind": "Namespace", "fieldSelector": "metadata.name=rights-shop"});
    let mut greeter = configurator("greeter", "rust_hello.wasm", watch);
    greeter["spec"]["capabilities"] = json!({"kubernetes": kubernetes});
    greeter
}

fn greeting_rule() -> Value {
    json!({"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["rights-shop"], "names": ["hello"], "verbs": ["apply"]})
}

/// The objects that were given up.
async fn failures(client: &Client, configurator: &str) -> Result<Vec<FailureStatus>> {
    let api: Api<ClusterConfigurator> = Api::all(client.clone());
    let status = api.get(configurator).await?.status;
    Ok(status.unwrap_or_default().failures)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_rights_are_named_and_once_they_are_granted_what_was_given_up_is_tried_again()
-> Result<()> {
    let cluster = Cluster::new().await?;
    let token = cluster.account("greeter").await?;
    cluster
        .grant("greeter", "greeter", own("namespaces"))
        .await?;
    let servers = cluster.servers(cluster.client_of(&token).await?).await?;
    let world = World::start_on(servers, |builder| builder.clock(Hurried)).await?;
    cluster.namespace("rights-shop").await?;
    cluster
        .apply(&greeter(json!([
            greeting_rule(),
            {"apiGroups": [""], "resources": ["pods"], "subresources": ["eviction"], "namespaces": ["rights-shop"], "verbs": ["create"]},
            {"apiGroups": ["apps"], "resources": ["*"], "namespaces": ["*"], "verbs": ["get", "list", "delete", "patch", "replace"]},
            {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "subresources": ["sta*"], "namespaces": ["*"], "verbs": ["get", "patch"]},
        ])))
        .await?;
    let told = cluster
        .until_condition("greeter", "Permitted", "False Refused")
        .await?;
    expect!["False Refused: the cluster refuses 12 of the 17 rights that are needed: delete *.apps, get *.apps, list *.apps, patch *.apps, update *.apps, get cronjobs.batch/*, patch cronjobs.batch/*, get jobs.batch/*, patch jobs.batch/*, create configmaps hello in rights-shop, 2 more; `configurator rbac -f FILE` prints the roles that grant them"].assert_eq(&told);
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
    cluster
        .until("an Event about it", async || {
            let events = events.list(&ListParams::default()).await?;
            let mut reasons = events.iter().map(|event| event.reason.as_deref());
            Ok(reasons.any(|reason| reason == Some("RightsRefused")))
        })
        .await?;
    let ready = cluster
        .until_condition("greeter", "Ready", "True Running")
        .await?;
    expect!["True Running: runs start when objects change"].assert_eq(&ready);
    cluster
        .until("the Namespace is given up", async || {
            Ok(!failures(&cluster.client, "greeter").await?.is_empty())
        })
        .await?;
    let failed = failures(&cluster.client, "greeter").await?.remove(0);
    expect![[r#"ResourcePermission: apply configmaps rights-shop/hello: configmaps "hello" is forbidden: User "system:serviceaccount:default:greeter" cannot patch resource "configmaps" in API group "" in the namespace "rights-shop" (Forbidden)"#]].assert_eq(&format!("{}: {}", failed.kind, failed.message));

    // With a part of them the object can be handled, and the rest is still missed.
    let maps =
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}]);
    cluster.grant("greeter", "greeter-maps", maps).await?;
    let greetings: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "rights-shop");
    cluster
        .until("the greeting", async || {
            Ok(greetings.get_opt("hello").await?.is_some())
        })
        .await?;
    cluster
        .until("nothing is given up any more", async || {
            Ok(failures(&cluster.client, "greeter").await?.is_empty())
        })
        .await?;
    let told = cluster.condition("greeter", "Permitted").await?;
    assert!(told.starts_with("False Refused"), "{told}");

    let rest = json!([
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["batch"], "resources": ["*"], "verbs": ["*"]},
    ]);
    cluster.grant("greeter", "greeter-rest", rest).await?;
    let told = cluster
        .until_condition("greeter", "Permitted", "True")
        .await?;
    expect!["True AllAllowed: the cluster allows the 17 rights that are needed"].assert_eq(&told);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_refused_begins_when_it_may_and_a_status_is_asked_for_once_it_was_refused()
-> Result<()> {
    let cluster = Cluster::new().await?;
    let token = cluster.account("teller").await?;
    cluster.grant("teller", "teller", own("configmaps")).await?;
    let servers = cluster.servers(cluster.client_of(&token).await?).await?;
    let world = World::start_on(servers, |builder| builder.clock(Hurried)).await?;
    cluster.namespace("rights-tales").await?;
    cluster
        .apply(&scripted(
            "teller",
            json!({"apiVersion": "v1", "kind": "Pod", "namespaces": ["rights-tales"], "fields": [".metadata.labels"]}),
            json!({"status": {"message": "seen"}}),
            json!({}),
        ))
        .await?;
    let told = cluster
        .until_condition("teller", "Ready", "False WatchFailed")
        .await?;
    expect![[r#"False WatchFailed: pods is forbidden: User "system:serviceaccount:default:teller" cannot watch resource "pods" in API group "" in the namespace "rights-tales""#]].assert_eq(&told);
    let told = cluster
        .until_condition("teller", "Permitted", "False")
        .await?;
    expect!["False Refused: the cluster refuses 2 of the 5 rights that are needed: list pods in rights-tales, watch pods in rights-tales; `configurator rbac -f FILE` prints the roles that grant them"].assert_eq(&told);
    cluster.grant("teller", "teller", own("pods")).await?;
    cluster
        .until_condition("teller", "Ready", "True Running")
        .await?;
    let told = cluster
        .until_condition("teller", "Permitted", "True")
        .await?;
    expect!["True AllAllowed: the cluster allows the 5 rights that are needed"].assert_eq(&told);
    cluster
        .apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "rights-tales"},
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        }))
        .await?;
    let told = cluster
        .until_condition("teller", "Permitted", "False")
        .await?;
    expect!["False Refused: the cluster refuses 1 of the 6 rights that are needed: patch pods/status in rights-tales; `configurator rbac -f FILE` prints the roles that grant them"].assert_eq(&told);
    let right = json!([{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}]);
    cluster.grant("teller", "teller-status", right).await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "rights-tales");
    cluster
        .until("the status", async || {
            let status = pods.get("a").await?.status.unwrap_or_default();
            Ok(status.message.as_deref() == Some("seen"))
        })
        .await?;
    cluster
        .until_condition("teller", "Permitted", "True")
        .await?;
    world.stop().await
}

/// The embedded API, which does not know reviews of rights as long as `knows` is false.
async fn forgetful(knows: tokio::sync::watch::Receiver<bool>) -> Result<Servers> {
    let servers = Place::default().open().await?;
    let server = servers.server.clone().unwrap();
    let front = tower::service_fn(move |request: Request<Body>| {
        let mut server = server.clone();
        let is_hidden = !*knows.borrow() && request.uri().path().contains("accessreviews");
        async move {
            if !is_hidden {
                let answer = server.call(request).await?;
                return Ok::<_, Infallible>(answer.map(Either::Left));
            }
            let body = Full::new(Bytes::from("404 page not found"));
            let answer = Response::builder().status(404);
            Ok(answer.body(Either::Right(body)).unwrap())
        }
    });
    Ok(Servers {
        cluster: Client::new(front, "default").into(),
        ..servers
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_cannot_be_asked_stops_nothing() -> Result<()> {
    let (know, knows) = tokio::sync::watch::channel(false);
    let servers = forgetful(knows).await?;
    let world = World::start_on(servers, |builder| builder.clock(Hurried)).await?;
    world
        .apply(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rights-shop"}}),
        )
        .await?;
    world.apply(&greeter(json!([greeting_rule()]))).await?;
    let told = until_condition(&world.client, "greeter", "Permitted", "Unknown CannotAsk").await?;
    expect!["Unknown CannotAsk: the cluster cannot be asked what it allows; it is asked again: 404 page not found"].assert_eq(&told);
    let maps = world.objects("v1", "ConfigMap", "rights-shop").await?;
    world
        .until("the greeting", || async {
            Ok(maps.get_opt("hello").await?.is_some())
        })
        .await?;
    know.send_replace(true);
    let told = until_condition(&world.client, "greeter", "Permitted", "True").await?;
    expect!["True AllAllowed: the cluster allows the 7 rights that are needed"].assert_eq(&told);
    // Of very many rights not all are asked for.
    let resources: Vec<String> = (0..300).map(|number| format!("r{number}")).collect();
    let rule = json!({"apiGroups": ["example.com"], "resources": resources, "namespaces": ["*"], "verbs": ["get"]});
    world
        .apply(&greeter(json!([greeting_rule(), rule])))
        .await?;
    let mut told = String::new();
    until("the many rights", PATIENCE, async || {
        told = condition(&world.client, "greeter", "Permitted").await?;
        Ok(told.contains("256"))
    })
    .await?;
    expect!["True AllAllowed: the cluster allows the 256 rights that it was asked for; 51 more are needed"].assert_eq(&told);
    world.stop().await
}
