//! A canary on hosts that share the objects.

use std::path::Path;

use anyhow::Result;
use configurator_host::resource::ConfiguratorStatus;
use configurator_tests::guests::{self, digest, variant};
use serde_json::json;

use crate::fleet::Fleet;

const OBJECTS: usize = 60;

fn scripted(number: u8) -> Vec<u8> {
    let module = std::fs::read(guests::folder().unwrap().join("scripted.wasm"));
    variant(&module.unwrap(), number)
}

fn put(folder: &Path, module: &[u8]) -> Result<()> {
    let aside = folder.join("aside");
    std::fs::write(&aside, module)?;
    Ok(std::fs::rename(aside, folder.join("scripted.wasm"))?)
}

/// Two hosts, each with some of the objects.
async fn fleet(folder: &Path, canary: serde_json::Value) -> Result<Fleet> {
    put(folder, &scripted(1))?;
    let mut fleet = Fleet::open(2).await?.with_modules(folder);
    fleet.join("a").await?;
    fleet.join("b").await?;
    fleet.shared_out().await?;
    fleet
        .configure(|shared| shared["spec"]["module"]["rollout"] = json!({"canary": canary}))
        .await?;
    fleet.make(OBJECTS).await?;
    fleet.done().await?;
    Ok(fleet)
}

/// The runs that each host has counted.
fn counted(status: &ConfiguratorStatus) -> Vec<u32> {
    let hosts = status.hosts.iter();
    let canaries = hosts.filter_map(|host| host.canary.as_ref());
    canaries.map(|canary| canary.runs).collect()
}

#[tokio::test(start_paused = true)]
async fn what_all_hosts_have_seen_decides_for_all() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let canary = json!({"percent": 50, "duration": "10m", "minRuns": 1000});
    let fleet = fleet(folder.path(), canary).await?;
    let two = scripted(2);
    put(folder.path(), &two)?;
    fleet
        .until_status("the runs of both are added up", |status| {
            let counted = counted(status);
            let all = status.canary.as_ref().map(|canary| canary.runs);
            let is_awaited = status
                .canary
                .as_ref()
                .is_some_and(|canary| canary.awaits.contains("objects"));
            counted.len() == 2
                && counted.iter().all(|runs| *runs > 0)
                && all == Some(counted.iter().sum())
                && !is_awaited
        })
        .await?;
    // Time passes.
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    fleet
        .until_status("both have it for all", |status| {
            let has_it = |digest_of: &Option<String>| *digest_of == Some(digest(&two));
            status.hosts.len() == 2
                && has_it(&status.module_digest)
                && status
                    .hosts
                    .iter()
                    .all(|host| has_it(&host.module_digest) && host.canary.is_none())
        })
        .await?;
    fleet.done().await?;
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn what_is_not_good_enough_is_given_up_by_all() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let canary = json!({"percent": 50, "duration": "1h", "minRuns": 1, "maxFaults": 0});
    let fleet = fleet(folder.path(), canary).await?;
    // It has the handlers, and traps in them.
    let bad = crate::fixture::Guest::new()
        .describe(json!({"handlers": [crate::fixture::handler("root")]}))
        .body("unreachable")
        .build();
    put(folder.path(), &bad)?;
    fleet
        .until_status("both have given it up", |status| {
            let is_it = |host: &configurator_host::resource::HostStatus| {
                let rolled_back = host.rolled_back.as_ref();
                let is_bad = rolled_back.is_some_and(|one| one.digest == digest(&bad));
                is_bad && host.module_digest == Some(digest(&scripted(1)))
            };
            status.hosts.len() == 2 && status.hosts.iter().all(is_it)
        })
        .await?;
    fleet.done().await?;
    fleet.stop().await
}
