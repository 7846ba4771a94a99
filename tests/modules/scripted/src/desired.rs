//! The set that a script returns.

use std::time::Duration;

use configurator_sdk::configstore::Basic;
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{
    DesiredEntry, DesiredSet, HandlerError, Input, OnConflict, OnDelete, OnExisting, OnImmutable,
    Readiness, TerminationPolicy,
};
use serde::Deserialize;
use serde_json::Value;

use crate::ScriptedRequest;

/// A desired set.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ScriptedSet {
    entries: Vec<ScriptedEntry>,
    allow_empty: bool,
    termination_policy: Option<Policy>,
    termination_policy_at: Option<String>,
    provision: Vec<Vec<String>>,
    update: Vec<Vec<String>>,
    terminate: Vec<Vec<String>>,
    pre_terminate: Vec<ScriptedRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptedEntry {
    name: String,
    #[serde(default)]
    object: Option<Value>,
    /// The bytes that the object's `data` has in a field `padding`.
    #[serde(default)]
    padding: usize,
    /// The name of a secret.
    #[serde(default)]
    secret: Option<String>,
    /// The value of the secret. `None`: the host generates one.
    #[serde(default)]
    value: Option<Value>,
    /// The namespace whose partition the secret or the key is in.
    #[serde(default)]
    partition: Option<String>,
    /// A plain key of the config store, and its value.
    #[serde(default)]
    config: Option<(String, String)>,
    #[serde(default)]
    depends_on: Vec<String>,
    /// `exists`, `observed`, `healthy` or an expression.
    #[serde(default)]
    ready_when: Option<String>,
    #[serde(default)]
    failed_when: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    on_existing: Option<Existing>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    recreate: bool,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    on_delete: Option<Fate>,
}

#[derive(Deserialize)]
enum Policy {
    DoNotTerminate,
    KeepVolumes,
    Delete,
    WipeOut,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Existing {
    Adopt,
    CreateOnly,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Fate {
    Retain,
    OnlyUnderWipeOut,
}

impl ScriptedSet {
    pub(crate) fn made(self, input: &Input) -> Result<DesiredSet, HandlerError> {
        let entries = self.entries.into_iter().map(ScriptedEntry::made);
        let mut set = DesiredSet::new().with_entries(entries);
        if self.allow_empty {
            set = set.allow_empty();
        }
        if let Some(policy) = self.termination_policy {
            set = set.termination_policy(match policy {
                Policy::DoNotTerminate => TerminationPolicy::DoNotTerminate,
                Policy::KeepVolumes => TerminationPolicy::KeepVolumes,
                Policy::Delete => TerminationPolicy::Delete,
                Policy::WipeOut => TerminationPolicy::WipeOut,
            });
        }
        if let Some(path) = self.termination_policy_at {
            set = set.termination_policy_at(path);
        }
        let [provision, update, terminate] = [&self.provision, &self.update, &self.terminate]
            .map(|groups| groups.iter().map(|group| texts(group)).collect::<Vec<_>>());
        let [provision, update, terminate] = [&provision, &update, &terminate]
            .map(|groups| groups.iter().map(Vec::as_slice).collect::<Vec<_>>());
        if !provision.is_empty() {
            set = set.provision(&provision);
        }
        if !update.is_empty() {
            set = set.update(&update);
        }
        if !terminate.is_empty() {
            set = set.terminate(&terminate);
        }
        for request in self.pre_terminate {
            set = set.pre_terminate(crate::made(request, input)?);
        }
        Ok(set)
    }
}

pub(crate) fn readiness(text: String) -> Readiness {
    match text.as_str() {
        "exists" => Readiness::Exists,
        "observed" => Readiness::Observed,
        "healthy" => Readiness::Healthy,
        _ => Readiness::Expression(text),
    }
}

fn texts(group: &[String]) -> Vec<&str> {
    group.iter().map(String::as_str).collect()
}

impl ScriptedEntry {
    fn made(self) -> DesiredEntry {
        let mut entry = match (self.object, self.secret, self.config) {
            (_, Some(name), _) => {
                let mut content = Secret::new(name).content();
                content.value = self.value.as_ref().map(Value::to_string);
                if let Some(namespace) = self.partition {
                    content = content.partition(namespace);
                }
                DesiredEntry::new(self.name, content)
            }
            (_, _, Some((key, value))) => {
                let mut content = Basic::new(key).content(value);
                if let Some(namespace) = self.partition {
                    content = content.partition(namespace);
                }
                DesiredEntry::new(self.name, content)
            }
            (object, _, _) => {
                let mut object = object.unwrap_or_default();
                let data = object.get_mut("data").and_then(Value::as_object_mut);
                if let Some(data) = data.filter(|_| self.padding > 0) {
                    data.insert("padding".to_owned(), "x".repeat(self.padding).into());
                }
                DesiredEntry::new(self.name, object)
            }
        };
        for name in self.depends_on {
            entry = entry.depends_on(name);
        }
        if let Some(readiness) = self.ready_when {
            entry = entry.ready_when(self::readiness(readiness));
        }
        if let Some(expression) = self.failed_when {
            entry = entry.failed_when(expression);
        }
        if let Some(timeout) = self.timeout_ms {
            entry = entry.timeout(Duration::from_millis(timeout));
        }
        match self.on_existing {
            Some(Existing::Adopt) => entry = entry.on_existing(OnExisting::Adopt),
            Some(Existing::CreateOnly) => entry = entry.on_existing(OnExisting::CreateOnly),
            None => {}
        }
        if self.force {
            entry = entry.on_conflict(OnConflict::Force);
        }
        if self.recreate {
            entry = entry.on_immutable(OnImmutable::Recreate);
        }
        for path in self.ignore {
            entry = entry.ignore_path(path);
        }
        match self.on_delete {
            Some(Fate::Retain) => entry.on_delete(OnDelete::Retain),
            Some(Fate::OnlyUnderWipeOut) => entry.on_delete(OnDelete::OnlyUnderWipeOut),
            None => entry,
        }
    }
}
