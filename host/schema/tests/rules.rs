//! Rules of the built-in kinds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_schema::{builtin_defaults, builtin_validate};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(group: &str, kind: &str, object: Value, want: &Expect) {
    update(group, kind, object, None, want);
}

fn update(group: &str, kind: &str, mut object: Value, old: Option<Value>, want: &Expect) {
    let version = if (group, kind) == ("autoscaling", "HorizontalPodAutoscaler") {
        "v2"
    } else {
        "v1"
    };
    builtin_defaults(group, version, kind, &mut object);
    let old = old.map(|mut o| {
        builtin_defaults(group, version, kind, &mut o);
        o
    });
    let errors = builtin_validate(group, version, kind, &object, old.as_ref());
    want.assert_eq(&errors.iter().map(|e| format!("{e}\n")).collect::<String>());
}

#[test]
fn pods() {
    check(
        "",
        "Pod",
        json!({}),
        &expect![[r#"
        spec.containers: Required value
    "#]],
    );
    check(
        "",
        "Pod",
        json!({"spec": {"restartPolicy": "Sometimes", "containers": [
            {"image": "a"}, {"name": "A_b", "image": ""}, {"name": "x", "image": " x"}, {"name": "x", "image": "y", "imagePullPolicy": "Never ever"}
        ]}}),
        &expect![[r#"
            spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"
            spec.containers[0].name: Required value
            spec.containers[1].name: Invalid value: "A_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            spec.containers[1].image: Required value
            spec.containers[2].image: Invalid value: " x": must not have leading or trailing whitespace
            spec.containers[3].name: Duplicate value: "x"
            spec.containers[3].imagePullPolicy: Unsupported value: "Never ever": supported values: "Always", "IfNotPresent", "Never"
        "#]],
    );
    check(
        "",
        "Pod",
        json!({"spec": {"containers": [{"name": "a", "image": "a",
        "ports": [{"containerPort": 0}, {"containerPort": 80, "protocol": "tcp"}], "env": [{"value": "x"}, {"name": "a=b"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}, {"name": "v"}],
        "resources": {"requests": {"cpu": "2", "memory": "lots"}, "limits": {"cpu": "1500m"}}, "livenessProbe": {}, "readinessProbe": {"httpGet": {"port": 99999}}
    }], "volumes": [{"name": "v", "emptyDir": {}}, {"name": "two", "emptyDir": {}, "hostPath": {"path": "/"}}]}}),
        &expect![[r#"
        spec.containers[0].resources.requests[memory]: Invalid value: "lots": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
        spec.volumes[1]: Forbidden: may not specify more than 1 volume type
        spec.containers[0].ports[0].containerPort: Invalid value: 0: must be between 1 and 65535, inclusive
        spec.containers[0].ports[1].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"
        spec.containers[0].env[0].name: Required value
        spec.containers[0].env[1].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='
        spec.containers[0].env[2].valueFrom.secretKeyRef.key: Required value
        spec.containers[0].volumeMounts[1].name: Not found: "w"
        spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique
        spec.containers[0].volumeMounts[2].mountPath: Required value
        spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1500m
        spec.containers[0].livenessProbe: Required value: must specify a handler type
        spec.containers[0].readinessProbe.httpGet.port: Invalid value: 99999: must be between 1 and 65535, inclusive
    "#]],
    );
    let pod = |image: &str, args: &str| json!({"spec": {"containers": [{"name": "a", "image": image, "args": [args]}]}});
    update(
        "",
        "Pod",
        pod("b", "x"),
        Some(pod("a", "x")),
        &expect![[""]],
    );
    update(
        "",
        "Pod",
        pod("a", "y"),
        Some(pod("a", "x")),
        &expect![[r#"
        spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
    "#]],
    );
}

#[test]
fn workloads() {
    let make = |labels: Value, selector: Value| json!({"spec": {"selector": selector, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    check(
        "apps",
        "Deployment",
        json!({"spec": {"replicas": -1}}),
        &expect![[r#"
            spec.replicas: Invalid value: -1: must be greater than or equal to 0
            spec.selector: Required value
            spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`
            spec.template.spec.containers: Required value
        "#]],
    );
    check(
        "apps",
        "Deployment",
        make(json!({"a": "b"}), json!({"matchLabels": {"a": "c"}})),
        &expect![[r#"
        spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`
    "#]],
    );
    check(
        "apps",
        "Deployment",
        make(json!({"a": "b"}), json!({})),
        &expect![[r#"
        spec.selector: Invalid value: {}: empty selector is invalid for deployment
    "#]],
    );
    let good = make(
        json!({"a": "b", "c": "d"}),
        json!({"matchLabels": {"a": "b"}}),
    );
    check("apps", "Deployment", good.clone(), &expect![[""]]);
    update(
        "apps",
        "Deployment",
        make(
            json!({"a": "b", "c": "d"}),
            json!({"matchLabels": {"c": "d"}}),
        ),
        Some(good.clone()),
        &expect![[r#"
        spec.selector: Invalid value: {"matchLabels":{"c":"d"}}: field is immutable
    "#]],
    );
    let mut renamed = good.clone();
    renamed["spec"]["serviceName"] = json!("other");
    update(
        "apps",
        "StatefulSet",
        renamed,
        Some(good.clone()),
        &expect![[r#"
        spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden
    "#]],
    );
    check(
        "batch",
        "Job",
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}}),
        &expect![[r#"
            spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
        "#]],
    );
    check(
        "batch",
        "CronJob",
        json!({"spec": {"schedule": "hourly", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}}}),
        &expect![[r#"
        spec.schedule: Invalid value: "hourly": expected exactly 5 fields, found 1: [hourly]
    "#]],
    );
    check(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"spec": {"minReplicas": 5, "maxReplicas": 2}}),
        &expect![[r#"
        spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`
        spec.scaleTargetRef.kind: Required value
        spec.scaleTargetRef.name: Required value
    "#]],
    );
}

#[test]
fn stores_and_services() {
    check(
        "",
        "ConfigMap",
        json!({"metadata": {"labels": {"a b": "c d"}, "annotations": {"x/y/z": ""}}, "data": {"a b": "", "..x": "", "k": ""}, "binaryData": {"k": "", "n": "%"}}),
        &expect![[r#"
            metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            metadata.labels: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            metadata.annotations: Invalid value: "x/y/z": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            data[..x]: Invalid value: "..x": must not start with '..'
            data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            data[k]: Invalid value: "k": duplicate of key present in binaryData
            binaryData[n]: Invalid value: illegal base64 data
        "#]],
    );
    update(
        "",
        "ConfigMap",
        json!({"data": {"a": "2"}}),
        Some(json!({"immutable": true, "data": {"a": "1"}})),
        &expect![[r#"
        immutable: Forbidden: field is immutable when `immutable` is set
        data: Forbidden: field is immutable when `immutable` is set
    "#]],
    );
    check(
        "",
        "Secret",
        json!({"type": "kubernetes.io/tls", "data": {"x": "secret!"}}),
        &expect![[r#"
        data[x]: Invalid value: illegal base64 data
        data[tls.crt]: Required value
        data[tls.key]: Required value
    "#]],
    );
    update(
        "",
        "Secret",
        json!({"type": "b"}),
        Some(json!({"type": "a"})),
        &expect![[r#"
        type: Invalid value: "b": field is immutable
    "#]],
    );
    check(
        "",
        "Service",
        json!({"spec": {}}),
        &expect![[r#"
        spec.ports: Required value
    "#]],
    );
    check(
        "",
        "Service",
        json!({"spec": {"type": "Local", "ports": [{"port": 80}, {"port": 80}, {"name": "x", "port": 70000}]}}),
        &expect![[r#"
        spec.type: Unsupported value: "Local": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"
        spec.ports[0].name: Required value
        spec.ports[1].name: Required value
        spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}
        spec.ports[2].port: Invalid value: 70000: must be between 1 and 65535, inclusive
        spec.ports[2].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive
    "#]],
    );
    update(
        "",
        "Service",
        json!({"spec": {"clusterIP": "10.0.0.2", "ports": [{"port": 80}]}}),
        Some(json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}})),
        &expect![[r#"
            spec.clusterIPs[0]: Invalid value: null: may not change once set
        "#]],
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({"spec": {}}),
        &expect![[r#"
        spec.accessModes: Required value: at least 1 access mode is required
        spec.resources[storage]: Required value
    "#]],
    );
    check(
        "networking.k8s.io",
        "Ingress",
        json!({"spec": {"rules": [{"host": "A b", "http": {"paths": [{"path": "x", "pathType": "Prefix"}, {"path": "/"}]}}]}}),
        &expect![[r#"
        spec.rules[0].host: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path
        spec.rules[0].http.paths[0].backend: Required value
        spec.rules[0].http.paths[1].pathType: Required value: pathType must be specified
        spec.rules[0].http.paths[1].backend: Required value
    "#]],
    );
    check(
        "rbac.authorization.k8s.io",
        "Role",
        json!({"rules": [{}]}),
        &expect![[r#"
        rules[0].verbs: Required value: verbs must contain at least one value
        rules[0].apiGroups: Required value: resource rules must supply at least one api group
        rules[0].resources: Required value: resource rules must supply at least one resource
    "#]],
    );
    update(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "a"}}),
        Some(json!({"roleRef": {"kind": "Role", "name": "b"}})),
        &expect![[r#"
        roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"a"}: cannot change roleRef
    "#]],
    );
    check("example.com", "Other", json!({}), &expect![[""]]);
}

#[test]
fn definitions() {
    check(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        json!({"metadata": {"name": "x"}, "spec": {}}),
        &expect![[r#"
            spec.group: Required value
            spec.scope: Required value
            spec.names.plural: Required value
            spec.names.singular: Required value
            spec.names.kind: Required value
            spec.names.listKind: Required value
            metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group
            spec.versions: Invalid value: null: must have exactly one version marked as storage version
            status.storedVersions: Invalid value: null: must have at least one stored version
        "#]],
    );
    let good = json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    check(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        good.clone(),
        &expect![[""]],
    );
    let mut bad = good;
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": {}});
    bad["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "A"}]);
    check(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        bad,
        &expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields
            spec.additionalPrinterColumns[0].type: Required value: must be one of boolean,date,integer,number,string
            spec.additionalPrinterColumns[0].JSONPath: Required value
        "#]],
    );
}
