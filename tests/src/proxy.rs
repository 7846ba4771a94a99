//! A proxy before a server, in which a test breaks, holds, slows or refuses what passes.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::{Bytes, BytesMut};
use configurator_core::backoff::mix;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri, Version, header};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{self, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::controlplane::About;

/// How much of a connection is carried at once.
const CHUNK: usize = 16 << 10;
/// What was sent before an answer could be read is not held against the client.
const ON_ITS_WAY: Duration = Duration::from_millis(250);

/// A proxy on loopback, with a certificate of the servers' authority. It ends with its last clone.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _end: Arc<DropGuard>,
}

/// What happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// They carry what comes.
    Open,
    /// They are accepted, and nothing is carried either way. What was held is lost when this ends.
    Held,
    /// They carry so many bytes at a time, and pause in between.
    Slow {
        /// At a time.
        bytes: usize,
        /// The pause.
        pause: Duration,
    },
}

/// What happens to requests, where the proxy understands them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// They reach the server.
    Forward,
    /// A share of them is answered here.
    Refuse {
        /// Of a hundred.
        percent: u64,
        /// One of these.
        statuses: &'static [u16],
        /// For how long the client is to leave the server alone.
        retry_after: Option<Duration>,
    },
    /// Answers to watches break off after a number of parts below this one.
    BreakWatches {
        /// Chosen below this.
        parts: u64,
    },
}

/// A request that came to the proxy.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When it came.
    pub at: Instant,
    /// Its method.
    pub method: Method,
    /// Its path.
    pub path: String,
    /// Its query.
    pub query: String,
    /// The answer that was given here, with when it was given.
    pub refused: Option<Refused>,
}

/// An answer of the proxy's own.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// When it was given.
    pub at: Instant,
    /// Its status.
    pub status: u16,
    /// For how long the client is to leave the server alone.
    pub retry_after: Option<Duration>,
}

struct Shared {
    line: watch::Sender<Line>,
    rule: Mutex<Rule>,
    /// Ends the connections that there are.
    cut: Mutex<CancellationToken>,
    seed: u64,
    drawn: AtomicU64,
    seen: Mutex<Vec<Seen>>,
    broken: AtomicU64,
}

type Upstream = Client<HttpsConnector<HttpConnector>, Incoming>;
type AnswerBody = BoxBody<Bytes, BoxError>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What stands behind the proxy.
#[derive(Clone)]
enum Server {
    /// Bytes go to this address.
    Bytes(Authority),
    /// Requests go to this address.
    Http {
        authority: Authority,
        acceptor: TlsAcceptor,
        upstream: Arc<Upstream>,
    },
}

impl Proxy {
    /// A proxy that carries bytes. `server` is a URL.
    ///
    /// # Errors
    /// When `server` is no URL.
    pub async fn of_bytes(server: &str, seed: u64) -> Result<Self> {
        Self::start(Server::Bytes(authority(server)?), seed).await
    }

    /// A proxy that understands HTTP/1.1 and HTTP/2. `server` is a URL; `seed` decides what is refused or broken.
    ///
    /// # Errors
    /// When `server` is no URL, or the certificates cannot be read.
    pub async fn of_http(about: &About, server: &str, seed: u64) -> Result<Self> {
        // An error says that somebody else has installed theirs.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&about.ca)? {
            roots.add(certificate)?;
        }
        let trusting = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trusting)
            .https_only()
            .enable_http1()
            .enable_http2()
            .build();
        let own = certificates(&about.dir.join("server.crt"))?;
        let key = PrivateKeyDer::from_pem_file(about.dir.join("server.key"))?;
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(own, key)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let server = Server::Http {
            authority: authority(server)?,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            upstream: Arc::new(Client::builder(TokioExecutor::new()).build(connector)),
        };
        Self::start(server, seed).await
    }

    async fn start(server: Server, seed: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            line: watch::Sender::new(Line::Open),
            rule: Mutex::new(Rule::Forward),
            cut: Mutex::default(),
            seed,
            drawn: AtomicU64::default(),
            seen: Mutex::default(),
            broken: AtomicU64::default(),
        });
        let end = CancellationToken::new();
        let accepting = accept(listener, server, shared.clone());
        tokio::spawn(end.clone().run_until_cancelled_owned(accepting));
        Ok(Self {
            address,
            shared,
            _end: Arc::new(end.drop_guard()),
        })
    }

    /// Where it is, as in `https://127.0.0.1:20001`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// From now on this happens to connections.
    pub fn set_line(&self, line: Line) {
        if self.shared.line.send_replace(line) == Line::Held {
            self.cut();
        }
    }

    /// From now on this happens to requests.
    pub fn set_rule(&self, rule: Rule) {
        *locked(&self.shared.rule) = rule;
    }

    /// Ends every connection that there is.
    pub fn cut(&self) {
        std::mem::take(&mut *locked(&self.shared.cut)).cancel();
    }

    /// The requests so far, in the order in which they came.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.shared.seen).clone()
    }

    /// How many requests were answered here.
    #[must_use]
    pub fn refused(&self) -> usize {
        let seen = locked(&self.shared.seen);
        seen.iter().filter(|seen| seen.refused.is_some()).count()
    }

    /// How many answers were broken off.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.shared.broken.load(Ordering::Relaxed)
    }

    /// The requests that came although one of the same group had been told to leave the server alone, each with the
    /// one that was told. `group` says which group a request is in.
    #[must_use]
    pub fn impatient<G: PartialEq>(&self, group: impl Fn(&Seen) -> Option<G>) -> Vec<String> {
        let seen = self.seen();
        let mut found = Vec::new();
        for told in &seen {
            let Some((refused, wait)) = told
                .refused
                .and_then(|refused| Some((refused, refused.retry_after?)))
            else {
                continue;
            };
            let Some(own) = group(told) else { continue };
            let early = seen.iter().filter(|later| {
                let is_early = later.at > refused.at + ON_ITS_WAY && later.at < refused.at + wait;
                is_early && group(later).as_ref() == Some(&own)
            });
            found.extend(early.map(|later| {
                let after = later.at - refused.at;
                format!("{later} came {after:?} after {told} was told to wait {wait:?}")
            }));
        }
        found
    }
}

impl Seen {
    /// Whether it asks to be told of changes.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        let is_asked = |pair: &str| pair == "watch=true" || pair == "watch=1";
        self.query.split('&').any(is_asked)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Shared {
    /// A number below `limit`, from the seed and how many were drawn before.
    fn draw(&self, limit: u64) -> u64 {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        mix(self.seed ^ mix(number)) % limit.max(1)
    }
}

async fn accept(listener: TcpListener, server: Server, shared: Arc<Shared>) {
    loop {
        // What cannot be accepted is the client's to try again.
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        let cut = locked(&shared.cut).clone();
        let connection = serve(client, server.clone(), shared.clone());
        tokio::spawn(cut.run_until_cancelled_owned(connection));
    }
}

/// One connection until it ends. How it ends is seen at both of its ends.
async fn serve(client: TcpStream, server: Server, shared: Arc<Shared>) {
    let line = shared.line.subscribe();
    // Small answers go out at once.
    let _ = client.set_nodelay(true);
    match server {
        Server::Bytes(authority) => {
            let Ok(behind) = TcpStream::connect(authority.as_str()).await else {
                return;
            };
            let _ = behind.set_nodelay(true);
            let _ = join(client, behind, line).await;
        }
        Server::Http {
            authority,
            acceptor,
            upstream,
        } => {
            let (behind, inner) = io::duplex(CHUNK);
            let requests = async {
                let Ok(stream) = acceptor.accept(inner).await else {
                    return;
                };
                let service = service_fn(|request| {
                    pass(request, shared.clone(), authority.clone(), upstream.clone())
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            };
            tokio::select! {
                _ = join(client, behind, line) => {}
                () = requests => {}
            }
        }
    }
}

async fn join(
    client: TcpStream,
    server: impl AsyncRead + AsyncWrite,
    line: watch::Receiver<Line>,
) -> io::Result<()> {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = io::split(server);
    tokio::try_join!(
        carry(from_client, to_server, line.clone()),
        carry(from_server, to_client, line),
    )?;
    Ok(())
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut line: watch::Receiver<Line>,
) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(CHUNK);
    loop {
        let limit = match *line.borrow() {
            Line::Slow { bytes, .. } => bytes,
            Line::Open | Line::Held => CHUNK,
        };
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let count = (&mut from).take(limit).read_buf(&mut buffer).await?;
        let now = match line.wait_for(|line| *line != Line::Held).await {
            Ok(now) => *now,
            Err(_) => return Ok(()),
        };
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all_buf(&mut buffer).await?;
        if let Line::Slow { pause, .. } = now {
            tokio::time::sleep(pause).await;
        }
    }
}

async fn pass(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    authority: Authority,
    upstream: Arc<Upstream>,
) -> Result<Response<AnswerBody>, BoxError> {
    let mut seen = Seen {
        at: Instant::now(),
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        refused: None,
    };
    let rule = locked(&shared.rule).clone();
    let is_watch = seen.is_watch();
    let mut parts_left = None;
    match rule {
        Rule::Forward => {}
        Rule::Refuse {
            percent,
            statuses,
            retry_after,
        } => {
            if shared.draw(100) < percent {
                let count = u64::try_from(statuses.len()).unwrap_or_default();
                let chosen = usize::try_from(shared.draw(count)).unwrap_or_default();
                let status = statuses.get(chosen).copied().unwrap_or(503);
                seen.refused = Some(Refused {
                    at: Instant::now(),
                    status,
                    retry_after,
                });
                locked(&shared.seen).push(seen);
                return refusal(status, retry_after);
            }
        }
        Rule::BreakWatches { parts } => {
            parts_left = is_watch.then(|| shared.draw(parts));
        }
    }
    locked(&shared.seen).push(seen);
    let (mut head, body) = request.into_parts();
    let mut uri = head.uri.into_parts();
    uri.scheme = Some(Scheme::HTTPS);
    uri.authority = Some(authority);
    head.uri = Uri::from_parts(uri)?;
    head.version = Version::HTTP_11;
    let answer = upstream.request(Request::from_parts(head, body)).await?;
    Ok(answer.map(|body| {
        let body = Passed {
            body,
            parts_left,
            shared,
        };
        body.boxed()
    }))
}

fn refusal(status: u16, retry_after: Option<Duration>) -> Result<Response<AnswerBody>, BoxError> {
    // As both the Kubernetes API and Vault say it.
    let said = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "refused by the proxy", "code": status, "errors": ["refused by the proxy"],
    });
    let body = Full::new(Bytes::from(said.to_string()));
    let mut answer = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.map_err(|never: Infallible| match never {}).boxed())?;
    if let Some(wait) = retry_after {
        let seconds = HeaderValue::from(wait.as_secs());
        answer.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    Ok(answer)
}

/// The body of an answer that is passed on.
struct Passed {
    body: Incoming,
    /// Breaks off after so many.
    parts_left: Option<u64>,
    shared: Arc<Shared>,
}

impl Body for Passed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let Poll::Ready(Some(frame)) = polled else {
            return polled.map_err(Into::into);
        };
        match &mut self.parts_left {
            Some(0) => {
                self.shared.broken.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(Some(Err("broken by the proxy".into())));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Poll::Ready(Some(frame.map_err(Into::into)))
    }
}

fn authority(url: &str) -> Result<Authority> {
    let uri: Uri = url.parse()?;
    let authority = uri.authority().cloned();
    authority.with_context(|| format!("{url} names no server"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path)?;
    read.collect::<Result<_, _>>()
        .with_context(|| format!("cannot read {}", path.display()))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
