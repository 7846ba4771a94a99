//! Objects of kinds that are known only at run time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

pub use configurator_core::field::text;
use configurator_core::request::ObjectRef;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, Status};
use kube::discovery::{self, Scope};
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

/// How long a new kind may take until it is served.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// The wait before the server is asked again for a new kind.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Why an object could not be reached or written.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The API refused it. The message is the server's own, which names the object and the field.
    #[error("{}", said(.0))]
    Refused(Box<Status>),
    /// The API has no such kind.
    #[error("the API has no kind {kind} in {api_version}")]
    NoKind {
        /// As in `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The API could not be asked, or its answer not be read.
    #[error(transparent)]
    Client(kube::Error),
}

impl From<kube::Error> for ObjectError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error => Self::Client(error),
        }
    }
}

/// The objects of a kind: those of `namespace`, or of the client's own where it is empty; of a cluster-scoped kind, all.
///
/// # Errors
/// When the API has no such kind, or cannot be asked.
pub async fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: &str,
) -> Result<Api<DynamicObject>, ObjectError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities) = match discovery::pinned_kind(client, &kind).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => {
            return Err(ObjectError::NoKind {
                api_version: api_version.to_owned(),
                kind: kind.kind,
            });
        }
        Err(error) => return Err(error.into()),
    };
    Ok(match (capabilities.scope, namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, "") => Api::default_namespaced_with(client.clone(), &resource),
        (Scope::Namespaced, namespace) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    })
}

/// Whether the API has no such group, version or kind.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 404,
        kube::Error::Discovery(_) => true,
        _ => false,
    }
}

/// What an error says, with its causes; of an answer, what the server says.
pub(crate) fn explained(error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            return said(status);
        }
        let text = cause.to_string();
        // Some repeat what their causes say.
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        next = cause.source();
    }
    message
}

fn said(status: &Status) -> String {
    match status.code {
        401 => format!(
            "{}: the server does not know who asks; check the credentials of this host",
            status.message
        ),
        _ => status.message.clone(),
    }
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

/// Applies an object of any kind on the server. Of a CustomResourceDefinition, returns when its kind is served.
///
/// # Errors
/// When the API has no such kind, or refuses the object; when it does not serve a new kind after 10 s.
pub async fn apply(
    client: &Client,
    object: &Value,
    params: &PatchParams,
) -> Result<DynamicObject, ObjectError> {
    let namespace = text(object, "/metadata/namespace");
    let api = api(
        client,
        text(object, "/apiVersion"),
        text(object, "/kind"),
        namespace,
    )
    .await?;
    let name = text(object, "/metadata/name");
    let applied = api.patch(name, params, &Patch::Apply(object)).await?;
    if text(object, "/kind") == "CustomResourceDefinition" {
        served(client, object).await?;
    }
    Ok(applied)
}

/// Returns when every version of the definition is served: a server tells of new kinds a moment after it has accepted
/// them.
async fn served(client: &Client, definition: &Value) -> Result<(), ObjectError> {
    let group = text(definition, "/spec/group");
    let kind = text(definition, "/spec/names/kind");
    let versions = definition.pointer("/spec/versions");
    let versions = versions.and_then(Value::as_array).into_iter().flatten();
    for version in versions.filter(|version| version["served"] == true) {
        let kind = GroupVersionKind::gvk(group, text(version, "/name"), kind);
        let asking = async {
            loop {
                match discovery::pinned_kind(client, &kind).await {
                    Ok(_) => return Ok::<(), ObjectError>(()),
                    Err(error) if is_missing(&error) => tokio::time::sleep(ASK_AGAIN).await,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        match tokio::time::timeout(SERVED_WITHIN, asking).await {
            Ok(asked) => asked?,
            Err(_) => {
                return Err(ObjectError::NoKind {
                    api_version: kind.api_version(),
                    kind: kind.kind,
                });
            }
        }
    }
    Ok(())
}

/// The namespace and name of an object. One without a namespace has an empty one.
#[must_use]
pub fn key_of(object: &impl ResourceExt) -> ObjectRef {
    ObjectRef {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}

/// A hash of a value, or of there being none. It is another one in each release of the standard library, so it is not stored.
pub(crate) fn hash(value: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The identity and version of an object after a write. Nothing else of the answer is read.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Empty: the server sent none.
    pub(crate) uid: String,
    pub(crate) resource_version: Option<String>,
}

impl Written {
    /// Sends a request that writes one object.
    ///
    /// # Errors
    /// As of all requests of this client.
    pub(crate) async fn by(client: &Client, request: WriteRequest) -> Result<Self, kube::Error> {
        #[derive(Deserialize)]
        struct Object {
            #[serde(default)]
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            uid: String,
            resource_version: Option<String>,
        }
        let request = request.map_err(kube::Error::BuildRequest)?;
        let Object { metadata } = client.request(request).await?;
        Ok(Self {
            uid: metadata.uid,
            resource_version: metadata.resource_version,
        })
    }
}

/// A request that writes an object, as [`kube::core::Request`] makes it.
pub(crate) type WriteRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;
