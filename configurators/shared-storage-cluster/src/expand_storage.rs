//! More storage.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::ensure::step;
use crate::field::text;
use crate::plan::Plan;
use crate::prepare_storage::{claim, is_bound};

/// Asks for as much as is wanted, and waits until it is there.
///
/// # Errors
/// When the storage was lost, with the code `STORAGE_LOST`; what the API refuses, as less storage than before.
pub fn expand_storage(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let claim = claim(&Cluster::of(input)?, &input.parameters()?, &plan);
    step(input, &[claim], has_grown)
}

fn has_grown(claim: &Value) -> Result<bool, HandlerError> {
    let wanted = text(claim, "/spec/resources/requests/storage");
    Ok(is_bound(claim)? && text(claim, "/status/capacity/storage") == wanted)
}
