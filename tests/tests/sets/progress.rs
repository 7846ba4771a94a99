//! What people see of a set while the host works on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use configurator_core::time::Timestamp;
use configurator_host::clock::{Clock, SystemClock};
use configurator_tests::gate::{Gate, Pass};
use serde_json::json;

use crate::scene::{Scene, after, entry};

/// A clock on which a second passes each time that somebody looks at it.
#[derive(Default)]
struct Hasty(AtomicU64);

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        SystemClock.now().after(Duration::from_secs(seconds))
    }

    async fn sleep(&self, span: Duration) {
        SystemClock.sleep(span).await;
    }
}

/// The write of one member takes long. Meanwhile the status says which others are ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_set_is_published_while_members_are_written() -> Result<()> {
    let gate = Gate::new(Pass::Held);
    let before = gate.clone();
    let scene = Scene::embedded_with("progress", |builder| {
        builder
            .clock(Hasty::default())
            .decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    scene
        .configure(|object| {
            let verbs = ["get", "create", "update", "delete"];
            object["spec"]["capabilities"]["configstore"] =
                json!([{"prefixes": ["basic/"], "verbs": verbs}]);
        })
        .await?;
    let slow = json!({"name": "slow", "config": ["slow", "1"]});
    scene
        .owner(
            "web",
            json!([entry("a", "1"), after("b", "1", &["a"]), slow]),
        )
        .await?;
    let status = scene
        .until_status("web", "a member is ready", |status| status.ready >= 1)
        .await?;
    assert_eq!(status.state, "Progressing");
    gate.set(Pass::Open);
    scene.until_state("web", "Ready").await?;
    scene.world.stop().await
}
