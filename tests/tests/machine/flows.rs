//! Flows that are resources of their own, and what becomes of unfinished ones.

use anyhow::Result;
use expect_test::expect;
use serde_json::json;

use super::things::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_of_its_own_serves_whoever_names_it() -> Result<()> {
    let things = Things::start().await?;
    things
        .world
        .apply_yaml(
            "
apiVersion: configurator.dev/v1alpha1
kind: Flow
metadata:
  name: create-cluster
spec:
  flowName: CreateCluster
  recoverFromFirstStep: false
  steps:
  - className: root
    stepName: InitMeta
  - className: root
    stepName: PrepareStorage
    parameters: {script: {requests: [{name: put, put: {key: storage, value: '1'}}]}}
",
        )
        .await?;
    things
        .world
        .apply(&machine(json!({"phases": [
            {"name": "Work", "flow": "CreateCluster", "onDone": "Done"},
            {"name": "Done", "terminal": true},
        ]})))
        .await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_phase("Done").await?;
    expect![[r#"
        Done
          Work: done
            InitMeta: done
            PrepareStorage: done
    "#]]
    .assert_eq(&things.drawn("one").await?);
    assert_eq!(things.key("storage").await?.as_deref(), Some("1"));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_flow_is_finished_before_another_begins() -> Result<()> {
    let things = Things::with(json!({
        "phases": [
            {"name": "Creating", "flow": "create", "onDone": "Running", "onError": "Interrupted"},
            {"name": "Interrupted", "stable": true, "events": [{"when": "object.spec.go == true", "to": "Modifying"}]},
            {"name": "Running", "stable": true},
            {"name": "Modifying", "flow": "modify", "onDone": "Running", "onError": "Interrupted"},
        ],
        "flows": {
            "create": {"serial": [steps("create", json!([
                {"wait": {"signals": ["go"]}},
                {"requests": [{"name": "put", "put": {"key": "create", "value": "1"}}]},
            ]))]},
            "modify": {"serial": [put("modify", "{results}")]},
        },
    }))
    .await?;
    things
        .until_node("Creating/create", |node| node.get("startTime").is_some())
        .await?;
    things.command("Cancel", json!({})).await?;
    things.until_phase("Interrupted").await?;
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.merge(json!({"spec": {"go": true}})).await?;
    things.until_phase("Running").await?;
    expect![[r#"
        Running
          Creating: done
            create: done
          Modifying: done
            modify: done
    "#]]
    .assert_eq(&things.drawn("one").await?);
    assert!(things.key("create").await?.is_some());
    assert!(things.key("modify").await?.is_some());
    things.world.stop().await
}
