//! Objects of kinds that are known only at run time.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::Value;

/// The objects of a kind: those of `namespace`, or of the client's own where it is empty; of a cluster-scoped kind, all.
///
/// # Errors
/// When the API has no such kind, or cannot be asked.
pub async fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: &str,
) -> kube::Result<Api<DynamicObject>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities) = discovery::pinned_kind(client, &kind).await?;
    Ok(match (capabilities.scope, namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, "") => Api::default_namespaced_with(client.clone(), &resource),
        (Scope::Namespaced, namespace) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    })
}

/// The objects of a resource whose scope is told by the namespace: empty means cluster-scoped, or all namespaces.
#[must_use]
pub fn of(client: Client, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
    if namespace.is_empty() {
        Api::all_with(client, resource)
    } else {
        Api::namespaced_with(client, namespace, resource)
    }
}

/// Applies an object of any kind on the server.
///
/// # Errors
/// When the API has no such kind, or refuses the object.
pub async fn apply(
    client: &Client,
    object: &Value,
    params: &PatchParams,
) -> kube::Result<DynamicObject> {
    let namespace = text(object, "/metadata/namespace");
    let api = api(
        client,
        text(object, "/apiVersion"),
        text(object, "/kind"),
        namespace,
    )
    .await?;
    api.patch(
        text(object, "/metadata/name"),
        params,
        &Patch::Apply(object),
    )
    .await
}

/// The text at this pointer (RFC 6901); empty where there is none.
#[must_use]
pub fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
