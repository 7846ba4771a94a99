//! The built-in kinds.

use std::sync::Arc;

use serde_json::Value;

use crate::{FieldError, Schema};

/// The schema of a built-in kind, or nothing if there is none of that name. Built at the first call and kept.
pub fn builtin(_group: &str, _version: &str, _kind: &str) -> Option<Arc<Schema>> {
    None
}

/// Sets what an API server sets in an object of a built-in kind: defaults, and values in canonical form.
pub fn builtin_defaults(_group: &str, _version: &str, _kind: &str, _object: &mut Value) {}

/// What an API server's own rules find wrong with an object of a built-in kind; `old` is the version before an update.
pub fn builtin_validate(_group: &str, _version: &str, _kind: &str, _object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
