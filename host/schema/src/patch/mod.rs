//! The three patch types that are not apply.

use serde_json::Value;
use thiserror::Error;

use crate::Schema;

/// Why a patch could not be used.
#[derive(Debug, Error)]
pub enum PatchError {
    /// The patch itself is malformed: 400 Bad Request.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object (a `test` that fails, a path that is not there): 422 Invalid.
    #[error("{0}")]
    Inapplicable(String),
}

/// JSON Merge Patch (RFC 7396).
pub fn merge(_target: &mut Value, _patch: &Value) {}

/// JSON Patch (RFC 6902). On error `target` is unchanged.
///
/// # Errors
/// [`PatchError`], with the messages of an API server.
pub fn json(_target: &mut Value, _patch: &Value) -> Result<(), PatchError> {
    Ok(())
}

/// Strategic merge patch, for built-in kinds only. On error `target` may be half-patched: patch a copy.
///
/// # Errors
/// [`PatchError`], with the messages of an API server.
pub fn strategic(_schema: &Schema, _target: &mut Value, _patch: &Value) -> Result<(), PatchError> {
    Ok(())
}
