//! People, and other controllers, tell machines what to do.

use std::time::Duration;

use anyhow::Result;
use configurator_host::controller::pending::CommandLimits;
use configurator_host::resource::command::{CommandPhase, RequesterStatus};
use configurator_tests::machine::definition;
use configurator_tests::world::{Place, World};
use expect_test::expect;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::things::*;

/// A flow of three steps, of which the second waits for `go`.
fn waits_in_the_middle() -> Value {
    json!({
        "phases": [
            {"name": "Work", "flow": "work", "onDone": "Done", "onError": "Interrupted"},
            {"name": "Interrupted", "stable": true},
            {"name": "Done", "terminal": true},
        ],
        "flows": {"work": {"serial": [
            put("before", "1"),
            steps("pause", json!([
                {"wait": {"signals": ["go"]}, "progress": [0, "waits for a person"]},
                {"requests": [{"name": "put", "put": {"key": "pause", "value": "{cause}"}}]},
            ])),
            put("after", "{run}"),
        ]}},
    })
}

async fn until_it_waits(things: &Things) -> Result<()> {
    things
        .until_node("Work/pause", |node| node.get("progress").is_some())
        .await?;
    things.world.settled(&["things"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_waits_for_a_signal() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    assert_eq!(things.key("after").await?, None);
    let go = json!({"signal": {"name": "go", "data": {"by": "ann"}}});
    assert_eq!(things.command("Signal", go).await?, "done");
    things.until_phase("Done").await?;
    expect![[r#"signal go {"by":"ann"}"#]].assert_eq(&things.key("pause").await?.unwrap());
    let told = things.command("Cancel", json!({})).await?;
    expect!["refused: nothing is under way"].assert_eq(&told);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_can_be_resumed() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    assert_eq!(things.command("Cancel", json!({})).await?, "done");
    things.until_phase("Interrupted").await?;
    // Nobody waits for it now, so it is kept.
    let go = json!({"signal": {"name": "go"}});
    assert_eq!(things.command("Signal", go).await?, "done");
    assert_eq!(things.command("Resume", json!({})).await?, "done");
    things.until_phase("Done").await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_can_be_resumed_at_its_first_step_and_begun_anew() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    things.command("Cancel", json!({})).await?;
    things.until_phase("Interrupted").await?;
    things.drop_key("before").await?;
    let told = things
        .command("Resume", json!({"from": "FirstStep"}))
        .await?;
    assert_eq!(told, "done");
    things.until_key("before").await?;
    things.drop_key("before").await?;
    assert_eq!(things.command("Restart", json!({})).await?, "done");
    things.until_key("before").await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_can_be_skipped_with_a_reason() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    let none = json!({"skip": {"node": "Work/none", "reason": "why not"}});
    expect![[r#"refused: there is no node "Work/none""#]]
        .assert_eq(&things.command("Skip", none).await?);
    let pause = json!({"skip": {"node": "Work/pause", "reason": "confirmed by phone"}});
    assert_eq!(things.command("Skip", pause).await?, "done");
    things.until_phase("Done").await?;
    expect![[r#"
        Done
          Work: done
            after: done
            before: done
            pause: skipped, skipped "confirmed by phone; skipped by ann (unverified)", progress {"message":"waits for a person","percent":0}
    "#]].assert_eq(&things.drawn("one").await?);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mark_of_the_object_cancels() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    things
        .merge(json!({"metadata": {"annotations": {"cancelled": "true"}}}))
        .await?;
    things.until_phase("Interrupted").await?;
    things
        .merge(json!({"metadata": {"annotations": {"cancelled": null}}}))
        .await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.command("Resume", json!({})).await?, "done");
    until_it_waits(&things).await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_for_the_object_that_it_names() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    let other = json!({"target": {"kind": "Thing", "name": "one", "uid": "another"}});
    expect!["refused: there is no Thing default/one with the uid another"]
        .assert_eq(&things.command("Cancel", other).await?);
    let none = json!({"target": {"kind": "Thing", "name": "none"}});
    expect!["refused: there is no Thing default/none"]
        .assert_eq(&things.command("Cancel", none).await?);
    let pod = json!({"target": {"kind": "Pod", "name": "one"}});
    expect!["refused: the Configurator watches example.org/v1 Thing, not Pod"]
        .assert_eq(&things.command("Cancel", pod).await?);
    let older = json!({"target": {"apiVersion": "example.org/v0", "kind": "Thing", "name": "one"}});
    expect!["refused: the Configurator watches example.org/v1 Thing, not example.org/v0 Thing"]
        .assert_eq(&things.command("Cancel", older).await?);
    let error = things.command("Skip", json!({})).await.unwrap_err();
    assert!(
        error.to_string().contains("Skip needs a node and a reason"),
        "{error}"
    );
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_may_come_as_soon_as_its_object() -> Result<()> {
    let things = Things::start().await?;
    things.world.apply(&machine(waits_in_the_middle())).await?;
    things.world.settled(&["things"]).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    let go = json!({"signal": {"name": "go"}});
    assert_eq!(things.command("Signal", go).await?, "done");
    things.until_phase("Done").await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_without_a_uid_reaches_the_object_of_that_name() -> Result<()> {
    let things = Things::with(json!({
        "phases": [
            {"name": "Work", "serial": [
                steps("pause", json!([
                    {"wait": {"signals": ["go"]}},
                    {"wait": {"signals": ["approved"]}, "progress": [50, "waits for an approval"]},
                    {"requests": [{"name": "put", "put": {"key": "pause", "value": "{cause}"}}]},
                ])),
            ], "onDone": "Done"},
            {"name": "Done", "terminal": true},
        ],
    }))
    .await?;
    things
        .until_node("Work/pause", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    let one = json!({"target": {"kind": "Thing", "name": "one"}});
    expect!["refused: nothing waits for an approval"]
        .assert_eq(&things.command("Approve", one.clone()).await?);
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things
        .until_node("Work/pause", |node| node.get("progress").is_some())
        .await?;
    let machine = things.machine().await?;
    let order = machine.order("one", "Approve", one).await?;
    things.until_phase("Done").await?;
    expect![[r#"signal approved {"by":"ann","verified":false}"#]]
        .assert_eq(&things.key("pause").await?.unwrap());
    let status = machine.commands().get(&order).await?.status;
    let status = status.unwrap_or_default();
    assert_eq!(
        status.target_uid,
        things.all().await?.get("one").await?.uid()
    );
    assert_eq!(status.requester, Some(RequesterStatus::Unverified));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_may_ask_to_be_deleted_soon() -> Result<()> {
    let things = Things::with(waits_in_the_middle()).await?;
    until_it_waits(&things).await?;
    let machine = things.machine().await?;
    let kept = machine.order("one", "Cancel", json!({})).await?;
    let soon = json!({"ttlSecondsAfterFinished": 0});
    machine.order("one", "Resume", soon).await?;
    things
        .world
        .until("the Command is gone", || async {
            let commands = machine.commands().list(&ListParams::default()).await?;
            let names: Vec<String> = commands.iter().map(ResourceExt::name_any).collect();
            Ok(names == [kept.as_str()])
        })
        .await?;
    things.world.stop().await
}

/// A host with these limits, and a Configurator that selects no Thing without a label.
async fn with_limits(limits: CommandLimits) -> Result<Things> {
    let world = World::start_at(&Place::default(), move |builder| {
        builder.command_limits(limits)
    })
    .await?;
    let things = Things { world };
    things.world.apply(&definition("Thing")).await?;
    let mut declared = machine(waits_in_the_middle());
    declared["spec"]["watch"]["labelSelector"] = json!({"matchLabels": {"handled": "yes"}});
    things.world.apply(&declared).await?;
    things.world.settled(&["things"]).await?;
    Ok(things)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_for_an_object_that_is_not_selected_wait_up_to_a_limit() -> Result<()> {
    const LIMIT: usize = 20;
    let things = with_limits(CommandLimits {
        max_pending: LIMIT,
        ..CommandLimits::default()
    })
    .await?;
    things.world.apply(&thing("one", json!({}))).await?;
    let machine = things.machine().await?;
    let mut orders = Vec::new();
    for _ in 0..LIMIT {
        orders.push(machine.order("one", "Restart", json!({})).await?);
    }
    let all_are = async |phase: CommandPhase| {
        let commands = machine.commands().list(&ListParams::default()).await?;
        let statuses = commands.items.iter().map(|command| command.status.as_ref());
        let phases: Vec<_> = statuses.map(|status| status?.phase).collect();
        Ok(phases.iter().filter(|one| **one == Some(phase)).count() == LIMIT)
    };
    things
        .world
        .until("every Command waits", || all_are(CommandPhase::Pending))
        .await?;
    let first = machine.commands().get(&orders[0]).await?.status;
    expect![
        "the Configurator does not select the Thing default/one; the Command waits until it does"
    ]
    .assert_eq(&first.unwrap_or_default().message);
    expect!["refused: 20 Commands of the Configurator wait for objects that it does not select; delete some, or raise the host's setting max_pending_commands"]
        .assert_eq(&things.command("Restart", json!({})).await?);
    things
        .merge(json!({"metadata": {"labels": {"handled": "yes"}}}))
        .await?;
    for order in orders {
        let is_answered = || async { Ok(machine.answer(&order).await?.is_some()) };
        things.world.until("an answer", is_answered).await?;
    }
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_command_is_deleted_when_its_time_is_over() -> Result<()> {
    let things = with_limits(CommandLimits {
        ttl: Duration::from_millis(500),
        ..CommandLimits::default()
    })
    .await?;
    let labels = json!({"metadata": {"labels": {"handled": "yes"}}});
    let mut one = thing("one", json!({}));
    json_patch::merge(&mut one, &labels);
    things.world.apply(&one).await?;
    let machine = things.machine().await?;
    machine.order("one", "Cancel", json!({})).await?;
    things
        .world
        .until("the Command is gone", || async {
            let commands = machine.commands().list(&ListParams::default()).await?;
            Ok(commands.items.is_empty())
        })
        .await?;
    things.world.stop().await
}
