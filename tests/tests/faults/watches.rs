//! Watches that break off, and whose past is gone when they come back.

use anyhow::Result;
use configurator_tests::controlplane::Do;
use configurator_tests::proxy::{Line, Rule};
use etcd_client::CompactionOptions;

use crate::scene::{Options, PODS, Scene, revision};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_break_off_at_random() -> Result<()> {
    const BREAKS: u64 = 3;
    let scene = Scene::on_shared("watches", Options::default()).await?;
    scene.kubernetes.set_rule(Rule::BreakWatches { parts: 4 });
    // Those that there are already would hold.
    scene.kubernetes.cut();
    for number in 0..PODS {
        scene.create_pod(number).await?;
        if scene.kubernetes.broken() < BREAKS {
            // So that there is news again and again.
            scene.until_configured(number.saturating_sub(2)).await?;
        }
    }
    assert!(scene.kubernetes.broken() >= BREAKS);
    scene.go_on().await?;
    scene.converges(0).await
}

/// While the watch is cut, objects come, change and go, and the API's etcd forgets its past.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_of_a_watch_is_compacted() -> Result<()> {
    let (scene, plane) = Scene::on_own("compaction", Options::default()).await?;
    scene.begin().await?;
    scene.kubernetes.set_line(Line::Held);
    scene.go_on().await?;
    let mut etcd = scene.about.etcd(&[&scene.about.kubernetes.etcd]).await?;
    let now = revision(&mut etcd).await?;
    let physical = CompactionOptions::new().with_physical();
    etcd.compact(now, Some(physical)).await?;
    // What the API server itself remembers of the past goes with it.
    plane.command(Do::Kill, "kube-apiserver").await?;
    plane.command(Do::Start, "kube-apiserver").await?;
    scene.until_api_answers().await?;
    let lists = scene.lists()?;
    scene.converges(4).await?;
    assert!(scene.lists()? > lists, "the watch went on where it was");
    Ok(())
}
