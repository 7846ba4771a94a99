//! Whether the schema of a kind keeps what a machine writes to the status. What a schema does not have, the API server prunes without
//! a word, and a state that is pruned is a state that is lost.

use configurator_core::configurator::StatePlace;
use serde_json::Value;

/// Holds a CustomResourceDefinition against the place of states.
///
/// # Errors
/// What is missing in it, and what to do.
pub(crate) fn check(definition: &Value, version: &str, place: &StatePlace) -> Result<(), String> {
    let StatePlace::Status {
        phase,
        state,
        memento,
    } = place
    else {
        return Ok(());
    };
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    let is_it = |found: &&Value| found.get("name").and_then(Value::as_str) == Some(version);
    let found = versions.into_iter().flatten().find(is_it);
    let Some(found) = found else {
        return Err(format!("its definition has no version {version}"));
    };
    if found.pointer("/subresources/status").is_none() {
        return Err(format!(
            "its version {version} has no subresource status: add subresources: {{status: {{}}}}"
        ));
    }
    let schema = found
        .pointer("/schema/openAPIV3Schema")
        .unwrap_or(&Value::Null);
    for (path, wanted, form) in [
        (phase, Wanted::Text, "{type: string}"),
        (
            state,
            Wanted::Anything,
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
        ),
        (memento, Wanted::Text, "{type: string}"),
    ] {
        if !keeps(schema, path, wanted) {
            return Err(format!(
                "its schema would not keep .{}: declare it as {form}, or say spec.machine.state.in: ConfigMap",
                path.join(".")
            ));
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Text,
    Anything,
}

fn keeps(schema: &Value, path: &[String], wanted: Wanted) -> bool {
    let is_open = |node: &Value| {
        node.get("x-kubernetes-preserve-unknown-fields")
            .and_then(Value::as_bool)
            == Some(true)
    };
    let mut node = schema;
    for name in path {
        let declared = node.get("properties").and_then(|fields| fields.get(name));
        let declared = declared.or_else(|| {
            node.get("additionalProperties")
                .filter(|rest| rest.is_object())
        });
        match declared {
            Some(declared) => node = declared,
            None => return is_open(node),
        }
    }
    match wanted {
        Wanted::Text => node.get("type").is_none_or(|kind| kind == "string"),
        Wanted::Anything => is_open(node),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn verify(status: Value, expected: Expect) {
        let definition = json!({"spec": {"versions": [{
            "name": "v1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}},
        }]}});
        let names = |last: &str| vec!["status".to_owned(), last.to_owned()];
        let place = StatePlace::Status {
            phase: names("phase"),
            state: names("state"),
            memento: names("memento"),
        };
        let told = check(&definition, "v1", &place);
        expected.assert_eq(&told.map_or_else(|why| why, |()| "it keeps them".to_owned()));
    }

    #[test]
    fn a_schema_keeps_the_state_or_says_what_is_missing() {
        let open = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let text = || json!({"type": "string"});
        verify(open(), expect!["it keeps them"]);
        verify(
            json!({"type": "object", "properties": {"phase": text(), "state": open(), "memento": text()}}),
            expect!["it keeps them"],
        );
        verify(
            json!({"type": "object", "properties": {"phase": text(), "state": open()}}),
            expect![
                "its schema would not keep .status.memento: declare it as {type: string}, or say spec.machine.state.in: ConfigMap"
            ],
        );
        verify(
            json!({"type": "object", "properties": {"phase": text(), "state": {"type": "object"}, "memento": text()}}),
            expect![
                "its schema would not keep .status.state: declare it as {type: object, x-kubernetes-preserve-unknown-fields: true}, or say spec.machine.state.in: ConfigMap"
            ],
        );
        verify(
            json!({"type": "object", "properties": {"phase": {"type": "integer"}, "state": open(), "memento": text()}}),
            expect![
                "its schema would not keep .status.phase: declare it as {type: string}, or say spec.machine.state.in: ConfigMap"
            ],
        );
        let none = check(
            &json!({"spec": {"versions": [{"name": "v1"}]}}),
            "v1",
            &StatePlace::ConfigStore,
        );
        assert_eq!(none, Ok(()));
    }
}
