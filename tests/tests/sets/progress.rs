//! What people see of a set while the host works on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use configurator_core::time::Timestamp;
use configurator_host::clock::{Clock, SystemClock};
use configurator_tests::gate::{Gate, Pass};
use serde_json::json;

use crate::scene::{Scene, entry};

/// The system's clock, which can be set forward.
#[derive(Clone, Default)]
struct Forward(Arc<AtomicU64>);

#[async_trait]
impl Clock for Forward {
    fn now(&self) -> Timestamp {
        let seconds = self.0.load(Ordering::Relaxed);
        SystemClock.now().after(Duration::from_secs(seconds))
    }

    async fn sleep(&self, span: Duration) {
        SystemClock.sleep(span).await;
    }
}

/// The write of one member takes long. Meanwhile the status says which others are ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_set_is_published_while_members_are_written() -> Result<()> {
    let (clock, gate) = (Forward::default(), Gate::new(Pass::Held));
    let (own, before) = (clock.clone(), gate.clone());
    let scene = Scene::embedded_with("progress", |builder| {
        builder
            .clock(own)
            .decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    scene
        .configure(|object| {
            let verbs = ["get", "create", "update", "delete"];
            object["spec"]["capabilities"]["configstore"] =
                json!([{"prefixes": ["basic/"], "verbs": verbs, "namespaces": ["*"]}]);
        })
        .await?;
    let slow = json!({"name": "slow", "config": ["slow", "1"]});
    scene
        .owner("web", json!([entry("a", "1"), entry("b", "1"), slow]))
        .await?;
    gate.arrivals(1).await;
    scene
        .world
        .until("the other members are written", || async {
            Ok(scene.config_map("a").await?.is_some() && scene.config_map("b").await?.is_some())
        })
        .await?;
    clock.0.store(3600, Ordering::Relaxed);
    // The host plans again, since `a` is to be corrected.
    scene
        .meddle("v1", "ConfigMap", "a", json!({"data": {"text": "mine"}}))
        .await?;
    let status = scene
        .until_status("web", "one member is ready", |status| status.ready == 1)
        .await?;
    assert_eq!(status.state, "Progressing");
    gate.set(Pass::Open);
    scene.until_state("web", "Ready").await?;
    scene.world.stop().await
}
