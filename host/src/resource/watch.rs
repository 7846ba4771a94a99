//! What a Configurator watches.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Duration, GroupVersion, GroupVersionKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selects the objects to watch. An object is selected if it matches all fields.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WatchSpec {
    /// The API version of the objects, such as `v1` or `apps/v1`.
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// The kind, such as `Pod`.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Namespaces of the objects. Empty selects all namespaces.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Namespaces whose objects are not selected. `*` stands for any number of characters: `kube-*`.
    #[serde(default)]
    pub exclude_namespaces: Vec<String>,
    /// Selects the namespaces of the objects by their labels. Empty selects all namespaces.
    #[serde(default)]
    pub namespace_selector: LabelSelector,
    /// Selects objects by their labels. Empty selects all objects.
    #[serde(default)]
    pub label_selector: LabelSelector,
    /// A field selector, in the syntax of `kubectl get --field-selector`.
    #[serde(default)]
    pub field_selector: String,
    /// The events that start runs.
    #[serde(default = "default_events")]
    pub events: Vec<EventSpec>,
    /// The longest time between two runs of an object that does not change. `0s` disables resyncs.
    #[serde(default = "default_resync")]
    pub resync_period: Duration,
    /// JSONPaths of the fields that the host keeps of each object. Empty keeps all fields but managedFields. Handlers do not receive the other fields,
    /// and a change of them starts no run.
    #[serde(default)]
    pub fields: Vec<String>,
}

impl WatchSpec {
    /// The group, version and kind. `None` if `api_version` is not of the form `VERSION` or `GROUP/VERSION`.
    #[must_use]
    pub fn group_version_kind(&self) -> Option<GroupVersionKind> {
        let version: GroupVersion = self.api_version.parse().ok()?;
        let is_version = !version.version.is_empty() && !version.version.contains('/');
        let is_whole = is_version && !self.api_version.starts_with('/');
        is_whole.then(|| version.with_kind(&self.kind))
    }
}

/// An event that starts runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// The object was created, or the host sees it for the first time.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted. The host misses deletions while it does not run. Use `spec.deletion` to handle each deletion.
    Deleted,
}

fn default_events() -> Vec<EventSpec> {
    vec![EventSpec::Added, EventSpec::Modified]
}

fn default_resync() -> Duration {
    std::time::Duration::from_secs(10 * 60 * 60).into()
}
