//! Modules that the policies for a namespace allow.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use configurator_host::module_source::oci::Login;
use configurator_tests::registry::RegistryServer;
use configurator_tests::world::World;
use serde_json::{Value, json};

use crate::bench::{self, Given, at, oci, options, push, runs, told, variant, world};
use crate::liars::{Asked, Said, plain, registry, status};
use crate::signatures::key;

/// The Configurator in the namespace `shop`.
fn configurator(module: &Value) -> Value {
    let mut configurator = bench::configurator(module);
    configurator["kind"] = "Configurator".into();
    configurator["metadata"]["namespace"] = "shop".into();
    configurator["spec"]["watch"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    configurator
}

/// Applies a policy for all namespaces.
async fn policy(world: &World, name: &str, modules: Value) -> Result<()> {
    let watch = json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["watch", "get"]});
    let store = json!({"prefixes": ["basic/"], "verbs": ["get", "create", "update"]});
    world
        .apply(&json!({
            "apiVersion": "configurator.dev/v1alpha1", "kind": "ConfiguratorPolicy",
            "metadata": {"name": name},
            "spec": {"modules": modules, "capabilities": {"kubernetes": [watch], "configstore": [store]}},
        }))
        .await
}

#[tokio::test]
async fn all_policies_of_a_namespace_must_allow_a_module() -> Result<()> {
    let server = RegistryServer::start().await?;
    let [(ours, our_public), (theirs, their_public)] = [key(), key()];
    let world = world(options(&server), Given::default()).await?;
    let here = format!("{}/team/*", server.address);
    policy(&world, "a", json!({"registries": ["ghcr.io/team/*"]})).await?;
    let name = "team/scripted:1";
    let pushed = push(&server, name, variant(1)).await?;
    world.apply(&configurator(&oci(&server, name))).await?;
    let denied = ("False", "PolicyDenied");
    told(
        &world,
        denied,
        "the ConfiguratorPolicy a allows no modules of",
    )
    .await?;

    policy(
        &world,
        "a",
        json!({"registries": [here], "signers": [our_public]}),
    )
    .await?;
    told(
        &world,
        denied,
        "the ConfiguratorPolicy a wants modules to be signed",
    )
    .await?;
    let registry = at(&server, name, Login::anonymous());
    registry.sign(&pushed, &ours).await?;
    runs(&world, &variant(1)).await?;

    // A policy that wants another signature ends what runs.
    policy(&world, "b", json!({"signers": [their_public]})).await?;
    told(
        &world,
        denied,
        "the ConfiguratorPolicy b wants modules to be signed",
    )
    .await?;
    registry.sign(&pushed, &theirs).await?;
    runs(&world, &variant(1)).await?;

    // A module in a ConfigMap has no signature.
    let map = json!({"configMap": {"name": "m", "key": "m"}, "digest": bench::digest(&variant(1))});
    world.apply(&configurator(&map)).await?;
    told(&world, denied, "one in a ConfigMap has no signature").await?;
    world.stop().await
}

#[tokio::test]
async fn a_registry_is_asked_for_nobody_who_is_not_allowed_to() -> Result<()> {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let answer = move |asked: &Asked| {
        seen.lock().unwrap().push(asked.path.clone());
        Said::This(status("404 Not Found"))
    };
    let (address, _) = registry(Arc::new(answer)).await?;
    let has_seen = |repository: &str| {
        let paths = paths.lock().unwrap();
        paths.iter().any(|path| path.contains(repository))
    };
    let of = |repository: &str| json!({"oci": {"reference": format!("{address}/{repository}:1"), "interval": "1s"}});
    let world = world(plain(&[&address]), Given::default()).await?;
    policy(&world, "a", json!({"registries": ["ghcr.io/team/*"]})).await?;
    world.apply(&configurator(&of("team/a"))).await?;
    told(&world, ("False", "PolicyDenied"), "allows no modules of").await?;
    assert!(!has_seen("team/a"));

    policy(&world, "a", json!({})).await?;
    told(&world, ("False", "ModuleNotFound"), "").await?;
    assert!(has_seen("team/a"));

    // The login of another namespace.
    let mut module = of("team/b");
    module["oci"]["pullSecret"] = json!({"namespace": "default", "name": "login"});
    world.apply(&configurator(&module)).await?;
    told(&world, ("False", "Invalid"), "spec.module.oci.pullSecret").await?;
    assert!(!has_seen("team/b"));
    world.stop().await
}
