//! The old network interfaces.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::json;

use crate::operations::Job;
use crate::plan::Plan;

/// Detaches them, so that the instances can be moved.
///
/// # Errors
/// As [`carry_out`](crate::operations::carry_out).
pub fn detach_enis(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let jobs = plan.replacements().map(|one| Job {
        object: one.old.clone(),
        path: format!("/interfaces/{}/detach", one.old),
        body: json!({}),
    });
    crate::operations::step(input, &plan, jobs.collect(), "Detached")
}
