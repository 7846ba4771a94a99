//! The Pod's ConfigMap.

use configurator_sdk::kubernetes::CONFIG_MAP;
use configurator_sdk::{HandlerError, Json, Operation};
use serde::Serialize;

use crate::layers::{Effective, Values};
use crate::names;
use crate::pod::Metadata;

/// Applies the ConfigMap `<pod>-config`: a key for each key of the effective configuration, owned by the Pod and so
/// deleted with it.
///
/// # Errors
/// Fatal, when the Pod's name leaves no room for the ending.
pub fn apply(pod: &Metadata<'_>, effective: &Effective<'_>) -> Result<Operation, HandlerError> {
    let name = names::config_map(pod)?;
    let owner = OwnerReference {
        api_version: "v1",
        kind: "Pod",
        name: &pod.name,
        uid: &pod.uid,
    };
    let body = Json::of(&ConfigMap {
        api_version: CONFIG_MAP.version,
        kind: CONFIG_MAP.kind,
        metadata: ConfigMapMetadata {
            namespace: &pod.namespace,
            name: &name,
            labels: Labels {
                managed_by: "configurator",
            },
            owner_references: [owner],
        },
        data: effective.values(),
    })?;
    Ok(CONFIG_MAP.apply((&*pod.namespace, name), body).into())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigMap<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: ConfigMapMetadata<'a>,
    data: Values<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigMapMetadata<'a> {
    namespace: &'a str,
    name: &'a str,
    labels: Labels<'a>,
    owner_references: [OwnerReference<'a>; 1],
}

#[derive(Serialize)]
struct Labels<'a> {
    #[serde(rename = "app.kubernetes.io/managed-by")]
    managed_by: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a str,
}
