//! The config store and the secret store, stopped, killed, without a leader, sealed.

use anyhow::Result;
use configurator_tests::controlplane::{ControlPlane, Do};

use crate::scene::{Options, Scene, patiently};

/// Requests that may be under way at once, whose answers are lost.
const UNDER_WAY: usize = 4;

/// In the middle of the host's work `end` happens to servers, and `begin` after longer than all back-offs together.
async fn outage(name: &str, sink: &str, servers: &[&str], [end, begin]: [Do; 2]) -> Result<()> {
    let (scene, plane) = Scene::on_own(name, Options::default()).await?;
    scene.begin().await?;
    for server in servers {
        plane.command(end, server).await?;
    }
    scene.go_on().await?;
    let away = scene.outlasts_every_backoff(sink).await;
    for server in servers {
        plane.command(begin, server).await?;
    }
    away?;
    if servers.contains(&"vault") && begin == Do::Start {
        plane.unseal().await?;
    }
    scene.converges(UNDER_WAY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_config_store_is_killed() -> Result<()> {
    let members = ["store-0", "store-1", "store-2"];
    outage(
        "store-killed",
        "configstore",
        &members,
        [Do::Kill, Do::Start],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_config_store_is_stopped() -> Result<()> {
    let members = ["store-0", "store-1", "store-2"];
    outage(
        "store-stopped",
        "configstore",
        &members,
        [Do::Pause, Do::Resume],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_config_store_loses_its_quorum() -> Result<()> {
    let members = ["store-1", "store-2"];
    outage("quorum", "configstore", &members, [Do::Kill, Do::Start]).await
}

/// The leader is lost, and a majority is left: the host goes on before it is back.
async fn no_leader(name: &str, [end, begin]: [Do; 2]) -> Result<()> {
    let (scene, plane) = Scene::on_own(name, Options::default()).await?;
    scene.begin().await?;
    let leader = scene.leader().await?;
    plane.command(end, &leader).await?;
    scene.go_on().await?;
    let converged = scene.converges(UNDER_WAY).await;
    plane.command(begin, &leader).await?;
    converged?;
    assert_ne!(patiently(async || scene.leader().await).await?, leader);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_the_config_store_is_killed() -> Result<()> {
    no_leader("leader-killed", [Do::Kill, Do::Start]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_the_config_store_is_stopped() -> Result<()> {
    no_leader("leader-stopped", [Do::Pause, Do::Resume]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vault_is_killed() -> Result<()> {
    outage(
        "vault-killed",
        "secretstore",
        &["vault"],
        [Do::Kill, Do::Start],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vault_is_stopped() -> Result<()> {
    outage(
        "vault-stopped",
        "secretstore",
        &["vault"],
        [Do::Pause, Do::Resume],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vault_is_sealed() -> Result<()> {
    let (scene, plane): (Scene, ControlPlane) = Scene::on_own("sealed", Options::default()).await?;
    scene.begin().await?;
    scene
        .operator
        .write("sys/seal", serde_json::json!({}))
        .await?;
    scene.go_on().await?;
    scene.outlasts_every_backoff("secretstore").await?;
    plane.unseal().await?;
    scene.converges(UNDER_WAY).await
}
