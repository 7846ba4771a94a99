//! What a Configurator does when an object is deleted.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::ChainPhaseSpec;

/// How the deletion of objects is handled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionSpec {
    /// How the host learns of deletions.
    #[serde(default)]
    pub by: DeletionBySpec,
    /// The chain that a deleted object passes. Empty: deletions are not handled.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub phases: Vec<ChainPhaseSpec>,
    /// The longest time that a finalizer holds an object.
    #[serde(default = "default_deletion_timeout")]
    pub timeout: Duration,
    /// The fate of the sets, if the Configurator itself is deleted.
    #[serde(default)]
    pub sets: SetsDeletionSpec,
}

/// The fate of the sets of a Configurator that is deleted. The Configurator stays until no set is left, and handlers are not called for this.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SetsDeletionSpec {
    /// Sets stay, and are reconciled, until their owners are deleted.
    #[default]
    Block,
    /// The members of each set are deleted in reverse order, as if its owner were deleted. The owners stay.
    Delete,
    /// Members stay as they are, and lose the marks of their set. Nothing is deleted but the inventories.
    Orphan,
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

fn default_deletion_timeout() -> Duration {
    std::time::Duration::from_secs(600).into()
}

impl Default for DeletionSpec {
    fn default() -> Self {
        Self {
            by: DeletionBySpec::default(),
            phases: Vec::new(),
            timeout: default_deletion_timeout(),
            sets: SetsDeletionSpec::default(),
        }
    }
}
