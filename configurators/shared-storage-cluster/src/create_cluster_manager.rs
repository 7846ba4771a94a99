//! The cluster's manager.

use configurator_sdk::kubernetes::{CONFIG_MAP, POD};
use configurator_sdk::{HandlerError, Input, Output};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Parameters, ROLE};
use crate::ensure::{Wanted, pod_is_ready, step};
use crate::field::text;

/// Makes the manager's Pod with its settings, and waits until it is ready.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn create_cluster_manager(input: &Input) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let parameters: Parameters = input.parameters()?;
    let name = cluster.name_of("manager");
    let settings = Wanted {
        resource: CONFIG_MAP,
        object: json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": cluster.metadata_of(&name, json!({})),
            "data": {"TOPOLOGY": cluster.name_of("topology")},
        }),
    };
    let manager = Wanted {
        resource: POD,
        object: json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": cluster.metadata_of(&name, json!({ ROLE: "manager" })),
            "spec": {"containers": [{
                "name": "manager",
                "image": parameters.manager,
                "envFrom": [{"configMapRef": {"name": name}}],
            }]},
        }),
    };
    let is_ready = |object: &Value| match text(object, "/kind") {
        "Pod" => pod_is_ready(object),
        _ => Ok(true),
    };
    step(input, &[settings, manager], is_ready)
}
