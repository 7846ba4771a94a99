//! A Kubernetes request as it is sent: its URL, its method and its body.
//!
//! A handler names an object twice: in the fields of its request, from which the host makes the URL, and in the body. Servers
//! use the one or the other, depending on the verb. A [`KubernetesCall`] exists only if both agree. The host checks rules
//! against the call, and the sink sends nothing else.

mod body;
mod fields;
mod generated_name;
mod patch;
mod path;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::request::{
    KubernetesRequest, KubernetesVerb, PatchType, Precondition, PropagationPolicy,
};

/// Objects of one page of a list.
pub const PAGE_SIZE: usize = 500;

/// A Kubernetes request, ready to be sent.
///
/// # Guarantees
/// - Every part of the URL is one path segment, and the URL addresses the object, or for `list` the collection, that
///   [`request`](Self::request) names.
/// - `apiVersion`, `kind`, `metadata.name` and `metadata.namespace` of the body are those of the request, and no patch
///   changes them. The body of a subresource has its own `apiVersion` and `kind`, such as those of a `Scale`.
/// - A name that the host generated is the same for each attempt of one effect.
#[derive(Debug, Clone, PartialEq)]
pub struct KubernetesCall {
    request: KubernetesRequest,
    is_name_generated: bool,
    url: String,
    body: Option<Arc<str>>,
}

/// How a call is sent, beside its URL and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates.
    Post,
    /// Replaces.
    Put,
    /// Changes parts, or applies.
    Patch,
    /// Deletes.
    Delete,
}

impl Method {
    /// The name in HTTP.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl KubernetesCall {
    /// Prepares a request that this field manager sends. `effect` identifies what is to be done, and is the same for each
    /// attempt: names that the host generates are made of it.
    ///
    /// # Errors
    /// Why the request cannot be sent, naming the field: a part of the URL is not a path segment, or the body names
    /// another object.
    pub(crate) fn prepare(
        request: &KubernetesRequest,
        field_manager: &str,
        effect: &str,
    ) -> Result<Self, String> {
        let generated = generated_name::of(request, effect)?;
        let is_name_generated = generated.is_some();
        let mut request = request.clone();
        if let Some(name) = generated {
            request.name = name;
        }
        path::check(&request)?;
        let takes_precondition = match request.verb {
            KubernetesVerb::Get | KubernetesVerb::List | KubernetesVerb::Create => false,
            KubernetesVerb::Patch
            | KubernetesVerb::Delete
            | KubernetesVerb::Replace
            | KubernetesVerb::Apply => true,
        };
        if request.precondition.is_some() && !takes_precondition {
            return Err(format!("`{}` takes no `precondition`", request.verb.name()));
        }
        let body = match request.verb {
            KubernetesVerb::Get | KubernetesVerb::List => None,
            KubernetesVerb::Create | KubernetesVerb::Replace | KubernetesVerb::Apply => {
                Some(body::complete(&request)?)
            }
            KubernetesVerb::Patch => Some(patch::checked(&request)?),
            KubernetesVerb::Delete => Some(delete_options(&request)),
        };
        let url = url_of(&request, field_manager);
        Ok(Self {
            request,
            is_name_generated,
            url,
            body,
        })
    }

    /// The request, with its name where the host generated one. Its body is not what is sent: see [`body`](Self::body).
    #[must_use]
    pub fn request(&self) -> &KubernetesRequest {
        &self.request
    }

    /// Whether the name is made of `metadata.generateName`.
    #[must_use]
    pub fn is_name_generated(&self) -> bool {
        self.is_name_generated
    }

    /// How it is sent.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self.request.verb {
            KubernetesVerb::Get | KubernetesVerb::List => Method::Get,
            KubernetesVerb::Create => Method::Post,
            KubernetesVerb::Replace => Method::Put,
            KubernetesVerb::Patch | KubernetesVerb::Apply => Method::Patch,
            KubernetesVerb::Delete => Method::Delete,
        }
    }

    /// Path and query. Those of a `list` are of its first page.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Path and query of the page of a `list` that begins at this token of the server.
    #[must_use]
    pub fn page_url(&self, token: &str) -> String {
        let mut url = self.url.clone();
        path::append_query(&mut url, &[("continue", token)]);
        url
    }

    /// Path of the object, to read it.
    #[must_use]
    pub fn object_url(&self) -> String {
        path::object(&self.request)
    }

    /// Path at which the server says what resources its group and version have.
    #[must_use]
    pub fn discovery_url(&self) -> String {
        path::root(&self.request)
    }

    /// The media type of the body.
    #[must_use]
    pub const fn media_type(&self) -> &'static str {
        match (self.request.verb, self.request.patch_type) {
            (KubernetesVerb::Apply, _) => "application/apply-patch+yaml",
            (KubernetesVerb::Patch, PatchType::Merge) => "application/merge-patch+json",
            (KubernetesVerb::Patch, PatchType::Json) => "application/json-patch+json",
            (KubernetesVerb::Patch, PatchType::Strategic) => {
                "application/strategic-merge-patch+json"
            }
            (
                KubernetesVerb::Get
                | KubernetesVerb::List
                | KubernetesVerb::Create
                | KubernetesVerb::Replace
                | KubernetesVerb::Delete,
                _,
            ) => "application/json",
        }
    }

    /// The body; `None` for a request that reads.
    #[must_use]
    pub fn body(&self) -> Option<&str> {
        self.body.as_deref()
    }

    /// Whether the sink reads the object first, for its uid. A server compares the version of an `apply` only if the object exists, and
    /// otherwise creates it. A uid prevents that.
    #[must_use]
    pub fn reads_uid(&self) -> bool {
        self.request.verb == KubernetesVerb::Apply
            && self.request.subresource.is_none()
            && self
                .request
                .precondition
                .as_ref()
                .is_some_and(|precondition| {
                    precondition.resource_version.is_some() && precondition.uid.is_none()
                })
    }

    /// The same call, held to an object with this uid.
    ///
    /// # Errors
    /// When it is not a call with the body of a whole object.
    pub fn pinned(&self, uid: &str) -> Result<Self, String> {
        let mut request = self.request.clone();
        request
            .precondition
            .get_or_insert_with(Precondition::default)
            .uid = Some(uid.to_owned());
        let body = body::complete(&request)?;
        Ok(Self {
            request,
            is_name_generated: self.is_name_generated,
            url: self.url.clone(),
            body: Some(body),
        })
    }
}

/// What it is about, for people.
impl fmt::Display for KubernetesCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.request.verb.name(), self.request)
    }
}

fn url_of(request: &KubernetesRequest, manager: &str) -> String {
    let mut url = match (request.verb, &request.subresource) {
        (KubernetesVerb::List, _) | (KubernetesVerb::Create, None) => path::collection(request),
        _ => path::object(request),
    };
    let limit = PAGE_SIZE.to_string();
    let mut query: Vec<(&str, &str)> = Vec::new();
    match request.verb {
        KubernetesVerb::Get | KubernetesVerb::Delete => {}
        KubernetesVerb::List => {
            query.push(("limit", &limit));
            let selectors = [
                ("labelSelector", request.label_selector.as_deref()),
                ("fieldSelector", request.field_selector.as_deref()),
            ];
            query.extend(
                selectors
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        }
        KubernetesVerb::Create | KubernetesVerb::Replace | KubernetesVerb::Patch => {
            query.push(("fieldManager", manager));
        }
        KubernetesVerb::Apply => {
            query.push(("fieldManager", manager));
            if request.force {
                query.push(("force", "true"));
            }
        }
    }
    path::append_query(&mut url, &query);
    url
}

fn delete_options(request: &KubernetesRequest) -> Arc<str> {
    let policy = match request.propagation_policy {
        PropagationPolicy::Background => "Background",
        PropagationPolicy::Foreground => "Foreground",
        PropagationPolicy::Orphan => "Orphan",
    };
    let mut options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
    if let (Some(precondition), Some(options)) = (&request.precondition, options.as_object_mut()) {
        let fields = precondition_fields(precondition).map(|(name, value)| (name.into(), value));
        options.insert("preconditions".into(), Value::Object(fields.collect()));
    }
    options.to_string().into()
}

/// The fields of `metadata` that a precondition is about, with their values.
fn precondition_fields(
    precondition: &Precondition,
) -> impl Iterator<Item = (&'static str, Value)> + '_ {
    [
        ("uid", &precondition.uid),
        ("resourceVersion", &precondition.resource_version),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.as_deref()?.into())))
}

#[cfg(test)]
mod tests;
