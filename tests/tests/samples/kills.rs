//! Hosts are killed (`kill -9`) wherever they store a state or send a request, in both samples: all ends as if they had lived on.

use std::sync::Mutex;

use anyhow::Result;
use configurator_core::document::Document;
use configurator_host::sinks::secretstore::SecretStore as _;
use configurator_tests::cloud::{self, Cloud, Manners};
use configurator_tests::crash_points::{ApiRequest, Moment};
use configurator_tests::crashing_host::CrashingHost;
use configurator_tests::machine::text;
use configurator_tests::world::{Place, manifest};
use expect_test::expect;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::clusters::{self, Clusters};
use super::migration;

async fn hosts() -> Result<CrashingHost> {
    let servers = Place::default().open().await?;
    CrashingHost::new(servers.cluster.client, point).await
}

/// Names what a request is about, the same when it is made again. Requests about other things than the objects' own have no point.
fn point(request: &ApiRequest<'_>) -> Option<String> {
    const OWN: [&str; 6] = [
        "/namespaces/default/movetovpcs/",
        "/namespaces/default/sharedstorageclusters/",
        "/namespaces/default/pods",
        "/namespaces/default/persistentvolumeclaims/",
        "/namespaces/default/services/",
        "/namespaces/default/configmaps/",
    ];
    let ApiRequest { method, path, body } = request;
    if !OWN.iter().any(|own| path.contains(own)) {
        return None;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    Some(match body["status"].get("memento") {
        Some(_) => {
            let (phase, nodes) = (&body["status"], outline(&body["status"]["state"]));
            let phase = phase.get("phase").or(phase.get("clusterStatus"));
            format!("{path} {phase:?} {nodes}")
        }
        None => format!("{method} {path} {body}"),
    })
}

/// The results of nodes, without when and how often they ran.
fn outline(nodes: &Value) -> String {
    let nodes = nodes.as_object().into_iter().flatten();
    let outlined = nodes.map(|(name, node)| {
        let said = ["done", "failed", "fatal"].map(|field| node.get(field));
        let below = node.get("state").map(outline).unwrap_or_default();
        format!("{name} {said:?} ({below})")
    });
    outlined.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_survives_every_kill() -> Result<()> {
    let hosts = hosts().await?;
    let points = hosts.points.clone();
    let cloud = Cloud::start_behind(3, Manners::default(), move |point, is_before| {
        let moment = match is_before {
            true => Moment::Before,
            false => Moment::After,
        };
        points.pass(point, moment).is_ok()
    })
    .await?;
    let settings = format!("http_inner_hosts = [{:?}]\n", cloud.host);
    hosts.write_settings(&settings)?;
    let secret = Document::of(&json!(cloud::SECRET_KEY))?;
    hosts.secrets().await?.create("cloud-key", secret).await?;

    hosts.apply(&migration::definition()?).await?;
    let mut configurator = manifest("move-to-vpc", "configurator.yaml")?;
    migration::adapt(&mut configurator, &cloud.url, &cloud.host);
    hosts.apply(&configurator).await?;
    hosts.apply(&migration::wanted(json!({}))).await?;
    let moves = migration::moves(&hosts.client).await?;
    // A person who sees that nobody knows what became of an order looks, and has the move go on.
    let orders: Mutex<Vec<String>> = Mutex::default();
    let kills = hosts
        .until(async || {
            let object = moves.get("web").await?;
            let last = orders.lock().unwrap().last().cloned();
            let is_asked = match last {
                Some(last) => moves.answer(&last).await?.is_none(),
                None => false,
            };
            if text(&object, "/status/phase") == "InFlightFailed" && !is_asked {
                let error = object.pointer("/status/state/InFlight/state/bindEIPs/error");
                let error = error.and_then(Value::as_str).unwrap_or_default();
                assert!(error.starts_with("nobody knows"), "{object:#}");
                let order = moves.order("web", "Resume", json!({})).await?;
                orders.lock().unwrap().push(order);
            }
            Ok(text(&object, "/status/phase") == "Succeeded")
        })
        .await?;
    let mut effects = cloud.effects();
    effects.sort();
    expect![[r#"
        attach 10.0.2.11 to ins-1
        attach 10.0.2.12 to ins-2
        attach 10.0.2.13 to ins-3
        bind eip-1
        bind eip-2
        bind eip-3
        detach eni-1-second from ins-1
        detach eni-2-second from ins-2
        detach eni-3-second from ins-3
        make interface 10.0.2.11 in vpc-new
        make interface 10.0.2.12 in vpc-new
        make interface 10.0.2.13 in vpc-new
        migrate ins-1 to vpc-new
        migrate ins-2 to vpc-new
        migrate ins-3 to vpc-new
        unbind eip-1
        unbind eip-2
        unbind eip-3"#]]
    .assert_eq(&effects.join("\n"));
    let unknown = orders.into_inner().unwrap().len();
    println!("{kills} kills, {unknown} of them left a step unknown");
    assert!(
        kills >= 200 && unknown >= 1,
        "{kills} kills, {unknown} unknown"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_survives_every_kill() -> Result<()> {
    let hosts = hosts().await?;
    clusters::declare(&hosts.client).await?;
    let clusters = Clusters::of(&hosts.client).await?;
    let large = json!({"className": "large"});
    let wishes = [
        json!({}),
        json!({"classInfo": large}),
        json!({"classInfo": large, "version": "1.1.0"}),
        json!({
            "classInfo": large, "version": "1.1.0", "roReplicas": 1,
            "storage": {"size": "20Gi"},
        }),
        json!({"version": "1.2.0", "roReplicas": 3, "storage": {"size": "20Gi"}}),
    ];
    for wish in wishes {
        let wanted = clusters::wanted(wish);
        hosts.apply(&wanted).await?;
        hosts
            .until(async || {
                let cluster = clusters.machine.get("db").await?;
                let is_so = |field: &str| cluster["status"].get(field) == wanted["spec"].get(field);
                let fields = ["classInfo", "version", "roReplicas", "storage"];
                let phase = text(&cluster, "/status/clusterStatus");
                assert_ne!(phase, "Interrupt", "{cluster:#}");
                Ok(phase == "Running" && fields.iter().all(|field| is_so(field)))
            })
            .await?;
    }
    expect![[r#"
        ConfigMap db-manager
        ConfigMap db-meta
        ConfigMap db-topology db-ro-0,db-ro-1,db-ro-2
        PersistentVolumeClaim db-data 20Gi
        Pod db-manager registry.example.org/cluster-manager:1
        Pod db-ro-0 registry.example.org/shared-db:1.2.0 500m
        Pod db-ro-1 registry.example.org/shared-db:1.2.0 500m
        Pod db-ro-2 registry.example.org/shared-db:1.2.0 500m
        Pod db-rw registry.example.org/shared-db:1.2.0 500m
        Service db-ro
        Service db-rw"#]]
    .assert_eq(&clusters.things().await?);
    // No Pod was made more often than its class or version has changed.
    expect![[r#"
        db-manager: 1
        db-ro-0: 5
        db-ro-1: 4
        db-ro-2: 1
        db-rw: 5"#]]
    .assert_eq(&clusters.infrastructure.made());
    let delete = DeleteParams::background();
    clusters.machine.api.delete("db", &delete).await?;
    let kills = hosts
        .until(async || Ok(clusters.machine.api.get_opt("db").await?.is_none()))
        .await?;
    let password = hosts.secrets().await?.get("db-default.db").await?;
    assert!(password.is_none());
    println!("{kills} kills");
    assert!(kills >= 200, "{kills} kills");
    Ok(())
}
