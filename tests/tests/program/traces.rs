//! Traces, sent by OTLP over HTTP.

use anyhow::Result;
use configurator_tests::program::SECRET_KEY;
use expect_test::expect;

use crate::logs::secret_values;
use crate::place::Place;
use crate::web::Server;

const RUN: &str = "-f pod-config.yaml -f shop.yaml --until-settled --otlp-endpoint";

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn runs_calls_and_requests_are_sent_as_spans_without_secrets() -> Result<()> {
    let place = Place::new()?;
    let server = Server::start()?;
    let mut host = place
        .host(RUN)
        .arg(format!("http://{}", server.address))
        .start()?;
    let mut sent = Vec::new();
    while !host.has_ended()? {
        if let Some(request) = server.next_soon()? {
            let head = request.head.to_lowercase();
            assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
            assert!(
                head.contains("\r\ncontent-type: application/x-protobuf\r\n"),
                "{head}"
            );
            sent.extend_from_slice(&request.body);
            request.answer("200 OK")?;
        }
    }
    assert!(host.ended()?.success());
    assert_eq!(host.stderr(), "");
    // In protobuf, the fifth field of a span is its name: tag, length, text.
    for name in ["run", "call", "request"] {
        let field = format!("\x2a{}{name}", char::from(u8::try_from(name.len())?));
        assert!(contains(&sent, &field), "no span {name:?}");
    }
    for word in [
        "pod-config",
        "shop/web-1",
        "write-config",
        "create pod-shop.web-2",
    ] {
        assert!(contains(&sent, word), "no span shows {word:?}");
    }
    let secrets = secret_values(&place)?;
    assert_eq!(secrets.len(), 2);
    for secret in secrets.iter().map(String::as_str).chain([SECRET_KEY]) {
        assert!(!contains(&sent, secret), "a secret was sent");
    }
    Ok(())
}

#[test]
fn a_collector_that_is_away_is_named_once_and_harms_nothing() -> Result<()> {
    let place = Place::new()?;
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let output = place.host(RUN).arg(format!("http://{free}")).output()?;
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout)?;
    assert_eq!(printed.matches('✓').count(), 2, "{printed}");
    let complaint = String::from_utf8(output.stderr)?.replace(&free.to_string(), "ADDRESS");
    let (_, complaint) = complaint.split_once(" WARN ").unwrap();
    expect![[r#"
        configurator_host::cli::telemetry: traces cannot be sent to http://ADDRESS; they are dropped error=Operation failed: HTTP export failed: network error
    "#]].assert_eq(complaint);
    Ok(())
}

#[test]
fn an_address_of_no_collector_is_refused() -> Result<()> {
    let place = Place::new()?;
    let refusals = [
        (
            "hello",
            expect![[r#"
            error: "hello" is no address of a collector; try http://127.0.0.1:4318
        "#]],
        ),
        (
            "127.0.0.1:4318",
            expect![[r#"
            error: "127.0.0.1:4318" is no address of a collector; try http://127.0.0.1:4318
        "#]],
        ),
        (
            "ftp://127.0.0.1",
            expect![[r#"
            error: "ftp://127.0.0.1" is no address of a collector; try http://127.0.0.1:4318
        "#]],
        ),
        (
            "http://no place",
            expect![[r#"
            error: "http://no place" is no address of a collector; try http://127.0.0.1:4318: invalid exporter configuration: endpoint: invalid endpoint 'http://no place/v1/traces': invalid uri character
        "#]],
        ),
    ];
    for (address, expected) in refusals {
        let output = place.host(RUN).arg(address).output()?;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        expected.assert_eq(&String::from_utf8(output.stderr)?);
    }
    assert!(!place.path("data").exists(), "nothing was begun");
    Ok(())
}
