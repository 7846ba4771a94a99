//! A kind of its own, and machines for its objects.

use anyhow::Result;
use configurator_core::layers::Write;
use configurator_host::resource::ClusterConfigurator;
use configurator_tests::configurator;
use configurator_tests::machine::{Machine, definition};
use configurator_tests::world::{Place, World};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// A host that knows Things.
pub struct Things {
    pub world: World,
}

impl Things {
    pub async fn start() -> Result<Self> {
        Self::start_at(&Place::default()).await
    }

    pub async fn start_at(place: &Place) -> Result<Self> {
        let world = World::start_at(place, |builder| builder).await?;
        let things = Self { world };
        things.world.apply(&definition("Thing")).await?;
        Ok(things)
    }

    /// Declares the machine, and makes one Thing.
    pub async fn with(spec: Value) -> Result<Self> {
        Self::declared(&machine(spec)).await
    }

    /// Declares the Configurator, and makes one Thing.
    pub async fn declared(configurator: &Value) -> Result<Self> {
        let things = Self::start().await?;
        things.world.apply(configurator).await?;
        things.world.apply(&thing("one", json!({}))).await?;
        Ok(things)
    }

    pub async fn all(&self) -> Result<Api<DynamicObject>> {
        self.world
            .objects("example.org/v1", "Thing", "default")
            .await
    }

    pub async fn machine(&self) -> Result<Machine> {
        Machine::of(
            &self.world.client,
            "things",
            "example.org/v1",
            "Thing",
            "default",
        )
        .await
    }

    pub async fn get(&self, name: &str) -> Result<Value> {
        self.machine().await?.get(name).await
    }

    pub async fn phase(&self, name: &str) -> Result<String> {
        self.machine().await?.phase(name).await
    }

    /// Returns when `one` is in this phase.
    pub async fn until_phase(&self, phase: &str) -> Result<()> {
        self.machine().await?.until_phase("one", phase).await
    }

    /// Returns when a node of `one` has come to this.
    pub async fn until_node(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        let pointer: String = path
            .split('/')
            .map(|name| format!("/state/{name}"))
            .collect();
        let pointer = format!("/status{pointer}");
        let is_so = |thing: &Value| thing.pointer(&pointer).is_some_and(&holds);
        self.machine().await?.until("one", path, is_so).await
    }

    /// The phase and what the nodes have come to, a line each.
    pub async fn drawn(&self, name: &str) -> Result<String> {
        self.machine().await?.drawn(name).await
    }

    /// Makes a Command for `one`, and returns what became of it.
    pub async fn command(&self, verb: &str, more: Value) -> Result<String> {
        self.machine().await?.command("one", verb, more).await
    }

    pub async fn merge(&self, patch: Value) -> Result<()> {
        self.all()
            .await?
            .patch("one", &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    /// Returns when what runs is what is declared.
    pub async fn until_generation(&self) -> Result<()> {
        let api: Api<ClusterConfigurator> = Api::all(self.world.client.clone());
        self.world
            .until("the Configurator is taken over", || async {
                let configurator = api.get("things").await?;
                let status = configurator.status.unwrap_or_default();
                Ok(status.observed_generation == configurator.metadata.generation)
            })
            .await
    }

    /// The message of the failure that a Configurator shows.
    async fn failure_of(&self, configurator: &str) -> Result<Option<String>> {
        let api: Api<ClusterConfigurator> = Api::all(self.world.client.clone());
        let status = api.get(configurator).await?.status.unwrap_or_default();
        let failure = status.failures.first();
        Ok(failure.map(|failure| failure.message.clone()))
    }

    /// Returns the message of the failure when the Configurator shows one.
    pub async fn until_given_up(&self) -> Result<String> {
        self.until_given_up_by("things").await
    }

    /// The same for a Configurator of another name.
    pub async fn until_given_up_by(&self, configurator: &str) -> Result<String> {
        let is_given_up = || async { Ok(self.failure_of(configurator).await?.is_some()) };
        self.world.until("it is given up", is_given_up).await?;
        Ok(self.failure_of(configurator).await?.unwrap_or_default())
    }

    /// Deletes the Configurator, and returns when its worker has ended.
    pub async fn drop_configurator(&self) -> Result<()> {
        let api: Api<ClusterConfigurator> = Api::all(self.world.client.clone());
        api.delete("things", &DeleteParams::default()).await?;
        let is_gone = || async { Ok(!self.world.report().keepers.contains_key("things")) };
        self.world.until("the Configurator is gone", is_gone).await
    }

    /// As somebody who may write the status.
    pub async fn put_status(&self, status: &Value) -> Result<()> {
        let mut thing = self.all().await?.get("one").await?;
        thing.data["status"] = status.clone();
        let body = serde_json::to_vec(&thing)?;
        self.all()
            .await?
            .replace_status(
                "one",
                &PostParams::default(),
                &serde_json::from_slice(&body)?,
            )
            .await?;
        Ok(())
    }

    /// Takes a plain key away.
    pub async fn drop_key(&self, key: &str) -> Result<()> {
        let write = Write::Delete(format!("basic/{key}"));
        self.world.config.write(vec![write], &[]).await?;
        Ok(())
    }

    /// As somebody who may write the status.
    pub async fn merge_status(&self, patch: Value) -> Result<()> {
        let patch = Patch::Merge(&patch);
        self.all()
            .await?
            .patch_status("one", &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub async fn delete(&self) -> Result<()> {
        self.all()
            .await?
            .delete("one", &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Returns when there is such a plain key.
    pub async fn until_key(&self, key: &str) -> Result<()> {
        let is_there = || async { Ok(self.key(key).await?.is_some()) };
        self.world.until(&format!("there is {key}"), is_there).await
    }

    pub async fn key(&self, key: &str) -> Result<Option<String>> {
        let found = self.world.config.scan(&format!("basic/{key}")).await?;
        Ok(found.into_iter().next().map(|(_, value)| value))
    }
}

/// A Configurator with this machine, whose handlers do what the parameters of their nodes say.
pub fn machine(machine: Value) -> Value {
    let spec = json!({
        "watch": {"apiVersion": "example.org/v1", "kind": "Thing"},
        "module": {"file": "scripted.wasm"},
        "machine": machine,
        "capabilities": {
            "kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["get", "apply", "delete"]}],
            "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
            "secretstore": [{"names": ["*"], "verbs": ["get", "create"]}],
        },
    });
    configurator::of("things", spec)
}

pub fn thing(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

/// A step of this name that does what a script says.
pub fn step(name: &str, script: Value) -> Value {
    json!({"name": name, "handler": "root", "parameters": {"script": script}})
}

/// As [`step`], with a script for each entry.
pub fn steps(name: &str, scripts: Value) -> Value {
    json!({"name": name, "handler": "root", "parameters": {"scripts": scripts}})
}

/// A step that writes a plain key.
pub fn put(name: &str, value: &str) -> Value {
    step(
        name,
        json!({"requests": [{"name": "put", "put": {"key": name, "value": value}}]}),
    )
}
