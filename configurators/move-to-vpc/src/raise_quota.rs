//! The remedy where there may be no more network interfaces.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::json;

use crate::cloud::Cloud;
use crate::operations::{Carried, Job, Notes, carry_out};

/// Asks for a higher quota.
///
/// # Errors
/// As [`carry_out`].
pub fn raise_quota(input: &Input) -> Result<Output, HandlerError> {
    let cloud = Cloud::of(input)?;
    let job = Job {
        object: "quota".to_owned(),
        path: "/quotas".to_owned(),
        body: json!({"interfaces": cloud.parameters.interface_quota}),
    };
    match carry_out(&cloud, Notes::of(input)?, &[job])? {
        Carried::NotYet(output) => Ok(*output),
        Carried::Done { output, .. } => Ok(*output),
    }
}
