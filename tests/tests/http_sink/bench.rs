//! Small servers on this machine, and requests to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::fault::Fault;
use configurator_core::request::{HttpRequest, ObjectRef, Operation};
use configurator_core::result::Answer;
use configurator_host::network::NameResolver;
use configurator_host::sinks::Scope;
use configurator_host::sinks::http::{HttpOptions, HttpSink};
use configurator_tests::unlimited::execute;
use configurator_tests::world::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long a request may take at a server that is too slow for it.
pub const SHORT: Duration = Duration::from_millis(200);

/// What stands before a request that is not whole.
const BROKEN_OFF: &str = "(broken off) ";

/// What a server does with a connection once it has read a request.
pub enum Manner {
    /// Sends these bytes and closes.
    Answers(Vec<u8>),
    /// Sends these bytes, and then these others again and again.
    GoesOn(Vec<u8>, Vec<u8>),
    /// Sends these bytes, and then one more every few milliseconds, for ever.
    Dribbles(Vec<u8>),
    /// Sends these bytes for each request of a connection.
    KeepsOn(Vec<u8>),
    /// Waits until the client has gone.
    IsSilent,
}

/// A server of one manner that keeps what it was sent.
pub struct Server {
    /// As a URL names it.
    pub host: String,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub async fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let keeps = seen.clone();
        let connections: Arc<AtomicUsize> = Arc::default();
        let counted = connections.clone();
        let manner = Arc::new(manner);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(connection, manner.clone(), keeps.clone()));
            }
        });
        Self {
            host,
            seen,
            connections,
        }
    }

    pub async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::new(Manner::Answers(answer.into())).await
    }

    pub async fn willing() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await
    }

    /// One that keeps its connections open.
    pub async fn patient() -> Self {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        Self::new(Manner::KeepsOn(answer.to_vec())).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// As in `:4321`.
    pub fn port(&self) -> String {
        self.host[self.host.find(':').unwrap()..].to_owned()
    }

    /// A sink that may go to this server.
    pub fn sink(&self) -> HttpSink {
        sink(&[&self.host])
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The requests that came, with a name for the port that differs from run to run.
    pub fn requests(&self) -> Vec<String> {
        let port = self.port();
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|request| request.replace(&port, ":PORT"))
            .collect()
    }
}

async fn serve(
    mut connection: TcpStream,
    manner: Arc<Manner>,
    seen: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let request = read(&mut connection).await?;
    seen.lock().unwrap().push(request);
    match &*manner {
        Manner::Answers(answer) => {
            connection.write_all(answer).await?;
            connection.shutdown().await?;
        }
        Manner::GoesOn(answer, more) => {
            connection.write_all(answer).await?;
            loop {
                connection.write_all(more).await?;
            }
        }
        Manner::Dribbles(answer) => {
            connection.write_all(answer).await?;
            let mut pace = tokio::time::interval(Duration::from_millis(10));
            loop {
                pace.tick().await;
                connection.write_all(b"x").await?;
            }
        }
        Manner::KeepsOn(answer) => {
            connection.write_all(answer).await?;
            loop {
                let request = read(&mut connection).await?;
                if request.starts_with(BROKEN_OFF) {
                    return Ok(());
                }
                seen.lock().unwrap().push(request);
                connection.write_all(answer).await?;
            }
        }
        Manner::IsSilent => {}
    }
    // Until the client closes: a socket that is dropped with unread bytes would take back what it has sent.
    while connection.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// A request with its body, as it came.
async fn read(connection: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                head.lines().find_map(|line| {
                    let (found, value) = line.split_once(": ")?;
                    found
                        .eq_ignore_ascii_case(name)
                        .then(|| value.trim().to_owned())
                })
            };
            let is_whole = match (header("transfer-encoding"), header("content-length")) {
                (Some(_), _) => body.ends_with("0\r\n\r\n"),
                (None, Some(length)) => body.len() >= length.parse().unwrap(),
                (None, None) => true,
            };
            if is_whole {
                return Ok(text.replace("\r\n", "\n"));
            }
        }
        let number = connection.read(&mut buffer).await?;
        if number == 0 {
            return Ok(format!("{BROKEN_OFF}{text}"));
        }
        bytes.extend_from_slice(&buffer[..number]);
    }
}

/// A sink whose operator lists these hosts.
pub fn sink(inner_hosts: &[&str]) -> HttpSink {
    HttpSink::new(options(inner_hosts))
}

pub fn options(inner_hosts: &[&str]) -> HttpOptions {
    let parsed = inner_hosts.iter().map(|host| host.parse().unwrap());
    HttpOptions {
        inner_hosts: parsed.collect(),
        // Longer than any test takes.
        idle_timeout: PATIENCE,
        ..HttpOptions::default()
    }
}

/// A sink that may go to any server on this machine.
pub fn local_sink() -> HttpSink {
    sink(&["* = 127.0.0.1 ::1"])
}

/// Names that no server of the world is asked for.
#[derive(Debug, Default)]
pub struct Names(Mutex<BTreeMap<String, Vec<IpAddr>>>);

impl Names {
    pub fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        let mut names = self.0.lock().unwrap();
        names.insert(name.to_owned(), addresses.collect());
    }
}

#[async_trait]
impl NameResolver for Names {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        let names = self.0.lock().unwrap();
        let found = names.get(name).cloned();
        found.ok_or_else(|| std::io::Error::other("no such name"))
    }
}

pub fn sink_with(names: &Arc<Names>, inner_hosts: &[&str]) -> HttpSink {
    HttpSink::new(HttpOptions {
        names: names.clone(),
        ..options(inner_hosts)
    })
}

/// An address where nobody listens: the port is free again once its listener is gone.
pub async fn free_host() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

pub fn get(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
    }
}

pub fn post(url: impl Into<String>, body: &str) -> HttpRequest {
    HttpRequest {
        method: "POST".into(),
        body: Some(body.into()),
        ..get(url)
    }
}

pub fn with_headers(mut request: HttpRequest, headers: &[(&str, &str)]) -> HttpRequest {
    request.headers = headers
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    request
}

pub fn scope() -> Scope {
    Scope {
        configurator: ObjectRef::cluster_scoped("hooks"),
        idempotency_key: "key-of-this-entry".into(),
        ..Scope::default()
    }
}

pub async fn send(sink: &HttpSink, request: HttpRequest) -> Result<Answer, Fault> {
    send_as(sink, request, &scope()).await
}

pub async fn send_as(
    sink: &HttpSink,
    request: HttpRequest,
    scope: &Scope,
) -> Result<Answer, Fault> {
    let operation = Operation::Http(request);
    tokio::time::timeout(PATIENCE, execute(sink, &operation, scope))
        .await
        .expect("the sink does not answer")
}

/// What came of a request, for people.
pub fn shown(answer: Result<Answer, Fault>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) => {
            assert_eq!(fault.status, None);
            assert_eq!(fault.retry_after, None);
            return fault.to_string();
        }
    };
    assert!(answer.query_objects.is_empty());
    let response = answer.http_response.unwrap();
    let headers: String = response
        .headers
        .iter()
        .map(|(name, value)| format!("\n{name}: {value}"))
        .collect();
    format!(
        "{}{}{headers}\n\n{}",
        response.status,
        if answer.changed { " (changed)" } else { "" },
        String::from_utf8_lossy(&response.body)
    )
}
