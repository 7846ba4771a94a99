//! What the controller does with objects and runs, beyond what the scenarios show in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::ObjectRef;
use configurator_core::result::Answer;
use configurator_core::run::{Call, Finish, Run};
use configurator_guest::module::Module;
use configurator_host::answers::LEAST_ANSWER_MEMORY;
use configurator_host::controller::finalizer::Finalizer;
use configurator_host::observer::{RunEnd, RunObserver};
use configurator_host::resource::ClusterConfigurator;
use configurator_host::sinks::{Scope, Sink, Sinks};
use configurator_store::Store;
use configurator_tests::configurator;
use configurator_tests::gate::{Gate, Pass};
use configurator_tests::world::{Place, World};
use expect_test::{Expect, expect};
use http::{Method, Request};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::client::Body;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// A Configurator of the ConfigMaps with a label, that does what the script of its one phase says.
fn scripted(name: &str, script: Value) -> Value {
    configurator::scripted(
        name,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}}),
        script,
        json!({
            "kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["get", "apply", "delete"]}],
            "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
        }),
    )
}

fn put(name: &str, key: &str) -> Value {
    json!({"name": name, "put": {"key": key, "value": "1"}})
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"handled": "yes"}},
    })
}

async fn config_maps(world: &World) -> Result<Api<DynamicObject>> {
    world.objects("v1", "ConfigMap", "default").await
}

/// Returns when a condition of the Configurator has this reason, with its message.
async fn until_reason(
    world: &World,
    configurator: &str,
    kind: &str,
    reason: &str,
) -> Result<String> {
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    let found = || async {
        let status = api.get(configurator).await?.status.unwrap_or_default();
        let mut conditions = status.conditions.into_iter();
        Ok::<_, anyhow::Error>(
            conditions.find(|condition| condition.type_ == kind && condition.reason == reason),
        )
    };
    world
        .until(&format!("{kind} because {reason}"), || async {
            Ok(found().await?.is_some())
        })
        .await?;
    Ok(found().await?.context("the condition")?.message)
}

async fn has_key(world: &World, key: &str) -> Result<bool> {
    Ok(world.keys().await?.iter().any(|(found, _)| found == key))
}

/// Counts the runs that ended well.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU64>);

impl RunObserver for Runs {
    fn ended(&self, _: &Run, end: &RunEnd) {
        if matches!(end, RunEnd::Finished(Finish::Succeeded)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_excluded_namespaces_are_not_selected() -> Result<()> {
    let world = World::start().await?;
    let make = async |namespace: &str, name: &str| {
        let mut made = object(name);
        made["metadata"]["namespace"] = namespace.into();
        world.apply(&made).await
    };
    for name in ["kube-team", "team"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        world.apply(&namespace).await?;
        make(name, "listed").await?;
    }
    let mut most = scripted(
        "most",
        json!({"requests": [put("put", "{namespace}-{name}")]}),
    );
    most["spec"]["watch"]["excludeNamespaces"] = json!(["kube-*"]);
    world.apply(&most).await?;
    world.settled(&["most"]).await?;
    make("kube-team", "watched").await?;
    make("team", "watched").await?;
    let is_there = || has_key(&world, "basic/team-watched");
    world
        .until("the watched object is handled", is_there)
        .await?;
    world.settled(&["most"]).await?;
    assert!(has_key(&world, "basic/team-listed").await?);
    for key in ["basic/kube-team-listed", "basic/kube-team-watched"] {
        assert!(!has_key(&world, key).await?, "{key}");
    }
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_are_selected_by_their_labels() -> Result<()> {
    let world = World::start().await?;
    let label = async |name: &str, team: &str| {
        let metadata = json!({"name": name, "labels": {"team": team}});
        world
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await
    };
    for (name, team) in [("one", "a"), ("two", "b")] {
        label(name, team).await?;
        let mut made = object("web");
        made["metadata"]["namespace"] = name.into();
        world.apply(&made).await?;
    }
    let mut of_team = scripted("of-team", json!({"requests": [put("put", "{namespace}")]}));
    of_team["spec"]["watch"]["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    of_team["spec"]["deletion"] = json!({"phases": [{"name": "clean", "handler": "root"}]});
    of_team["spec"]["parameters"]["clean"] = json!({"requests": [put("put", "{namespace}-left")]});
    world.apply(&of_team).await?;
    world.settled(&["of-team"]).await?;
    let keys = async || {
        let keys = world.keys().await?.into_iter();
        Ok::<_, anyhow::Error>(keys.map(|(key, _)| key).collect::<Vec<_>>())
    };
    assert_eq!(keys().await?, ["basic/one"]);

    label("two", "a").await?;
    let is_there = || has_key(&world, "basic/two");
    world.until("two is selected", is_there).await?;
    label("one", "b").await?;
    let is_there = || has_key(&world, "basic/one-left");
    world
        .until("one is not selected any more", is_there)
        .await?;
    world.settled(&["of-team"]).await?;
    assert_eq!(keys().await?, ["basic/one", "basic/one-left", "basic/two"]);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_come_from_config_maps() -> Result<()> {
    let world = World::start().await?;
    let settings = |value: &str| {
        let metadata = json!({"name": "settings", "namespace": "default"});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"parameter": value}})
    };
    world.apply(&object("web")).await?;
    let script =
        json!({"requests": [{"name": "put", "put": {"key": "said", "value": "{parameter}"}}]});
    let mut reader = scripted("reader", script);
    let source = json!({"namespace": "default", "name": "settings"});
    let absent = json!({"namespace": "default", "name": "absent", "optional": true});
    reader["spec"]["parametersFrom"] = json!([{"configMap": source}, {"secret": absent}]);
    world.apply(&reader).await?;
    let message = until_reason(&world, "reader", "Ready", "ParametersMissing").await?;
    expect!["spec.parametersFrom[0]: the ConfigMap default/settings does not exist"]
        .assert_eq(&message);
    for value in ["one", "two"] {
        world.apply(&settings(value)).await?;
        let is_said = || async {
            let keys = world.keys().await?;
            Ok(keys.iter().any(|(_, said)| said.contains(value)))
        };
        world.until(&format!("{value} is read"), is_said).await?;
    }
    // What the Configurator says itself comes first.
    reader["spec"]["parameters"]["parameter"] = "three".into();
    world.apply(&reader).await?;
    let is_said = || async {
        Ok(world
            .keys()
            .await?
            .iter()
            .any(|(_, said)| said.contains("three")))
    };
    world.until("its own parameter is read", is_said).await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_configurators_that_answer_each_other_are_slowed_down_and_named() -> Result<()> {
    let runs = Runs::default();
    let observer = runs.clone();
    let world = World::start_at(&Place::default(), |builder| builder.observer(observer)).await?;
    for name in ["ping", "pong"] {
        let annotated = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "{name}", "namespace": "{namespace}", "annotations": {name: "{run}"}},
        });
        let script = json!({"requests": [{"name": "answer", "apply": annotated}]});
        world.apply(&scripted(name, script)).await?;
    }
    world.apply(&object("ball")).await?;
    let message = until_reason(&world, "ping", "Degraded", "HotLoop").await?;
    expect!["default/ball keeps changing because of the runs that answer each change; these runs are spaced out"]
        .assert_eq(&message);
    // Six turns each are free; without the guard there would be hundreds by now.
    assert!(runs.0.load(Ordering::Relaxed) < 40);
    // Another object is not slowed down.
    world
        .apply(&scripted(
            "third",
            json!({"requests": [put("made", "made-{name}")]}),
        ))
        .await?;
    world.apply(&object("other")).await?;
    world
        .until("the other object is handled", || {
            has_key(&world, "basic/made-other")
        })
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_is_ready_when_what_readiness_depends_on_has_succeeded() -> Result<()> {
    let world = World::start().await?;
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "copy-of-{name}", "namespace": "elsewhere"},
    });
    let mut configurator = scripted(
        "needed",
        json!({"requests": [{"name": "copy", "bootstrapDep": true, "apply": elsewhere}, put("made", "made-{name}")]}),
    );
    configurator["spec"]["retry"] =
        json!({"maxAttempts": 1000, "initialDelay": "50ms", "maxDelay": "100ms"});
    world.apply(&object("web")).await?;
    world.apply(&configurator).await?;
    until_reason(&world, "needed", "Bootstrapped", "Settling").await?;
    world
        .until("the copy was tried", || async {
            Ok(world
                .metric("configurator_requests_total")
                .contains("ResourceNotFound"))
        })
        .await?;
    assert!(!world.report().is_ready());
    assert!(
        !has_key(&world, "basic/made-web").await?,
        "what readiness depends on goes first"
    );
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}))
        .await?;
    world.settled(&["needed"]).await?;
    assert!(has_key(&world, "basic/made-web").await?);
    until_reason(&world, "needed", "Bootstrapped", "Settled").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_parks_runs_and_ends_in_no_failure() -> Result<()> {
    let gate = Gate::new(Pass::Away);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    let mut configurator = scripted("parked", json!({"requests": [put("made", "made-{name}")]}));
    configurator["spec"]["retry"] = json!({"maxAttempts": 2});
    for number in 0..20 {
        world.apply(&object(&format!("web-{number}"))).await?;
    }
    world.apply(&configurator).await?;
    let message = until_reason(&world, "parked", "Degraded", "SinkUnavailable").await?;
    expect!["runs are parked until the configstore sink is back: nobody answers"]
        .assert_eq(&message);
    let asked = gate.refused();
    assert!(
        asked <= 20,
        "{asked}: a run that is parked does not ask again"
    );
    gate.set(Pass::Open);
    world.settled(&["parked"]).await?;
    assert_eq!(world.keys().await?.len(), 20);
    until_reason(&world, "parked", "Degraded", "AsExpected").await?;
    world.stop().await
}

/// A config store that refuses what some objects ask for.
struct Refusing {
    inner: Arc<dyn Sink>,
    /// What the names of these objects begin with.
    objects: &'static str,
    fault: Fault,
    is_over: Arc<AtomicBool>,
}

#[async_trait]
impl Sink for Refusing {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let is_refused = scope.object.starts_with(self.objects);
        match is_refused && !self.is_over.load(Ordering::Relaxed) {
            true => Err(self.fault.clone()),
            false => self.inner.execute(operation, scope).await,
        }
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

/// One object is refused for as long as its neighbours have not gone through; then it goes through as well.
async fn refuse_one(status: Option<u16>, retry_after: Option<Duration>) -> Result<()> {
    let fault = Fault {
        status,
        ..Fault::new(FaultKind::ConfigstoreUnavailable, "not now").with_retry_after(retry_after)
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let refusing = is_over.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder
            .max_retry_after(Duration::from_millis(100))
            .decorate_sinks(move |sinks| Sinks {
                configstore: Arc::new(Refusing {
                    inner: sinks.configstore.clone(),
                    objects: "default/poisoned",
                    fault,
                    is_over: refusing,
                }),
                ..sinks
            })
    })
    .await?;
    let mut configurator = scripted("shared", json!({"requests": [put("made", "made-{name}")]}));
    configurator["spec"]["retry"] =
        json!({"maxAttempts": 1, "initialDelay": "10ms", "maxDelay": "100ms"});
    world.apply(&object("poisoned")).await?;
    world.apply(&configurator).await?;
    let message = until_reason(&world, "shared", "Degraded", "ObjectsDelayed").await?;
    expect!["a server has refused 1 object for now; see status.delayed"].assert_eq(&message);
    for number in 0..20 {
        world.apply(&object(&format!("web-{number}"))).await?;
    }
    world
        .until("the neighbours to go through", || async {
            Ok(world.keys().await?.len() == 20)
        })
        .await?;
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    let delayed = || async {
        let status = api.get("shared").await?.status.unwrap_or_default();
        Ok::<_, anyhow::Error>(status.delayed)
    };
    world
        .until("more refusals than attempts", || async {
            Ok(delayed().await?.iter().any(|one| one.refusals > 1))
        })
        .await?;
    let shown = delayed().await?;
    assert_eq!(
        (shown.len(), &*shown[0].name, &*shown[0].message),
        (1, "poisoned", "not now")
    );
    is_over.store(true, Ordering::Relaxed);
    world.settled(&["shared"]).await?;
    assert!(has_key(&world, "basic/made-poisoned").await?);
    until_reason(&world, "shared", "Degraded", "AsExpected").await?;
    assert_eq!(delayed().await?, []);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_refused_for_now_delays_no_other() -> Result<()> {
    // A disruption budget that forbids an eviction, an aggregated API that is down, a slow list or a short timeout.
    for status in [Some(429), Some(503), None] {
        refuse_one(status, None).await?;
    }
    refuse_one(Some(503), Some(Duration::from_secs(u64::from(u32::MAX)))).await
}

/// Keeps account of the answers that runs keep while they rest.
#[derive(Clone, Default)]
struct Resting(Arc<Mutex<RestingRuns>>);

#[derive(Default)]
struct RestingRuns {
    /// The bytes of each run that rests.
    now: BTreeMap<String, u64>,
    /// The most that they had together.
    most: u64,
    /// Runs that began again.
    begun_again: usize,
}

impl RunObserver for Resting {
    fn calling(&self, run: &Run, _: &Call, _: &Module) {
        self.0.lock().unwrap().now.remove(run.id());
    }

    fn ended(&self, run: &Run, end: &RunEnd) {
        let mut runs = self.0.lock().unwrap();
        match end {
            RunEnd::Paused(_) => {
                runs.now.insert(run.id().to_owned(), run.size_of_answers());
                runs.most = runs.most.max(runs.now.values().sum());
            }
            RunEnd::Finished(Finish::Restart { .. }) => runs.begun_again += 1,
            RunEnd::Finished(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_rest_share_a_part_of_the_memory_of_answers() -> Result<()> {
    let resting = Resting::default();
    let observer = resting.clone();
    let is_over = Arc::new(AtomicBool::new(false));
    let refusing = is_over.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder
            .observer(observer)
            .answer_memory(LEAST_ANSWER_MEMORY)
            .max_retry_after(Duration::from_millis(100))
            .decorate_sinks(move |sinks| Sinks {
                configstore: Arc::new(Refusing {
                    inner: sinks.configstore.clone(),
                    objects: "default/",
                    fault: Fault::new(FaultKind::ConfigstoreUnavailable, "not now"),
                    is_over: refusing,
                }),
                ..sinks
            })
    })
    .await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}});
    world.apply(&namespace).await?;
    for number in 0..3 {
        let large = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("large-{number}"), "namespace": "large"},
            "data": {"text": "x".repeat(1_000_000)},
        });
        world.apply(&large).await?;
    }
    for number in 0..5 {
        world.apply(&object(&format!("web-{number}"))).await?;
    }
    // The second phase is called with 3 MB of answers, and its request is refused.
    let mut configurator = scripted("large", json!({}));
    let spec = &mut configurator["spec"];
    spec["chain"]["phases"] =
        json!([{"name": "list", "handler": "root"}, {"name": "put", "handler": "root"}]);
    spec["parameters"] = json!({
        "list": {"requests": [{"name": "list", "listConfigMaps": "large"}]},
        "put": {"requests": [put("made", "made-{name}")]},
    });
    spec["capabilities"]["kubernetes"] = json!([{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["list"]}]);
    spec["retry"] = json!({"maxAttempts": 1, "initialDelay": "10ms", "maxDelay": "100ms"});
    world.apply(&configurator).await?;
    world
        .until("a run to begin again, and two to rest", || async {
            let runs = resting.0.lock().unwrap();
            Ok(runs.begun_again > 0 && runs.now.len() >= 2)
        })
        .await?;
    is_over.store(true, Ordering::Relaxed);
    world.settled(&["large"]).await?;
    assert_eq!(world.keys().await?.len(), 5);
    let most = resting.0.lock().unwrap().most;
    assert!((6_000_000..=8 << 20).contains(&most), "{most}");
    let held = world.metric("configurator_answer_memory_bytes");
    expect!["configurator_answer_memory_bytes 0"].assert_eq(&held);
    world.stop().await
}

/// Answers requests for the object `default/large` with a large answer, which arrives when the gate is open.
struct LargeAnswers {
    inner: Arc<dyn Sink>,
    gated: Arc<dyn Sink>,
}

#[async_trait]
impl Sink for LargeAnswers {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        if scope.object != "default/large" {
            return self.inner.execute(operation, scope).await;
        }
        scope.answer.fit(1 << 20).await?;
        self.gated.execute(operation, scope).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_reads_a_large_answer_lends_its_place() -> Result<()> {
    check_lending(false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_entry_reads_a_large_answer_lends_its_place() -> Result<()> {
    check_lending(true).await
}

/// Checks that another object is handled while one with the only place reads a large answer.
async fn check_lending(is_machine: bool) -> Result<()> {
    let gate = Gate::new(Pass::Held);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.decorate_sinks(move |sinks| Sinks {
            configstore: Arc::new(LargeAnswers {
                inner: sinks.configstore.clone(),
                gated: before.before_configstore(sinks.clone()).configstore,
            }),
            ..sinks
        })
    })
    .await?;
    let script = json!({"requests": [put("made", "made-{name}")]});
    let mut configurator = scripted("one", script.clone());
    configurator["spec"]["concurrency"] = json!(1);
    if is_machine {
        configurator::make_machine(&mut configurator, script);
    }
    world.apply(&configurator).await?;
    world.apply(&object("large")).await?;
    gate.arrivals(1).await;
    world.apply(&object("small")).await?;
    world
        .until("the other object to be handled", || async {
            has_key(&world, "basic/made-small").await
        })
        .await?;
    assert!(!has_key(&world, "basic/made-large").await?);
    gate.set(Pass::Open);
    world.settled(&["one"]).await?;
    assert!(has_key(&world, "basic/made-large").await?);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_lets_runs_end_and_begins_none() -> Result<()> {
    let gate = Gate::new(Pass::Held);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    let mut configurator = scripted("slow", json!({"requests": [put("made", "made-{name}")]}));
    configurator["spec"]["concurrency"] = json!(1);
    world.apply(&configurator).await?;
    world.apply(&object("a")).await?;
    gate.arrivals(1).await;
    world.apply(&object("b")).await?;
    let config = world.config.clone();
    world.begin_stop().await;
    gate.set(Pass::Open);
    world.stop().await?;
    let keys = config.scan("basic/").await?;
    assert_eq!(
        keys.len(),
        1,
        "the first run ended, the second never began: {keys:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_grace_period_what_still_runs_is_dropped() -> Result<()> {
    let gate = Gate::new(Pass::Held);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder
            .grace(Duration::from_millis(200))
            .decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    world
        .apply(&scripted(
            "stuck",
            json!({"requests": [put("made", "made-{name}")]}),
        ))
        .await?;
    world.apply(&object("a")).await?;
    gate.arrivals(1).await;
    // The gate is never opened: only the second stage can end this.
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configurator_that_goes_releases_the_objects_it_held() -> Result<()> {
    let world = World::start().await?;
    let mut configurator = scripted("holds", json!({"requests": [put("made", "made-{name}")]}));
    configurator["spec"]["deletion"] =
        json!({"by": "Finalizer", "phases": [{"name": "clean", "handler": "root"}]});
    world.apply(&object("web")).await?;
    world.apply(&configurator).await?;
    world.settled(&["holds"]).await?;
    let maps = config_maps(&world).await?;
    let finalizers = maps.get("web").await?.finalizers().to_vec();
    expect![[r#"
        [
            "configurator.dev/holds",
        ]
    "#]]
    .assert_debug_eq(&finalizers);
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    api.delete("holds", &DeleteParams::default()).await?;
    world
        .until("the Configurator is gone", || async {
            Ok(api.get_opt("holds").await?.is_none())
        })
        .await?;
    assert_eq!(maps.get("web").await?.finalizers(), [""; 0]);
    maps.delete("web", &DeleteParams::default()).await?;
    assert!(maps.get_opt("web").await?.is_none(), "nothing holds it");
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_from_finalizer_to_ledger_releases_the_objects() -> Result<()> {
    let world = World::start().await?;
    let mut configurator = scripted("holds", json!({"requests": [put("made", "made-{name}")]}));
    let phases = json!([{"name": "clean", "handler": "root"}]);
    configurator["spec"]["deletion"] = json!({"by": "Finalizer", "phases": phases});
    world.apply(&object("web")).await?;
    world.apply(&configurator).await?;
    world.settled(&["holds"]).await?;
    let maps = config_maps(&world).await?;
    assert_eq!(maps.get("web").await?.finalizers().len(), 1);
    configurator["spec"]["deletion"] = json!({"by": "Ledger", "phases": phases});
    world.apply(&configurator).await?;
    world
        .until("the object is released", || async {
            Ok(maps.get("web").await?.finalizers().is_empty())
        })
        .await?;
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    world
        .until("the Configurator is released", || async {
            Ok(api.get("holds").await?.finalizers().is_empty())
        })
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_a_namespace_that_is_not_watched_any_more_are_cleaned_up() -> Result<()> {
    let world = World::start().await?;
    let mut configurator = scripted(
        "narrow",
        json!({"requests": [put("made", "made-{namespace}")]}),
    );
    configurator["spec"]["watch"]["namespaces"] = json!(["default", "other"]);
    configurator["spec"]["deletion"] =
        json!({"by": "Ledger", "phases": [{"name": "clean", "handler": "root"}]});
    configurator["spec"]["parameters"]["clean"] =
        json!({"requests": [{"name": "gone", "remove": "made-{namespace}"}]});
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}))
        .await?;
    let mut elsewhere = object("web");
    elsewhere["metadata"]["namespace"] = json!("other");
    world.apply(&object("web")).await?;
    world.apply(&elsewhere).await?;
    world.apply(&configurator).await?;
    world.settled(&["narrow"]).await?;
    assert_eq!(world.keys().await?.len(), 2);
    configurator["spec"]["watch"]["namespaces"] = json!(["default"]);
    world.apply(&configurator).await?;
    world
        .until("what was made for the other namespace is gone", || async {
            let keys: Vec<String> = world
                .keys()
                .await?
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            Ok(keys == ["basic/made-default"])
        })
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_can_have_what_was_given_up_tried_again() -> Result<()> {
    let world = World::start().await?;
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy", "namespace": "elsewhere"}});
    let mut configurator = scripted(
        "asked",
        json!({"requests": [{"name": "copy", "apply": elsewhere}]}),
    );
    configurator["spec"]["retry"] = json!({"maxAttempts": 1});
    world.apply(&object("web")).await?;
    world.apply(&configurator).await?;
    let message = until_reason(&world, "asked", "Degraded", "ObjectsFailed").await?;
    expect!["1 object was given up; see status.failures"].assert_eq(&message);
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}))
        .await?;
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    let again = json!({"metadata": {"annotations": {"configurator.dev/retry": "please"}}});
    api.patch("asked", &PatchParams::default(), &Patch::Merge(&again))
        .await?;
    until_reason(&world, "asked", "Degraded", "AsExpected").await?;
    let failures = api.get("asked").await?.status.unwrap_or_default().failures;
    assert!(failures.is_empty(), "{failures:?}");
    world.stop().await
}

/// What becomes of an object whose handler misbehaves so, while its neighbour is handled all the same.
async fn misbehave(how: &str) -> Result<String> {
    let world = World::start().await?;
    let mut configurator = scripted("bad", json!({"misbehave": how}));
    configurator["spec"]["retry"] = json!({"maxAttempts": 1});
    configurator["spec"]["limits"] =
        json!({"deadline": "300ms", "memory": "64Mi", "outputSize": "8Mi"});
    world.apply(&object("web")).await?;
    world.apply(&configurator).await?;
    world
        .apply(&scripted(
            "good",
            json!({"requests": [put("made", "made-{name}")]}),
        ))
        .await?;
    world.settled(&["bad", "good"]).await?;
    assert!(
        has_key(&world, "basic/made-web").await?,
        "its neighbour is handled"
    );
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    let failures = || async {
        Ok::<_, anyhow::Error>(api.get("bad").await?.status.unwrap_or_default().failures)
    };
    world
        .until("it is given up", || async {
            Ok(!failures().await?.is_empty())
        })
        .await?;
    let failure = failures().await?.remove(0);
    world.stop().await?;
    Ok(format!("{}: {}", failure.kind, failure.message))
}

async fn check(how: &str, expected: Expect) -> Result<()> {
    let told = misbehave(how).await.with_context(|| how.to_owned())?;
    let told = told.lines().next().unwrap_or_default();
    // How much was used differs from run to run.
    let told = told.split(": it used").next().unwrap_or_default();
    expected.assert_eq(told);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_misbehaves_is_named_and_harms_nothing_else() -> Result<()> {
    check("panic", expect![[r#"RetryExceedLimit: still failing after 1 attempt: ResourceGeneric: phase "root": the handler trapped: wasm trap: wasm `unreachable` instruction executed"#]]).await?;
    check("loop", expect![[r#"RetryExceedLimit: still failing after 1 attempt: ResourceGeneric: phase "root": the handler passed its deadline of 300ms"#]]).await?;
    check("recurse", expect![[r#"RetryExceedLimit: still failing after 1 attempt: ResourceGeneric: phase "root": the handler's stack overflowed: too many nested calls"#]]).await?;
    check("allocate", expect![[r#"RetryExceedLimit: still failing after 1 attempt: ResourceGeneric: phase "root": the handler passed its memory limit of 67108864 bytes: it asked for 67436544 bytes of memory in all"#]]).await?;
    check("returnMuch", expect![[r#"ResourceGeneric: phase "root": the output has 34603008 bytes or more; limits.outputSize allows 8388608"#]]).await?;
    check("largeStatus", expect![[r#"ResourceGeneric: phase "root": a status has 1000014 bytes; the host's setting max_status_size allows 65536"#]]).await?;
    check(
        "sameNames",
        expect![[r#"ResourceGeneric: the output is invalid: two requests are named "twice""#]],
    )
    .await?;
    check("noJson", expect![[r#"ResourceGeneric: phase "root": the output is invalid: statuses: status is not well-formed JSON: EOF while parsing a value at line 1 column 10"#]]).await?;
    check("deepJson", expect![[r#"ResourceGeneric: phase "root": the output is invalid: statuses: status is nested more than 100 levels deep (at byte 100)"#]]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statuses_of_several_phases_are_limited_together() -> Result<()> {
    let world = World::start().await?;
    let part = "x".repeat(40_000);
    let mut configurator = scripted("large", json!({"status": {"message": part}}));
    configurator["spec"]["watch"]["kind"] = json!("Pod");
    configurator["spec"]["chain"]["phases"] =
        json!([{"name": "root"}, {"name": "second", "handler": "root"}]);
    configurator["spec"]["parameters"]["second"] = json!({"status": {"reason": part}});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "labels": {"handled": "yes"}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    });
    world.apply(&pod).await?;
    world.apply(&configurator).await?;
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    let failures = || async {
        let status = api.get("large").await?.status.unwrap_or_default();
        Ok::<_, anyhow::Error>(status.failures)
    };
    world
        .until("it is given up", || async {
            Ok(!failures().await?.is_empty())
        })
        .await?;
    expect![
        "the status of default/web has 80026 bytes; the host's setting max_status_size allows 65536"
    ]
    .assert_eq(&failures().await?.remove(0).message);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_log_lines_is_cut_and_the_run_goes_on() -> Result<()> {
    let world = World::start().await?;
    world.apply(&object("web")).await?;
    world
        .apply(&scripted("loud", json!({"misbehave": "floodLog"})))
        .await?;
    world.settled(&["loud"]).await?;
    let dropped = world.metric("configurator_guest_log_lines_dropped_total");
    assert!(!dropped.ends_with(" 0") && !dropped.is_empty(), "{dropped}");
    world.stop().await
}

#[tokio::test]
async fn a_finalizer_that_is_placed_while_it_is_released_stays() -> Result<()> {
    let options = ApiServerOptions::new(jiff::Timestamp::now);
    let server = ApiServer::open(Store::memory(), options).await?;
    let of_service = server.clone();
    // The release has read the object, and waits before it writes.
    let (reached, goes_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (arrive, pass) = (reached.clone(), goes_on.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, arrive, pass) = (of_service.clone(), arrive.clone(), pass.clone());
        async move {
            if request.method() == Method::PATCH {
                arrive.add_permits(1);
                pass.acquire().await?.forget();
            }
            server.oneshot(request).await.map_err(tower::BoxError::from)
        }
    });
    let config_map = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let resource = ApiResource::from_gvk(&config_map);
    let client = Client::new(service, "default");
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let finalizer = Finalizer::new(client, resource, &ObjectRef::cluster_scoped("one"));
    let object = serde_json::from_value(object("x"))?;
    let uid = api.create(&PostParams::default(), &object).await?.uid();
    let uid = uid.context("a uid")?;
    let key = ObjectRef {
        namespace: "default".into(),
        name: "x".into(),
    };
    let unseen = Document::empty_object();
    goes_on.add_permits(1);
    finalizer.place(&key, &uid, &unseen).await?;
    reached.acquire().await?.forget();
    finalizer.end(&uid);
    // What a watch shows meanwhile is older.
    let placed = api.get("x").await?;
    let version = placed
        .resource_version()
        .and_then(|version| version.parse().ok());
    assert!(version.is_some());
    finalizer.note_placed(&uid, version);
    let again = async {
        reached.acquire().await?.forget();
        finalizer.place(&key, &uid, &unseen).await?;
        goes_on.add_permits(2);
        Ok(())
    };
    tokio::try_join!(
        async { Ok::<_, anyhow::Error>(finalizer.release(&key, &uid).await?) },
        again
    )?;
    assert_eq!(api.get("x").await?.finalizers(), ["configurator.dev/one"]);
    goes_on.add_permits(1);
    finalizer.end(&uid);
    finalizer.release(&key, &uid).await?;
    assert!(api.get("x").await?.finalizers().is_empty());
    // The watch may show what is older even after that.
    finalizer.note_placed(&uid, version);
    goes_on.add_permits(1);
    finalizer.place(&key, &uid, &unseen).await?;
    assert_eq!(api.get("x").await?.finalizers(), ["configurator.dev/one"]);
    Ok(())
}
