//! Rows of Services and of what leads to them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::builtin::{age, count, int, labels, list, name, or_none, selector, str, text};

pub(super) fn service(o: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(o, "/spec/ports")
        .iter()
        .map(|p| match int(p, "/nodePort") {
            0 => format!("{}/{}", int(p, "/port"), str(p, "/protocol")),
            node => format!("{}:{node}/{}", int(p, "/port"), str(p, "/protocol")),
        })
        .collect();
    let internal = match str(o, "/spec/clusterIPs/0") {
        "" => str(o, "/spec/clusterIP"),
        ip => ip,
    };
    vec![
        name(o),
        text(o, "/spec/type"),
        json!(or_none(internal.to_owned())),
        json!(external(o)),
        json!(or_none(ports.join(","))),
        age(o, now),
        json!(labels(o, "/spec/selector")),
    ]
}

fn external(o: &Value) -> String {
    let mut all: Vec<&str> = Vec::new();
    let kind = str(o, "/spec/type");
    match kind {
        "ExternalName" => return str(o, "/spec/externalName").to_owned(),
        "LoadBalancer" => all.extend(balancer(o)),
        "ClusterIP" | "NodePort" => {}
        _ => return "<unknown>".to_owned(),
    }
    all.extend(
        list(o, "/spec/externalIPs")
            .iter()
            .filter_map(Value::as_str),
    );
    match (all.is_empty(), kind) {
        (true, "LoadBalancer") => "<pending>".to_owned(),
        (true, _) => "<none>".to_owned(),
        (false, _) => all.join(","),
    }
}

/// The addresses of a load balancer.
fn balancer(o: &Value) -> impl Iterator<Item = &str> {
    list(o, "/status/loadBalancer/ingress")
        .iter()
        .map(|i| match str(i, "/ip") {
            "" => str(i, "/hostname"),
            ip => ip,
        })
}

pub(super) fn endpoints(o: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in list(o, "/subsets") {
        let addresses = list(subset, "/addresses");
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses.iter().map(|a| str(a, "/ip").to_owned()));
        }
        for port in ports {
            all.extend(addresses.iter().map(|a| match str(a, "/ip") {
                ip if ip.contains(':') => format!("[{ip}]:{}", int(port, "/port")),
                ip => format!("{ip}:{}", int(port, "/port")),
            }));
        }
    }
    vec![
        name(o),
        json!(some_of(
            &all,
            if count(o, "/subsets") == 0 {
                "<none>"
            } else {
                ""
            }
        )),
        age(o, now),
    ]
}

pub(super) fn endpoint_slice(o: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(o, "/ports")
        .iter()
        .map(|p| match p.get("port").and_then(Value::as_i64) {
            Some(port) => port.to_string(),
            None => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(o, "/endpoints")
        .iter()
        .flat_map(|e| list(e, "/addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    vec![
        name(o),
        text(o, "/addressType"),
        json!(some_of(&ports, "<unset>")),
        json!(some_of(&addresses, "<unset>")),
        age(o, now),
    ]
}

/// The first three, and how many more there are.
fn some_of(all: &[String], none: &str) -> String {
    const SHOWN: usize = 3;
    let first = all
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(",");
    match all.len() {
        0 => none.to_owned(),
        n if n > SHOWN => format!("{first} + {} more...", n - SHOWN),
        _ => first,
    }
}

pub(super) fn ingress(o: &Value, now: Timestamp) -> Vec<Value> {
    let hosts: Vec<String> = list(o, "/spec/rules")
        .iter()
        .map(|r| str(r, "/host").to_owned())
        .filter(|h| !h.is_empty())
        .collect();
    let ports = if count(o, "/spec/tls") > 0 {
        "80, 443"
    } else {
        "80"
    };
    vec![
        name(o),
        json!(or_none(str(o, "/spec/ingressClassName").to_owned())),
        json!(some_of(&hosts, "*")),
        json!(balancer(o).collect::<Vec<_>>().join(",")),
        json!(ports),
        age(o, now),
    ]
}

pub(super) fn ingress_class(o: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = match o.pointer("/spec/parameters") {
        None => "<none>".to_owned(),
        Some(p) => match str(p, "/apiGroup") {
            "" => format!("{}/{}", str(p, "/kind"), str(p, "/name")),
            group => format!("{}.{group}/{}", str(p, "/kind"), str(p, "/name")),
        },
    };
    vec![
        name(o),
        text(o, "/spec/controller"),
        json!(parameters),
        age(o, now),
    ]
}

pub(super) fn network_policy(o: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(o),
        json!(selector(o, "/spec/podSelector")),
        age(o, now),
    ]
}
