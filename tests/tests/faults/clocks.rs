//! A host whose clock differs from those of its servers by an hour. Leases, waits and times to come back count as before.

use anyhow::Result;

use crate::refusals::{TOO_MANY, refuse};
use crate::scene::{Options, Scene, Shifted};

async fn off_by(name: &str, seconds: i64) -> Result<()> {
    let options = Options {
        clock: Shifted { seconds },
        ..Options::default()
    };
    let scene = Scene::on_shared(name, options).await?;
    refuse(&scene, &[&scene.kubernetes, &scene.vault], TOO_MANY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_is_an_hour_ahead() -> Result<()> {
    off_by("ahead", 3600).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_is_an_hour_behind() -> Result<()> {
    off_by("behind", -3600).await
}
