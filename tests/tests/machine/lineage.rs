//! A state is accepted only where it follows what the Configurator of this name has last recorded of the object.

use std::time::Duration;

use anyhow::Result;
use configurator_tests::gate::{Gate, Pass};
use configurator_tests::machine::{Machine, definition};
use configurator_tests::world::{Place, Servers, World};
use expect_test::expect;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::things::*;

/// Waits in the middle, for `go`, before it sends once.
fn spec() -> Value {
    let mut once = put("sent", "1");
    once["once"] = json!(true);
    json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            put("before", "1"),
            steps("pause", json!([{"wait": {"signals": ["go"]}}, {}])),
            once,
        ]},
        {"name": "Done", "terminal": true},
    ]})
}

/// Returns when `one` waits, and its host has nothing left to do.
async fn until_waiting(things: &Things) -> Result<()> {
    things
        .until_node("Work/pause", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await
}

fn go() -> Value {
    json!({"signal": {"name": "go"}})
}

/// Returns why the Configurator refuses to go on with the object.
async fn refusal(things: &Things) -> Result<String> {
    let told = things.command("Signal", go());
    tokio::select! {
        told = told => panic!("it goes on: {told:?}"),
        why = things.until_given_up() => why,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_goes_on_when_its_configurator_is_made_again() -> Result<()> {
    let things = Things::with(spec()).await?;
    until_waiting(&things).await?;
    things.drop_key("before").await?;
    things.drop_configurator().await?;
    things.world.apply(&machine(spec())).await?;
    assert_eq!(things.command("Signal", go()).await?, "done");
    things.until_phase("Done").await?;
    assert_eq!(things.key("before").await?, None, "no step is done twice");
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_state_is_refused_when_the_configurator_is_made_again() -> Result<()> {
    let things = Things::with(spec()).await?;
    until_waiting(&things).await?;
    let older = things.get("one").await?["status"].clone();
    assert_eq!(things.command("Signal", go()).await?, "done");
    things.until_phase("Done").await?;
    things.world.settled(&["things"]).await?;
    things.drop_key("sent").await?;
    things.drop_configurator().await?;
    things.put_status(&older).await?;
    things.world.apply(&machine(spec())).await?;
    let why = refusal(&things).await?;
    expect!["the stored state is not trusted, so nothing is done: an older state was put back: revision 2, after 6 was stored. A Command with verb Restart begins anew, at the initial phase"].assert_eq(&why);
    assert_eq!(things.key("sent").await?, None, "nothing is sent twice");
    // A person has it begin anew.
    assert_eq!(things.command("Restart", json!({})).await?, "done");
    until_waiting(&things).await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_does_not_move_between_configurators() -> Result<()> {
    let things = Things::with(spec()).await?;
    until_waiting(&things).await?;
    let mut other = machine(spec());
    other["metadata"]["name"] = json!("others");
    other["spec"]["machine"]["state"] = json!({
        "phasePath": ".status.other.phase",
        "statePath": ".status.other.state",
        "mementoPath": ".status.other.memento",
    });
    other["spec"]["watch"]["labelSelector"] = json!({"matchLabels": {"other": "yes"}});
    assert_eq!(things.command("Signal", go()).await?, "done");
    things.until_phase("Done").await?;
    things.world.settled(&["things"]).await?;
    let moved = things.get("one").await?["status"].clone();
    things.drop_key("sent").await?;
    things.world.apply(&other).await?;
    things
        .merge(json!({"metadata": {"labels": {"other": "yes"}}}))
        .await?;
    let client = &things.world.client;
    let others = Machine::of(client, "others", "example.org/v1", "Thing", "default").await?;
    others
        .until("one", "the other waits", |thing| {
            thing
                .pointer("/status/other/state/Work/state/pause/startTime")
                .is_some()
        })
        .await?;
    things.world.settled(&["things", "others"]).await?;
    let moved = json!({
        "phase": moved["phase"], "state": moved["state"], "memento": moved["memento"],
    });
    things
        .merge_status(json!({"status": {"other": null}}))
        .await?;
    things
        .merge_status(json!({"status": {"other": moved}}))
        .await?;
    let told = others.command("one", "Signal", go());
    let why = tokio::select! {
        told = told => panic!("it goes on: {told:?}"),
        why = things.until_given_up_by("others") => why?,
    };
    expect!["the stored state is not trusted, so nothing is done: it does not follow revision 2, the newest on record: it is a state of another Configurator, or one that was replaced. A Command with verb Restart begins anew, at the initial phase"].assert_eq(&why);
    things.world.stop().await
}

/// Before a request is sent that must not be sent twice, the config store knows the revision that says so.
async fn a_rollback_does_not_send_again(place: Value) -> Result<String> {
    let servers = Place::default().open().await?;
    let gate = Gate::new(Pass::Open);
    let before = gate.clone();
    let world = World::start_on(servers.clone(), |builder| {
        builder.decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    let things = Things { world };
    things.world.apply(&definition("Thing")).await?;
    let mut spec = spec();
    spec["state"] = place;
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    until_waiting(&things).await?;
    let older = things.get("one").await?["status"].clone();
    gate.set(Pass::Held);
    let arrived = gate.arrived();
    let _ = things.machine().await?.order("one", "Signal", go()).await?;
    gate.arrivals(arrived + 1).await;
    things.world.kill().await?;
    put_back(&servers, &older).await?;
    let world = World::start_on(servers, |builder| builder).await?;
    let things = Things { world };
    let why = refusal(&things).await?;
    assert_eq!(things.key("sent").await?, None, "nothing is sent twice");
    things.world.stop().await?;
    Ok(why)
}

async fn put_back(servers: &Servers, status: &Value) -> Result<()> {
    let client = &servers.cluster.client;
    let things: Api<DynamicObject> =
        configurator_host::objects::api(client, "example.org/v1", "Thing", "default").await?;
    let mut thing = things.get("one").await?;
    thing.data["status"] = status.clone();
    let body = serde_json::to_vec(&thing)?;
    let body = serde_json::from_slice(&body)?;
    things
        .replace_status("one", &PostParams::default(), &body)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_not_sent_again_after_a_rollback_of_the_status() -> Result<()> {
    let why = a_rollback_does_not_send_again(json!({"in": "Status"})).await?;
    expect!["the stored state is not trusted, so nothing is done: an older state was put back: revision 2, after 5 was stored. A Command with verb Restart begins anew, at the initial phase"].assert_eq(&why);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_refused_when_its_configurator_was_gone_for_too_long() -> Result<()> {
    let world = World::start_at(&Place::default(), |builder| {
        builder.state_retention(Duration::ZERO)
    })
    .await?;
    let things = Things { world };
    things.world.apply(&definition("Thing")).await?;
    things.world.apply(&machine(spec())).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    until_waiting(&things).await?;
    things.drop_configurator().await?;
    things
        .world
        .until("its records are removed", || async {
            let mut keys = things.world.config.scan("revisions/").await?;
            keys.extend(things.world.config.scan("retired/").await?);
            Ok(keys.is_empty())
        })
        .await?;
    things.world.apply(&machine(spec())).await?;
    let why = refusal(&things).await?;
    expect!["the stored state is not trusted, so nothing is done: the config store has no record of it: it is a state of another Configurator, or the record was removed. A Command with verb Restart begins anew, at the initial phase"].assert_eq(&why);
    assert_eq!(things.command("Restart", json!({})).await?, "done");
    until_waiting(&things).await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_kept_for_a_configurator_that_may_be_made_again() -> Result<()> {
    let things = Things::with(spec()).await?;
    until_waiting(&things).await?;
    things.drop_configurator().await?;
    let keys = async |prefix: &str| anyhow::Ok(things.world.config.scan(prefix).await?.len());
    things
        .world
        .until("it is noted that it is gone", async || {
            Ok(keys("retired/").await? == 1)
        })
        .await?;
    assert_eq!(keys("revisions/").await?, 1);
    things.world.apply(&machine(spec())).await?;
    assert_eq!(things.command("Signal", go()).await?, "done");
    things.until_phase("Done").await?;
    things.world.stop().await
}
