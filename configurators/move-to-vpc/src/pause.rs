//! Waiting for a person.

use configurator_sdk::{Cause, HandlerError, Input, Output, Wake};
use serde_json::json;

use crate::resource::MoveToVpc;

/// The signal that `configurator approve` sends.
pub const APPROVED: &str = "approved";

/// Is done at once, or when a person has approved the move, if one must.
///
/// # Errors
/// Fatal, when the object lacks a field.
pub fn pause(input: &Input) -> Result<Output, HandlerError> {
    let spec = MoveToVpc::of(input)?.spec;
    let is_confirmed =
        matches!(&input.context.cause, Cause::Signal(signal) if signal.name == APPROVED);
    if is_confirmed || !spec.manually_confirm {
        return Ok(Output::new()
            .status(json!({"confirmed": is_confirmed}))
            .progress(100, "approved"));
    }
    let wake = Wake {
        after: None,
        signals: vec![APPROVED.to_owned()],
        objects: Vec::new(),
    };
    Ok(Output::new()
        .progress(0, "waits for an approval")
        .wait(wake))
}
