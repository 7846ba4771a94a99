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
        let is_its = text_of(entry, "manager") == manager
            && text_of(entry, "operation") == "Apply"
            && text_of(entry, "subresource").is_empty();
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

/// Returns `metadata.managedFields` after some managers have handed their fields over to another one, which owns them by server-side apply
/// from then on. `None`: they have none.
///
/// Fields are named in a version of the kind. Where these managers have written in several versions, what they wrote last counts; fields in
/// other versions are nobody's afterwards. Subresources are left alone.
#[must_use]
pub fn handed_over(object: &Value, from: impl Fn(&str) -> bool, to: &str) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let is_own = |entry: &Value| text_of(entry, "manager") == to;
    let is_given = |entry: &Value| !is_own(entry) && from(text_of(entry, "manager"));
    let is_whole = |entry: &Value| text_of(entry, "subresource").is_empty();
    let (taken, mut left): (Vec<&Value>, Vec<&Value>) = entries
        .iter()
        .partition(|entry| is_whole(entry) && is_given(entry));
    let time = |entry: &Value| text_of(entry, "time").to_owned();
    let newest = taken.iter().max_by_key(|entry| time(entry))?;
    let version = text_of(newest, "apiVersion");
    let mut fields = Value::Object(Map::new());
    let own = left.extract_if(.., |entry| {
        is_own(entry) && is_whole(entry) && text_of(entry, "operation") == "Apply"
    });
    let own: Vec<&Value> = own.collect();
    for entry in own.into_iter().chain(taken.iter().copied()) {
        if text_of(entry, "apiVersion") == version
            && let Some(named) = entry.get("fieldsV1")
        {
            merge(&mut fields, named.clone());
        }
    }
    let mut entry = Map::new();
    entry.insert("manager".to_owned(), to.into());
    entry.insert("operation".to_owned(), "Apply".into());
    entry.insert("apiVersion".to_owned(), version.into());
    if let Some(time) = newest.get("time") {
        entry.insert("time".to_owned(), time.clone());
    }
    entry.insert("fieldsType".to_owned(), "FieldsV1".into());
    entry.insert("fieldsV1".to_owned(), fields);
    let left = left.into_iter().cloned();
    Some(left.chain([Value::Object(entry)]).collect())
}

fn text_of<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
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

    fn entry(manager: &str, operation: &str, version: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn hand_over(entries: &[Value]) -> String {
        let object = json!({"metadata": {"managedFields": entries}});
        let handed = handed_over(&object, |manager| manager.starts_with("old"), "new");
        let mut lines = String::new();
        for entry in handed
            .iter()
            .flat_map(|entries| entries.as_array().into_iter().flatten())
        {
            let text = |field: &str| text_of(entry, field);
            lines += &format!(
                "{} {} {} {} {}\n",
                text("manager"),
                text("operation"),
                text("apiVersion"),
                text("time"),
                entry["fieldsV1"],
            );
        }
        lines
    }

    #[test]
    fn fields_are_handed_over() {
        let mut status = entry("old-a", "Update", "v1", "3", json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let entries = [
            entry("new", "Apply", "v1", "1", json!({"f:data": {"f:own": {}}})),
            entry(
                "new",
                "Update",
                "v1",
                "1",
                json!({"f:data": {"f:updated": {}}}),
            ),
            entry(
                "old-a",
                "Update",
                "v1",
                "2",
                json!({"f:data": {".": {}, "f:a": {}}}),
            ),
            entry(
                "old-b",
                "Apply",
                "v1",
                "3",
                json!({"f:data": {"f:a": {}, "f:b": {}}}),
            ),
            entry("other", "Update", "v1", "1", json!({"f:data": {"f:c": {}}})),
            status,
        ];
        expect![[r#"
            new Update v1 1 {"f:data":{"f:updated":{}}}
            other Update v1 1 {"f:data":{"f:c":{}}}
            old-a Update v1 3 {"f:status":{}}
            new Apply v1 3 {"f:data":{".":{},"f:a":{},"f:b":{},"f:own":{}}}
        "#]]
        .assert_eq(&hand_over(&entries));
        // What was written last says in which version the fields are.
        let entries = [
            entry(
                "old-a",
                "Update",
                "v1beta1",
                "1",
                json!({"f:spec": {"f:early": {}}}),
            ),
            entry(
                "old-a",
                "Update",
                "v1",
                "2",
                json!({"f:spec": {"f:late": {}}}),
            ),
        ];
        expect![[r#"
            new Apply v1 2 {"f:spec":{"f:late":{}}}
        "#]]
        .assert_eq(&hand_over(&entries));
        expect![[""]].assert_eq(&hand_over(&[entry(
            "other",
            "Update",
            "v1",
            "1",
            json!({"f:data": {}}),
        )]));
        expect![[""]].assert_eq(&hand_over(&[]));
    }
}
