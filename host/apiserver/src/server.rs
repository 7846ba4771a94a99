//! The server: what it holds, and how a request finds its verb.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use configurator_background::work::{Background, LARGE};
use configurator_store::{Store, StoreError};
use futures::StreamExt as _;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, watch};

use crate::body::ApiBody;
use crate::event::EventLimit;
use crate::history::History;
use crate::media::{self, Accepted, Encoding};
use crate::options::ApiServerOptions;
use crate::output::{Include, Output};
use crate::pieces::Pieces;
use crate::protobuf::{self, PROTOBUF_WATCH};
use crate::query::Query;
use crate::registry::Registry;
use crate::request::ResourcePath;
use crate::resource::Resource;
use crate::status::{Result, Status};
use crate::write::Target;
use crate::{
    bootstrap, create, delete, discovery, document, garbage, openapi, patch, read, review, scale,
    update, watch as watches,
};

/// The embedded API; clones share it.
///
/// As a [`tower::Service`] it answers requests of the same process, with all rights. To others it is offered by [`ApiServer::serve`].
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

/// Why a server could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenServerError {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something in the store is no object of this API.
    #[error(
        "the store holds something that is no object of the API: {0}. Restore the file from a copy, or move it away to start with an empty one"
    )]
    Damaged(String),
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) options: ApiServerOptions,
    registry: RwLock<Arc<Registry>>,
    pub(crate) history: History,
    pub(crate) watches: Arc<Semaphore>,
    pub(crate) events: EventLimit,
    /// Wakes the garbage collector.
    pub(crate) collector: Arc<Notify>,
    /// Ends the watches when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) openapi: openapi::Cache,
    /// Encodes large lists.
    pub(crate) background: Background,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The collector holds only a weak reference: it wakes, sees that the server is gone, and ends.
        self.collector.notify_one();
    }
}

impl ApiServer {
    /// Opens the API on a store, and makes the namespaces that every cluster has.
    ///
    /// It must be called in a tokio runtime: a task of the server collects garbage as long as the server lives.
    ///
    /// # Errors
    /// If the store cannot be read or written, or holds something else.
    pub async fn open(store: Store, options: ApiServerOptions) -> Result<Self, OpenServerError> {
        let registry = bootstrap::registry(&store)?;
        let events = EventLimit::read(&store, options.events)?;
        let inner = Arc::new(Inner {
            history: History::new(
                store.revision()?,
                options.history_events,
                options.history_bytes,
            ),
            watches: Arc::new(Semaphore::new(options.watches)),
            registry: RwLock::new(Arc::new(registry)),
            events,
            collector: Arc::new(Notify::new()),
            stopping: watch::Sender::new(false),
            openapi: openapi::Cache::default(),
            // A store in memory runs everything on the caller's thread.
            background: match store.is_in_memory() {
                true => Background::inline(),
                false => options.background.clone(),
            },
            store,
            options,
        });
        bootstrap::namespaces(&inner)
            .await
            .map_err(|status| OpenServerError::Damaged(status.message))?;
        // What a crash left undone is done first.
        inner.collector.notify_one();
        tokio::spawn(garbage::run(
            Arc::downgrade(&inner),
            Arc::clone(&inner.collector),
        ));
        Ok(Self { inner })
    }

    /// Ends all watches, now and from now on. Other requests are still answered.
    pub fn stop_watches(&self) {
        self.inner.stopping.send_replace(true);
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiServer({:?})", self.inner.store)
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let limit = inner.options.body_bytes;
            // Watches and reads send nothing; what they send all the same is bounded too.
            let response = match Limited::new(body, limit).collect().await {
                Ok(collected) => {
                    answer(
                        &inner,
                        &parts.method,
                        parts.uri.path(),
                        parts.uri.query(),
                        &parts.headers,
                        collected.to_bytes(),
                    )
                    .await
                }
                Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Status::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
                    format!("Request entity too large: limit is {limit}"),
                )),
                Err(error) => Err(Status::bad_request(format!(
                    "the body of the request could not be read: {error}"
                ))),
            };
            let mut response = response.unwrap_or_else(|status| refuse(&status));
            if media::prefers_protobuf(&parts.headers) {
                let encoded = protobuf::in_protobuf(&inner, response).await;
                response = encoded.unwrap_or_else(|status| refuse(&status));
            }
            Ok(response)
        })
    }
}

impl Inner {
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn change_registry(&self, change: impl FnOnce(&Registry) -> Registry) {
        let mut registry = self
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *registry = Arc::new(change(&registry));
        self.openapi.forget();
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.options.clock)()
    }
}

/// A request to one resource, with what all verbs need.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) resource: Arc<Resource>,
    pub(crate) path: ResourcePath,
    pub(crate) query: Query,
    pub(crate) output: Output,
    /// Who writes, for the managed fields.
    pub(crate) manager: String,
    pub(crate) media: String,
    pub(crate) is_patch: bool,
    pub(crate) body: Bytes,
    pub(crate) depth: usize,
}

impl Call {
    pub(crate) fn target(&self, name: &str) -> Target {
        Target {
            resource: Arc::clone(&self.resource),
            namespace: self.path.namespace.clone().unwrap_or_default(),
            name: name.to_owned(),
        }
    }

    /// The body as a document, with the paths of what it has twice.
    pub(crate) fn document(&self) -> Result<(Value, Vec<String>)> {
        self.body_for(document::Purpose::Object(&self.resource.kind))
    }

    /// The body, for something.
    pub(crate) fn body_for(&self, purpose: document::Purpose<'_>) -> Result<(Value, Vec<String>)> {
        document::parse(&self.media, &self.body, self.depth, purpose)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.output.now
    }
}

/// What a verb answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: StatusCode,
    pub(crate) body: Pieces,
    pub(crate) warnings: Vec<String>,
}

impl Reply {
    pub(crate) fn ok(body: impl Into<Pieces>) -> Self {
        Self {
            code: StatusCode::OK,
            body: body.into(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn value(value: &Value) -> Result<Self> {
        crate::output::encode(value).map(Self::ok)
    }

    fn into_response(self) -> Response<ApiBody> {
        let mut response = respond(self.code, "application/json", self.body);
        for warning in self.warnings {
            let mut text = String::with_capacity(warning.len());
            for character in warning.chars() {
                match character {
                    '"' | '\\' => text.extend(['\\', character]),
                    control if control.is_control() => text.push(' '),
                    plain => text.push(plain),
                }
            }
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }
}

pub(crate) fn respond(
    code: StatusCode,
    media: &'static str,
    body: impl Into<Pieces>,
) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::whole(body));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

pub(crate) fn refuse(status: &Status) -> Response<ApiBody> {
    if status.is_text {
        return respond(
            status.code,
            "text/plain; charset=utf-8",
            Bytes::from(status.message.clone()),
        );
    }
    let mut response = respond(
        status.code,
        "application/json",
        Bytes::from(status.to_value().to_string()),
    );
    if let Some(seconds) = status.retry_after_seconds {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

async fn answer(
    server: &Arc<Inner>,
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response<ApiBody>> {
    let query = query.unwrap_or_default();
    if path.len() + query.len() > server.options.uri_bytes {
        return Err(Status::new(
            StatusCode::URI_TOO_LONG,
            "RequestURITooLong",
            format!(
                "the path and query are longer than {} bytes",
                server.options.uri_bytes
            ),
        ));
    }
    if let Some(response) = discovery::answer(server, method, path, headers)? {
        return Ok(response);
    }
    let path = ResourcePath::parse(path).ok_or_else(Status::page_not_found)?;
    let registry = server.registry();
    if path.resource.is_empty() {
        return discovery::version(&registry, &path);
    }
    let resource = registry
        .resource(&path.group, &path.version, &path.resource)
        .ok_or_else(|| discovery::nothing_at(&registry, &path.group))?;
    if !resource.namespaced && path.namespace.is_some() {
        return Err(Status::no_such_path());
    }
    let query = Query::parse(query, method)?;
    let Accepted { form, encoding } = media::accepted(headers, resource.custom.is_some())?;
    let output = Output {
        form,
        include: match query.include_object.as_str() {
            "None" => Include::Nothing,
            "Object" => Include::Object,
            _ => Include::Metadata,
        },
        now: server.now(),
    };
    let call = Call {
        manager: manager(&query, headers),
        media: document::media_type(headers).to_owned(),
        depth: server.options.document_depth,
        is_patch: *method == Method::PATCH,
        resource,
        path,
        query,
        output,
        body,
    };
    if call.resource.review {
        return if *method == Method::POST && call.path.name.is_none() {
            review::create(&call, headers).map(Reply::into_response)
        } else {
            Err(Status::method_not_allowed())
        };
    }
    // Objects of a namespaced resource are reached through their namespace; only lists go without.
    if call.resource.namespaced && call.path.namespace.is_none() && call.path.name.is_some() {
        return Err(Status::no_such_path());
    }
    if *method == Method::GET
        && (call.query.watch || call.path.watch)
        && call.path.subresource.is_none()
    {
        let lines = watches::start(
            server,
            &call.resource,
            &call.path,
            &call.query,
            call.output.clone(),
        )?;
        let media = match encoding {
            Encoding::Json => "application/json",
            Encoding::Protobuf => PROTOBUF_WATCH,
        };
        let mut response = respond(StatusCode::OK, media, Bytes::new());
        *response.body_mut() = match encoding {
            Encoding::Json => ApiBody::stream(lines),
            Encoding::Protobuf => {
                ApiBody::stream(lines.filter_map(async |line| protobuf::frame(&line)))
            }
        };
        return Ok(response);
    }
    dispatch(server, method, &call)
        .await
        .map(Reply::into_response)
}

async fn dispatch(server: &Arc<Inner>, method: &Method, call: &Call) -> Result<Reply> {
    let name = call.path.name.as_deref();
    let subresource = call.path.subresource.as_deref();
    let mut reply = match (method.as_str(), name, subresource) {
        ("GET", None, None) => list(server, call).await.map(Reply::ok)?,
        ("GET", Some(name), None) => get(server, call, name)?,
        ("GET", Some(name), Some("status")) if call.resource.status => get(server, call, name)?,
        ("POST", None, None) => create::create(server, call).await?,
        ("PUT", Some(name), None) => {
            update::replace(server, call, name, update::Part::Main).await?
        }
        ("PUT", Some(name), Some("status")) if call.resource.status => {
            update::replace(server, call, name, update::Part::Status).await?
        }
        ("PUT", Some(name), Some("finalize")) if call.resource.is("", "namespaces") => {
            update::replace(server, call, name, update::Part::Finalize).await?
        }
        ("PATCH", Some(name), None) => patch::patch(server, call, name, update::Part::Main).await?,
        ("PATCH", Some(name), Some("status")) if call.resource.status => {
            patch::patch(server, call, name, update::Part::Status).await?
        }
        ("DELETE", Some(name), None) => delete::one(server, call, name).await?,
        ("DELETE", None, None) => delete::collection(server, call).await?,
        (_, Some(name), Some("scale")) if call.resource.scale.is_some() => {
            scale::answer(server, method, call, name).await?
        }
        ("POST", Some(name), Some(subresource @ ("binding" | "eviction")))
            if call.resource.is("", "pods") =>
        {
            create::pod_subresource(server, call, name, subresource).await?
        }
        (_, Some(name), Some("status" | "scale"))
            if call.resource.custom.is_some()
                && !has_subresource(&call.resource, subresource.unwrap_or_default()) =>
        {
            return Err(Status::not_found(&call.resource, name));
        }
        (_, _, Some(subresource)) if !has_subresource(&call.resource, subresource) => {
            return Err(Status::no_such_path());
        }
        _ => return Err(Status::method_not_allowed()),
    };
    if let Some(deprecation) = call
        .resource
        .custom
        .as_ref()
        .and_then(|custom| custom.deprecation.clone())
    {
        reply.warnings.push(deprecation);
    }
    Ok(reply)
}

/// Returns a list. A large one is scanned and encoded in the background.
async fn list(server: &Arc<Inner>, call: &Call) -> Result<Pieces> {
    let Call {
        resource,
        path,
        query,
        output,
        ..
    } = call;
    if let Some(list) = read::list(server, resource, path, query, output, LARGE)? {
        return Ok(list);
    }
    let (server, resource) = (Arc::clone(server), Arc::clone(resource));
    let (path, query, output) = (path.clone(), query.clone(), output.clone());
    let background = server.background.clone();
    let list = background.run(0, move || {
        read::list(&server, &resource, &path, &query, &output, usize::MAX)
    });
    let list = list.await.map_err(Status::internal)??;
    list.ok_or_else(|| Status::internal("the list was cut short without a limit"))
}

fn get(server: &Inner, call: &Call, name: &str) -> Result<Reply> {
    read::parse_revision(&call.query.resource_version).map_err(|status| {
        Status::unclassified(
            status
                .message
                .trim_start_matches("invalid resource version: "),
        )
    })?;
    let target = call.target(name);
    let stored = read::one(server, &target.resource, &target.namespace, name)?;
    call.output.one(&call.resource, &stored).map(Reply::ok)
}

fn has_subresource(resource: &Resource, name: &str) -> bool {
    match name {
        "status" => resource.status,
        "scale" => resource.scale.is_some(),
        "finalize" => resource.is("", "namespaces"),
        "binding" | "eviction" => resource.is("", "pods"),
        _ => false,
    }
}

/// The field manager: as the client says, or the first part of what its program is called.
fn manager(query: &Query, headers: &HeaderMap) -> String {
    if let Some(manager) = &query.field_manager {
        return manager.clone();
    }
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default().trim();
    if program.is_empty() {
        "unknown".to_owned()
    } else {
        program.chars().take(128).collect()
    }
}
