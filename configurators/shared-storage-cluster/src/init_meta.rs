//! What all other steps begin with.

use configurator_sdk::kubernetes::CONFIG_MAP;
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde_json::json;

use crate::cluster::{Cluster, Parameters};
use crate::plan::Plan;

/// Settles what is to be made, and makes the password and the settings that the Pods read. Leaves the plan.
///
/// # Errors
/// Fatal, when the class is unknown.
pub fn init_meta(input: &Input) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let plan = Plan::whole(&cluster);
    plan.resources(&input.parameters::<Parameters>()?)?;
    let name = cluster.name_of("meta");
    let settings = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": cluster.metadata_of(&name, json!({})),
        "data": {
            "CLUSTER_NAME": cluster.metadata.name,
            "CLUSTER_ID": cluster.metadata.uid,
            "PASSWORD_SECRET": cluster.password(),
            "PORT": "5432",
        },
    });
    Ok(Output::new()
        .request(Request::new(
            "password",
            Secret::new(cluster.password()).create(),
        ))
        .request(Request::new(
            "settings",
            CONFIG_MAP.apply(cluster.at(&name), settings).force(),
        ))
        .output(serde_json::to_string(&plan)?))
}
