//! Defaults.
use serde_json::Value;
/// Sets defaults.
pub fn builtin_defaults(_group: &str, _version: &str, _kind: &str, _object: &mut Value) {}
