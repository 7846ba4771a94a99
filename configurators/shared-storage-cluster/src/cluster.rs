//! The resource, and what belongs to it.

use std::collections::BTreeMap;

use configurator_sdk::kubernetes::{POD, Resource};
use configurator_sdk::{HandlerError, Input, Request};
use serde::Deserialize;
use serde_json::{Value, json};

/// `v1` PersistentVolumeClaims.
pub const CLAIM: Resource =
    Resource::new("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
/// The label that says which cluster an object belongs to.
pub const CLUSTER: &str = "db.example.org/cluster";
/// The label that says what a Pod is for: `rw`, `ro` or `manager`.
pub const ROLE: &str = "db.example.org/role";

/// A `SharedStorageCluster`.
#[derive(Debug, Deserialize)]
pub struct Cluster {
    /// Who it is.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: Spec,
    /// What it is.
    #[serde(default)]
    pub status: Status,
}

/// Of the metadata.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its identity.
    pub uid: String,
}

/// What is wanted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How large its Pods are.
    pub class_info: ClassInfo,
    /// The version of the database.
    pub version: String,
    /// How many Pods read.
    pub ro_replicas: u32,
    /// How much it stores.
    pub storage: Storage,
}

/// How large Pods are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassInfo {
    /// A class that the Configurator knows.
    pub class_name: String,
}

/// How much is stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Storage {
    /// As `10Gi`.
    pub size: String,
}

/// What the cluster is. Empty before it is made.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The phase.
    #[serde(default)]
    pub cluster_status: String,
    /// How large its Pods are.
    pub class_info: Option<ClassInfo>,
    /// The version of the database.
    pub version: Option<String>,
    /// How many Pods read.
    pub ro_replicas: Option<u32>,
    /// How much it stores.
    pub storage: Option<Storage>,
}

/// `spec.parameters` of the Configurator, and of a node.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Where storage comes from. It must be shared, and be able to grow.
    pub storage_class: String,
    /// The image of the database, without a version.
    pub image: String,
    /// The image of the manager.
    pub manager: String,
    /// The resources of a Pod, by class.
    pub classes: BTreeMap<String, Value>,
    /// Which fields of the object a flow is about.
    #[serde(default)]
    pub changes: Vec<String>,
}

impl Cluster {
    /// The object of the call.
    ///
    /// # Errors
    /// Fatal, when it lacks a field.
    pub fn of(input: &Input) -> Result<Cluster, HandlerError> {
        input.object()
    }

    /// The name of something that belongs to it.
    pub fn name_of(&self, what: &str) -> String {
        [&self.metadata.name, "-", what].concat()
    }

    /// The names of the first so many Pods that read.
    pub fn ro_pods(&self, count: u32) -> Vec<String> {
        (0..count)
            .map(|number| self.name_of(&format!("ro-{number}")))
            .collect()
    }

    /// The name of its password in the secret store.
    pub fn password(&self) -> String {
        password(&self.metadata.namespace, &self.metadata.name)
    }

    /// Asks for its Pods, in a request of the name `pods`; `role` is one of those of [`ROLE`], or empty for all.
    pub fn list_pods(&self, role: &str) -> Request {
        let mut labels = [CLUSTER, "=", &self.metadata.name].concat();
        if !role.is_empty() {
            labels += &[",", ROLE, "=", role].concat();
        }
        let list = POD.list(self.metadata.namespace.as_str()).labels(labels);
        Request::new("pods", list)
    }

    /// Where the object of this name is, as requests say it.
    pub fn at<'a>(&'a self, name: &'a str) -> (&'a str, &'a str) {
        (&self.metadata.namespace, name)
    }

    /// The metadata of something that belongs to it and goes with it.
    pub fn metadata_of(&self, name: &str, labels: Value) -> Value {
        let mut all = json!({ CLUSTER: self.metadata.name });
        if let (Value::Object(all), Value::Object(labels)) = (&mut all, labels) {
            all.extend(labels);
        }
        json!({
            "namespace": self.metadata.namespace,
            "name": name,
            "labels": all,
            "ownerReferences": [{
                "apiVersion": "db.example.org/v1",
                "kind": "SharedStorageCluster",
                "name": self.metadata.name,
                "uid": self.metadata.uid,
                "controller": true,
            }],
        })
    }
}

/// The name of the password of the cluster of this name.
pub fn password(namespace: &str, name: &str) -> String {
    ["db-", namespace, ".", name].concat()
}
