//! A host that restarts during a canary, or after its rollback, without a copy of the previous module.

use anyhow::Result;
use configurator_host::observer::Notice;
use configurator_tests::guests::{digest, variant};
use configurator_tests::shelf::Shelf;
use configurator_tests::witness::Witness;
use configurator_tests::world::{Place, Servers, World};
use serde_json::json;

use crate::canary::{broken, with_canary};
use crate::swap::{condition, config_map, event, scripted, status};

const OBJECTS: usize = 8;

async fn start(servers: &Servers, shelf: &Shelf, witness: &Witness) -> Result<World> {
    World::start_on(servers.clone(), |builder| {
        builder.modules(shelf.clone()).observer(witness.clone())
    })
    .await
}

/// A host that has run one module for all objects, and tries what comes next on nearly all.
async fn running(servers: &Servers, shelf: &Shelf, witness: &Witness) -> Result<World> {
    let world = start(servers, shelf, witness).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.apply(&namespace).await?;
    let canary = json!({"percent": 99, "duration": "1h", "minRuns": 1, "maxFaults": 0});
    world.apply(&with_canary(canary)).await?;
    for number in 0..OBJECTS {
        world.apply(&config_map(&format!("a{number}"), "1")).await?;
    }
    world
        .until("a run of each", async || {
            Ok(witness.passes().len() == OBJECTS)
        })
        .await?;
    world.settled(&["scripted"]).await?;
    Ok(world)
}

/// Returns what is said when nothing is run because the module before is missing.
async fn refused(world: &World, witness: &Witness, before: &[u8]) -> Result<String> {
    world
        .until("it is refused", async || {
            let status = status(world).await?;
            let loaded = condition(&status, "ModuleLoaded");
            Ok(loaded["reason"] == "PredecessorMissing" && loaded["status"] == "False")
        })
        .await?;
    // What ran before is remembered, however often the host is started.
    assert_eq!(status(world).await?["moduleDigest"], digest(before));
    assert_eq!(witness.passes(), []);
    event(world, "PredecessorMissing").await
}

#[tokio::test]
async fn what_was_rolled_back_does_not_run_although_nothing_else_is_there() -> Result<()> {
    let (good, bad) = (variant(&scripted(), 1), broken());
    let servers = Place::default().open().await?;
    let (shelf, witness) = (Shelf::with(good.clone()), Witness::new());
    let world = running(&servers, &shelf, &witness).await?;
    shelf.put(Ok(bad.clone()));
    world
        .until("it is rolled back", async || {
            Ok(status(&world).await?["rolledBack"]["digest"] == digest(&bad))
        })
        .await?;
    world.stop().await?;

    let witness = Witness::new();
    let world = start(&servers, &shelf, &witness).await?;
    let said = refused(&world, &witness, &good).await?;
    assert!(
        said.contains("configurator rollback scripted --to"),
        "{said}"
    );
    assert_eq!(status(&world).await?["rolledBack"]["digest"], digest(&bad));
    // It runs as soon as there is something that may.
    shelf.put(Ok(good.clone()));
    world
        .until("all have the good one", async || {
            let status = status(&world).await?;
            let is_loaded = condition(&status, "Ready")["status"] == "True";
            Ok(is_loaded && witness.passes().len() == OBJECTS)
        })
        .await?;
    assert!(
        witness
            .passes()
            .iter()
            .all(|pass| pass.module() == digest(&good))
    );
    world.stop().await
}

#[tokio::test]
async fn a_canary_does_not_handle_all_objects_when_the_stable_module_is_missing() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let servers = Place::default().open().await?;
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let world = running(&servers, &shelf, &witness).await?;
    shelf.put(Ok(two.clone()));
    witness
        .next(0, |notice| matches!(notice, Notice::CanaryStarted { .. }))
        .await;
    world.stop().await?;

    let witness = Witness::new();
    let world = start(&servers, &shelf, &witness).await?;
    let said = refused(&world, &witness, &one).await?;
    assert!(said.contains("is a canary"), "{said}");
    // A person decides, as `configurator rollback --to` does.
    let mut taken = with_canary(json!({"percent": 99, "duration": "1h"}));
    taken["metadata"]["annotations"] = json!({"configurator.dev/rollback": digest(&two)});
    taken["spec"]["module"]["digest"] = digest(&two).into();
    world.apply(&taken).await?;
    world
        .until("all have it", async || {
            let status = status(&world).await?;
            let is_it = status["moduleDigest"] == digest(&two);
            Ok(is_it && witness.passes().len() == OBJECTS)
        })
        .await?;
    assert_eq!(status(&world).await?["previousModuleDigest"], digest(&one));
    world.stop().await
}
