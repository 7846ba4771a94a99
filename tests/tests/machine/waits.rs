//! Machines wait for time, signals and objects.

use anyhow::Result;
use expect_test::expect;
use serde_json::{Value, json};

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
    let mut configurator = machine(json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            steps("wait", json!([
                {"wait": {"configMaps": ["awaited"]}},
                {
                    "wait": {"configMaps": ["awaited"]},
                    "requests": [{"name": "put", "put": {"key": "first", "value": "{cause}"}}],
                },
                {"requests": [{"name": "put", "put": {"key": "second", "value": "{cause}"}}]},
            ])),
        ]},
        {"name": "Done", "terminal": true},
    ]}));
    configurator["spec"]["capabilities"]["kubernetes"][0]["verbs"] = json!(["get", "watch"]);
    things.world.apply(&configurator).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things
        .until_node("Work/wait", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    things.world.apply(&config_map("1")).await?;
    things
        .world
        .until("the first change is seen", || async {
            Ok(things.key("first").await?.is_some())
        })
        .await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.phase("one").await?, "Work", "one change wakes once");
    things.world.apply(&config_map("2")).await?;
    things.until_phase("Done").await?;
    expect!["changed default/awaited"].assert_eq(&things.key("second").await?.unwrap());
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
          Work: fatal, error "ResourcePermission: spec.capabilities has no rule that allows kubernetes: {groups: [\"\"], resources: [configmaps], namespaces: [default], names: [awaited], verbs: [watch]}"
            wait: fatal, error "ResourcePermission: spec.capabilities has no rule that allows kubernetes: {groups: [\"\"], resources: [configmaps], namespaces: [default], names: [awaited], verbs: [watch]}"
    "#]].assert_eq(&things.drawn("one").await?);
    things.world.stop().await
}
