//! Members of a set, as the inventory has them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::entry::OnDelete;

/// The identity of a member. It does not change with the API version that an author writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum MemberKey {
    /// A Kubernetes object.
    Kubernetes {
        /// The API group; empty for the core group.
        group: String,
        /// The kind.
        kind: String,
        /// The namespace; empty for a cluster-scoped object.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A key of the config store.
    Config {
        /// The namespace whose partition holds the key.
        partition: String,
        /// The key within the partition.
        key: String,
    },
    /// A secret of the secret store.
    Secret {
        /// The namespace whose partition holds the secret.
        partition: String,
        /// The secret's name within the partition.
        name: String,
    },
}

impl MemberKey {
    /// The namespace whose partition of a store the member is in. `None`: it is a Kubernetes object.
    #[must_use]
    pub fn partition(&self) -> Option<&str> {
        match self {
            Self::Kubernetes { .. } => None,
            Self::Config { partition, .. } | Self::Secret { partition, .. } => Some(partition),
        }
    }

    /// The name of the object or the secret, or the key in the config store.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Kubernetes { name, .. } | Self::Secret { name, .. } => name,
            Self::Config { key, .. } => key,
        }
    }

    /// Whether the member holds data that outlives the workload which uses it: volumes, volume claims and their snapshots.
    #[must_use]
    pub fn is_volume(&self) -> bool {
        const VOLUMES: [(&str, &str); 4] = [
            ("", "PersistentVolume"),
            ("", "PersistentVolumeClaim"),
            ("snapshot.storage.k8s.io", "VolumeSnapshot"),
            ("snapshot.storage.k8s.io", "VolumeSnapshotContent"),
        ];
        matches!(self, Self::Kubernetes { group, kind, .. } if VOLUMES.contains(&(group, kind)))
    }
}

/// `Deployment.apps shop/web`, as kubectl names objects; `config-store key shop/basic/limits` and `secret-store secret shop/password` for stores: the
/// namespace of the partition comes first.
impl fmt::Display for MemberKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubernetes {
                group,
                kind,
                namespace,
                name,
            } => {
                f.write_str(kind)?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                f.write_str(" ")?;
                if !namespace.is_empty() {
                    write!(f, "{namespace}/")?;
                }
                f.write_str(name)
            }
            Self::Config { partition, key } if partition.is_empty() => {
                write!(f, "config-store key {key}")
            }
            Self::Config { partition, key } => write!(f, "config-store key {partition}/{key}"),
            Self::Secret { partition, name } if partition.is_empty() => {
                write!(f, "secret-store secret {name}")
            }
            Self::Secret { partition, name } => write!(f, "secret-store secret {partition}/{name}"),
        }
    }
}

/// A member of the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Member {
    /// The facts that pruning and deletion need when the member's entry is gone.
    pub facts: MemberFacts,
    /// The version of the set that has no entry for it any more. `None` while the set has one.
    pub removed_in: Option<u64>,
    /// A random text that the host also writes to the member itself. It proves that this set created or adopted the member, even where the
    /// answer to the write was lost.
    pub nonce: String,
    /// The uid at the server. `None` until the host has seen the member after a write.
    pub uid: Option<String>,
}

/// The facts about a member that the set states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberFacts {
    /// The name of the entry that described it last.
    pub entry: String,
    /// The wave in which it is deleted, from 0. `None`, for an inventory that was rebuilt, comes last.
    pub wave: Option<u32>,
    /// Its fate when its owner or its entry is gone.
    pub on_delete: OnDelete,
}

impl Member {
    /// The position in the order of deletion. Members that an earlier version of the set removed come first: nothing that a later version
    /// has depends on them. Then waves count.
    pub(super) fn rank(&self) -> (u64, u32) {
        (
            self.removed_in.unwrap_or(u64::MAX),
            self.facts.wave.unwrap_or(u32::MAX),
        )
    }
}

/// The members that a set has, or may have: a member is recorded before it is created and forgotten after it is gone.
pub type Inventory = BTreeMap<MemberKey, Member>;
