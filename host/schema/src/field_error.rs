//! A fault in one field of an object, in the words of Kubernetes.

use std::fmt;

use serde_json::Value;

/// One field that is wrong, where it is, and why.
///
/// `Display` prints it as a Kubernetes API server does: `spec.replicas: Invalid value: -1: must be greater than or equal to 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the field, as `spec.containers[0].name`; empty for the whole object.
    pub path: String,
    /// The class of the fault.
    pub reason: Reason,
    /// What is wrong, without the path: the `message` of a cause in a `Status`.
    pub message: String,
}

/// The class of a [`FieldError`]; the `reason` of a cause in a `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A required field is absent.
    Required,
    /// The value is malformed.
    Invalid,
    /// The value is not among those allowed.
    NotSupported,
    /// The value occurs twice where it must be unique.
    Duplicate,
    /// The value has another type than the schema says.
    TypeInvalid,
    /// A string is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
    /// The field may not be set (or changed) here.
    Forbidden,
    /// What the field refers to does not exist.
    NotFound,
    /// The check itself failed.
    Internal,
}

impl Reason {
    /// Whether rules cannot be asked about an object with such a fault: they may rely on the field.
    pub(crate) fn blocks_rules(self) -> bool {
        match self {
            Reason::Required
            | Reason::NotSupported
            | Reason::TypeInvalid
            | Reason::TooLong
            | Reason::TooMany => true,
            Reason::Invalid
            | Reason::Duplicate
            | Reason::Forbidden
            | Reason::NotFound
            | Reason::Internal => false,
        }
    }

    /// The name that Kubernetes gives it in `Status.details.causes[].reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Invalid => "FieldValueInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::NotFound => "FieldValueNotFound",
            Reason::Internal => "InternalError",
        }
    }
}

impl FieldError {
    /// A required field is absent. `detail` may be empty.
    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, Reason::Required, join("Required value", detail))
    }

    /// The value is malformed.
    pub fn invalid(path: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::new(
            path,
            Reason::Invalid,
            join(&format!("Invalid value: {}", shown(value)), detail.as_ref()),
        )
    }

    /// The value has another type than it should.
    pub fn type_invalid(path: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::new(
            path,
            Reason::TypeInvalid,
            join(&format!("Invalid value: {}", shown(value)), detail.as_ref()),
        )
    }

    /// The value is not among `supported`.
    pub fn not_supported<'a>(
        path: impl Into<String>,
        value: &Value,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let list: Vec<String> = supported.into_iter().map(|s| format!("{s:?}")).collect();
        let detail = if list.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", list.join(", "))
        };
        Self::new(
            path,
            Reason::NotSupported,
            join(&format!("Unsupported value: {}", shown(value)), &detail),
        )
    }

    /// The value occurs twice.
    pub fn duplicate(path: impl Into<String>, value: &Value) -> Self {
        Self::new(
            path,
            Reason::Duplicate,
            format!("Duplicate value: {}", shown(value)),
        )
    }

    /// The field may not be set here.
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, Reason::Forbidden, join("Forbidden", detail))
    }

    /// A string of more than `max` bytes or characters.
    pub fn too_long(path: impl Into<String>, max: u64) -> Self {
        Self::new(
            path,
            Reason::TooLong,
            format!("Too long: may not be more than {max} bytes"),
        )
    }

    /// A list or map of more than `max` entries.
    pub fn too_many(path: impl Into<String>, actual: usize, max: u64) -> Self {
        Self::new(
            path,
            Reason::TooMany,
            format!("Too many: {actual}: must have at most {max} items"),
        )
    }

    /// The check itself could not be done.
    pub fn internal(path: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::new(
            path,
            Reason::Internal,
            join("Internal error", detail.as_ref()),
        )
    }

    /// An error with a message of its own.
    pub fn new(path: impl Into<String>, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason,
            message: message.into(),
        }
    }

    /// The same error of an object that lies at `prefix` in a larger one.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.path = joined(prefix, &self.path);
        self
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            // Kubernetes names a nil path so.
            write!(f, "<nil>: {}", self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for FieldError {}

/// `prefix` and `path` as one path; either may be empty.
pub(crate) fn joined(prefix: &str, path: &str) -> String {
    if prefix.is_empty() {
        path.to_owned()
    } else if path.is_empty() || path.starts_with('[') {
        format!("{prefix}{path}")
    } else {
        format!("{prefix}.{path}")
    }
}

fn join(head: &str, detail: &str) -> String {
    if detail.is_empty() {
        head.to_owned()
    } else {
        format!("{head}: {detail}")
    }
}

/// The value as Kubernetes shows it in a message: compact JSON, cut where it would drown the message.
fn shown(value: &Value) -> String {
    const LIMIT: usize = 1024;
    let mut text = value.to_string();
    if text.len() > LIMIT {
        let mut end = LIMIT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text
}
/// A value as the Go language prints it by `%v`.
pub fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_go).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{name}:{}", in_go(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// A scalar as the Go language prints it by `%#v`.
pub(crate) fn in_go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name:?}:{}", in_go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
