//! The fields of an object that a field manager owns, as `metadata.managedFields` lists them.
//!
//! The form of a set of fields is that of the structured-merge-diff library: `f:NAME` is a field, `k:{…}` the item of a list that has these
//! values, `v:VALUE` the item that is this value, `i:N` the item at a place, and `.` the thing itself.

use serde_json::{Map, Value};

/// Returns the parts of an object that a manager owns by server-side apply, with the object's identity. What it would apply to go on owning
/// exactly these. Subresources do not count.
#[must_use]
pub fn owned_by(manager: &str, object: &Value) -> Value {
    let mut owned = Value::Object(Map::new());
    let entries = object.pointer("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    for entry in entries {
        let text = |field: &str| entry.get(field).and_then(Value::as_str);
        let is_its = text("manager") == Some(manager)
            && text("operation") == Some("Apply")
            && text("subresource").unwrap_or_default().is_empty();
        if let (true, Some(Value::Object(fields))) = (is_its, entry.get("fieldsV1"))
            && let Some(part) = part_of(object, fields)
        {
            merge(&mut owned, part);
        }
    }
    for pointer in [
        "/apiVersion",
        "/kind",
        "/metadata/name",
        "/metadata/namespace",
    ] {
        if let Some(value) = object.pointer(pointer) {
            let names: Vec<&str> = pointer.split('/').skip(1).collect();
            let nested = names.iter().rev().fold(value.clone(), |value, name| {
                Value::Object(Map::from_iter([((*name).to_owned(), value)]))
            });
            merge(&mut owned, nested);
        }
    }
    owned
}

/// The part of a value that a set of fields names. `None`: the value has nothing of it.
fn part_of(value: &Value, fields: &Map<String, Value>) -> Option<Value> {
    let below = |fields: &Value| match fields {
        Value::Object(fields) if fields.keys().any(|name| name != ".") => Some(fields.clone()),
        _ => None,
    };
    let part = |value: &Value, fields: &Value| match below(fields) {
        Some(fields) => part_of(value, &fields),
        None => Some(value.clone()),
    };
    match value {
        Value::Object(object) => {
            let owned = fields.iter().filter_map(|(name, fields)| {
                let name = name.strip_prefix("f:")?;
                Some((name.to_owned(), part(object.get(name)?, fields)?))
            });
            Some(Value::Object(owned.collect()))
        }
        Value::Array(items) => {
            let is_named = |index: usize, item: &Value, name: &str| match name.split_once(':') {
                Some(("k", keys)) => has_keys(item, keys),
                Some(("v", value)) => serde_json::from_str(value).ok().as_ref() == Some(item),
                Some(("i", place)) => place.parse() == Ok(index),
                _ => false,
            };
            let owned = items.iter().enumerate().filter_map(|(index, item)| {
                let mut fields = fields.iter();
                let (name, fields) = fields.find(|(name, _)| is_named(index, item, name))?;
                let mut owned = part(item, fields)?;
                // The keys of an item say which one it is.
                if let (Some(keys), Value::Object(owned)) = (name.strip_prefix("k:"), &mut owned) {
                    let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
                    owned.extend(keys);
                }
                Some(owned)
            });
            Some(Value::Array(owned.collect()))
        }
        scalar => Some(scalar.clone()),
    }
}

fn has_keys(item: &Value, keys: &str) -> bool {
    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    !keys.is_empty()
        && keys
            .iter()
            .all(|(name, value)| item.get(name) == Some(value))
}

/// Lays `over` on `base`. Lists are replaced.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                match base.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => drop(base.insert(name, value)),
                }
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn exactly_the_fields_of_the_manager_are_found() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "1", "finalizers": ["a", "b"],
                "labels": {"app": "web", "other": "x"},
                "managedFields": [
                    {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {"v:\"b\"": {}}},
                        "f:spec": {
                            "f:replicas": {},
                            "f:template": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}}},
                            "f:args": {},
                            "f:gone": {},
                        },
                    }},
                    {"manager": "m", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
                    {"manager": "m", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "n", "operation": "Apply", "fieldsV1": {"f:spec": {"f:strategy": {}}}},
                ],
            },
            "spec": {
                "replicas": 2, "paused": true, "strategy": {}, "args": ["x", "y"],
                "template": {"containers": [{"name": "b", "image": "1"}, {"name": "c", "image": "2", "tty": true}]},
            },
            "status": {"replicas": 2},
        });
        expect![[r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"finalizers":["b"],"labels":{"app":"web"},"name":"web","namespace":"shop"},"spec":{"args":["x","y"],"replicas":2,"template":{"containers":[{"image":"2","name":"c"}]}}}"#]]
        .assert_eq(&owned_by("m", &object).to_string());
        expect![[r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}"#]]
        .assert_eq(&owned_by("nobody", &object).to_string());
    }
}
