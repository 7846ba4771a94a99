//! The control plane is restored from a backup: what its Leases say, and their versions, go back.

use anyhow::Result;

use crate::fleet::Fleet;

#[tokio::test(start_paused = true)]
async fn hosts_go_on_when_the_control_plane_is_restored() -> Result<()> {
    let mut fleet = Fleet::open(4).await?;
    fleet.join("a").await?;
    fleet.shared_out().await?;
    fleet.make(10).await?;
    fleet.done().await?;
    // All shards are the first host's.
    let backup = fleet.backup()?;
    fleet.join("b").await?;
    fleet.shared_out().await?;
    for _ in 0..5 {
        fleet.change_all().await?;
        fleet.done().await?;
    }
    fleet.restore(backup).await?;
    fleet.change_all().await?;
    fleet
        .until("it is noticed", || fleet.rollbacks() > 0)
        .await?;
    fleet.done().await?;
    fleet.shared_out().await?;
    fleet.change_all().await?;
    fleet.done().await?;
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn hosts_that_start_after_the_control_plane_was_restored_take_over() -> Result<()> {
    let mut fleet = Fleet::open(2).await?;
    fleet.join("a").await?;
    fleet.shared_out().await?;
    let backup = fleet.backup()?;
    fleet.leave("a").await?;
    for name in ["b", "c", "d"] {
        fleet.join(name).await?;
        fleet.shared_out().await?;
        fleet.make(4).await?;
        fleet.done().await?;
        fleet.kill(name).await?;
    }
    fleet.restore(backup).await?;
    fleet.join("e").await?;
    fleet.shared_out().await?;
    fleet.make(4).await?;
    fleet.done().await?;
    assert!(fleet.rollbacks() > 0);
    fleet.stop().await
}
