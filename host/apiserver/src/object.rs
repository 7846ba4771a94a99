//! Objects: reading their metadata, and their stored form.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::resource::Resource;
use crate::status::{Result, Status};

/// A stored object, parsed.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) bytes: Bytes,
    pub(crate) value: Value,
}

impl Live {
    pub(crate) fn parse(bytes: Bytes) -> Result<Self> {
        let value = parse_stored(&bytes)?;
        Ok(Self { bytes, value })
    }
}

pub(crate) fn parse_stored(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes)
        .map_err(|error| Status::internal(format!("a stored object is damaged: {error}")))
}

/// A field of the metadata that is a string; empty if absent.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A text at a JSON pointer; empty if absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    meta(object, "name")
}

pub(crate) fn uid(object: &Value) -> &str {
    meta(object, "uid")
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// The metadata, made if absent or malformed.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    child_mut(object, "metadata")
}

/// The object under a key, made if absent or no object.
pub(crate) fn child_mut<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let parent = as_map_mut(object);
    as_map_mut(parent.entry(key).or_insert(Value::Null))
}

fn as_map_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // The line above made it an object.
        _ => unreachable!("not an object"),
    }
}

/// Sets a field of the metadata, or removes it if the value is null.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: Value) {
    let metadata = metadata_mut(object);
    if value.is_null() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// Sets or removes a top-level field.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    if let Value::Object(map) = object {
        match value {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    finalizers(object).next().is_some()
}

/// An owner reference, as far as garbage collection needs it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    #[serde(default)]
    pub(crate) api_version: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) block_owner_deletion: bool,
}

pub(crate) fn owners(object: &Value) -> Vec<OwnerReference> {
    let references = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    references
        .filter_map(|reference| OwnerReference::deserialize(reference).ok())
        .collect()
}

/// The revision in stored bytes, without parsing them all.
pub(crate) fn stored_revision(bytes: &[u8]) -> Option<&str> {
    const MARK: &[u8] = br#""metadata":{"resourceVersion":""#;
    // The stored form begins with apiVersion, kind and then this mark; none of the two is long.
    let head = bytes.get(..bytes.len().min(1024))?;
    let start = head.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let rest = head.get(start..)?;
    let end = rest.iter().position(|&byte| byte == b'"')?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// Stored bytes under another apiVersion; the stored form begins with it.
pub(crate) fn with_api_version(bytes: &Bytes, api_version: &str) -> Bytes {
    const MARK: &[u8] = br#"{"apiVersion":""#;
    let Some(rest) = bytes.strip_prefix(MARK) else {
        return bytes.clone();
    };
    let Some(end) = rest.iter().position(|&byte| byte == b'"') else {
        return bytes.clone();
    };
    if rest.get(..end) == Some(api_version.as_bytes()) {
        return bytes.clone();
    }
    let mut changed = Vec::with_capacity(bytes.len() + api_version.len());
    changed.extend_from_slice(MARK);
    changed.extend_from_slice(api_version.as_bytes());
    changed.extend_from_slice(rest.get(end..).unwrap_or_default());
    changed.into()
}

/// The stored form of an object, complete but for its revision, which is known only inside the transaction.
///
/// It is plain JSON in which `apiVersion`, `kind` and `metadata.resourceVersion` come first, and the manager in each
/// entry of `metadata.managedFields`.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    revision_at: usize,
}

impl Encoded {
    pub(crate) fn new(object: &Value, api_version: &str) -> Result<Self> {
        let mut bytes = Vec::with_capacity(1024);
        let empty = Map::new();
        let fields = object.as_object().unwrap_or(&empty);
        let metadata = fields
            .get("metadata")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        bytes.extend_from_slice(br#"{"apiVersion":"#);
        write(&mut bytes, &Value::from(api_version))?;
        bytes.extend_from_slice(br#","kind":"#);
        write(&mut bytes, fields.get("kind").unwrap_or(&Value::Null))?;
        bytes.extend_from_slice(br#","metadata":{"resourceVersion":""#);
        let revision_at = bytes.len();
        bytes.push(b'"');
        for (key, value) in metadata.iter().filter(|(key, _)| *key != "resourceVersion") {
            match (key.as_str(), value) {
                ("managedFields", Value::Array(managers)) => write_managers(&mut bytes, managers)?,
                _ => write_field(&mut bytes, key, value)?,
            }
        }
        bytes.push(b'}');
        for (key, value) in fields
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"))
        {
            write_field(&mut bytes, key, value)?;
        }
        bytes.push(b'}');
        Ok(Self { bytes, revision_at })
    }

    /// The form of an object that is not stored.
    pub(crate) fn without_revision(&self) -> Bytes {
        const EMPTY: &[u8] = br#""resourceVersion":"""#;
        let start = self.revision_at.saturating_sub(EMPTY.len() - 1);
        let (head, rest) = self
            .bytes
            .split_at_checked(start)
            .unwrap_or((&self.bytes, &[]));
        let rest = rest.strip_prefix(EMPTY).unwrap_or(rest);
        [head, rest.strip_prefix(b",").unwrap_or(rest)]
            .concat()
            .into()
    }

    pub(crate) fn with_revision(&self, revision: u64) -> Bytes {
        let digits = revision.to_string();
        let (head, tail) = self
            .bytes
            .split_at_checked(self.revision_at)
            .unwrap_or((&self.bytes, &[]));
        let mut bytes = Vec::with_capacity(self.bytes.len() + digits.len());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(tail);
        bytes.into()
    }
}

/// The manager stands first in its entry, as a Kubernetes server writes it, so that a reader knows early whether the
/// entry is of interest.
fn write_managers(bytes: &mut Vec<u8>, managers: &[Value]) -> Result<()> {
    bytes.extend_from_slice(br#","managedFields":["#);
    for (at, entry) in managers.iter().enumerate() {
        if at > 0 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(br#"{"manager":"#);
        write(bytes, entry.get("manager").unwrap_or(&Value::Null))?;
        let others = entry.as_object().into_iter().flatten();
        for (key, value) in others.filter(|(key, _)| *key != "manager") {
            write_field(bytes, key, value)?;
        }
        bytes.push(b'}');
    }
    bytes.push(b']');
    Ok(())
}

fn write(bytes: &mut Vec<u8>, value: &Value) -> Result<()> {
    serde_json::to_writer(bytes, value).map_err(Status::internal)
}

fn write_field(bytes: &mut Vec<u8>, key: &str, value: &Value) -> Result<()> {
    bytes.push(b',');
    serde_json::to_writer(&mut *bytes, key).map_err(Status::internal)?;
    bytes.push(b':');
    write(bytes, value)
}

/// What selectors look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) labels: Vec<(String, String)>,
    /// One for each of the resource's selectable fields.
    pub(crate) fields: Vec<String>,
}

impl Traits {
    pub(crate) fn of(object: &Value, resource: &Resource) -> Self {
        let labels = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        let labels = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        let fields = resource
            .fields
            .iter()
            .map(|field| match object.pointer(&field.pointer) {
                Some(Value::String(text)) => text.clone(),
                None | Some(Value::Null) => field.absent.to_owned(),
                Some(other) => other.to_string(),
            });
        Self {
            labels: labels.collect(),
            fields: fields.collect(),
        }
    }

    /// The labels of a stored object, without reading the rest of it.
    pub(crate) fn labels_of(stored: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Labelled<'a> {
            #[serde(borrow)]
            metadata: Metadata<'a>,
        }
        #[derive(Deserialize)]
        struct Metadata<'a> {
            #[serde(borrow, default)]
            labels: HashMap<Cow<'a, str>, Cow<'a, str>>,
        }
        let Labelled { metadata } = serde_json::from_slice(stored)
            .map_err(|error| Status::internal(format!("a stored object is damaged: {error}")))?;
        let own =
            |(key, value): (Cow<'_, str>, Cow<'_, str>)| (key.into_owned(), value.into_owned());
        Ok(Self {
            labels: metadata.labels.into_iter().map(own).collect(),
            fields: Vec::new(),
        })
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(label, _)| label == key)
            .map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_stored_form_takes_a_revision_and_another_version() {
        let object = json!({"kind": "Foo", "apiVersion": "a/v2", "metadata": {"name": "x", "resourceVersion": "7"}, "Zeta": 1, "alpha": [1]});
        let bytes = Encoded::new(&object, "a/v1").unwrap().with_revision(42);
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"apiVersion":"a/v1","kind":"Foo","metadata":{"resourceVersion":"42","name":"x"},"Zeta":1,"alpha":[1]}"#
        );
        assert_eq!(stored_revision(&bytes), Some("42"));
        assert_eq!(Traits::labels_of(&bytes).unwrap(), Traits::default());
        let managed = json!({"kind": "Foo", "metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}, "manager": "m"}, {"manager": "n"}]}});
        let bytes = Encoded::new(&managed, "v1").unwrap().with_revision(1);
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"apiVersion":"v1","kind":"Foo","metadata":{"resourceVersion":"1","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}},{"manager":"n"}]}}"#
        );
        let labelled =
            br#"{"metadata":{"name":"x","labels":{"app":"\u0077eb"}},"spec":{"labels":1}}"#;
        assert_eq!(
            Traits::labels_of(labelled).unwrap().label("app"),
            Some("web")
        );
        assert!(with_api_version(&bytes, "a/v3").starts_with(br#"{"apiVersion":"a/v3","kind""#));
    }
}
