//! Which columns the built-in kinds have, and the rows of the small ones.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age::since, network, workload};

/// Makes the cells of a row.
pub(super) type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// The columns of a kind, in the short form, and its cells.
pub(super) fn of(group: &str, kind: &str) -> Option<(&'static str, Cells)> {
    let found: (&'static str, Cells) = match (group, kind) {
        ("", "Pod") => (
            "Name|Ready|Status|Restarts|Age|IP*|Node*|Nominated Node*|Readiness Gates*",
            workload::pod,
        ),
        ("apps", "Deployment") => (
            "Name|Ready|Up-to-date|Available|Age|Containers*|Images*|Selector*",
            workload::deployment,
        ),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => (
            "Name|Desired#|Current#|Ready#|Age|Containers*|Images*|Selector*",
            workload::replica_set,
        ),
        ("apps", "StatefulSet") => ("Name|Ready|Age|Containers*|Images*", workload::stateful_set),
        ("apps", "DaemonSet") => (
            "Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|Containers*|Images*|Selector*",
            workload::daemon_set,
        ),
        ("apiregistration.k8s.io", "APIService") => ("Name|Service|Available|Age", api_service),
        ("apps", "ControllerRevision") => ("Name|Controller|Revision|Age", controller_revision),
        ("batch", "Job") => (
            "Name|Status|Completions|Duration|Age|Containers*|Images*|Selector*",
            workload::job,
        ),
        ("batch", "CronJob") => (
            "Name|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|Containers*|Images*|Selector*",
            workload::cron_job,
        ),
        ("", "PodTemplate") => ("Name|Containers|Images|Pod Labels", workload::pod_template),
        ("", "Service") => (
            "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector*",
            network::service,
        ),
        ("", "Endpoints") => ("Name|Endpoints|Age", network::endpoints),
        ("discovery.k8s.io", "EndpointSlice") => (
            "Name|AddressType|Ports|Endpoints|Age",
            network::endpoint_slice,
        ),
        ("networking.k8s.io", "Ingress") => {
            ("Name|Class|Hosts|Address|Ports|Age", network::ingress)
        }
        ("networking.k8s.io", "IngressClass") => {
            ("Name|Controller|Parameters|Age", network::ingress_class)
        }
        ("networking.k8s.io", "NetworkPolicy") => {
            ("Name|Pod-Selector|Age", network::network_policy)
        }
        ("", "ConfigMap") => ("Name|Data|Age", |o, now| {
            vec![
                name(o),
                json!(count(o, "/data") + count(o, "/binaryData")),
                age(o, now),
            ]
        }),
        ("", "Secret") => ("Name|Type|Data|Age", |o, now| {
            vec![
                name(o),
                text(o, "/type"),
                json!(count(o, "/data")),
                age(o, now),
            ]
        }),
        ("", "ServiceAccount") => ("Name|Age", |o, now| vec![name(o), age(o, now)]),
        ("", "Namespace") => ("Name|Status|Age", |o, now| {
            vec![name(o), text(o, "/status/phase"), age(o, now)]
        }),
        ("", "Node") => (
            "Name|Status|Roles|Age|Version|Internal-IP*|External-IP*|OS-Image*|Kernel-Version*|Container-Runtime*",
            node,
        ),
        ("", "Event") | ("events.k8s.io", "Event") => (
            "Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*",
            event,
        ),
        ("", "PersistentVolume") => (
            "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|VolumeMode*",
            persistent_volume,
        ),
        ("", "PersistentVolumeClaim") => (
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode*",
            persistent_volume_claim,
        ),
        ("", "ResourceQuota") => ("Name|Request|Limit|Age", resource_quota),
        ("coordination.k8s.io", "Lease") => ("Name|Holder|Age", |o, now| {
            vec![name(o), text(o, "/spec/holderIdentity"), age(o, now)]
        }),
        ("autoscaling", "HorizontalPodAutoscaler") => (
            "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age",
            workload::autoscaler,
        ),
        ("policy", "PodDisruptionBudget") => (
            "Name|Min Available|Max Unavailable|Allowed Disruptions#|Age",
            disruption_budget,
        ),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => (
            "Name|Role|Age|Users*|Groups*|ServiceAccounts*",
            role_binding,
        ),
        ("storage.k8s.io", "StorageClass") => (
            "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
            storage_class,
        ),
        ("scheduling.k8s.io", "PriorityClass") => (
            "Name|Value#|Global-Default?|Age|PreemptionPolicy",
            |o, now| {
                vec![
                    name(o),
                    json!(int(o, "/value")),
                    json!(flag(o, "/globalDefault")),
                    age(o, now),
                    text(o, "/preemptionPolicy"),
                ]
            },
        ),
        ("node.k8s.io", "RuntimeClass") => ("Name|Handler|Age", |o, now| {
            vec![name(o), text(o, "/handler"), age(o, now)]
        }),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => ("Name|Webhooks#|Age", |o, now| {
            vec![name(o), json!(count(o, "/webhooks")), age(o, now)]
        }),
        _ => return None,
    };
    Some(found)
}

fn controller_revision(o: &Value, now: Timestamp) -> Vec<Value> {
    let owner = o
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let owner = owner.into_iter().find(|r| flag(r, "/controller"));
    let shown = owner.map_or_else(
        || "<none>".to_owned(),
        |r| {
            let kind = str(r, "/kind").to_lowercase();
            let group = str(r, "/apiVersion")
                .rsplit_once('/')
                .map(|(g, _)| format!(".{g}"))
                .unwrap_or_default();
            format!("{kind}{group}/{}", str(r, "/name"))
        },
    );
    vec![
        name(o),
        json!(shown),
        json!(int(o, "/revision").to_string()),
        age(o, now),
    ]
}

fn node(o: &Value, now: Timestamp) -> Vec<Value> {
    let mut status = vec![match condition(o, "Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if flag(o, "/spec/unschedulable") {
        status.push("SchedulingDisabled");
    }
    let labels = o
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut roles: Vec<String> = labels
        .filter_map(
            |(label, value)| match label.strip_prefix("node-role.kubernetes.io/") {
                Some(role) if !role.is_empty() => Some(role.to_owned()),
                _ if label == "kubernetes.io/role" => {
                    value.as_str().filter(|v| !v.is_empty()).map(str::to_owned)
                }
                _ => None,
            },
        )
        .collect();
    roles.sort();
    let address = |kind: &str| {
        let found = list(o, "/status/addresses")
            .iter()
            .find(|a| str(a, "/type") == kind);
        json!(found.map_or("<none>", |a| str(a, "/address")))
    };
    let known = |pointer: &str| match str(o, pointer) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let mut kernel = known("/status/nodeInfo/kernelVersion");
    if let architecture @ [_, ..] = str(o, "/status/nodeInfo/architecture").as_bytes() {
        kernel.push_str(&format!(" ({})", String::from_utf8_lossy(architecture)));
    }
    vec![
        name(o),
        json!(status.join(",")),
        json!(or_none(roles.join(","))),
        age(o, now),
        text(o, "/status/nodeInfo/kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        json!(known("/status/nodeInfo/osImage")),
        json!(kernel),
        json!(known("/status/nodeInfo/containerRuntimeVersion")),
    ]
}

/// Events of both groups: the newer one has other names for the same fields.
fn event(o: &Value, now: Timestamp) -> Vec<Value> {
    let pick = |a: &str, b: &str| {
        o.pointer(a)
            .or_else(|| o.pointer(b))
            .filter(|v| !v.is_null())
    };
    let first = since(
        pick("/firstTimestamp", "/deprecatedFirstTimestamp").or_else(|| o.get("eventTime")),
        now,
    );
    let last = match (
        o.pointer("/series/lastObservedTime"),
        pick("/lastTimestamp", "/deprecatedLastTimestamp"),
    ) {
        (Some(time), _) | (None, Some(time)) => since(Some(time), now),
        (None, None) => first.clone(),
    };
    let count = o
        .pointer("/series/count")
        .or_else(|| pick("/count", "/deprecatedCount"))
        .and_then(Value::as_i64);
    let object = pick("/involvedObject", "/regarding")
        .cloned()
        .unwrap_or_default();
    let kind = str(&object, "/kind").to_lowercase();
    let target = match str(&object, "/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = match (
        pick("/source/component", "/deprecatedSource/component"),
        pick("/source/host", "/deprecatedSource/host"),
    ) {
        (Some(component), host) => [Some(component), host]
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        (None, _) => [
            pick("/reportingComponent", "/reportingController"),
            o.get("reportingInstance"),
        ]
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|s| !s.is_empty())
        .collect::<Vec<_>>()
        .join(", "),
    };
    let message = pick("/message", "/note")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .to_owned();
    vec![
        json!(last),
        text(o, "/type"),
        text(o, "/reason"),
        json!(target),
        text(&object, "/fieldPath"),
        json!(source),
        json!(message),
        json!(first),
        json!(count.filter(|c| *c != 0).unwrap_or(1).to_string()),
        name(o),
    ]
}

fn persistent_volume(o: &Value, now: Timestamp) -> Vec<Value> {
    let claim = o
        .pointer("/spec/claimRef")
        .map(|c| format!("{}/{}", str(c, "/namespace"), str(c, "/name")));
    vec![
        name(o),
        text(o, "/spec/capacity/storage"),
        json!(access_modes(o, "/spec/accessModes")),
        text(o, "/spec/persistentVolumeReclaimPolicy"),
        phase(o),
        json!(claim.unwrap_or_default()),
        text(o, "/spec/storageClassName"),
        or_unset(o, "/spec/volumeAttributesClassName"),
        text(o, "/status/reason"),
        age(o, now),
        or_unset(o, "/spec/volumeMode"),
    ]
}

fn persistent_volume_claim(o: &Value, now: Timestamp) -> Vec<Value> {
    let bound = !str(o, "/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (
            text(o, "/status/capacity/storage"),
            access_modes(o, "/status/accessModes"),
        )
    } else {
        (json!(""), String::new())
    };
    vec![
        name(o),
        phase(o),
        text(o, "/spec/volumeName"),
        capacity,
        json!(modes),
        text(o, "/spec/storageClassName"),
        or_unset(o, "/spec/volumeAttributesClassName"),
        age(o, now),
        or_unset(o, "/spec/volumeMode"),
    ]
}

fn phase(o: &Value) -> Value {
    if o.pointer("/metadata/deletionTimestamp").is_some() {
        json!("Terminating")
    } else {
        text(o, "/status/phase")
    }
}

fn access_modes(o: &Value, pointer: &str) -> String {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    let modes: Vec<&str> = list(o, pointer)
        .iter()
        .filter_map(Value::as_str)
        .map(short)
        .filter(|m| !m.is_empty())
        .collect();
    modes.join(",")
}

fn resource_quota(o: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = o
        .pointer("/status/hard")
        .or_else(|| o.pointer("/spec/hard"))
        .and_then(Value::as_object);
    let mut names: Vec<_> = hard.into_iter().flatten().collect();
    names.sort_by_key(|(name, _)| name.to_owned());
    for (resource, hard) in names {
        let used = o
            .pointer("/status/used")
            .and_then(|u| u.get(resource))
            .and_then(Value::as_str)
            .unwrap_or("0");
        let entry = format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default());
        if resource.starts_with("limits.") {
            limits.push(entry)
        } else {
            requests.push(entry)
        }
    }
    vec![
        name(o),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        age(o, now),
    ]
}

fn disruption_budget(o: &Value, now: Timestamp) -> Vec<Value> {
    let shown = |pointer: &str| match o.pointer(pointer) {
        None | Some(Value::Null) => json!("N/A"),
        Some(Value::String(text)) => json!(text),
        Some(other) => json!(other.to_string()),
    };
    vec![
        name(o),
        shown("/spec/minAvailable"),
        shown("/spec/maxUnavailable"),
        json!(int(o, "/status/disruptionsAllowed")),
        age(o, now),
    ]
}

fn role_binding(o: &Value, now: Timestamp) -> Vec<Value> {
    let of_kind = |kind: &str| {
        let subjects = list(o, "/subjects")
            .iter()
            .filter(|s| str(s, "/kind") == kind);
        let names: Vec<String> = subjects
            .map(|s| match str(s, "/namespace") {
                "" => str(s, "/name").to_owned(),
                namespace => format!("{namespace}/{}", str(s, "/name")),
            })
            .collect();
        json!(names.join(", "))
    };
    let role = format!("{}/{}", str(o, "/roleRef/kind"), str(o, "/roleRef/name"));
    vec![
        name(o),
        json!(role),
        age(o, now),
        of_kind("User"),
        of_kind("Group"),
        of_kind("ServiceAccount"),
    ]
}

fn api_service(o: &Value, now: Timestamp) -> Vec<Value> {
    let service = match o.pointer("/spec/service") {
        Some(Value::Object(_)) => format!(
            "{}/{}",
            str(o, "/spec/service/namespace"),
            str(o, "/spec/service/name")
        ),
        _ => "Local".to_owned(),
    };
    let conditions = o.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let available = conditions.find(|condition| str(condition, "/type") == "Available");
    let available = available.map_or("Unknown".to_owned(), |available| {
        let (status, reason) = (str(available, "/status"), str(available, "/reason"));
        match status == "True" || reason.is_empty() {
            true => status.to_owned(),
            false => format!("{status} ({reason})"),
        }
    });
    vec![name(o), json!(service), json!(available), age(o, now)]
}

fn storage_class(o: &Value, now: Timestamp) -> Vec<Value> {
    let default = o
        .pointer("/metadata/annotations")
        .and_then(|a| a.get("storageclass.kubernetes.io/is-default-class"));
    let suffix = if default.and_then(Value::as_str) == Some("true") {
        " (default)"
    } else {
        ""
    };
    vec![
        json!(format!("{}{suffix}", str(o, "/metadata/name"))),
        text(o, "/provisioner"),
        text(o, "/reclaimPolicy"),
        text(o, "/volumeBindingMode"),
        json!(flag(o, "/allowVolumeExpansion")),
        age(o, now),
    ]
}

/// The status of a condition.
pub(super) fn condition<'a>(o: &'a Value, kind: &str) -> Option<&'a str> {
    list(o, "/status/conditions")
        .iter()
        .find(|c| str(c, "/type") == kind)
        .map(|c| str(c, "/status"))
}

pub(super) fn name(o: &Value) -> Value {
    text(o, "/metadata/name")
}

pub(super) fn age(o: &Value, now: Timestamp) -> Value {
    json!(since(o.pointer("/metadata/creationTimestamp"), now))
}

pub(super) fn str<'a>(o: &'a Value, pointer: &str) -> &'a str {
    o.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn text(o: &Value, pointer: &str) -> Value {
    json!(str(o, pointer))
}

pub(super) fn int(o: &Value, pointer: &str) -> i64 {
    o.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn flag(o: &Value, pointer: &str) -> bool {
    o.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn list<'a>(o: &'a Value, pointer: &str) -> &'a [Value] {
    o.pointer(pointer)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// How many entries a list or map has.
pub(super) fn count(o: &Value, pointer: &str) -> usize {
    match o.pointer(pointer) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(map)) => map.len(),
        _ => 0,
    }
}

pub(super) fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

fn or_unset(o: &Value, pointer: &str) -> Value {
    json!(
        o.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("<unset>")
    )
}

/// Labels as `a=1,b=2`, or `<none>`.
pub(super) fn labels(o: &Value, pointer: &str) -> String {
    let map = o
        .pointer(pointer)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut pairs: Vec<String> = map
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or_none(pairs.join(","))
}

/// A label selector as `a=1,b in (2,3)`, or `<none>`.
pub(super) fn selector(o: &Value, pointer: &str) -> String {
    let mut parts = Vec::new();
    let pairs = labels(o, &format!("{pointer}/matchLabels"));
    if pairs != "<none>" {
        parts.push(pairs);
    }
    for rule in list(o, &format!("{pointer}/matchExpressions")) {
        let key = str(rule, "/key");
        let values: Vec<&str> = list(rule, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match str(rule, "/operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    or_none(parts.join(","))
}
