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
