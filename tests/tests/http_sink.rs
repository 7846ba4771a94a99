//! HTTP requests of handlers, against small servers on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use configurator_apiserver::{ApiServer, ApiServerOptions, ServeOptions};
use configurator_core::capability::{Capabilities, HttpRule};
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::plan::{Kept, Plan};
use configurator_core::request::{
    HttpRequest, Operation, Request, Requests, SecretRequest, SecretVerb,
};
use configurator_core::result::Answer;
use configurator_core::time;
use configurator_host::sinks::http::{HttpOptions, HttpSink};
use configurator_host::sinks::{Scope, Sink as _};
use configurator_store::Store;
use configurator_tests::world::PATIENCE;
use expect_test::{Expect, expect};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long a request may take at a server that is too slow for it.
const SHORT: Duration = Duration::from_millis(200);
/// The most bytes of an answer's body.
const MAX_BODY: usize = 4 << 20;

/// What a server does with a connection once it has read a request.
enum Manner {
    /// Sends these bytes and closes.
    Answers(Vec<u8>),
    /// Sends these bytes, and then these others again and again.
    GoesOn(Vec<u8>, Vec<u8>),
    /// Sends these bytes, and then one more every few milliseconds, for ever.
    Dribbles(Vec<u8>),
    /// Waits until the client has gone.
    IsSilent,
}

/// A server of one manner that keeps what it was sent.
struct Server {
    /// As a URL names it.
    host: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let keeps = seen.clone();
        let manner = Arc::new(manner);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, manner.clone(), keeps.clone()));
            }
        });
        Self { host, seen }
    }

    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::new(Manner::Answers(answer.into())).await
    }

    async fn willing() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// As in `:4321`.
    fn port(&self) -> String {
        self.host[self.host.find(':').unwrap()..].to_owned()
    }

    /// A sink that may go to this server.
    fn sink(&self) -> HttpSink {
        sink(&[&self.host])
    }

    /// The requests that came, with a name for the port that differs from run to run.
    fn requests(&self) -> Vec<String> {
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
            return Ok(format!("(broken off) {text}"));
        }
        bytes.extend_from_slice(&buffer[..number]);
    }
}

/// A sink whose operator lists these hosts.
fn sink(inner_hosts: &[&str]) -> HttpSink {
    HttpSink::new(HttpOptions {
        inner_hosts: inner_hosts.iter().map(|&host| host.to_owned()).collect(),
    })
}

/// An address where nobody listens: the port is free again once its listener is gone.
async fn free_host() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

fn get(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
    }
}

fn post(url: impl Into<String>, body: &str) -> HttpRequest {
    HttpRequest {
        method: "POST".into(),
        body: Some(body.into()),
        ..get(url)
    }
}

fn with_headers(mut request: HttpRequest, headers: &[(&str, &str)]) -> HttpRequest {
    request.headers = headers
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    request
}

fn scope() -> Scope {
    Scope {
        configurator: "hooks".into(),
        idempotency_key: "key-of-this-entry".into(),
        ..Scope::default()
    }
}

async fn send(sink: &HttpSink, request: HttpRequest) -> Result<Answer, Fault> {
    send_as(sink, request, &scope()).await
}

async fn send_as(sink: &HttpSink, request: HttpRequest, scope: &Scope) -> Result<Answer, Fault> {
    let operation = Operation::Http(request);
    tokio::time::timeout(PATIENCE, sink.execute(&operation, scope))
        .await
        .expect("the sink does not answer")
}

/// What came of a request, for people.
fn shown(answer: Result<Answer, Fault>) -> String {
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

/// Sends a request to a willing server: how it arrives there, or why it is not sent.
async fn check_arrival(request: impl FnOnce(&Server) -> HttpRequest, expected: Expect) {
    let server = Server::willing().await;
    let answer = send(&server.sink(), request(&server)).await;
    match answer {
        Ok(_) => expected.assert_eq(&server.requests().join("\n")),
        Err(fault) => {
            assert_eq!(server.requests(), Vec::<String>::new(), "{fault}");
            expected.assert_eq(&fault.to_string().replace(&server.host, "HOST"));
        }
    }
}

/// Sends a request to a server that answers with these bytes: what the next handler gets.
async fn check_answer(answer: &[u8], expected: Expect) {
    let server = Server::answering(answer).await;
    let found = shown(send(&server.sink(), post(server.url("/"), "x")).await);
    expected.assert_eq(&found.replace(&server.host, "HOST"));
}

#[tokio::test]
async fn a_request_arrives_as_it_was_written() {
    check_arrival(
        |server| {
            with_headers(
                post(server.url("/v1/a%20b/../c?q=1&q=%2F#part"), "{\"a\": 1}"),
                &[
                    ("Content-Type", "application/json"),
                    ("Authorization", "Bearer t"),
                    ("X-Many", "1"),
                    ("x-many", "2"),
                    ("x-name", "Zoë"),
                    ("x-empty", ""),
                ],
            )
        },
        expect![[r#"
            POST /v1/c?q=1&q=%2F HTTP/1.1
            content-type: application/json
            authorization: Bearer t
            x-many: 1
            x-many: 2
            x-name: Zoë
            x-empty: 
            idempotency-key: key-of-this-entry
            accept: */*
            host: 127.0.0.1:PORT
            content-length: 8

            {"a": 1}"#]],
    )
    .await;
    check_arrival(
        |server| get(server.url("")),
        expect![[r#"
            GET / HTTP/1.1
            idempotency-key: key-of-this-entry
            accept: */*
            host: 127.0.0.1:PORT

        "#]],
    )
    .await;
    check_arrival(
        |server| HttpRequest {
            method: "PURGE".into(),
            ..get(server.url("/x"))
        },
        expect![[r#"
            PURGE /x HTTP/1.1
            idempotency-key: key-of-this-entry
            accept: */*
            host: 127.0.0.1:PORT

        "#]],
    )
    .await;
    check_arrival(
        |server| post(server.url("/"), ""),
        expect![[r#"
            POST / HTTP/1.1
            idempotency-key: key-of-this-entry
            accept: */*
            host: 127.0.0.1:PORT

        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_handler_may_bring_its_own_idempotency_key() {
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("IDEMPOTENCY-Key", "mine")]),
        expect![[r#"
            GET / HTTP/1.1
            idempotency-key: mine
            accept: */*
            host: 127.0.0.1:PORT

        "#]],
    )
    .await;
}

#[tokio::test]
async fn headers_that_say_where_a_request_ends_or_goes_must_be_true() {
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("HOST", "other.example")]),
        expect!["ResourceGeneric: a request cannot set the header `host`: it follows from the URL"],
    )
    .await;
    check_arrival(
        |server| with_headers(post(server.url("/"), "four"), &[("Content-Length", "4")]),
        expect![[r#"
            POST / HTTP/1.1
            content-length: 4
            idempotency-key: key-of-this-entry
            accept: */*
            host: 127.0.0.1:PORT

            four"#]],
    )
    .await;
    check_arrival(
        |server| {
            with_headers(
                post(server.url("/"), "GET /other HTTP/1.1"),
                &[("content-length", "0")],
            )
        },
        expect!["ResourceGeneric: the header `content-length` is not the length of the body, 19"],
    )
    .await;
    check_arrival(
        |server| with_headers(post(server.url("/"), "x"), &[("content-length", "1, 1")]),
        expect!["ResourceGeneric: the header `content-length` is not the length of the body, 1"],
    )
    .await;
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("content-length", "4")]),
        expect!["ResourceGeneric: the header `content-length` is not the length of the body, 0"],
    )
    .await;
}

#[tokio::test]
async fn headers_between_neighbours_are_the_handlers_own() {
    check_arrival(
        |server| {
            with_headers(
                post(server.url("/"), "four"),
                &[
                    ("Connection", "close, x-hop"),
                    ("X-Hop", "1"),
                    ("TE", "trailers"),
                    ("Proxy-Authorization", "Basic x"),
                    ("Transfer-Encoding", "chunked"),
                ],
            )
        },
        expect![[r#"
            POST / HTTP/1.1
            connection: close, x-hop
            x-hop: 1
            te: trailers
            proxy-authorization: Basic x
            transfer-encoding: chunked
            idempotency-key: key-of-this-entry
            accept: */*
            host: 127.0.0.1:PORT

            4
            four
            0

        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_header_or_method_that_cannot_be_sent_is_named_and_its_value_is_not_shown() {
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("x-a", "s3cret\r\nx-b: 1")]),
        expect!["ResourceGeneric: the header `x-a` has a value with a control character"],
    )
    .await;
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("x-a", "s3cret\0")]),
        expect!["ResourceGeneric: the header `x-a` has a value with a control character"],
    )
    .await;
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("x a", "s3cret")]),
        expect![[r#"ResourceGeneric: "x a" is no name of a header"#]],
    )
    .await;
    check_arrival(
        |server| with_headers(get(server.url("/")), &[("", "s3cret")]),
        expect![[r#"ResourceGeneric: "" is no name of a header"#]],
    )
    .await;
    check_arrival(
        |server| HttpRequest {
            method: "GET / HTTP/1.1\r\nx:".into(),
            ..get(server.url("/"))
        },
        expect![[r#"ResourceGeneric: "GET / HTTP/1.1\r\nx:" is no HTTP method"#]],
    )
    .await;
}

#[tokio::test]
async fn any_status_is_an_answer_that_the_next_handler_judges() {
    check_answer(
        b"HTTP/1.1 200 Fine\r\nContent-Type: text/plain\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Raw: \xff\r\nContent-Length: 5\r\n\r\nhello",
        expect![[r#"
            200 (changed)
            content-type: text/plain
            set-cookie: a=1
            set-cookie: b=2
            x-raw: �
            content-length: 5

            hello"#]],
    )
    .await;
    check_answer(
        b"HTTP/1.1 204 No Content\r\n\r\n",
        expect![[r#"
            204 (changed)

        "#]],
    )
    .await;
    check_answer(
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno",
        expect![[r#"
            404 (changed)
            content-length: 2

            no"#]],
    )
    .await;
    // A wait that the endpoint asks for is in its header, for the next handler; there is no fault that could carry it.
    check_answer(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n",
        expect![[r#"
            429 (changed)
            retry-after: 7
            content-length: 0

        "#]],
    )
    .await;
    check_answer(
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\ncontent-length: 0\r\n\r\n",
        expect![[r#"
            503 (changed)
            retry-after: Wed, 21 Oct 2026 07:28:00 GMT
            content-length: 0

        "#]],
    )
    .await;
    // Without a length, the body ends with the connection.
    check_answer(
        b"HTTP/1.0 500 Oh\r\n\r\nbroken",
        expect![[r#"
            500 (changed)

            broken"#]],
    )
    .await;
    check_answer(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        expect![[r#"
            200 (changed)
            transfer-encoding: chunked

            abcde"#]],
    )
    .await;
    // Nothing was offered, so nothing is unpacked.
    check_answer(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x08",
        expect![[r#"
            200 (changed)
            content-encoding: gzip
            content-length: 3

            �"#]],
    )
    .await;
    check_answer(
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        expect![[r#"
            200 (changed)
            content-length: 0

        "#]],
    )
    .await;
}

#[tokio::test]
async fn only_methods_that_read_change_nothing() {
    let server = Server::willing().await;
    let sink = server.sink();
    let mut table = String::new();
    for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] {
        let request = HttpRequest {
            method: method.into(),
            ..get(server.url("/"))
        };
        let answer = send(&sink, request).await.unwrap();
        table += &format!("{method}: {}\n", answer.changed);
    }
    expect![[r#"
        GET: false
        HEAD: false
        OPTIONS: false
        POST: true
        PUT: true
        PATCH: true
        DELETE: true
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let other = Server::willing().await;
    for status in ["301 Moved", "302 Found", "303 See", "307 Same", "308 Same"] {
        let server = Server::answering(format!(
            "HTTP/1.1 {status}\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            other.url("/elsewhere")
        ))
        .await;
        // Also where the other host may be reached.
        let sink = sink(&[&server.host, &other.host]);
        let answer = send(&sink, get(server.url("/"))).await.unwrap();
        let response = answer.http_response.unwrap();
        assert_eq!(response.status.to_string(), status[..3]);
        let location = ("location".to_owned(), other.url("/elsewhere"));
        assert!(response.headers.contains(&location));
        assert_eq!(server.requests().len(), 1);
    }
    assert_eq!(other.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_unless_it_is_listed() {
    let server = Server::willing().await;
    let port = server.port();
    let sink = sink(&["*.example", "10.0.0.1", "127.0.0.2:*"]);
    let mut table = String::new();
    for host in [
        "127.0.0.1",
        "localhost",
        "LocalHost",
        "[::1]",
        "[::]",
        "0.0.0.0",
        "10.1.2.3",
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[::7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "240.0.0.1",
    ] {
        let fault = send(&sink, get(format!("http://{host}{port}/")))
            .await
            .unwrap_err();
        let line = fault.to_string().replace(&port, ":PORT");
        // A name may have several addresses, and which is met first is a matter of the machine.
        table += &match line.split_once(" has the address ") {
            Some((start, end)) if host.eq_ignore_ascii_case("localhost") => {
                format!(
                    "{start} has the address …,{}\n",
                    end.split_once(',').unwrap().1
                )
            }
            _ => format!("{line}\n"),
        };
    }
    expect![[r#"
        ResourcePermission: 127.0.0.1:PORT has the address 127.0.0.1, which is not public; the operator of the host must list 127.0.0.1:PORT in the setting http_inner_hosts
        ResourcePermission: localhost:PORT has the address …, which is not public; the operator of the host must list localhost:PORT in the setting http_inner_hosts
        ResourcePermission: localhost:PORT has the address …, which is not public; the operator of the host must list localhost:PORT in the setting http_inner_hosts
        ResourcePermission: [::1]:PORT has the address ::1, which is not public; the operator of the host must list [::1]:PORT in the setting http_inner_hosts
        ResourcePermission: [::]:PORT has the address ::, which is not public; the operator of the host must list [::]:PORT in the setting http_inner_hosts
        ResourcePermission: 0.0.0.0:PORT has the address 0.0.0.0, which is not public; the operator of the host must list 0.0.0.0:PORT in the setting http_inner_hosts
        ResourcePermission: 10.1.2.3:PORT has the address 10.1.2.3, which is not public; the operator of the host must list 10.1.2.3:PORT in the setting http_inner_hosts
        ResourcePermission: 169.254.169.254:PORT has the address 169.254.169.254, which is not public; the operator of the host must list 169.254.169.254:PORT in the setting http_inner_hosts
        ResourcePermission: [fe80::1]:PORT has the address fe80::1, which is not public; the operator of the host must list [fe80::1]:PORT in the setting http_inner_hosts
        ResourcePermission: [::ffff:7f00:1]:PORT has the address ::ffff:127.0.0.1, which is not public; the operator of the host must list [::ffff:7f00:1]:PORT in the setting http_inner_hosts
        ResourcePermission: [::ffff:a9fe:a9fe]:PORT has the address ::ffff:169.254.169.254, which is not public; the operator of the host must list [::ffff:a9fe:a9fe]:PORT in the setting http_inner_hosts
        ResourcePermission: [::7f00:1]:PORT has the address ::7f00:1, which is not public; the operator of the host must list [::7f00:1]:PORT in the setting http_inner_hosts
        ResourcePermission: [64:ff9b::7f00:1]:PORT has the address 64:ff9b::7f00:1, which is not public; the operator of the host must list [64:ff9b::7f00:1]:PORT in the setting http_inner_hosts
        ResourcePermission: [2002:7f00:1::]:PORT has the address 2002:7f00:1::, which is not public; the operator of the host must list [2002:7f00:1::]:PORT in the setting http_inner_hosts
        ResourcePermission: 240.0.0.1:PORT has the address 240.0.0.1, which is not public; the operator of the host must list 240.0.0.1:PORT in the setting http_inner_hosts
    "#]].assert_eq(&table);
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_listed_host_may_have_any_address() {
    let server = Server::willing().await;
    let port = server.port();
    for listed in [&*server.host, "127.*", "LOCALHOST:*", "*"] {
        let host = if listed.starts_with('L') {
            format!("localhost{port}")
        } else {
            server.host.clone()
        };
        let answer = send(&sink(&[listed]), get(format!("http://{host}/"))).await;
        assert!(answer.is_ok(), "{listed}: {answer:?}");
    }
    // Without its port it stands for the port of the scheme.
    for listed in ["127.0.0.1", "127.0.0.1:1", "localhost:*", ""] {
        let answer = send(&sink(&[listed]), get(server.url("/"))).await;
        assert_eq!(
            answer.unwrap_err().kind,
            FaultKind::ResourcePermission,
            "{listed}"
        );
    }
    assert_eq!(server.requests().len(), 4);
}

/// The address that was checked is the one that is used; the name stays in the request.
#[tokio::test]
async fn a_name_is_resolved_by_the_host_and_stays_in_the_request() {
    let server = Server::willing().await;
    let port = server.port();
    for name in ["localhost", "LOCALHOST"] {
        let request = get(format!("http://{name}{port}/"));
        send(&sink(&["localhost*:*"]), request).await.unwrap();
    }
    let requests = server.requests().join("");
    let hosts: Vec<&str> = requests
        .lines()
        .filter(|line| line.starts_with("host:"))
        .collect();
    expect![[r#"
        host: localhost:PORT
        host: localhost:PORT"#]]
    .assert_eq(&hosts.join("\n"));
}

#[tokio::test]
async fn a_url_must_name_its_host_plainly() {
    let server = Server::willing().await;
    let port = server.port();
    let sink = sink(&["127.0.0.1:*", "localhost:*", "[::1]:*"]);
    let mut table = String::new();
    for url in [
        "",
        "/path",
        "localhost",
        "http:",
        "http://",
        "http:///path",
        "http://:PORT/",
        "http:127.0.0.1:PORT/",
        "http:/127.0.0.1:PORT/",
        "http:\\\\127.0.0.1:PORT/",
        " http://127.0.0.1:PORT/",
        "http://127.0.0.1:PORT:1/",
        "http://127.0.0.1:99999/",
        "http://[::1/",
        "file:///etc/passwd",
        "ftp://127.0.0.1:PORT/",
        "gopher://127.0.0.1:PORT/",
        "unix:///run/docker.sock",
        "data:text/plain,x",
        "mailto:s3cret@example.com",
        "http://user:s3cret@127.0.0.1:PORT/",
        "http://s3cret@127.0.0.1:PORT/",
        "http://10.0.0.1\\@127.0.0.1:PORT/",
        "http://127.0.0.1:0080/",
        "http://127.0.0.1:/",
        "http://2130706433:PORT/",
        "http://0x7f.1:PORT/",
        "http://127.1:PORT/",
        "http://0177.0.0.1:PORT/",
        "http://%6cocalhost:PORT/",
        "http://local\thost:PORT/",
        "http://[0:0:0:0:0:0:0:1]:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://①②⑦.0.0.1:PORT/",
        "http://lőcalhost:PORT/",
    ] {
        let answer = send(&sink, get(url.replace(":PORT", &port))).await;
        let line = shown(answer).replace(&port, ":PORT");
        table += &format!("{url}\n    {line}\n");
        assert!(!line.contains("s3cret"), "{line}");
    }
    expect![[r#"

            ResourceGeneric: the URL cannot be read: relative URL without a base
        /path
            ResourceGeneric: the URL cannot be read: relative URL without a base
        localhost
            ResourceGeneric: the URL cannot be read: relative URL without a base
        http:
            ResourceGeneric: the URL cannot be read: empty host
        http://
            ResourceGeneric: the URL cannot be read: empty host
        http:///path
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http://:PORT/
            ResourceGeneric: the URL cannot be read: empty host
        http:127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http:/127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http:\\127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
         http://127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http://127.0.0.1:PORT:1/
            ResourceGeneric: the URL cannot be read: invalid port number
        http://127.0.0.1:99999/
            ResourceGeneric: the URL cannot be read: invalid port number
        http://[::1/
            ResourceGeneric: the URL cannot be read: invalid IPv6 address
        file:///etc/passwd
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        ftp://127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        gopher://127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        unix:///run/docker.sock
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        data:text/plain,x
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        mailto:s3cret@example.com
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http://user:s3cret@127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http://s3cret@127.0.0.1:PORT/
            ResourceGeneric: the URL must be http or https, with a host and without credentials
        http://10.0.0.1\@127.0.0.1:PORT/
            ResourcePermission: 10.0.0.1 has the address 10.0.0.1, which is not public; the operator of the host must list 10.0.0.1 in the setting http_inner_hosts
        http://127.0.0.1:0080/
            ResourceGeneric: the URL does not name its host plainly: "127.0.0.1:0080" is "127.0.0.1"
        http://127.0.0.1:/
            ResourceGeneric: the URL does not name its host plainly: "127.0.0.1:" is "127.0.0.1"
        http://2130706433:PORT/
            ResourceGeneric: the URL does not name its host plainly: "2130706433:PORT" is "127.0.0.1:PORT"
        http://0x7f.1:PORT/
            ResourceGeneric: the URL does not name its host plainly: "0x7f.1:PORT" is "127.0.0.1:PORT"
        http://127.1:PORT/
            ResourceGeneric: the URL does not name its host plainly: "127.1:PORT" is "127.0.0.1:PORT"
        http://0177.0.0.1:PORT/
            ResourceGeneric: the URL does not name its host plainly: "0177.0.0.1:PORT" is "127.0.0.1:PORT"
        http://%6cocalhost:PORT/
            ResourceGeneric: the URL does not name its host plainly: "%6cocalhost:PORT" is "localhost:PORT"
        http://local	host:PORT/
            ResourceGeneric: the URL does not name its host plainly: "local\thost:PORT" is "localhost:PORT"
        http://[0:0:0:0:0:0:0:1]:PORT/
            ResourceGeneric: the URL does not name its host plainly: "[0:0:0:0:0:0:0:1]:PORT" is "[::1]:PORT"
        http://[::ffff:127.0.0.1]:PORT/
            ResourceGeneric: the URL does not name its host plainly: "[::ffff:127.0.0.1]:PORT" is "[::ffff:7f00:1]:PORT"
        http://①②⑦.0.0.1:PORT/
            ResourceGeneric: the URL does not name its host plainly: "①②⑦.0.0.1:PORT" is "127.0.0.1:PORT"
        http://lőcalhost:PORT/
            ResourceGeneric: the URL does not name its host plainly: "lőcalhost:PORT" is "xn--lcalhost-1sb:PORT"
    "#]].assert_eq(&table);
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_reached_is_an_outage() {
    let fault = send(&sink(&["*"]), get(format!("http://{}/", free_host().await)))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::HttpUnavailable);
    assert_eq!(fault.kind.reaction(), Reaction::Park);
    assert!(fault.message.contains("tcp connect error: "), "{fault}");

    // A label that is too long for any name, so that nobody is asked.
    let name = format!("{}.invalid", "a".repeat(64));
    let fault = send(&sink(&["*"]), get(format!("http://{name}/")))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::HttpUnavailable);
    let start = format!("{name} cannot be resolved: ");
    assert!(fault.message.starts_with(&start), "{fault}");
}

/// Messages end up in conditions, Events and logs.
#[tokio::test]
async fn no_fault_shows_what_a_request_or_an_answer_carries() {
    const SECRET: &str = "s3cret";
    let request = |url: &str| {
        with_headers(
            post(format!("{url}/s3cret?key=s3cret#s3cret"), SECRET),
            &[("Authorization", "Bearer s3cret")],
        )
    };
    let mut faults = Vec::new();
    let whole = sink(&["*"]);
    for manner in [
        Manner::Answers(b"s3cret\r\n\r\n".to_vec()),
        Manner::Answers(
            b"HTTP/1.1 200 s3cret\r\nx: s3cret\r\ncontent-length: 9\r\n\r\ns3cret".to_vec(),
        ),
        Manner::Answers(b"HTTP/1.1 200 OK\r\ns3cret: \0\r\n\r\n".to_vec()),
        Manner::GoesOn(
            b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
            SECRET.repeat(1_000).into(),
        ),
        Manner::IsSilent,
    ] {
        let server = Server::new(manner).await;
        let scope = Scope {
            timeout: Some(Duration::from_secs(1)),
            ..scope()
        };
        faults.push(send_as(&whole, request(&server.url("")), &scope).await);
    }
    let refused = format!("http://{}", free_host().await);
    let unknown = format!("http://{}.invalid", "a".repeat(64));
    for url in [
        &refused,
        &unknown,
        "http://127.1",
        "http://u:s3cret@127.0.0.1",
        "ftp://127.0.0.1",
        "//s3cret",
    ] {
        faults.push(send(&whole, request(url)).await);
    }
    faults.push(send(&sink(&[]), request(&refused)).await);
    for header in [
        ("Host", "s3cret"),
        ("Content-Length", "s3cret"),
        ("X-A", "s3cret\0"),
    ] {
        faults.push(send(&whole, with_headers(post(&refused, SECRET), &[header])).await);
    }
    let long = format!("{refused}/{}", SECRET.repeat(20_000));
    faults.push(send(&whole, get(long)).await);
    for found in faults {
        let fault = found.unwrap_err();
        assert!(!fault.message.contains(SECRET), "{fault}");
    }
}

#[tokio::test]
async fn a_url_that_is_too_long_is_not_sent_and_no_outage() {
    check_arrival(
        |server| get(server.url(&format!("/{}", "x".repeat(70_000)))),
        expect!["ResourceGeneric: HOST: builder error: Parsed Url is not a valid Uri"],
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_none_or_breaks_off_is_an_outage() {
    check_answer(b"", expect!["HttpUnavailable: HOST: error sending request: client error (SendRequest): connection closed before message completed"]).await;
    check_answer(b"I speak something else\r\n\r\n", expect!["HttpUnavailable: HOST: error sending request: client error (SendRequest): invalid HTTP version parsed"]).await;
    check_answer(
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        expect!["HttpUnavailable: HOST: error decoding response body: error reading a body from connection: end of file before message length reached"],
    )
    .await;
    check_answer(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nhalf",
        expect!["HttpUnavailable: HOST: error decoding response body: error reading a body from connection: end of file before message length reached"],
    )
    .await;
    let many = "x: 1\r\n".repeat(1_000);
    check_answer(
        format!("HTTP/1.1 200 OK\r\n{many}\r\n").as_bytes(),
        expect!["HttpUnavailable: HOST: error sending request: client error (SendRequest): message head is too large"],
    )
    .await;
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_an_outage() {
    let api = ApiServer::open(Store::memory(), ApiServerOptions::new(Timestamp::now))
        .await
        .unwrap();
    let options = ServeOptions {
        addr: "127.0.0.1:0".parse().unwrap(),
        token: None,
    };
    let (at, serving) = api.serve(options, std::future::pending()).await.unwrap();
    tokio::spawn(serving);
    let request = get(format!("{}/version?key=s3cret", at.url));
    let fault = send(&sink(&["*"]), request).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HttpUnavailable, "{fault}");
    assert!(fault.message.contains("certificate"), "{fault}");
    assert!(!fault.message.contains("s3cret"), "{fault}");
}

#[tokio::test]
async fn a_server_that_is_too_slow_is_an_outage() {
    let scope = Scope {
        timeout: Some(SHORT),
        ..scope()
    };
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".to_vec();
    for manner in [
        Manner::IsSilent,
        Manner::Dribbles(b"HTTP/1.1 200 OK\r\nx-long: ".to_vec()),
        Manner::Dribbles(head),
    ] {
        let server = Server::new(manner).await;
        let request = post(server.url("/a?key=s3cret"), "s3cret");
        let fault = send_as(&server.sink(), request, &scope).await.unwrap_err();
        let said = fault.to_string().replace(&server.host, "HOST");
        assert_eq!(
            said,
            "HttpUnavailable: POST http://HOST: no answer within 200ms"
        );
    }
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let whole = |length: usize| {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b'x');
        Manner::Answers(answer)
    };
    let endless = Manner::GoesOn(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
        format!("1000\r\n{}\r\n", "x".repeat(0x1000)).into_bytes(),
    );
    let mut table = String::new();
    for manner in [whole(MAX_BODY), whole(MAX_BODY + 1), endless] {
        let server = Server::new(manner).await;
        let answer = send(&server.sink(), get(server.url("/?key=s3cret"))).await;
        table += &match answer {
            Ok(answer) => format!("{} bytes\n", answer.http_response.unwrap().body.len()),
            Err(fault) => format!("{}\n", fault.to_string().replace(&server.host, "HOST")),
        };
    }
    expect![[r#"
        4194304 bytes
        ResourceGeneric: the answer of HOST has more than 4194304 bytes
        ResourceGeneric: the answer of HOST has more than 4194304 bytes
    "#]]
    .assert_eq(&table);
}

/// A proxy would see what is meant for others, and connect to where the host does not.
#[test]
fn proxies_of_the_environment_are_not_used() {
    const TEST: &str = "proxies_of_the_environment_are_not_used";
    const TARGET: &str = "HTTP_SINK_TEST_TARGET";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // The environment of a process cannot be changed safely, so the request is made by another one.
    if let Ok(url) = std::env::var(TARGET) {
        let answer = runtime.block_on(send(&sink(&["*"]), get(url)));
        assert_eq!(answer.unwrap().http_response.unwrap().status, 200);
        return;
    }
    let (server, proxy) =
        runtime.block_on(async { (Server::willing().await, Server::willing().await) });
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", TEST]).env(TARGET, server.url("/"));
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        other.env(name, proxy.url(""));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        other.env_remove(name);
    }
    let output = other.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(proxy.requests(), Vec::<String>::new());
}

/// The rule that allows a request is looked for before anything of the output is sent.
#[test]
fn the_plan_checks_method_and_host_before_the_sink_is_asked() {
    let capabilities = Capabilities {
        http: vec![HttpRule {
            hosts: vec!["hooks.example.com".into(), "*.internal.example:8443".into()],
            methods: vec!["POST".into()],
        }],
        ..Capabilities::default()
    };
    let mut table = String::new();
    for (method, url) in [
        ("POST", "https://hooks.example.com/x"),
        ("POST", "http://HOOKS.example.com:80/x"),
        ("POST", "https://a.internal.example:8443/"),
        ("GET", "https://hooks.example.com/x"),
        ("POST", "https://hooks.example.com:8443/x"),
        ("POST", "https://hooks.example.com.evil.example/"),
        ("POST", "https://evil.example/?a.internal.example:8443"),
        ("POST", "https://evil.example\\.internal.example:8443"),
        ("POST", "https://169.254.169.254/latest"),
    ] {
        let request = HttpRequest {
            method: method.into(),
            ..get(url)
        };
        let requests = Requests {
            resource_requests: vec![Request::new("hook", Operation::Http(request))],
            ..Requests::default()
        };
        let ceiling = Capabilities::everything();
        let plan = Plan::of(requests, &Kept::new(), &capabilities, &ceiling, "shop");
        let said = match plan.refused(time::Timestamp::from_millis(0)) {
            None => "sent".to_owned(),
            Some(results) => results[0].error.as_ref().unwrap().to_string(),
        };
        table += &format!("{method} {url}\n    {said}\n");
    }
    expect![[r#"
        POST https://hooks.example.com/x
            sent
        POST http://HOOKS.example.com:80/x
            sent
        POST https://a.internal.example:8443/
            sent
        GET https://hooks.example.com/x
            ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [hooks.example.com], methods: [GET]}
        POST https://hooks.example.com:8443/x
            ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [hooks.example.com:8443], methods: [POST]}
        POST https://hooks.example.com.evil.example/
            ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [hooks.example.com.evil.example], methods: [POST]}
        POST https://evil.example/?a.internal.example:8443
            ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [evil.example], methods: [POST]}
        POST https://evil.example\.internal.example:8443
            ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [evil.example], methods: [POST]}
        POST https://169.254.169.254/latest
            ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [169.254.169.254], methods: [POST]}
    "#]].assert_eq(&table);
}

#[tokio::test]
async fn an_operation_for_another_sink_is_refused_and_a_probe_asks_nobody() {
    let sink = sink(&[]);
    let operation = Operation::Secret(SecretRequest {
        name: "a".into(),
        verb: SecretVerb::Get,
        value: None,
    });
    let fault = sink.execute(&operation, &scope()).await.unwrap_err();
    expect![
        "UnsupportedResourceOperation: a request for the secretstore sink came to the http sink"
    ]
    .assert_eq(&fault.to_string());
    sink.probe().await.unwrap();
}
