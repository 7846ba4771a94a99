//! Requests, as they are sent or refused.

use configurator_core::capability::{Capabilities, HttpRule};
use configurator_core::ceiling::Ceiling;
use configurator_core::plan::{EntryId, Kept, Plan, PlanRules};
use configurator_core::request::{
    HttpRequest, ObjectRef, Operation, Request, Requests, SecretRequest, SecretVerb,
};
use configurator_core::time;
use configurator_host::sinks::Sink as _;
use configurator_tests::unlimited::execute;
use expect_test::{Expect, expect};

use crate::bench::{Server, get, post, scope, send, sink, with_headers};

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
async fn a_url_that_is_too_long_is_not_sent_and_no_outage() {
    check_arrival(
        |server| get(server.url(&format!("/{}", "x".repeat(70_000)))),
        expect!["ResourceGeneric: HOST: builder error: Parsed Url is not a valid Uri"],
    )
    .await;
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
        let ceiling = Ceiling::unlimited();
        let rules = PlanRules {
            configurator: &ObjectRef::cluster_scoped("demo"),
            capabilities: &capabilities,
            ceiling: &ceiling,
            namespace: "shop",
            entry: EntryId {
                run: "run",
                phase: "root",
                number: 1,
            },
        };
        let plan = Plan::of(requests, &Kept::new(), rules).unwrap();
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
        version: None,
        partition: None,
    });
    let fault = execute(&sink, &operation, &scope()).await.unwrap_err();
    expect![
        "UnsupportedResourceOperation: a request for the secretstore sink came to the http sink"
    ]
    .assert_eq(&fault.to_string());
    sink.probe().await.unwrap();
}
