//! The Flow resource: steps that several Configurators use.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::FlowSpec;

/// A flow that several Configurators use, each by its name.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Flow",
    plural = "flows",
    shortname = "cfgrflow",
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
