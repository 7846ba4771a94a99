//! Watches, line by line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use configurator_apiserver::ApiServer;
use configurator_store::Store;
use expect_test::{Expect, expect};
use serde_json::json;
use support::{Api, Lines, config_map, pod, shown};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[track_caller]
fn check(events: &[serde_json::Value], expect: Expect) {
    expect.assert_eq(&shown(events));
}

async fn revision(api: &Api) -> String {
    api.get(MAPS).await.ok()["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_watch_goes_on_from_a_revision() {
    let api = Api::new().await;
    api.post(MAPS, config_map("a", json!({}))).await.ok();
    let from = revision(&api).await;
    api.post(MAPS, config_map("b", json!({}))).await.ok();
    api.patch("merge", &format!("{MAPS}/b"), json!({"data": {"x": "1"}}))
        .await
        .ok();
    api.patch("merge", &format!("{MAPS}/b"), json!({"data": {"x": "1"}}))
        .await
        .ok();
    let last = api.get(&format!("{MAPS}/b")).await.ok();
    api.delete(&format!("{MAPS}/b")).await.ok();
    let events = api
        .watch(&format!("{MAPS}?watch=1&resourceVersion={from}"), 3)
        .await;
    check(
        &events,
        expect![[r#"
        ADDED b
        MODIFIED b
        DELETED b"#]],
    );
    assert_eq!(events[1]["object"], last);
    // A deleted object is shown as it was, under the revision of its deletion.
    let (gone, was) = (
        &events[2]["object"]["metadata"]["resourceVersion"],
        &last["metadata"]["resourceVersion"],
    );
    assert!(
        gone.as_str().unwrap().parse::<u64>().unwrap()
            > was.as_str().unwrap().parse::<u64>().unwrap()
    );
}

#[tokio::test]
async fn a_watch_without_a_revision_begins_with_the_state() {
    let api = Api::new().await;
    api.post(MAPS, config_map("a", json!({}))).await.ok();
    check(
        &api.watch(&format!("{MAPS}?watch=1"), 1).await,
        expect!["ADDED a"],
    );
    check(
        &api.watch(
            &format!("{MAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Da"),
            1,
        )
        .await,
        expect!["ADDED a"],
    );
    check(
        &api.watch("/api/v1/watch/namespaces/default/configmaps/a", 1)
            .await,
        expect!["ADDED a"],
    );
    let initial = api
        .watch(&format!("{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"), 2)
        .await;
    check(
        &initial,
        expect![[r#"
        ADDED a
        BOOKMARK -"#]],
    );
    assert_eq!(
        initial[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
}

#[tokio::test]
async fn objects_come_and_go_with_a_selector() {
    let api = Api::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut lines = Lines::of(
        api.send(
            "GET",
            &format!("{pods}?watch=1&labelSelector=app%3Da&fieldSelector=status.phase!%3DFailed"),
            &[],
            "",
        )
        .await,
    );
    api.post(pods, pod("a")).await.ok();
    api.post(pods, pod("b")).await.ok();
    api.patch(
        "merge",
        &format!("{pods}/b"),
        json!({"metadata": {"labels": {"app": "a"}}}),
    )
    .await
    .ok();
    api.patch(
        "merge",
        &format!("{pods}/b"),
        json!({"metadata": {"labels": {"x": "y"}}}),
    )
    .await
    .ok();
    api.patch(
        "merge",
        &format!("{pods}/a/status"),
        json!({"status": {"phase": "Failed"}}),
    )
    .await
    .ok();
    api.delete(&format!("{pods}/a")).await.ok();
    api.patch(
        "merge",
        &format!("{pods}/b"),
        json!({"metadata": {"labels": {"app": "b"}}}),
    )
    .await
    .ok();
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(lines.next().await.unwrap());
    }
    check(
        &events,
        expect![[r#"
        ADDED a
        ADDED b
        MODIFIED b
        DELETED a
        DELETED b"#]],
    );
}

#[tokio::test]
async fn what_is_forgotten_is_gone() {
    let store = Store::memory();
    let mut options = support::options();
    options.history_events = 2;
    let api = Api {
        server: ApiServer::open(store.clone(), options).await.unwrap(),
    };
    api.post(MAPS, config_map("a", json!({}))).await.ok();
    let from = revision(&api).await;
    let first = api.get(&format!("{MAPS}?limit=1")).await.ok();
    assert!(first["metadata"]["continue"].is_null());
    api.post(MAPS, config_map("b", json!({}))).await.ok();
    let page = api.get(&format!("{MAPS}?limit=1")).await.ok();
    for name in ["c", "d", "e"] {
        api.post(MAPS, config_map(name, json!({}))).await.ok();
    }
    let events = api
        .watch(&format!("{MAPS}?watch=1&resourceVersion={from}"), 9)
        .await;
    assert_eq!(
        (
            events[0]["type"].as_str(),
            events[0]["object"]["code"].as_u64(),
            events.len()
        ),
        (Some("ERROR"), Some(410), 1)
    );
    assert_eq!(events[0]["object"]["reason"], "Expired");
    let events = api
        .watch(&format!("{MAPS}?watch=1&resourceVersion=999999"), 9)
        .await;
    assert_eq!(events[0]["object"]["code"], 410);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let message = api
        .get(&format!("{MAPS}?limit=1&continue={token}"))
        .await
        .refused(410);
    assert!(
        message.starts_with("Expired: The provided continue parameter is too old"),
        "{message}"
    );
    let message = api
        .get(&format!(
            "{MAPS}?resourceVersion={from}&resourceVersionMatch=Exact"
        ))
        .await
        .refused(410);
    assert_eq!(
        message,
        "Expired: The resourceVersion for the provided list is too old."
    );

    // After a restart nothing from before it is known, but what is now can be gone on from.
    let now = revision(&api).await;
    let api = Api::on(store).await;
    let events = api
        .watch(&format!("{MAPS}?watch=1&resourceVersion={from}"), 9)
        .await;
    assert_eq!(events[0]["object"]["code"], 410);
    let mut lines = Lines::of(
        api.send(
            "GET",
            &format!("{MAPS}?watch=1&resourceVersion={now}"),
            &[],
            "",
        )
        .await,
    );
    api.post(MAPS, config_map("f", json!({}))).await.ok();
    check(&[lines.next().await.unwrap()], expect!["ADDED f"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_and_the_timeout_ends_it() {
    let api = Api::new().await;
    let from = revision(&api).await;
    api.post(
        "/api/v1/namespaces",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}),
    )
    .await
    .ok();
    let now = revision(&api).await;
    let events = api
        .watch(
            &format!(
                "{MAPS}?watch=1&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=150"
            ),
            9,
        )
        .await;
    check(
        &events,
        expect![[r#"
        BOOKMARK -
        BOOKMARK -"#]],
    );
    assert_eq!(events[0]["object"]["metadata"]["resourceVersion"], now);
}

#[tokio::test]
async fn watches_are_bounded() {
    let mut options = support::options();
    options.watches = 1;
    let api = Api {
        server: ApiServer::open(Store::memory(), options).await.unwrap(),
    };
    let first = api.send("GET", &format!("{MAPS}?watch=1"), &[], "").await;
    let second = api.send("GET", &format!("{MAPS}?watch=1"), &[], "").await;
    assert_eq!(second.status(), 429);
    assert_eq!(second.headers()["retry-after"], "1");
    drop(first);
    assert_eq!(
        api.send("GET", &format!("{MAPS}?watch=1"), &[], "")
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn a_stopping_server_ends_its_watches() {
    let api = Api::new().await;
    let lines = Lines::of(api.send("GET", &format!("{MAPS}?watch=1"), &[], "").await);
    api.server.stop_watches();
    assert!(lines.take(1).await.is_empty());
}
