//! A chain: phases that each run passes, one after another.

use kube::KubeSchema;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Phases that each run passes, one after another. Nothing is persisted between runs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.phases.all(p, self.phases.exists_one(q, q.name == p.name))")
        .message("each phase must have a name of its own")
        .field_path(".phases")
)]
pub struct ChainSpec {
    /// The phases, in their order. The first one is the root phase.
    #[schemars(length(min = 1, max = 64))]
    pub phases: Vec<ChainPhaseSpec>,
    /// Handlers receive a batch: a list of objects. Without this field they receive one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchSpec>,
}

/// A phase of a chain.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChainPhaseSpec {
    /// The name of the phase. Each phase of the chain needs a different name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The handler of the phase. Defaults to the name of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
}

/// Limits of a batch.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
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

fn default_batch_size() -> u32 {
    100
}

fn default_batch_delay() -> Duration {
    std::time::Duration::from_millis(200).into()
}
