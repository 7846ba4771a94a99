//! What the manager knows, and how the cluster is reached.

use configurator_sdk::kubernetes::{CONFIG_MAP, SERVICE};
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde_json::json;

use crate::cluster::{CLUSTER, Cluster, ROLE};
use crate::plan::Plan;

/// Tells the manager which Pods there are, and makes a Service for those that write and one for those that read.
///
/// # Errors
/// Fatal, when no step has left a plan.
pub fn add_to_cluster_manager(input: &Input) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let plan = Plan::of(input)?;
    let name = cluster.name_of("topology");
    let topology = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": cluster.metadata_of(&name, json!({})),
        "data": {
            "rw": cluster.name_of("rw"),
            "ro": cluster.ro_pods(plan.ro_replicas).join(","),
        },
    });
    let service = |role: &str| {
        let name = cluster.name_of(role);
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": cluster.metadata_of(&name, json!({})),
            "spec": {
                "selector": {CLUSTER: cluster.metadata.name, ROLE: role},
                "ports": [{"name": "database", "port": 5432}],
            },
        });
        Request::new(
            ["service/", role].concat(),
            SERVICE.apply(cluster.at(&name), service).force(),
        )
    };
    Ok(Output::new()
        .request(Request::new(
            "topology",
            CONFIG_MAP.apply(cluster.at(&name), topology).force(),
        ))
        .request(service("rw"))
        .request(service("ro")))
}
