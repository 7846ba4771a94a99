//! Why phases have failed, in the status.

use configurator_sdk::{Cause, HandlerError, Input, Outcome, Output};
use serde_json::json;

use crate::resource::MoveToVpc;

/// Has what a handler fails with kept in `status.reasons`, and taken away when the handler goes on.
///
/// # Errors
/// Fatal, when the object lacks a field. An error of the handler becomes an output that has failed.
pub fn kept(
    input: &Input,
    handler: impl Fn(&Input) -> Result<Output, HandlerError>,
) -> Result<Output, HandlerError> {
    let phase = input.context.phase.as_str();
    let output = match handler(input) {
        Ok(output) => output,
        Err(error) => Output::new().failed(error),
    };
    let reason = match &output.outcome {
        Outcome::Failed(error) => Some(error.message.clone()),
        _ => None,
    };
    // A leaf beside the one that has failed does not take its reason away: it goes on, and is not tried again.
    let is_tried_again = matches!(input.context.cause, Cause::Retry | Cause::Recovered);
    if reason.is_none() && !(is_tried_again && MoveToVpc::of(input)?.has_reason(phase)) {
        return Ok(output);
    }
    Ok(output.status(json!({"reasons": {phase: reason}})))
}
