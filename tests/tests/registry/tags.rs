//! Tags that move, and registries that go away and come back.

use anyhow::Result;
use configurator_tests::guests::digest;
use configurator_tests::registry::RegistryServer;
use serde_json::json;

use crate::bench::{Given, configurator, oci, options, push, runs, told, variant, world};

#[tokio::test]
async fn a_tag_that_moves_swaps_the_module() -> Result<()> {
    let server = RegistryServer::start().await?;
    push(&server, "team/scripted:1", variant(1)).await?;
    let world = world(options(&server), Given::default()).await?;
    world
        .apply(&configurator(&oci(&server, "team/scripted:1")))
        .await?;
    runs(&world, &variant(1)).await?;
    push(&server, "team/scripted:1", variant(2)).await?;
    runs(&world, &variant(2)).await?;
    world.stop().await
}

#[tokio::test]
async fn what_is_pinned_stays() -> Result<()> {
    let server = RegistryServer::start().await?;
    let first = push(&server, "team/scripted:1", variant(1)).await?;
    let folder = tempfile::tempdir()?;
    let given = Given {
        copies: Some(folder.path()),
        ..Given::default()
    };
    let world = world(options(&server), given).await?;
    let mut module = oci(&server, "team/scripted:1");
    module["digest"] = digest(&variant(1)).into();
    world.apply(&configurator(&module)).await?;
    runs(&world, &variant(1)).await?;

    // By the digest of its manifest as well, which the tag has left.
    push(&server, "team/scripted:1", variant(2)).await?;
    let pinned = format!("team/scripted@{}", first.digest());
    world.apply(&configurator(&oci(&server, &pinned))).await?;
    told(&world, ("True", "Loaded"), &digest(&variant(1))).await?;

    // A digest that the tag does not have, and no copy either.
    module["digest"] = digest(&variant(3)).into();
    world.apply(&configurator(&module)).await?;
    told(&world, ("False", "DigestMismatch"), "goes on running").await?;
    // One that was here once is found, though the tag has another.
    module["digest"] = digest(&variant(1)).into();
    world.apply(&configurator(&module)).await?;
    told(&world, ("True", "Loaded"), &digest(&variant(1))).await?;
    world.stop().await
}

#[tokio::test]
async fn while_the_registry_is_away_what_was_pulled_runs() -> Result<()> {
    let mut server = RegistryServer::start().await?;
    push(&server, "team/scripted:1", variant(1)).await?;
    let folder = tempfile::tempdir()?;
    let given = Given {
        copies: Some(folder.path()),
        ..Given::default()
    };
    let one = world(options(&server), given.clone()).await?;
    one.apply(&configurator(&oci(&server, "team/scripted:1")))
        .await?;
    runs(&one, &variant(1)).await?;
    server.end().await?;
    told(
        &one,
        ("True", "SourceUnavailable"),
        "the registry cannot be asked now",
    )
    .await?;
    one.stop().await?;

    // A host that starts meanwhile finds the copy, and takes the newer one when it can.
    let other = world(options(&server), given).await?;
    other
        .apply(&configurator(&oci(&server, "team/scripted:1")))
        .await?;
    runs(&other, &variant(1)).await?;
    told(
        &other,
        ("True", "SourceUnavailable"),
        "the registry cannot be asked now",
    )
    .await?;
    server.begin().await?;
    told(&other, ("True", "Loaded"), &digest(&variant(1))).await?;
    push(&server, "team/scripted:1", variant(2)).await?;
    runs(&other, &variant(2)).await?;
    other.stop().await
}

#[tokio::test]
async fn without_a_copy_the_registry_is_waited_for() -> Result<()> {
    let mut server = RegistryServer::start().await?;
    push(&server, "team/scripted:1", variant(1)).await?;
    server.end().await?;
    let world = world(options(&server), Given::default()).await?;
    world
        .apply(&configurator(&oci(&server, "team/scripted:1")))
        .await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "the registry cannot be asked now",
    )
    .await?;
    server.begin().await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}

#[tokio::test]
async fn what_is_not_there_or_no_module_is_said() -> Result<()> {
    let server = RegistryServer::start().await?;
    let world = world(options(&server), Given::default()).await?;
    world
        .apply(&configurator(&oci(&server, "team/none:1")))
        .await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "the registry has nothing of this name",
    )
    .await?;
    push(&server, "team/none:1", b"no component".to_vec()).await?;
    told(&world, ("False", "ModuleInvalid"), "").await?;
    // What is not what was pinned is not even looked into.
    let mut pinned = oci(&server, "team/none:1");
    pinned["digest"] = digest(&variant(1)).into();
    world.apply(&configurator(&pinned)).await?;
    told(
        &world,
        ("False", "DigestMismatch"),
        &digest(b"no component"),
    )
    .await?;
    world
        .apply(&configurator(&json!({"oci": {"reference": "Not A Name"}})))
        .await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "is no name in a registry",
    )
    .await?;
    world.stop().await
}
