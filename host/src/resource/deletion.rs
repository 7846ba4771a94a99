//! What a Configurator does when an object is deleted.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the deletion of objects is handled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionSpec {
    /// How the host learns of deletions.
    #[serde(default)]
    pub by: DeletionBySpec,
    /// The phases that a deleted object passes. Empty: deletions are not handled.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub phases: Vec<DeletionPhaseSpec>,
    /// The longest time that a finalizer holds an object.
    #[serde(default = "default_deletion_timeout")]
    pub timeout: Duration,
}

/// How the host learns of deletions.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeletionBySpec {
    /// The host records the objects that it has handled in the config store. When it lists the objects, at its start for example, it finds those
    /// that are missing.
    #[default]
    Ledger,
    /// A finalizer holds the object until the phases are done. Use this only for your own kinds.
    Finalizer,
}

/// A phase of a deletion.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPhaseSpec {
    /// The name of the phase. Each phase of `deletion.phases` needs a different name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The handler of the phase. Defaults to the name of the phase.
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
