//! Fields of objects that handlers read here and there.

use serde_json::Value;

/// The text at this place, as `/metadata/name`; empty where there is none.
pub fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The list at this place; empty where there is none.
pub fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    let found = object.pointer(pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default()
}
