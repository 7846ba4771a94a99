//! The handlers, called natively.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_sdk::{
    ErrorKind, HandlerError, Input, InputBuilder, Outcome, Output, RequestResult, RequestSink,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use shared_storage_cluster::{check_version, create_pods, plan, rebuild_pods};

fn input(status: Value, changes: &[&str]) -> InputBuilder {
    Input::builder()
        .object(json!({
            "metadata": {"name": "db", "namespace": "shop", "uid": "u"},
            "spec": {
                "classInfo": {"className": "large"}, "version": "1.1.0", "roReplicas": 2,
                "storage": {"size": "20Gi"},
            },
            "status": status,
        }))
        .parameters(json!({
            "storageClass": "shared", "image": "db", "manager": "manager:1",
            "classes": {"small": {}, "large": {}}, "changes": changes,
        }))
}

fn small() -> Value {
    json!({
        "clusterStatus": "Running", "classInfo": {"className": "small"}, "version": "1.0.0",
        "roReplicas": 1, "storage": {"size": "10Gi"},
    })
}

fn planned() -> InputBuilder {
    let plan =
        json!({"className": "large", "version": "1.0.0", "roReplicas": 2, "storage": "10Gi"});
    input(small(), &[]).step_output("RebuildPods/Plan", &plan)
}

fn pod(name: &str, made_for: &str, more: Value) -> RequestResult {
    let annotations = json!({"db.example.org/made-for": made_for});
    let pod = json!({
        "kind": "Pod",
        "metadata": {"name": name, "uid": format!("{name}-1"), "annotations": annotations},
        "status": more,
    });
    let request = if more.is_null() {
        "old".to_owned()
    } else {
        format!("pods/{name}")
    };
    RequestResult::answered(request, RequestSink::Kubernetes, [pod])
}

fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

fn check(output: &Output, expected: Expect) {
    let data = output.data.as_deref().unwrap_or_default();
    expected.assert_eq(&format!("{output}{:?} {data}", output.outcome));
}

#[test]
fn a_plan_is_about_what_its_flow_changes() {
    let plan = |changes| {
        plan::plan(&input(small(), changes).build())
            .unwrap()
            .output
            .unwrap()
    };
    expect![[r#"{"className":"large","version":"1.0.0","roReplicas":1,"storage":"10Gi"}"#]]
        .assert_eq(&plan(&["classInfo"]));
    expect![[r#"{"className":"small","version":"1.0.0","roReplicas":2,"storage":"20Gi"}"#]]
        .assert_eq(&plan(&["storage", "roReplicas"]));
}

#[test]
fn what_was_never_made_cannot_be_changed() {
    let error = plan::plan(&input(json!({}), &["classInfo"]).build()).unwrap_err();
    expect!["the status does not say what the cluster is"].assert_eq(&error.message);
}

#[test]
fn an_older_version_needs_a_person() {
    let mut status = small();
    status["version"] = json!("1.10.0");
    let error = check_version::check_version(&input(status, &[]).build()).unwrap_err();
    assert_eq!(error.code.as_deref(), Some("DOWNGRADE"));
    expect!["1.1.0 is older than 1.10.0, which the cluster has"].assert_eq(&error.message);
}

#[test]
fn pods_are_made_and_waited_for() {
    let create = create_pods::create_ro_pods;
    let first = create(&planned().build()).unwrap();
    check(
        &first,
        expect![[r#"
        pods/db-ro-0: kubernetes apply pods shop/db-ro-0 {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"db.example.org/made-for":"large 1.0.0"},"labels":{"db.example.org/cluster":"db","db.example.org/role":"ro"},"name":"db-ro-0","namespace":"shop","ownerReferences":[{"apiVersion":"db.example.org/v1","controller":true,"kind":"SharedStorageCluster","name":"db","uid":"u"}]},"spec":{"containers":[{"args":["--role","ro"],"envFrom":[{"configMapRef":{"name":"db-meta"}}],"image":"db:1.0.0","name":"database","resources":{},"volumeMounts":[{"mountPath":"/data","name":"data"}]}],"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"db-data"}}]}}, forced
        pods/db-ro-1: kubernetes apply pods shop/db-ro-1 {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"db.example.org/made-for":"large 1.0.0"},"labels":{"db.example.org/cluster":"db","db.example.org/role":"ro"},"name":"db-ro-1","namespace":"shop","ownerReferences":[{"apiVersion":"db.example.org/v1","controller":true,"kind":"SharedStorageCluster","name":"db","uid":"u"}]},"spec":{"containers":[{"args":["--role","ro"],"envFrom":[{"configMapRef":{"name":"db-meta"}}],"image":"db:1.0.0","name":"database","resources":{},"volumeMounts":[{"mountPath":"/data","name":"data"}]}],"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"db-data"}}]}}, forced
        Outcome::Again(None) "#]],
    );
    let answers = [
        pod("db-ro-0", "large 1.0.0", ready()),
        pod("db-ro-1", "large 1.0.0", json!({"phase": "Pending"})),
    ];
    let waits = create(&planned().after(&first, answers).build()).unwrap();
    check(
        &waits,
        expect![[
            r#"Outcome::Wait(Wake { after: None, signals: [], objects: [ObjectKey { group: "", version: "v1", plural: "pods", namespace: "shop", name: "db-ro-1" }] }) "#
        ]],
    );
    let failed = [
        pod("db-ro-0", "large 1.0.0", ready()),
        pod("db-ro-1", "large 1.0.0", json!({"phase": "Failed"})),
    ];
    let error = create(&planned().after(&first, failed).build()).unwrap_err();
    assert_eq!(error.code.as_deref(), Some("POD_FAILED"));
}

#[test]
fn pods_are_made_anew_one_after_another() {
    let rebuild = |before: &Output, answers: Vec<RequestResult>| -> Result<Output, HandlerError> {
        rebuild_pods::rebuild_ro_pods(&planned().after(before, answers).build())
    };
    let looks = rebuild_pods::rebuild_ro_pods(&planned().build()).unwrap();
    check(
        &looks,
        expect![[r#"
        old: kubernetes get pods shop/db-ro-0, on-error catch-error
        Outcome::Again(None) 0"#]],
    );
    let deletes = rebuild(&looks, vec![pod("db-ro-0", "small 1.0.0", Value::Null)]).unwrap();
    check(
        &deletes,
        expect![[r#"
        gone: kubernetes delete pods shop/db-ro-0, uid db-ro-0-1
        Outcome::Again(None) 0"#]],
    );
    let absent = RequestResult::failed(
        "old",
        RequestSink::Kubernetes,
        ErrorKind::ResourceNotFound,
        "not found",
    );
    let makes = rebuild(&looks, vec![absent]).unwrap();
    check(
        &makes,
        expect![[r#"
        pods/db-ro-0: kubernetes apply pods shop/db-ro-0 {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"db.example.org/made-for":"large 1.0.0"},"labels":{"db.example.org/cluster":"db","db.example.org/role":"ro"},"name":"db-ro-0","namespace":"shop","ownerReferences":[{"apiVersion":"db.example.org/v1","controller":true,"kind":"SharedStorageCluster","name":"db","uid":"u"}]},"spec":{"containers":[{"args":["--role","ro"],"envFrom":[{"configMapRef":{"name":"db-meta"}}],"image":"db:1.0.0","name":"database","resources":{},"volumeMounts":[{"mountPath":"/data","name":"data"}]}],"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"db-data"}}]}}, forced
        Outcome::Again(None) 0"#]],
    );
    let made = rebuild(&makes, vec![pod("db-ro-0", "large 1.0.0", ready())]).unwrap();
    check(&made, expect!["Outcome::Again(None) 1"]);
    // One that is new already, since the host went before it was noted, stays.
    let kept = rebuild(&looks, vec![pod("db-ro-0", "large 1.0.0", Value::Null)]).unwrap();
    assert_eq!(kept.requests, makes.requests);
    let last = Output::new().data(json!(2));
    let done = rebuild(&last, Vec::new()).unwrap();
    assert_eq!(done.outcome, Outcome::Done);
}
