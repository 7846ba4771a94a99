//! What is swapped, and what is not.

use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use configurator_host::module_source::{Fetched, ModulePolicies, ModuleSource, SourceError};
use configurator_host::observer::Notice;
use configurator_host::resource::ModuleSpec;
use configurator_tests::guests::{self, digest, variant};
use configurator_tests::witness::Witness;
use configurator_tests::world::{Place, World};
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::fixture::{Guest, handler};
use configurator_tests::shelf::Shelf;

pub fn scripted() -> Vec<u8> {
    std::fs::read(guests::folder().unwrap().join("scripted.wasm")).unwrap()
}

/// Two phases; each puts a key.
pub fn configurator() -> Value {
    let put = |key: &str| {
        let request = json!({"name": key, "put": {"key": format!("{key}/{{name}}"), "value": "1"}});
        json!({"requests": [request]})
    };
    json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": "scripted"},
        "spec": {
            "watch": {"apiVersion": "v1", "kind": "ConfigMap", "namespaces": ["shop"]},
            "module": {"file": "scripted.wasm"},
            "chain": {"phases": [{"name": "root"}, {"name": "write", "handler": "root"}]},
            "parameters": {"root": put("first"), "write": put("second")},
            "capabilities": {"configstore": [{"prefixes": ["basic/"], "verbs": ["get", "create", "update"]}]},
        },
    })
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": name},
        "data": {"value": value},
    })
}

pub async fn world(shelf: &Shelf, witness: &Witness) -> Result<World> {
    let world = World::start_at(&Place::default(), |builder| {
        builder.modules(shelf.clone()).observer(witness.clone())
    })
    .await?;
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await?;
    Ok(world)
}

pub async fn status(world: &World) -> Result<Value> {
    let api: Api<DynamicObject> = world
        .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
        .await?;
    Ok(api.get("scripted").await?.data["status"].clone())
}

pub fn condition<'s>(status: &'s Value, name: &str) -> &'s Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut named = conditions.filter(|condition| condition["type"] == name);
    named.next().unwrap_or(&Value::Null)
}

/// What the first Event of this reason says, once there is one.
pub async fn event(world: &World, reason: &str) -> Result<String> {
    let events = world
        .objects("events.k8s.io/v1", "Event", "default")
        .await?;
    let said = async || {
        let all = events.list(&kube::api::ListParams::default()).await?;
        let mut of_it = all.iter().filter(|event| event.data["reason"] == reason);
        let note = of_it.next().and_then(|event| event.data["note"].as_str());
        anyhow::Ok(note.map(str::to_owned))
    };
    world
        .until(reason, async || Ok(said().await?.is_some()))
        .await?;
    Ok(said().await?.unwrap_or_default())
}

#[tokio::test]
async fn every_object_has_one_run_on_the_new_module() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let world = world(&shelf, &witness).await?;
    world.apply(&configurator()).await?;
    for name in ["a", "b", "c"] {
        world.apply(&config_map(name, "1")).await?;
    }
    world
        .until("three runs", async || Ok(witness.passes().len() == 3))
        .await?;
    world.settled(&["scripted"]).await?;

    shelf.put(Ok(two.clone()));
    world
        .until("three more", async || Ok(witness.passes().len() == 6))
        .await?;
    for name in ["a", "b", "c"] {
        let passes = witness.passes_of(&format!("shop/{name}"));
        let modules: Vec<&str> = passes.iter().map(|pass| pass.module()).collect();
        assert_eq!(modules, [digest(&one), digest(&two)]);
    }
    world
        .until("the status says so", async || {
            Ok(status(&world).await?["moduleDigest"] == digest(&two))
        })
        .await?;
    let said = event(&world, "ModuleSwapped").await?;
    assert!(said.contains(&digest(&one)) && said.contains(&digest(&two)));
    // Nothing follows: the same bytes again are no news.
    shelf.put(Ok(two));
    world.apply(&config_map("d", "1")).await?;
    world
        .until("one more", async || Ok(witness.passes().len() == 7))
        .await?;
    world.settled(&["scripted"]).await?;
    assert_eq!(witness.passes().len(), 7);
    world.stop().await
}

/// What is on the shelf next cannot be run: what ran goes on, and the status says why.
async fn check_refused(bad: Result<Vec<u8>, String>, reason: &str, says: &str) -> Result<()> {
    let good = variant(&scripted(), 1);
    let (shelf, witness) = (Shelf::with(good.clone()), Witness::new());
    let world = world(&shelf, &witness).await?;
    world.apply(&configurator()).await?;
    world.apply(&config_map("a", "1")).await?;
    world
        .until("a run", async || Ok(witness.passes().len() == 1))
        .await?;
    shelf.put(bad);
    world
        .until("the condition", async || {
            let status = status(&world).await?;
            let loaded = condition(&status, "ModuleLoaded");
            let goes_on = condition(&status, "Ready")["status"] == "True";
            Ok(goes_on && loaded["status"] == "False" && loaded["reason"] == reason)
        })
        .await?;
    let status = status(&world).await?;
    let message = condition(&status, "ModuleLoaded")["message"]
        .as_str()
        .unwrap();
    assert!(message.contains(says), "{message}");
    assert_eq!(status["moduleDigest"], digest(&good));
    let said = event(&world, reason).await?;
    assert!(said.contains(says), "{said}");

    world.apply(&config_map("b", "1")).await?;
    world
        .until("another run", async || Ok(witness.passes().len() == 2))
        .await?;
    assert_eq!(witness.passes()[1].module(), digest(&good));
    // And it is mended as soon as there is one that can be run.
    let mended = variant(&scripted(), 2);
    shelf.put(Ok(mended.clone()));
    world
        .until("it is mended", async || {
            let status = crate::swap::status(&world).await?;
            Ok(status["moduleDigest"] == digest(&mended)
                && condition(&status, "ModuleLoaded")["status"] == "True")
        })
        .await?;
    world.stop().await
}

#[tokio::test]
async fn half_a_module_keeps_the_last_good_one() -> Result<()> {
    let whole = scripted();
    check_refused(Ok(whole[..whole.len() / 2].to_vec()), "ModuleInvalid", "").await
}

#[tokio::test]
async fn what_is_no_module_keeps_the_last_good_one() -> Result<()> {
    check_refused(Ok(b"<html>busy</html>".to_vec()), "ModuleInvalid", "").await
}

#[tokio::test]
async fn a_component_of_another_world_keeps_the_last_good_one() -> Result<()> {
    let other = b"\0asm\x0d\0\x01\0".to_vec();
    check_refused(Ok(other), "ModuleInvalid", "configurator:handler/handler").await
}

#[tokio::test]
async fn a_module_that_traps_in_describe_keeps_the_last_good_one() -> Result<()> {
    let traps = Guest::new().describe_body("unreachable").build();
    check_refused(Ok(traps), "ModuleInvalid", "unreachable").await
}

#[tokio::test]
async fn a_module_without_the_handlers_keeps_the_last_good_one() -> Result<()> {
    let other = Guest::new()
        .describe(json!({"handlers": [handler("other")]}))
        .build();
    check_refused(Ok(other), "HandlerMissing", "it has: other").await
}

#[tokio::test]
async fn a_module_whose_handler_takes_batches_keeps_the_last_good_one() -> Result<()> {
    let mut of_batches = handler("root");
    of_batches["accepts"] = "batch".into();
    let other = Guest::new()
        .describe(json!({"handlers": [of_batches]}))
        .build();
    check_refused(Ok(other), "HandlerMismatch", "add spec.chain.batch").await
}

#[tokio::test]
async fn a_source_that_is_away_keeps_the_last_good_one() -> Result<()> {
    check_refused(
        Err("nobody answers".to_owned()),
        "ModuleNotFound",
        "nobody answers",
    )
    .await
}

#[tokio::test]
async fn a_digest_that_does_not_match_keeps_the_last_good_one() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let world = world(&shelf, &witness).await?;
    let mut pinned = configurator();
    pinned["spec"]["module"]["digest"] = digest(&one).into();
    world.apply(&pinned).await?;
    world.apply(&config_map("a", "1")).await?;
    world
        .until("a run", async || Ok(witness.passes().len() == 1))
        .await?;
    shelf.put(Ok(two.clone()));
    witness
        .next(0, |notice| {
            matches!(notice, Notice::Waiting { message } if message.contains("spec.module.digest is"))
        })
        .await;
    assert_eq!(status(&world).await?["moduleDigest"], digest(&one));
    // The digest follows: only the module is another, so it is swapped.
    pinned["spec"]["module"]["digest"] = digest(&two).into();
    world.apply(&pinned).await?;
    witness
        .next(0, |notice| matches!(notice, Notice::Swapped { .. }))
        .await;
    world
        .until("another run", async || Ok(witness.passes().len() == 2))
        .await?;
    assert_eq!(witness.passes()[1].module(), digest(&two));
    let started = |notice: &&Notice| matches!(notice, Notice::Started { .. });
    assert_eq!(witness.notices().iter().filter(started).count(), 1);
    world.stop().await
}

#[tokio::test]
async fn a_run_under_way_ends_on_the_module_that_it_began_on() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let world = world(&shelf, &witness).await?;
    let mut waiting = configurator();
    // The second phase asks for what is not there yet, so its run rests and asks again.
    waiting["spec"]["parameters"]["write"] =
        json!({"requests": [{"name": "late", "getConfigMap": "late"}]});
    waiting["spec"]["watch"]["labelSelector"] =
        json!({"matchExpressions": [{"key": "late", "operator": "NotIn", "values": ["yes"]}]});
    waiting["spec"]["retry"] =
        json!({"initialDelay": "200ms", "maxDelay": "200ms", "maxAttempts": 100});
    waiting["spec"]["capabilities"]["kubernetes"] = json!([{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["get"]}]);
    world.apply(&waiting).await?;
    world.apply(&config_map("a", "1")).await?;
    let notices = witness.notices().len();
    world
        .until("the second phase was called", async || {
            Ok(witness.has_called("shop/a", "write"))
        })
        .await?;
    shelf.put(Ok(two.clone()));
    witness
        .next(notices, |notice| matches!(notice, Notice::Swapped { .. }))
        .await;
    let calls = witness.calls_under_way("shop/a");
    world
        .until("it is tried again after the swap", async || {
            Ok(witness.calls_under_way("shop/a") > calls + 1)
        })
        .await?;
    let mut late = config_map("late", "1");
    late["metadata"]["labels"] = json!({"late": "yes"});
    world.apply(&late).await?;
    world
        .until("two runs", async || {
            Ok(witness.passes_of("shop/a").len() == 2)
        })
        .await?;
    let passes = witness.passes_of("shop/a");
    assert_eq!(passes[0].module(), digest(&one));
    assert_eq!(passes[1].module(), digest(&two));
    assert_eq!(passes[1].calls.len(), 2, "from its first phase: {passes:?}");
    world.stop().await
}

/// A source that lets nobody have a module while it is closed. Cloning shares it.
#[derive(Clone)]
struct Door {
    shelf: Shelf,
    is_open: watch::Sender<bool>,
    asked: watch::Sender<usize>,
}

#[async_trait]
impl ModuleSource for Door {
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError> {
        self.asked.send_modify(|asked| *asked += 1);
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open).await;
        self.shelf.fetch(module, policies).await
    }

    async fn version(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        self.shelf.version(module, policies).await
    }

    fn interval(&self, module: &ModuleSpec) -> Duration {
        self.shelf.interval(module)
    }
}

#[tokio::test]
async fn a_person_who_asks_for_another_attempt_stops_no_module_that_comes() -> Result<()> {
    let modules: Vec<Vec<u8>> = (1..4).map(|number| variant(&scripted(), number)).collect();
    let witness = Witness::new();
    let door = Door {
        shelf: Shelf::with(modules[0].clone()),
        is_open: watch::Sender::new(true),
        asked: watch::Sender::new(0),
    };
    let source = door.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.modules(source).observer(witness.clone())
    })
    .await?;
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await?;
    world.apply(&configurator()).await?;
    world.apply(&config_map("a", "1")).await?;
    world
        .until("a run", async || Ok(witness.passes().len() == 1))
        .await?;
    door.is_open.send_replace(false);
    let asked = *door.asked.borrow();
    door.shelf.put(Ok(modules[1].clone()));
    door.asked.subscribe().wait_for(|now| *now > asked).await?;
    let mut again = configurator();
    again["metadata"]["annotations"] = json!({"configurator.dev/retry": "now"});
    world.apply(&again).await?;
    // What follows the annotation has come, so that has as well.
    world.apply(&config_map("b", "1")).await?;
    world
        .until("another run", async || Ok(witness.passes().len() == 2))
        .await?;
    door.is_open.send_replace(true);
    for module in &modules[1..] {
        door.shelf.put(Ok(module.clone()));
        let wanted = digest(module);
        let is_it =
            |notice: &Notice| matches!(notice, Notice::Swapped { digest, .. } if *digest == wanted);
        witness.next(0, is_it).await;
    }
    world.stop().await
}

#[tokio::test]
async fn a_module_that_asks_for_more_than_is_granted_keeps_the_last_good_one() -> Result<()> {
    let mut asking = handler("root");
    let wanted = json!({"secretstore": [{"names": ["pod-*"], "verbs": ["get"]}]});
    asking["capabilities"] = wanted.to_string().into();
    let other = Guest::new().describe(json!({"handlers": [asking]})).build();
    let rule = r#"the handler "root" of phase "root" asks for secretstore: {names: ["pod-*"], verbs: [get]}, which spec.capabilities does not allow"#;
    check_refused(Ok(other), "CapabilityMissing", rule).await
}
