//! Strategic merge patch.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::PatchError;
use crate::{Schema, field_error::in_go, schema::Node};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Strategic merge patch, for built-in kinds only. On error `target` may be half-patched: patch a copy.
///
/// Lists merge by the keys that the kind declares. `$patch: replace | delete | merge`, `$retainKeys`,
/// `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>` are honoured.
///
/// # Errors
/// [`PatchError::Malformed`], with the messages of an API server.
pub fn strategic(schema: &Schema, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return Err(PatchError::Malformed(
            "a strategic merge patch and what it patches must be objects".to_owned(),
        ));
    };
    merge_map(&schema.root, target, patch)
}

fn merge_map(
    node: &Node,
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    match patch.get(PATCH).map(Value::as_str) {
        None => {}
        Some(Some("replace")) => {
            *target = fields(patch).map(|(n, v)| (n.clone(), v.clone())).collect();
            return Ok(());
        }
        Some(Some("delete")) => {
            target.clear();
            return Ok(());
        }
        Some(Some("merge")) => {}
        Some(other) => {
            return Err(PatchError::Malformed(format!(
                "unknown patch type: {} in map: {}",
                other.unwrap_or_default(),
                in_go(&Value::Object(patch.clone()))
            )));
        }
    }
    if let Some(retain) = patch.get(RETAIN) {
        let keep: Vec<&str> = strings(retain)?;
        if let Some((name, _)) =
            fields(patch).find(|(n, v)| !v.is_null() && !keep.contains(&n.as_str()))
        {
            return Err(PatchError::Malformed(format!(
                "invalid patch: {name:?} is set but not in {RETAIN}"
            )));
        }
        target.retain(|name, _| keep.contains(&name.as_str()));
    }
    for (name, list) in patch {
        if let Some(field) = name.strip_prefix(DELETE)
            && let Some(Value::Array(items)) = target.get_mut(field)
        {
            let gone = list.as_array().ok_or_else(|| malformed_list(name))?;
            items.retain(|item| !gone.contains(item));
        }
    }
    for (name, value) in fields(patch) {
        if value.is_null() {
            target.remove(name);
            continue;
        }
        let inner = node.child(name);
        match (target.get_mut(name), value) {
            (Some(Value::Object(have)), Value::Object(want)) if !inner.patch.replace => {
                merge_map(inner, have, want)?
            }
            (Some(Value::Array(have)), Value::Array(want)) if inner.patch.merge_key.is_some() => {
                let order = order_of(patch, name)?;
                merge_list(inner, have, want, order)?;
            }
            (None, Value::Array(want)) if inner.patch.merge_key.is_some() => {
                let mut have = Vec::new();
                merge_list(inner, &mut have, want, order_of(patch, name)?)?;
                target.insert(name.clone(), Value::Array(have));
            }
            _ => {
                target.insert(name.clone(), clean(value));
            }
        }
    }
    // An order without items: the list is only sorted.
    for name in patch.keys().filter_map(|n| n.strip_prefix(ORDER)) {
        if !patch.contains_key(name)
            && let Some(Value::Array(have)) = target.get_mut(name)
        {
            let order = order_of(patch, name)?;
            sort(
                node.child(name).patch.merge_key.unwrap_or_default(),
                have,
                &[],
                order,
            );
        }
    }
    Ok(())
}

fn merge_list(
    node: &Node,
    have: &mut Vec<Value>,
    want: &[Value],
    order: Option<&[Value]>,
) -> Result<(), PatchError> {
    let key = node.patch.merge_key.unwrap_or_default();
    let before = have.clone();
    if key.is_empty()
        || want
            .iter()
            .all(|item| !item.is_object() && !item.is_array())
            && !want.is_empty()
    {
        for item in want {
            if !have.contains(item) {
                have.push(item.clone());
            }
        }
        sort("", have, &before, Some(order.unwrap_or(want)));
        return Ok(());
    }
    if want
        .iter()
        .any(|item| item.get(PATCH).and_then(Value::as_str) == Some("replace"))
    {
        *have = want
            .iter()
            .filter(|item| item.get(PATCH).is_none())
            .map(clean)
            .collect();
        return Ok(());
    }
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, item) in have.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.to_string()).or_insert(at);
        }
    }
    let mut gone: Vec<&Value> = Vec::new();
    for item in want {
        let Value::Object(fields) = item else {
            return Err(PatchError::Malformed(format!(
                "a list that merges by {key:?} holds {item}, which is no object"
            )));
        };
        let Some(value) = fields.get(key) else {
            return Err(PatchError::Malformed(format!(
                "map: {} does not contain declared merge key: {key}",
                in_go(item)
            )));
        };
        match fields.get(PATCH).map(Value::as_str) {
            Some(Some("delete")) => {
                gone.push(value);
                continue;
            }
            None | Some(Some("merge")) => {}
            Some(other) => {
                return Err(PatchError::Malformed(format!(
                    "unknown patch type: {} in map: {}",
                    other.unwrap_or_default(),
                    in_go(item)
                )));
            }
        }
        match places
            .get(&value.to_string())
            .and_then(|at| have.get_mut(*at))
        {
            Some(Value::Object(target)) => merge_map(node.item(), target, fields)?,
            _ => {
                places.insert(value.to_string(), have.len());
                have.push(clean(item));
            }
        }
    }
    have.retain(|item| item.get(key).is_none_or(|value| !gone.contains(&value)));
    sort(key, have, &before, Some(order.unwrap_or(want)));
    Ok(())
}

/// Brings items into the order that the patch asks for. What it does not name keeps its place relative to its old neighbours.
fn sort(key: &str, items: &mut Vec<Value>, before: &[Value], order: Option<&[Value]>) {
    let Some(order) = order else { return };
    let id = |item: &Value| -> String {
        if key.is_empty() {
            item.to_string()
        } else {
            item.get(key).map(Value::to_string).unwrap_or_default()
        }
    };
    let wanted: HashMap<String, usize> = order
        .iter()
        .enumerate()
        .map(|(at, item)| (id(item), at))
        .collect();
    let before = if before.is_empty() {
        items.clone()
    } else {
        before.to_vec()
    };
    let old: HashMap<String, usize> = before
        .iter()
        .enumerate()
        .map(|(at, item)| (id(item), at))
        .collect();
    let (mut named, others): (Vec<Value>, Vec<Value>) = items
        .drain(..)
        .partition(|item| wanted.contains_key(&id(item)));
    named.sort_by_key(|item| wanted.get(&id(item)).copied());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(o), Some(n)) => {
                matches!((old.get(&id(o)), old.get(&id(n))), (Some(o), Some(n)) if o < n)
            }
        };
        items.extend(if other_first {
            others.next()
        } else {
            named.next()
        });
    }
}

/// The fields of a patch that are no directives.
fn fields(patch: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    patch.iter().filter(|(name, _)| !is_directive(name))
}

fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN || name.starts_with(ORDER) || name.starts_with(DELETE)
}

/// A part of a patch as a value of its own: without directives, without nulls in objects, without items to delete.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            fields(map)
                .filter(|(_, v)| !v.is_null())
                .map(|(n, v)| (n.clone(), clean(v)))
                .collect(),
        ),
        Value::Array(items) => {
            let kept = items.iter().filter(|i| {
                !matches!(
                    i.get(PATCH).and_then(Value::as_str),
                    Some("delete" | "replace")
                )
            });
            Value::Array(kept.map(clean).collect())
        }
        scalar => scalar.clone(),
    }
}

fn order_of<'a>(
    patch: &'a Map<String, Value>,
    field: &str,
) -> Result<Option<&'a [Value]>, PatchError> {
    let name = format!("{ORDER}{field}");
    match patch.get(&name) {
        None => Ok(None),
        Some(Value::Array(order)) => Ok(Some(order)),
        Some(_) => Err(malformed_list(&name)),
    }
}

fn strings(list: &Value) -> Result<Vec<&str>, PatchError> {
    let items = list.as_array().ok_or_else(|| malformed_list(RETAIN))?;
    items
        .iter()
        .map(|item| item.as_str().ok_or_else(|| malformed_list(RETAIN)))
        .collect()
}

fn malformed_list(name: &str) -> PatchError {
    PatchError::Malformed(format!(
        "invalid patch format of {name}: a list is expected"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"name": "p", "finalizers": ["a/1", "a/2"], "labels": {"x": "1"}},
            "spec": {
                "containers": [{"name": "a", "image": "1", "env": [{"name": "E", "value": "1"}]}, {"name": "b", "image": "1", "args": ["x"]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "tolerations": [{"key": "k"}]
            }
        })
    }

    fn check(patch: Value) -> Result<Value, PatchError> {
        let schema = crate::builtin("", "v1", "Pod").unwrap();
        let mut target = pod();
        strategic(&schema, &mut target, &patch).map(|()| target)
    }

    #[test]
    fn lists_merge_by_their_keys() {
        let got = check(json!({"spec": {
            "containers": [{"name": "b", "image": "2", "args": ["y"]}, {"name": "c", "image": "1"}, {"name": "a", "env": [{"name": "F", "value": "2"}]}],
            "tolerations": [{"key": "l"}]
        }}))
        .unwrap();
        assert_eq!(
            got["spec"]["containers"],
            json!([
                {"name": "b", "image": "2", "args": ["y"]}, {"name": "c", "image": "1"},
                {"name": "a", "image": "1", "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "1"}]}
            ])
        );
        assert_eq!(
            got["spec"]["tolerations"],
            json!([{"key": "l"}]),
            "a list without a key is replaced"
        );
    }

    #[test]
    fn directives() {
        let got =
            check(json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}})).unwrap();
        assert_eq!(
            got["spec"]["containers"],
            json!([{"name": "b", "image": "1", "args": ["x"]}])
        );
        let got =
            check(json!({"spec": {"containers": [{"name": "z"}, {"$patch": "replace"}]}})).unwrap();
        assert_eq!(got["spec"]["containers"], json!([{"name": "z"}]));
        let got = check(json!({"metadata": {"labels": {"$patch": "replace", "y": "2"}}})).unwrap();
        assert_eq!(got["metadata"]["labels"], json!({"y": "2"}));
        let got = check(json!({"metadata": {"labels": {"$patch": "delete"}}})).unwrap();
        assert_eq!(got["metadata"]["labels"], json!({}));
        let got = check(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"], "finalizers": ["a/3"]}})).unwrap();
        assert_eq!(got["metadata"]["finalizers"], json!(["a/3", "a/2"]));
        let got =
            check(json!({"metadata": {"$setElementOrder/finalizers": ["a/2", "a/1"]}})).unwrap();
        assert_eq!(got["metadata"]["finalizers"], json!(["a/2", "a/1"]));
        let got = check(json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}})).unwrap();
        assert_eq!(
            got["spec"]["volumes"],
            json!([{"name": "v", "hostPath": {"path": "/"}}])
        );
        let got = check(json!({"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "n"}, {"name": "a"}], "containers": [{"name": "n", "image": "1"}]
        }}))
        .unwrap();
        let names: Vec<&str> = got["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        assert_eq!(names, ["b", "n", "a"]);
    }

    #[test]
    fn malformed_patches() {
        for patch in [
            json!([]),
            json!({"spec": {"containers": [{"image": "1"}]}}),
            json!({"spec": {"containers": [{"name": "a", "$patch": "eat"}]}}),
            json!({"metadata": {"$patch": "eat"}}),
            json!({"metadata": {"labels": {"$retainKeys": ["a"], "b": "1"}}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}),
        ] {
            assert!(matches!(check(patch), Err(PatchError::Malformed(_))));
        }
    }

    #[test]
    fn a_patch_applied_twice_is_applied_once() {
        let schema = crate::builtin("", "v1", "Pod").unwrap();
        let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "b", "image": "3"}, {"name": "q", "$patch": "delete"}], "volumes": null}});
        let mut once = pod();
        strategic(&schema, &mut once, &patch).unwrap();
        let mut twice = once.clone();
        strategic(&schema, &mut twice, &patch).unwrap();
        assert_eq!(once, twice);
        assert_eq!(once["spec"].get("volumes"), None);
    }
}
