//! The configurators with machines, from their first phase to their last, on embedded and on real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use anyhow::Result;
use configurator_tests::controlplane::ControlPlane;

mod clusters;
mod infrastructure;
mod kills;
mod migration;
mod move_to_vpc;
mod shared_storage_cluster;

/// One after the other: each host runs every Configurator that the API has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_run_on_real_servers() -> Result<()> {
    let servers = ControlPlane::shared().await?;
    move_to_vpc::instances_move(servers.servers().await?).await?;
    shared_storage_cluster::a_cluster_lives(servers.servers().await?).await
}
