//! An operator on kopf, with the official client for Python.

use std::process::Command;

use configurator_tests::guests;
use expect_test::expect;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::cluster::{Cluster, merge, widget};
use crate::program::Program;

fn start(cluster: &Cluster) -> Program {
    let packages = guests::cache().unwrap().join("kopf");
    assert!(
        packages.is_dir(),
        "kopf is not installed: run the tests by `cargo xtask test`"
    );
    let handlers = guests::workspace().join("tests/servers/kopf/handlers.py");
    let mut command = Command::new("python3");
    command
        .args(["-m", "kopf", "run", "--standalone", "--log-format=json"])
        .args(["--namespace", &cluster.namespace])
        .arg(handlers)
        .env("PYTHONPATH", packages)
        // Nothing is written beside the sources.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("KUBECONFIG", &cluster.kubeconfig);
    Program::of(command)
}

async fn check(cluster: Cluster) {
    let widgets = cluster.widgets().await;
    let maps = cluster.config_maps().await;
    cluster.create(widget("first", "red")).await;
    let operator = start(&cluster);
    let has = |what: Value| {
        operator.until(1, &what.to_string(), |said| {
            what.as_object()
                .unwrap()
                .iter()
                .all(|(key, value)| said[key] == *value)
        });
    };
    has(json!({"did": "create", "widget": "first", "color": "red"}));
    has(json!({"did": "see", "type": "ADDED", "config_map": "first", "color": "red"}));
    let mut second = widget("second", "red");
    second["spec"]["size"] = json!(7);
    cluster.create(second).await;
    has(json!({"did": "begin", "widget": "second"}));
    has(json!({"did": "create", "widget": "second"}));
    merge(
        &widgets,
        "first",
        json!({"metadata": {"labels": {"kind": "warm"}}}),
    )
    .await;
    has(json!({"did": "label", "widget": "first"}));
    merge(&widgets, "first", json!({"spec": {"color": "blue"}})).await;
    has(json!({"did": "update", "widget": "first", "old": "red", "new": "blue"}));
    has(json!({"did": "see", "type": "MODIFIED", "config_map": "first", "color": "blue"}));

    // kopf holds what it handles by a finalizer, and its daemons until they have ended.
    cluster.delete(&widgets, "second").await;
    has(json!({"did": "end", "widget": "second"}));
    has(json!({"did": "delete", "widget": "second", "alike": ["second"]}));
    cluster
        .until(&maps, "second", |found| found.is_none())
        .await;
    has(json!({"did": "see", "type": "DELETED", "config_map": "second"}));

    // It keeps in the object what it has seen of it last.
    let is_idle = |found: Option<&kube::api::DynamicObject>| {
        found.is_some_and(|found| {
            let progress = found.data["status"]["kopf"]["progress"].as_object();
            let seen = found
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(SEEN));
            progress.is_none_or(|progress| progress.is_empty())
                && seen.is_some_and(|seen| seen.contains("blue"))
        })
    };
    let first = cluster.until(&widgets, "first", is_idle).await.unwrap();
    expect![[r#"finalizers ["clients.configurator.dev/kopf"], annotations {"kopf.zalando.org/last-handled-configuration":"{\"spec\":{\"color\":\"blue\",\"size\":3},\"metadata\":{\"labels\":{\"kind\":\"warm\"}}}\n"}, spec {"color":"blue","size":3}, status {"create":{"made":"first"}}"#]].assert_eq(&format!(
        "finalizers {:?}, annotations {}, spec {}, status {}",
        first.metadata.finalizers.unwrap_or_default(),
        json!(first.metadata.annotations),
        first.data["spec"],
        first.data["status"]
    ));
    let mut events: Vec<String> = cluster
        .list("v1", "Event")
        .await
        .iter()
        .map(|event| {
            let about = &event["involvedObject"];
            format!(
                "{} {} {} {}: {}",
                about["kind"], about["name"], event["type"], event["reason"], event["message"]
            )
        })
        .collect();
    events.sort();
    events.dedup();
    expect![[r#"
        "Widget" "first" "Normal" "Made": "ConfigMap first is made"
        "Widget" "second" "Normal" "Made": "ConfigMap second is made""#]]
    .assert_eq(&events.join("\n"));

    let ended = operator.terminate();
    assert_eq!(
        ended.complaints(),
        ["Handler 'create' failed temporarily: not yet"; 2]
    );
    assert_eq!(ended.said.last().unwrap(), &json!({"did": "stop"}));
    // Nobody is left to let it go.
    merge(&widgets, "first", json!({"metadata": {"finalizers": null}})).await;
    widgets
        .delete("first", &DeleteParams::default())
        .await
        .unwrap();
    cluster.until(&maps, "first", |found| found.is_none()).await;
}

const SEEN: &str = "kopf.zalando.org/last-handled-configuration";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kopf_works_on_the_embedded_api() {
    check(Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kopf_works_on_a_real_control_plane_alike() {
    check(Cluster::shared().await).await;
}
