//! Finalizers, owners, namespaces.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use configurator_store::Store;
use serde_json::{Value, json};
use support::{Api, config_map};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap with owners, as (name, uid).
fn owned(name: &str, owners: &[(&str, &str)], blocks: bool) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|(name, uid)| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": blocks}))
        .collect();
    json!({"metadata": {"name": name, "ownerReferences": references}})
}

async fn create(api: &Api, object: Value) -> String {
    api.post(MAPS, object).await.ok()["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let api = Api::new().await;
    create(
        &api,
        json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}),
    )
    .await;
    let path = format!("{MAPS}/a");
    let held = api.delete(&path).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(api.delete(&path).await.ok(), held);
    let more = api
        .patch(
            "merge",
            &path,
            json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
        )
        .await;
    assert!(
        more.refused(422)
            .contains("no new finalizers can be added if the object is being deleted")
    );
    api.patch("merge", &path, json!({"metadata": {"finalizers": null}}))
        .await
        .ok();
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn preconditions_protect() {
    let api = Api::new().await;
    let uid = create(&api, config_map("a", json!({}))).await;
    let path = format!("{MAPS}/a");
    let delete = |uid: &str| {
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}})
            .to_string()
    };
    let refused = api
        .request(
            "DELETE",
            &path,
            &[("content-type", "application/json")],
            delete("other"),
        )
        .await
        .refused(409);
    assert!(
        refused.contains("the UID in the precondition (other) does not match the UID in record"),
        "{refused}"
    );
    let gone = api
        .request(
            "DELETE",
            &path,
            &[("content-type", "application/json")],
            delete(&uid),
        )
        .await
        .ok();
    assert_eq!(
        (&gone["status"], &gone["details"]["uid"]),
        (&json!("Success"), &json!(uid))
    );
}

#[tokio::test]
async fn dependents_go_with_their_last_owner() {
    let api = Api::new().await;
    let (a, b) = (
        create(&api, config_map("a", json!({}))).await,
        create(&api, config_map("b", json!({}))).await,
    );
    create(&api, owned("both", &[("a", &a), ("b", &b)], false)).await;
    let child = create(&api, owned("child", &[("a", &a)], false)).await;
    create(&api, owned("grandchild", &[("child", &child)], false)).await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    api.gone(&format!("{MAPS}/grandchild")).await;
    assert_eq!(api.get(&format!("{MAPS}/child")).await.code, 404);
    let both = api.get(&format!("{MAPS}/both")).await.ok();
    assert_eq!(
        both["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    api.delete(&format!("{MAPS}/b")).await.ok();
    api.gone(&format!("{MAPS}/both")).await;
}

#[tokio::test]
async fn an_owner_is_known_by_its_uid() {
    let api = Api::new().await;
    let old = create(&api, config_map("a", json!({}))).await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    let new = create(&api, config_map("a", json!({}))).await;
    create(&api, owned("of-the-old", &[("a", &old)], false)).await;
    create(&api, owned("of-the-new", &[("a", &new)], false)).await;
    api.gone(&format!("{MAPS}/of-the-old")).await;
    settle().await;
    api.get(&format!("{MAPS}/of-the-new")).await.ok();
}

#[tokio::test]
async fn foreground_waits_for_the_dependents() {
    let api = Api::new().await;
    let a = create(&api, config_map("a", json!({}))).await;
    let mut child = owned("child", &[("a", &a)], true);
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&api, child).await;
    api.delete(&format!("{MAPS}/a?propagationPolicy=Foreground"))
        .await
        .ok();
    settle().await;
    assert_eq!(
        api.get(&format!("{MAPS}/a")).await.ok()["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    assert!(
        api.get(&format!("{MAPS}/child")).await.ok()["metadata"]["deletionTimestamp"].is_string()
    );
    api.patch(
        "json",
        &format!("{MAPS}/child"),
        json!([{"op": "remove", "path": "/metadata/finalizers"}]),
    )
    .await
    .ok();
    api.gone(&format!("{MAPS}/a")).await;
}

#[tokio::test]
async fn orphans_are_let_go() {
    let api = Api::new().await;
    let a = create(&api, config_map("a", json!({}))).await;
    create(&api, owned("child", &[("a", &a)], false)).await;
    api.delete(&format!("{MAPS}/a?propagationPolicy=Orphan"))
        .await
        .ok();
    api.gone(&format!("{MAPS}/a")).await;
    settle().await;
    assert!(
        api.get(&format!("{MAPS}/child")).await.ok()["metadata"]
            .get("ownerReferences")
            .is_none()
    );
}

#[tokio::test]
async fn a_namespace_goes_with_its_content() {
    let api = Api::new().await;
    let namespace = api
        .post("/api/v1/namespaces", json!({"metadata": {"name": "team"}}))
        .await
        .ok();
    assert_eq!(
        (
            &namespace["status"]["phase"],
            &namespace["spec"]["finalizers"]
        ),
        (&json!("Active"), &json!(["kubernetes"]))
    );
    let maps = "/api/v1/namespaces/team/configmaps";
    api.post(maps, config_map("plain", json!({}))).await.ok();
    api.post(
        maps,
        json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}),
    )
    .await
    .ok();
    let terminating = api.delete("/api/v1/namespaces/team").await.ok();
    assert_eq!(terminating["status"]["phase"], "Terminating");
    let refused = api
        .post(maps, config_map("late", json!({})))
        .await
        .refused(403);
    assert_eq!(
        refused,
        "Forbidden: configmaps \"late\" is forbidden: unable to create new content in namespace team because it is being terminated"
    );
    api.gone(&format!("{maps}/plain")).await;
    settle().await;
    api.get("/api/v1/namespaces/team").await.ok();
    api.patch(
        "merge",
        &format!("{maps}/held"),
        json!({"metadata": {"finalizers": []}}),
    )
    .await
    .ok();
    api.gone("/api/v1/namespaces/team").await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "team"}}))
        .await
        .ok();
    assert!(
        api.delete("/api/v1/namespaces/default")
            .await
            .refused(403)
            .contains("may not be deleted")
    );
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let api = Api::new().await;
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        create(
            &api,
            json!({"metadata": {"name": name, "labels": {"app": app}}}),
        )
        .await;
    }
    let deleted = api
        .delete(&format!("{MAPS}?labelSelector=app%3Dx"))
        .await
        .ok();
    assert_eq!(deleted["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        api.get(MAPS).await.ok()["items"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn what_a_stop_left_undone_is_done_at_the_next_start() {
    let store = Store::memory();
    let api = Api::on(store.clone()).await;
    let a = create(&api, config_map("a", json!({}))).await;
    create(&api, owned("child", &[("a", &a)], false)).await;
    // The collector has had no turn when the server goes.
    api.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(api.get(&format!("{MAPS}/child")).await.code, 200);
    drop(api);
    let api = Api::on(store).await;
    api.gone(&format!("{MAPS}/child")).await;
}
