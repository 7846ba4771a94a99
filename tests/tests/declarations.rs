//! What becomes of Configurators that are wrong, late, or changed while they run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use anyhow::{Context as _, Result};
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::resource::ClusterConfigurator;
use configurator_tests::configurator::configurator;
use configurator_tests::guests;
use configurator_tests::world::{Place, World};
use expect_test::{Expect, expect};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::{Value, json};

/// A Configurator of Namespaces with the smallest module.
fn hello() -> Value {
    let watch =
        json!({"apiVersion": "v1", "kind": "Namespace", "fieldSelector": "metadata.name=shop"});
    let mut hello = configurator("hello", "rust_hello.wasm", watch);
    hello["spec"]["capabilities"] = json!({"kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["apply"]}]});
    hello
}

fn shop() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
}

/// A world whose modules also come from `folder`.
async fn world_with(folder: &std::path::Path) -> Result<World> {
    let roots = vec![folder.to_owned(), guests::folder()?];
    World::start_at(&Place::default(), |builder| {
        builder.modules(ModuleDirectory::of(roots))
    })
    .await
}

async fn condition(world: &World, name: &str) -> Result<Option<(String, String, String)>> {
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    let status = api.get("hello").await?.status.unwrap_or_default();
    let found = status
        .conditions
        .into_iter()
        .find(|condition| condition.type_ == name);
    Ok(found.map(|condition| (condition.status, condition.reason, condition.message)))
}

/// Returns when a condition has this reason.
async fn until_reason(world: &World, name: &str, reason: &str) -> Result<String> {
    world
        .until(&format!("{name} because {reason}"), || async {
            Ok(condition(world, name)
                .await?
                .is_some_and(|(_, found, _)| found == reason))
        })
        .await
        .with_context(|| name.to_owned())?;
    let (status, _, message) = condition(world, name).await?.context("the condition")?;
    Ok(format!("{status} {reason}: {message}"))
}

#[track_caller]
fn check(found: &str, expected: Expect) {
    expected.assert_eq(found);
}

async fn greeting(world: &World) -> Result<Option<DynamicObject>> {
    Ok(world
        .objects("v1", "ConfigMap", "shop")
        .await?
        .get_opt("hello")
        .await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_the_module_lacks_is_named_with_those_it_has() -> Result<()> {
    let world = World::start().await?;
    let mut wrong = hello();
    wrong["spec"]["chain"]["phases"] =
        json!([{"name": "root"}, {"name": "write", "handler": "rite"}]);
    world.apply(&wrong).await?;
    check(
        &until_reason(&world, "ModuleLoaded", "HandlerMissing").await?,
        expect![[
            r#"False HandlerMissing: phase "write" names the handler "rite", which the module lacks; it has: root"#
        ]],
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_limit_above_that_of_the_host_is_refused() -> Result<()> {
    let guest = GuestRuntime::new(GuestOptions {
        memory: 100 << 20,
        ..GuestOptions::default()
    })?;
    let world = World::start_at(&Place::default(), |builder| builder.guest(guest)).await?;
    let mut wrong = hello();
    wrong["spec"]["limits"] = json!({"memory": "1Gi"});
    world.apply(&wrong).await?;
    check(
        &until_reason(&world, "ModuleLoaded", "MemoryLimitTooHigh").await?,
        expect![
            "False MemoryLimitTooHigh: spec.limits.memory is 1Gi, and the modules of this host have 100Mi of memory in all; lower spec.limits.memory, or raise the setting guest_memory of the host"
        ],
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_digest_that_does_not_match_is_refused() -> Result<()> {
    let world = World::start().await?;
    let mut wrong = hello();
    wrong["spec"]["module"]["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    world.apply(&wrong).await?;
    let said = until_reason(&world, "Ready", "DigestMismatch").await?;
    assert!(
        said.starts_with("False DigestMismatch: spec.module.digest is sha256:0000"),
        "{said}"
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_module_is_refused_and_a_module_that_comes_late_is_taken() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("script.wasm"), "#!/bin/sh\n")?;
    std::fs::write(folder.path().join("core.wasm"), b"\0asm\x01\0\0\0")?;
    let world = world_with(folder.path()).await?;
    world.apply(&shop()).await?;
    let mut object = hello();
    object["spec"]["module"]["file"] = json!("script.wasm");
    world.apply(&object).await?;
    let said = until_reason(&world, "ModuleLoaded", "ModuleInvalid").await?;
    assert!(
        said.contains("script.wasm is not a WebAssembly file"),
        "{said}"
    );
    object["spec"]["module"]["file"] = json!("core.wasm");
    world.apply(&object).await?;
    world
        .until("the core module is named", || async {
            Ok(condition(&world, "ModuleLoaded")
                .await?
                .is_some_and(|(_, _, message)| message.contains("core.wasm")))
        })
        .await?;
    object["spec"]["module"]["file"] = json!("late.wasm");
    world.apply(&object).await?;
    until_reason(&world, "ModuleLoaded", "ModuleNotFound").await?;
    std::fs::copy(
        guests::folder()?.join("rust_hello.wasm"),
        folder.path().join("late.wasm"),
    )?;
    until_reason(&world, "Ready", "Running").await?;
    world
        .until("the greeting", || async {
            Ok(greeting(&world).await?.is_some())
        })
        .await?;
    object["spec"]["module"]["file"] = json!("../late.wasm");
    world.apply(&object).await?;
    let said = until_reason(&world, "ModuleLoaded", "ModuleNotFound").await?;
    assert!(said.contains("must be a plain relative path"), "{said}");
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_change_keeps_the_last_good_one_running() -> Result<()> {
    let world = World::start().await?;
    world.apply(&hello()).await?;
    until_reason(&world, "Ready", "Running").await?;
    let mut broken = hello();
    broken["spec"]["chain"]["phases"] = json!([{"name": "nobody"}]);
    world.apply(&broken).await?;
    check(
        &until_reason(&world, "ModuleLoaded", "HandlerMissing").await?,
        expect![[
            r#"False HandlerMissing: phase "nobody" names the handler "nobody", which the module lacks; it has: root; generation 1 goes on running"#
        ]],
    );
    check(
        &until_reason(&world, "Ready", "RunningPrevious").await?,
        expect![
            "False RunningPrevious: generation 1 continues to run, because the newest one cannot: HandlerMissing"
        ],
    );
    check(
        &until_reason(&world, "Stalled", "HandlerMissing").await?,
        expect![[
            r#"True HandlerMissing: phase "nobody" names the handler "nobody", which the module lacks; it has: root"#
        ]],
    );
    world.apply(&shop()).await?;
    world
        .until("the greeting", || async {
            Ok(greeting(&world).await?.is_some())
        })
        .await?;
    world.apply(&hello()).await?;
    until_reason(&world, "Ready", "Running").await?;
    check(
        &until_reason(&world, "Degraded", "AsExpected").await?,
        expect!["False AsExpected: "],
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_does_not_exist_yet_is_waited_for() -> Result<()> {
    let world = World::start().await?;
    let mut early = hello();
    early["spec"]["watch"] = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
    world.apply(&early).await?;
    let said = until_reason(&world, "Ready", "WatchedKindMissing").await?;
    assert!(
        said.contains("the API has no kind Widget in example.com/v1"),
        "{said}"
    );
    world
        .apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }))
        .await?;
    until_reason(&world, "Ready", "Running").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_refuses_what_the_schema_does_not_allow() -> Result<()> {
    let world = World::start().await?;
    let api = world
        .objects("configurator.dev/v1alpha1", "ClusterConfigurator", "")
        .await?;
    let refusal = |change: fn(&mut Value)| {
        let api = api.clone();
        async move {
            let mut object = hello();
            change(&mut object);
            let params = PatchParams {
                field_validation: Some(ValidationDirective::Strict),
                ..PatchParams::apply("test")
            };
            match api.patch("hello", &params, &Patch::Apply(&object)).await {
                Err(kube::Error::Api(status)) => status.message.clone(),
                other => format!("{other:?}"),
            }
        }
    };
    let no_phases = refusal(|object| object["spec"]["chain"]["phases"] = json!([])).await;
    assert!(no_phases.contains("spec.chain.phases"), "{no_phases}");
    let twice =
        refusal(|object| object["spec"]["chain"]["phases"] = json!([{"name": "a"}, {"name": "a"}]))
            .await;
    assert!(
        twice.contains("each phase must have a name of its own"),
        "{twice}"
    );
    let unknown = refusal(|object| object["spec"]["pases"] = json!([])).await;
    assert!(unknown.contains("spec.pases"), "{unknown}");
    let finalizer = refusal(|object| object["spec"]["deletion"] = json!({"by": "Finalizer"})).await;
    assert!(
        finalizer.contains("never placed on Pods, Nodes or Namespaces"),
        "{finalizer}"
    );
    let no_module = refusal(|object| object["spec"]["module"] = json!({})).await;
    assert!(
        no_module.contains("a module needs one source"),
        "{no_module}"
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_nothing_begins_until_it_is_resumed() -> Result<()> {
    let world = World::start().await?;
    let mut suspended = hello();
    suspended["spec"]["suspend"] = json!(true);
    world.apply(&suspended).await?;
    check(
        &until_reason(&world, "Ready", "Suspended").await?,
        expect!["False Suspended: spec.suspend is true: no new runs start"],
    );
    check(
        &until_reason(&world, "Reconciling", "AsExpected").await?,
        expect!["False AsExpected: "],
    );
    world.apply(&shop()).await?;
    suspended["spec"]["suspend"] = json!(false);
    assert!(greeting(&world).await?.is_none());
    world.apply(&suspended).await?;
    world
        .until("the greeting", || async {
            Ok(greeting(&world).await?.is_some())
        })
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_capability_fails_the_run_and_is_shown_until_it_is_given() -> Result<()> {
    let world = World::start().await?;
    world.apply(&shop()).await?;
    let mut poor = hello();
    poor["spec"]["capabilities"] = json!({});
    world.apply(&poor).await?;
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    world
        .until("the failure is shown", || async {
            Ok(api
                .get("hello")
                .await?
                .status
                .is_some_and(|status| !status.failures.is_empty()))
        })
        .await?;
    let failure = api
        .get("hello")
        .await?
        .status
        .unwrap_or_default()
        .failures
        .remove(0);
    check(
        &format!(
            "{} {} {}: {}",
            failure.name, failure.request, failure.kind, failure.message
        ),
        expect![[
            r#"shop hello ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [shop], names: [hello], verbs: [apply]}"#
        ]],
    );
    check(
        &until_reason(&world, "Degraded", "ObjectsFailed").await?,
        expect!["True ObjectsFailed: 1 object was given up; see status.failures"],
    );
    world.apply(&hello()).await?;
    world
        .until("the greeting", || async {
            Ok(greeting(&world).await?.is_some())
        })
        .await?;
    until_reason(&world, "Degraded", "AsExpected").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_writes_start_no_run() -> Result<()> {
    let world = World::start().await?;
    world.apply(&shop()).await?;
    world.apply(&hello()).await?;
    world
        .until("the greeting", || async {
            Ok(greeting(&world).await?.is_some())
        })
        .await?;
    let before = greeting(&world)
        .await?
        .context("the greeting")?
        .metadata
        .resource_version;
    // A change of another's annotation is a change; the same object once more is none.
    world.apply(&shop()).await?;
    world.settled(&["hello"]).await?;
    assert_eq!(
        greeting(&world)
            .await?
            .context("the greeting")?
            .metadata
            .resource_version,
        before
    );
    let namespaces: Api<DynamicObject> = world.objects("v1", "Namespace", "").await?;
    let found = namespaces
        .create(&PostParams::default(), &serde_json::from_value(shop())?)
        .await;
    assert!(matches!(found, Err(kube::Error::Api(status)) if status.code == 409));
    world.stop().await
}
