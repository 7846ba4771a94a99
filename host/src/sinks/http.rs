//! The sink for HTTP endpoints.
//!
//! The Configurator's capabilities and the host's policy decide which hosts a request may go to. This sink adds what
//! neither can express: every address that is connected to is checked by the [guard](crate::network), and no redirect
//! is followed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::capability::host_of;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::{HttpRequest, Operation, SinkName};
use configurator_core::result::{Answer, HttpResponse};
use reqwest::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};

use super::{Scope, Sink, is_safe, misrouted};
use crate::network::{
    ClientOptions, Clients, DEFAULT_IDLE_CONNECTIONS, DEFAULT_IDLE_TIMEOUT, DEFAULT_SERVERS,
    InnerHost, NameResolver, NetworkError, Reach, SystemNames, authority,
};

/// How long one attempt may take when the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of an answer's body.
const MAX_BODY: usize = 4 << 20;

/// Sends requests to HTTP endpoints.
///
/// Connections are reused by the requests of the Configurator that made them, and by no other: a server may tie a login
/// to a connection.
#[derive(Clone)]
pub struct HttpSink {
    clients: Arc<Clients>,
}

/// What the operator of a host allows, and how connections are made.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The hosts that may have addresses that are not public, and which ones. Default: none.
    pub inner_hosts: Vec<InnerHost>,
    /// The most servers that a Configurator keeps connections to. One more displaces the least recently used; 0 keeps none. Default:
    /// [`DEFAULT_SERVERS`].
    pub servers: usize,
    /// The most idle connections that a Configurator keeps to one server; 0 keeps none.
    /// Default: [`DEFAULT_IDLE_CONNECTIONS`].
    pub idle_connections: usize,
    /// How long an idle connection is kept. Default: [`DEFAULT_IDLE_TIMEOUT`].
    pub idle_timeout: Duration,
    /// Resolves the names of hosts. Default: the resolver of the operating system.
    pub names: Arc<dyn NameResolver>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            inner_hosts: Vec::new(),
            servers: DEFAULT_SERVERS,
            idle_connections: DEFAULT_IDLE_CONNECTIONS,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            names: Arc::new(SystemNames),
        }
    }
}

impl HttpSink {
    /// A sink with these options.
    ///
    /// TLS uses the cryptographic provider that the process has installed. If there is none, `ring` is installed.
    #[must_use]
    pub fn new(options: HttpOptions) -> Self {
        let clients = Clients::new(ClientOptions {
            reach: Reach::Public(options.inner_hosts),
            setting: "http_inner_hosts",
            names: options.names,
            servers: options.servers,
            idle_connections: options.idle_connections,
            idle_timeout: options.idle_timeout,
            ..ClientOptions::default()
        });
        Self {
            clients: Arc::new(clients),
        }
    }

    async fn run(&self, request: &HttpRequest, scope: &Scope) -> Result<Answer, Fault> {
        // No message shows more of a URL than its host: the rest may hold credentials.
        let url: reqwest::Url = request
            .url
            .parse()
            .map_err(|error| generic(format!("the URL cannot be read: {error}")))?;
        // What the capabilities were checked against must be what the connection goes to.
        let checked = host_of(&request.url).ok_or_else(|| {
            generic("the URL must be http or https, with a host and without credentials".into())
        })?;
        let seen = authority(&url);
        if checked != seen {
            return Err(generic(format!(
                "the URL does not name its host plainly: {checked:?} is {seen:?}"
            )));
        }
        let client = self.clients.client(&scope.configurator.to_string(), &url);
        let client = client.map_err(|error| unreachable(&seen, &error))?;
        let method = reqwest::Method::from_bytes(request.method.as_bytes())
            .map_err(|_| generic(format!("{:?} is no HTTP method", request.method)))?;
        let mut outgoing = client.request(method, url);
        for (name, value) in &request.headers {
            let (name, value) = header(request, name, value)?;
            outgoing = outgoing.header(name, value);
        }
        if !scope.idempotency_key.is_empty()
            && !request
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"))
        {
            outgoing = outgoing.header("idempotency-key", &scope.idempotency_key);
        }
        if let Some(body) = &request.body {
            outgoing = outgoing.body(body.clone());
        }
        let mut response = outgoing.send().await.map_err(|error| {
            if error.is_builder() {
                Fault {
                    kind: FaultKind::ResourceGeneric,
                    ..unavailable(&seen, error)
                }
            } else {
                unavailable(&seen, error)
            }
        })?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| unavailable(&seen, error))?
        {
            let size = body.len() + chunk.len();
            if size > MAX_BODY {
                return Err(generic(format!(
                    "the answer of {seen} has more than {MAX_BODY} bytes"
                )));
            }
            scope.answer.fit(size as u64).await?;
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            query_objects: Vec::new(),
            http_response: Some(HttpResponse {
                status,
                headers,
                body,
            }),
            changed: !is_safe(&request.method),
        })
    }
}

/// A header as it is sent. Messages name it and never show its value.
fn header(
    request: &HttpRequest,
    name: &str,
    value: &str,
) -> Result<(HeaderName, HeaderValue), Fault> {
    let found = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| generic(format!("{name:?} is no name of a header")))?;
    let value = HeaderValue::from_str(value).map_err(|_| {
        generic(format!(
            "the header `{found}` has a value with a control character"
        ))
    })?;
    if found == HOST {
        return Err(generic(
            "a request cannot set the header `host`: it follows from the URL".into(),
        ));
    }
    // The client would cut the body to this length, or wait for the rest of it.
    let length = request.body.as_ref().map_or(0, Vec::len);
    if found == CONTENT_LENGTH && value != length.to_string() {
        return Err(generic(format!(
            "the header `content-length` is not the length of the body, {length}"
        )));
    }
    Ok((found, value))
}

/// Why no connection can be made. The address of a host that is not permitted is left out: it would map the inner network.
fn unreachable(host: &str, error: &NetworkError) -> Fault {
    let kind = match error {
        NetworkError::NotPermitted { .. } => FaultKind::ResourcePermission,
        _ => FaultKind::HttpUnavailable,
    };
    Fault::new(kind, format!("{host}: {error}"))
}

fn unavailable(host: &str, error: reqwest::Error) -> Fault {
    if let Some(reason) = NetworkError::within(&error) {
        return unreachable(host, reason);
    }
    let error = error.without_url();
    let mut message = format!("{host}: ");
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    let mut parts = Vec::new();
    while let Some(current) = cause {
        parts.push(current.to_string());
        cause = current.source();
    }
    message.push_str(&parts.join(": "));
    Fault::new(FaultKind::HttpUnavailable, message)
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

#[async_trait]
impl Sink for HttpSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Operation::Http(request) = operation.operation() else {
            return Err(misrouted(operation, SinkName::Http));
        };
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        tokio::time::timeout(timeout, self.run(request, scope))
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::HttpUnavailable,
                    format!("{operation}: no answer within {timeout:?}"),
                ))
            })
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}
