//! Rows as kubectl shows them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_schema::{builtin_defaults, table::Table};
use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().unwrap()
}

fn shown(table: &Table, object: &Value) -> String {
    let columns = table.columns();
    let cells = table.cells(object, now());
    assert_eq!(columns.as_array().unwrap().len(), cells.len());
    let mut text = String::new();
    for (column, cell) in columns.as_array().unwrap().iter().zip(cells) {
        let wide = if column["priority"] == 0 {
            ""
        } else {
            " (wide)"
        };
        text += &format!(
            "{}{wide}: {}\n",
            column["name"].as_str().unwrap(),
            cell.as_str()
                .map_or_else(|| cell.to_string(), str::to_owned)
        );
    }
    text
}

fn check(group: &str, kind: &str, mut object: Value, want: &Expect) {
    builtin_defaults(group, "v1", kind, &mut object);
    object["metadata"] = json!({"name": "x", "creationTimestamp": "2026-01-01T23:54:48Z"});
    want.assert_eq(&shown(&Table::builtin(group, "v1", kind), &object));
}

#[test]
fn pods() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], "nodeName": "n"});
    check(
        "",
        "Pod",
        json!({"spec": spec}),
        &expect![[r#"
        Name: x
        Ready: 0/2
        Status: Pending
        Restarts: 0
        Age: 5m12s
        IP (wide): <none>
        Node (wide): n
        Nominated Node (wide): <none>
        Readiness Gates (wide): <none>
    "#]],
    );
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    check(
        "",
        "Pod",
        json!({"spec": spec, "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [{"name": "a", "ready": true, "state": running}, {"name": "b", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T23:59:00Z"}}}]}}),
        &expect![[r#"
            Name: x
            Ready: 1/2
            Status: CrashLoopBackOff
            Restarts: 3 (60s ago)
            Age: 5m12s
            IP (wide): 10.0.0.1
            Node (wide): n
            Nominated Node (wide): <none>
            Readiness Gates (wide): <none>
        "#]],
    );
    check(
        "",
        "Pod",
        json!({"spec": spec, "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}}),
        &expect![[r#"
        Name: x
        Ready: 0/2
        Status: Init:0/1
        Restarts: 0
        Age: 5m12s
        IP (wide): <none>
        Node (wide): n
        Nominated Node (wide): <none>
        Readiness Gates (wide): <none>
    "#]],
    );
    check(
        "",
        "Pod",
        json!({"spec": spec, "status": {"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 137, "signal": 9}}}]}}),
        &expect![[r#"
        Name: x
        Ready: 0/2
        Status: Signal:9
        Restarts: 0
        Age: 5m12s
        IP (wide): <none>
        Node (wide): n
        Nominated Node (wide): <none>
        Readiness Gates (wide): <none>
    "#]],
    );
}

#[test]
fn kinds() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    check(
        "apps",
        "Deployment",
        json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["1", "2"]}]}, "template": template}, "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2}}),
        &expect![[r#"
        Name: x
        Ready: 2/3
        Up-to-date: 3
        Available: 2
        Age: 5m12s
        Containers (wide): a
        Images (wide): a:1
        Selector (wide): a=b,k in (1,2)
    "#]],
    );
    check(
        "apps",
        "DaemonSet",
        json!({"spec": {"template": template}}),
        &expect![[r#"
        Name: x
        Desired: 0
        Current: 0
        Ready: 0
        Up-to-date: 0
        Available: 0
        Node Selector: <none>
        Age: 5m12s
        Containers (wide): a
        Images (wide): a:1
        Selector (wide): <none>
    "#]],
    );
    check(
        "batch",
        "Job",
        json!({"spec": {"template": template}, "status": {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:30Z", "conditions": [{"type": "Complete", "status": "True"}]}}),
        &expect![[r#"
        Name: x
        Status: Complete
        Completions: 1/1
        Duration: 90s
        Age: 5m12s
        Containers (wide): a
        Images (wide): a:1
        Selector (wide): <none>
    "#]],
    );
    check(
        "",
        "Service",
        json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30000}, {"port": 53, "protocol": "UDP"}], "selector": {"a": "b"}}}),
        &expect![[r#"
        Name: x
        Type: LoadBalancer
        Cluster-IP: 10.0.0.1
        External-IP: <pending>
        Port(s): 80:30000/TCP,53/UDP
        Age: 5m12s
        Selector (wide): a=b
    "#]],
    );
    check(
        "",
        "ConfigMap",
        json!({"data": {"a": "b"}, "binaryData": {"c": ""}}),
        &expect![[r#"
        Name: x
        Data: 2
        Age: 5m12s
    "#]],
    );
    check(
        "",
        "Node",
        json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}}),
        &expect![[r#"
        Name: x
        Status: Ready
        Roles: <none>
        Age: 5m12s
        Version: 
        Internal-IP (wide): 1.2.3.4
        External-IP (wide): <none>
        OS-Image (wide): <unknown>
        Kernel-Version (wide): <unknown>
        Container-Runtime (wide): <unknown>
    "#]],
    );
    check(
        "",
        "Event",
        json!({"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "type": "Normal", "message": " m ", "lastTimestamp": "2026-01-01T23:59:30Z", "count": 2, "source": {"component": "c"}}),
        &expect![[r#"
        Last Seen: 30s
        Type: Normal
        Reason: R
        Object: pod/p
        Subobject (wide): 
        Source (wide): c
        Message: m
        First Seen (wide): <unknown>
        Count (wide): 2
        Name (wide): x
    "#]],
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({"spec": {"volumeName": "v", "storageClassName": "s"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
        &expect![[r#"
        Name: x
        Status: Bound
        Volume: v
        Capacity: 1Gi
        Access Modes: RWO
        StorageClass: s
        VolumeAttributesClass: <unset>
        Age: 5m12s
        VolumeMode (wide): Filesystem
    "#]],
    );
    check(
        "networking.k8s.io",
        "Ingress",
        json!({"spec": {"rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}], "tls": [{}]}}),
        &expect![[r#"
        Name: x
        Class: <none>
        Hosts: a,b,c + 1 more...
        Address: 
        Ports: 80, 443
        Age: 5m12s
    "#]],
    );
    check(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 5, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]}}),
        &expect![[r#"
        Name: x
        Reference: Deployment/d
        Targets: cpu: <unknown>/80%
        MinPods: 1
        MaxPods: 5
        Replicas: 0
        Age: 5m12s
    "#]],
    );
    check(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
        &expect![[r#"
        Name: x
        Role: Role/r
        Age: 5m12s
        Users (wide): 
        Groups (wide): 
        ServiceAccounts (wide): n/s
    "#]],
    );
    check(
        "rbac.authorization.k8s.io",
        "Role",
        json!({"rules": []}),
        &expect![[r#"
        Name: x
        Created At: 2026-01-01T23:54:48Z
    "#]],
    );
}

#[test]
fn custom_columns() {
    let table = Table::from_crd(Some(&json!([
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "All", "type": "string", "jsonPath": ".spec", "priority": 1},
        {"name": "Wrong", "type": "boolean", "jsonPath": ".spec.replicas"}
    ])))
    .unwrap();
    let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"replicas": 2}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    expect![[r#"
        Name: x
        Replicas: 2
        Ready: True
        Age: 24h
        All (wide): {"replicas":2}
        Wrong: null
    "#]]
    .assert_eq(&shown(&table, &object));
    expect![[r#"
        Name: x
        Age: 24h
    "#]]
    .assert_eq(&shown(&Table::from_crd(None).unwrap(), &object));
    let errors = Table::from_crd(Some(
        &json!([{"name": "", "type": "text", "jsonPath": ".a["}]),
    ))
    .unwrap_err();
    let text: String = errors.iter().map(|e| format!("{e}\n")).collect();
    expect![[r#"
        additionalPrinterColumns[0].name: Required value
        additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string
        additionalPrinterColumns[0].jsonPath: Invalid value: ".a[": is an invalid JSONPath: unterminated [ in ".a["
    "#]].assert_eq(&text);
}
