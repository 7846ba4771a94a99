//! Connections that are cut, that trickle, and that are half open.

use std::time::Duration;

use anyhow::Result;
use configurator_core::backoff::mix;
use configurator_tests::proxy::{Line, Proxy};

use crate::scene::{Options, Scene};

/// Requests that may be under way at once: each connection that is cut can lose so many answers.
const UNDER_WAY: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_every_server_are_cut_again_and_again() -> Result<()> {
    const CUTS: usize = 6;
    let scene = Scene::on_shared("cuts", Options::default()).await?;
    scene.create().await?;
    let mut number = 0;
    for cut in 0..CUTS {
        // At a point of the work that is another one each time.
        number += 1 + usize::try_from(mix(7 ^ mix(cut as u64)) % 5)?;
        scene.until_configured(number).await?;
        let proxies = [&scene.kubernetes, &scene.vault, &scene.store[0]];
        proxies.iter().for_each(|proxy| proxy.cut());
    }
    scene.go_on().await?;
    scene.converges(CUTS * 3 * UNDER_WAY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_every_server_trickle() -> Result<()> {
    let scene = Scene::on_shared("trickle", Options::default()).await?;
    for proxy in [&scene.kubernetes, &scene.vault, &scene.store[0]] {
        proxy.set_line(Line::Slow {
            bytes: 200,
            pause: Duration::from_millis(5),
        });
    }
    scene.create().await?;
    scene.until_configured(10).await?;
    scene.go_on().await?;
    scene.converges(0).await
}

/// In the middle of the work every connection is held, and new ones are accepted and held as well.
async fn half_open(name: &str, sink: &str, proxy: impl Fn(&Scene) -> &Proxy) -> Result<()> {
    let scene = Scene::on_shared(name, Options::default()).await?;
    scene.begin().await?;
    proxy(&scene).set_line(Line::Held);
    scene.go_on().await?;
    scene.outlasts_every_backoff(sink).await?;
    scene.converges(UNDER_WAY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_the_api_are_half_open() -> Result<()> {
    half_open("held-api", "kubernetes", |scene| &scene.kubernetes).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_etcd_are_half_open() -> Result<()> {
    half_open("held-etcd", "configstore", |scene| &scene.store[0]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_vault_are_half_open() -> Result<()> {
    half_open("held-vault", "secretstore", |scene| &scene.vault).await
}
