//! A kind of its own, and machines for its objects.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use configurator_core::layers::Write;
use configurator_host::resource::Configurator;
use configurator_host::resource::command::{Command, CommandPhase};
use configurator_tests::world::{Place, World};
use kube::ResourceExt as _;
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
        things.world.apply(&definition()).await?;
        Ok(things)
    }

    /// Declares the machine, and makes one Thing.
    pub async fn with(spec: Value) -> Result<Self> {
        let things = Self::start().await?;
        things.world.apply(&machine(spec)).await?;
        things.world.apply(&thing("one", json!({}))).await?;
        Ok(things)
    }

    pub async fn all(&self) -> Result<Api<DynamicObject>> {
        self.world
            .objects("example.org/v1", "Thing", "default")
            .await
    }

    pub async fn get(&self, name: &str) -> Result<Value> {
        let thing = self.all().await?.get(name).await?;
        Ok(serde_json::to_value(thing)?)
    }

    pub async fn phase(&self, name: &str) -> Result<String> {
        let thing = self.get(name).await?;
        Ok(text(&thing, "/status/phase"))
    }

    /// Returns when `one` is in this phase.
    pub async fn until_phase(&self, phase: &str) -> Result<()> {
        let waiting = self
            .world
            .until(phase, || async { Ok(self.phase("one").await? == phase) })
            .await;
        match waiting {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(self.drawn("one").await?)),
        }
    }

    /// Returns when a node of `one` has come to this.
    pub async fn until_node(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        let pointer: String = path
            .split('/')
            .map(|name| format!("/state/{name}"))
            .collect();
        let pointer = format!("/status{pointer}");
        let waiting = self
            .world
            .until(path, || async {
                let thing = self.get("one").await?;
                Ok(thing.pointer(&pointer).is_some_and(&holds))
            })
            .await;
        match waiting {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(self.drawn("one").await?)),
        }
    }

    /// The phase and what the nodes have come to, a line each.
    pub async fn drawn(&self, name: &str) -> Result<String> {
        let thing = self.get(name).await?;
        let mut text = format!("{}\n", text(&thing, "/status/phase"));
        draw(&thing["status"]["state"], 1, &mut text);
        Ok(text)
    }

    /// Makes a Command for `one`, and returns what became of it.
    pub async fn command(&self, verb: &str, more: Value) -> Result<String> {
        let uid = self
            .all()
            .await?
            .get("one")
            .await?
            .uid()
            .context("no uid")?;
        let mut spec = json!({
            "configurator": "things",
            "target": {"name": "one", "uid": uid},
            "verb": verb,
            "by": "ann",
        });
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        let command: Command = serde_json::from_value(json!({
            "apiVersion": "configurator.dev/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": "order-", "namespace": "default"},
            "spec": spec,
        }))?;
        let api: Api<Command> = Api::namespaced(self.world.client.clone(), "default");
        let made = api.create(&PostParams::default(), &command).await?;
        let name = made.name_any();
        let answered = || async {
            let command = api.get(&name).await?;
            Ok(command.status.is_some_and(|status| status.phase.is_some()))
        };
        self.world
            .until("the Command is answered", answered)
            .await?;
        let status = api.get(&name).await?.status.context("no status")?;
        Ok(match status.phase {
            Some(CommandPhase::Done) => "done".to_owned(),
            _ => format!("refused: {}", status.message),
        })
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
        let api: Api<Configurator> = Api::all(self.world.client.clone());
        self.world
            .until("the Configurator is taken over", || async {
                let configurator = api.get("things").await?;
                let status = configurator.status.unwrap_or_default();
                Ok(status.observed_generation == configurator.metadata.generation)
            })
            .await
    }

    /// The message of the failure that the Configurator shows.
    pub async fn failure(&self) -> Result<Option<String>> {
        let api: Api<Configurator> = Api::all(self.world.client.clone());
        let status = api.get("things").await?.status.unwrap_or_default();
        let failure = status.failures.first();
        Ok(failure.map(|failure| failure.message.clone()))
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

    pub async fn key(&self, key: &str) -> Result<Option<String>> {
        let found = self.world.config.scan(&format!("basic/{key}")).await?;
        Ok(found.into_iter().next().map(|(_, value)| value))
    }
}

/// The definition of the kind.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

/// A Configurator in mode Machine, whose handlers do what the parameters of their nodes say.
pub fn machine(spec: Value) -> Value {
    let mut all = json!({
        "watch": {"group": "example.org", "version": "v1", "kind": "Thing"},
        "module": {"file": "scripted.wasm"},
        "mode": "Machine",
        "capabilities": {
            "kubernetes": [{"groups": [""], "resources": ["configmaps"], "verbs": ["get", "apply", "delete"]}],
            "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
            "secretstore": [{"names": ["*"], "verbs": ["get", "create"]}],
        },
    });
    all.as_object_mut()
        .unwrap()
        .extend(spec.as_object().cloned().unwrap_or_default());
    json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "Configurator",
        "metadata": {"name": "things"},
        "spec": all,
    })
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

pub fn text(object: &Value, pointer: &str) -> String {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

fn draw(nodes: &Value, depth: usize, text: &mut String) {
    for (name, node) in nodes.as_object().into_iter().flatten() {
        let is = |field: &str| node[field] == true;
        let mark = match (is("done"), is("failed"), node.get("skipped")) {
            (_, _, Some(_)) => "skipped",
            (true, false, _) => "done",
            (_, true, _) if is("fatal") => "fatal",
            (_, true, _) => "failed",
            _ if node.get("startTime").is_some() => "begun",
            _ => "not begun",
        };
        let _ = write!(text, "{}{name}: {mark}", "  ".repeat(depth));
        for field in [
            "error",
            "guidance",
            "skipped",
            "progress",
            "details",
            "view",
            "description",
        ] {
            if let Some(value) = node.get(field) {
                let _ = write!(text, ", {field} {value}");
            }
        }
        text.push('\n');
        draw(&node["state"], depth + 1, text);
    }
}
