//! Hosts that share the objects of a Configurator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[path = "../../../host/guest/tests/fixture/mod.rs"]
mod fixture;

mod books;
mod canary;
mod fleet;
mod groups;
mod journal;
mod partition;
mod processes;
mod restored;

use std::time::Duration;

use anyhow::Result;
use expect_test::expect;

use crate::fleet::Fleet;

#[tokio::test(start_paused = true)]
async fn every_object_is_run_by_one_of_the_hosts() -> Result<()> {
    let mut fleet = Fleet::open(3).await?;
    for name in ["a", "b", "c"] {
        fleet.join(name).await?;
    }
    fleet.shared_out().await?;
    fleet.make(60).await?;
    fleet.done().await?;
    let loads = fleet.journal.loads();
    assert_eq!(loads.values().sum::<usize>(), 60);
    assert_eq!(loads.len(), 3, "{loads:?}");
    let status = fleet.status().await?;
    expect![[r#"
        Ready True Running
        Reconciling False AsExpected
        Stalled False AsExpected
        ModuleLoaded True Loaded
        Bootstrapped True Settled
        Degraded False AsExpected
        Permitted True AllAllowed
        a: shards 1
        b: shards 1
        c: shards 1
    "#]]
    .assert_eq(&status);
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn with_one_shard_the_others_stand_by() -> Result<()> {
    let mut fleet = Fleet::open(1).await?;
    fleet.join("a").await?;
    fleet.join("b").await?;
    fleet.shared_out().await?;
    fleet.make(20).await?;
    fleet.done().await?;
    assert_eq!(fleet.journal.loads().len(), 1);
    let leader = fleet.journal.loads().into_keys().next().unwrap();
    fleet.leave(&leader).await?;
    fleet.change_all().await?;
    fleet.done().await?;
    assert_eq!(fleet.journal.loads().len(), 2);
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_while_its_shard_has_no_host_is_cleaned_up() -> Result<()> {
    let mut fleet = Fleet::open(2).await?;
    fleet.join("a").await?;
    fleet.shared_out().await?;
    fleet.make(10).await?;
    fleet.done().await?;
    fleet.kill("a").await?;
    fleet.delete("object-3").await?;
    fleet.join("b").await?;
    fleet.done().await?;
    fleet.gone("object-3").await?;
    fleet.stop().await
}

/// Hosts are killed, cut off from the API, robbed of their Leases, and leave, while objects change.
#[tokio::test(start_paused = true)]
async fn a_hundred_forced_hand_overs_lose_and_double_nothing() -> Result<()> {
    let mut fleet = Fleet::open(4).await?;
    for name in ["a", "b", "c"] {
        fleet.join(name).await?;
    }
    fleet.shared_out().await?;
    fleet.make(40).await?;
    let mut round = 0;
    while fleet.journal.hand_overs() < 100 {
        let victim = ["a", "b", "c"][round % 3];
        match round % 4 {
            0 => {
                fleet.kill(victim).await?;
                fleet.change_all().await?;
                fleet.join(victim).await?;
            }
            1 => {
                fleet.cut_off(victim);
                // Runs are under way at whatever moment the leases end.
                for _ in 0..6 {
                    fleet.change_all().await?;
                    tokio::time::sleep(Duration::from_secs(3)).await;
                }
                fleet.taken_over(victim).await?;
                fleet.change_all().await?;
                fleet.reconnect(victim);
            }
            2 => {
                fleet.rob(victim).await?;
                fleet.change_all().await?;
            }
            _ => {
                fleet.leave(victim).await?;
                fleet.change_all().await?;
                fleet.join(victim).await?;
            }
        }
        fleet.shared_out().await?;
        fleet.done().await?;
        round += 1;
        assert!(round < 200, "{}", fleet.journal.hand_overs());
    }
    fleet.journal.check();
    fleet.stop().await
}
