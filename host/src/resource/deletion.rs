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
    /// What happens with the sets when the Configurator itself is deleted.
    #[serde(default)]
    pub sets: SetsDeletionSpec,
}

/// Says what happens with the sets of a deleted Configurator. The Configurator stays until it has no sets. Handlers are not called for this.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SetsDeletionSpec {
    /// The host reconciles the sets until their owners are deleted.
    #[default]
    Block,
    /// The host deletes the members of each set in reverse order, as if its owner were deleted. The owners stay.
    Delete,
    /// The host removes the marks of the sets from their members, and deletes nothing but the inventories.
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
