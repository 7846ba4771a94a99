//! Why phases have failed, in the status.

use configurator_sdk::{HandlerError, Input, Outcome, Output};
use serde_json::json;

/// Has what a handler fails with kept in `status.reasons`, and taken away when the handler goes on.
///
/// # Errors
/// None of its own: an error becomes an output that has failed.
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
    // The reason is that of one leaf, and no other takes it away.
    let is_own = input.last.as_ref().is_some_and(|last| last.failed);
    if reason.is_none() && !is_own {
        return Ok(output);
    }
    Ok(output.status(json!({"reasons": {phase: reason}})))
}
