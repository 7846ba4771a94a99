//! Points at which a host is killed: before a request has arrived, and after it has taken effect and before the answer is there. A host is
//! killed once at each point, so each host gets farther than the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::Client;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The points that the requests of hosts pass. Clones share them.
#[derive(Clone, Default)]
pub struct CrashPoints {
    shared: Arc<Mutex<Shared>>,
    lives: watch::Sender<bool>,
}

#[derive(Default)]
struct Shared {
    host: Option<Child>,
    /// How often the host that lives has passed a point.
    passed: BTreeMap<(String, Moment), usize>,
    /// Where hosts were killed.
    killed: BTreeSet<(String, Moment, usize)>,
    effects: BTreeMap<String, usize>,
}

/// When a host is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The request has not arrived.
    Before,
    /// It has taken effect, and the answer is not there.
    After,
}

/// A request to an API.
pub struct ApiRequest<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its path, without the query.
    pub path: &'a str,
    /// Its body.
    pub body: &'a Bytes,
}

impl CrashPoints {
    /// Has the next host killed.
    pub fn watch(&self, host: Child) {
        let mut shared = self.shared();
        shared.host = Some(host);
        shared.passed.clear();
        self.lives.send_replace(true);
    }

    /// Lets go of the host that lives.
    #[must_use]
    pub fn release(&self) -> Option<Child> {
        self.shared().host.take()
    }

    /// Returns when the host has been killed.
    pub async fn died(&self) {
        // The sender is part of `self`, so this cannot fail.
        let _ = self.lives.subscribe().wait_for(|lives| !lives).await;
    }

    /// How many hosts were killed.
    #[must_use]
    pub fn kills(&self) -> usize {
        self.shared().killed.len()
    }

    /// How often the API created and deleted an object at a point: `created PATH` and `deleted PATH`.
    #[must_use]
    pub fn effects(&self) -> BTreeMap<String, usize> {
        self.shared().effects.clone()
    }

    /// Passes a point. The host is killed there unless one was before.
    ///
    /// # Errors
    /// When the host is dead: it gets no answer.
    pub fn pass(&self, point: &str, moment: Moment) -> Result<()> {
        let mut shared = self.shared();
        let times = shared.passed.entry((point.to_owned(), moment)).or_default();
        *times += 1;
        // A host may read as often as it likes.
        let times = match point.starts_with("GET") {
            true => 1,
            false => *times,
        };
        let place = (point.to_owned(), moment, times);
        if shared.killed.contains(&place) {
            return Ok(());
        }
        let Some(mut host) = shared.host.take() else {
            return Ok(());
        };
        shared.killed.insert(place);
        // On Unix this is SIGKILL.
        host.kill()?;
        host.wait()?;
        self.lives.send_replace(false);
        bail!("killed {moment:?} {point}")
    }

    /// Serves an API over HTTP, and returns its address. `point` names the point of a request; a request without one passes freely, and so does
    /// a watch.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn before_api(
        &self,
        api: Client,
        point: impl Fn(&ApiRequest<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let proxy = Proxy {
            points: self.clone(),
            api,
            point: Arc::new(point),
        };
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(proxy.clone().serve(connection));
            }
        });
        Ok(address)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, request: &ApiRequest<'_>, status: StatusCode) {
        let effect = match status {
            StatusCode::CREATED => "created",
            StatusCode::OK if request.method == Method::DELETE => "deleted",
            _ => return,
        };
        let effect = format!("{effect} {}", request.path);
        *self.shared().effects.entry(effect).or_default() += 1;
    }
}

type PointOf = dyn Fn(&ApiRequest<'_>) -> Option<String> + Send + Sync;

#[derive(Clone)]
struct Proxy {
    points: CrashPoints,
    api: Client,
    point: Arc<PointOf>,
}

impl Proxy {
    async fn serve(self, connection: TcpStream) {
        let service = service_fn(|request: Request<Incoming>| {
            let proxy = self.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                // A request that has arrived takes effect, even if the host is dead by then.
                tokio::spawn(proxy.answer(parts, body)).await?
            }
        });
        let server = auto::Builder::new(TokioExecutor::new());
        // A connection of a host that was killed breaks off.
        let _ = server
            .serve_connection(TokioIo::new(connection), service)
            .await;
    }

    async fn answer(self, parts: Parts, body: Bytes) -> Result<http::Response<Body>> {
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        let asked = ApiRequest {
            method: &method,
            path: &path,
            body: &body,
        };
        let query = parts.uri.query().unwrap_or_default();
        let point = match query.contains("watch=") {
            true => None,
            false => (self.point)(&asked),
        };
        let request = Request::from_parts(parts, Body::from(body.clone()));
        let Some(point) = point else {
            return Ok(self.api.send(request).await?);
        };
        self.points.pass(&point, Moment::Before)?;
        let response = self.api.send(request).await?;
        self.points.count(&asked, response.status());
        self.points.pass(&point, Moment::After)?;
        Ok(response)
    }
}
