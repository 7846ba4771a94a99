//! Typed clients of Go that take nothing but protobuf.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::cluster::{Cluster, config_map, widget};
use crate::program::Program;

async fn check(cluster: Cluster, expected: &Expect) {
    cluster
        .create(config_map("first", json!({"watched": "yes"}), "1"))
        .await;
    let mut sky = widget("sky", "blue");
    sky["metadata"]["labels"] = json!({"watched": "yes"});
    cluster.create(sky).await;
    let program = Program::start(&cluster, "typed", &[]);
    program.until(1, "the last step", |said| said["did"] == "discovery");
    let lines: Vec<String> = program.said().iter().map(Value::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
    program.end();
}

fn expected() -> Expect {
    expect![[r#"
        {"did":"create","object":{"metadata":{"annotations":{"note":"é"},"generation":1,"labels":{"app":"typed"},"name":"typed"},"spec":{"progressDeadlineSeconds":600,"replicas":0,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"typed"}},"strategy":{"rollingUpdate":{"maxSurge":"30%","maxUnavailable":0},"type":"RollingUpdate"},"template":{"metadata":{"labels":{"app":"typed"}},"spec":{"containers":[{"env":[{"name":"EMPTY"},{"name":"SET","value":"x"}],"image":"example.com/none","imagePullPolicy":"Always","name":"main","ports":[{"containerPort":8080,"name":"web","protocol":"TCP"}],"readinessProbe":{"failureThreshold":3,"httpGet":{"path":"/","port":"web","scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"resources":{"requests":{"cpu":"250m","memory":"1Gi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},"status":{}}}
        {"did":"watch","name":"typed","type":"ADDED"}
        {"did":"list","name":"typed","replicas":0,"versioned":true}
        {"did":"patch","generation":1,"labels":{"app":"typed","patched":"yes"}}
        {"did":"fail","message":"deployments.apps \"absent\" not found","reason":"NotFound"}
        {"did":"fail","reason":"Invalid"}
        {"did":"status","status":{"containerStatuses":[{"image":"example.com/none","imageID":"","lastState":{},"name":"main","ready":false,"restartCount":0,"state":{}}],"phase":"Running","qosClass":"BestEffort"}}
        {"did":"define","names":"Thing","versions":[{"name":"v1beta1","schema":{"openAPIV3Schema":{"properties":{"choice":{"enum":["a","b"],"type":"string"},"either":{"nullable":true,"x-kubernetes-int-or-string":true},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"list":{"items":{"type":"string"},"minItems":0,"type":"array"},"map":{"additionalProperties":{"type":"string"},"type":"object"},"number":{"default":0,"maximum":2.5,"minimum":0,"type":"number"}},"required":["list"],"type":"object","x-kubernetes-validations":[{"message":"too many","rule":"self.list.size() < 5"}]}},"served":false,"storage":false},{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"choice":{"enum":["a","b"],"type":"string"},"either":{"nullable":true,"x-kubernetes-int-or-string":true},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"list":{"items":{"type":"string"},"minItems":0,"type":"array"},"map":{"additionalProperties":{"type":"string"},"type":"object"},"number":{"default":0,"maximum":2.5,"minimum":0,"type":"number"}},"required":["list"],"type":"object","x-kubernetes-validations":[{"message":"too many","rule":"self.list.size() < 5"}]}},"served":true,"storage":true,"subresources":{"status":{}}}]}
        {"did":"metadata","names":["first"],"resource":"configmaps"}
        {"did":"metadata","names":["sky"],"resource":"widgets"}
        {"apps":true,"did":"discovery"}"#]]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_clients_use_protobuf() {
    check(Cluster::embedded().await, &expected()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_clients_use_protobuf_on_a_real_control_plane() {
    check(Cluster::shared().await, &expected()).await;
}
