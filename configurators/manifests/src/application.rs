//! The Application.

use serde::Deserialize;

use crate::object::Object;

/// An Application, the fields of which `crd.yaml` describes.
#[derive(Debug, Deserialize)]
pub struct Application {
    /// The identity.
    pub metadata: Metadata,
    /// The wanted state.
    pub spec: Spec,
}

/// The identity of an object.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The namespace; empty for a cluster-scoped object.
    #[serde(default)]
    pub namespace: String,
}

/// The wanted manifests and their options.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The revision in the labels of the ConfigMaps.
    pub revision: String,
    /// The number of ConfigMaps.
    pub config_maps: usize,
    /// The options of the objects.
    #[serde(flatten)]
    pub treatment: Treatment,
}

/// The options of objects, and their dependencies.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Treatment {
    /// The environment variables that dependencies are read from.
    pub addresses: Option<Addresses>,
    /// The rules. A later one overrides an earlier one.
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

/// The options of some objects. An absent field means the default of the contract.
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
    /// The objects that must be ready first.
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
    /// Returns whether the object is selected.
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
