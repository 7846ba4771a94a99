//! Requests to HTTP endpoints.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use configurator_core::authorization::Caller;
use configurator_core::capability::{Capabilities, HttpRule};
use configurator_core::request::{HttpRequest, Operation};
use configurator_host::network::NameResolver;
use configurator_host::sinks::Sink;
use configurator_host::sinks::http::{HttpOptions, HttpSink};
use tokio::net::TcpListener;

use super::chance::Chance;
use super::model::matches;
use super::{Rules, scope};

/// How a host may be spelled, and the host that is meant; `None` where the spelling is not plain.
const HOSTS: [(&str, Option<&str>); 12] = [
    ("one.test", Some("one.test")),
    ("ONE.test", Some("one.test")),
    ("two.test", Some("two.test")),
    ("sub.one.test", Some("sub.one.test")),
    ("one.test.", Some("one.test.")),
    ("127.0.0.1", Some("127.0.0.1")),
    ("127.1", None),
    ("0x7f.0.0.1", None),
    ("one%2etest", None),
    ("ône.test", None),
    ("one.test%00", None),
    ("one.test\t", None),
];
/// How many of these are plain, at the beginning.
const PLAIN: usize = 6;
/// Beginnings of URLs, up to the host.
const BEFORE: [&str; 6] = [
    "http://",
    "HTTP://",
    "http:///",
    "ftp://",
    "http://one.test@",
    "http://a:b@",
];
/// Ends of URLs, from the port on.
const AFTER: [&str; 8] = [
    "/",
    "",
    "/a/b?c=d",
    "/%2e%2e/x",
    "/..",
    "?q",
    "#@two.test",
    "/@two.test/",
];
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "post"];

/// The host that a request asked for, with its port, its method and its body.
type Arrived = (String, String, String);

/// Knows every name of [`HOSTS`] under the address of this machine.
#[derive(Debug)]
struct Names;

#[async_trait]
impl NameResolver for Names {
    async fn resolve(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    }
}

async fn server(arrived: Arc<Mutex<Vec<Arrived>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(async move |request: Request| {
        let host = request
            .headers()
            .get("host")
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let method = request.method().to_string();
        let body = axum::body::to_bytes(request.into_body(), usize::MAX)
            .await
            .unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        arrived.lock().unwrap().push((host, method, body));
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

fn rules(chance: &mut Chance, ports: [u16; 2]) -> Capabilities {
    let port = ports[chance.below(2)];
    let patterns = [
        "*".to_owned(),
        format!("one.test:{port}"),
        format!("ONE.test:{port}"),
        format!("*.test:{port}"),
        format!("*.one.test:{port}"),
        format!("127.0.0.1:{port}"),
        format!("one.test.:{port}"),
        "one.test".to_owned(),
        "*.test".to_owned(),
    ];
    let mut rule = || HttpRule {
        hosts: match chance.one_in(3) {
            true => vec!["*".to_owned()],
            false => vec![patterns[chance.below(patterns.len())].clone()],
        },
        methods: match chance.one_in(2) {
            true => vec!["*".to_owned()],
            false => chance.some(2, &["GET", "POST", "P*", "DELETE"]),
        },
    };
    Capabilities {
        http: vec![rule(), rule()],
        ..Capabilities::default()
    }
}

#[tokio::test]
async fn an_endpoint_is_asked_for_nothing_that_no_rule_allows() {
    let seed = super::seed();
    let arrived = Arc::<Mutex<Vec<Arrived>>>::default();
    let ports = [server(arrived.clone()).await, server(arrived.clone()).await];
    let inner = HOSTS.iter().filter_map(|(_, meant)| *meant);
    let inner = inner
        .flat_map(|host| ports.map(|port| format!("{host}:{port}=127.0.0.1").parse().unwrap()));
    let sink = HttpSink::new(HttpOptions {
        inner_hosts: inner.collect(),
        names: Arc::new(Names),
        ..HttpOptions::default()
    });
    let (mut sent, mut refused) = (0, 0);
    for number in 0..super::HTTP_CASES {
        let mut chance = Chance::of(seed, number);
        let (spelled, meant) = match chance.one_in(4) {
            true => HOSTS[chance.below(HOSTS.len())],
            false => HOSTS[chance.below(PLAIN)],
        };
        let before = if chance.one_in(4) {
            chance.pick(&BEFORE)
        } else {
            "http://"
        };
        let port = ports[chance.below(2)];
        let method = chance.pick(&METHODS);
        let body = format!("case {number}");
        let request = HttpRequest {
            method: method.to_owned(),
            url: format!("{before}{spelled}:{port}{}", chance.pick(&AFTER)),
            headers: Vec::new(),
            body: Some(body.clone().into_bytes()),
        };
        let rules = Rules::new(&mut chance, |chance| rules(chance, ports));
        let host = meant.map(|meant| format!("{meant}:{port}"));
        let is_whole = before.eq_ignore_ascii_case("http://");
        let allows = |rules: &Capabilities, (): &()| {
            let Some(host) = &host else {
                return false;
            };
            rules.http.iter().any(|rule| {
                let is_host = |pattern: &String| matches(&pattern.to_lowercase(), host);
                let is_method = |pattern: &String| matches(pattern, method);
                rule.hosts.iter().any(is_host) && rule.methods.iter().any(is_method)
            })
        };
        let is_allowed = is_whole && rules.allow((), (), allows);
        let operation = Operation::Http(request);
        let answer = match rules.authorize(&operation, Caller::default()) {
            Ok(authorized) => sink.execute(&authorized, &scope(&mut chance)).await,
            Err(fault) => Err(fault),
        };
        let came = std::mem::take(&mut *arrived.lock().unwrap());
        let told = || format!("case {number}: {operation:#?}\n{rules:#?}\n{answer:#?}\n{came:?}");
        assert_eq!(answer.is_ok(), is_allowed, "{}", told());
        if is_allowed {
            assert_eq!(
                came,
                [(host.unwrap(), method.to_owned(), body)],
                "{}",
                told()
            );
            sent += 1;
        } else {
            assert!(came.is_empty(), "{}", told());
            refused += 1;
        }
    }
    println!("{sent} sent, {refused} refused");
    assert!(sent > 200 && refused > 200, "the cases are one-sided");
}
