//! What the cluster is now.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::json;

use crate::cluster::Cluster;
use crate::plan::Plan;

/// Says it in the status. What differs from what is wanted by now leads to the next flow.
///
/// # Errors
/// Fatal, when no step has left a plan.
pub fn update_running_status(input: &Input) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let plan = Plan::of(input)?;
    let address = |role: &str| {
        format!(
            "{}.{}.svc:5432",
            cluster.name_of(role),
            cluster.metadata.namespace
        )
    };
    Ok(Output::new().status(json!({
        "classInfo": {"className": plan.class_name},
        "version": plan.version,
        "roReplicas": plan.ro_replicas,
        "storage": {"size": plan.storage},
        "endpoints": {"rw": address("rw"), "ro": address("ro")},
    })))
}
