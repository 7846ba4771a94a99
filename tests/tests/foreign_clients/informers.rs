//! Shared informers of client-go: they list, watch, and go on after the server was away.

use expect_test::expect;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::{Cluster, config_map, merge, widget};
use crate::program::Program;

/// What an informer has handed out, a line for each; not what it hands out once more.
fn transcript(program: &Program, informer: &str) -> String {
    let said = program.said();
    let of = |verb: &'static str| move |said: &Value| said[verb] == informer;
    let mut lines = Vec::new();
    for said in &said {
        let text = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
        if of("synced")(said) {
            lines.push(format!("synced: {}", said["objects"]));
        } else if of("added")(said) {
            let when = if said["initial"] == true {
                ", at first"
            } else {
                ""
            };
            lines.push(format!("added {}: {}{when}", text("name"), text("value")));
        } else if of("updated")(said) {
            let (before, after) = (text("before"), text("value"));
            lines.push(format!("updated {}: {before} -> {after}", text("name")));
        } else if of("deleted")(said) && said["missed"] == true {
            let name = text("name");
            let name = name.split('/').next_back().unwrap_or_default();
            lines.push(format!("deleted {name}: unknown"));
        } else if of("deleted")(said) {
            lines.push(format!("deleted {}: {}", text("name"), text("value")));
        }
    }
    // A listing has no order, and an informer says that it is in sync while it hands out what it has listed.
    let first = lines
        .iter()
        .filter(|line| line.ends_with("at first") || line.starts_with("synced"));
    let first = first.count();
    lines[..first].sort();
    lines.join("\n")
}

/// Waits until an informer has handed out this many changes.
#[track_caller]
fn changes(program: &Program, informer: &str, count: usize) {
    program.until(count, informer, |said| {
        ["added", "updated", "deleted"]
            .iter()
            .any(|verb| said[verb] == informer)
    });
}

async fn check(mut cluster: Cluster) {
    let maps = cluster.config_maps().await;
    let all = cluster.widgets().await;
    cluster
        .create(config_map("first", json!({"watched": "yes"}), "1"))
        .await;
    cluster.create(config_map("plain", json!({}), "1")).await;
    cluster.create(widget("sky", "blue")).await;
    cluster.create(widget("rose", "red")).await;

    let mut program = Program::start(&cluster, "informer", &["-resync", "1s"]);
    program.until(3, "synced", |said| !said["synced"].is_null());
    changes(&program, "configmaps", 1);
    changes(&program, "widgets", 2);
    changes(&program, "red", 1);

    // What a selector lets in and out is an addition and a deletion to whoever watches by it.
    cluster
        .create(config_map("second", json!({"watched": "yes"}), "1"))
        .await;
    changes(&program, "configmaps", 2);
    merge(&maps, "first", json!({"data": {"value": "2"}})).await;
    changes(&program, "configmaps", 3);
    merge(
        &maps,
        "plain",
        json!({"metadata": {"labels": {"watched": "now"}}}),
    )
    .await;
    changes(&program, "configmaps", 4);
    merge(
        &maps,
        "second",
        json!({"metadata": {"labels": {"watched": null}}}),
    )
    .await;
    changes(&program, "configmaps", 5);
    cluster.delete(&maps, "first").await;
    changes(&program, "configmaps", 6);
    merge(&all, "sky", json!({"spec": {"color": "red"}})).await;
    changes(&program, "widgets", 3);
    changes(&program, "red", 2);
    merge(&all, "rose", json!({"spec": {"color": "green"}})).await;
    changes(&program, "widgets", 4);
    changes(&program, "red", 3);

    // Listers answer from what informers keep.
    let answer = program.ask("configmaps watched=now", |said| {
        said["listed"] == "configmaps"
    });
    assert_eq!(answer["values"], json!({"plain": "1"}));
    let answer = program.ask("widgets red", |said| said["listed"] == "widgets");
    assert_eq!(answer["names"], json!(["sky"]));
    for name in ["plain", "sky", "rose"] {
        program.until(2, "a resync", |said| {
            !said["again"].is_null() && said["name"] == name
        });
    }

    cluster.restart().await;
    let maps = cluster.config_maps().await;
    let all = cluster.widgets().await;
    cluster
        .create(config_map("third", json!({"watched": "yes"}), "1"))
        .await;
    changes(&program, "configmaps", 7);
    cluster.delete(&maps, "plain").await;
    changes(&program, "configmaps", 8);
    // Who has seen this is connected again.
    cluster.create(widget("dusk", "red")).await;
    changes(&program, "widgets", 5);
    changes(&program, "red", 4);
    cluster.delete(&all, "sky").await;
    changes(&program, "widgets", 6);
    changes(&program, "red", 5);
    let answer = program.ask("configmaps watched", |said| said["listed"] == "configmaps");
    assert_eq!(answer["names"], json!(["third"]));

    expect![[r#"
        added first: 1, at first
        synced: 1
        added second: 1
        updated first: 1 -> 2
        added plain: 1
        deleted second: 1
        deleted first: 2
        added third: 1
        deleted plain: 1"#]]
    .assert_eq(&transcript(&program, "configmaps"));
    expect![[r#"
        added rose: red, at first
        added sky: blue, at first
        synced: 2
        updated sky: blue -> red
        updated rose: red -> green
        added dusk: red
        deleted sky: red"#]]
    .assert_eq(&transcript(&program, "widgets"));
    expect![[r#"
        added rose: red, at first
        synced: 1
        added sky: red
        deleted rose: red
        added dusk: red
        deleted sky: red"#]]
    .assert_eq(&transcript(&program, "red"));
    is_calm(program);
}

/// Ends a program, of which nobody but a server that was away has given reason to complain.
#[track_caller]
fn is_calm(program: Program) {
    let ended = program.end();
    let broken = ended.said.iter().filter(|said| !said["broken"].is_null());
    let broken = broken.map(|said| said["error"].as_str().unwrap().to_owned());
    for complaint in broken.chain(ended.complaints()) {
        let is_away = [
            "connection refused",
            "EOF",
            "connection reset",
            "too old resource version",
        ];
        assert!(
            is_away.iter().any(|part| complaint.contains(part)),
            "{complaint}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_follow_the_embedded_api() {
    check(Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_follow_a_real_control_plane_alike() {
    check(Cluster::own().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_find_what_changed_while_nobody_was_connected() {
    let mut cluster = Cluster::embedded().await;
    for name in ["kept", "changed", "gone"] {
        cluster
            .create(config_map(name, json!({"watched": "yes"}), "1"))
            .await;
    }
    let program = Program::start(&cluster, "informer", &[]);
    program.until(3, "synced", |said| !said["synced"].is_null());
    changes(&program, "configmaps", 3);
    cluster
        .restart_after(async |client| {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            let change = Patch::Merge(json!({"data": {"value": "2"}}));
            maps.patch("changed", &PatchParams::default(), &change)
                .await
                .unwrap();
            maps.delete("gone", &DeleteParams::default()).await.unwrap();
            let new = config_map("new", json!({"watched": "yes"}), "1");
            let new = serde_json::from_value(new).unwrap();
            maps.create(&PostParams::default(), &new).await.unwrap();
        })
        .await;
    changes(&program, "configmaps", 6);
    let said = transcript(&program, "configmaps");
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    expect![[r#"
        added changed: 1, at first
        added gone: 1, at first
        added kept: 1, at first
        added new: 1
        deleted gone: unknown
        synced: 3
        updated changed: 1 -> 2"#]]
    .assert_eq(&lines.join("\n"));
    is_calm(program);
}
