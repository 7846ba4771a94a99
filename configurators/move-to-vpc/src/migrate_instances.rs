//! The instances.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::json;

use crate::cloud::Cloud;
use crate::operations::Job;
use crate::plan::Plan;

/// Moves them into the target network.
///
/// # Errors
/// As [`carry_out`](crate::operations::carry_out).
pub fn migrate_instances(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let target = Cloud::of(input)?.spec.dst_vpc_id;
    let jobs = plan.moves.iter().map(|one| Job {
        object: one.instance.clone(),
        path: format!("/instances/{}/migrate", one.instance),
        body: json!({"vpcId": target, "subnetId": one.subnet, "ip": one.ip}),
    });
    crate::operations::step(input, &plan, jobs.collect(), "Migrated")
}
