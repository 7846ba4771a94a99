//! The ObjectSet resource: the inventory of one desired set.

use std::fmt;

use configurator_core::graph::member::MemberKey;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The inventory of one desired set: the members that a Configurator has created for one owner. The host writes it; do not edit it. It is the
/// parent of an ApplySet, so `kubectl apply --prune` leaves its members alone.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "ObjectSet",
    plural = "objectsets",
    shortname = "oset",
    category = "cfgrs",
    doc = "The inventory of one desired set: the objects that a Configurator has created for one owner. The host writes it; do not edit it.",
    namespaced,
    status = "ObjectSetStatus",
    label("applyset.kubernetes.io/is-parent-type", "true"),
    printcolumn = r#"{"name":"Owner","type":"string","jsonPath":".status.owner"}"#,
    printcolumn = r#"{"name":"Objects","type":"integer","jsonPath":".status.objects"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"Waiting For","type":"string","jsonPath":".status.waitingFor"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSetSpec {
    /// The object that the members belong to.
    pub owner: SetOwner,
    /// The Configurator whose handler returned the set.
    pub configurator: SetConfigurator,
    /// The fate of the members when the owner is deleted: a policy, or a JSONPath into the owner that begins with `$` or `.`.
    pub termination_policy: String,
    /// The version of the set. A set with other entries has a higher one.
    pub version: u64,
    /// The number of ObjectSets that hold the inventory: this one, and others with its name and a number. 0: this is one of the others.
    #[serde(default)]
    pub pages: u32,
    /// The members, including those that are yet to be created or deleted.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub members: Vec<MemberSpec>,
    /// The requests that are sent when the owner is being deleted, before any member is: encrypted. Empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pre_terminate: String,
    /// Those of these requests that have succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<SentRequest>,
    /// The number of times that the inventory was written.
    pub sequence: u64,
    /// Proves that a host wrote the inventory.
    pub seal: String,
}

/// The object that a set belongs to.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SetOwner {
    /// The API version, such as `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace. Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
}

/// `ConfigMap shop/web`; without a namespace for a cluster-scoped object.
impl fmt::Display for SetOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// The Configurator that a set belongs to.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigurator {
    /// The namespace. Empty for a ClusterConfigurator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
}

/// One member of a set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MemberSpec {
    /// The server that has the member.
    #[serde(default, skip_serializing_if = "is_default")]
    pub store: StoreSpec,
    /// The API group. Empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind. Empty for a member of a store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The namespace. Empty for a cluster-scoped object. For a member of a store, the namespace whose partition it is in; empty for the
    /// partition of the ClusterConfigurators.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name, or the key in the config store.
    pub name: String,
    /// The name of the entry that described it last.
    pub entry: String,
    /// The wave in which it is deleted, from 0. Members without a wave are deleted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// The fate of the member when its owner or its entry is gone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_delete: OnDeleteSpec,
    /// The version of the set that has no entry for it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_in: Option<u64>,
    /// The text that the annotation `configurator.dev/nonce` of the object must have, or the mark of a member in a store.
    pub nonce: String,
    /// Its uid. Absent until the host has seen it. For a member of a store, it is the nonce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The server that has a member.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreSpec {
    /// The Kubernetes API.
    #[default]
    Kubernetes,
    /// The config store.
    Config,
    /// The secret store.
    Secret,
}

/// A request that was sent because the owner is being deleted, and that has succeeded.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SentRequest {
    /// The name of the request.
    pub name: String,
    /// The name of the object that it wrote or read. Empty if it was about no single object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Whether what depends on it may go on.
    pub ready: bool,
}

/// The fate of a member when its owner or its entry is gone.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeleteSpec {
    /// The host deletes it.
    #[default]
    WithOwner,
    /// It stays, and belongs to no set any more.
    Retain,
    /// The host deletes it if the termination policy is `WipeOut`. Otherwise it stays.
    OnlyUnderWipeOut,
}

impl MemberSpec {
    /// The member that the record is about.
    #[must_use]
    pub fn key(&self) -> MemberKey {
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        match self.store {
            StoreSpec::Kubernetes => MemberKey::Kubernetes {
                group: self.group.clone(),
                kind: self.kind.clone(),
                namespace,
                name,
            },
            StoreSpec::Config => MemberKey::Config {
                partition: namespace,
                key: name,
            },
            StoreSpec::Secret => MemberKey::Secret {
                partition: namespace,
                name,
            },
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The state of a set. Every field is written each time, so that none keeps what it said before.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSetStatus {
    /// Progressing, Ready, Failed, Unconfirmed, Suspended, Deleting or Kept.
    #[serde(default)]
    pub state: String,
    /// The owner, as `Kind namespace/name`.
    #[serde(default)]
    pub owner: String,
    /// The generation of the owner that the set was made for.
    #[serde(default)]
    pub observed_generation: i64,
    /// The number of members.
    #[serde(default)]
    pub objects: u32,
    /// The number of entries that are ready.
    #[serde(default)]
    pub ready: u32,
    /// The first thing that the set waits for, or the first failure. Empty if there is none.
    #[serde(default)]
    pub waiting_for: String,
    /// Entries that are not ready, and members that are to be deleted: at most 100, the failed ones first.
    #[serde(default)]
    pub members: Vec<MemberStatus>,
    /// `Ready`, with the reason and a message.
    #[serde(default)]
    pub conditions: Vec<SetCondition>,
}

/// The state of one member.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// The member, as `Kind.group namespace/name`, `config-store key namespace/key` or `secret-store secret namespace/name`.
    pub object: String,
    /// The name of its entry.
    pub entry: String,
    /// Unknown, Blocked, Writing, Waiting, Failed, or of a member without an entry Held or Deleting.
    pub state: String,
    /// The entry that must be ready first, or the member that must be gone first. Empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waits_for: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A condition of a set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SetCondition {
    /// `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True` or `False`.
    pub status: String,
    /// The state of the set.
    pub reason: String,
    /// The message.
    #[serde(default)]
    pub message: String,
    /// When the status changed last.
    pub last_transition_time: String,
}
