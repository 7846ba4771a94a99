//! Defaults of custom kinds, and the stored form of built-in ones.

use serde_json::Value;

use crate::{
    quantity::Quantity,
    schema::{Kind, Node},
};

impl Node {
    /// Sets defaults below `value`. At the root, `metadata` is left alone.
    pub(crate) fn default_children(&self, value: &mut Value, root: bool) {
        match value {
            Value::Object(map) => {
                for (name, node) in &self.properties {
                    if root && matches!(name.as_ref(), "metadata" | "apiVersion" | "kind") {
                        continue;
                    }
                    let null = map.get(name.as_ref()).is_some_and(Value::is_null);
                    if null && !node.accepts_null() {
                        map.remove(name.as_ref());
                    }
                    if let Some(default) = &node.default
                        && !map.contains_key(name.as_ref())
                    {
                        map.insert(name.to_string(), (**default).clone());
                    }
                }
                for (name, inner) in map.iter_mut() {
                    if root && name == "metadata" {
                        continue;
                    }
                    if let Some(node) = self.field(name) {
                        node.fill(inner);
                        node.default_children(inner, false);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    for item in items {
                        node.fill(item);
                        node.default_children(item, false);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A null item or map entry becomes the default, where there is one and null is none of its values.
    fn fill(&self, value: &mut Value) {
        if value.is_null()
            && !self.accepts_null()
            && let Some(default) = &self.default
        {
            *value = (**default).clone();
        }
    }

    fn accepts_null(&self) -> bool {
        self.nullable || self.kind == Kind::Any
    }

    /// Quantities in canonical form, no nulls, no empty maps and lists where an API server writes none.
    pub(crate) fn canonicalize(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                if self.kind == Kind::Any {
                    return;
                }
                // A null among named fields is no field; as a value of a map of texts it is the empty one.
                map.retain(|name, v| !v.is_null() || self.property(name).is_none());
                for (name, inner) in map.iter_mut() {
                    if let Some(node) = self.field(name) {
                        if inner.is_null() && node.kind == Kind::String {
                            *inner = Value::String(String::new());
                        }
                        node.canonicalize(inner);
                    }
                }
                map.retain(|name, v| {
                    !v.is_null()
                        && self
                            .property(name)
                            .is_none_or(|node| !node.is_left_out(name, v))
                });
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    items.iter_mut().for_each(|item| node.canonicalize(item));
                }
            }
            scalar if self.kind == Kind::Quantity => {
                if let Ok(quantity) = Quantity::from_json(scalar) {
                    *scalar = Value::String(quantity.to_string());
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether an API server leaves out a field with this value: an empty map or list, of the fields that may be absent.
    fn is_left_out(&self, name: &str, value: &Value) -> bool {
        match value {
            Value::Array(items) => {
                items.is_empty() && self.kind == Kind::Array && !KEPT_LISTS.contains(&name)
            }
            Value::Object(map) => {
                map.is_empty()
                    && self.kind == Kind::Object
                    && self.properties.is_empty()
                    && self.additional.is_some()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
}

/// Lists of built-in kinds that are written also when they are empty.
const KEPT_LISTS: [&str; 15] = [
    "addresses",
    "admissionReviewVersions",
    "containers",
    "currentMetrics",
    "drivers",
    "endpoints",
    "limits",
    "managedFields",
    "monitors",
    "nodeSelectorTerms",
    "paths",
    "rules",
    "sources",
    "verbs",
    "versions",
];
