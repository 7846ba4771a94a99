//! Modules that are files.

use std::time::Duration;

use anyhow::Result;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::observer::Notice;
use configurator_tests::guests::{digest, variant};
use configurator_tests::witness::Witness;
use configurator_tests::world::{Place, World};
use serde_json::json;

use crate::swap::{config_map, configurator, scripted};

#[tokio::test]
async fn a_file_that_is_replaced_is_swapped_in() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scripted.wasm");
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    std::fs::write(&file, &one)?;
    let witness = Witness::new();
    let world = World::start_at(&Place::default(), |builder| {
        let modules = ModuleDirectory::new(folder.path()).every(Duration::from_millis(10));
        builder.modules(modules).observer(witness.clone())
    })
    .await?;
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await?;
    world.apply(&configurator()).await?;
    world.apply(&config_map("a", "1")).await?;
    world
        .until("a run", async || Ok(witness.passes().len() == 1))
        .await?;
    // Not renamed but written over, in two parts: whatever is read between is not run.
    std::fs::write(&file, &two[..two.len() / 2])?;
    witness
        .next(0, |notice| matches!(notice, Notice::Refused { .. }))
        .await;
    std::fs::write(&file, &two)?;
    world
        .until("another run", async || Ok(witness.passes().len() == 2))
        .await?;
    assert_eq!(witness.passes()[0].module(), digest(&one));
    assert_eq!(witness.passes()[1].module(), digest(&two));
    // Gone is not broken: what runs goes on, and is looked for.
    std::fs::remove_file(&file)?;
    witness
        .next(0, |notice| matches!(notice, Notice::Waiting { .. }))
        .await;
    world.apply(&config_map("a", "2")).await?;
    world
        .until("a third run", async || Ok(witness.passes().len() == 3))
        .await?;
    assert_eq!(witness.passes()[2].module(), digest(&two));
    world.stop().await
}
