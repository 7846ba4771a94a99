//! Where states are kept.

use anyhow::Result;
use expect_test::expect;
use serde_json::{Value, json};

use super::things::*;

fn two_steps(state: Value) -> Value {
    json!({
        "state": state,
        "phases": [
            {"name": "Work", "onDone": "Done", "serial": [put("first", "1"), put("second", "{args}")]},
            {"name": "Done", "terminal": true},
        ],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_can_be_in_fields_of_other_names() -> Result<()> {
    let state = json!({
        "phasePath": ".status.clusterStatus", "statePath": ".status.engine.nodes", "mementoPath": ".status.engine.memento",
    });
    let things = Things::with(two_steps(state)).await?;
    things
        .world
        .until("it is done", || async {
            Ok(things.get("one").await?["status"]["clusterStatus"] == "Done")
        })
        .await?;
    let thing = things.get("one").await?;
    assert_eq!(thing["status"]["engine"]["nodes"]["Work"]["done"], true);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_can_be_in_a_config_map_beside_the_object() -> Result<()> {
    let things = Things::with(two_steps(json!({"in": "ConfigMap"}))).await?;
    let maps = things.world.objects("v1", "ConfigMap", "default").await?;
    things
        .world
        .until("it is done", || async {
            let all = maps.list(&kube::api::ListParams::default()).await?;
            Ok(all
                .items
                .iter()
                .any(|map| map.data["data"]["phase"] == "Done"))
        })
        .await?;
    let all = maps.list(&kube::api::ListParams::default()).await?;
    let [map] = all.items.as_slice() else {
        panic!("{all:?}");
    };
    let owners = map.metadata.owner_references.as_deref().unwrap_or_default();
    expect![[r#"
        [
            (
                "Thing",
                "one",
            ),
        ]
    "#]]
    .assert_debug_eq(
        &owners
            .iter()
            .map(|owner| (&owner.kind, &owner.name))
            .collect::<Vec<_>>(),
    );
    assert!(things.get("one").await?.get("status").is_none());
    assert_eq!(things.key("second").await?.as_deref(), Some(""));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_can_be_in_the_config_store_and_goes_with_the_object() -> Result<()> {
    let things = Things::with(two_steps(json!({"in": "ConfigStore"}))).await?;
    let stored = || async {
        let mut keys = things.world.config.scan("states/").await?;
        keys.extend(things.world.config.scan("revisions/").await?);
        anyhow::Ok(keys)
    };
    things
        .world
        .until("it is done", || async {
            let keys = stored().await?;
            Ok(keys.iter().any(|(_, value)| value.contains("\"Done\"")))
        })
        .await?;
    things.delete().await?;
    things
        .world
        .until("nothing is left of it", || async {
            Ok(stored().await?.is_empty())
        })
        .await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_state_moves_out_of_the_object_and_back() -> Result<()> {
    let large = "x".repeat(300 * 1024);
    let things = Things::with(json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            step("note", json!({"pass": {"large": large}})),
            steps("pause", json!([{"wait": {"signals": ["go"]}}, {}])),
        ]},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things
        .world
        .until("it has moved out", || async {
            Ok(!things.world.config.scan("states/").await?.is_empty())
        })
        .await?;
    let thing = things.get("one").await?;
    assert!(
        thing.to_string().len() < 10_000,
        "{}",
        thing.to_string().len()
    );
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.until_phase("Done").await?;
    things.world.stop().await
}
