//! The public addresses, away from the old network interfaces.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::json;

use crate::operations::Job;
use crate::plan::Plan;

/// Takes them off. To take off what is off changes nothing.
///
/// # Errors
/// As [`carry_out`](crate::operations::carry_out).
pub fn unbind_eips(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let jobs = plan.public_addresses().map(|(address, _)| Job {
        object: address.to_owned(),
        path: format!("/addresses/{address}/unbind"),
        body: json!({}),
    });
    crate::operations::step(input, &plan, jobs.collect(), "Unbound")
}
