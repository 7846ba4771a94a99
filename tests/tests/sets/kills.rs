//! Hosts are killed (`kill -9`) before and after every write of a set, in creation, update, prune and deletion: all ends as if one had lived on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use configurator_host::resource::object_set::ObjectSet;
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::crash_points::ApiRequest;
use configurator_tests::crashing_host::CrashingHost;
use configurator_tests::world::Place;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::scene::{after, entry};

const NAMESPACE: &str = "kills";
const ENTRIES: usize = 40;
/// The entries that are left after the prune.
const KEPT: usize = 10;
/// Each entry depends on the one that is so many before it.
const CHAINS: usize = 8;
/// The fewest kills on each API.
const KILLS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_survives_every_kill_embedded() -> Result<()> {
    let servers = Place::default().open().await?;
    a_set_survives_every_kill(servers.cluster.client).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_survives_every_kill_real() -> Result<()> {
    // Hosts run every Configurator of this API.
    let plane = ControlPlane::start(&Default::default()).await?;
    a_set_survives_every_kill(plane.about().client().await?).await
}

async fn a_set_survives_every_kill(client: Client) -> Result<()> {
    let stage = Arc::new(AtomicUsize::new(0));
    let current = stage.clone();
    let hosts = CrashingHost::new(client.clone(), move |request| {
        point(request, current.load(Ordering::Relaxed))
    })
    .await?;
    hosts
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
        .await?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "foreign", "namespace": NAMESPACE}, "data": {"text": "1"},
    });
    hosts.apply(&foreign).await?;
    hosts.apply(&declaration()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let before = maps.get("foreign").await?.resource_version();

    hosts.apply(&owner("1", ENTRIES)).await?;
    hosts
        .until(async || is_ready(&client, "1", ENTRIES).await)
        .await?;
    let created = uids(&maps).await?;
    stage.store(1, Ordering::Relaxed);
    hosts.apply(&owner("2", ENTRIES)).await?;
    hosts
        .until(async || is_ready(&client, "2", ENTRIES).await)
        .await?;
    assert_eq!(uids(&maps).await?, created, "no member was created again");
    stage.store(2, Ordering::Relaxed);
    hosts.apply(&owner("2", KEPT)).await?;
    hosts
        .until(async || is_ready(&client, "2", KEPT).await)
        .await?;
    stage.store(3, Ordering::Relaxed);
    maps.delete("shop", &DeleteParams::default()).await?;
    let kills = hosts
        .until(async || Ok(maps.get_opt("shop").await?.is_none()))
        .await?;

    let sets: Api<ObjectSet> = Api::namespaced(client.clone(), NAMESPACE);
    assert!(sets.list(&ListParams::default()).await?.items.is_empty());
    assert_eq!(members(&maps).await?, Vec::<ConfigMap>::new());
    assert_eq!(maps.get("foreign").await?.resource_version(), before);
    let path = |name: &str| format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}");
    let mut effects = hosts.points.effects();
    effects.retain(|effect, _| effect.contains("/configmaps/"));
    let once = (0..ENTRIES).flat_map(|index| {
        let path = path(&name_of(index));
        [
            (format!("created {path}"), 1),
            (format!("deleted {path}"), 1),
        ]
    });
    assert_eq!(effects, once.collect::<BTreeMap<String, usize>>());
    println!("{kills} kills");
    assert!(kills >= KILLS, "{kills} kills");
    Ok(())
}

/// Names the writes of the set, and those of its owner.
fn point(request: &ApiRequest<'_>, stage: usize) -> Option<String> {
    let ApiRequest { method, path, .. } = request;
    let is_own = path.contains(&format!("/namespaces/{NAMESPACE}/"));
    let is_event = path.contains("/events");
    let is_write = *method != Method::GET;
    (is_own && is_write && !is_event).then(|| format!("{stage} {method} {path}"))
}

fn declaration() -> Value {
    let watch = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "namespaces": [NAMESPACE],
        "labelSelector": {"matchLabels": {"has": "set"}},
    });
    let verbs = ["get", "apply", "delete", "watch"];
    let capabilities = json!({"kubernetes": [{
        "apiGroups": [""], "resources": ["configmaps"], "namespaces": [NAMESPACE], "verbs": verbs,
    }]});
    let script = json!({"desiredAt": "/data/set"});
    let mut object = configurator::scripted("kills", watch, script, capabilities);
    object["spec"]["sets"] = json!({"maxPrunePercent": 100});
    // With several places, some writes would be over before their host is killed.
    object["spec"]["concurrency"] = json!(1);
    object
}

fn name_of(index: usize) -> String {
    format!("part-{index}")
}

fn owner(text: &str, entries: usize) -> Value {
    let entries = (0..entries).map(|index| match index.checked_sub(CHAINS) {
        None => entry(&name_of(index), text),
        Some(before) => after(&name_of(index), text, &[&name_of(before)]),
    });
    let set = json!({"entries": entries.collect::<Vec<Value>>()});
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "shop", "namespace": NAMESPACE, "labels": {"has": "set"}},
        "data": {"set": set.to_string()},
    })
}

async fn members(maps: &Api<ConfigMap>) -> Result<Vec<ConfigMap>> {
    let its = ListParams::default().labels("applyset.kubernetes.io/part-of");
    Ok(maps.list(&its).await?.items)
}

async fn uids(maps: &Api<ConfigMap>) -> Result<BTreeMap<String, Option<String>>> {
    let members = members(maps).await?.into_iter();
    Ok(members
        .map(|member| (member.name_any(), member.uid()))
        .collect())
}

/// Whether the set has these members with this text, and says that they are ready.
async fn is_ready(client: &Client, text: &str, entries: usize) -> Result<bool> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let members = members(&maps).await?;
    let has_text = |member: &ConfigMap| {
        let data = member.data.as_ref();
        data.and_then(|data| data.get("text")).map(String::as_str) == Some(text)
    };
    if members.len() != entries || !members.iter().all(has_text) {
        return Ok(false);
    }
    let sets: Api<ObjectSet> = Api::namespaced(client.clone(), NAMESPACE);
    let sets = sets.list(&ListParams::default()).await?;
    let statuses = sets.items.iter().filter_map(|set| set.status.as_ref());
    let mut states = statuses.map(|status| (status.state.as_str(), status.ready));
    Ok(states.next() == Some(("Ready", u32::try_from(entries)?)))
}
