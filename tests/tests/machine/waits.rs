//! Machines wait for time, signals and objects.

use anyhow::Result;
use configurator_tests::world::{Place, World};
use expect_test::expect;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::things::*;

fn config_map(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "awaited", "namespace": "default"}, "data": {"value": value},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_entered_again_when_its_time_has_come() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            steps("wait", json!([
                {"wait": {"afterMs": 50}, "data": {"seen": 1}},
                {
                    "againAfterMs": 20,
                    "requests": [{"name": "put", "put": {"key": "timer", "value": "{cause} {entry}"}}],
                },
                {"requests": [{"name": "put", "put": {"key": "again", "value": "{cause} {entry} {last}"}}]},
            ])),
        ]},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Done").await?;
    expect!["timer 2"].assert_eq(&things.key("timer").await?.unwrap());
    expect![[r#"again 3 {"data":"{\"seen\":1}","failed":false,"results":[{"body":null,"error":null,"name":"put","objects":["{\"key\":\"basic/timer\",\"value\":\"timer 2\"}"],"status":null}]}"#]].assert_eq(&things.key("again").await?.unwrap());
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_entered_again_when_an_object_has_changed() -> Result<()> {
    let things = Things::start().await?;
    things.world.apply(&waits_for_an_object()).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_key("absent").await?;
    things.world.settled(&["things"]).await?;
    things.world.apply(&config_map("1")).await?;
    things.until_key("first").await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.phase("one").await?, "Work", "one change wakes once");
    things.world.apply(&config_map("2")).await?;
    things.until_phase("Done").await?;
    expect!["changed default/awaited"].assert_eq(&things.key("second").await?.unwrap());
    things.world.stop().await
}

/// Its step is told how the object is when it begins to wait, and of two changes.
fn waits_for_an_object() -> Value {
    let wait = json!({"configMaps": ["awaited"]});
    let put = |key: &str| json!([{"name": "put", "put": {"key": key, "value": "{cause}"}}]);
    let mut configurator = machine(json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            steps("wait", json!([
                {"wait": wait},
                {"wait": wait, "requests": put("absent")},
                {"wait": wait, "requests": put("first")},
                {"requests": put("second")},
            ])),
        ]},
        {"name": "Done", "terminal": true},
    ]}));
    configurator["spec"]["capabilities"]["kubernetes"][0]["verbs"] = json!(["get", "watch"]);
    configurator
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_wakes_only_those_whose_objects_have_changed_meanwhile() -> Result<()> {
    let folder = TempDir::new()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    let things = Things::start_at(&place).await?;
    things.world.apply(&waits_for_an_object()).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_key("absent").await?;
    things.world.settled(&["things"]).await?;
    things.world.stop().await?;

    let things = Things::start_at(&place).await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.key("first").await?, None, "nothing has changed");
    things.world.apply(&config_map("1")).await?;
    things.until_key("first").await?;
    things.world.settled(&["things"]).await?;
    things.world.stop().await?;

    let servers = place.open().await?;
    let maps: Api<ConfigMap> = Api::namespaced(servers.cluster.client.clone(), "default");
    let patch = Patch::Merge(json!({"data": {"value": "2"}}));
    maps.patch("awaited", &PatchParams::default(), &patch)
        .await?;
    let world = World::start_on(servers, |builder| builder).await?;
    let things = Things { world };
    things.until_phase("Done").await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_what_no_rule_allows() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "Work", "onDone": "Done", "onError": "Failed", "serial": [
            step("wait", json!({"wait": {"configMaps": ["awaited"]}})),
        ]},
        {"name": "Done", "terminal": true},
        {"name": "Failed", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Failed").await?;
    expect![[r#"
        Failed
          Work: fatal, error "ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [\"\"], resources: [configmaps], namespaces: [default], names: [awaited], verbs: [watch]}"
            wait: fatal, error "ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [\"\"], resources: [configmaps], namespaces: [default], names: [awaited], verbs: [watch]}"
    "#]].assert_eq(&things.drawn("one").await?);
    things.world.stop().await
}
