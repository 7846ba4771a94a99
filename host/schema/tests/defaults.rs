//! Defaults of built-in kinds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_schema::builtin_defaults;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(group: &str, version: &str, kind: &str, mut object: Value, want: &Expect) {
    builtin_defaults(group, version, kind, &mut object);
    want.assert_eq(&object.to_string());
    let once = object.clone();
    builtin_defaults(group, version, kind, &mut object);
    assert_eq!(object, once, "defaults are set once");
}

#[test]
fn pods() {
    check(
        "",
        "v1",
        "Pod",
        json!({"metadata": {"name": "p", "creationTimestamp": null}, "spec": {"containers": [{
            "name": "a", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m", "memory": 1073741824}},
            "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}
        }], "volumes": [{"name": "v"}, {"name": "c", "configMap": {"name": "c"}}]}}),
        &expect![[
            r#"{"metadata":{"name":"p"},"spec":{"containers":[{"env":[{"name":"N","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"image":"nginx","imagePullPolicy":"Always","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"periodSeconds":5,"successThreshold":1,"timeoutSeconds":1},"name":"a","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1","memory":"1073741824"},"requests":{"cpu":"1","memory":"1073741824"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30,"volumes":[{"emptyDir":{},"name":"v"},{"configMap":{"defaultMode":420,"name":"c"},"name":"c"}]},"status":{"phase":"Pending","qosClass":"Guaranteed"}}"#
        ]],
    );
}

#[test]
fn workloads() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    check(
        "apps",
        "v1",
        "Deployment",
        json!({"spec": {"template": template}}),
        &expect![[
            r#"{"spec":{"progressDeadlineSeconds":600,"replicas":1,"revisionHistoryLimit":10,"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"},"template":{"metadata":{},"spec":{"containers":[{"image":"a:1","imagePullPolicy":"IfNotPresent","name":"a","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},"status":{}}"#
        ]],
    );
    check(
        "apps",
        "v1",
        "StatefulSet",
        json!({"spec": {"template": template}}),
        &expect![[
            r#"{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"},"podManagementPolicy":"OrderedReady","replicas":1,"revisionHistoryLimit":10,"template":{"metadata":{},"spec":{"containers":[{"image":"a:1","imagePullPolicy":"IfNotPresent","name":"a","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}},"updateStrategy":{"rollingUpdate":{"partition":0},"type":"RollingUpdate"}},"status":{"availableReplicas":0,"replicas":0}}"#
        ]],
    );
    check(
        "apps",
        "v1",
        "DaemonSet",
        json!({"spec": {"template": template}}),
        &expect![[
            r#"{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"1"}},"spec":{"revisionHistoryLimit":10,"template":{"metadata":{},"spec":{"containers":[{"image":"a:1","imagePullPolicy":"IfNotPresent","name":"a","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}},"updateStrategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1},"type":"RollingUpdate"}},"status":{"currentNumberScheduled":0,"desiredNumberScheduled":0,"numberMisscheduled":0,"numberReady":0}}"#
        ]],
    );
    check(
        "batch",
        "v1",
        "Job",
        json!({"spec": {"template": template}}),
        &expect![[
            r#"{"spec":{"backoffLimit":6,"completionMode":"NonIndexed","completions":1,"manualSelector":false,"parallelism":1,"podReplacementPolicy":"TerminatingOrFailed","suspend":false,"template":{"metadata":{},"spec":{"containers":[{"image":"a:1","imagePullPolicy":"IfNotPresent","name":"a","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},"status":{}}"#
        ]],
    );
    check(
        "batch",
        "v1",
        "CronJob",
        json!({"spec": {"jobTemplate": {"spec": {"template": template}}}}),
        &expect![[
            r#"{"spec":{"concurrencyPolicy":"Allow","failedJobsHistoryLimit":1,"jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":[{"image":"a:1","imagePullPolicy":"IfNotPresent","name":"a","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}},"successfulJobsHistoryLimit":3,"suspend":false},"status":{}}"#
        ]],
    );
}

#[test]
fn small_kinds() {
    check(
        "",
        "v1",
        "Service",
        json!({"spec": {"ports": [{"port": 80}]}}),
        &expect![[
            r#"{"spec":{"internalTrafficPolicy":"Cluster","ports":[{"port":80,"protocol":"TCP","targetPort":80}],"sessionAffinity":"None","type":"ClusterIP"},"status":{"loadBalancer":{}}}"#
        ]],
    );
    check(
        "",
        "v1",
        "Service",
        json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP", "clusterIP": "10.0.0.1"}}),
        &expect![[
            r#"{"spec":{"allocateLoadBalancerNodePorts":true,"clusterIP":"10.0.0.1","externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},"type":"LoadBalancer"},"status":{"loadBalancer":{}}}"#
        ]],
    );
    check(
        "",
        "v1",
        "Secret",
        json!({"data": {"a": "YQ=="}, "stringData": {"b": "x"}}),
        &expect![[r#"{"data":{"a":"YQ==","b":"eA=="},"type":"Opaque"}"#]],
    );
    check(
        "",
        "v1",
        "Namespace",
        json!({"metadata": {"name": "n"}}),
        &expect![[
            r#"{"metadata":{"labels":{"kubernetes.io/metadata.name":"n"},"name":"n"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#
        ]],
    );
    check(
        "",
        "v1",
        "PersistentVolumeClaim",
        json!({"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}),
        &expect![[
            r#"{"spec":{"resources":{"requests":{"storage":"1Gi"}},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}"#
        ]],
    );
    check(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}),
        &expect![[
            r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"u"}]}"#
        ]],
    );
    check(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}}),
        &expect![[
            r#"{"spec":{"egress":[{"ports":[{"port":1,"protocol":"TCP"}]}],"policyTypes":["Ingress","Egress"]}}"#
        ]],
    );
    check(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        json!({"spec": {"maxReplicas": 3, "behavior": {}}}),
        &expect![[
            r#"{"spec":{"behavior":{"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max","stabilizationWindowSeconds":0}},"maxReplicas":3,"metrics":[{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}],"minReplicas":1},"status":{"currentMetrics":null,"desiredReplicas":0}}"#
        ]],
    );
    check(
        "example.com",
        "v1",
        "Unknown",
        json!({"a": null}),
        &expect![[r#"{"a":null}"#]],
    );
}
