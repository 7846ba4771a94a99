//! A watched object of any kind, as the server sends it.

use std::borrow::Cow;

use configurator_core::configurator::Configurator;
use configurator_core::content::ContentDigest;
use configurator_core::document::{Document, DocumentError};
use configurator_core::queue::Observed;
use configurator_core::request::ObjectRef;
use kube::Resource;
use kube::api::{ApiResource, ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object of any kind. Only what a watch needs of its metadata is read; everything else stays as it came.
#[derive(Debug, Clone)]
pub struct Watched {
    meta: ObjectMeta,
    value: Value,
}

/// Why an object cannot be handled. It is left alone; the watch goes on.
#[derive(Debug, thiserror::Error)]
pub enum WatchedError {
    /// The server sent an object without a name or uid.
    #[error("an object came without {0}")]
    Incomplete(&'static str),
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

    /// Whether it carries this finalizer.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.value
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|finalizers| finalizers.iter().any(|found| found == finalizer))
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
        let deleting_since = self
            .value
            .pointer("/metadata/deletionTimestamp")
            .and_then(Value::as_str)
            .filter(|_| self.has_finalizer(finalizer))
            .and_then(|at| at.parse().ok());
        let managed_fields = self
            .value
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
            .and_then(|metadata| metadata.remove("managedFields"));
        configurator.watch.fields.apply(&mut self.value);
        let content = ContentDigest::of(&self.value, managed_fields.as_ref(), &configurator.name);
        let object = Document::of(&self.value).map_err(|source| WatchedError::Document {
            key: key.clone(),
            source,
        })?;
        let version = self
            .meta
            .resource_version
            .as_deref()
            .and_then(|version| version.parse().ok());
        Ok(Observed {
            key,
            uid,
            version,
            content,
            object,
            deleting_since,
        })
    }
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let field = |name: &str| {
            value
                .get("metadata")
                .and_then(|metadata| metadata.get(name))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let meta = ObjectMeta {
            name: field("name"),
            namespace: field("namespace"),
            uid: field("uid"),
            resource_version: field("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, value })
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
