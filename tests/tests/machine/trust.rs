//! States that somebody else has written are not run.

use anyhow::Result;
use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};

use super::things::*;

/// Waits in the middle, for `go`.
fn spec() -> Value {
    json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            put("before", "1"),
            steps("pause", json!([{"wait": {"signals": ["go"]}}, {}])),
            put("after", "1"),
        ]},
        {"name": "Done", "terminal": true},
    ]})
}

async fn waiting() -> Result<Things> {
    let things = Things::with(spec()).await?;
    things
        .until_node("Work/pause", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    Ok(things)
}

/// What the host says of the object after somebody has written this to its status.
async fn check(patch: impl FnOnce(&Value) -> Value, expected: Expect) -> Result<()> {
    let things = waiting().await?;
    let status = things.get("one").await?["status"].clone();
    things
        .merge_status(json!({"status": patch(&status)}))
        .await?;
    let go = json!({"signal": {"name": "go"}});
    let told = things.command("Signal", go);
    let told = tokio::select! {
        _ = told => "it goes on".to_owned(),
        why = things.until_given_up() => why?,
    };
    expected.assert_eq(&told);
    assert_eq!(things.key("after").await?, None, "nothing is done");
    // A person has it begin anew.
    things.drop_key("before").await?;
    assert_eq!(things.command("Restart", json!({})).await?, "done");
    things.until_key("before").await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_phase_is_noticed() -> Result<()> {
    check(|_| json!({"phase": "Done"}), expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phase_that_does_not_exist_is_noticed() -> Result<()> {
    check(|_| json!({"phase": "Nowhere"}), expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_node_is_noticed() -> Result<()> {
    check(
        |_| json!({"state": {"Work": {"state": {"pause": {"done": true}}}}}),
        expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_another_form_is_noticed() -> Result<()> {
    check(
        |_| json!({"state": {"Work": {"done": "yes", "more": [1]}}}),
        expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_taken_away_is_noticed() -> Result<()> {
    check(
        |_| json!({"state": {"Work": {"state": {"before": null}}}}),
        expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memento_that_was_taken_away_is_noticed() -> Result<()> {
    check(|_| json!({"memento": null}), expect!["the stored state is not trusted, so nothing is done: its memento was taken away. A Command with verb Restart begins anew, at the initial phase"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_was_taken_away_is_noticed() -> Result<()> {
    check(|_| Value::Null, expect!["the stored state is not trusted, so nothing is done: its memento was taken away. A Command with verb Restart begins anew, at the initial phase"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memento_that_is_none_is_noticed() -> Result<()> {
    check(|_| json!({"memento": "2.2.base.seal.{}"}), expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"]).await?;
    check(
        |_| json!({"memento": "x".repeat(100_000)}),
        expect!["the stored state is not trusted, so nothing is done: its memento is none that a host of this version has written. A Command with verb Restart begins anew, at the initial phase"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_great_depth_is_noticed() -> Result<()> {
    let deep = (0..40).fold(
        json!({"done": true}),
        |below, _| json!({"state": {"x": below}}),
    );
    check(move |_| json!({"state": {"Work": deep}}), expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_great_size_is_noticed() -> Result<()> {
    let nodes: Map<String, Value> = (0..5_000)
        .map(|number| {
            (
                format!("node-{number}"),
                json!({"done": true, "startTime": "1970-01-01T00:00:00.000Z"}),
            )
        })
        .collect();
    check(
        move |_| json!({"state": {"Work": {"state": nodes}}}),
        expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_another_object_is_noticed() -> Result<()> {
    let things = waiting().await?;
    things.world.apply(&thing("two", json!({}))).await?;
    let two = || async { Ok(things.get("two").await?["status"]["memento"].is_string()) };
    things.world.until("the other waits", two).await?;
    let other = things.get("two").await?["status"].clone();
    things.put_status(&other).await?;
    let why = things.until_given_up().await?;
    expect!["the stored state is not trusted, so nothing is done: its phase, its nodes or its memento were changed by somebody else than a host. A Command with verb Restart begins anew, at the initial phase"].assert_eq(&why);
    assert_eq!(things.key("after").await?, None, "nothing is done");
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_state_that_is_put_back_is_noticed() -> Result<()> {
    let things = waiting().await?;
    let older = things.get("one").await?["status"].clone();
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.until_phase("Done").await?;
    things.world.settled(&["things"]).await?;
    things.drop_key("after").await?;
    things.put_status(&older).await?;
    let told = things.command("Signal", json!({"signal": {"name": "go"}}));
    let why = tokio::select! {
        told = told => panic!("it goes on: {told:?}"),
        why = things.until_given_up() => why?,
    };
    expect!["the stored state is not trusted, so nothing is done: an older state was put back: revision 2, after 5 was stored. A Command with verb Restart begins anew, at the initial phase"].assert_eq(&why);
    assert_eq!(things.key("after").await?, None, "no step is done twice");
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_for_people_can_be_written_by_anybody_and_changes_nothing() -> Result<()> {
    let things = waiting().await?;
    things
        .merge_status(json!({"status": {"state": {"Work": {"description": "mine"}}, "mine": 1}}))
        .await?;
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.until_phase("Done").await?;
    assert_eq!(things.get("one").await?["status"]["mine"], 1);
    things.world.stop().await
}
