//! The API over TLS on a loopback address, for kubectl and other processes.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use configurator_store::StoreError;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower::Service;

use crate::body::ApiBody;
use crate::certificate::Identity;
use crate::server::{ApiServer, refuse};
use crate::status::Status;

/// Connections that may be open at a time; one more waits.
const CONNECTIONS: usize = 512;
/// How long a client may take to shake hands, or to send the head of a request.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long requests that are under way get when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Where and to whom the API is served.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// A loopback address; port 0 takes a free one.
    pub addr: SocketAddr,
    /// What clients have to present. None: one that is made once and kept in the store.
    pub token: Option<String>,
}

/// Where the API is served.
#[derive(Debug, Clone)]
pub struct ServedAt {
    /// Like `https://127.0.0.1:6443`.
    pub url: String,
    /// The address, with the port that was taken.
    pub addr: SocketAddr,
    /// The certificate authority, which stays the same as long as the store does.
    pub ca_pem: String,
    /// What clients have to present.
    pub token: String,
}

impl ServedAt {
    /// A kubeconfig file with which kubectl and other clients reach the API.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: configurator\n  cluster:\n    server: {}\n    certificate-authority-data: {}\n\
             users:\n- name: configurator\n  user:\n    token: {}\ncontexts:\n- name: configurator\n  context:\n    cluster: configurator\n    \
             user: configurator\n    namespace: default\ncurrent-context: configurator\n",
            self.url,
            STANDARD.encode(&self.ca_pem),
            serde_json::Value::from(self.token.as_str())
        )
    }
}

/// Why the API could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from other machines.
    #[error(
        "{0} is no loopback address. The embedded API is only for this machine: use 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// Another program listens there.
    #[error("port {port} of {ip} is in use by another program. Stop it, or choose another port", port = .0.port(), ip = .0.ip())]
    PortInUse(SocketAddr),
    /// The operating system refused to listen.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The certificate could not be made or read.
    #[error("the certificate of the API cannot be used: {0}")]
    Certificate(String),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rcgen::Error> for ServeError {
    fn from(error: rcgen::Error) -> Self {
        Self::Certificate(error.to_string())
    }
}

impl ApiServer {
    /// Listens, and returns where, with a future that serves until `shutdown` ends.
    ///
    /// When `shutdown` ends, no connection is taken any more, watches end, and requests that are under way get a few seconds.
    /// Requests without the token are answered with 401.
    ///
    /// # Errors
    /// Each [`ServeError`] says what to do.
    pub async fn serve<S: Future<Output = ()> + Send + 'static>(
        self,
        options: ServeOptions,
        shutdown: S,
    ) -> Result<(ServedAt, impl Future<Output = ()> + Send + 'static), ServeError> {
        if !options.addr.ip().is_loopback() {
            return Err(ServeError::NotLoopback(options.addr));
        }
        let listener =
            TcpListener::bind(options.addr)
                .await
                .map_err(|source| match source.kind() {
                    std::io::ErrorKind::AddrInUse => ServeError::PortInUse(options.addr),
                    _ => ServeError::Listen {
                        addr: options.addr,
                        source,
                    },
                })?;
        let addr = listener.local_addr().map_err(|source| ServeError::Listen {
            addr: options.addr,
            source,
        })?;
        let identity = Identity::of(&self.inner.store, &self.inner.options).await?;
        let token = options.token.unwrap_or_else(|| identity.token.clone());
        let acceptor = TlsAcceptor::from(Arc::new(identity.server_config()?));
        let served = ServedAt {
            url: format!("https://{addr}"),
            addr,
            ca_pem: identity.ca_pem,
            token: token.clone(),
        };
        let door = Door {
            server: self,
            acceptor,
            expected: Arc::from(format!("Bearer {token}")),
            graceful: GracefulShutdown::new(),
        };
        Ok((served, door.run(listener, shutdown)))
    }
}

/// Takes connections.
struct Door {
    server: ApiServer,
    acceptor: TlsAcceptor,
    expected: Arc<str>,
    graceful: GracefulShutdown,
}

impl Door {
    async fn run(self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accept = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection = self.connection(stream);
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                // Out of file descriptors, most likely: others will end.
                Err(error) => {
                    tracing::warn!("a connection could not be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        self.server.stop_watches();
        if tokio::time::timeout(GRACE, self.graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some clients were still busy when the API stopped");
        }
    }

    fn connection(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        let (server, acceptor, expected) = (
            self.server.clone(),
            self.acceptor.clone(),
            Arc::clone(&self.expected),
        );
        let watcher = self.graceful.watcher();
        async move {
            // Watch events are small, and late if they wait for each other.
            let _ = stream.set_nodelay(true);
            let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return tracing::debug!("a TLS handshake failed: {error}"),
                Err(_) => return tracing::debug!("a TLS handshake took too long"),
            };
            let service = service_fn(move |request: Request<Incoming>| {
                let (mut server, expected) = (server.clone(), Arc::clone(&expected));
                async move {
                    if !is_authorised(&request, &expected) {
                        return Ok::<Response<ApiBody>, Infallible>(refuse(&Status::new(
                            StatusCode::UNAUTHORIZED,
                            "Unauthorized",
                            "Unauthorized",
                        )));
                    }
                    server.call(request).await
                }
            });
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(HANDSHAKE);
            builder
                .http2()
                .timer(TokioTimer::new())
                .max_concurrent_streams(1_000)
                .keep_alive_interval(Some(Duration::from_secs(30)));
            let connection = builder
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!("a connection ended: {error}");
            }
        }
    }
}

/// Compares in the same time wherever the first difference is.
fn is_authorised(request: &Request<Incoming>, expected: &str) -> bool {
    let path = request.uri().path();
    if matches!(path, "/healthz" | "/livez" | "/readyz") {
        return true;
    }
    let given = request
        .headers()
        .get(AUTHORIZATION)
        .map_or(&b""[..], |value| value.as_bytes());
    given.len() == expected.len()
        && given
            .iter()
            .zip(expected.as_bytes())
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}
