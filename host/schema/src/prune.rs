//! Removal of fields that a schema does not know.

use serde_json::Value;

use crate::schema::Node;

impl Node {
    /// Removes unknown fields and appends their paths. `path` is that of `value`, and is restored.
    pub(crate) fn prune(&self, value: &mut Value, path: &mut String, unknown: &mut Vec<String>) {
        let length = path.len();
        match value {
            Value::Object(map) => {
                let open = self.preserve_unknown || self.additional.is_some();
                map.retain(|name, inner| {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                    let keep = match self.field(name) {
                        Some(node) => {
                            node.prune(inner, path, unknown);
                            true
                        }
                        None if open || (self.embedded && is_header(name)) => true,
                        None => {
                            unknown.push(path.clone());
                            false
                        }
                    };
                    path.truncate(length);
                    keep
                });
            }
            Value::Array(items) => {
                let Some(node) = &self.items else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    path.push_str(&format!("[{at}]"));
                    node.prune(item, path, unknown);
                    path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// What every object has.
fn is_header(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}
