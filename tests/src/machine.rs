//! Objects that go through the phases of a Configurator with a machine, as tests look at them.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use configurator_host::objects;
use configurator_host::resource::command::{Command, CommandPhase};
use kube::api::{Api, DynamicObject, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::world::until;

/// The definition of a kind of `example.org/v1` that machines keep their states in.
#[must_use]
pub fn definition(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": any, "status": any},
                }},
            }],
        },
    })
}

/// The objects of one kind and namespace, whose states are in their status.
#[derive(Clone)]
pub struct Machine {
    /// The objects.
    pub api: Api<DynamicObject>,
    client: Client,
    configurator: String,
    kind: String,
    namespace: String,
    phase_at: &'static str,
}

impl Machine {
    /// Those that this Configurator watches.
    ///
    /// # Errors
    /// When the API has no such kind.
    pub async fn of(
        client: &Client,
        configurator: &str,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Self> {
        Ok(Self {
            api: objects::api(client, api_version, kind, namespace).await?,
            client: client.clone(),
            configurator: configurator.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            phase_at: "/status/phase",
        })
    }

    /// Those whose phase is here.
    #[must_use]
    pub fn with_phase_at(self, phase_at: &'static str) -> Self {
        Self { phase_at, ..self }
    }

    /// The object.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn get(&self, name: &str) -> Result<Value> {
        Ok(serde_json::to_value(self.api.get(name).await?)?)
    }

    /// The phase that it is in.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn phase(&self, name: &str) -> Result<String> {
        Ok(text(&self.get(name).await?, self.phase_at))
    }

    /// Returns when it is in this phase.
    ///
    /// # Errors
    /// When that takes too long; shows what it has come to.
    pub async fn until_phase(&self, name: &str, phase: &str) -> Result<()> {
        self.until(name, phase, |object| text(object, self.phase_at) == phase)
            .await
    }

    /// Returns when the object is like this.
    ///
    /// # Errors
    /// When that takes too long; shows what it has come to.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        match until(what, || async { Ok(holds(&self.get(name).await?)) }).await {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(self.drawn(name).await?)),
        }
    }

    /// The phase and what the nodes have come to, a line each.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn drawn(&self, name: &str) -> Result<String> {
        let object = self.get(name).await?;
        let mut drawn = format!("{}\n", text(&object, self.phase_at));
        draw(object.pointer("/status/state"), 1, &mut drawn);
        Ok(drawn)
    }

    /// Makes a Command for it, and returns what became of it.
    ///
    /// # Errors
    /// When it cannot be made, or is not answered.
    pub async fn command(&self, name: &str, verb: &str, more: Value) -> Result<String> {
        let order = self.order(name, verb, more).await?;
        let is_answered = || async { Ok(self.answer(&order).await?.is_some()) };
        until("the Command is answered", is_answered).await?;
        self.answer(&order).await?.context("no answer")
    }

    /// What became of a Command, once it is carried out or refused.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn answer(&self, order: &str) -> Result<Option<String>> {
        let status = self.commands().get(order).await?.status;
        let status = status.unwrap_or_default();
        Ok(match status.phase {
            None | Some(CommandPhase::Pending) => None,
            Some(CommandPhase::Done) => Some("done".to_owned()),
            Some(CommandPhase::Refused) => Some(format!("refused: {}", status.message)),
        })
    }

    /// The Commands of the namespace.
    #[must_use]
    pub fn commands(&self) -> Api<Command> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes a Command for it, and returns its name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn order(&self, name: &str, verb: &str, more: Value) -> Result<String> {
        let uid = self.api.get(name).await?.uid().context("no uid")?;
        let mut spec = json!({
            "configurator": {"kind": "ClusterConfigurator", "name": self.configurator},
            "target": {"kind": self.kind, "name": name, "uid": uid},
            "verb": verb,
            "requestedBy": "ann",
        });
        if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
            spec.extend(more);
        }
        let command: Command = serde_json::from_value(json!({
            "apiVersion": "configurator.dev/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": "order-", "namespace": self.namespace},
            "spec": spec,
        }))?;
        let commands = self.commands();
        let made = commands.create(&PostParams::default(), &command).await?;
        Ok(made.name_any())
    }
}

/// The text at this place; empty where there is none.
#[must_use]
pub fn text(object: &Value, pointer: &str) -> String {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

fn draw(nodes: Option<&Value>, depth: usize, drawn: &mut String) {
    for (name, node) in nodes.and_then(Value::as_object).into_iter().flatten() {
        let is = |field: &str| node.get(field) == Some(&Value::Bool(true));
        let mark = match (is("done"), is("failed"), node.get("skipped")) {
            (_, _, Some(_)) => "skipped",
            (true, false, _) => "done",
            (_, true, _) if is("fatal") => "fatal",
            (_, true, _) => "failed",
            _ if node.get("startTime").is_some() => "begun",
            _ => "not begun",
        };
        let _ = write!(drawn, "{}{name}: {mark}", "  ".repeat(depth));
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
                let _ = write!(drawn, ", {field} {value}");
            }
        }
        drawn.push('\n');
        draw(node.get("state"), depth + 1, drawn);
    }
}
