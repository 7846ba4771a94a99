//! Answers, and what is none.

use std::time::Duration;

use configurator_apiserver::{ApiServer, ApiServerOptions, ServeOptions};
use configurator_core::fault::{FaultKind, Reaction};
use configurator_host::sinks::Scope;
use configurator_store::Store;
use expect_test::{Expect, expect};
use jiff::Timestamp;

use crate::bench::{
    Manner, SHORT, Server, free_host, get, local_sink, post, scope, send, send_as, shown, sink,
    with_headers,
};

/// The most bytes of an answer's body.
const MAX_BODY: usize = 4 << 20;

/// Sends a request to a server that answers with these bytes: what the next handler gets.
async fn check_answer(answer: &[u8], expected: Expect) {
    let server = Server::answering(answer).await;
    let found = shown(send(&server.sink(), post(server.url("/"), "x")).await);
    expected.assert_eq(&found.replace(&server.host, "HOST"));
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
async fn what_cannot_be_reached_is_an_outage() {
    let fault = send(&local_sink(), get(format!("http://{}/", free_host().await)))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::HttpUnavailable);
    assert_eq!(fault.kind.reaction(), Reaction::Park);
    assert!(fault.message.contains("tcp connect error: "), "{fault}");

    // A label that is too long for any name, so that nobody is asked.
    let name = format!("{}.invalid", "a".repeat(64));
    let fault = send(&local_sink(), get(format!("http://{name}/")))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::HttpUnavailable);
    let start = format!("{name}: the name cannot be resolved: ");
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
    let whole = local_sink();
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
    let fault = send(&local_sink(), request).await.unwrap_err();
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
