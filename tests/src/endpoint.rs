//! An HTTP endpoint that honors `Idempotency-Key`, as a payment service does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use configurator_host::sinks::http::HttpOptions;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The endpoint. It ends with the test.
pub struct Endpoint {
    authority: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    held: Mutex<Held>,
    /// How many requests have come.
    requests: watch::Sender<usize>,
}

#[derive(Default)]
struct Held {
    loses_answers: bool,
    /// Bodies by key.
    answered: BTreeMap<String, String>,
    /// Bodies in the order in which they took effect.
    effects: Vec<String>,
    /// Keys in the order in which they came.
    keys: Vec<String>,
}

impl State {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the machine has no port left.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let authority = listener.local_addr()?.to_string();
        let state = Arc::<State>::default();
        let router = Router::new().fallback(answer).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { authority, state })
    }

    /// Host and port.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Options of a sink that reaches it.
    ///
    /// # Errors
    /// Never.
    pub fn options(&self) -> Result<HttpOptions> {
        Ok(HttpOptions {
            inner_hosts: vec![format!("{}=127.0.0.1", self.authority).parse()?],
            ..HttpOptions::default()
        })
    }

    /// From now on, with `true`, requests take effect and the connection breaks before the answer.
    pub fn lose_answers(&self, loses: bool) {
        self.state.held().loses_answers = loses;
    }

    /// The bodies in the order in which they took effect.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        self.state.held().effects.clone()
    }

    /// The key of each request, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.state.held().keys.clone()
    }

    /// Returns when so many requests have come.
    pub async fn requests(&self, number: usize) {
        let mut requests = self.state.requests.subscribe();
        // The sender is held here.
        let _ = requests.wait_for(|requests| *requests >= number).await;
    }
}

async fn answer(Shared(state): Shared<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    let key = headers.get("idempotency-key");
    let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let mut held = state.held();
    held.keys.push(key.to_owned());
    if key.is_empty() || !held.answered.contains_key(key) {
        held.effects.push(body.clone());
        held.answered.insert(key.to_owned(), body);
    }
    let answer = held.answered.get(key).cloned().unwrap_or_default();
    let is_lost = held.loses_answers;
    drop(held);
    state.requests.send_modify(|requests| *requests += 1);
    if is_lost {
        let error = std::io::Error::other("broken off");
        let body = futures::stream::iter([Err::<Bytes, _>(error)]);
        return Response::new(Body::from_stream(body));
    }
    Response::new(Body::from(answer))
}
