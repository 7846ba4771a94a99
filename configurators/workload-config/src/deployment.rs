//! The parts of a Deployment that matter here.

use std::collections::BTreeMap;

use configurator_sdk::configstore::Entry;
use configurator_sdk::{ObjectRef, Text};
use serde::Deserialize;

/// What every object has, also one of which only the identity is known.
#[derive(Debug, Deserialize)]
pub struct Identified<'a> {
    /// Its identity and annotations.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
}

/// A Deployment. Everything borrows from the input.
#[derive(Debug, Deserialize)]
pub struct Deployment<'a> {
    /// Its identity and annotations.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// What it runs.
    #[serde(borrow)]
    pub spec: Spec<'a>,
}

/// Of the metadata.
#[derive(Debug, Deserialize)]
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
    /// All annotations.
    #[serde(borrow, default)]
    pub annotations: Option<BTreeMap<Text<'a>, Text<'a>>>,
}

/// Of the spec.
#[derive(Debug, Deserialize)]
pub struct Spec<'a> {
    /// How many Pods; the API's default is 1.
    #[serde(default)]
    pub replicas: Option<u32>,
    /// The Pods.
    #[serde(borrow)]
    pub template: Template<'a>,
}

/// Of the Pod template.
#[derive(Debug, Deserialize)]
pub struct Template<'a> {
    /// What each Pod runs.
    #[serde(borrow)]
    pub spec: PodSpec<'a>,
}

/// Of the Pod's spec.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec<'a> {
    /// The account that the Pods act as.
    #[serde(borrow, default)]
    pub service_account_name: Option<Text<'a>>,
    /// The containers.
    #[serde(borrow, default)]
    pub containers: Vec<Container<'a>>,
}

/// Of a container.
#[derive(Debug, Deserialize)]
pub struct Container<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The image.
    #[serde(borrow, default)]
    pub image: Option<Text<'a>>,
    /// The ports that it declares.
    #[serde(default)]
    pub ports: Option<Vec<Port>>,
    /// Its environment. Values are not read: they may be secrets.
    #[serde(borrow, default)]
    pub env: Option<Vec<Variable<'a>>>,
}

/// Of a port.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The number.
    pub container_port: u16,
}

/// Of an environment variable.
#[derive(Debug, Deserialize)]
pub struct Variable<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
}

impl Metadata<'_> {
    /// The object, as requests name it.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef::new(&*self.namespace, &*self.name)
    }

    /// Its entry in the config store.
    pub fn entry(&self) -> Entry {
        Entry::workload(&*self.namespace, "Deployment", &*self.name).uid(&*self.uid)
    }

    /// The name of a request about it: no two of a batch share one, because no two objects share namespace and name.
    pub fn request_name(&self, what: &str) -> String {
        [what, "/", &self.namespace, "/", &self.name].concat()
    }
}
