//! What a Configurator does when an object is deleted.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens when an object goes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionSpec {
    /// How a deletion is noticed.
    #[serde(default)]
    pub by: DeletionBySpec,
    /// The chain that is run; empty: nothing is done.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub phases: Vec<DeletionPhaseSpec>,
    /// How long a finalizer may hold an object.
    #[serde(default = "default_deletion_timeout")]
    pub timeout: Duration,
}

/// How a deletion is noticed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeletionBySpec {
    /// The objects handled are recorded in the config store; what is missing is found at start and at a new listing.
    #[default]
    Ledger,
    /// A finalizer holds the object until the phases are done. For kinds of one's own.
    Finalizer,
}

/// One stage of the deletion chain.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPhaseSpec {
    /// Unique in its chain.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The handler's name; by default the phase's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
}

fn default_deletion_timeout() -> Duration {
    std::time::Duration::from_secs(600).into()
}

impl Default for DeletionSpec {
    fn default() -> Self {
        Self {
            by: DeletionBySpec::default(),
            phases: Vec::new(),
            timeout: default_deletion_timeout(),
        }
    }
}
