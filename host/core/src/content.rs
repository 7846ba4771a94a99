//! Whether an object has changed in a way that matters to its Configurator.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::field_manager;
use crate::request::ObjectRef;

/// Digest of an object's content without managedFields, resourceVersion, generation and what the Configurator's
/// own managers wrote. Equal digests start no run.
///
/// The generation is left out because the server raises it with every change of the spec, also with the
/// Configurator's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ContentDigest([u8; 16]);

impl ContentDigest {
    /// Of an object, projected. `managed_fields` are those that the server sent with it.
    #[must_use]
    pub fn of(object: &Value, managed_fields: Option<&Value>, configurator: &ObjectRef) -> Self {
        let manager = field_manager::of_requests(configurator);
        let own = own_fields(managed_fields, &manager);
        let mut hash = Sha256::new();
        if let Value::Object(fields) = object {
            hash_object(&mut hash, fields, &own, Place::Root);
        }
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(hash.finalize()) {
            *to = from;
        }
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Metadata,
    Below,
}

/// The `fieldsV1` of the Configurator's own managers.
fn own_fields<'a>(managed_fields: Option<&'a Value>, own: &str) -> Vec<&'a Map<String, Value>> {
    let entries = managed_fields.and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter(|entry| {
            entry
                .get("manager")
                .and_then(Value::as_str)
                .is_some_and(|manager| field_manager::is_of(own, manager))
        })
        .filter_map(|entry| entry.get("fieldsV1").and_then(Value::as_object))
        .collect()
}

fn is_skipped(place: Place, name: &str) -> bool {
    place == Place::Metadata && matches!(name, "managedFields" | "resourceVersion" | "generation")
}

fn hash_object(
    hash: &mut Sha256,
    fields: &Map<String, Value>,
    own: &[&Map<String, Value>],
    place: Place,
) {
    hash.update(b"{");
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    for (name, value) in sorted {
        if is_skipped(place, name) {
            continue;
        }
        let below = if own.is_empty() {
            Vec::new()
        } else {
            children(own, &format!("f:{name}"))
        };
        if !remains(value, &below) {
            continue;
        }
        hash_text(hash, name);
        let inside = match (place, name.as_str()) {
            (Place::Root, "metadata") => Place::Metadata,
            _ => Place::Below,
        };
        hash_value(hash, value, &below, inside);
    }
    hash.update(b"}");
}

fn hash_value(hash: &mut Sha256, value: &Value, own: &[&Map<String, Value>], place: Place) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(flag) => hash.update(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => {
            hash.update(b"#");
            hash_text(hash, &number.to_string());
        }
        Value::String(text) => {
            hash.update(b"s");
            hash_text(hash, text);
        }
        Value::Array(items) => {
            hash.update(b"[");
            for (index, item) in items.iter().enumerate() {
                let below = item_children(own, index, item);
                if remains(item, &below) {
                    hash_value(hash, item, &below, Place::Below);
                }
            }
            hash.update(b"]");
        }
        Value::Object(fields) => hash_object(hash, fields, own, place),
    }
}

fn hash_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

/// Whether anything of `value` is left without what `own` covers. A leaf of a field set is an empty object; an
/// object of which everything is owned counts as absent.
fn remains(value: &Value, own: &[&Map<String, Value>]) -> bool {
    if own.is_empty() {
        return true;
    }
    if own.iter().any(|fields| fields.is_empty()) {
        return false;
    }
    match value {
        Value::Object(fields) => fields.iter().any(|(name, field)| {
            let below = children(own, &format!("f:{name}"));
            remains(field, &below)
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .any(|(index, item)| remains(item, &item_children(own, index, item))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn children<'a>(own: &[&'a Map<String, Value>], name: &str) -> Vec<&'a Map<String, Value>> {
    own.iter()
        .filter_map(|fields| fields.get(name).and_then(Value::as_object))
        .collect()
}

/// Items are named by their keys (`k:`), their value (`v:`) or their place (`i:`).
fn item_children<'a>(
    own: &[&'a Map<String, Value>],
    index: usize,
    item: &Value,
) -> Vec<&'a Map<String, Value>> {
    own.iter()
        .flat_map(|fields| fields.iter())
        .filter(|(name, _)| match name.split_once(':') {
            Some(("k", keys)) => {
                serde_json::from_str::<Map<String, Value>>(keys).is_ok_and(|keys| {
                    keys.iter()
                        .all(|(key, wanted)| item.get(key) == Some(wanted))
                })
            }
            Some(("v", value)) => {
                serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item)
            }
            Some(("i", at)) => at.parse() == Ok(index),
            _ => false,
        })
        .filter_map(|(_, below)| below.as_object())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::configurator_key;

    fn base() -> Value {
        json!({
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 1},
            "spec": {"replicas": 1, "ports": [{"name": "a", "port": 1}], "finalizers": ["x"]},
        })
    }

    fn with_own(mut object: Value, manager: &str, fields: Value) -> Value {
        object["metadata"]["managedFields"] =
            json!([{"manager": manager, "operation": "Apply", "fieldsV1": fields}]);
        object
    }

    fn digest(object: &Value) -> ContentDigest {
        ContentDigest::of(
            object,
            object.pointer("/metadata/managedFields"),
            &configurator_key(),
        )
    }

    #[track_caller]
    fn check(changed: &Value, is_same: bool) {
        assert_eq!(digest(&base()) == digest(changed), is_same, "{changed}");
    }

    #[test]
    fn bookkeeping_does_not_count() {
        let mut changed = base();
        changed["metadata"]["resourceVersion"] = json!("2");
        changed["metadata"]["generation"] = json!(2);
        check(&changed, true);
        check(
            &with_own(changed, "kubectl", json!({"f:spec": {"f:replicas": {}}})),
            true,
        );
    }

    #[test]
    fn what_others_write_counts() {
        let mut changed = base();
        changed["spec"]["replicas"] = json!(2);
        check(&changed, false);
        check(
            &with_own(
                changed.clone(),
                "kubectl",
                json!({"f:spec": {"f:replicas": {}}}),
            ),
            false,
        );
        check(
            &with_own(
                changed,
                "ccfgr/other",
                json!({"f:spec": {"f:replicas": {}}}),
            ),
            false,
        );
    }

    #[test]
    fn what_own_managers_write_does_not_count() {
        let mut changed = base();
        changed["status"] = json!({"phase": "x", "deep": {"er": 1}});
        changed["metadata"]["annotations"] = json!({"mine": "1"});
        let fields = json!({
            "f:status": {"f:phase": {}, "f:deep": {".": {}, "f:er": {}}},
            "f:metadata": {"f:annotations": {".": {}, "f:mine": {}}},
        });
        check(&with_own(changed.clone(), "ccfgr/c", fields.clone()), true);
        check(
            &with_own(changed.clone(), "ccfgr/c/status", fields.clone()),
            true,
        );
        changed["metadata"]["annotations"]["theirs"] = json!("2");
        check(&with_own(changed, "ccfgr/c", fields), false);
    }

    #[test]
    fn items_of_lists_are_found_by_key_value_and_place() {
        let mut changed = base();
        changed["spec"]["ports"] = json!([{"name": "mine", "port": 9}, {"name": "a", "port": 1}]);
        changed["spec"]["finalizers"] = json!(["x", "y"]);
        changed["spec"]["list"] = json!([1]);
        let fields = json!({"f:spec": {
            "f:ports": {"k:{\"name\":\"mine\"}": {".": {}, "f:name": {}, "f:port": {}}},
            "f:finalizers": {"v:\"y\"": {}},
            "f:list": {"i:0": {}},
        }});
        check(&with_own(changed, "ccfgr/c", fields), true);
    }

    #[test]
    fn the_order_of_keys_does_not_count_and_texts_do_not_run_together() {
        let of = |text: &str| digest(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a":1,"b":2}"#), of(r#"{"b":2,"a":1}"#));
        assert_ne!(of(r#"{"a":"b"}"#), of(r#"{"ab":""}"#));
        assert_ne!(of(r#"{"a":["b","c"]}"#), of(r#"{"a":["bc"]}"#));
        assert_ne!(of(r#"{"a":{}}"#), of("{}"));
    }
}
