//! JSON Patch.

use serde_json::Value;

use super::PatchError;

/// More operations are refused, as an API server does.
const OPERATIONS_MAX: usize = 10_000;

/// A `copy` can double a document; what grows beyond this many nodes is refused.
const NODES_MAX: usize = 1_000_000;

/// JSON Patch (RFC 6902). On error `target` is unchanged.
///
/// # Errors
/// [`PatchError::Malformed`] if the patch is no list of operations, [`PatchError::Inapplicable`] if an operation fails.
pub fn json(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let count = patch.as_array().map_or(0, Vec::len);
    if count > OPERATIONS_MAX {
        return Err(PatchError::TooLarge {
            limit: OPERATIONS_MAX,
            count,
        });
    }
    let mut patch = patch.clone();
    for operation in patch.as_array_mut().into_iter().flatten() {
        // A value that is not there is null, as the servers of Kubernetes read it.
        if let Value::Object(fields) = operation
            && matches!(
                fields.get("op").and_then(Value::as_str),
                Some("add" | "replace" | "test")
            )
        {
            fields.entry("value").or_insert(Value::Null);
        }
    }
    let patch: json_patch::Patch = serde_json::from_value(patch)
        .map_err(|e| PatchError::Malformed(format!("error decoding patch: {e}")))?;
    let mut patched = target.clone();
    for mut operation in patch.0 {
        // To replace a field that is not there is to add it.
        if let json_patch::PatchOperation::Replace(replace) = &operation
            && patched.pointer(replace.path.as_str()).is_none()
            && let Some((parent, _)) = replace.path.as_str().rsplit_once('/')
            && patched.pointer(parent).is_some_and(Value::is_object)
        {
            operation = json_patch::PatchOperation::Add(json_patch::AddOperation {
                path: replace.path.clone(),
                value: replace.value.clone(),
            });
        }
        let copies = matches!(operation, json_patch::PatchOperation::Copy(_));
        let shown = format!("{} {}", name(&operation), operation.path());
        json_patch::patch(&mut patched, std::slice::from_ref(&operation)).map_err(|e| {
            PatchError::Inapplicable(format!(
                "the JSON patch cannot be applied: {shown:?}: {}",
                e.kind
            ))
        })?;
        if copies && nodes(&patched) > NODES_MAX {
            return Err(PatchError::Inapplicable(
                "the JSON patch cannot be applied: the result is too large".to_owned(),
            ));
        }
    }
    *target = patched;
    Ok(())
}

fn name(operation: &json_patch::PatchOperation) -> &'static str {
    use json_patch::PatchOperation as Op;
    match operation {
        Op::Add(_) => "add",
        Op::Remove(_) => "remove",
        Op::Replace(_) => "replace",
        Op::Move(_) => "move",
        Op::Copy(_) => "copy",
        Op::Test(_) => "test",
    }
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    fn check(patch: Value) -> Result<Value, PatchError> {
        let mut target = value!({"a": {"b": [1, 2]}, "c": "x"});
        json(&mut target, &patch).map(|()| target)
    }

    #[test]
    fn operations() {
        assert_eq!(
            check(value!([
                {"op": "test", "path": "/c", "value": "x"}, {"op": "add", "path": "/a/b/-", "value": 3},
                {"op": "replace", "path": "/c", "value": "y"}, {"op": "copy", "from": "/c", "path": "/d"},
                {"op": "move", "from": "/a/b/0", "path": "/e"}, {"op": "remove", "path": "/a/b/0"}
            ])),
            Ok(value!({"a": {"b": [3]}, "c": "y", "d": "y", "e": 1}))
        );
    }

    #[test]
    fn failures_leave_the_object_and_say_why() {
        for patch in [
            value!([{"op": "add", "path": "/c", "value": 1}, {"op": "test", "path": "/c", "value": "z"}]),
            value!([{"op": "remove", "path": "/nowhere"}]),
            value!([{"op": "replace", "path": "/a/b/7", "value": 1}]),
        ] {
            assert!(matches!(check(patch), Err(PatchError::Inapplicable(_))));
        }
        for patch in [
            value!({}),
            value!([{"op": "grow", "path": "/c"}]),
            value!([{"op": "add", "path": "c"}]),
        ] {
            assert!(matches!(check(patch), Err(PatchError::Malformed(_))));
        }
        let many: Vec<Value> = (0..10_001)
            .map(|_| value!({"op": "test", "path": "/c", "value": "x"}))
            .collect();
        assert_eq!(
            check(Value::Array(many)),
            Err(PatchError::TooLarge {
                limit: 10_000,
                count: 10_001
            })
        );
    }

    #[test]
    fn copies_cannot_fill_the_memory() {
        let doubling: Vec<Value> = (0..60)
            .map(|i| value!({"op": "copy", "from": "", "path": format!("/x{i}")}))
            .collect();
        assert!(matches!(
            check(Value::Array(doubling)),
            Err(PatchError::Inapplicable(_))
        ));
    }
}
