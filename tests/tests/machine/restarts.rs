//! A host that goes leaves states, and another goes on from them.

use anyhow::Result;
use configurator_tests::gate::{Gate, Pass};
use configurator_tests::machine::{Machine, definition};
use configurator_tests::world::{Place, World};
use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use super::things::*;

fn place(folder: &TempDir) -> Place {
    Place {
        folder: Some(folder.path().to_owned()),
    }
}

/// A host at this place that knows Things, and before its config store a gate that holds what comes.
async fn held_at(place: &Place) -> Result<(World, Gate)> {
    let gate = Gate::new(Pass::Held);
    let before = gate.clone();
    let world = World::start_at(place, |builder| {
        builder.decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    world.apply(&definition("Thing")).await?;
    Ok((world, gate))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_survives_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = place(&folder);
    let things = Things::start_at(&place).await?;
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            step("before", json!({
                "requests": [{"name": "put", "put": {"key": "before", "value": "{run}"}}],
                "output": 7,
            })),
            steps("pause", json!([
                {"wait": {"signals": ["go"]}, "data": {"noted": 1.0}},
                {"requests": [{"name": "put", "put": {"key": "pause", "value": "{cause} {last} {outputs}"}}]},
            ])),
        ]},
        {"name": "Done", "terminal": true},
    ]});
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things
        .until_node("Work/pause", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    let before = things.key("before").await?;
    things.world.stop().await?;
    let things = Things::start_at(&place).await?;
    things.world.settled(&["things"]).await?;
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.until_phase("Done").await?;
    assert_eq!(
        things.key("before").await?,
        before,
        "what is done is not entered again"
    );
    expect![[r#"signal go  {"data":"{\"noted\":1.0}","failed":false,"results":[]} Work/before=7"#]]
        .assert_eq(&things.key("pause").await?.unwrap());
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_finishes_the_step_and_begins_no_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = place(&folder);
    let (world, gate) = held_at(&place).await?;
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [put("first", "{run}"), put("second", "{cause}")]},
        {"name": "Done", "terminal": true},
    ]});
    world.apply(&machine(spec)).await?;
    world.apply(&thing("one", json!({}))).await?;
    gate.arrivals(1).await;
    world.begin_stop().await;
    let config = world.config.clone();
    gate.set(Pass::Open);
    world.stop().await?;
    let keys = config.scan("basic/").await?;
    assert_eq!(keys.len(), 1, "{keys:?}");
    drop(config);
    let things = Things::start_at(&place).await?;
    things.until_phase("Done").await?;
    assert_eq!(
        things.world.config.scan("basic/first").await?,
        keys,
        "it is done once"
    );
    assert_eq!(things.key("second").await?.as_deref(), Some("recovered"));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_an_hour_does_not_begin_sooner_after_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = place(&folder);
    let things = Things::start_at(&place).await?;
    let entered =
        || json!({"requests": [{"name": "put", "put": {"key": "entered", "value": "{entry}"}}]});
    let mut first = entered();
    first["againAfterMs"] = json!(3_600_000);
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [steps("hour", json!([first, entered()]))]},
        {"name": "Done", "terminal": true},
    ]});
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things
        .until_node("Work/hour", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    things.world.stop().await?;
    let things = Things::start_at(&place).await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.key("entered").await?.as_deref(), Some("1"));
    // A change of the object is a reason to look at once.
    things.merge(json!({"spec": {"hurry": true}})).await?;
    things.until_phase("Done").await?;
    assert_eq!(things.key("entered").await?.as_deref(), Some("2"));
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_under_way_side_by_side_when_a_host_stops_is_finished_and_stored() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = place(&folder);
    let (world, gate) = held_at(&place).await?;
    let branch = |name: &str| {
        let step = |number| put(&format!("{name}{number}"), "{cause}");
        json!({"name": name, "serial": [step(1), step(2)]})
    };
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "parallel": [branch("a"), branch("b"), branch("c")]},
        {"name": "Done", "terminal": true},
    ]});
    world.apply(&machine(spec)).await?;
    world.apply(&thing("one", json!({}))).await?;
    gate.arrivals(3).await;
    world.begin_stop().await;
    gate.set(Pass::Open);
    world.stop().await?;
    let things = Things::start_at(&place).await?;
    things.until_phase("Done").await?;
    for branch in ["a", "b", "c"] {
        let causes = [
            things.key(&format!("{branch}1")).await?,
            things.key(&format!("{branch}2")).await?,
        ];
        assert_eq!(
            causes,
            ["entered", "recovered"].map(|cause| Some(cause.to_owned()))
        );
    }
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_acts_once_whoever_is_there() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = place(&folder);
    let things = Things::start_at(&place).await?;
    let entered = json!({"wait": {"signals": ["go"]}, "requests": [{"name": "put", "put": {"key": "entered", "value": "{entry}"}}]});
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [step("wait", entered)]},
        {"name": "Done", "terminal": true},
    ]});
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    let is_entered = async |things: &Things, entry: &str| {
        things
            .world
            .until(entry, || async {
                Ok(things.key("entered").await?.as_deref() == Some(entry))
            })
            .await
    };
    is_entered(&things, "1").await?;
    let go = || json!({"signal": {"name": "go"}});
    things.command("Signal", go()).await?;
    is_entered(&things, "2").await?;
    things.world.settled(&["things"]).await?;
    things.world.stop().await?;
    {
        let servers = place.open().await?;
        let client = &servers.cluster.client;
        let machine = Machine::of(client, "things", "example.org/v1", "Thing", "default").await?;
        machine.order("one", "Signal", go()).await?;
    }
    let things = Things::start_at(&place).await?;
    is_entered(&things, "3").await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(
        things.key("entered").await?.as_deref(),
        Some("3"),
        "each has acted once"
    );
    things.world.stop().await
}
