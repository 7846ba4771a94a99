//! The Flow resource: steps that several Configurators use.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::machine::FlowSpec;
use crate::objects;

/// A named sequence of steps that several Configurators can use.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Flow",
    plural = "flows",
    shortname = "cfgrflow",
    category = "cfgrs",
    doc = "A named sequence of steps that several Configurators can use.",
    printcolumn = r#"{"name":"Flow","type":"string","jsonPath":".spec.flowName"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct FlowResourceSpec(pub FlowSpec);

impl Flow {
    /// The name that it goes by, which need not be that of the resource, and what it says.
    #[must_use]
    pub fn named(self) -> (String, FlowSpec) {
        let FlowResourceSpec(spec) = self.spec;
        let name = spec.flow_name.clone().or(self.metadata.name);
        (name.unwrap_or_default(), spec)
    }
}

/// A flow that is written down by itself, as `flowName` and `steps`, as the resource of that name: `CreateCluster` is the Flow
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
        "kind": "Flow",
        "metadata": {"name": resource.trim_matches('-')},
        "spec": object,
    })
}
