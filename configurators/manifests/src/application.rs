//! The Application.

use serde::Deserialize;

use crate::object::Object;

/// An Application, as its definition has it.
#[derive(Debug, Deserialize)]
pub struct Application {
    /// Where it is.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: Spec,
}

/// Where an object is.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The namespace; empty for a cluster-scoped object.
    #[serde(default)]
    pub namespace: String,
}

/// The wanted manifests, and how they are treated.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The revision in the labels of the ConfigMaps.
    pub revision: String,
    /// The number of ConfigMaps.
    pub config_maps: usize,
    /// How the objects are treated.
    #[serde(flatten)]
    pub treatment: Treatment,
}

/// How objects are treated, and what they depend on.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Treatment {
    /// Dependencies that environment variables tell.
    pub addresses: Option<Addresses>,
    /// In the order in which they count.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// The environment variables that have addresses of Services.
#[derive(Debug, Deserialize)]
pub struct Addresses {
    /// Patterns of their names.
    pub variables: Vec<String>,
    /// Hosts that the manifests do not have.
    #[serde(default)]
    pub external: Vec<String>,
}

/// How some objects are treated. Absent fields leave the defaults of the contract.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The objects.
    #[serde(rename = "match")]
    pub objects: Selector,
    /// `Exists`, `Observed`, `Healthy`, or an expression.
    pub ready_when: Option<String>,
    /// An expression.
    pub failed_when: Option<String>,
    /// The time to be ready.
    pub timeout_seconds: Option<u64>,
    /// For objects that exist already.
    pub on_existing: Option<OnExisting>,
    /// For fields that others have.
    pub on_conflict: Option<OnConflict>,
    /// For fields that cannot be changed.
    pub on_immutable: Option<OnImmutable>,
    /// For objects that are no longer wanted.
    pub on_delete: Option<OnDelete>,
    /// Fields that are left alone.
    #[serde(default)]
    pub ignored_paths: Vec<String>,
    /// What must be ready first.
    #[serde(default)]
    pub depends_on: Vec<Selector>,
}

/// Selects objects. An absent field matches any object.
#[derive(Debug, Deserialize)]
pub struct Selector {
    /// The API group.
    pub group: Option<String>,
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
}

impl Selector {
    /// Whether the object is selected.
    pub fn matches(&self, object: &Object) -> bool {
        let is = |wanted: &Option<String>, text: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == text)
        };
        self.kind == object.kind
            && is(&self.group, &object.group)
            && is(&self.namespace, &object.namespace)
            && is(&self.name, &object.name)
    }
}

/// See [`configurator_sdk::OnExisting`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[expect(missing_docs, reason = "the contract has them")]
pub enum OnExisting {
    Refuse,
    Adopt,
    CreateOnly,
}

/// See [`configurator_sdk::OnConflict`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[expect(missing_docs, reason = "the contract has them")]
pub enum OnConflict {
    Fail,
    Force,
}

/// See [`configurator_sdk::OnImmutable`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[expect(missing_docs, reason = "the contract has them")]
pub enum OnImmutable {
    Fail,
    Recreate,
}

/// See [`configurator_sdk::OnDelete`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[expect(missing_docs, reason = "the contract has them")]
pub enum OnDelete {
    WithOwner,
    Retain,
    OnlyUnderWipeOut,
}
