//! Flows that are resources of their own, and what becomes of unfinished ones.

use anyhow::Result;
use expect_test::expect;
use serde_json::{Value, json};

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

/// A machine whose flow waits for a word, and then does this.
fn waits_and_then(step: Value) -> Value {
    machine(json!({
        "phases": [
            {"name": "Work", "flow": "work", "onDone": "Done", "onError": "Interrupted"},
            {"name": "Interrupted", "stable": true},
            {"name": "Done", "terminal": true},
        ],
        "flows": {"work": {"serial": [
            steps("wait", json!([{"wait": {"signals": ["go"]}}, {}])),
            step,
        ]}},
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_goes_on_as_it_was_declared_when_it_began() -> Result<()> {
    let things = Things::start().await?;
    let earlier = waits_and_then(put("earlier", "1"));
    things.world.apply(&earlier).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    let waits = |node: &Value| node.get("startTime").is_some();
    things.until_node("Work/wait", waits).await?;
    things
        .world
        .apply(&waits_and_then(put("later", "1")))
        .await?;
    things.until_generation().await?;
    let go = || json!({"signal": {"name": "go"}});
    things.command("Signal", go()).await?;
    things.until_phase("Done").await?;
    assert_eq!(things.key("earlier").await?.as_deref(), Some("1"));
    assert_eq!(things.key("later").await?, None);

    things.command("Restart", json!({})).await?;
    things.until_node("Work/wait", waits).await?;
    things.command("Signal", go()).await?;
    things.until_phase("Done").await?;
    assert_eq!(things.key("later").await?.as_deref(), Some("1"));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_whose_handler_has_gone_is_interrupted() -> Result<()> {
    let things = Things::start().await?;
    let mut other = waits_and_then(json!({"name": "then", "handler": "remedy"}));
    things.world.apply(&other).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    let waits = |node: &Value| node.get("startTime").is_some();
    things.until_node("Work/wait", waits).await?;
    other["spec"]["module"]["file"] = "nothing.wasm".into();
    other["spec"]["flows"] = json!({"work": {"serial": [{"handler": "root"}]}});
    things.world.apply(&other).await?;
    things.until_generation().await?;
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.until_phase("Interrupted").await?;
    expect![[r#"
        Interrupted
          Work: fatal, error "the module does not have the handler \"remedy\" any more; it has: root"
            then: fatal, error "the module does not have the handler \"remedy\" any more; it has: root"
            wait: done
    "#]].assert_eq(&things.drawn("one").await?);
    things.world.stop().await
}
