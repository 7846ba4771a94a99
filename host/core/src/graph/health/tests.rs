use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn show(health: &Health) -> String {
    match health {
        Health::Ready => "ready".to_owned(),
        Health::Waiting(reason) => format!("waiting: {reason}"),
        Health::Failed(reason) => format!("failed: {reason}"),
    }
}

/// Checks the health of one object with several specs and statuses, one line each.
#[expect(
    clippy::needless_pass_by_value,
    reason = "as `json!` and `expect!` are used"
)]
#[track_caller]
fn check(api_version: &str, kind: &str, variants: Value, expected: Expect) {
    let lines: Vec<String> = variants
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| {
            let object = json!({
                "apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "generation": 2},
                "spec": variant[0], "status": variant[1],
            });
            show(&health(&object, false)) + "\n"
        })
        .collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn a_controller_that_has_not_seen_the_newest_generation_is_awaited() {
    check(
        "apps/v1",
        "Deployment",
        json!([[{"replicas": 0}, {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]}]]),
        expect![[r#"
            waiting: its controller has seen generation 1; the newest is 2
        "#]],
    );
    let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}});
    assert_eq!(observed(&object), health(&object, false));
    let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}});
    assert_eq!(observed(&object), Health::Ready);
}

#[test]
fn conditions_for_every_kind_come_first() {
    let stalled = json!({"type": "Stalled", "status": "True", "reason": "NoImage", "message": "the image does not exist"});
    let reconciling = json!({"type": "Reconciling", "status": "True", "reason": "Progressing"});
    check(
        "shop.example/v1",
        "Shop",
        json!([
            [{}, {"conditions": [stalled, reconciling]}],
            [{}, {"conditions": [reconciling]}],
            [{}, {"conditions": [{"type": "Stalled", "status": "False"}]}],
        ]),
        expect![[r#"
            failed: Stalled: NoImage: the image does not exist
            waiting: Reconciling: Progressing
            ready
        "#]],
    );
}

#[test]
fn custom_resources_are_ready_by_their_condition() {
    let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "Syncing"}]});
    check(
        "shop.example/v1",
        "Shop",
        json!([
            [{}, ready("True")],
            [{}, ready("False")],
            [{}, ready("Unknown")],
            [{}, {}],
            [{}, null]
        ]),
        expect![[r#"
            ready
            waiting: Ready: Syncing
            waiting: Ready: Syncing
            ready
            ready
        "#]],
    );
    let object = json!({"apiVersion": "shop.example/v1", "kind": "Shop", "status": ready("True")});
    assert_eq!(
        show(&health(&object, true)),
        "waiting: its status is older than the last change"
    );
}

#[test]
fn deployments() {
    let available = json!({"type": "Available", "status": "True"});
    let complete =
        json!({"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"});
    let late = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"});
    let at = |replicas: i64,
              updated: i64,
              available_replicas: i64,
              ready: i64,
              conditions: Value| {
        json!([{"replicas": 2}, {
            "observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated,
            "availableReplicas": available_replicas, "readyReplicas": ready, "conditions": conditions,
        }])
    };
    check(
        "apps/v1",
        "Deployment",
        json!([
            [{}, null],
            at(1, 1, 0, 0, json!([])),
            at(3, 1, 2, 2, json!([])),
            at(3, 2, 2, 2, json!([])),
            at(2, 2, 1, 1, json!([])),
            at(2, 2, 2, 1, json!([])),
            at(
                2,
                2,
                2,
                2,
                json!([{"type": "Progressing", "reason": "ReplicaSetUpdated"}])
            ),
            at(
                2,
                2,
                2,
                2,
                json!([complete, {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}])
            ),
            at(2, 2, 2, 2, json!([complete, available])),
            at(2, 2, 2, 2, json!([available])),
            at(1, 1, 0, 0, json!([late])),
        ]),
        expect![[r#"
            waiting: 0 of 1 replicas are created
            waiting: 1 of 2 replicas are created
            waiting: 1 of 2 replicas are updated
            waiting: 1 outdated replicas are still running
            waiting: 1 of 2 replicas are available
            waiting: 1 of 2 replicas are ready
            waiting: the new ReplicaSet is not available
            waiting: Available: MinimumReplicasUnavailable
            ready
            ready
            failed: Progressing: ProgressDeadlineExceeded: timed out
        "#]],
    );
}

#[test]
fn stateful_sets() {
    let at = |spec: Value, replicas: i64, ready: i64, updated: i64, revision: &str| {
        json!([spec, {
            "replicas": replicas, "readyReplicas": ready, "updatedReplicas": updated,
            "currentRevision": "new", "updateRevision": revision,
        }])
    };
    let partition = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
    check(
        "apps/v1",
        "StatefulSet",
        json!([
            [{"updateStrategy": {"type": "OnDelete"}}, null],
            at(json!({"replicas": 3}), 1, 1, 1, "new"),
            at(json!({"replicas": 3}), 3, 2, 3, "new"),
            at(json!({"replicas": 3}), 4, 4, 3, "new"),
            at(json!({"replicas": 3}), 3, 3, 1, "newer"),
            at(json!({"replicas": 3}), 3, 3, 3, "newer"),
            at(json!({"replicas": 3}), 3, 3, 3, "new"),
            at(partition.clone(), 3, 3, 1, "newer"),
            at(partition, 3, 3, 2, "newer"),
        ]),
        expect![[r#"
            ready
            waiting: 1 of 3 replicas are created
            waiting: 2 of 3 replicas are ready
            waiting: 1 surplus replicas are still running
            waiting: 1 of 3 replicas are updated
            waiting: the update is not complete
            ready
            waiting: 1 of 2 replicas are updated
            ready
        "#]],
    );
}

#[test]
fn daemon_sets_and_replica_sets() {
    let at = |current: i64, updated: i64, available: i64, ready: i64| {
        json!([{}, {
            "observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": current,
            "updatedNumberScheduled": updated, "numberAvailable": available, "numberReady": ready,
        }])
    };
    check(
        "apps/v1",
        "DaemonSet",
        json!([
            [{}, {}],
            at(2, 0, 0, 0),
            at(3, 2, 2, 2),
            at(3, 3, 1, 1),
            at(3, 3, 3, 2),
            at(3, 3, 3, 3)
        ]),
        expect![[r#"
            waiting: its controller has not seen it
            waiting: 2 of 3 replicas are scheduled
            waiting: 2 of 3 replicas are updated
            waiting: 1 of 3 replicas are available
            waiting: 2 of 3 replicas are ready
            ready
        "#]],
    );
    check(
        "apps/v1",
        "ReplicaSet",
        json!([
            [{}, {}],
            [{"replicas": 1}, {"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}]}],
            [{}, {"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}],
            [{"replicas": 0}, {"replicas": 1}],
        ]),
        expect![[r#"
            waiting: 0 of 1 replicas are labelled
            waiting: ReplicaFailure: FailedCreate: quota
            ready
            waiting: 1 surplus replicas are still running
        "#]],
    );
}

#[test]
fn jobs_are_ready_when_they_are_complete() {
    let condition = |kind: &str| json!({"conditions": [{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]});
    check(
        "batch/v1",
        "Job",
        json!([
            [{}, {}],
            [{"completions": 3}, {"startTime": "2026-01-01T00:00:00Z", "succeeded": 1}],
            [{}, condition("Complete")],
            [{}, condition("Failed")],
        ]),
        expect![[r#"
            waiting: 0 of 1 completions are reached
            waiting: 1 of 3 completions are reached
            ready
            failed: Failed: BackoffLimitExceeded
        "#]],
    );
}

#[test]
fn pods() {
    let ready =
        |status: &str| json!([{"type": "Ready", "status": status, "reason": "ContainersNotReady"}]);
    let unscheduled = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]);
    let crashing = json!([{"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    check(
        "v1",
        "Pod",
        json!([
            [{}, {}],
            [{}, {"phase": "Pending", "conditions": unscheduled}],
            [{}, {"phase": "Running", "conditions": ready("False")}],
            [{}, {"phase": "Running", "conditions": ready("False"), "containerStatuses": crashing}],
            [{}, {"phase": "Running", "conditions": ready("True")}],
            [{}, {"phase": "Succeeded"}],
            [{}, {"phase": "Failed", "reason": "Evicted"}],
        ]),
        expect![[r#"
            waiting: the Pod has not started
            waiting: PodScheduled: Unschedulable: 0/3 nodes are available
            waiting: Ready: ContainersNotReady
            failed: the container web crashes again and again
            ready
            ready
            failed: the Pod failed: Evicted
        "#]],
    );
}

#[test]
fn claims_services_and_objects_without_status() {
    check(
        "v1",
        "PersistentVolumeClaim",
        json!([[{}, {"phase": "Pending"}], [{}, {"phase": "Bound"}], [{}, {"phase": "Lost"}]]),
        expect![[r#"
            waiting: the claim is not bound
            ready
            failed: the volume of the claim is lost
        "#]],
    );
    check(
        "v1",
        "Service",
        json!([
            [{"type": "ClusterIP"}, {}],
            [{"type": "LoadBalancer"}, {}],
            [{"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, {}],
        ]),
        expect![[r#"
            ready
            waiting: the Service has no cluster IP
            ready
        "#]],
    );
    check(
        "v1",
        "ConfigMap",
        json!([[null, null]]),
        expect![[r#"
        ready
    "#]],
    );
}

#[test]
fn definitions_and_api_services() {
    let names = |status: &str| json!({"type": "NamesAccepted", "status": status, "reason": "PluralConflict", "message": "\"shops\" is already in use"});
    let established = |status: &str, reason: &str| json!({"type": "Established", "status": status, "reason": reason});
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        json!([
            [{}, {}],
            [{}, {"conditions": [names("True"), established("False", "Installing")]}],
            [{}, {"conditions": [names("True"), established("True", "InitialNamesAccepted")]}],
            [{}, {"conditions": [names("False"), established("False", "NotAccepted")]}],
            [{}, {"conditions": [names("True"), established("False", "NotAccepted")]}],
            [{}, {"conditions": [names("True"), established("False", "Broken")]}],
        ]),
        expect![[r#"
            waiting: it has no condition Established yet
            waiting: Established: Installing
            ready
            failed: NamesAccepted: PluralConflict: "shops" is already in use
            waiting: Established: NotAccepted
            failed: Established: Broken
        "#]],
    );
    let available = |status: &str| json!({"conditions": [{"type": "Available", "status": status, "reason": "MissingEndpoints"}]});
    check(
        "apiregistration.k8s.io/v1",
        "APIService",
        json!([[{}, {}], [{}, available("False")], [{}, available("True")]]),
        expect![[r#"
            waiting: it has no condition Available yet
            waiting: Available: MissingEndpoints
            ready
        "#]],
    );
}

#[test]
fn an_object_of_any_shape_has_a_health() {
    for object in [
        json!(null),
        json!([]),
        json!({"status": "text", "kind": 1, "metadata": []}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"conditions": {}, "replicas": "many"}, "spec": {"replicas": -1}}),
    ] {
        let _ = health(&object, true);
        let _ = observed(&object);
    }
}
