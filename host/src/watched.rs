//! A watched object of any kind, as the server sends it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use configurator_core::configurator::Configurator;
use configurator_core::content::ContentDigest;
use configurator_core::document::{Document, DocumentError};
use configurator_core::field_manager;
use configurator_core::queue::Observed;
use configurator_core::request::{ObjectRef, api_version};
use kube::Resource;
use kube::api::{ApiResource, ObjectMeta};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The annotation that, with the value `true`, cancels what a machine has under way.
const CANCELLED: &str = "cancelled";
/// The field that names an object.
const METADATA: &str = "metadata";

/// An object of any kind. At first only its name and version are read; of everything else what is declared, when it is observed.
#[derive(Debug, Clone)]
pub struct Watched {
    meta: ObjectMeta,
    /// The fields, as they came.
    fields: Vec<(String, Box<RawValue>)>,
    /// The metadata with the entries of `managedFields` that are a host's, once it was read.
    metadata: OnceLock<Value>,
}

/// Why an object cannot be handled. It is left alone; the watch goes on.
#[derive(Debug, thiserror::Error)]
pub enum WatchedError {
    /// The server sent an object without a name or uid.
    #[error("an object came without {0}")]
    Incomplete(&'static str),
    /// The object cannot be read.
    #[error("the object {key} cannot be read: {source}")]
    Unreadable {
        /// Names the object.
        key: ObjectRef,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The object is nested too deep.
    #[error("the object {key} cannot be shown to a handler: {source}")]
    Document {
        /// Names the object.
        key: ObjectRef,
        /// What is wrong.
        source: DocumentError,
    },
}

impl Watched {
    /// Names the object.
    #[must_use]
    pub fn key(&self) -> ObjectRef {
        ObjectRef {
            namespace: self.meta.namespace.clone().unwrap_or_default(),
            name: self.meta.name.clone().unwrap_or_default(),
        }
    }

    /// Its identity; empty when the server sent none.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    /// Its version; none if the server's versions are no numbers.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.meta.resource_version.as_deref()?.parse().ok()
    }

    /// The value of a label. `None`: it has none of this name.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Labelled {
            labels: HashMap<String, Value>,
        }
        let mut labelled: Labelled = serde_json::from_str(self.field(METADATA)?).ok()?;
        match labelled.labels.remove(name)? {
            Value::String(label) => Some(label),
            _ => None,
        }
    }

    /// Adds the type, which servers leave out of the items of lists.
    pub fn complete(&mut self, api_version: &str, kind: &str) {
        for (field, value) in [("apiVersion", api_version), ("kind", kind)] {
            let is_there = self.fields.iter().any(|(name, _)| name == field);
            if !is_there && let Ok(value) = to_raw_value(value) {
                self.fields.push((field.to_owned(), value));
            }
        }
    }

    /// Reads all of it but `managedFields`. A field that is not JSON is null.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let fields = self.fields.iter().map(|(name, text)| {
            let value = match name.as_str() {
                METADATA => read_metadata(text.get(), Managers::None),
                _ => serde_json::from_str(text.get()).unwrap_or_default(),
            };
            (name.clone(), value)
        });
        Value::Object(fields.collect())
    }

    /// Whether it carries this finalizer.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.metadata()
            .get("finalizers")
            .and_then(Value::as_array)
            .is_some_and(|finalizers| finalizers.iter().any(|found| found == finalizer))
    }

    /// Whether it is marked as cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_marked_cancelled(Some(self.metadata()))
    }

    fn metadata(&self) -> &Value {
        self.metadata.get_or_init(|| {
            let text = self.field(METADATA).unwrap_or("null");
            read_metadata(text, Managers::OfHosts)
        })
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter().rev();
        let found = fields.find(|(field, _)| field == name);
        found.map(|(_, text)| text.get())
    }

    /// What the queue wants to know of it.
    ///
    /// # Errors
    /// When it has no name or uid, or is nested too deep.
    pub fn observe(
        mut self,
        configurator: &Configurator,
        finalizer: &str,
    ) -> Result<Observed, WatchedError> {
        let key = self.key();
        if key.name.is_empty() {
            return Err(WatchedError::Incomplete("a name"));
        }
        let uid = self.uid().to_owned();
        if uid.is_empty() {
            return Err(WatchedError::Incomplete("a uid"));
        }
        let version = self.version();
        let deleting_since = self
            .metadata()
            .get("deletionTimestamp")
            .and_then(Value::as_str)
            .and_then(|at| at.parse().ok());
        // The set of an owner ends with its Configurator as if the owner were deleted.
        let deleting_since = deleting_since
            .or(configurator.ending().map(|ending| ending.since))
            .filter(|_| self.has_finalizer(finalizer));
        let is_cancelled = configurator.machine.is_some() && self.is_cancelled();
        let mut metadata = self.metadata.take().unwrap_or_default();
        let managed_fields = metadata
            .as_object_mut()
            .and_then(|metadata| metadata.remove("managedFields"));
        let watch = &configurator.watch;
        let mut fields = Map::new();
        // The items of a list of a built-in kind say neither, the events of a watch do: the content is the same.
        let api_version = api_version(&watch.group, &watch.version);
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), watch.kind.clone().into());
        let unreadable = |source| WatchedError::Unreadable {
            key: key.clone(),
            source,
        };
        if watch.fields.keeps_all() {
            fields.insert(METADATA.into(), metadata);
        } else if let Some(kept) = watch.fields.field(METADATA) {
            let metadata = kept.deserialize(metadata).map_err(unreadable)?;
            fields.insert(METADATA.into(), metadata);
        }
        for (name, text) in self.fields {
            if name != METADATA
                && let Some(kept) = watch.fields.field(&name)
            {
                let mut text = serde_json::Deserializer::from_str(text.get());
                let field = kept.deserialize(&mut text).map_err(unreadable)?;
                fields.insert(name, field);
            }
        }
        // The mark counts also where annotations are not among the declared fields.
        const MARK: &str = "";
        if is_cancelled {
            fields.insert(MARK.into(), true.into());
        }
        let mut object = Value::Object(fields);
        let content = ContentDigest::of(&object, managed_fields.as_ref(), &configurator.key);
        if let Value::Object(fields) = &mut object {
            fields.remove(MARK);
        }
        let object = Document::of(&object).map_err(|source| WatchedError::Document {
            key: key.clone(),
            source,
        })?;
        Ok(Observed {
            key,
            uid,
            version,
            content,
            object,
            deleting_since,
            appeared: None,
        })
    }
}

/// Whether an object with this metadata is marked as cancelled.
pub(crate) fn is_marked_cancelled(metadata: Option<&Value>) -> bool {
    let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
    let mark = annotations.and_then(|all| all.get(CANCELLED));
    mark.and_then(Value::as_str) == Some("true")
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

/// Reads an object. In an event, Kubernetes says the type before the object, so that the object is read where it stands.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Watched;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Watched, A::Error> {
        let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            fields.push((name, value));
        }
        let mut watched = Watched {
            meta: ObjectMeta::default(),
            fields,
            metadata: OnceLock::new(),
        };
        let name = watched.field(METADATA);
        let name = name.and_then(|text| serde_json::from_str(text).ok());
        let name: Name = name.unwrap_or_default();
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        watched.meta = ObjectMeta {
            name: text(name.name),
            namespace: text(name.namespace),
            uid: text(name.uid),
            resource_version: text(name.resource_version),
            ..ObjectMeta::default()
        };
        Ok(watched)
    }
}

/// The fields of metadata that say which object it is, and in which version.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Name {
    name: Option<Value>,
    namespace: Option<Value>,
    uid: Option<Value>,
    resource_version: Option<Value>,
}

/// Reads an object as JSON has it, without `managedFields`.
///
/// # Errors
/// When it is not JSON.
pub(crate) fn without_managed_fields(text: &str) -> Result<Value, serde_json::Error> {
    let mut text = serde_json::Deserializer::from_str(text);
    let fields = Fields {
        depth: Depth::Object,
        managers: Managers::None,
    };
    fields.deserialize(&mut text)
}

/// Reads metadata. What is not JSON is null.
fn read_metadata(text: &str, managers: Managers) -> Value {
    let mut text = serde_json::Deserializer::from_str(text);
    let fields = Fields {
        depth: Depth::Metadata,
        managers,
    };
    fields.deserialize(&mut text).unwrap_or_default()
}

/// Where in an object a map stands.
#[derive(Clone, Copy)]
enum Depth {
    Object,
    Metadata,
    /// An entry of managedFields.
    Manager,
}

/// The entries of `managedFields` that are kept.
#[derive(Clone, Copy)]
enum Managers {
    /// None. Then the field is left out.
    None,
    /// Those of hosts: nothing looks at the others, and they are often longer than the rest.
    OfHosts,
}

/// Reads a map of an object.
#[derive(Clone, Copy)]
struct Fields {
    depth: Depth,
    managers: Managers,
}

impl<'de> Visitor<'de> for Fields {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let mut is_foreign = false;
        while let Some(name) = map.next_key::<String>()? {
            let value = match (self.depth, name.as_str()) {
                _ if is_foreign => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Depth::Object, METADATA) => map.next_value_seed(Self {
                    depth: Depth::Metadata,
                    ..self
                })?,
                (Depth::Metadata, "managedFields") => match self.managers {
                    Managers::None => {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    Managers::OfHosts => map.next_value_seed(ManagedFields)?,
                },
                _ => map.next_value()?,
            };
            if matches!(self.depth, Depth::Manager) && name == "manager" {
                is_foreign = !value.as_str().is_some_and(field_manager::is_of_any);
            }
            fields.insert(name, value);
        }
        Ok(fields.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Reads `managedFields`, and keeps the entries of hosts.
struct ManagedFields;

impl<'de> Visitor<'de> for ManagedFields {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of managers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(entry) = entries.next_element_seed(Fields {
            depth: Depth::Manager,
            managers: Managers::OfHosts,
        })? {
            let manager = entry.get("manager").and_then(Value::as_str);
            if manager.is_some_and(field_manager::is_of_any) {
                kept.push(entry);
            }
        }
        Ok(kept.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

impl<'de> DeserializeSeed<'de> for ManagedFields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_the_managed_fields_only_those_of_hosts_are_kept() {
        let object = json!({
            "apiVersion": "v1",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": {"manager": "x"},
                "managedFields": [
                    {"manager": "kubectl", "fieldsV1": {"f:data": {}}},
                    {"fieldsV1": {"f:late": {}}, "manager": "ccfgr/pods"},
                    {"manager": "ccfgr/pods/status", "fieldsV1": {"f:status": {}}},
                    {"fieldsV1": {"f:nobody": {}}},
                ],
            },
            "managedFields": [{"manager": "a field of its own"}],
            "spec": {"metadata": {"managedFields": 1}},
        });
        let watched: Watched = serde_json::from_value(object.clone()).unwrap();
        let again: Watched = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(watched.metadata(), again.metadata());
        let mut expected = object.clone();
        let managers = expected["metadata"]["managedFields"]
            .as_array_mut()
            .unwrap();
        managers.retain(|entry| {
            entry["manager"]
                .as_str()
                .is_some_and(field_manager::is_of_any)
        });
        assert_eq!(managers.len(), 2);
        assert_eq!(*watched.metadata(), expected["metadata"]);
        let metadata = expected["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        assert_eq!(watched.to_value(), expected);
        assert_eq!(
            without_managed_fields(&object.to_string()).unwrap(),
            expected
        );
        assert_eq!(watched.key().to_string(), "shop/web");
        assert_eq!(watched.label("manager").as_deref(), Some("x"));
        for text in [
            r#"{"metadata": {"managedFields": null}}"#,
            r#"{"metadata": null}"#,
        ] {
            assert!(serde_json::from_str::<Watched>(text).is_ok(), "{text}");
        }
        assert!(serde_json::from_str::<Watched>("[1]").is_err());
    }
}
