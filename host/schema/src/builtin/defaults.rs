//! What an API server sets in objects of the built-in kinds.

use serde_json::{Map, Value, json};

use super::{builtin, pod_defaults};
use crate::quantity::Quantity;

/// Sets what an API server sets in an object of a built-in kind: defaults, and values in canonical form.
///
/// Nulls go, quantities become canonical, `stringData` of a Secret moves to `data`, and a `status` that is absent gets the
/// form that the kind starts with. Applying it twice changes nothing more. Other kinds are left alone.
pub fn builtin_defaults(group: &str, version: &str, kind: &str, object: &mut Value) {
    let Some(schema) = builtin(group, version, kind) else {
        return;
    };
    schema.canonicalize(object);
    match (group, kind) {
        ("", _) => core(kind, object),
        ("apps", _) => apps(kind, object),
        ("batch", "Job") => {
            job_spec(object_at(object, "spec"));
            let labels = at(object, "/spec/template/metadata/labels").cloned();
            copy_labels(object, labels);
            set(object, "status", json!({}));
        }
        ("batch", "CronJob") => cron_job(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => role_binding(object),
        // Of the fields that may be absent only this one is written all the same.
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            set(object, "rules", Value::Null);
        }
        ("apiregistration.k8s.io", "APIService") => {
            set(object, "status", json!({}));
            if let Some(service) = object.pointer_mut("/spec/service") {
                set(service, "port", json!(443));
            }
        }
        ("networking.k8s.io", _) => networking(kind, object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(version, object),
        ("policy", "PodDisruptionBudget") => set(
            object,
            "status",
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}),
        ),
        ("storage.k8s.io", _) => storage(kind, object),
        ("scheduling.k8s.io", "PriorityClass") => {
            set(object, "preemptionPolicy", json!("PreemptLowerPriority"))
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            for port in items(object, "ports") {
                if port.get("name").is_none() {
                    set_always(port, "name", json!(""));
                }
                set(port, "protocol", json!("TCP"));
            }
        }
        ("admissionregistration.k8s.io", _) => admission(kind, object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition(object),
        _ => {}
    }
    condition_times(group, kind, object);
}

/// The times of a condition are written also where nobody has set them.
fn condition_times(group: &str, kind: &str, object: &mut Value) {
    let names: &[&str] = match (group, kind) {
        ("", "Pod" | "PersistentVolumeClaim") | ("batch", "Job") => {
            &["lastProbeTime", "lastTransitionTime"]
        }
        ("", "Node") => &["lastHeartbeatTime", "lastTransitionTime"],
        ("apps", "Deployment") => &["lastTransitionTime", "lastUpdateTime"],
        ("apps" | "", _) | ("autoscaling", _) => &["lastTransitionTime"],
        _ => return,
    };
    let Some(status) = object.get_mut("status") else {
        return;
    };
    for condition in items(status, "conditions") {
        for name in names {
            set(condition, name, Value::Null);
        }
    }
}

fn core(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => {
            let spec = object_at(object, "spec");
            pod_defaults::spec(spec);
            pod_defaults::pod_only(spec);
            let class = pod_defaults::qos_class(spec);
            let status = object_at(object, "status");
            set(status, "phase", json!("Pending"));
            set(status, "qosClass", json!(class));
            let address = text(status, "podIP");
            if !address.is_empty() {
                set(status, "podIPs", json!([{"ip": address}]));
            }
        }
        "PodTemplate" => pod_defaults::template(object_at(object, "template")),
        "ReplicationController" => {
            let labels = at(object, "/spec/template/metadata/labels").cloned();
            copy_labels(object, labels.clone());
            let spec = object_at(object, "spec");
            if let Some(labels) = labels {
                set(spec, "selector", labels);
            }
            set(spec, "replicas", json!(1));
            template(spec);
            set(object, "status", json!({"replicas": 0}));
        }
        "Service" => service(object),
        "Secret" => secret(object),
        "Namespace" => {
            if let Some(name) = at(object, "/metadata/name").cloned() {
                set_always(
                    object_at(object_at(object, "metadata"), "labels"),
                    "kubernetes.io/metadata.name",
                    name,
                );
            }
            let spec = object_at(object, "spec");
            set(spec, "finalizers", json!(["kubernetes"]));
            set(object_at(object, "status"), "phase", json!("Active"));
        }
        "PersistentVolume" => {
            let spec = object_at(object, "spec");
            set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
            set(spec, "volumeMode", json!("Filesystem"));
            pod_defaults::volume_source(spec);
            set(object_at(object, "status"), "phase", json!("Pending"));
        }
        "PersistentVolumeClaim" => {
            set(object_at(object, "spec"), "volumeMode", json!("Filesystem"));
            set(object_at(object, "status"), "phase", json!("Pending"));
        }
        "Endpoints" => {
            for subset in items(object, "subsets") {
                for port in items(subset, "ports") {
                    set(port, "protocol", json!("TCP"));
                }
            }
        }
        "Node" => {
            object_at(object, "spec");
            let status = object_at(object, "status");
            set(status, "daemonEndpoints", json!({}));
            set(
                object_at(status, "daemonEndpoints"),
                "kubeletEndpoint",
                json!({"Port": 0}),
            );
            let info = object_at(status, "nodeInfo");
            for name in [
                "architecture",
                "bootID",
                "containerRuntimeVersion",
                "kernelVersion",
                "kubeProxyVersion",
                "kubeletVersion",
                "machineID",
                "operatingSystem",
                "osImage",
                "systemUUID",
            ] {
                set(info, name, json!(""));
            }
            if status.get("allocatable").is_none()
                && let Some(capacity) = status.get("capacity").cloned()
            {
                set(status, "allocatable", capacity);
            }
        }
        "Event" => {
            for name in ["eventTime", "firstTimestamp", "lastTimestamp"] {
                set(object, name, Value::Null);
            }
            for name in ["reportingComponent", "reportingInstance"] {
                set(object, name, json!(""));
            }
            object_at(object, "source");
        }
        "LimitRange" => items(object_at(object, "spec"), "limits").for_each(limit_range_item),
        "ResourceQuota" => {
            object_at(object, "spec");
        }
        _ => {}
    }
}

fn limit_range_item(item: &mut Value) {
    if item.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (to, from) in [
        ("default", "max"),
        ("defaultRequest", "default"),
        ("defaultRequest", "min"),
    ] {
        let from = item
            .get(from)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let to = object_at(item, to);
        for (name, value) in from {
            set(to, &name, value);
        }
    }
}

fn service(object: &mut Value) {
    let spec = object_at(object, "spec");
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    let kind = text(spec, "type");
    match text(spec, "sessionAffinity").as_str() {
        "None" => remove(spec, "sessionAffinityConfig"),
        "ClientIP" => set(
            object_at(object_at(spec, "sessionAffinityConfig"), "clientIP"),
            "timeoutSeconds",
            json!(10800),
        ),
        _ => {}
    }
    for port in items(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        if port
            .get("targetPort")
            .is_none_or(|t| *t == json!(0) || *t == json!(""))
            && let Some(number) = port.get("port").cloned()
        {
            set_always(port, "targetPort", number);
        }
    }
    let external = spec
        .get("externalIPs")
        .and_then(Value::as_array)
        .is_some_and(|a| !a.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && external) {
        set(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind != "ExternalName" {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    // The first of the addresses is the address; the list is made where addresses are given out.
    if spec.get("clusterIP").is_none()
        && let Some(one) = spec.get("clusterIPs").and_then(|list| list.get(0)).cloned()
    {
        set(spec, "clusterIP", one);
    }
    set(object_at(object, "status"), "loadBalancer", json!({}));
}

/// `stringData` is written only; it overrides `data`.
fn secret(object: &mut Value) {
    use base64::Engine;
    set(object, "type", json!("Opaque"));
    let Value::Object(map) = object else { return };
    let Some(Value::Object(plain)) = map.remove("stringData") else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    let data = object_at(object, "data");
    for (name, value) in plain {
        if let Value::String(text) = value {
            set_always(
                data,
                &name,
                json!(base64::engine::general_purpose::STANDARD.encode(text)),
            );
        }
    }
}

fn apps(kind: &str, object: &mut Value) {
    if kind == "DaemonSet" {
        template_generation(object);
    }
    let spec = match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => object_at(object, "spec"),
        _ => return,
    };
    template(spec);
    let status = match kind {
        "Deployment" => {
            set(spec, "replicas", json!(1));
            set(spec, "revisionHistoryLimit", json!(10));
            set(spec, "progressDeadlineSeconds", json!(600));
            let strategy = object_at(spec, "strategy");
            set(strategy, "type", json!("RollingUpdate"));
            if text(strategy, "type") == "RollingUpdate" {
                let rolling = object_at(strategy, "rollingUpdate");
                set(rolling, "maxUnavailable", json!("25%"));
                set(rolling, "maxSurge", json!("25%"));
            }
            json!({})
        }
        "ReplicaSet" => {
            set(spec, "replicas", json!(1));
            json!({"replicas": 0})
        }
        "StatefulSet" => {
            stateful_set(spec);
            json!({"replicas": 0, "availableReplicas": 0})
        }
        _ => {
            set(spec, "revisionHistoryLimit", json!(10));
            let strategy = object_at(spec, "updateStrategy");
            set(strategy, "type", json!("RollingUpdate"));
            if text(strategy, "type") == "RollingUpdate" {
                let rolling = object_at(strategy, "rollingUpdate");
                set(rolling, "maxUnavailable", json!(1));
                set(rolling, "maxSurge", json!(0));
            }
            json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0})
        }
    };
    set(object, "status", status);
}

fn stateful_set(spec: &mut Value) {
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    let strategy = object_at(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        set(strategy, "type", json!("RollingUpdate"));
        set(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate")
    {
        set(rolling, "partition", json!(0));
    }
    let retention = object_at(spec, "persistentVolumeClaimRetentionPolicy");
    set(retention, "whenDeleted", json!("Retain"));
    set(retention, "whenScaled", json!("Retain"));
    for claim in items(spec, "volumeClaimTemplates") {
        set(claim, "apiVersion", json!("v1"));
        set(claim, "kind", json!("PersistentVolumeClaim"));
        set(object_at(claim, "spec"), "volumeMode", json!("Filesystem"));
        set(object_at(claim, "status"), "phase", json!("Pending"));
    }
}

fn job_spec(spec: &mut Value) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        set(spec, "completions", json!(1));
    }
    set(spec, "parallelism", json!(1));
    let limit = if spec.get("backoffLimitPerIndex").is_some() {
        i32::MAX
    } else {
        6
    };
    set(spec, "backoffLimit", json!(limit));
    set(spec, "completionMode", json!("NonIndexed"));
    set(spec, "suspend", json!(false));
    let replacement = if spec.get("podFailurePolicy").is_some() {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set(spec, "podReplacementPolicy", json!(replacement));
    set(spec, "manualSelector", json!(false));
    template(spec);
}

fn cron_job(object: &mut Value) {
    let spec = object_at(object, "spec");
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    // Of the job's own defaults only those of its Pods are set here; the rest is set when it is created.
    if let Some(job) = spec.get_mut("jobTemplate") {
        set(job, "metadata", json!({}));
        let inner = object_at(job, "spec");
        template(inner);
    }
    set(object, "status", json!({}));
}

fn role_binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    set(object_at(object, "roleRef"), "apiGroup", json!(GROUP));
    for subject in items(object, "subjects") {
        if matches!(text(subject, "kind").as_str(), "User" | "Group") {
            set(subject, "apiGroup", json!(GROUP));
        }
    }
}

fn networking(kind: &str, object: &mut Value) {
    match kind {
        "NetworkPolicy" => {
            let spec = object_at(object, "spec");
            let egress = spec
                .get("egress")
                .and_then(Value::as_array)
                .is_some_and(|a| !a.is_empty());
            let types = if egress {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            };
            set(spec, "policyTypes", types);
            for direction in ["ingress", "egress"] {
                for rule in items(spec, direction) {
                    items(rule, "ports").for_each(|port| set(port, "protocol", json!("TCP")));
                }
            }
        }
        "IngressClass" => {
            if let Some(parameters) = object.pointer_mut("/spec/parameters") {
                set(parameters, "scope", json!("Cluster"));
            }
        }
        "Ingress" => set(object_at(object, "status"), "loadBalancer", json!({})),
        _ => {}
    }
}

/// The number of the template that the kind had before it had revisions.
fn template_generation(object: &mut Value) {
    let metadata = object_at(object, "metadata");
    set(
        object_at(metadata, "annotations"),
        "deprecated.daemonset.template.generation",
        json!("1"),
    );
}

fn autoscaler(version: &str, object: &mut Value) {
    let spec = object_at(object, "spec");
    set(spec, "minReplicas", json!(1));
    if version == "v1" {
        set(spec, "targetCPUUtilizationPercentage", json!(80));
        set(
            object,
            "status",
            json!({"currentReplicas": 0, "desiredReplicas": 0}),
        );
        return;
    }
    set(
        spec,
        "metrics",
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
    );
    if let Some(behavior) = spec.get_mut("behavior") {
        let up = object_at(behavior, "scaleUp");
        set(up, "stabilizationWindowSeconds", json!(0));
        set(up, "selectPolicy", json!("Max"));
        let pods = json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]);
        set(up, "policies", pods);
        let down = object_at(behavior, "scaleDown");
        set(down, "selectPolicy", json!("Max"));
        set(
            down,
            "policies",
            json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
        );
    }
    let status = object_at(object, "status");
    set(status, "desiredReplicas", json!(0));
    set(status, "currentMetrics", Value::Null);
}

fn storage(kind: &str, object: &mut Value) {
    match kind {
        "StorageClass" => {
            set(object, "reclaimPolicy", json!("Delete"));
            set(object, "volumeBindingMode", json!("Immediate"));
        }
        "CSIDriver" => {
            let spec = object_at(object, "spec");
            for (name, value) in [
                ("attachRequired", true),
                ("podInfoOnMount", false),
                ("storageCapacity", false),
                ("requiresRepublish", false),
                ("seLinuxMount", false),
            ] {
                set(spec, name, json!(value));
            }
            set(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
            set(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
        _ => {}
    }
}

fn admission(kind: &str, object: &mut Value) {
    let matching = |place: &mut Value| {
        set(place, "matchPolicy", json!("Equivalent"));
        set(place, "namespaceSelector", json!({}));
        set(place, "objectSelector", json!({}));
        for name in ["resourceRules", "excludeResourceRules", "rules"] {
            items(place, name).for_each(|rule| set(rule, "scope", json!("*")));
        }
    };
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for hook in items(object, "webhooks") {
                matching(hook);
                set(hook, "failurePolicy", json!("Fail"));
                set(hook, "timeoutSeconds", json!(10));
                if kind == "MutatingWebhookConfiguration" {
                    set(hook, "reinvocationPolicy", json!("Never"));
                }
                if let Some(service) = hook.pointer_mut("/clientConfig/service") {
                    set(service, "port", json!(443));
                }
            }
        }
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            let spec = object_at(object, "spec");
            set(spec, "failurePolicy", json!("Fail"));
            if let Some(constraints) = spec.get_mut("matchConstraints") {
                matching(constraints);
            }
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            if let Some(resources) = object.pointer_mut("/spec/matchResources") {
                matching(resources);
            }
        }
        _ => {}
    }
}

fn custom_resource_definition(object: &mut Value) {
    let spec = object_at(object, "spec");
    set(spec, "conversion", json!({"strategy": "None"}));
    let names = object_at(spec, "names");
    let kind = text(names, "kind");
    if !kind.is_empty() {
        set(names, "singular", json!(kind.to_lowercase()));
        set(names, "listKind", json!(format!("{kind}List")));
    }
}

fn template(spec: &mut Value) {
    if let Some(template) = spec.get_mut("template") {
        pod_defaults::template(template);
    }
}

fn copy_labels(object: &mut Value, labels: Option<Value>) {
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|m| !m.is_empty())) {
        set(object_at(object, "metadata"), "labels", labels);
    }
}

fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    object.pointer(pointer)
}

/// Sets what is absent, or as good as: empty texts, lists and maps count as absent, as Go has no other way to say so.
pub(super) fn set(object: &mut Value, name: &str, value: Value) {
    let Value::Object(map) = object else { return };
    let absent = match map.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(_) | Value::Bool(_) | Value::Number(_)) => false,
    };
    if absent {
        map.insert(name.to_owned(), value);
    }
}

pub(super) fn set_always(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(name.to_owned(), value);
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Value::Object(map) = object {
        map.remove(name);
    }
}

/// The object under a name, made if it is absent. What is no object is left as it is, and then nothing is set in it.
pub(super) fn object_at<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    match object {
        Value::Object(map) => map.entry(name).or_insert_with(|| Value::Object(Map::new())),
        other => other,
    }
}

/// The items of a list under a name; none if there is no list.
pub(super) fn items<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    object
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

pub(super) fn text(object: &Value, name: &str) -> String {
    object
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Whether a quantity is there and is not zero.
pub(super) fn is_positive(value: Option<&Value>) -> bool {
    value.is_some_and(|v| Quantity::from_json(v).is_ok_and(|q| q.as_integer() != Some(0)))
}
