//! The API server and its etcd, stopped and killed.

use anyhow::Result;
use configurator_tests::controlplane::Do;

use crate::scene::{Options, Scene};

/// Requests that may be under way at once, whose answers are lost.
const UNDER_WAY: usize = 4;

/// Stops or kills a server in the middle of the host's work, for longer than all back-offs together.
async fn outage(name: &str, server: &str, [end, begin]: [Do; 2]) -> Result<()> {
    let directly = Options {
        is_api_proxied: false,
        ..Options::default()
    };
    let (scene, plane) = Scene::on_own(name, directly).await?;
    scene.begin().await?;
    plane.command(end, server).await?;
    let away = match server {
        // The API server answers, and so does its probe.
        "etcd" => scene.delays_outlast_every_backoff().await,
        _ => scene.outlasts_every_backoff("kubernetes").await,
    };
    plane.command(begin, server).await?;
    away?;
    scene.until_api_answers().await?;
    scene.go_on().await?;
    scene.converges(UNDER_WAY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_is_killed() -> Result<()> {
    outage("api-killed", "kube-apiserver", [Do::Kill, Do::Start]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_is_stopped() -> Result<()> {
    outage("api-stopped", "kube-apiserver", [Do::Pause, Do::Resume]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_etcd_of_the_api_is_killed() -> Result<()> {
    outage("etcd-killed", "etcd", [Do::Kill, Do::Start]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_etcd_of_the_api_is_stopped() -> Result<()> {
    outage("etcd-stopped", "etcd", [Do::Pause, Do::Resume]).await
}
