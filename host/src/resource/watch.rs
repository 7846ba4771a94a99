//! What a Configurator watches, and how it collects batches.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selects the objects to watch. An object is selected if it matches all fields.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WatchSpec {
    /// The API group. Empty is the core group.
    #[serde(default)]
    pub group: String,
    /// The API version, such as `v1`.
    #[schemars(length(min = 1))]
    pub version: String,
    /// The kind, such as `Pod`.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Namespaces of the objects. Empty selects all namespaces.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// A label selector, in the syntax of `kubectl get --selector`.
    #[serde(default)]
    pub label_selector: String,
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

/// Limits of a batch.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BatchSpec {
    /// The largest number of objects in a batch.
    #[serde(default = "default_batch_size")]
    #[schemars(range(min = 1, max = 10000))]
    pub max_size: u32,
    /// The longest time that an object waits for others to join its batch.
    #[serde(default = "default_batch_delay")]
    pub max_delay: Duration,
}

fn default_events() -> Vec<EventSpec> {
    vec![EventSpec::Added, EventSpec::Modified]
}

fn default_resync() -> Duration {
    std::time::Duration::from_secs(10 * 60 * 60).into()
}

fn default_batch_size() -> u32 {
    100
}

fn default_batch_delay() -> Duration {
    std::time::Duration::from_millis(200).into()
}

impl Default for BatchSpec {
    fn default() -> Self {
        Self {
            max_size: default_batch_size(),
            max_delay: default_batch_delay(),
        }
    }
}
