//! Rules of Pods and of the templates that make Pods.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{Report, list, text};
use crate::{FieldError, Reason, metadata, quantity::Quantity};

/// The spec of a Pod or of a template, at `path`.
pub(super) fn spec(report: &mut Report, spec: &Value, path: &str) {
    report.one_of(
        spec,
        "restartPolicy",
        path,
        &["Always", "OnFailure", "Never"],
    );
    report.one_of(
        spec,
        "dnsPolicy",
        path,
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    if let Some(deadline) = spec.get("activeDeadlineSeconds")
        && deadline
            .as_i64()
            .is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds))
    {
        report.invalid(
            format!("{path}.activeDeadlineSeconds"),
            deadline,
            "must be between 1 and 2147483647, inclusive",
        );
    }
    let volumes = self::volumes(report, spec, path);
    if list(spec, "containers").is_empty() {
        report.required(format!("{path}.containers"), "");
    }
    let mut names = HashSet::new();
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        for (at, container) in list(spec, field).iter().enumerate() {
            let path = format!("{path}.{field}[{at}]");
            let name = text(container, "name");
            name_of(report, name, &format!("{path}.name"), &mut names);
            self::container(report, container, &path, &volumes);
        }
    }
    metadata::labels(
        spec.get("nodeSelector"),
        &format!("{path}.nodeSelector"),
        &mut report.errors,
    );
    for name in ["hostname", "subdomain"] {
        let value = text(spec, name);
        if let Some(why) = metadata::dns_label(value).filter(|_| !value.is_empty()) {
            report.invalid(format!("{path}.{name}"), &value.into(), why);
        }
    }
    for name in ["serviceAccountName", "nodeName"] {
        let value = text(spec, name);
        if let Some(why) = metadata::dns_name(value).filter(|_| !value.is_empty()) {
            report.invalid(format!("{path}.{name}"), &value.into(), why);
        }
    }
    for (at, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = format!("{path}.tolerations[{at}]");
        let key = text(toleration, "key");
        if let Some(why) = metadata::qualified_name(key).filter(|_| !key.is_empty()) {
            report.invalid(format!("{path}.key"), &key.into(), why);
        }
        report.one_of(toleration, "operator", &path, &["Equal", "Exists"]);
        report.one_of(
            toleration,
            "effect",
            &path,
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
        );
    }
}

/// Most of a Pod cannot change.
pub(super) fn update(report: &mut Report, new: &Value, old: &Value) {
    let frozen = |spec: &Value| {
        let mut spec = spec.clone();
        if let Value::Object(map) = &mut spec {
            // What people may change, and what the scheduler sets.
            for name in [
                "activeDeadlineSeconds",
                "tolerations",
                "terminationGracePeriodSeconds",
                "schedulingGates",
                "ephemeralContainers",
            ] {
                map.remove(name);
            }
            if text(old, "nodeName").is_empty() {
                map.remove("nodeName");
            }
            for field in ["containers", "initContainers"] {
                for container in map
                    .get_mut(field)
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    if let Value::Object(container) = container {
                        container.remove("image");
                    }
                }
            }
        }
        spec
    };
    if frozen(new) != frozen(old) {
        report.errors.push(FieldError::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ));
    }
    let kept = list(old, "tolerations")
        .iter()
        .all(|t| list(new, "tolerations").contains(t));
    if !kept {
        report.errors.push(FieldError::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
}

/// The names of the volumes.
fn volumes<'a>(report: &mut Report, spec: &'a Value, path: &str) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{at}]");
        name_of(
            report,
            text(volume, "name"),
            &format!("{path}.name"),
            &mut names,
        );
        let sources = volume
            .as_object()
            .map_or(0, |v| v.keys().filter(|k| *k != "name").count());
        if sources == 0 {
            report.required(path.clone(), "must specify a volume type");
        } else if sources > 1 {
            report.errors.push(FieldError::forbidden(
                path.clone(),
                "may not specify more than 1 volume type",
            ));
        }
        for (kind, field) in [
            ("secret", "secretName"),
            ("configMap", "name"),
            ("persistentVolumeClaim", "claimName"),
            ("hostPath", "path"),
        ] {
            if volume
                .get(kind)
                .is_some_and(|source| text(source, field).is_empty())
            {
                report.required(format!("{path}.{kind}.{field}"), "");
            }
        }
    }
    names
}

fn name_of<'a>(report: &mut Report, name: &'a str, path: &str, names: &mut HashSet<&'a str>) {
    if name.is_empty() {
        report.required(path, "");
    } else if let Some(why) = metadata::dns_label(name) {
        report.invalid(path, &name.into(), why);
    } else if !names.insert(name) {
        report
            .errors
            .push(FieldError::duplicate(path, &name.into()));
    }
}

fn container(report: &mut Report, container: &Value, path: &str, volumes: &HashSet<&str>) {
    let image = text(container, "image");
    if image.is_empty() {
        report.required(format!("{path}.image"), "");
    } else if image.trim() != image {
        report.invalid(
            format!("{path}.image"),
            &image.into(),
            "must not have leading or trailing whitespace",
        );
    }
    report.one_of(
        container,
        "imagePullPolicy",
        path,
        &["Always", "IfNotPresent", "Never"],
    );
    report.one_of(
        container,
        "terminationMessagePolicy",
        path,
        &["FallbackToLogsOnError", "File"],
    );
    let mut port_names = HashSet::new();
    for (at, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{at}]");
        if port.get("containerPort").is_none() {
            report.required(format!("{path}.containerPort"), "");
        }
        report.port(port.get("containerPort"), &format!("{path}.containerPort"));
        report.port(
            port.get("hostPort").filter(|p| p.as_i64() != Some(0)),
            &format!("{path}.hostPort"),
        );
        report.one_of(port, "protocol", &path, &["SCTP", "TCP", "UDP"]);
        let name = text(port, "name");
        if name.len() > 15 {
            report.invalid(
                format!("{path}.name"),
                &name.into(),
                "must be no more than 15 bytes",
            );
        } else if !name.is_empty() && !port_names.insert(name) {
            report
                .errors
                .push(FieldError::duplicate(format!("{path}.name"), &name.into()));
        }
    }
    environment(report, container, path);
    let mut mounts = HashSet::new();
    for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        let name = text(mount, "name");
        if name.is_empty() {
            report.required(format!("{path}.name"), "");
        } else if !volumes.contains(name) {
            report.push(
                format!("{path}.name"),
                Reason::NotFound,
                format!("Not found: {name:?}"),
            );
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            report.required(format!("{path}.mountPath"), "");
        } else if !mounts.insert(place) {
            report.invalid(format!("{path}.mountPath"), &place.into(), "must be unique");
        }
    }
    resources(
        report,
        container.get("resources").unwrap_or(&Value::Null),
        &format!("{path}.resources"),
    );
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(name) else {
            continue;
        };
        let path = format!("{path}.{name}");
        let handlers = ["exec", "httpGet", "tcpSocket", "grpc"]
            .iter()
            .filter(|h| probe.get(**h).is_some())
            .count();
        match handlers {
            0 => report.required(path.clone(), "must specify a handler type"),
            1 => {}
            _ => report.errors.push(FieldError::forbidden(
                path.clone(),
                "may not specify more than 1 handler type",
            )),
        }
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            report.not_negative(probe, field, &path);
        }
        report.port(
            probe.pointer("/httpGet/port"),
            &format!("{path}.httpGet.port"),
        );
        report.port(
            probe.pointer("/tcpSocket/port"),
            &format!("{path}.tcpSocket.port"),
        );
        if name != "readinessProbe"
            && probe
                .get("successThreshold")
                .is_some_and(|t| t.as_i64() != Some(1))
        {
            report.invalid(
                format!("{path}.successThreshold"),
                probe.get("successThreshold").unwrap_or(&Value::Null),
                "must be 1",
            );
        }
    }
}

fn environment(report: &mut Report, container: &Value, path: &str) {
    for (at, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{at}]");
        let name = text(variable, "name");
        if name.is_empty() {
            report.required(format!("{path}.name"), "");
        } else if name.contains('=') || !name.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
            report.invalid(format!("{path}.name"), &name.into(), detail);
        }
        let Some(source) = variable.get("valueFrom") else {
            continue;
        };
        if !text(variable, "value").is_empty() {
            report.invalid(
                format!("{path}.valueFrom"),
                &"".into(),
                "may not be specified when `value` is not empty",
            );
        }
        for (kind, field) in [
            ("configMapKeyRef", "key"),
            ("secretKeyRef", "key"),
            ("fieldRef", "fieldPath"),
            ("resourceFieldRef", "resource"),
        ] {
            if source.get(kind).is_some_and(|s| text(s, field).is_empty()) {
                report.required(format!("{path}.valueFrom.{kind}.{field}"), "");
            }
        }
    }
}

/// Requests are no larger than limits.
fn resources(report: &mut Report, resources: &Value, path: &str) {
    let of = |field: &str| resources.get(field).and_then(Value::as_object);
    for field in ["limits", "requests"] {
        for (name, value) in of(field).into_iter().flatten() {
            if Quantity::from_json(value).is_ok_and(Quantity::is_negative) {
                report.invalid(
                    format!("{path}.{field}[{name}]"),
                    value,
                    "must be greater than or equal to 0",
                );
            }
        }
    }
    let Some(limits) = of("limits") else { return };
    for (name, request) in of("requests").into_iter().flatten() {
        let Some(limit) = limits.get(name) else {
            continue;
        };
        if let (Ok(wanted), Ok(most)) = (Quantity::from_json(request), Quantity::from_json(limit))
            && wanted > most
        {
            report.invalid(
                format!("{path}.requests"),
                request,
                format!("must be less than or equal to {name} limit of {most}"),
            );
        }
    }
}
