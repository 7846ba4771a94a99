//! Pods that are too many.

use configurator_sdk::kubernetes::POD;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::plan::Plan;

/// Removes the Pods that read and that the plan does not have.
///
/// # Errors
/// When the Pods cannot be listed.
pub fn remove_ro_pods(input: &Input) -> Result<Output, HandlerError> {
    #[derive(Deserialize)]
    struct Pod {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        name: String,
    }
    let cluster = Cluster::of(input)?;
    let plan = Plan::of(input)?;
    let Some(answer) = input.answer("pods") else {
        return Ok(Output::new().request(cluster.list_pods("ro")).again());
    };
    let kept = cluster.ro_pods(plan.ro_replicas);
    let pods = answer.objects::<Pod>()?;
    let extra = pods
        .iter()
        .map(|pod| pod.metadata.name.as_str())
        .filter(|name| !kept.iter().any(|kept| kept == name));
    Ok(Output::new().with_requests(
        extra.map(|name| Request::new(["pods/", name].concat(), POD.delete(cluster.at(name)))),
    ))
}
