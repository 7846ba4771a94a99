//! A member, as a watch shows it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use kube::Resource;
use kube::api::{ApiResource, ObjectMeta};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// An object of any kind. At first only its identity is read: most events are the echoes of what the host has written itself.
#[derive(Debug, Clone)]
pub(crate) struct WatchedMember {
    meta: ObjectMeta,
    /// The fields, as they came.
    fields: Vec<(String, Box<RawValue>)>,
}

/// The part of the metadata that says which object it is, and of which set.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

impl WatchedMember {
    /// Its version. `None`: the server's versions are no numbers.
    pub(super) fn version(&self) -> Option<u64> {
        self.meta.resource_version.as_deref()?.parse().ok()
    }

    /// Adds the type, which servers leave out of the items of lists.
    pub(super) fn complete(&mut self, api_version: &str, kind: &str) {
        for (field, value) in [("apiVersion", api_version), ("kind", kind)] {
            let is_there = self.fields.iter().any(|(name, _)| name == field);
            if !is_there && let Ok(value) = to_raw_value(value) {
                self.fields.push((field.to_owned(), value));
            }
        }
    }

    /// Reads all of it.
    pub(super) fn to_value(&self) -> Value {
        let fields = self.fields.iter().map(|(name, text)| {
            let value = serde_json::from_str(text.get()).unwrap_or_default();
            (name.clone(), value)
        });
        Value::Object(fields.collect::<Map<String, Value>>())
    }
}

impl<'de> Deserialize<'de> for WatchedMember {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

/// Reads an object. In an event, Kubernetes says the type before the object, so that the object is read where it stands.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = WatchedMember;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WatchedMember, A::Error> {
        let mut identity = Identity::default();
        let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some((name, text)) = map.next_entry::<String, Box<RawValue>>()? {
            if name == "metadata" {
                identity = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
            }
            fields.push((name, text));
        }
        let meta = ObjectMeta {
            name: identity.name,
            namespace: identity.namespace,
            resource_version: identity.resource_version,
            labels: identity.labels,
            ..ObjectMeta::default()
        };
        Ok(WatchedMember { meta, fields })
    }
}

impl Resource for WatchedMember {
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
