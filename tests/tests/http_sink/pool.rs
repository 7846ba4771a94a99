//! Connections that are used again.

use std::sync::Arc;

use configurator_core::fault::FaultKind;
use configurator_core::request::ObjectRef;
use configurator_host::sinks::Scope;
use configurator_host::sinks::http::{HttpOptions, HttpSink};

use crate::bench::{Names, Server, get, options, scope, send, send_as, sink_with};

fn scope_of(configurator: &str) -> Scope {
    Scope {
        configurator: ObjectRef::cluster_scoped(configurator),
        ..scope()
    }
}

#[tokio::test]
async fn the_requests_of_a_configurator_share_a_connection() {
    let server = Server::patient().await;
    let sink = server.sink();
    for number in 0..20 {
        let url = server.url(&format!("/{number}"));
        send(&sink, get(url)).await.unwrap();
    }
    assert_eq!(server.requests().len(), 20);
    assert_eq!(server.connections(), 1);
}

/// A server may tie a login to a connection.
#[tokio::test]
async fn a_configurator_never_uses_the_connection_of_another() {
    let server = Server::patient().await;
    let sink = server.sink();
    for configurator in ["a", "b", "a", "b"] {
        let request = get(server.url("/"));
        send_as(&sink, request, &scope_of(configurator))
            .await
            .unwrap();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn no_connection_is_kept_where_the_operator_says_so() {
    let server = Server::patient().await;
    let sink = HttpSink::new(HttpOptions {
        idle_connections: 0,
        ..options(&[&server.host])
    });
    for _ in 0..3 {
        send(&sink, get(server.url("/"))).await.unwrap();
    }
    assert_eq!(server.connections(), 3);
}

/// What one Configurator was connected to says nothing of where another one may go.
#[tokio::test]
async fn a_name_is_checked_for_each_configurator_and_each_connection() {
    let server = Server::patient().await;
    let names = Arc::new(Names::default());
    let sink = sink_with(&names, &["hooks.shop.svc:* = private 127.0.0.1"]);
    let port = server.port();
    let url = format!("http://hooks.shop.svc{port}/");
    names.set("hooks.shop.svc", &["127.0.0.1"]);
    send_as(&sink, get(&*url), &scope_of("a")).await.unwrap();
    // Whoever answers for the name changes their mind, as in an attack by rebinding.
    names.set("hooks.shop.svc", &["169.254.169.254"]);
    // This connection goes where it always went.
    send_as(&sink, get(&*url), &scope_of("a")).await.unwrap();
    let refused = send_as(&sink, get(&*url), &scope_of("b")).await;
    assert_eq!(refused.unwrap_err().kind, FaultKind::ResourcePermission);
    assert_eq!(server.connections(), 1);
}

/// A port is permitted by itself, also where the name has been resolved for another one.
#[tokio::test]
async fn a_connection_to_one_port_permits_no_other() {
    let (server, other) = (Server::patient().await, Server::patient().await);
    let names = Arc::new(Names::default());
    names.set("hooks.shop.svc", &["127.0.0.1"]);
    let listed = format!("hooks.shop.svc{} = 127.0.0.1", server.port());
    let sink = sink_with(&names, &[&listed]);
    let url = |server: &Server| format!("http://hooks.shop.svc{}/", server.port());
    send(&sink, get(url(&server))).await.unwrap();
    let refused = send(&sink, get(url(&other))).await;
    assert_eq!(refused.unwrap_err().kind, FaultKind::ResourcePermission);
    assert_eq!(other.connections(), 0);
}

/// Connections to many servers would use up what the host has for all Configurators.
#[tokio::test]
async fn connections_are_kept_to_the_servers_that_were_used_last() {
    let mut servers = Vec::new();
    for _ in 0..17 {
        servers.push(Server::patient().await);
    }
    let names = Arc::new(Names::default());
    let sink = sink_with(&names, &["* = 127.0.0.1"]);
    for server in servers.iter().chain(&servers[1..]) {
        send(&sink, get(server.url("/"))).await.unwrap();
    }
    let connections: usize = servers.iter().map(Server::connections).sum();
    assert_eq!(connections, 17);
    send(&sink, get(servers[0].url("/"))).await.unwrap();
    assert_eq!(servers[0].connections(), 2);
}
