//! Desired sets: the members that owners are to have. The types mirror `wit/desired.wit`.

pub mod check;
pub mod difference;
pub mod managed_fields;
pub mod marks;
pub mod store_mark;
pub mod writes;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::graph::deletion::TerminationPolicy;
use crate::graph::entry::{OnDelete, OnExisting, OnImmutable, Orders};
use crate::request::{ConfigOperation, Readiness, Request, Requests};

/// All members that an owner is to have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DesiredSet {
    /// The entries, in any order.
    pub entries: Vec<DesiredEntry>,
    /// Whether a set without entries deletes all members.
    pub allow_empty: bool,
    /// The fate of the members when the owner is deleted. `None`: [`TerminationPolicy::Delete`].
    pub termination_policy: Option<Termination>,
    /// Orders that differ from the dependencies of entries.
    pub orders: Option<Orders>,
    /// Requests that are executed before the first member of a deleted owner is deleted.
    pub pre_terminate: Vec<Request>,
}

impl DesiredSet {
    /// The values that the handler gives secrets of the secret store.
    pub fn secret_values(&self) -> impl Iterator<Item = &Document> {
        self.entries
            .iter()
            .filter_map(|entry| match &entry.content {
                Content::Secret(secret) => secret.value.as_ref(),
                Content::Kubernetes(_) | Content::Config(_) => None,
            })
    }
}

/// One member that an owner is to have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DesiredEntry {
    /// Unique among the entries and requests of an output.
    pub name: String,
    /// The content of the member.
    pub content: Content,
    /// Names of entries that must be ready first.
    pub depends_on: Vec<String>,
    /// `None`: [`Readiness::Healthy`] for a Kubernetes object, [`Readiness::Exists`] for all else.
    pub ready_when: Option<Readiness>,
    /// A CEL expression over `object` that is true while the entry has failed.
    pub failed_when: Option<String>,
    /// The longest time until the entry is ready. `None`: no limit.
    pub timeout: Option<Duration>,
    /// The treatment of a member that exists and belongs to no set.
    pub on_existing: OnExisting,
    /// The treatment of a field that another field manager has.
    pub on_conflict: OnConflict,
    /// The treatment of a change that the server rejects because a field is immutable.
    pub on_immutable: OnImmutable,
    /// JSONPaths of fields that the host does not set or correct once the object exists.
    pub ignored_paths: Vec<String>,
    /// The fate of the member when its owner is deleted.
    pub on_delete: OnDelete,
}

impl DesiredEntry {
    /// An entry with the defaults of the protocol.
    #[must_use]
    pub fn new(name: impl Into<String>, content: Content) -> Self {
        Self {
            name: name.into(),
            content,
            depends_on: Vec::new(),
            ready_when: None,
            failed_when: None,
            timeout: None,
            on_existing: OnExisting::default(),
            on_conflict: OnConflict::default(),
            on_immutable: OnImmutable::default(),
            ignored_paths: Vec::new(),
            on_delete: OnDelete::default(),
        }
    }
}

/// The content of a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// A Kubernetes object.
    Kubernetes(Document),
    /// The value of a key of the config store.
    Config(ConfigContent),
    /// A secret of the secret store.
    Secret(SecretContent),
}

/// The value of a key of the config store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigContent {
    /// The write of the value: an operation with the verb `Update`.
    pub write: ConfigOperation,
    /// The namespace whose partition is meant. `None`: the Configurator's own partition.
    pub partition: Option<String>,
}

/// A secret of the secret store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretContent {
    /// The secret's name.
    pub name: String,
    /// `None`: the host generates a value once.
    pub value: Option<Document>,
    /// The namespace whose partition is meant. `None`: the Configurator's own partition.
    pub partition: Option<String>,
}

/// The treatment of a field that another field manager has, and that the entry sets to another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnConflict {
    /// The entry fails.
    #[default]
    Fail,
    /// The set takes the field over.
    Force,
}

/// The place of the termination policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Termination {
    /// This policy.
    Policy(TerminationPolicy),
    /// A JSONPath into the owner. The host reads it when the owner is deleted.
    Path(String),
}

/// The requests and the set that the handlers of a pipeline have planned so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PipelinePlan {
    /// The requests.
    pub requests: Requests,
    /// The set, where a handler has returned one.
    pub desired: Option<DesiredSet>,
}
