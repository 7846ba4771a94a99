//! Whether an object has what an entry describes.

use serde_json::Value;

/// Returns the path of the first field of `desired` that `live` lacks or has with another value, such as `.spec.replicas`. `None`: a write would
/// change nothing.
///
/// Fields that only `live` has do not count: defaults, and what others own. Lists must have the same length, because an item more may be a
/// change: a rule in a Role, an argument of a container. Values that the server writes in another form, such as quantities, differ: the
/// caller finds out by a write that they do not.
#[must_use]
pub fn difference(desired: &Value, live: &Value) -> Option<String> {
    let mut path = String::new();
    differs(desired, live, &mut path).then_some(path)
}

/// Leaves the path of the difference in `path`, or `path` as it was.
fn differs(desired: &Value, live: &Value, path: &mut String) -> bool {
    use std::fmt::Write as _;
    let length = path.len();
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            for (name, desired) in desired {
                match name.contains(['.', '/', '\'']) {
                    true => drop(write!(path, "['{name}']")),
                    false => drop(write!(path, ".{name}")),
                }
                let is_different = match live.get(name) {
                    Some(live) => differs(desired, live, path),
                    // Servers drop fields that are null.
                    None => !desired.is_null(),
                };
                if is_different {
                    return true;
                }
                path.truncate(length);
            }
            false
        }
        (Value::Array(desired), Value::Array(live)) => {
            if desired.len() != live.len() {
                return true;
            }
            for (index, (desired, live)) in desired.iter().zip(live).enumerate() {
                let _ = write!(path, "[{index}]");
                if differs(desired, live, path) {
                    return true;
                }
                path.truncate(length);
            }
            false
        }
        (Value::Number(desired), Value::Number(live)) => {
            desired != live && desired.as_f64() != live.as_f64()
        }
        (desired, live) => desired != live,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "as `json!` and `expect!` are used"
    )]
    #[track_caller]
    fn check(desired: Value, live: Value, expected: Expect) {
        let path = difference(&desired, &live);
        expected.assert_eq(path.as_deref().unwrap_or("none"));
    }

    #[test]
    fn fields_that_only_the_server_has_do_not_count() {
        check(
            json!({"spec": {"replicas": 2, "paused": null}}),
            json!({"spec": {"replicas": 2.0, "strategy": {}}, "status": {}}),
            expect!["none"],
        );
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        check(
            json!({"spec": {"replicas": 2}}),
            json!({"spec": {"replicas": 3}}),
            expect![".spec.replicas"],
        );
        check(
            json!({"metadata": {"labels": {"app.kubernetes.io/name": "web"}}}),
            json!({"metadata": {}}),
            expect![".metadata.labels"],
        );
        check(
            json!({"metadata": {"labels": {"app.kubernetes.io/name": "web"}}}),
            json!({"metadata": {"labels": {"app.kubernetes.io/name": "shop"}}}),
            expect![".metadata.labels['app.kubernetes.io/name']"],
        );
    }

    #[test]
    fn an_item_more_in_a_list_is_a_difference() {
        check(
            json!({"rules": [{"verbs": ["get"]}]}),
            json!({"rules": [{"verbs": ["get"]}, {"verbs": ["*"]}]}),
            expect![".rules"],
        );
        check(
            json!({"rules": [{"verbs": ["get"]}]}),
            json!({"rules": [{"verbs": ["list"]}]}),
            expect![".rules[0].verbs[0]"],
        );
    }
}
