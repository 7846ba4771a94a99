//! A host whose modules come from a registry, and what is pushed there.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use configurator_host::host::HostBuilder;
use configurator_host::module_source::oci::{
    About, Artifact, Authority, Login, Reference, Registries, Registry, RegistryOptions,
};
use configurator_host::module_source::{
    ConfigMaps, Copies, DEFAULT_COPIES, ModulePolicy, ModuleSources,
};
use configurator_host::network::Reach;
use configurator_tests::guests;
pub use configurator_tests::guests::digest;
use configurator_tests::registry::RegistryServer;
use configurator_tests::world::{Place, World};
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

/// A module that asks for what its parameters say.
pub fn scripted() -> Vec<u8> {
    std::fs::read(guests::folder().unwrap().join("scripted.wasm")).unwrap()
}

/// A module that does the same and has another digest.
pub fn variant(number: u8) -> Vec<u8> {
    guests::variant(&scripted(), number)
}

pub fn options(server: &RegistryServer) -> RegistryOptions {
    RegistryOptions {
        ca: vec![Authority::from_pem(&std::fs::read(&server.ca).unwrap()).unwrap()],
        reach: Reach::Public(vec![server.address.parse().unwrap()]),
        plain_http: Vec::new(),
    }
}

/// A name in the registry, for whoever this is.
pub fn at(server: &RegistryServer, name: &str, login: Login) -> Registry {
    let reference: Reference = format!("{}/{name}", server.address).parse().unwrap();
    Registry::new(reference, login, &options(server)).unwrap()
}

pub async fn push(server: &RegistryServer, name: &str, module: Vec<u8>) -> Result<Artifact> {
    let about = About {
        name: Some("scripted".to_owned()),
        created: "2026-01-01T00:00:00Z".to_owned(),
        ..About::default()
    };
    Ok(at(server, name, Login::anonymous())
        .push(module, &about)
        .await?)
}

/// What a host is given beside the registry.
#[derive(Default, Clone)]
pub struct Given<'g> {
    pub copies: Option<&'g Path>,
    pub policy: Value,
}

/// A host that pulls from there.
pub async fn world(options: RegistryOptions, given: Given<'_>) -> Result<World> {
    world_with(options, given, |builder, sources| builder.modules(sources)).await
}

/// A host that pulls from there, as `change` says.
pub async fn world_with(
    options: RegistryOptions,
    given: Given<'_>,
    change: impl FnOnce(HostBuilder, ModuleSources) -> HostBuilder,
) -> Result<World> {
    let servers = Place::default().open().await?;
    let client = servers.cluster.client.clone();
    let policy: ModulePolicy = match given.policy {
        Value::Null => ModulePolicy::default(),
        policy => serde_json::from_value(policy)?,
    };
    let policy = Arc::new(policy);
    let mut registries = Registries::new(&options, policy.clone()).pull_secrets(client.clone());
    let mut sources = ModuleSources::new()
        .config_maps(ConfigMaps::new(client))
        .policy(policy);
    if let Some(folder) = given.copies {
        let copies = Arc::new(Copies::open(folder, DEFAULT_COPIES)?);
        registries = registries.copies(copies.clone());
        sources = sources.copies(copies);
    }
    let sources = sources.registries(registries);
    let world = World::start_on(servers, |builder| change(builder, sources)).await?;
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await?;
    Ok(world)
}

/// Puts a key for each ConfigMap with data, by a module from there.
pub fn configurator(module: &Value) -> Value {
    let request = json!({"name": "put", "put": {"key": "seen/{name}", "value": "1"}});
    json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": "scripted"},
        "spec": {
            "watch": {"apiVersion": "v1", "kind": "ConfigMap", "namespaces": ["shop"]},
            "module": module,
            "chain": {"phases": [{"name": "root"}]},
            "parameters": {"root": {"requests": [request]}},
            "capabilities": {"configstore": [{"prefixes": ["basic/"], "verbs": ["get", "create", "update"]}]},
        },
    })
}

pub fn oci(server: &RegistryServer, name: &str) -> Value {
    json!({"oci": {"reference": format!("{}/{name}", server.address), "interval": "1s"}})
}

/// That of the ClusterConfigurator, or of the Configurator in the namespace `shop`.
pub async fn status(world: &World) -> Result<Value> {
    let of = async |kind, namespace| {
        let version = "configurator.dev/v1alpha1";
        let api: Api<DynamicObject> = world.objects(version, kind, namespace).await?;
        anyhow::Ok(api.get_opt("scripted").await?)
    };
    let found = match of("ClusterConfigurator", "").await? {
        Some(found) => Some(found),
        None => of("Configurator", "shop").await?,
    };
    Ok(found.map_or(Value::Null, |mut found| found.data["status"].take()))
}

/// Returns when the condition is told so, and its message has this in it.
pub async fn told(world: &World, status_and_reason: (&str, &str), message: &str) -> Result<()> {
    let last = std::cell::RefCell::new(String::new());
    let seen = world
        .until("the status says so", async || {
            let status = status(world).await?;
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let loaded = conditions.iter().find(|one| one["type"] == "ModuleLoaded");
            *last.borrow_mut() = loaded.map(ToString::to_string).unwrap_or_default();
            Ok(loaded.is_some_and(|loaded| {
                (loaded["status"].as_str(), loaded["reason"].as_str())
                    == (Some(status_and_reason.0), Some(status_and_reason.1))
                    && loaded["message"]
                        .as_str()
                        .unwrap_or_default()
                        .contains(message)
            }))
        })
        .await;
    seen.map_err(|error| error.context(last.into_inner()))
}

/// Returns when this module runs.
pub async fn runs(world: &World, module: &[u8]) -> Result<()> {
    let wanted = digest(module);
    world
        .until("the module runs", async || {
            Ok(status(world).await?["moduleDigest"] == wanted)
        })
        .await
}
