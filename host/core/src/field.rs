//! Fields of JSON values, by their path.

use serde_json::Value;

/// The field at a path such as `/metadata/name` or `/items/0`. `None`: there is none.
///
/// It is [`Value::pointer`] without escapes, so no name may have a `/`. It allocates nothing.
#[must_use]
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut names = path.split('/').skip(1);
    names.try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

/// The text at a path. Empty: there is none.
#[must_use]
pub fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_a_field_or_nowhere() {
        let value = json!({"metadata": {"name": "web", "labels": {}}, "items": ["a"]});
        assert_eq!(text(&value, "/items/0"), "a");
        assert_eq!(text(&value, "/metadata/name"), "web");
        assert_eq!(text(&value, "/metadata/labels"), "");
        assert_eq!(at(&value, "/metadata/labels"), Some(&json!({})));
        for path in ["/spec/name", "/metadata/name/first", "/items/1"] {
            assert_eq!(at(&value, path), None, "{path}");
        }
        assert_eq!(at(&value, ""), Some(&value));
    }
}
