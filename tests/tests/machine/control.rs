//! People, and other controllers, tell machines what to do.

use anyhow::Result;
use expect_test::expect;
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
            pause: skipped, skipped "confirmed by phone (ann)", progress {"message":"waits for a person","percent":0}
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
    let other = json!({"target": {"name": "one", "uid": "another"}});
    expect!["refused: there is no Thing default/one with the uid another"]
        .assert_eq(&things.command("Cancel", other).await?);
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
