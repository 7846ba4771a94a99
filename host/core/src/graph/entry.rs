//! Entries of a desired set, without their content.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::member::MemberKey;

/// One entry of a desired set. The host keeps its content by the entry's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Unique within the set. Names the entry in dependencies, results and messages.
    pub name: String,
    /// The member that the entry describes.
    pub key: MemberKey,
    /// The names of entries that must be ready first.
    pub depends_on: Vec<String>,
    /// The treatment of a member that exists and belongs to no set.
    pub on_existing: OnExisting,
    /// The treatment of a change that the server rejects because a field is immutable.
    pub on_immutable: OnImmutable,
    /// The fate of the member when its owner is deleted.
    pub on_delete: OnDelete,
    /// The longest time from a write, or from the loss of readiness, until the entry counts as failed. `None`: no limit.
    pub timeout: Option<Duration>,
    /// The kind or the namespace that other entries can use once this one is ready.
    pub provides: Option<Provides>,
}

/// The treatment of a member that exists and belongs to no set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnExisting {
    /// The entry fails.
    #[default]
    Refuse,
    /// The set takes it over.
    Adopt,
    /// The set creates the member if it is absent, and never changes it afterwards, whoever created it.
    CreateOnly,
}

/// The treatment of a change that the server rejects because a field is immutable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnImmutable {
    /// The entry fails.
    #[default]
    Fail,
    /// The host deletes the member and creates it again.
    Recreate,
}

/// The fate of a member when its owner is deleted, or when the set no longer has an entry for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnDelete {
    /// The host deletes it.
    #[default]
    WithOwner,
    /// The host releases it: it stays, and belongs to no set any more.
    Retain,
    /// The host deletes it under [`TerminationPolicy::WipeOut`](super::deletion::TerminationPolicy::WipeOut) and releases it otherwise.
    OnlyUnderWipeOut,
}

/// A kind or a namespace that other entries can use once an entry is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provides {
    /// A CustomResourceDefinition provides a kind.
    Kind {
        /// The API group of the kind.
        group: String,
        /// The kind.
        kind: String,
    },
    /// A Namespace provides room for objects.
    Namespace(String),
}

/// Orders that replace the dependencies between the entries they name. Each is a list of groups of names; a group comes after the one before
/// it. An empty order changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Orders {
    /// The order of creation.
    pub provision: Vec<Vec<String>>,
    /// The order of updates.
    pub update: Vec<Vec<String>>,
    /// The order of deletion: the first group is deleted first.
    pub terminate: Vec<Vec<String>>,
}

impl Orders {
    /// Whether no order changes anything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.provision.is_empty() && self.update.is_empty() && self.terminate.is_empty()
    }
}
