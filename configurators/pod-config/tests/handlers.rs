//! The phases of a Pod, called as the host calls them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_sdk::{
    ErrorKind, HandlerError, Input, InputBuilder, Json, Output, RequestResult, RequestSink,
};
use expect_test::{Expect, expect};
use pod_config::HANDLERS;
use serde_json::{Value, json};

const POD: &str = include_str!("../testdata/pod.json");

fn call(handler: &str, input: InputBuilder) -> Result<Output, HandlerError> {
    HANDLERS.call(handler, &input.build())
}

fn check(handler: &str, input: InputBuilder, expected: Expect) {
    let output =
        call(handler, input).map_or_else(|error| format!("{error:?}"), |output| output.to_string());
    expected.assert_eq(&output);
}

/// A Pod of a Deployment, with these annotations under the prefix.
fn pod(config: Value) -> Value {
    let annotations: serde_json::Map<String, Value> = config
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (format!("config.configurator.dev/{key}"), value.clone()))
        .collect();
    json!({
        "metadata": {
            "name": "web-7c4d-x", "namespace": "shop", "uid": "u-1", "annotations": annotations,
            "labels": {"pod-template-hash": "7c4d"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7c4d", "uid": "o", "controller": true},
            ],
        },
        "spec": {"nodeName": "n-1"},
    })
}

fn absent(name: &str, sink: RequestSink) -> RequestResult {
    RequestResult::failed(name, sink, ErrorKind::ResourceNotFound, "not found")
}

fn answered(name: &str, object: Value) -> RequestResult {
    RequestResult::answered(name, RequestSink::Kubernetes, [object])
}

fn entry(uid: &str, value: impl ToString) -> RequestResult {
    let entry =
        json!({"key": "resources/pod/shop/web-7c4d-x", "uid": uid, "value": value.to_string()});
    RequestResult::answered("entry", RequestSink::Configstore, [entry])
}

/// The write phase of a Pod whose Namespace, Node and workload are absent.
fn write(pod: Value, entry: RequestResult) -> InputBuilder {
    Input::builder()
        .object(pod)
        .result(absent("node", RequestSink::Kubernetes))
        .result(absent("namespace", RequestSink::Kubernetes))
        .result(absent("workload", RequestSink::Kubernetes))
        .result(entry)
}

/// The value that a write phase stores.
fn stored_by(output: &Output) -> String {
    let line = output.to_string();
    let start = line
        .find("config update pod shop/web-7c4d-x (u-1) = ")
        .expect("an update of the entry");
    line[start..]
        .lines()
        .next()
        .unwrap()
        .split_once(" = ")
        .unwrap()
        .1
        .to_owned()
}

#[test]
fn root_asks_for_what_the_pod_depends_on() {
    check(
        "root",
        Input::builder().object(POD),
        expect![[r#"
            node: kubernetes get nodes worker-a-3, cached, on-error catch-error
            namespace: kubernetes get namespaces shop, cached, on-error catch-error
            workload: kubernetes get deployments.apps shop/checkout, cached, on-error catch-error
            entry: config get pod shop/checkout-7d9f8c6b54-x2kqz, on-error catch-error
        "#]],
    );
}

#[test]
fn a_pod_that_is_not_scheduled_and_has_no_owner_needs_less() {
    check(
        "root",
        Input::builder().object(json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"nodeName": ""}})),
        expect![[r#"
            namespace: kubernetes get namespaces n, cached, on-error catch-error
            entry: config get pod n/p, on-error catch-error
        "#]],
    );
}

#[test]
fn the_first_write_makes_everything() {
    let annotated = |key: &str| json!({"metadata": {"annotations": {"config.configurator.dev/tier": key, format!("config.configurator.dev/{key}"): "yes"}}});
    let input = Input::builder()
        .object(pod(json!({"own": "1"})))
        .result(answered("node", annotated("node")))
        .result(answered("namespace", annotated("namespace")))
        .result(answered("workload", annotated("workload")))
        .result(absent("entry", RequestSink::Configstore));
    check(
        "write-config",
        input,
        expect![[r#"
            config: config transaction
              config update pod shop/web-7c4d-x (u-1) = {"config":{"namespace":"yes","node":"yes","own":"1","tier":"workload","workload":"yes"},"from":{"namespace":"namespace","node":"node","own":"pod","tier":"workload","workload":"workload"},"index":"pods.shop.Deployment.web"}
              config update app-conf shop/web-7c4d-x namespace = yes
              config update app-conf shop/web-7c4d-x node = yes
              config update app-conf shop/web-7c4d-x own = 1
              config update app-conf shop/web-7c4d-x tier = workload
              config update app-conf shop/web-7c4d-x workload = yes
              config update two-layers pods.shop.Deployment.web web-7c4d-x = {}
            secret: secret create pod-shop.web-7c4d-x
            config-map: kubernetes apply configmaps shop/web-7c4d-x-config {"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web-7c4d-x-config","labels":{"app.kubernetes.io/managed-by":"configurator"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"web-7c4d-x","uid":"u-1"}]},"data":{"namespace":"yes","node":"yes","own":"1","tier":"workload","workload":"yes"}}
        "#]],
    );
}

#[test]
fn a_pod_that_has_not_changed_writes_nothing_to_the_config_store() {
    let object = pod(json!({"a": "1", "b": "2"}));
    let first = call(
        "write-config",
        write(object.clone(), absent("entry", RequestSink::Configstore)),
    )
    .unwrap();
    let second = call(
        "write-config",
        write(object, entry("u-1", stored_by(&first))),
    )
    .unwrap();
    let names: Vec<_> = second
        .requests
        .resource_requests
        .iter()
        .map(|request| request.request_name.as_str())
        .collect();
    assert_eq!(names, ["secret", "config-map"]);
    assert_eq!(
        first.requests.resource_requests[1..],
        second.requests.resource_requests[..]
    );
}

#[test]
fn only_keys_that_changed_are_written_and_those_that_are_gone_are_deleted() {
    let old = json!({
        "config": {"gone": "1", "same": "2", "changed": "3"}, "from": {}, "index": "pods.shop.Deployment.web",
    });
    let output = call(
        "write-config",
        write(
            pod(json!({"same": "2", "changed": "4", "new": "5"})),
            entry("u-1", old),
        ),
    );
    let output = Output::new().request(output.unwrap().requests.resource_requests.remove(0));
    expect![[r#"
        config: config transaction
          config update pod shop/web-7c4d-x (u-1) = {"config":{"changed":"4","new":"5","same":"2"},"from":{"changed":"pod","new":"pod","same":"pod"},"index":"pods.shop.Deployment.web"}
          config delete app-conf shop/web-7c4d-x gone
          config update app-conf shop/web-7c4d-x changed = 4
          config update app-conf shop/web-7c4d-x new = 5
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn a_pod_that_changes_hands_moves_in_the_index() {
    let old = json!({"config": {}, "from": {}, "index": "pods.shop.ReplicaSet.web-7c4d"});
    let output = call("write-config", write(pod(json!({})), entry("u-1", old)));
    let output = Output::new().request(output.unwrap().requests.resource_requests.remove(0));
    expect![[r#"
        config: config transaction
          config delete two-layers pods.shop.ReplicaSet.web-7c4d web-7c4d-x
          config update pod shop/web-7c4d-x (u-1) = {"config":{},"from":{},"index":"pods.shop.Deployment.web"}
          config update two-layers pods.shop.Deployment.web web-7c4d-x = {}
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn a_change_of_every_key_fits_one_transaction() {
    let keys = |prefix: &str| -> Value {
        (0..96)
            .map(|i| (format!("{prefix}{i}"), json!("v")))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let old = json!({"config": keys("old"), "from": {}, "index": "pods.shop.ReplicaSet.web-7c4d"});
    let output = call("write-config", write(pod(keys("new")), entry("u-1", old))).unwrap();
    let operations = output.requests.resource_requests[0]
        .to_string()
        .lines()
        .count()
        - 1;
    assert_eq!(operations, 100);
    assert!(
        output
            .to_string()
            .contains("config delete pod shop/web-7c4d-x (u-1)\n  config update pod")
    );
}

#[test]
fn an_entry_that_someone_else_wrote_is_replaced() {
    let output = call(
        "write-config",
        write(pod(json!({"a": "1"})), entry("u-1", "not ours")),
    )
    .unwrap();
    assert!(
        output
            .to_string()
            .contains("config update app-conf shop/web-7c4d-x a = 1")
    );
    assert!(output.to_string().contains("config update two-layers"));
}

#[test]
fn a_layer_that_cannot_be_read_is_not_taken_for_absent() {
    let failed = |kind| {
        Input::builder()
            .object(pod(json!({})))
            .result(RequestResult::failed(
                "node",
                RequestSink::Kubernetes,
                kind,
                "no answer",
            ))
            .result(absent("entry", RequestSink::Configstore))
    };
    let error = call("write-config", failed(ErrorKind::ApiServerUnavailable)).unwrap_err();
    assert!(!error.fatal);
    expect!["the request `node` failed: no answer"].assert_eq(&error.message);
    assert!(
        call("write-config", failed(ErrorKind::ResourcePermission))
            .unwrap_err()
            .fatal
    );
}

#[test]
fn a_name_that_leaves_no_room_is_refused() {
    let mut object = pod(json!({}));
    object["metadata"]["name"] = "p".repeat(247).into();
    let error = call(
        "write-config",
        write(object, absent("entry", RequestSink::Configstore)),
    )
    .unwrap_err();
    assert!(
        error.fatal
            && error
                .message
                .ends_with("a name has at most 253 characters: give the Pod a shorter name")
    );
}

#[test]
fn cleanup_needs_nothing_but_the_identity() {
    let object = json!({"metadata": {"name": "web-7c4d-x", "namespace": "shop", "uid": "u-1"}});
    check(
        "cleanup",
        Input::builder().object(object.clone()),
        expect![[r#"
            entry: config get pod shop/web-7c4d-x, on-error catch-error
        "#]],
    );
    let value = json!({"config": {"a": "1"}, "from": {}, "index": "pods.shop.Deployment.web"});
    check(
        "delete-config",
        Input::builder()
            .object(object.clone())
            .result(entry("u-1", value)),
        expect![[r#"
            config: config transaction
              config delete pod shop/web-7c4d-x (u-1)
              config delete two-layers pods.shop.Deployment.web web-7c4d-x
            secret: secret delete pod-shop.web-7c4d-x
        "#]],
    );
    check(
        "delete-config",
        Input::builder()
            .object(object)
            .result(absent("entry", RequestSink::Configstore)),
        expect![[r#"
            secret: secret delete pod-shop.web-7c4d-x
        "#]],
    );
}

#[test]
fn what_a_newer_pod_of_the_name_has_stays() {
    let object = json!({"metadata": {"name": "web-7c4d-x", "namespace": "shop", "uid": "u-1"}});
    let value = json!({"config": {}, "from": {}, "index": "pods.shop.Deployment.web"});
    check(
        "delete-config",
        Input::builder().object(object).result(entry("u-2", value)),
        expect![""],
    );
}

#[test]
fn an_object_that_is_no_pod_is_refused_with_the_field() {
    for handler in ["root", "write-config", "cleanup", "delete-config"] {
        let error = call(
            handler,
            Input::builder().object(json!({"metadata": {"name": "p"}})),
        )
        .unwrap_err();
        assert!(
            error.fatal && error.message.contains("missing field `namespace`"),
            "{error:?}"
        );
        assert!(
            call(handler, Input::builder().object(Json::from("[[[")))
                .unwrap_err()
                .fatal
        );
    }
}

#[test]
fn the_checked_in_pod_has_four_kilobytes() {
    assert!((4096..4200).contains(&POD.len()), "{}", POD.len());
}
