//! The addresses that requests may go to.

use std::sync::Arc;

use configurator_core::fault::FaultKind;
use expect_test::expect;

use crate::bench::{Names, Server, get, local_sink, send, shown, sink, sink_with};

/// Hosts that all stand for an address that is forbidden unless it is listed.
const FORBIDDEN: &[&str] = &[
    // Loopback, plainly and as URL parsers read it.
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "00000177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0x0.1",
    "127.0.0.1.",
    "127.1.",
    "0x7f000001.",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "①②⑦.⓪.⓪.①",
    "１２７.０.０.１",
    "127。0。0。1",
    "127．0｡0.1",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "%6cocalhost",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "user@127.0.0.1",
    "user:password@127.0.0.1",
    "1.1.1.1@127.0.0.1",
    "127.0.0.1\\@1.1.1.1",
    "127.0.0.1#@1.1.1.1",
    "127.0.0.1?@1.1.1.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0:7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[2001::80ff:fffe]",
    "[2606:4700::5efe:7f00:1]",
    "[::1%25lo]",
    "[::1%lo]",
    // No address at all.
    "0.0.0.0",
    "0",
    "0x0",
    "0.1.2.3",
    "[::]",
    "[::ffff:0.0.0.0]",
    // Metadata services.
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.254.170.2",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[fe80::a9fe:a9fe]",
    "168.63.129.16",
    "2822734096",
    "[::ffff:a83f:8110]",
    "100.100.100.200",
    "192.0.0.192",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fd00:c1::a9fe:a9fe]",
    // Private and shared networks.
    "10.0.0.1",
    "10.1",
    "167772161",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.168.257",
    "100.64.0.1",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[::ffff:a00:1]",
    // Everything else that is not of the internet.
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "198.18.0.1",
    "192.88.99.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "[ff02::1]",
    "[fe80::1]",
    "[100::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[4000::1]",
];

/// No connection is tried: that would be an outage, or an answer where the address is that of the server.
#[tokio::test]
async fn every_spelling_of_a_forbidden_address_is_refused_before_a_connection_is_made() {
    let server = Server::willing().await;
    let port = server.port();
    let mut table = String::new();
    // A network, however wide, has none of the addresses that must be listed themselves.
    let names = Arc::new(Names::default());
    names.set("localhost", &["127.0.0.1"]);
    names.set("localhost.", &["127.0.0.1"]);
    let strict = sink_with(&names, &[]);
    let wide = sink_with(&names, &["localhost* = ::/0 0.0.0.0/0"]);
    for host in FORBIDDEN {
        for sink in [&strict, &wide] {
            let url = format!("http://{host}{port}/");
            let fault = send(sink, get(url)).await.unwrap_err();
            let line = fault.to_string().replace(&port, ":PORT");
            let reason = match fault.kind {
                FaultKind::ResourcePermission => "not permitted",
                FaultKind::ResourceGeneric if line.contains("plainly") => "not plain",
                FaultKind::ResourceGeneric if line.contains("credentials") => "credentials",
                FaultKind::ResourceGeneric => "no URL",
                _ => panic!("{host}: {line}"),
            };
            if std::ptr::eq(sink, &raw const strict) {
                table += &format!("{host}: {reason}\n");
            }
        }
    }
    assert!(FORBIDDEN.len() >= 60);
    expect![[r#"
        127.0.0.1: not permitted
        127.0.0.2: not permitted
        127.255.255.254: not permitted
        127.1: not plain
        127.0.1: not plain
        2130706433: not plain
        017700000001: not plain
        0177.0.0.1: not plain
        0177.0.0.01: not plain
        00000177.0.0.1: not plain
        0x7f.0.0.1: not plain
        0x7f000001: not plain
        0X7F000001: not plain
        0x7f.1: not plain
        0x7f.0x0.0x0.0x1: not plain
        0177.0.0x0.1: not plain
        127.0.0.1.: not plain
        127.1.: not plain
        0x7f000001.: not plain
        %31%32%37.0.0.1: not plain
        127%2e0%2e0%2e1: not plain
        ①②⑦.⓪.⓪.①: not plain
        １２７.０.０.１: not plain
        127。0。0。1: not plain
        127．0｡0.1: not plain
        𝟏𝟐𝟕.𝟎.𝟎.𝟏: not plain
        localhost: not permitted
        LOCALHOST: not permitted
        localhost.: not permitted
        %6cocalhost: not plain
        ⓛⓞⓒⓐⓛⓗⓞⓢⓣ: not plain
        user@127.0.0.1: no URL
        user:password@127.0.0.1: no URL
        1.1.1.1@127.0.0.1: no URL
        127.0.0.1\@1.1.1.1: not permitted
        127.0.0.1#@1.1.1.1: not permitted
        127.0.0.1?@1.1.1.1: not permitted
        [::1]: not permitted
        [0:0:0:0:0:0:0:1]: not plain
        [0000:0000:0000:0000:0000:0000:0000:0001]: not plain
        [::0001]: not plain
        [::ffff:127.0.0.1]: not plain
        [::ffff:7f00:1]: not permitted
        [0:0:0:0:0:ffff:7f00:1]: not plain
        [::127.0.0.1]: not plain
        [::7f00:1]: not permitted
        [::ffff:0:127.0.0.1]: not plain
        [::ffff:0:7f00:1]: not permitted
        [64:ff9b::127.0.0.1]: not plain
        [64:ff9b::7f00:1]: not permitted
        [64:ff9b:1::7f00:1]: not permitted
        [2002:7f00:1::]: not permitted
        [2001:0:7f00:1::]: not permitted
        [2001::80ff:fffe]: not permitted
        [2606:4700::5efe:7f00:1]: not permitted
        [::1%25lo]: no URL
        [::1%lo]: no URL
        0.0.0.0: not permitted
        0: not plain
        0x0: not plain
        0.1.2.3: not permitted
        [::]: not permitted
        [::ffff:0.0.0.0]: not plain
        169.254.169.254: not permitted
        2852039166: not plain
        0xa9fea9fe: not plain
        0251.0376.0251.0376: not plain
        169.254.43518: not plain
        169.254.170.2: not permitted
        [::ffff:a9fe:a9fe]: not permitted
        [64:ff9b::a9fe:a9fe]: not permitted
        [fe80::a9fe:a9fe]: not permitted
        168.63.129.16: not permitted
        2822734096: not plain
        [::ffff:a83f:8110]: not permitted
        100.100.100.200: not permitted
        192.0.0.192: not permitted
        [fd00:ec2::254]: not permitted
        [fd20:ce::254]: not permitted
        [fd00:c1::a9fe:a9fe]: not permitted
        10.0.0.1: not permitted
        10.1: not plain
        167772161: not plain
        012.0.0.1: not plain
        172.16.0.1: not permitted
        172.31.255.255: not permitted
        192.168.1.1: not permitted
        192.168.257: not plain
        100.64.0.1: not permitted
        [fc00::1]: not permitted
        [fd12:3456::1]: not permitted
        [fec0::1]: not permitted
        [::ffff:a00:1]: not permitted
        192.0.2.1: not permitted
        198.51.100.1: not permitted
        203.0.113.1: not permitted
        198.18.0.1: not permitted
        192.88.99.1: not permitted
        224.0.0.1: not permitted
        240.0.0.1: not permitted
        255.255.255.255: not permitted
        4294967295: not plain
        [ff02::1]: not permitted
        [fe80::1]: not permitted
        [100::1]: not permitted
        [2001:db8::1]: not permitted
        [3fff::1]: not permitted
        [4000::1]: not permitted
    "#]]
    .assert_eq(&table);
    assert_eq!(server.connections(), 0);
}

/// A name is in a URL as it is, and only its addresses tell where it leads.
#[tokio::test]
async fn a_name_that_leads_to_a_forbidden_address_is_refused_and_the_address_is_not_told() {
    let server = Server::willing().await;
    let port = server.port();
    let names = Arc::new(Names::default());
    let sink = sink_with(&names, &["*.shop.svc:* = private"]);
    for address in [
        "127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "100.64.0.1",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2001:0:7f00:1::",
        "2002:a9fe:a9fe::",
        "2606:4700::5efe:7f00:1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ] {
        names.set("hooks.shop.svc", &[address]);
        names.set("hooks.example.com", &[address]);
        // One good address hides no bad one.
        names.set("both.example.com", &["1.1.1.1", address]);
        for name in ["hooks.shop.svc", "hooks.example.com", "both.example.com"] {
            let answer = send(&sink, get(format!("http://{name}{port}/"))).await;
            let told = shown(answer).replace(&port, ":PORT");
            let expected = format!(
                "ResourcePermission: {name}:PORT: not permitted by the operator (setting http_inner_hosts); the log of the runtime has the reason"
            );
            assert_eq!(told, expected, "{address}");
        }
    }
    names.set("hooks.example.com", &["10.0.0.7"]);
    let answer = send(&sink, get(format!("http://hooks.example.com{port}/"))).await;
    assert!(!shown(answer).contains("10.0.0.7"));
    names.set("hooks.example.com", &[]);
    let answer = send(&sink, get(format!("http://hooks.example.com{port}/"))).await;
    let told = shown(answer).replace(&port, ":PORT");
    expect!["HttpUnavailable: hooks.example.com:PORT: the name has no address"].assert_eq(&told);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_listed_host_may_have_the_addresses_that_are_listed_for_it() {
    let server = Server::willing().await;
    let port = server.port();
    let names = Arc::new(Names::default());
    names.set("hooks.shop.svc", &["127.0.0.1"]);
    let mut reached = 0;
    for (listed, host) in [
        (server.host.clone(), "127.0.0.1"),
        ("127.* = 127.0.0.1".to_owned(), "127.0.0.1"),
        (
            format!("HOOKS.shop.svc{port} = 127.0.0.1"),
            "hooks.shop.svc",
        ),
        (
            "*.svc:* = 10.0.0.0/8 127.0.0.1/32".to_owned(),
            "hooks.shop.svc",
        ),
        ("* = ::ffff:127.0.0.1".to_owned(), "hooks.shop.svc"),
    ] {
        let sink = sink_with(&names, &[&listed]);
        let answer = send(&sink, get(format!("http://{host}{port}/"))).await;
        assert!(answer.is_ok(), "{listed}: {answer:?}");
        reached += 1;
    }
    for (listed, host) in [
        // Without its port it stands for the port of the scheme.
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("hooks.shop.svc = 127.0.0.1", "hooks.shop.svc"),
        // Another address, a class and a network.
        ("hooks.shop.svc:* = 127.0.0.2", "hooks.shop.svc"),
        ("hooks.shop.svc:*", "hooks.shop.svc"),
        ("* = private shared", "hooks.shop.svc"),
        ("* = 0.0.0.0/0 ::/0", "hooks.shop.svc"),
        ("127.*", "127.0.0.1"),
        ("*", "127.0.0.1"),
    ] {
        let sink = sink_with(&names, &[listed]);
        let answer = send(&sink, get(format!("http://{host}{port}/"))).await;
        let kind = answer.unwrap_err().kind;
        assert_eq!(kind, FaultKind::ResourcePermission, "{listed}");
    }
    assert_eq!(server.connections(), reached);
}

/// The address that was checked is the one that is used; the name stays in the request.
#[tokio::test]
async fn a_name_is_resolved_by_the_host_and_stays_in_the_request() {
    let server = Server::willing().await;
    let port = server.port();
    for name in ["localhost", "LOCALHOST"] {
        let request = get(format!("http://{name}{port}/"));
        send(&sink(&["localhost*:* = 127.0.0.1 ::1"]), request)
            .await
            .unwrap();
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
    let sink = sink(&["127.0.0.1:*", "localhost:* = 127.0.0.1 ::1", "[::1]:*"]);
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

            ResourceGeneric: the URL is none of http or https with a host
        /path
            ResourceGeneric: the URL is none of http or https with a host
        localhost
            ResourceGeneric: the URL is none of http or https with a host
        http:
            ResourceGeneric: the URL is none of http or https with a host
        http://
            ResourceGeneric: the URL is none of http or https with a host
        http:///path
            ResourceGeneric: the URL is none of http or https with a host
        http://:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        http:127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        http:/127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        http:\\127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
         http://127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        http://127.0.0.1:PORT:1/
            ResourceGeneric: the URL cannot be read: invalid port number
        http://127.0.0.1:99999/
            ResourceGeneric: the URL cannot be read: invalid port number
        http://[::1/
            ResourceGeneric: the URL cannot be read: invalid IPv6 address
        file:///etc/passwd
            ResourceGeneric: the URL is none of http or https with a host
        ftp://127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        gopher://127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        unix:///run/docker.sock
            ResourceGeneric: the URL is none of http or https with a host
        data:text/plain,x
            ResourceGeneric: the URL is none of http or https with a host
        mailto:s3cret@example.com
            ResourceGeneric: the URL is none of http or https with a host
        http://user:s3cret@127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        http://s3cret@127.0.0.1:PORT/
            ResourceGeneric: the URL is none of http or https with a host
        http://10.0.0.1\@127.0.0.1:PORT/
            ResourcePermission: 10.0.0.1: not permitted by the operator (setting http_inner_hosts); the log of the runtime has the reason
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

/// A proxy would see what is meant for others, and connect to where the host does not.
#[test]
fn proxies_of_the_environment_are_not_used() {
    const TEST: &str = "addresses::proxies_of_the_environment_are_not_used";
    const TARGET: &str = "HTTP_SINK_TEST_TARGET";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // The environment of a process cannot be changed safely, so the request is made by another one.
    if let Ok(url) = std::env::var(TARGET) {
        let answer = runtime.block_on(send(&local_sink(), get(url)));
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
