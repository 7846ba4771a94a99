//! One resource of the API: its names, where it is stored, and which rules it follows.

use std::sync::{Arc, OnceLock};

use configurator_schema::Schema;
use configurator_schema::table::Table;
use serde_json::Value;

/// A resource in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Whether there is a `status` subresource.
    pub(crate) status: bool,
    /// The `scale` subresource, if there is one.
    pub(crate) scale: Option<ScalePaths>,
    /// `group/plural`: all versions are stored in the same place.
    pub(crate) storage: Arc<str>,
    /// The apiVersion that new objects are stored with.
    pub(crate) stored_api_version: String,
    pub(crate) rules: Rules,
    /// A question that is answered and not stored: it can only be created.
    pub(crate) review: bool,
    /// Fields that can be selected by, besides name and namespace.
    pub(crate) fields: Vec<SelectableField>,
    /// What a custom resource brings; a built-in one has none.
    pub(crate) custom: Option<Custom>,
    pub(crate) table: OnceLock<Arc<Table>>,
}

/// How one kind differs from others in what a write does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// `metadata.generation` is kept.
    pub(crate) generation: bool,
    /// A PUT of what does not exist creates it.
    pub(crate) create_on_update: bool,
    /// A PUT without a resourceVersion is allowed.
    pub(crate) unconditional_update: bool,
    /// A delete answers with the object.
    pub(crate) returns_deleted: bool,
    pub(crate) names: NameRule,
}

/// What a name may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    PathSegment,
}

/// Where the numbers of a `Scale` are.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    /// JSON pointers.
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

/// A field that objects can be selected by.
#[derive(Debug, Clone)]
pub(crate) struct SelectableField {
    /// As the client writes it: `spec.nodeName`.
    pub(crate) name: String,
    /// The JSON pointer to it.
    pub(crate) pointer: String,
    /// What an absent field counts as: empty, or the zero of its type.
    pub(crate) absent: &'static str,
}

/// What the definition of a custom resource says about one version.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) schema: Arc<Schema>,
    /// The document that the schema was made from.
    pub(crate) openapi: Arc<Value>,
    pub(crate) table: Arc<Table>,
    /// A warning for whoever uses a deprecated version.
    pub(crate) deprecation: Option<String>,
}

impl Resource {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `apps/v1`, or `/v1` in the core group.
    pub(crate) fn group_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// `Deployment.apps`, or `Pod` in the core group.
    pub(crate) fn kind_with_group(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// The schema of the kind. None only for a built-in kind that is not described.
    pub(crate) fn schema(&self) -> Option<Arc<Schema>> {
        match &self.custom {
            Some(custom) => Some(Arc::clone(&custom.schema)),
            None => configurator_schema::builtin(&self.group, &self.version, &self.kind),
        }
    }

    pub(crate) fn table(&self) -> Arc<Table> {
        let make = || match &self.custom {
            Some(custom) => Arc::clone(&custom.table),
            None => Arc::new(Table::builtin(&self.group, &self.version, &self.kind)),
        };
        Arc::clone(self.table.get_or_init(make))
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// The subresources that discovery lists.
    pub(crate) fn subresources(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.is("", "pods") {
            names.extend(["binding", "eviction"]);
        }
        if self.is("", "namespaces") {
            names.push("finalize");
        }
        if self.scale.is_some() {
            names.push("scale");
        }
        if self.status {
            names.push("status");
        }
        names
    }
}
