//! The addresses that requests may go to.

use configurator_core::fault::FaultKind;
use expect_test::expect;

use crate::bench::{Server, get, send, shown, sink};

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
