//! The parts of a Pod that matter here.

use configurator_sdk::Text;
use serde::Deserialize;

use crate::layers::Layer;

/// A Pod. Everything borrows from the input.
#[derive(Debug, Deserialize)]
pub struct Pod<'a> {
    /// Its identity and annotations.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// Where it runs. Absent where only the Pod's identity is known.
    #[serde(borrow, default)]
    pub spec: Spec<'a>,
}

/// Of the metadata.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The namespace.
    #[serde(borrow)]
    pub namespace: Text<'a>,
    /// The uid.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// The one label that matters.
    #[serde(borrow, default)]
    pub labels: Option<Labels<'a>>,
    /// The Pod's own layer.
    #[serde(borrow, default)]
    pub annotations: Option<Layer<'a>>,
    /// Its owners, of which one may be the controller.
    #[serde(borrow, default)]
    pub owner_references: Option<Vec<OwnerReference<'a>>>,
}

/// Of the labels.
#[derive(Debug, Default, Deserialize)]
pub struct Labels<'a> {
    /// What the Deployment controller adds to the name of a Deployment to name its ReplicaSet.
    #[serde(borrow, default, rename = "pod-template-hash")]
    pub pod_template_hash: Option<Text<'a>>,
}

/// An owner.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference<'a> {
    /// `group/version`.
    #[serde(borrow)]
    pub api_version: Text<'a>,
    /// Such as `ReplicaSet`.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Whether it is the one that manages the Pod.
    #[serde(default)]
    pub controller: Option<bool>,
}

/// Of the spec.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec<'a> {
    /// Absent or empty until the Pod is scheduled.
    #[serde(borrow, default)]
    pub node_name: Option<Text<'a>>,
}

impl Pod<'_> {
    /// The Node that it runs on, once it is scheduled.
    pub fn node_name(&self) -> Option<&str> {
        self.spec
            .node_name
            .as_deref()
            .filter(|name| !name.is_empty())
    }
}
