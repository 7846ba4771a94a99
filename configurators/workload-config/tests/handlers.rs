//! The phases of a batch, called as the host calls them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_sdk::{
    ErrorKind, HandlerError, Input, InputBuilder, ObjectRef, Output, RequestResult, RequestSink,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use workload_config::HANDLERS;

fn call(handler: &str, input: InputBuilder) -> Result<Output, HandlerError> {
    HANDLERS.call(handler, &input.build())
}

fn check(handler: &str, input: InputBuilder, expected: Expect) {
    let output =
        call(handler, input).map_or_else(|error| format!("{error:?}"), |output| output.to_string());
    expected.assert_eq(&output);
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("u-{name}"),
            "annotations": {"config.configurator.dev/tier": "gold", "other": "x"},
        },
        "spec": {
            "replicas": 2,
            "template": {"spec": {
                "serviceAccountName": name,
                "containers": [{
                    "name": "server", "image": "registry.example.com/web:1",
                    "ports": [{"containerPort": 8080}],
                    "env": [{"name": "PORT", "value": "8080"}, {"name": "TOKEN", "value": "hush"}],
                }],
            }},
        },
    })
}

fn namespace(name: &str, annotations: Value) -> RequestResult {
    let object = json!({"metadata": {"name": name, "annotations": annotations}});
    RequestResult::answered(
        format!("namespace/{name}"),
        RequestSink::Kubernetes,
        [object],
    )
}

fn absent(name: &str) -> RequestResult {
    let name = format!("entry/shop/{name}");
    RequestResult::failed(
        name,
        RequestSink::Configstore,
        ErrorKind::ResourceNotFound,
        "not found",
    )
}

fn entry(name: &str, value: &str) -> RequestResult {
    let entry = json!({"key": "k", "uid": format!("u-{name}"), "value": value});
    RequestResult::answered(
        format!("entry/shop/{name}"),
        RequestSink::Configstore,
        [entry],
    )
}

#[test]
fn root_asks_for_each_namespace_once() {
    let batch = [
        deployment("shop", "web"),
        deployment("shop", "cart"),
        deployment("ads", "web"),
    ];
    check(
        "root",
        Input::builder().batch(batch),
        expect![[r#"
            namespace/ads: kubernetes get namespaces ads, cached, group-by namespaces
            namespace/shop: kubernetes get namespaces shop, cached, group-by namespaces
            entry/shop/web: config get workload shop/Deployment/web (u-web), group-by entries, of shop/web
            entry/shop/cart: config get workload shop/Deployment/cart (u-cart), group-by entries, of shop/cart
            entry/ads/web: config get workload ads/Deployment/web (u-web), group-by entries, of ads/web
        "#]],
    );
}

#[test]
fn write_summarises_each_deployment_over_its_namespace() {
    let annotations =
        json!({"config.configurator.dev/tier": "tin", "config.configurator.dev/zone": "a"});
    let input = Input::builder()
        .batch([deployment("shop", "web")])
        .group("namespaces", [namespace("shop", annotations)])
        .group("entries", [absent("web")]);
    check(
        "write",
        input,
        expect![[r#"
            config/shop/web: config update workload shop/Deployment/web (u-web) = {"replicas":2,"serviceAccount":"web","containers":[{"name":"server","image":"registry.example.com/web:1","ports":[8080],"env":["PORT","TOKEN"]}],"config":{"tier":"gold","zone":"a"}}, of shop/web
        "#]],
    );
}

#[test]
fn only_entries_that_changed_are_written() {
    let batch = [
        deployment("shop", "web"),
        deployment("shop", "cart"),
        deployment("shop", "ads"),
    ];
    let first = Input::builder()
        .batch(batch.clone())
        .group("entries", batch.iter().map(|_| absent("none")));
    let first = call("write", first).unwrap();
    assert_eq!(first.requests.resource_requests.len(), 3);
    let value = |i: usize| first.requests.resource_requests[i].to_string();
    let value = |i: usize| {
        value(i)
            .split_once(" = ")
            .unwrap()
            .1
            .rsplit_once(", of")
            .unwrap()
            .0
            .to_owned()
    };
    let second = Input::builder().batch(batch).group(
        "entries",
        [
            entry("web", &value(0)),
            entry("cart", "{}"),
            entry("ads", &value(2)),
        ],
    );
    let second = call("write", second).unwrap();
    let of: Vec<_> = second
        .requests
        .resource_requests
        .iter()
        .map(|request| request.of.clone().unwrap())
        .collect();
    assert_eq!(of, [ObjectRef::new("shop", "cart")]);
}

#[test]
fn a_namespace_that_cannot_be_read_is_not_taken_for_absent() {
    let failed = |kind| {
        let result =
            RequestResult::failed("namespace/shop", RequestSink::Kubernetes, kind, "no answer");
        Input::builder()
            .batch([deployment("shop", "web")])
            .group("namespaces", [result])
    };
    let error = call("write", failed(ErrorKind::ApiServerUnavailable)).unwrap_err();
    assert!(!error.fatal);
    expect!["the request `namespace/shop` failed: no answer"].assert_eq(&error.message);
    assert!(call("write", failed(ErrorKind::ResourceNotFound)).is_ok());
}

#[test]
fn an_entry_that_cannot_be_read_is_written() {
    let failed = RequestResult::failed(
        "entry/shop/web",
        RequestSink::Configstore,
        ErrorKind::ConfigstoreUnavailable,
        "no answer",
    );
    let input = Input::builder()
        .batch([deployment("shop", "web")])
        .group("entries", [failed]);
    assert_eq!(
        call("write", input)
            .unwrap()
            .requests
            .resource_requests
            .len(),
        1
    );
}

#[test]
fn cleanup_needs_nothing_but_the_identity() {
    let gone = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "u-web"}});
    check(
        "cleanup",
        Input::builder().batch([gone]),
        expect![[r#"
            config/shop/web: config delete workload shop/Deployment/web (u-web), of shop/web
        "#]],
    );
}

#[test]
fn a_single_object_is_refused_with_what_to_change() {
    let error = call("root", Input::builder().object(deployment("shop", "web"))).unwrap_err();
    expect![
        "handler `root` takes a batch, and got one object: add `chain.batch` to the Configurator"
    ]
    .assert_eq(&error.message);
}

/// Every Deployment of the manifest of a real application, where it is present beside the checkout.
#[test]
fn a_real_application_is_summarised() {
    // Below the package, where cargo runs tests.
    let path = "../../../shared/data/online-boutique.yaml";
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: there is no {path}");
        return;
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let batch: Vec<Value> = documents
        .into_iter()
        .filter(|document| document["kind"] == "Deployment")
        .map(|mut deployment| {
            deployment["metadata"]["namespace"] = "default".into();
            deployment["metadata"]["uid"] = deployment["metadata"]["name"].clone();
            deployment
        })
        .collect();
    let count = batch.len();
    let output = call("write", Input::builder().batch(batch)).unwrap();
    assert_eq!(output.requests.resource_requests.len(), count);
    let frontend = output
        .requests
        .resource_requests
        .iter()
        .find(|r| r.request_name == "config/default/frontend");
    assert!(
        frontend
            .unwrap()
            .to_string()
            .contains(r#""PRODUCT_CATALOG_SERVICE_ADDR""#)
    );
}
