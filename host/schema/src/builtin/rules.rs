//! Rules.
use serde_json::Value;

use crate::FieldError;
/// Rules.
pub fn builtin_validate(_group: &str, _version: &str, _kind: &str, _object: &Value, _old: Option<&Value>) -> Vec<FieldError> { Vec::new() }
