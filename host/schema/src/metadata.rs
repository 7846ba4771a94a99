//! Rules of `metadata` that hold for every kind, and the syntax of names, labels and keys.

use serde_json::Value;

use crate::{
    FieldError,
    format::{is_dns_label, is_dns_name},
};

/// All annotations together, in bytes.
const ANNOTATIONS_SIZE_MAX: usize = 256 << 10;

/// What is wrong with labels, annotations, finalizers and owner references of an object of any kind, custom ones included.
///
/// The name is not checked: what it may be depends on the kind.
pub fn validate_metadata(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(metadata) = object.get("metadata") else {
        return errors;
    };
    labels(metadata.get("labels"), "metadata.labels", &mut errors);
    let mut size = 0;
    for (key, value) in metadata
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        size += key.len() + value.as_str().map_or(0, str::len);
        let lower = key.to_lowercase();
        errors.extend(
            qualified_name(&lower)
                .map(|why| FieldError::invalid("metadata.annotations", &key.as_str().into(), why)),
        );
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            ANNOTATIONS_SIZE_MAX as u64,
        ));
    }
    finalizers(metadata, &mut errors);
    owners(metadata, &mut errors);
    errors
}

fn finalizers(metadata: &Value, errors: &mut Vec<FieldError>) {
    let Some(list) = metadata.get("finalizers").and_then(Value::as_array) else {
        return;
    };
    let names = || list.iter().map(|name| name.as_str().unwrap_or_default());
    for (name, finalizer) in names().zip(list) {
        let mut faults = Vec::from_iter(qualified_name(name));
        if name.is_empty() {
            faults.push(NAME_PART.to_owned());
        }
        errors.extend(
            faults
                .into_iter()
                .map(|why| FieldError::invalid("metadata.finalizers", finalizer, why)),
        );
    }
    if names().any(|name| name == "orphan") && names().any(|name| name == "foregroundDeletion") {
        let shown = Value::Array(list.clone());
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", &shown, why));
    }
    for (at, (name, finalizer)) in names().zip(list).enumerate() {
        let known =
            ["orphan", "foregroundDeletion", "kubernetes"].contains(&name) || name.contains('/');
        if !known {
            errors.push(FieldError::invalid(
                format!("metadata.finalizers[{at}]"),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

fn owners(metadata: &Value, errors: &mut Vec<FieldError>) {
    let path = "metadata.ownerReferences";
    let Some(list) = metadata.get("ownerReferences").and_then(Value::as_array) else {
        return;
    };
    let mut controllers = Vec::new();
    for owner in list {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(
                    format!("{path}.{field}"),
                    &"".into(),
                    why,
                ));
            }
        }
        if text("kind") == "Event" && matches!(text("apiVersion"), "v1" | "events.k8s.io/v1") {
            let group = text("apiVersion")
                .rsplit_once('/')
                .map_or("", |(group, _)| group);
            let why = format!("{group}/v1, Kind=Event is disallowed from being an owner");
            errors.push(FieldError::invalid(path, owner, why));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            controllers.push(text("name"));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        errors.push(FieldError::invalid(path, &Value::Array(list.clone()), why));
    }
}

/// Brings the `metadata` of an object of any kind into the form that an API server stores: without nulls, empty maps and lists.
pub fn canonicalize_metadata(metadata: &mut Value) {
    crate::builtin::object_meta().canonicalize(metadata);
}

/// Checks a map of labels.
pub(crate) fn labels(labels: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(
            qualified_name(key).map(|why| FieldError::invalid(path, &key.as_str().into(), why)),
        );
        errors.extend(
            label_value(value.as_str().unwrap_or_default())
                .map(|why| FieldError::invalid(path, value, why)),
        );
    }
}

/// Why a text is no value of a label.
fn label_value(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!text.is_empty() && !is_name(text)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned()
    })
}

/// Why a text is no key of a label or annotation.
pub(crate) fn qualified_name(text: &str) -> Option<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty".to_owned()),
        Some(prefix) if !is_dns_name(prefix) => return Some(format!("prefix part {DNS_NAME}")),
        _ => {}
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    if name.contains('/') {
        return Some(
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                .to_owned(),
        );
    }
    (!is_name(name)).then(|| NAME_PART.to_owned())
}

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
     character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const DNS_NAME: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
     and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Why a text is no DNS label.
pub(crate) fn dns_label(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!is_dns_label(text)).then(|| {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
         alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

/// Why a text is no DNS label that begins with a letter.
pub(crate) fn dns_1035_label(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!is_dns_label(text) || text.starts_with(|first: char| first.is_ascii_digit())).then(|| {
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an \
         alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

/// Why a text is no name with dots.
pub(crate) fn dns_name(text: &str) -> Option<String> {
    (!is_dns_name(text)).then(|| DNS_NAME.to_owned())
}

/// Why a text is no key of a ConfigMap or Secret.
pub(crate) fn config_key(text: &str) -> Option<String> {
    if text.len() > 253 {
        return Some("must be no more than 253 bytes".to_owned());
    }
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(inner) {
        return Some(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or \
             'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match text {
        "." => Some("must not be '.'".to_owned()),
        ".." => Some("must not be '..'".to_owned()),
        _ if text.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.bytes().all(inner) && text.starts_with(ends) && text.ends_with(ends)
}
