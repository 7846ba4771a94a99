//! Sinks that the embedder of a host adds.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::{Arc, Mutex};

use anyhow::Result;
use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::Operation;
use configurator_core::result::Answer;
use configurator_guest::options::GuestOptions;
use configurator_host::simulator::Simulator;
use configurator_host::simulator::scenario::Scenario;
use configurator_host::sinks::{Scope, Sink};
use configurator_tests::configurator;
use configurator_tests::guests;
use configurator_tests::world::{Place, World};
use expect_test::expect;
use serde_json::{Value, json};

/// Zones of a name server that remembers what it was asked.
#[derive(Clone, Default)]
struct Zones {
    asked: Arc<Mutex<Vec<String>>>,
    /// Faults that come before answers, the last first.
    faults: Arc<Mutex<Vec<Fault>>>,
}

#[async_trait]
impl Sink for Zones {
    async fn execute(&self, operation: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        let Operation::Extension(request) = operation.operation() else {
            panic!("{operation}");
        };
        let body = request.body.as_ref().map_or("", Document::as_str);
        self.asked
            .lock()
            .unwrap()
            .push(format!("{} {} {body}", request.verb, request.target));
        if let Some(fault) = self.faults.lock().unwrap().pop() {
            return Err(fault);
        }
        Ok(Answer {
            query_objects: vec![Document::of(&json!({"serial": 7})).unwrap()],
            changed: true,
            http_response: None,
        })
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Zones {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn world(&self) -> Result<World> {
        let zones = self.clone();
        World::start_at(&Place::default(), |builder| builder.extension("dns", zones)).await
    }
}

/// A Configurator of ConfigMaps that sends one request, and writes the names of its results under a key.
fn sender(request: &Value, rule: Value) -> Value {
    let mut configurator = configurator::scripted(
        "sender",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}}),
        json!({"requests": [request]}),
        json!({"extension": [rule], "configstore": [{"prefixes": [""], "verbs": ["update"]}]}),
    );
    let put = json!({"name": "seen", "put": {"key": "{name}", "value": "{results}"}});
    configurator["spec"]["parameters"]["second"] = json!({"requests": [put]});
    configurator["spec"]["chain"]["phases"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "second", "handler": "root"}));
    configurator
}

fn upsert(extension: &str) -> Value {
    json!({
        "name": "upsert",
        "onError": "catch",
        "extension": {"extension": extension, "verb": "upsert", "target": "example.org/{name}", "body": {"a": 1}},
    })
}

fn rule() -> Value {
    json!({"extensions": ["dns", "mail"], "targets": ["example.org/*"], "verbs": ["upsert"]})
}

fn object() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "www", "namespace": "default", "labels": {"handled": "yes"}},
    })
}

/// Returns what the second phase saw.
async fn seen(world: &World) -> Result<String> {
    world.settled(&["sender"]).await?;
    let keys = world.keys().await?;
    let found = keys.into_iter().find(|(key, _)| key.ends_with("basic/www"));
    Ok(found.map(|(_, value)| value).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_executes_requests_and_the_next_phase_gets_its_answers() -> Result<()> {
    let zones = Zones::default();
    let world = zones.world().await?;
    world.apply(&sender(&upsert("dns"), rule())).await?;
    world.apply(&object()).await?;
    let seen = seen(&world).await?;
    assert_eq!(zones.asked(), [r#"upsert example.org/www {"a":1}"#]);
    assert!(seen.contains("serial"), "{seen}");
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_reaches_an_extension_without_a_rule() -> Result<()> {
    let zones = Zones::default();
    let world = zones.world().await?;
    let elsewhere = json!({"extensions": ["dns"], "targets": ["example.com/*"], "verbs": ["*"]});
    world.apply(&sender(&upsert("dns"), elsewhere)).await?;
    world.apply(&object()).await?;
    let seen = seen(&world).await?;
    assert!(seen.contains("ResourcePermission"), "{seen}");
    assert_eq!(zones.asked(), Vec::<String>::new());
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_extension_is_not_supported() -> Result<()> {
    let zones = Zones::default();
    let world = zones.world().await?;
    world.apply(&sender(&upsert("mail"), rule())).await?;
    world.apply(&object()).await?;
    let seen = seen(&world).await?;
    assert!(seen.contains("UnsupportedResourceOperation"), "{seen}");
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_that_is_away_delays_only_what_needs_it() -> Result<()> {
    let zones = Zones::default();
    // An extension that blames the API must not make the host wait for the API.
    zones
        .faults
        .lock()
        .unwrap()
        .push(Fault::new(FaultKind::ApiServerUnavailable, "away"));
    let world = zones.world().await?;
    let mut request = upsert("dns");
    request["onError"] = "fail".into();
    world.apply(&sender(&request, rule())).await?;
    world.apply(&object()).await?;
    let seen = seen(&world).await?;
    assert!(seen.contains("serial"), "{seen}");
    assert_eq!(zones.asked().len(), 2);
    let parked = world.metric("configurator_sink_parked{sink=\"kubernetes\"}");
    assert!(!parked.ends_with(" 1"), "{parked}");
    world.stop().await
}

/// A scenario says what extensions answer, and which there are.
#[test]
fn a_scenario_answers_for_extensions() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("extended.yaml");
    let mut request = upsert("dns");
    request["onError"] = "fail".into();
    let scenario = json!({
        "configurator": sender(&request, rule()),
        "objects": [object()],
        "extensions": [
            {"extension": "dns", "verb": "upsert", "target": "example.org/*", "objects": [{"serial": 7}], "times": 1},
        ],
        "faults": [{"request": "upsert", "kind": "ExtensionUnavailable", "times": 2}],
    });
    std::fs::write(&file, scenario.to_string())?;
    let mut scenario = Scenario::read(&file)?;
    scenario.modules.push(guests::folder()?);
    let simulator = Simulator::with_options(GuestOptions {
        parallel_calls: 1,
        module_cache: Some(guests::cache()?.join("modules")),
        ..GuestOptions::default()
    })?;
    expect![[r#"
        end:
          config:
            basic/www: "[{\"body\":null,\"error\":null,\"name\":\"upsert\",\"objects\":[\"{\\\"serial\\\":7}\"],\"status\":null}]"
          events: []
          objects: []
          secrets: []
        runs:
        - calls:
          - attempt: 1
            phase: root
            requests:
            - body:
                a: 1
              extension: dns upsert example.org/www
              name: upsert
              onError: Fail
          - attempt: 1
            phase: root
            requests:
            - body:
                a: 1
              extension: dns upsert example.org/www
              name: upsert
              onError: Fail
          - attempt: 1
            phase: root
            requests:
            - body:
                a: 1
              extension: dns upsert example.org/www
              name: upsert
              onError: Fail
          - attempt: 1
            phase: second
            requests:
            - config:
                put basic www: "[{\"body\":null,\"error\":null,\"name\":\"upsert\",\"objects\":[\"{\\\"serial\\\":7}\"],\"status\":null}]"
              name: seen
          ends:
          - "parked for the extension sink: ExtensionUnavailable: the scenario says so"
          - "parked for the extension sink: ExtensionUnavailable: the scenario says so"
          - succeeded
          objects:
          - Added default/www
    "#]].assert_eq(&simulator.play(&scenario)?.golden()?);
    Ok(())
}
