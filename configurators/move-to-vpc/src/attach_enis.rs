//! The new network interfaces.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::json;

use crate::operations::Job;
use crate::plan::Plan;

/// Attaches them, all of an instance together. Where the cloud has attached but some, it is asked for all once more, which changes nothing
/// for those.
///
/// # Errors
/// As [`carry_out`](crate::operations::carry_out).
pub fn attach_enis(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let moves = plan.moves.iter().filter(|one| !one.interfaces.is_empty());
    let jobs = moves.map(|one| {
        let interfaces: Vec<_> = one
            .interfaces
            .iter()
            .filter_map(|one| one.new.as_ref())
            .collect();
        Job {
            object: one.instance.clone(),
            path: "/attachments".to_owned(),
            body: json!({"instanceId": one.instance, "interfaceIds": interfaces}),
        }
    });
    crate::operations::step(input, &plan, jobs.collect(), "Attached")
}
