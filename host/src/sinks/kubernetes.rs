//! The Kubernetes API as a sink.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::backoff::DEFAULT_MAX_RETRY_AFTER;
use configurator_core::configurator::field_manager;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::{
    KubernetesRequest, KubernetesVerb, Operation, PatchType, Precondition, PropagationPolicy,
    SinkName, api_version,
};
use configurator_core::result::Answer;
use http::response::Parts;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::throttle::Throttle;
use super::{Scope, Sink, misrouted};
use crate::cluster::{Cluster, Requests};
use crate::objects;

/// How long one attempt may take when the request does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Objects of one page of a list.
pub const PAGE_SIZE: usize = 500;
/// The most bytes of one answer; of a list, of all its pages.
pub const MAX_ANSWER: usize = 64 << 20;
/// Objects whose last version is remembered, to tell a write that changed something from one that did not.
const REMEMBERED_VERSIONS: usize = 65_536;

/// Executes requests at a Kubernetes API.
pub struct KubernetesSink {
    requests: Requests,
    throttle: Throttle,
    versions: Mutex<HashMap<u64, u64>>,
}

impl KubernetesSink {
    /// A sink for this API.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            requests: cluster.requests.clone(),
            throttle: Throttle::new(DEFAULT_MAX_RETRY_AFTER),
            versions: Mutex::default(),
        }
    }

    /// The longest time for which the server is left alone when it asks for it. Default: 1 h.
    #[must_use]
    pub fn max_retry_after(mut self, max_retry_after: Duration) -> Self {
        self.throttle = Throttle::new(max_retry_after);
        self
    }

    async fn run(&self, request: &KubernetesRequest, scope: &Scope) -> Result<Answer, Fault> {
        match request.verb {
            KubernetesVerb::Get => self.get(request).await,
            KubernetesVerb::List => self.list(request).await,
            KubernetesVerb::Create => self.create(request, scope).await,
            KubernetesVerb::Delete => self.delete(request).await,
            KubernetesVerb::Patch | KubernetesVerb::Replace | KubernetesVerb::Apply => {
                self.change(request, scope).await
            }
        }
    }

    async fn get(&self, request: &KubernetesRequest) -> Result<Answer, Fault> {
        let answer = self
            .send(request, Method::GET, object_path(request), None)
            .await?;
        Ok(Answer {
            query_objects: vec![document(answer.body)?],
            ..Answer::default()
        })
    }

    async fn list(&self, request: &KubernetesRequest) -> Result<Answer, Fault> {
        let mut objects = Vec::new();
        let mut token: Option<String> = None;
        let mut size = 0;
        let mut restarted = false;
        loop {
            let mut path = collection_path(request);
            let limit = PAGE_SIZE.to_string();
            let mut query = vec![("limit", limit.as_str())];
            query.extend(
                request
                    .label_selector
                    .as_deref()
                    .map(|selector| ("labelSelector", selector)),
            );
            query.extend(
                request
                    .field_selector
                    .as_deref()
                    .map(|selector| ("fieldSelector", selector)),
            );
            query.extend(token.as_deref().map(|token| ("continue", token)));
            append_query(&mut path, &query);
            let page = match self.send(request, Method::GET, path, None).await {
                // The list grew too old while it was read: once more from the start.
                Err(fault) if fault.status == Some(410) && token.is_some() && !restarted => {
                    restarted = true;
                    token = None;
                    objects.clear();
                    size = 0;
                    continue;
                }
                page => page?,
            };
            size += page.body.len();
            if size > MAX_ANSWER {
                return Err(generic(format!(
                    "the list of {} has more than {MAX_ANSWER} bytes; use a selector",
                    request.plural
                )));
            }
            let page: Page<'_> = serde_json::from_str(&page.body).map_err(|error| {
                generic(format!(
                    "the list of {} cannot be read: {error}",
                    request.plural
                ))
            })?;
            for item in page.items {
                objects.push(document(with_type(item, request))?);
            }
            token = page
                .metadata
                .and_then(|metadata| metadata.token)
                .filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(Answer {
                    query_objects: objects,
                    ..Answer::default()
                });
            }
        }
    }

    async fn create(&self, request: &KubernetesRequest, scope: &Scope) -> Result<Answer, Fault> {
        let is_kept = request.precheck_exist && request.subresource.is_none();
        if is_kept {
            match self.get(request).await {
                Err(fault) if fault.kind == FaultKind::ResourceNotFound => {}
                existing => return existing,
            }
        }
        let mut path = match request.subresource {
            None => collection_path(request),
            Some(_) => object_path(request),
        };
        append_query(
            &mut path,
            &[("fieldManager", &field_manager(&scope.configurator))],
        );
        let body = complete_body(request)?;
        match self
            .send(
                request,
                Method::POST,
                path,
                Some(("application/json", body)),
            )
            .await
        {
            Ok(answer) => self.written(request, answer),
            Err(fault) if fault.kind == FaultKind::ResourceConflict && is_kept => {
                self.get(request).await
            }
            Err(fault) => Err(fault),
        }
    }

    async fn change(&self, request: &KubernetesRequest, scope: &Scope) -> Result<Answer, Fault> {
        let pinned = self.pinned(request).await?;
        let request = pinned.as_ref().unwrap_or(request);
        let manager = field_manager(&scope.configurator);
        let mut path = object_path(request);
        let mut query = vec![("fieldManager", manager.as_str())];
        if request.verb == KubernetesVerb::Apply && request.force {
            query.push(("force", "true"));
        }
        append_query(&mut path, &query);
        let (method, media) = match (request.verb, request.patch_type) {
            (KubernetesVerb::Replace, _) => (Method::PUT, "application/json"),
            (KubernetesVerb::Apply, _) => (Method::PATCH, "application/apply-patch+yaml"),
            (_, PatchType::Merge) => (Method::PATCH, "application/merge-patch+json"),
            (_, PatchType::Json) => (Method::PATCH, "application/json-patch+json"),
            (_, PatchType::Strategic) => (Method::PATCH, "application/strategic-merge-patch+json"),
        };
        let body = match request.verb {
            KubernetesVerb::Patch => patch_body(request)?,
            _ => complete_body(request)?,
        };
        let answer = self
            .send(request, method, path, Some((media, body)))
            .await?;
        self.written(request, answer)
    }

    /// An apply at a version makes an object that is absent, since a server compares versions only with what is there.
    /// So the object is read, and the apply is held to its uid as well, which nothing that is made has.
    async fn pinned(
        &self,
        request: &KubernetesRequest,
    ) -> Result<Option<KubernetesRequest>, Fault> {
        let is_open = request.precondition.as_ref().is_some_and(|precondition| {
            precondition.resource_version.is_some() && precondition.uid.is_none()
        });
        if request.verb != KubernetesVerb::Apply || request.subresource.is_some() || !is_open {
            return Ok(None);
        }
        let found = self.get(request).await.map_err(|fault| match fault.kind {
            FaultKind::ResourceNotFound => Fault::new(
                FaultKind::ResourceConflict,
                format!("apply {request}: the object does not exist any more"),
            ),
            _ => fault,
        })?;
        let object = found.query_objects.first().map(Document::to_value);
        let uid = object.as_ref().and_then(|object| {
            let uid = object.pointer("/metadata/uid")?;
            uid.as_str().map(str::to_owned)
        });
        let mut pinned = request.clone();
        if let Some(precondition) = &mut pinned.precondition {
            precondition.uid = uid;
        }
        Ok(Some(pinned))
    }

    async fn delete(&self, request: &KubernetesRequest) -> Result<Answer, Fault> {
        let policy = match request.propagation_policy {
            PropagationPolicy::Background => "Background",
            PropagationPolicy::Foreground => "Foreground",
            PropagationPolicy::Orphan => "Orphan",
        };
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let (Some(precondition), Some(options)) =
            (&request.precondition, options.as_object_mut())
        {
            options.insert("preconditions".into(), precondition_value(precondition));
        }
        let body = Some(("application/json", options.to_string()));
        match self
            .send(request, Method::DELETE, object_path(request), body)
            .await
        {
            Ok(answer) => Ok(Answer {
                query_objects: vec![document(answer.body)?],
                changed: true,
                ..Answer::default()
            }),
            Err(fault) if fault.kind == FaultKind::ResourceNotFound => Ok(Answer::default()),
            Err(fault) => Err(fault),
        }
    }

    fn written(&self, request: &KubernetesRequest, answer: Received) -> Result<Answer, Fault> {
        let changed = self.is_new_version(request, &answer.body);
        Ok(Answer {
            query_objects: vec![document(answer.body)?],
            changed,
            ..Answer::default()
        })
    }

    /// Whether this object's version differs from the one of the last answer; true when that is not remembered.
    fn is_new_version(&self, request: &KubernetesRequest, body: &str) -> bool {
        let Some(version) = version_of(body) else {
            return true;
        };
        let mut hasher = DefaultHasher::new();
        request.object_key().hash(&mut hasher);
        let key = hasher.finish();
        let Ok(mut versions) = self.versions.lock() else {
            return true;
        };
        if versions.len() >= REMEMBERED_VERSIONS {
            versions.clear();
        }
        versions.insert(key, version) != Some(version)
    }

    async fn send(
        &self,
        request: &KubernetesRequest,
        method: Method,
        path: String,
        body: Option<(&'static str, String)>,
    ) -> Result<Received, Fault> {
        let what = format!("{} {request}", request.verb.name());
        let mut builder = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json");
        let bytes = match body {
            Some((media, bytes)) => {
                builder = builder.header(header::CONTENT_TYPE, media);
                bytes
            }
            None => String::new(),
        };
        let outgoing = builder
            .body(Body::from(bytes.into_bytes()))
            .map_err(|error| generic(format!("{what}: {error}")))?;
        let (parts, body) = self.exchange(&what, outgoing).await?;
        if parts.status.is_success() {
            return Ok(Received { body });
        }
        let told = serde_json::from_str::<Told>(&body).unwrap_or_default();
        let is_mismatch = is_mismatch(request, parts.status, &told);
        let fault = classify(
            &what,
            request.verb.is_mutating(),
            parts.status,
            &parts.headers,
            &told,
        );
        Err(match is_mismatch {
            true => Fault {
                kind: FaultKind::ResourceConflict,
                ..fault
            },
            false => fault,
        })
    }

    /// Sends what is not held back, and reads the answer. `what` names it.
    async fn exchange(
        &self,
        what: &str,
        outgoing: Request<Body>,
    ) -> Result<(Parts, String), Fault> {
        if let Some((left, why)) = self.throttle.left() {
            let fault = Fault::new(
                FaultKind::ApiServerUnavailable,
                format!("{what}: not sent, because the server has asked to be left alone: {why}"),
            );
            return Err(fault.with_retry_after(Some(left)));
        }
        let response = self
            .requests
            .send(outgoing)
            .await
            .map_err(|error| classify_error(what, &error))?;
        let (parts, body) = response.into_parts();
        let bytes = Limited::new(body, MAX_ANSWER)
            .collect()
            .await
            .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => generic(format!(
                    "{what}: the answer has more than {MAX_ANSWER} bytes"
                )),
                None => Fault::new(
                    FaultKind::ApiServerUnavailable,
                    format!("{what}: the answer broke off: {error}"),
                ),
            })?
            .to_bytes();
        let body = String::from_utf8(bytes.into())
            .map_err(|_| generic(format!("{what}: the answer is not UTF-8")))?;
        Ok((parts, body))
    }

    async fn ask_version(&self) -> Result<(), Fault> {
        const WHAT: &str = "get /version";
        let outgoing = Request::get("/version")
            .body(Body::empty())
            .map_err(|error| generic(format!("{WHAT}: {error}")))?;
        let (parts, body) = self.exchange(WHAT, outgoing).await?;
        if parts.status.is_success() {
            return Ok(());
        }
        let told = serde_json::from_str::<Told>(&body).unwrap_or_default();
        let fault = classify(WHAT, false, parts.status, &parts.headers, &told);
        // What one request is told is about that request; what the probe is told is about the server.
        let status = parts.status;
        self.throttle
            .note(status.as_u16(), fault.retry_after, || told.said(status));
        Err(fault)
    }
}

#[async_trait]
impl Sink for KubernetesSink {
    async fn execute(&self, operation: &Operation, scope: &Scope) -> Result<Answer, Fault> {
        let Operation::Kubernetes(request) = operation else {
            return Err(misrouted(operation, SinkName::Kubernetes));
        };
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        tokio::time::timeout(timeout, self.run(request, scope))
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::ApiServerUnavailable,
                    format!(
                        "{} {request}: no answer within {timeout:?}",
                        request.verb.name()
                    ),
                ))
            })
    }

    async fn probe(&self) -> Result<(), Fault> {
        tokio::time::timeout(PROBE_TIMEOUT, self.ask_version())
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::ApiServerUnavailable,
                    "get /version: no answer",
                ))
            })
    }
}

struct Received {
    body: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: Option<PageMetadata>,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    token: Option<String>,
}

/// What a server says in a `Status`.
#[derive(Debug, Default, Deserialize)]
struct Told {
    #[serde(default)]
    message: String,
    #[serde(default)]
    reason: String,
    details: Option<ToldDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldDetails {
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    causes: Vec<ToldCause>,
}

#[derive(Debug, Default, Deserialize)]
struct ToldCause {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    field: String,
}

impl Told {
    fn of(status: &kube::core::Status) -> Self {
        Self {
            message: status.message.clone(),
            reason: status.reason.clone(),
            details: status.details.as_ref().map(|details| ToldDetails {
                retry_after_seconds: (details.retry_after_seconds > 0)
                    .then(|| details.retry_after_seconds.into()),
                causes: details
                    .causes
                    .iter()
                    .map(|cause| ToldCause {
                        reason: cause.reason.clone(),
                        field: cause.field.clone(),
                    })
                    .collect(),
            }),
        }
    }

    /// What to tell a person of it.
    fn said(&self, status: StatusCode) -> String {
        let mut said = if self.message.is_empty() {
            status.to_string()
        } else {
            self.message.clone()
        };
        if !self.reason.is_empty() {
            said = format!("{said} ({})", self.reason);
        }
        said
    }
}

/// Whether a 422 says that a precondition does not hold. The failed test of a JSON Patch is an error in the request,
/// and none of a field; to other changes, a uid is a field that may not change.
fn is_mismatch(request: &KubernetesRequest, status: StatusCode, told: &Told) -> bool {
    let Some(precondition) = &request.precondition else {
        return false;
    };
    let mut fields = told
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .map(|cause| cause.field.as_str())
        .filter(|field| !field.is_empty())
        .peekable();
    let is_tested = (request.verb, request.patch_type) == (KubernetesVerb::Patch, PatchType::Json);
    status == StatusCode::UNPROCESSABLE_ENTITY
        && match fields.peek() {
            None => is_tested,
            Some(_) => precondition.uid.is_some() && fields.any(|field| field == "metadata.uid"),
        }
}

/// What the server of an etcd says, or how that cannot be reached, as a Kubernetes API passes it on: in a 500 without a
/// reason, as it answers an apply with fields of the wrong type.
const OF_STORAGE: [&str; 3] = ["etcdserver: ", "rpc error: ", "context deadline exceeded"];

/// Whether a 500 says that the server could not do it at the moment, and nothing of the request.
fn is_overload(told: &Told) -> bool {
    let is_patience = told.details.as_ref().is_some_and(|details| {
        details
            .retry_after_seconds
            .is_some_and(|seconds| seconds > 0)
    });
    is_patience
        || matches!(
            &*told.reason,
            "ServerTimeout" | "Timeout" | "TooManyRequests"
        )
        || (told.reason.is_empty()
            && OF_STORAGE
                .iter()
                .any(|beginning| told.message.starts_with(beginning)))
}

/// The kind of fault of an answer: of its HTTP status, and where that is not enough of its reason.
///
/// A server that does not know who asks (401) refuses the host as a whole: no change of an object mends that, and a
/// credential may be replaced at any time. So it is away, as one that cannot be reached.
fn kind_of(status: StatusCode, told: &Told, mutating: bool) -> FaultKind {
    let is_terminating = told.details.as_ref().is_some_and(|details| {
        details
            .causes
            .iter()
            .any(|cause| cause.reason == "NamespaceTerminating")
    });
    let refused = if mutating {
        FaultKind::ResourceMutation
    } else {
        FaultKind::ResourceGeneric
    };
    match status.as_u16() {
        403 if mutating && is_terminating => FaultKind::ResourceMutation,
        401 => FaultKind::ApiServerUnavailable,
        403 => FaultKind::ResourcePermission,
        404 => FaultKind::ResourceNotFound,
        405 | 406 | 415 => FaultKind::UnsupportedResourceOperation,
        409 => FaultKind::ResourceConflict,
        408 | 429 | 502 | 503 | 504 => FaultKind::ApiServerUnavailable,
        500 if mutating && !is_overload(told) => FaultKind::ResourceMutation,
        500 => FaultKind::ApiServerUnavailable,
        400..=499 => refused,
        _ => FaultKind::ResourceGeneric,
    }
}

fn classify(
    what: &str,
    mutating: bool,
    status: StatusCode,
    headers: &HeaderMap,
    told: &Told,
) -> Fault {
    let kind = kind_of(status, told, mutating);
    let retry_after = headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .or_else(|| {
            told.details
                .as_ref()
                .and_then(|details| details.retry_after_seconds)
        })
        .map(Duration::from_secs);
    Fault::new(kind, format!("{what}: {}", told.said(status)))
        .with_status(status.as_u16())
        .with_retry_after(retry_after)
}

/// The kind of fault when there was no answer.
fn classify_error(what: &str, error: &kube::Error) -> Fault {
    let kind = match error {
        kube::Error::Api(_)
        | kube::Error::HyperError(_)
        | kube::Error::Service(_)
        | kube::Error::ReadEvents(_) => FaultKind::ApiServerUnavailable,
        kube::Error::Auth(_) => FaultKind::ResourcePermission,
        _ => FaultKind::ResourceGeneric,
    };
    Fault::new(kind, format!("{what}: {}", objects::explained(error)))
}

/// The fault of an error of the client, for what the host itself asks of the API: classified as requests are.
pub(crate) fn fault_of(what: &str, mutating: bool, error: &kube::Error) -> Fault {
    let kube::Error::Api(status) = error else {
        return classify_error(what, error);
    };
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    classify(what, mutating, code, &HeaderMap::new(), &Told::of(status))
}

/// Whether a change was refused because the object whose uid was sent has gone: another has its name now, or none. Servers
/// compare it before they store, and then it does not match (409), or while they validate, and then it may not be
/// changed (422).
#[must_use]
pub fn is_of_another(status: &kube::core::Status) -> bool {
    match status.code {
        409 => ["UID in precondition", "uid mismatch"]
            .iter()
            .any(|words| status.message.contains(words)),
        422 => status
            .details
            .iter()
            .flat_map(|details| &details.causes)
            .any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

fn document(text: String) -> Result<Document, Fault> {
    Document::parse(text).map_err(|error| generic(format!("the server's answer is {error}")))
}

fn collection_path(request: &KubernetesRequest) -> String {
    let root = if request.group.is_empty() {
        format!("/api/{}", request.version)
    } else {
        format!("/apis/{}/{}", request.group, request.version)
    };
    let namespace = if request.namespace.is_empty() {
        String::new()
    } else {
        format!("/namespaces/{}", encoded(&request.namespace))
    };
    format!("{root}{namespace}/{}", request.plural)
}

fn object_path(request: &KubernetesRequest) -> String {
    let subresource = request
        .subresource
        .as_ref()
        .map(|subresource| format!("/{subresource}"))
        .unwrap_or_default();
    format!(
        "{}/{}{subresource}",
        collection_path(request),
        encoded(&request.name)
    )
}

fn encoded(text: &str) -> String {
    const SEGMENT: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(text, SEGMENT).to_string()
}

fn append_query(path: &mut String, query: &[(&str, &str)]) {
    for (name, value) in query {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(name);
        path.push('=');
        path.push_str(&encoded(value));
    }
}

/// Items of a list come without their type; an object of its own has it.
fn with_type(item: &RawValue, request: &KubernetesRequest) -> String {
    #[derive(Deserialize)]
    struct Typed {
        kind: Option<serde::de::IgnoredAny>,
    }
    let text = item.get();
    let is_typed = serde_json::from_str::<Typed>(text).is_ok_and(|typed| typed.kind.is_some());
    match text.strip_prefix('{') {
        Some(rest) if !is_typed && !request.kind.is_empty() => {
            let separator = if rest.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            let api_version = Value::from(api_version(&request.group, &request.version));
            let kind = Value::from(request.kind.as_str());
            format!("{{\"apiVersion\":{api_version},\"kind\":{kind}{separator}{rest}")
        }
        _ => text.to_owned(),
    }
}

fn version_of(body: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        resource_version: &'a str,
    }
    serde_json::from_str::<Object<'_>>(body)
        .ok()?
        .metadata
        .resource_version
        .parse()
        .ok()
}

fn body_of(request: &KubernetesRequest) -> Result<Value, Fault> {
    let body = request.body.as_ref().ok_or_else(|| {
        generic(format!(
            "`{}` of {request} needs a body",
            request.verb.name()
        ))
    })?;
    Ok(body.to_value())
}

/// The body of a whole object: what the request says of its type and name is filled in where the body is silent.
fn complete_body(request: &KubernetesRequest) -> Result<String, Fault> {
    if let Some(body) = &request.body
        && says_it_all(body, request)
    {
        return Ok(body.as_str().to_owned());
    }
    let mut body = body_of(request)?;
    let Some(object) = body.as_object_mut() else {
        return Err(generic(format!("the body of {request} must be an object")));
    };
    if request.subresource.is_none() {
        object
            .entry("apiVersion")
            .or_insert_with(|| api_version(&request.group, &request.version).into());
        if !request.kind.is_empty() {
            object
                .entry("kind")
                .or_insert_with(|| request.kind.as_str().into());
        }
    }
    let metadata = metadata_of(object, request)?;
    metadata
        .entry("name")
        .or_insert_with(|| request.name.as_str().into());
    if !request.namespace.is_empty() {
        metadata
            .entry("namespace")
            .or_insert_with(|| request.namespace.as_str().into());
    }
    if let Some(precondition) = &request.precondition {
        if let Some(uid) = &precondition.uid {
            metadata.insert("uid".into(), uid.as_str().into());
        }
        if let Some(version) = &precondition.resource_version {
            metadata.insert("resourceVersion".into(), version.as_str().into());
        }
    }
    Ok(body.to_string())
}

/// Whether nothing is to be filled in, so that the body can go as it came.
fn says_it_all(body: &Document, request: &KubernetesRequest) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said<'a> {
        api_version: Option<IgnoredAny>,
        kind: Option<IgnoredAny>,
        #[serde(borrow)]
        metadata: BTreeMap<&'a str, IgnoredAny>,
    }
    let Ok(said) = serde_json::from_str::<Said<'_>>(body.as_str()) else {
        return false;
    };
    let has_type = said.api_version.is_some() && (said.kind.is_some() || request.kind.is_empty());
    request.precondition.is_none()
        && (has_type || request.subresource.is_some())
        && said.metadata.contains_key("name")
        && (said.metadata.contains_key("namespace") || request.namespace.is_empty())
}

/// The metadata of a body, empty where it has none. What is no object has no place for a precondition.
fn metadata_of<'a>(
    object: &'a mut Map<String, Value>,
    request: &KubernetesRequest,
) -> Result<&'a mut Map<String, Value>, Fault> {
    let metadata = object.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = json!({});
    }
    metadata.as_object_mut().ok_or_else(|| {
        generic(format!(
            "the `metadata` in the body of {request} must be an object"
        ))
    })
}

/// The body of a patch, with the preconditions in the form that its type has for them.
fn patch_body(request: &KubernetesRequest) -> Result<String, Fault> {
    let Some(precondition) = &request.precondition else {
        return Ok(body_of(request)?.to_string());
    };
    let mut body = body_of(request)?;
    let wanted = [
        ("uid", precondition.uid.as_deref()),
        ("resourceVersion", precondition.resource_version.as_deref()),
    ];
    match (&mut body, request.patch_type) {
        (Value::Array(operations), PatchType::Json) => {
            for (field, value) in wanted.into_iter().rev() {
                if let Some(value) = value {
                    let test =
                        json!({"op": "test", "path": format!("/metadata/{field}"), "value": value});
                    operations.insert(0, test);
                }
            }
        }
        (Value::Object(object), PatchType::Merge | PatchType::Strategic) => {
            let metadata = metadata_of(object, request)?;
            for (field, value) in wanted {
                if let Some(value) = value {
                    metadata.insert(field.into(), value.into());
                }
            }
        }
        _ => {
            return Err(generic(format!(
                "the body of a patch of {request} does not have the form of its patch type"
            )));
        }
    }
    Ok(body.to_string())
}

fn precondition_value(precondition: &Precondition) -> Value {
    let mut value = json!({});
    if let Some(object) = value.as_object_mut() {
        if let Some(uid) = &precondition.uid {
            object.insert("uid".into(), uid.as_str().into());
        }
        if let Some(version) = &precondition.resource_version {
            object.insert("resourceVersion".into(), version.as_str().into());
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn every_status_has_a_kind() {
        let table: String = [
            400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 418, 422, 429, 500, 502, 503, 504,
            507,
        ]
        .into_iter()
        .map(|code| {
            let status = StatusCode::from_u16(code).unwrap();
            let read = kind_of(status, &Told::default(), false);
            let write = kind_of(status, &Told::default(), true);
            format!("{code}: {read} / {write}\n")
        })
        .collect();
        expect![[r#"
            400: ResourceGeneric / ResourceMutation
            401: ApiServerUnavailable / ApiServerUnavailable
            403: ResourcePermission / ResourcePermission
            404: ResourceNotFound / ResourceNotFound
            405: UnsupportedResourceOperation / UnsupportedResourceOperation
            408: ApiServerUnavailable / ApiServerUnavailable
            409: ResourceConflict / ResourceConflict
            410: ResourceGeneric / ResourceMutation
            413: ResourceGeneric / ResourceMutation
            415: UnsupportedResourceOperation / UnsupportedResourceOperation
            418: ResourceGeneric / ResourceMutation
            422: ResourceGeneric / ResourceMutation
            429: ApiServerUnavailable / ApiServerUnavailable
            500: ApiServerUnavailable / ResourceMutation
            502: ApiServerUnavailable / ApiServerUnavailable
            503: ApiServerUnavailable / ApiServerUnavailable
            504: ApiServerUnavailable / ApiServerUnavailable
            507: ResourceGeneric / ResourceGeneric
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_500_of_a_server_that_cannot_at_the_moment_is_none_of_the_request() {
        let table: String = [
            r#"{"message": "failed to create typed patch object: .data.a: expected string, got &value.valueUnstructured{Value:1}"}"#,
            r#"{"message": "failed calling webhook", "reason": "InternalError"}"#,
            r#"{"message": "etcdserver: request timed out"}"#,
            r#"{"message": "rpc error: code = Unavailable desc = transport is closing"}"#,
            r#"{"message": "try again", "reason": "ServerTimeout"}"#,
            r#"{"message": "try again", "reason": "InternalError", "details": {"retryAfterSeconds": 1}}"#,
        ]
        .into_iter()
        .map(|text| {
            let told = serde_json::from_str(text).unwrap();
            let kind = kind_of(StatusCode::INTERNAL_SERVER_ERROR, &told, true);
            format!("{kind}: {} ({})\n", told.message, told.reason)
        })
        .collect();
        expect![[r#"
            ResourceMutation: failed to create typed patch object: .data.a: expected string, got &value.valueUnstructured{Value:1} ()
            ResourceMutation: failed calling webhook (InternalError)
            ApiServerUnavailable: etcdserver: request timed out ()
            ApiServerUnavailable: rpc error: code = Unavailable desc = transport is closing ()
            ApiServerUnavailable: try again (ServerTimeout)
            ApiServerUnavailable: try again (InternalError)
        "#]].assert_eq(&table);
    }

    #[test]
    fn the_wait_that_a_server_asks_for_is_kept() {
        let told: Told =
            serde_json::from_str(r#"{"message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#)
                .unwrap();
        let fault = classify(
            "get pods a",
            false,
            StatusCode::TOO_MANY_REQUESTS,
            &HeaderMap::new(),
            &told,
        );
        assert_eq!(fault.retry_after, Some(Duration::from_secs(7)));
        expect!["ApiServerUnavailable: get pods a: slow down (TooManyRequests)"]
            .assert_eq(&fault.to_string());
    }

    #[test]
    fn a_body_is_completed_and_preconditions_are_added() {
        let mut request =
            KubernetesRequest::new(KubernetesVerb::Apply, "apps", "v1", "deployments");
        request.kind = "Deployment".into();
        request.namespace = "shop".into();
        request.name = "web".into();
        request.body = Some(Document::parse(r#"{"spec":{"replicas":2}}"#).unwrap());
        request.precondition = Some(Precondition {
            uid: Some("u".into()),
            resource_version: Some("7".into()),
        });
        expect![[r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","uid":"u"},"spec":{"replicas":2}}"#]]
            .assert_eq(&complete_body(&request).unwrap());
        request.patch_type = PatchType::Json;
        request.body = Some(Document::parse(r#"[{"op":"remove","path":"/spec/x"}]"#).unwrap());
        expect![[r#"[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/spec/x"}]"#]]
            .assert_eq(&patch_body(&request).unwrap());
        request.patch_type = PatchType::Merge;
        assert!(patch_body(&request).is_err());
    }

    #[test]
    fn a_body_that_says_everything_goes_as_it_came() {
        let mut request = KubernetesRequest::new(KubernetesVerb::Apply, "", "v1", "pods");
        request.kind = "Pod".into();
        request.namespace = "shop".into();
        request.name = "web".into();
        let mut check = |body: &str, expected: Expect| {
            request.body = Some(Document::parse(body).unwrap());
            let completed = complete_body(&request).unwrap_or_else(|fault| fault.to_string());
            expected.assert_eq(&completed);
        };
        check(
            r#"{"metadata": {"namespace": "shop", "name": "web"}, "kind": "Pod", "apiVersion": "v1"}"#,
            expect![[
                r#"{"metadata": {"namespace": "shop", "name": "web"}, "kind": "Pod", "apiVersion": "v1"}"#
            ]],
        );
        check(
            r#"{"metadata": {"name": "web"}, "kind": "Pod", "apiVersion": "v1"}"#,
            expect![[
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}}"#
            ]],
        );
        check(
            r#"{"metadata": {"namespace": "shop", "name": "web"}, "kind": "Pod"}"#,
            expect![[
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}}"#
            ]],
        );
        check(
            r#"{"metadata": ["web", "shop"], "kind": "Pod", "apiVersion": "v1"}"#,
            expect![
                "ResourceGeneric: the `metadata` in the body of pods shop/web must be an object"
            ],
        );
    }

    #[test]
    fn items_of_a_list_get_their_type() {
        let mut request = KubernetesRequest::new(KubernetesVerb::List, "", "v1", "pods");
        request.kind = "Pod".into();
        let typed = |text: &str| with_type(&RawValue::from_string(text.into()).unwrap(), &request);
        assert_eq!(typed("{}"), r#"{"apiVersion":"v1","kind":"Pod"}"#);
        assert_eq!(
            typed(r#"{"a":1}"#),
            r#"{"apiVersion":"v1","kind":"Pod","a":1}"#
        );
        assert_eq!(typed(r#"{"kind":"X"}"#), r#"{"kind":"X"}"#);
    }
}
