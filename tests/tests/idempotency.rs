//! Each HTTP request of a handler takes effect once at an endpoint that honors `Idempotency-Key`, and a later one takes effect again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use configurator_core::layers::Write;
use configurator_host::sinks::configstore::Fence;
use configurator_tests::configurator;
use configurator_tests::endpoint::Endpoint;
use configurator_tests::guests;
use configurator_tests::intercepted::{Intercepted, Interceptor};
use configurator_tests::shelf::Shelf;
use configurator_tests::world::{Place, Servers, World};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::sync::watch;

/// A Configurator of the ConfigMaps with a label, whose handler sends `body` to the endpoint.
fn sender(endpoint: &Endpoint, body: &str) -> Value {
    let send = json!({
        "name": "send",
        "http": {"method": "POST", "url": format!("http://{}/", endpoint.authority()), "body": body},
    });
    configurator::scripted(
        "sender",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}}),
        json!({"requests": [send]}),
        json!({"http": [{"hosts": [endpoint.authority()], "methods": ["POST"]}]}),
    )
}

fn object(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"handled": "yes"}},
        "data": {"value": value},
    })
}

async fn start(endpoint: &Endpoint, servers: Servers) -> Result<World> {
    let options = endpoint.options()?;
    World::start_on(servers, |builder| builder.http(options)).await
}

async fn apply_and_settle(
    world: &World,
    object: &Value,
    effects: usize,
    endpoint: &Endpoint,
) -> Result<()> {
    world.apply(object).await?;
    world
        .until("the effect", || async {
            Ok(endpoint.effects().len() >= effects)
        })
        .await?;
    world.settled(&["sender"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_that_comes_back_takes_effect_again() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let world = start(&endpoint, Place::default().open().await?).await?;
    world
        .apply(&sender(
            &endpoint,
            "a body that says nothing of the content",
        ))
        .await?;
    for (effects, value) in ["A", "B", "A"].into_iter().enumerate() {
        apply_and_settle(&world, &object("web", value), effects + 1, &endpoint).await?;
    }
    assert_eq!(endpoint.effects().len(), 3, "{:?}", endpoint.keys());
    assert_eq!(endpoint.keys().len(), 3);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_parameters_take_effect_again() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let world = start(&endpoint, Place::default().open().await?).await?;
    world.apply(&object("web", "A")).await?;
    for (effects, other) in [1, 2, 1].into_iter().enumerate() {
        let mut sender = sender(&endpoint, "the same");
        sender["spec"]["parameters"]["other"] = other.into();
        apply_and_settle(&world, &sender, effects + 1, &endpoint).await?;
    }
    assert_eq!(endpoint.effects(), ["the same"; 3]);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_module_takes_effect_again() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let options = endpoint.options()?;
    let module = std::fs::read(guests::folder()?.join("scripted.wasm"))?;
    // A custom section: the same program, and another module.
    let another = [&module[..], &[0, 2, 1, b'x']].concat();
    let shelf = Shelf::with(module);
    let modules = shelf.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.http(options).modules(modules)
    })
    .await?;
    world.apply(&sender(&endpoint, "the same")).await?;
    apply_and_settle(&world, &object("web", "A"), 1, &endpoint).await?;
    shelf.put(Ok(another));
    endpoint.requests(2).await;
    world.settled(&["sender"]).await?;
    assert_eq!(endpoint.effects(), ["the same"; 2]);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduled_resync_takes_effect_again_and_a_restart_does_not() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let servers = Place::default().open().await?;
    let mut declared = sender(&endpoint, "the same");
    declared["spec"]["watch"]["resyncPeriod"] = "1s".into();
    let world = start(&endpoint, servers.clone()).await?;
    world.apply(&declared).await?;
    world.apply(&object("web", "A")).await?;
    endpoint.requests(3).await;
    assert_eq!(endpoint.effects().len(), endpoint.keys().len());
    declared["spec"]["watch"]["resyncPeriod"] = "10h".into();
    world.apply(&declared).await?;
    world.settled(&["sender"]).await?;
    world.stop().await?;
    let before = endpoint.effects();
    for _ in 0..2 {
        let requests = endpoint.keys().len();
        let world = start(&endpoint, servers.clone()).await?;
        endpoint.requests(requests + 1).await;
        world.settled(&["sender"]).await?;
        world.stop().await?;
    }
    assert_eq!(endpoint.effects(), before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_takes_over_knows_what_another_has_done_meanwhile() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let servers = Place::default().open().await?;
    for (effects, value) in ["A", "B", "A"].into_iter().enumerate() {
        let world = start(&endpoint, servers.clone()).await?;
        world.apply(&sender(&endpoint, "the same")).await?;
        apply_and_settle(&world, &object("web", value), effects + 1, &endpoint).await?;
        world.stop().await?;
    }
    assert_eq!(endpoint.effects(), ["the same"; 3]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_an_answer_is_sent_again_byte_for_byte_after_a_crash() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let servers = Place::default().open().await?;
    endpoint.lose_answers(true);
    let world = start(&endpoint, servers.clone()).await?;
    world
        .apply(&sender(&endpoint, "secret-at-{now}-{seed}-{calls}"))
        .await?;
    world.apply(&object("web", "A")).await?;
    endpoint.requests(1).await;
    world.kill().await?;
    // A new instance of the module counts its calls from 0, and the time has gone on.
    let stored = servers.config.scan("effects/").await?;
    assert_eq!(stored.len(), 2, "{stored:?}");
    assert!(!format!("{stored:?}").contains("secret-at-"), "{stored:?}");
    endpoint.lose_answers(false);
    let world = start(&endpoint, servers.clone()).await?;
    endpoint.requests(2).await;
    world.settled(&["sender"]).await?;
    assert_eq!(endpoint.effects().len(), 1, "{:?}", endpoint.effects());
    // It has its answer: nothing of it is kept.
    assert_eq!(servers.config.scan("effects/").await?.len(), 1);
    // Nothing is left of an object that is gone.
    let objects = world.objects("v1", "ConfigMap", "default").await?;
    objects.delete("web", &DeleteParams::default()).await?;
    world
        .until("the record to be gone", || async {
            Ok(servers.config.scan("effects/").await?.is_empty())
        })
        .await?;
    world.stop().await
}

/// Stops at one of the writes of a config store, as a process does that is killed there.
struct Fuse {
    /// Writes until then.
    left: AtomicUsize,
    /// Whether the last one is carried out.
    is_late: bool,
    is_burnt: watch::Sender<bool>,
}

impl Fuse {
    async fn burn(&self) {
        self.is_burnt.send_replace(true);
        std::future::pending().await
    }
}

#[async_trait]
impl Interceptor for Fuse {
    async fn before(&self, _: &[Write], _: &[Fence]) {
        let take = |left: usize| left.checked_sub(1);
        match self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
        {
            Err(_) => std::future::pending().await,
            Ok(1) if !self.is_late => self.burn().await,
            Ok(_) => {}
        }
    }

    async fn after(&self) {
        if self.left.load(Ordering::SeqCst) == 0 {
            self.burn().await;
        }
    }
}

/// Kills the host at each write of the config store, before it and after it, and starts another.
async fn kill_at_each_write(is_late: bool) -> Result<usize> {
    for writes in 1.. {
        let endpoint = Endpoint::start().await?;
        let servers = Place::default().open().await?;
        let is_burnt = watch::Sender::new(false);
        let fuse = Fuse {
            left: AtomicUsize::new(writes),
            is_late,
            is_burnt: is_burnt.clone(),
        };
        let config = Arc::new(Intercepted::new(servers.config.clone(), fuse));
        let world = start(
            &endpoint,
            Servers {
                config,
                ..servers.clone()
            },
        )
        .await?;
        world.apply(&sender(&endpoint, "the same")).await?;
        world.apply(&object("web", "A")).await?;
        let mut burnt = is_burnt.subscribe();
        let has_settled = tokio::select! {
            burnt = burnt.wait_for(|burnt| *burnt) => burnt.is_err(),
            settled = async { endpoint.requests(1).await; world.settled(&["sender"]).await } => settled.is_ok(),
        };
        world.kill().await?;
        let sent = endpoint.keys().len();
        let world = start(&endpoint, servers).await?;
        endpoint.requests(sent + 1).await;
        world.settled(&["sender"]).await?;
        assert_eq!(endpoint.effects(), ["the same"], "killed at write {writes}");
        world.stop().await?;
        if has_settled {
            return Ok(writes);
        }
    }
    unreachable!("the number of writes ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_write_repeats_no_effect() -> Result<()> {
    // The cause with the request, and its removal.
    assert_eq!(kill_at_each_write(false).await?, 3);
    assert_eq!(kill_at_each_write(true).await?, 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_keeps_its_effect_until_its_members_change() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let servers = Place::default().open().await?;
    let mut declared = sender(&endpoint, "the same");
    declared["spec"]["chain"]["batch"] = json!({"maxSize": 2, "maxDelay": "10h"});
    let world = start(&endpoint, servers.clone()).await?;
    world.apply(&declared).await?;
    world.apply(&object("a", "A")).await?;
    world.apply(&object("b", "A")).await?;
    endpoint.requests(1).await;
    world.settled(&["sender"]).await?;
    world.stop().await?;
    let world = start(&endpoint, servers.clone()).await?;
    endpoint.requests(2).await;
    world.settled(&["sender"]).await?;
    assert_eq!(
        endpoint.effects().len(),
        1,
        "the batch has the same members"
    );
    world.stop().await?;
    declared["spec"]["chain"]["batch"]["maxSize"] = 1.into();
    let world = start(&endpoint, servers).await?;
    world.apply(&declared).await?;
    endpoint.requests(4).await;
    world.settled(&["sender"]).await?;
    assert_eq!(
        endpoint.effects().len(),
        3,
        "each by itself is another effect"
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_one_member_keeps_its_effect_in_another_batch() -> Result<()> {
    let endpoint = Endpoint::start().await?;
    let servers = Place::default().open().await?;
    let mut declared = sender(&endpoint, "of {object}");
    let request = &mut declared["spec"]["parameters"]["root"]["requests"][0];
    request["forEach"] = true.into();
    request["name"] = "send-{object}".into();
    request["of"] = "{object}".into();
    declared["spec"]["chain"]["batch"] = json!({"maxSize": 2, "maxDelay": "10h"});
    endpoint.lose_answers(true);
    let world = start(&endpoint, servers.clone()).await?;
    world.apply(&declared).await?;
    world.apply(&object("a", "A")).await?;
    world.apply(&object("b", "A")).await?;
    endpoint.requests(2).await;
    world.kill().await?;
    endpoint.lose_answers(false);
    // Each by itself: content, parameters and module are the same.
    declared["spec"]["chain"]["batch"]["maxSize"] = 1.into();
    configurator_tests::world::apply(&servers.cluster.client, &declared).await?;
    let sent = endpoint.keys().len();
    let world = start(&endpoint, servers).await?;
    endpoint.requests(sent + 2).await;
    world.settled(&["sender"]).await?;
    let mut effects = endpoint.effects();
    effects.sort();
    assert_eq!(effects, ["of a", "of b"]);
    world.stop().await
}
