//! A host, and owners with sets in a namespace of their own.

use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_host::cluster::patient;
use configurator_host::host::HostBuilder;
use configurator_host::resource::ClusterConfigurator;
use configurator_host::resource::object_set::{ObjectSet, ObjectSetStatus};
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, SCENE, Servers, World};
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// The lease of a host, which the next host of its scene waits for.
const LEASE: Duration = Duration::from_secs(2);

/// A host that runs one Configurator. It watches ConfigMaps, and each of them has the set that is in its `data.set`.
pub struct Scene {
    pub world: World,
    servers: Servers,
    pub name: String,
}

/// Runs a test on the embedded API and on a real one.
macro_rules! on_both {
    ($(#[doc = $doc:expr])* $name:ident, $test:expr) => {
        mod $name {
            use super::*;

            $(#[doc = $doc])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn embedded() -> anyhow::Result<()> {
                let scene = $crate::scene::Scene::embedded(stringify!($name)).await?;
                ($test)(scene).await
            }

            $(#[doc = $doc])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn real() -> anyhow::Result<()> {
                let scene = $crate::scene::Scene::real(stringify!($name)).await?;
                ($test)(scene).await
            }
        }
    };
}
pub(crate) use on_both;

impl Scene {
    pub async fn embedded(name: &str) -> Result<Self> {
        Self::start(Place::default().open().await?, name).await
    }

    pub async fn real(name: &str) -> Result<Self> {
        let servers = ControlPlane::shared().await?.servers().await?;
        Self::start(servers, name).await
    }

    /// On the embedded API, with a host that differs from others by this.
    pub async fn embedded_with(
        name: &str,
        change: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Result<Self> {
        let servers = Place::default().open().await?;
        let world = World::start_on(servers.clone(), change).await?;
        Self::of(world, servers, short(name)).await
    }

    async fn start(servers: Servers, name: &str) -> Result<Self> {
        let name = short(name);
        let world = World::start_scene(servers.clone(), &name, LEASE).await?;
        Self::of(world, servers, name).await
    }

    async fn of(world: World, servers: Servers, name: String) -> Result<Self> {
        let scene = Self {
            world,
            servers,
            name,
        };
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.name}});
        scene.world.apply(&namespace).await?;
        scene.configure(|_| ()).await?;
        Ok(scene)
    }

    /// Ends the host at once, and starts another one.
    pub async fn restart(self) -> Result<Self> {
        let Self {
            world,
            servers,
            name,
        } = self;
        world.kill().await?;
        let world = World::start_scene(servers.clone(), &name, LEASE).await?;
        Ok(Self {
            world,
            servers,
            name,
        })
    }

    /// Declares the Configurator, with a change.
    pub async fn configure(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        let watch = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "namespaces": [self.name],
            "labelSelector": {"matchLabels": {SCENE: self.name}},
        });
        let verbs = ["get", "apply", "delete", "watch"];
        let rule = |group: &str| json!({"apiGroups": [group], "resources": ["*"], "namespaces": ["*"], "verbs": verbs});
        let capabilities =
            json!({"kubernetes": [rule(""), rule("apps"), rule("batch"), rule("sets.example")]});
        let script = json!({"desiredAt": "/data/set"});
        let mut object = configurator::scripted(&self.name, watch, script, capabilities);
        object["metadata"]["labels"] = json!({SCENE: self.name});
        object["spec"]["sets"] = json!({});
        change(&mut object);
        self.world.apply(&object).await?;
        let api: Api<ClusterConfigurator> = Api::all(self.world.client.clone());
        self.world
            .until("the Configurator runs as declared", || async {
                let object = api.get(&self.name).await?;
                let status = object.status.unwrap_or_default();
                let is_ready = status
                    .conditions
                    .iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True");
                Ok(is_ready && status.observed_generation == object.metadata.generation)
            })
            .await
    }

    /// Creates or changes an owner: it has these entries.
    pub async fn owner(&self, name: &str, entries: Value) -> Result<()> {
        self.owner_of_set(name, json!({"entries": entries})).await
    }

    /// Creates or changes an owner with this set.
    pub async fn owner_of_set(&self, name: &str, set: Value) -> Result<()> {
        let owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.name, "labels": {SCENE: self.name}},
            "data": {"set": set.to_string()},
        });
        self.world.apply(&owner).await
    }

    /// Defines the kind `Thing`, which no controller knows.
    pub async fn define_things(&self) -> Result<()> {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.sets.example"},
            "spec": {
                "group": "sets.example", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        self.world.apply(&definition).await
    }

    /// Begins to delete an owner.
    pub async fn delete_owner(&self, name: &str) -> Result<()> {
        let owners = self.api("v1", "ConfigMap").await?;
        owners.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Objects of a kind in the namespace of the scene.
    pub async fn api(&self, api_version: &str, kind: &str) -> Result<Api<DynamicObject>> {
        self.world.objects(api_version, kind, &self.name).await
    }

    /// A ConfigMap of the namespace. `None`: there is none.
    pub async fn config_map(&self, name: &str) -> Result<Option<Value>> {
        self.object("v1", "ConfigMap", name).await
    }

    pub async fn object(&self, api_version: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(api_version, kind).await?.get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// Changes an object as somebody else.
    pub async fn meddle(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> Result<()> {
        let params = PatchParams {
            field_manager: Some("meddler".to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(api_version, kind).await?;
        api.patch(name, &params, &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// Sets an annotation of a ConfigMap, or removes it.
    pub async fn annotate(&self, name: &str, annotation: &str, value: Option<&str>) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        self.meddle("v1", "ConfigMap", name, patch).await
    }

    /// Holds a ConfigMap by a finalizer of somebody else, or lets it go.
    pub async fn hold(&self, name: &str, is_held: bool) -> Result<()> {
        let finalizers = is_held.then_some(["sets.example/hold"]);
        let patch = json!({"metadata": {"finalizers": finalizers}});
        self.meddle("v1", "ConfigMap", name, patch).await
    }

    /// Suspends or resumes the set of an owner. Returns when a set that is to be suspended is.
    pub async fn suspend(&self, owner: &str, is_suspended: bool) -> Result<()> {
        let value = is_suspended.then_some("true");
        self.annotate(owner, "configurator.dev/suspend-set", value)
            .await?;
        if is_suspended {
            self.until_state(owner, "Suspended").await?;
        }
        Ok(())
    }

    /// Sets the status of an object as its controller would.
    pub async fn set_status(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        status: Value,
    ) -> Result<()> {
        let api = self.api(api_version, kind).await?;
        let patch = json!({"status": status});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    /// The inventory of an owner. `None`: there is none.
    pub async fn object_set(&self, owner: &str) -> Result<Option<ObjectSet>> {
        // The definitions that the host of another scene applies take a moment.
        let client = patient(&self.world.client);
        let api: Api<ObjectSet> = Api::namespaced(client, &self.name);
        let all = api.list(&ListParams::default()).await?;
        Ok(all
            .items
            .into_iter()
            .find(|set| set.spec.owner.name == owner && set.spec.pages > 0))
    }

    /// Returns the status of an owner's set when it is like this.
    pub async fn until_status(
        &self,
        owner: &str,
        what: &str,
        is_so: impl Fn(&ObjectSetStatus) -> bool,
    ) -> Result<ObjectSetStatus> {
        let waiting = self.world.until(what, || async {
            let set = self.object_set(owner).await?;
            Ok(set
                .and_then(|set| set.status)
                .is_some_and(|status| is_so(&status)))
        });
        if let Err(error) = waiting.await {
            let set = self.object_set(owner).await?.map(|set| set.status);
            let host = self.world.report();
            return Err(error.context(format!("the set is {set:?}, the host {host:?}")));
        }
        let set = self.object_set(owner).await?;
        set.and_then(|set| set.status).context("the status")
    }

    /// Returns the status of an owner's set when it is in this state.
    pub async fn until_state(&self, owner: &str, state: &str) -> Result<ObjectSetStatus> {
        self.until_status(owner, state, |status| status.state == state)
            .await
    }

    /// Returns when a member is ready or not ready as its entry has it: the set's status says this of it.
    pub async fn until_reason(&self, owner: &str, reason: &str) -> Result<ObjectSetStatus> {
        self.until_status(owner, reason, |status| {
            status
                .members
                .iter()
                .any(|member| member.reason.contains(reason))
                || status.waiting_for.contains(reason)
        })
        .await
    }

    /// Returns when there is no ConfigMap of this name.
    pub async fn until_gone(&self, name: &str) -> Result<()> {
        let what = format!("{name} is gone");
        let gone = self.world.until(&what, || async {
            Ok(self.config_map(name).await?.is_none())
        });
        if let Err(error) = gone.await {
            let (object, set) = (self.config_map(name).await?, self.object_set(name).await?);
            return Err(error.context(format!("{object:?}, its set is {set:?}")));
        }
        Ok(())
    }

    /// Returns the messages of the Events with this reason, when there are some.
    pub async fn events(&self, reason: &str) -> Result<Vec<String>> {
        let api: Api<Event> = Api::namespaced(self.world.client.clone(), &self.name);
        let messages = || async {
            let events = api.list(&ListParams::default()).await?.items.into_iter();
            let its = events.filter(|event| event.reason.as_deref() == Some(reason));
            Ok::<Vec<String>, anyhow::Error>(its.filter_map(|event| event.message).collect())
        };
        self.world
            .until(&format!("an Event {reason}"), || async {
                Ok(!messages().await?.is_empty())
            })
            .await?;
        messages().await
    }

    /// Returns the failure of an owner, as the status of the Configurator has it.
    pub async fn failure(&self, owner: &str) -> Result<String> {
        let api: Api<ClusterConfigurator> = Api::all(self.world.client.clone());
        let found = || async {
            let status = api.get(&self.name).await?.status.unwrap_or_default();
            let mut failures = status.failures.into_iter();
            let failure = failures.find(|failure| failure.name == owner);
            Ok::<Option<String>, anyhow::Error>(
                failure.map(|failure| format!("{}: {}", failure.kind, failure.message)),
            )
        };
        let what = format!("{owner} has failed");
        let waiting = self
            .world
            .until(&what, || async { Ok(found().await?.is_some()) });
        if let Err(error) = waiting.await {
            let set = self.object_set(owner).await?.map(|set| set.status);
            return Err(error.context(format!("its set is {set:?}")));
        }
        found().await?.context("the failure")
    }

    /// The names of the ConfigMaps that are members of some set, in the order of their creation.
    pub async fn members(&self) -> Result<Vec<String>> {
        let api = self.api("v1", "ConfigMap").await?;
        let its = ListParams::default().labels("applyset.kubernetes.io/part-of");
        let mut all = api.list(&its).await?.items;
        all.sort_by_key(|object| {
            let version = object.resource_version().unwrap_or_default();
            version.parse::<u64>().unwrap_or_default()
        });
        Ok(all.iter().map(DynamicObject::name_any).collect())
    }
}

/// An entry for a ConfigMap with this text in it.
pub fn entry(name: &str, text: &str) -> Value {
    json!({"name": name, "object": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text},
    }})
}

/// The name of a test as that of a namespace.
fn short(name: &str) -> String {
    let name: String = name.replace('_', "-").chars().take(40).collect();
    name.trim_end_matches('-').to_owned()
}

/// An entry for a ConfigMap that comes after others.
pub fn after(name: &str, text: &str, others: &[&str]) -> Value {
    let mut entry = entry(name, text);
    entry["dependsOn"] = json!(others);
    entry
}
