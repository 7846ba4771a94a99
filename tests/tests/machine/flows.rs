//! Flows that are resources of their own, and what becomes of unfinished ones.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use configurator_core::layers::Write;
use configurator_core::request::ObjectRef;
use configurator_host::observer::{MachineNotice, RunObserver};
use configurator_tests::machine::definition;
use configurator_tests::world::{Place, World};
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
kind: ClusterFlow
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

/// What a Configurator has in a machine is of flows as well: once they are as they were, nothing is wrong with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_is_put_back_leaves_no_trouble_behind() -> Result<()> {
    let things = Things::start().await?;
    let flow = |handler: &str| {
        json!({
            "apiVersion": "configurator.dev/v1alpha1",
            "kind": "ClusterFlow",
            "metadata": {"name": "create-cluster"},
            "spec": {"flowName": "CreateCluster", "steps": [{"className": handler, "stepName": "Init"}]},
        })
    };
    let configurators = things
        .world
        .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
        .await?;
    // What is said of the module. None ran before.
    let until_said = async |reason: &str| {
        things
            .world
            .until(reason, async || {
                let found = configurators.get("things").await?.data;
                let conditions = found["status"]["conditions"].as_array().cloned();
                let mut conditions = conditions.unwrap_or_default().into_iter();
                let is_it = |condition: &Value| condition["type"] == "ModuleLoaded";
                let loaded = conditions.find(is_it).unwrap_or_default();
                assert_eq!(found["status"]["previousModuleDigest"], Value::Null);
                Ok(loaded["reason"] == reason)
            })
            .await
    };
    things.world.apply(&flow("root")).await?;
    things
        .world
        .apply(&machine(json!({"phases": [
            {"name": "Work", "flow": "CreateCluster", "onDone": "Done"},
            {"name": "Done", "terminal": true},
        ]})))
        .await?;
    until_said("Loaded").await?;
    for _ in 0..2 {
        things.world.apply(&flow("of-no-module")).await?;
        until_said("HandlerMissing").await?;
        things.world.apply(&flow("root")).await?;
        until_said("Loaded").await?;
    }
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_phase("Done").await?;
    things.world.stop().await
}

/// A flow was broken off, and is to go on when a word comes; another is to begin, and says this of unfinished ones.
async fn another_begins(when_unfinished: &str) -> Result<Things> {
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
            "modify": {"whenUnfinished": when_unfinished, "serial": [put("modify", "{results}")]},
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
    Ok(things)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_flow_is_finished_before_another_begins() -> Result<()> {
    let things = another_begins("Finish").await?;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_flow_is_given_up_where_the_next_says_so() -> Result<()> {
    let things = another_begins("Cancel").await?;
    things.until_phase("Running").await?;
    assert_eq!(things.key("create").await?, None);
    assert!(things.key("modify").await?.is_some());
    expect!["refused: nothing was broken off"]
        .assert_eq(&things.command("Resume", json!({})).await?);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_does_not_begin_beside_an_unfinished_one_where_it_says_so() -> Result<()> {
    let things = another_begins("Refuse").await?;
    let refused = "configurator_flows_total{configurator_namespace=\"\",configurator=\"things\",flow=\"modify\",outcome=\"refused\"}";
    things
        .world
        .until("it is refused", || async {
            Ok(!things.world.metric(refused).is_empty())
        })
        .await?;
    assert_eq!(things.phase("one").await?, "Interrupted");
    assert_eq!(things.key("modify").await?, None);
    assert_eq!(things.command("Resume", json!({})).await?, "done");
    things.until_phase("Running").await?;
    assert!(things.key("create").await?.is_some());
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

/// One Thing whose flow waits.
async fn waiting(step: Value) -> Result<Things> {
    let things = Things::start().await?;
    things.world.apply(&waits_and_then(step)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_node("Work/wait", has_begun).await?;
    Ok(things)
}

fn has_begun(node: &Value) -> bool {
    node.get("startTime").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_goes_on_as_it_was_declared_when_it_began() -> Result<()> {
    let things = waiting(put("earlier", "1")).await?;
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
    things.until_node("Work/wait", has_begun).await?;
    things.command("Signal", go()).await?;
    things.until_phase("Done").await?;
    assert_eq!(things.key("later").await?.as_deref(), Some("1"));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_whose_tree_was_changed_by_somebody_is_not_run() -> Result<()> {
    let things = waiting(put("earlier", "1")).await?;
    let trees = things.world.config.scan("trees/").await?;
    let forged = trees
        .into_iter()
        .map(|(key, tree)| Write::Put(key, tree.replace("earlier", "forged")));
    things.world.config.write(forged.collect(), &[]).await?;
    things
        .world
        .apply(&waits_and_then(put("later", "1")))
        .await?;
    things.until_generation().await?;
    let why = things.until_given_up().await?;
    expect![[r#"the stored state is not trusted, so nothing is done: its phase "Work" began under an earlier declaration, whose tree 397e616645da4c7b35af7aad2b76235c the config store does not have as a host has stored it. A Command with verb Restart begins anew, at the initial phase"#]].assert_eq(&why);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_whose_handler_has_gone_is_interrupted() -> Result<()> {
    let then = json!({"name": "then", "handler": "remedy"});
    let things = waiting(then.clone()).await?;
    let mut other = waits_and_then(then);
    other["spec"]["module"]["file"] = "nothing.wasm".into();
    other["spec"]["machine"]["flows"] = json!({"work": {"serial": [{"handler": "root"}]}});
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

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl RunObserver for Journal {
    fn told(&self, _: &ObjectRef, object: &ObjectRef, notice: &MachineNotice) {
        let notice = format!("{object}: {notice:?}");
        // Neither how long it took nor which Command it was.
        let told = notice
            .split(", took:")
            .next()
            .and_then(|told| told.split(" { uid").next());
        let told = told.unwrap_or_default().to_owned();
        self.0.lock().unwrap().push(told);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedder_is_told_before_and_after_each_step_and_flow() -> Result<()> {
    let journal = Journal::default();
    let observer = journal.clone();
    let world = World::start_at(&Place::default(), |builder| builder.observer(observer)).await?;
    let things = Things { world };
    things.world.apply(&definition("Thing")).await?;
    let first = json!({"fail": {"message": "no", "causes": ["entered", "again"]}});
    let spec = json!({
        "phases": [
            {"name": "Work", "flow": "work", "onDone": "Done", "onError": "Interrupted"},
            {"name": "Interrupted", "stable": true},
            {"name": "Done", "terminal": true},
        ],
        "flows": {"work": {"serial": [
            {"name": "first", "handler": "root", "retry": {"threshold": 1}, "parameters": {"script": first}},
            put("second", "1"),
        ]}},
    });
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_phase("Interrupted").await?;
    things.command("Resume", json!({})).await?;
    things.until_phase("Done").await?;
    things.world.settled(&["things"]).await?;
    expect![[r#"
        default/one: PhaseEntered { from: "", to: "Work" }
        default/one: FlowStarted { flow: "work" }
        default/one: StepStarted { path: "Work/first" }
        default/one: StepEnded { path: "Work/first", error: Some("still failing after 1 attempts: no")
        default/one: FlowFailed { flow: "work", message: "still failing after 1 attempts: no" }
        default/one: PhaseEntered { from: "Work", to: "Interrupted" }
        default/one: CommandDone
        default/one: FlowResumed { flow: "work", from: FailedStep }
        default/one: PhaseEntered { from: "Interrupted", to: "Work" }
        default/one: StepEnded { path: "Work/first", error: None
        default/one: StepStarted { path: "Work/second" }
        default/one: StepEnded { path: "Work/second", error: None
        default/one: FlowCompleted { flow: "work" }
        default/one: PhaseEntered { from: "Work", to: "Done" }"#]].assert_eq(&journal.0.lock().unwrap().join("\n"));
    things.world.stop().await
}
