//! Defaults of Pods and of the templates that make Pods.

use serde_json::{Value, json};

use super::defaults::{is_positive, items, object_at, set, set_always, text};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A template of Pods.
pub(super) fn template(template: &mut Value) {
    if let Value::Object(map) = template {
        map.entry("metadata").or_insert_with(|| json!({}));
    }
    spec(object_at(template, "spec"));
}

/// The spec of a Pod or of a template.
pub(super) fn spec(spec: &mut Value) {
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "securityContext", json!({}));
    // Two names of one field.
    match (
        text(spec, "serviceAccountName"),
        text(spec, "serviceAccount"),
    ) {
        (name, _) if !name.is_empty() => set_always(spec, "serviceAccount", json!(name)),
        (_, old) if !old.is_empty() => set_always(spec, "serviceAccountName", json!(old)),
        _ => {}
    }
    let host_network = spec.get("hostNetwork") == Some(&json!(true));
    for list in CONTAINERS {
        items(spec, list).for_each(|container| self::container(container, host_network));
    }
    items(spec, "volumes").for_each(volume);
}

/// What is set in Pods, but not in templates.
pub(super) fn pod_only(spec: &mut Value) {
    set(spec, "enableServiceLinks", json!(true));
    for list in ["initContainers", "containers"] {
        for container in items(spec, list) {
            let Some(limits) = container
                .pointer("/resources/limits")
                .and_then(Value::as_object)
                .cloned()
            else {
                continue;
            };
            let requests = object_at(object_at(container, "resources"), "requests");
            for (name, limit) in limits {
                set(requests, &name, limit);
            }
        }
    }
}

fn container(container: &mut Value, host_network: bool) {
    let image = text(container, "image");
    let policy = if is_latest(&image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    set(container, "imagePullPolicy", json!(policy));
    set(
        container,
        "terminationMessagePath",
        json!("/dev/termination-log"),
    );
    set(container, "terminationMessagePolicy", json!("File"));
    object_at(container, "resources");
    for port in items(container, "ports") {
        set(port, "protocol", json!("TCP"));
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            set(port, "hostPort", number);
        }
    }
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            set(field, "apiVersion", json!("v1"));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            self::probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(get) = container.pointer_mut(&format!("/lifecycle/{hook}/httpGet")) {
            http_get(get);
        }
    }
}

fn probe(probe: &mut Value) {
    for (name, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if probe.get(name).is_none_or(|v| *v == json!(0)) {
            set_always(probe, name, json!(value));
        }
    }
    if let Some(get) = probe.get_mut("httpGet") {
        http_get(get);
    }
    if let Some(grpc) = probe.get_mut("grpc")
        && grpc.get("service").is_none()
    {
        set_always(grpc, "service", json!(""));
    }
}

fn http_get(get: &mut Value) {
    set(get, "path", json!("/"));
    set(get, "scheme", json!("HTTP"));
}

fn volume(volume: &mut Value) {
    if volume
        .as_object()
        .is_some_and(|v| v.keys().all(|name| name == "name"))
    {
        set(volume, "emptyDir", json!({}));
    }
    volume_source(volume);
}

/// Defaults of what stands behind a volume.
pub(super) fn volume_source(volume: &mut Value) {
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(name) {
            set(source, "defaultMode", json!(0o644));
        }
    }
    if let Some(path) = volume.get_mut("hostPath")
        && path.get("type").is_none()
    {
        set_always(path, "type", json!(""));
    }
    if let Some(image) = volume.get_mut("image") {
        let policy = if is_latest(&text(image, "reference")) {
            "Always"
        } else {
            "IfNotPresent"
        };
        set(image, "pullPolicy", json!(policy));
    }
    if let Some(disk) = volume.get_mut("iscsi") {
        set(disk, "iscsiInterface", json!("default"));
    }
    if let Some(down) = volume.get_mut("downwardAPI") {
        items(down, "items").for_each(field_ref);
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                set(token, "expirationSeconds", json!(3600));
            }
            if let Some(down) = source.get_mut("downwardAPI") {
                items(down, "items").for_each(field_ref);
            }
        }
    }
    if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        set(claim, "volumeMode", json!("Filesystem"));
    }
}

fn field_ref(item: &mut Value) {
    if let Some(field) = item.get_mut("fieldRef") {
        set(field, "apiVersion", json!("v1"));
    }
}

/// Whether an image's tag is `latest`, said or unsaid. One with a digest and no tag has no tag.
fn is_latest(image: &str) -> bool {
    let (name, digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    match name.rsplit('/').next().unwrap_or_default().split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !digest && !image.is_empty(),
    }
}

/// The class of service that follows from requests and limits.
pub(super) fn qos_class(spec: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for list in ["initContainers", "containers"] {
        for container in spec
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            for name in ["cpu", "memory"] {
                let value = |kind: &str| {
                    container
                        .get("resources")
                        .and_then(|r| r.get(kind))
                        .and_then(|r| r.get(name))
                };
                let (request, limit) = (value("requests"), value("limits"));
                any |= is_positive(request) || is_positive(limit);
                guaranteed &= is_positive(limit) && request.is_none_or(|r| Some(r) == limit);
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_decides_the_pull_policy() {
        let table = [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1", false),
            ("r:5000/nginx", true),
            ("r:5000/nginx:1", false),
            ("nginx@sha256:00", false),
            ("nginx:latest@sha256:00", true),
        ];
        for (image, latest) in table {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
