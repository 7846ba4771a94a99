//! What a Configurator watches, and how it collects batches.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is watched.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WatchSpec {
    /// Empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version.
    #[schemars(length(min = 1))]
    pub version: String,
    /// The kind.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Empty: all namespaces.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// As in `kubectl get -l`.
    #[serde(default)]
    pub label_selector: String,
    /// As in `kubectl get --field-selector`.
    #[serde(default)]
    pub field_selector: String,
    /// Which events start runs.
    #[serde(default = "default_events")]
    pub events: Vec<EventSpec>,
    /// How long an object may be left alone; "0s": for ever.
    #[serde(default = "default_resync")]
    pub resync_period: Duration,
    /// JSONPaths kept of each object; empty keeps all but managedFields. What is dropped is neither stored nor shown.
    #[serde(default)]
    pub fields: Vec<String>,
}

/// An event that starts runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// The object appeared, or the host met it for the first time.
    Added,
    /// It changed.
    Modified,
    /// It is gone. Best effort: the host may have been down; see deletion for what does not miss any.
    Deleted,
}

/// How batches are collected.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BatchSpec {
    /// The most objects of one batch.
    #[serde(default = "default_batch_size")]
    #[schemars(range(min = 1, max = 10000))]
    pub max_size: u32,
    /// The longest that an object waits for others.
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
