//! How a real cluster is reached.
//!
//! It speaks HTTP/2 where the server does, and asks silent connections whether somebody is there: a server that stopped,
//! or a network that swallows packets, is noticed within seconds, also by a watch that waits for news. What the server
//! allows on one connection (by default 100 streams) bounds no host: long answers are spread over as many connections as
//! they need. It sends nothing a second time by itself, since only its caller knows what may be repeated.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use configurator_core::backoff;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ConfigExt as _};
use kube::runtime::utils::Backoff;
use kube::{Client, Config};
use tower::retry::Policy;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

/// How often a silent connection is asked whether somebody is there.
const PING: Duration = Duration::from_secs(4);
/// How long the answer may take until the connection and everything on it is given up.
const PING_TIMEOUT: Duration = Duration::from_secs(4);
/// Long answers on one connection; the others are for short ones.
const WATCHES: usize = 60;
/// The first wait before one of the host's own requests is sent again, when the server names none.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The first wait before a watch that failed is tried again.
const FIRST_WATCH_WAIT: Duration = Duration::from_millis(800);
/// The longest.
const MAX_WATCH_WAIT: Duration = Duration::from_secs(8);
/// How often one of the host's own requests is sent again.
const MAX_RETRIES: u32 = 5;

/// How long a watch that failed rests: longer each time until it says something. Where others rest for up to half a
/// minute, a host is to learn soon after an outage what it has missed.
pub(crate) struct WatchBackoff {
    failures: u32,
    seed: u64,
}

impl WatchBackoff {
    /// Nothing has failed. `seed` decides the jitter.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { failures: 0, seed }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        let policy = backoff::RetryPolicy {
            max_attempts: u32::MAX,
            initial_delay: FIRST_WATCH_WAIT,
            max_delay: MAX_WATCH_WAIT,
            ..backoff::RetryPolicy::default()
        };
        Some(policy.delay(self.failures, self.seed))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

/// A Kubernetes API, as a host reaches it: a cluster by [`connect`], or any other by its [`Client`].
#[derive(Clone)]
pub struct Cluster {
    /// For what is watched, and for whoever asks for objects of a kind.
    pub client: Client,
    pub(crate) requests: Requests,
}

/// Sends requests and hands back the answers as they are. Where it can be had, without the queue that each [`Client`] has.
#[derive(Clone)]
pub(crate) struct Requests(BoxCloneSyncService<Request<Body>, Response<Received>, BoxError>);

/// The body of an answer.
pub(crate) type Received = UnsyncBoxBody<Bytes, kube::Error>;

/// A cluster, reached as described above. `config` says where it is and who asks, as kube reads it from a kubeconfig or
/// from a Pod's service account; its `default_retry` is not used.
///
/// # Errors
/// When a certificate or key in the configuration is unusable.
pub fn connect(config: &Config) -> Result<Cluster, kube::Error> {
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Connections::new(config)?);
    Ok(Cluster {
        client: Client::new(service.clone(), config.default_namespace.clone()),
        requests: Requests(BoxCloneSyncService::new(service.map_response(
            |answer: Response<Answer>| {
                answer.map(|body| body.map_err(kube::Error::HyperError).boxed_unsync())
            },
        ))),
    })
}

impl From<Client> for Cluster {
    fn from(client: Client) -> Self {
        let sending = client.clone();
        let send = tower::service_fn(move |request: Request<Body>| {
            let client = sending.clone();
            async move {
                let answer = client.send(request).await?;
                Ok::<_, BoxError>(answer.map(Body::boxed_unsync))
            }
        });
        Self {
            client,
            requests: Requests(BoxCloneSyncService::new(send)),
        }
    }
}

impl Requests {
    /// # Errors
    /// When there is no answer, as a [`Client`] says it.
    pub(crate) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Received>, kube::Error> {
        self.0.clone().oneshot(request).await.map_err(|error| {
            error
                .downcast::<kube::Error>()
                .map(|error| *error)
                .or_else(|error| {
                    let error = error.downcast::<hyper::Error>()?;
                    Ok(kube::Error::HyperError(*error))
                })
                .unwrap_or_else(kube::Error::Service)
        })
    }
}

/// The same client for what the host itself asks of the server: watches, statuses, Events. Where the server asks to be
/// left alone for a while (429 or 503 with `Retry-After`), it is. A wait of more than 30 s is left to the caller.
#[must_use]
pub fn patient(client: &Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    match RetryPolicy::new(FIRST_WAIT, MAX_WAIT, MAX_RETRIES, true) {
        Ok(policy) => {
            let client = client.clone();
            let send = tower::service_fn(move |request: Request<Body>| {
                let client = client.clone();
                async move { client.send(request).await.map_err(BoxError::from) }
            });
            let service = ServiceBuilder::new()
                .layer(tower::retry::RetryLayer::new(Patience(policy)))
                .service(send);
            Client::new(service, namespace)
        }
        // The waits above are in order.
        Err(_) => client.clone(),
    }
}

/// Sends again as the policy says, unless the server asks for a longer wait than a caller can sit out.
#[derive(Clone)]
struct Patience(RetryPolicy);

impl<B> Policy<Request<Body>, Response<B>, BoxError> for Patience {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Self::Future> {
        let asked = result.as_ref().ok().and_then(|response| {
            let seconds = response.headers().get(http::header::RETRY_AFTER)?;
            seconds.to_str().ok()?.trim().parse::<u64>().ok()
        });
        if asked.is_some_and(|seconds| seconds > MAX_WAIT.as_secs()) {
            return None;
        }
        self.0.retry(request, result)
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<Request<Body>, Response<B>, BoxError>::clone_request(&mut self.0, request)
    }
}

type Connection = HttpClient<HttpsConnector<HttpConnector>, Body>;

/// Connections to one server: the first for short answers, and more as watches need them.
#[derive(Clone)]
struct Connections {
    connector: HttpsConnector<HttpConnector>,
    short: Connection,
    long: Arc<std::sync::Mutex<Vec<Long>>>,
}

/// A connection for long answers.
struct Long {
    connection: Connection,
    /// Answers under way.
    answers: Arc<AtomicUsize>,
}

impl Connections {
    fn new(config: &Config) -> Result<Self, kube::Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(config.connect_timeout);
        let mut builder = HttpsConnectorBuilder::new()
            .with_tls_config(config.rustls_client_config()?)
            .https_or_http();
        if let Some(name) = &config.tls_server_name {
            let name = name.clone().try_into().map_err(|_| {
                kube::Error::Service(format!("{name:?} is no name of a server").into())
            })?;
            builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        let connector = builder.enable_http1().enable_http2().wrap_connector(http);
        Ok(Self {
            short: connection(connector.clone()),
            connector,
            long: Arc::default(),
        })
    }

    /// A connection that has room for a long answer.
    fn long(&self) -> (Connection, Counted) {
        let mut long = self
            .long
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let free = long
            .iter()
            .find(|long| long.answers.load(Ordering::Relaxed) < WATCHES);
        let (connection, answers) = match free {
            Some(long) => (long.connection.clone(), long.answers.clone()),
            None => {
                let new = Long {
                    connection: connection(self.connector.clone()),
                    answers: Arc::default(),
                };
                let both = (new.connection.clone(), new.answers.clone());
                long.push(new);
                both
            }
        };
        answers.fetch_add(1, Ordering::Relaxed);
        (connection, Counted(answers))
    }
}

fn connection(connector: HttpsConnector<HttpConnector>) -> Connection {
    HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_adaptive_window(true)
        .build(connector)
}

/// Counts an answer as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Service<Request<Body>> for Connections {
    type Response = Response<Answer>;
    type Error = hyper_util::client::legacy::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (connection, counted) = if is_watch(request.uri()) {
            let (connection, counted) = self.long();
            (connection, Some(counted))
        } else {
            (self.short.clone(), None)
        };
        Box::pin(async move {
            let response = connection.request(request).await?;
            Ok(response.map(|body| Answer {
                body,
                _counted: counted,
            }))
        })
    }
}

fn is_watch(uri: &http::Uri) -> bool {
    uri.query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| pair == "watch=true" || pair == "watch=1")
    })
}

/// The body of an answer, counted while it lasts.
struct Answer {
    body: hyper::body::Incoming,
    _counted: Option<Counted>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
