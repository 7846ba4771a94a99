//! The API as kube-rs uses it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn objects_are_created_read_replaced_patched_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(support::Api::new().await.client());
    let created = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    let again = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap_err();
    assert!(again.to_string().contains("already exists"), "{again}");

    let mut changed = api.get("a").await.unwrap();
    assert_eq!(changed, created);
    changed.data = Some(BTreeMap::from([("key".to_owned(), "2".to_owned())]));
    let replaced = api
        .replace("a", &PostParams::default(), &changed)
        .await
        .unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    let stale = api
        .replace("a", &PostParams::default(), &changed)
        .await
        .unwrap_err();
    assert!(
        stale.to_string().contains("the object has been modified"),
        "{stale}"
    );

    let patch = Patch::Merge(json!({"data": {"other": "3"}}));
    let patched = api
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    assert!(
        api.delete("a", &DeleteParams::default())
            .await
            .unwrap()
            .is_right()
    );
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_reflector_follows_every_change() {
    let server = support::Api::new().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    api.create(&PostParams::default(), &config_map("first", "1"))
        .await
        .unwrap();
    for streaming in [false, true] {
        let config = if streaming {
            watcher::Config::default().streaming_lists()
        } else {
            watcher::Config::default()
        };
        let (store, writer) = reflector::store();
        let mut changes = watcher(api.clone(), config)
            .reflect(writer)
            .touched_objects()
            .boxed();
        assert_eq!(
            changes.try_next().await.unwrap().unwrap().name_any(),
            "first"
        );
        api.create(&PostParams::default(), &config_map("second", "1"))
            .await
            .unwrap();
        assert_eq!(
            changes.try_next().await.unwrap().unwrap().name_any(),
            "second"
        );
        assert_eq!(store.state().len(), 2);
        api.delete("second", &DeleteParams::default())
            .await
            .unwrap();
        assert_eq!(
            changes.try_next().await.unwrap().unwrap().name_any(),
            "second"
        );
        assert_eq!(store.state().len(), 1);
    }
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let server = support::Api::new().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    for number in 0..25 {
        api.create(
            &PostParams::default(),
            &config_map(&format!("a{number:02}"), "1"),
        )
        .await
        .unwrap();
    }
    let mut seen = Vec::new();
    let mut params = ListParams::default().limit(10);
    loop {
        let page = api.list(&params).await.unwrap();
        seen.extend(page.items.iter().map(ResourceExt::name_any));
        // What comes and goes between two pages is in none of them.
        api.create(
            &PostParams::default(),
            &config_map(&format!("a{:02}b", seen.len()), "1"),
        )
        .await
        .unwrap();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(
        seen,
        (0..25)
            .map(|number| format!("a{number:02}"))
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn server_side_apply_is_idempotent_and_reports_conflicts() {
    let server = support::Api::new().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let config = |value: &str| {
        Patch::Apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": value}}),
        )
    };
    let one = PatchParams::apply("one");
    let first = api.patch("a", &one, &config("1")).await.unwrap();
    let second = api.patch("a", &one, &config("1")).await.unwrap();
    assert_eq!(first, second);
    let conflict = api
        .patch("a", &PatchParams::apply("two"), &config("2"))
        .await
        .unwrap_err();
    let kube::Error::Api(status) = conflict else {
        panic!("{conflict}")
    };
    assert_eq!(status.code, 409);
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .data.key"
    );
    let forced = api
        .patch("a", &PatchParams::apply("two").force(), &config("2"))
        .await
        .unwrap();
    assert_eq!(forced.data.unwrap()["key"], "2");
}

#[tokio::test]
async fn status_is_written_apart() {
    let server = support::Api::new().await;
    let api: Api<Pod> = Api::default_namespaced(server.client());
    let pod: Pod = serde_json::from_value(support::pod("a")).unwrap();
    let created = api.create(&PostParams::default(), &pod).await.unwrap();
    assert_eq!(created.status.unwrap().phase.as_deref(), Some("Pending"));
    let patch =
        Patch::Merge(json!({"status": {"phase": "Running"}, "spec": {"nodeName": "ignored"}}));
    let patched = api
        .patch_status("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(patched.spec.unwrap().node_name, None);
    let running = api
        .list(&ListParams::default().fields("status.phase=Running"))
        .await
        .unwrap();
    assert_eq!(running.items.len(), 1);
}
