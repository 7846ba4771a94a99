//! The resources Flow and ClusterFlow: steps that several Configurators use.

use configurator_core::request::ObjectRef;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::counterpart;
use super::machine::FlowSpec;
use crate::objects;

/// A named sequence of steps that several Configurators of its namespace can use.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Flow",
    plural = "flows",
    shortname = "cfgrflow",
    namespaced,
    category = "cfgrs",
    doc = "A named sequence of steps that several Configurators of its namespace can use.",
    printcolumn = r#"{"name":"Flow","type":"string","jsonPath":".spec.flowName"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct FlowResourceSpec(pub FlowSpec);

/// A named sequence of steps that all Configurators can use.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "ClusterFlow",
    plural = "clusterflows",
    shortname = "ccfgrflow",
    category = "cfgrs",
    doc = "A named sequence of steps that all Configurators can use."
)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct ClusterFlowSpec(pub FlowSpec);

/// A Flow without a namespace.
impl From<ClusterFlow> for Flow {
    fn from(resource: ClusterFlow) -> Self {
        let ClusterFlowSpec(spec) = resource.spec;
        Self {
            metadata: resource.metadata,
            spec: FlowResourceSpec(spec),
        }
    }
}

impl Flow {
    /// The namespace and name of the resource. A ClusterFlow has no namespace.
    #[must_use]
    pub fn key(&self) -> ObjectRef {
        objects::key_of(self)
    }

    /// The name that Configurators use, which need not be that of the resource, and the steps.
    #[must_use]
    pub fn named(self) -> (String, FlowSpec) {
        let FlowResourceSpec(spec) = self.spec;
        let name = spec.flow_name.clone().or(self.metadata.name);
        (name.unwrap_or_default(), spec)
    }
}

/// Reads a Flow or a ClusterFlow from a file. As with kubectl, a Flow without a namespace is in `default`.
///
/// # Errors
/// When it has another form.
pub fn read(object: Value) -> Result<Flow, serde_json::Error> {
    counterpart::read::<Flow, ClusterFlow>(object)
}

/// A flow that is written down by itself, as `flowName` and `steps`, as the resource of that name: `CreateCluster` is the ClusterFlow
/// `create-cluster`. All else is returned as it is.
#[must_use]
pub fn resource_of(object: Value) -> Value {
    let name = objects::text(&object, "/flowName");
    if name.is_empty() || object.get("kind").is_some() {
        return object;
    }
    let mut resource = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !resource.is_empty() && !resource.ends_with('-') {
            resource.push('-');
        }
        match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => resource.push(letter),
            _ if resource.ends_with('-') => {}
            _ => resource.push('-'),
        }
    }
    json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterFlow",
        "metadata": {"name": resource.trim_matches('-')},
        "spec": object,
    })
}
