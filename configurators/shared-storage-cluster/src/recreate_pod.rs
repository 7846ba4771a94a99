//! The remedy where a Pod has failed.

use configurator_sdk::kubernetes::POD;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::field::text;

/// Removes the cluster's Pods that have failed; the step that needs them makes them again.
///
/// # Errors
/// When the Pods cannot be listed.
pub fn recreate_pod(input: &Input) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let Some(answer) = input.answer("pods") else {
        return Ok(Output::new().request(cluster.list_pods("")).again());
    };
    let mut output = Output::new();
    for pod in answer.objects::<Value>()? {
        if text(&pod, "/status/phase") != "Failed" {
            continue;
        }
        let (name, uid) = (text(&pod, "/metadata/name"), text(&pod, "/metadata/uid"));
        output.push(Request::new(
            ["pods/", name].concat(),
            POD.delete(cluster.at(name)).uid(uid),
        ));
    }
    Ok(output)
}
