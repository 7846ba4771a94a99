//! What an API server's own rules find wrong with objects of the built-in kinds.
//!
//! Those that people meet: required fields, ranges, names, references within the object, fields that cannot change.

use serde_json::Value;

use super::{builtin, pod_rules};
use crate::{
    FieldError, Reason, metadata,
    quantity::Quantity,
    schema::{Kind, Node},
};

/// The largest ConfigMap or Secret, in bytes of its values.
const DATA_SIZE_MAX: usize = 1 << 20;

/// What an API server's own rules find wrong with an object of a built-in kind; `old` is the version before an update.
///
/// The object has its defaults; its types fit the schema (what does not fit is passed over here). A kind that is not built in
/// has no rules.
pub fn builtin_validate(
    group: &str,
    version: &str,
    kind: &str,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let Some(schema) = builtin(group, version, kind) else {
        return Vec::new();
    };
    let mut report = Report {
        errors: metadata::validate_metadata(object),
    };
    report.quantities(&schema.root, object, "");
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let old_spec = old.and_then(|o| o.get("spec"));
    match (group, kind) {
        ("", "Pod") => {
            pod_rules::spec(&mut report, spec, "spec");
            if let Some(old) = old_spec {
                pod_rules::update(&mut report, spec, old);
            }
        }
        ("", "ConfigMap") => report.config_map(object, old),
        ("", "Secret") => report.secret(object, old),
        ("", "Service") => report.service(spec, old_spec),
        ("", "PersistentVolumeClaim") => report.claim(spec, old_spec),
        ("", "PersistentVolume") => {
            if list(spec, "accessModes").is_empty() {
                report.required("spec.accessModes", "");
            }
            if spec.pointer("/capacity/storage").is_none() {
                report.required("spec.capacity", "");
            }
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            report.workload(kind, spec, old_spec)
        }
        ("batch", "Job") => report.job(spec, old_spec, "spec"),
        ("batch", "CronJob") => report.cron_job(spec),
        ("rbac.authorization.k8s.io", _) => report.rbac(kind, object, old),
        ("networking.k8s.io", "Ingress") => report.ingress(spec),
        ("autoscaling", "HorizontalPodAutoscaler") => report.autoscaler(spec),
        ("autoscaling", "Scale") => report.not_negative(spec, "replicas", "spec"),
        ("policy", "PodDisruptionBudget")
            if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() =>
        {
            report.invalid(
                "spec",
                spec,
                "minAvailable and maxUnavailable cannot be both set",
            );
        }
        ("coordination.k8s.io", "Lease") => {
            if let Some(seconds) = spec
                .get("leaseDurationSeconds")
                .filter(|s| s.as_i64().is_some_and(|s| s <= 0))
            {
                report.invalid(
                    "spec.leaseDurationSeconds",
                    seconds,
                    "must be greater than 0",
                );
            }
            report.not_negative(spec, "leaseTransitions", "spec");
        }
        ("", "Event") => report.event(object),
        ("storage.k8s.io", "StorageClass") if text(object, "provisioner").is_empty() => {
            report.required("provisioner", "");
        }
        ("scheduling.k8s.io", "PriorityClass")
            if old.is_some_and(|o| o.get("value") != object.get("value")) =>
        {
            report.errors.push(FieldError::forbidden(
                "value",
                "may not be changed in an update.",
            ));
        }
        ("apiregistration.k8s.io", "APIService") => report.api_service(object, spec),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            super::definition_rules::validate(&mut report, object, old)
        }
        _ => {}
    }
    report.errors
}

/// Collects what is wrong.
pub(super) struct Report {
    pub errors: Vec<FieldError>,
}

impl Report {
    pub(super) fn push(
        &mut self,
        path: impl Into<String>,
        reason: Reason,
        message: impl Into<String>,
    ) {
        self.errors.push(FieldError::new(path, reason, message));
    }

    pub(super) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    pub(super) fn invalid(
        &mut self,
        path: impl Into<String>,
        value: &Value,
        detail: impl AsRef<str>,
    ) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    /// The text must be one of these, if it is there.
    pub(super) fn one_of(&mut self, object: &Value, name: &str, path: &str, allowed: &[&str]) {
        if let Some(value) = object.get(name)
            && !value.as_str().is_some_and(|v| allowed.contains(&v))
        {
            self.errors.push(FieldError::not_supported(
                format!("{path}.{name}"),
                value,
                allowed.iter().copied(),
            ));
        }
    }

    pub(super) fn not_negative(&mut self, object: &Value, name: &str, path: &str) {
        if let Some(value) = object.get(name)
            && value.as_i64().is_some_and(|n| n < 0)
        {
            self.invalid(
                format!("{path}.{name}"),
                value,
                "must be greater than or equal to 0",
            );
        }
    }

    /// The number must be a port, if it is there.
    pub(super) fn port(&mut self, value: Option<&Value>, path: &str) {
        if let Some(value) = value
            && value.as_i64().is_some_and(|n| !(1..=65535).contains(&n))
        {
            self.invalid(path, value, "must be between 1 and 65535, inclusive");
        }
    }

    pub(super) fn immutable(&mut self, new: Option<&Value>, old: Option<&Value>, path: &str) {
        if new != old {
            self.invalid(path, new.unwrap_or(&Value::Null), "field is immutable");
        }
    }

    /// Quantities must be well-formed, wherever they stand.
    fn quantities(&mut self, node: &Node, value: &Value, path: &str) {
        match value {
            Value::Object(map) if node.kind != Kind::Any => {
                for (name, inner) in map {
                    let Some(place) = node.field(name) else {
                        continue;
                    };
                    let at = if node.property(name).is_none() && place.kind == Kind::Quantity {
                        format!("{path}[{name}]")
                    } else {
                        crate::field_error::joined(path, name)
                    };
                    self.quantities(place, inner, &at);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.quantities(node.item(), item, &format!("{path}[{at}]"));
                }
            }
            scalar if node.kind == Kind::Quantity => {
                if let Err(error) = Quantity::from_json(scalar) {
                    self.invalid(path, scalar, error.to_string());
                }
            }
            _ => {}
        }
    }

    fn keys(&mut self, object: &Value, field: &str) -> usize {
        let mut size = 0;
        for (key, value) in object
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            size += value.as_str().map_or(0, str::len);
            if let Some(why) = metadata::config_key(key) {
                self.invalid(format!("{field}[{key}]"), &key.as_str().into(), why);
            }
        }
        size
    }

    fn sealed(&mut self, object: &Value, old: Option<&Value>, fields: &[&str]) {
        let Some(old) = old.filter(|o| o.get("immutable") == Some(&Value::Bool(true))) else {
            return;
        };
        for field in fields {
            let empty = |v: Option<&Value>| {
                v.and_then(Value::as_object)
                    .is_none_or(serde_json::Map::is_empty)
            };
            let same = old.get(field) == object.get(field)
                || (*field != "immutable" && empty(old.get(field)) && empty(object.get(field)));
            if !same {
                self.errors.push(FieldError::forbidden(
                    *field,
                    "field is immutable when `immutable` is set",
                ));
            }
        }
    }

    fn event(&mut self, event: &Value) {
        let about = event.get("involvedObject").unwrap_or(&Value::Null);
        let (own, other) = (
            event
                .pointer("/metadata/namespace")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            text(about, "namespace"),
        );
        // What has no namespace is reported in the default one.
        let matches = own == other || other.is_empty() && own == "default";
        if !matches {
            self.invalid(
                "involvedObject.namespace",
                &other.into(),
                "does not match event.namespace",
            );
        }
    }

    fn config_map(&mut self, object: &Value, old: Option<&Value>) {
        let size = self.keys(object, "data") + self.keys(object, "binaryData");
        let binary = object.get("binaryData").and_then(Value::as_object);
        for key in object
            .get("data")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(k, _)| k)
        {
            if binary.is_some_and(|b| b.contains_key(key)) {
                self.invalid(
                    format!("data[{key}]"),
                    &key.as_str().into(),
                    "duplicate of key present in binaryData",
                );
            }
        }
        self.base64(object, "binaryData");
        if size > DATA_SIZE_MAX {
            self.errors
                .push(FieldError::too_long("", DATA_SIZE_MAX as u64));
        }
        self.sealed(object, old, &["immutable", "data", "binaryData"]);
    }

    fn secret(&mut self, object: &Value, old: Option<&Value>) {
        if self.keys(object, "data") / 4 * 3 > DATA_SIZE_MAX {
            self.errors
                .push(FieldError::too_long("data", DATA_SIZE_MAX as u64));
        }
        self.base64(object, "data");
        if let Some(old) = old {
            self.immutable(object.get("type"), old.get("type"), "type");
        }
        let wanted: &[&str] = match text(object, "type") {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/dockercfg" => &[".dockercfg"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            // One of the two is enough.
            "kubernetes.io/basic-auth" => {
                let has = |key: &str| {
                    object
                        .get("data")
                        .is_some_and(|data| data.get(key).is_some())
                };
                if has("username") || has("password") {
                    &[]
                } else {
                    &["username", "password"]
                }
            }
            _ => &[],
        };
        for key in wanted {
            if object.get("data").and_then(|d| d.get(key)).is_none() {
                self.required(format!("data[{key}]"), "");
            }
        }
        self.sealed(object, old, &["immutable", "data"]);
    }

    fn base64(&mut self, object: &Value, field: &str) {
        for (key, value) in object
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if !crate::format::is_valid("byte", value.as_str().unwrap_or_default()) {
                // The value may be a secret that somebody forgot to encode: it is not shown.
                self.push(
                    format!("{field}[{key}]"),
                    Reason::Invalid,
                    "Invalid value: illegal base64 data",
                );
            }
        }
    }

    fn service(&mut self, spec: &Value, old: Option<&Value>) {
        self.one_of(
            spec,
            "type",
            "spec",
            &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        );
        self.one_of(spec, "sessionAffinity", "spec", &["ClientIP", "None"]);
        let kind = text(spec, "type");
        let ports = list(spec, "ports");
        if ports.is_empty() && kind != "ExternalName" && text(spec, "clusterIP") != "None" {
            self.required("spec.ports", "");
        }
        if kind == "ExternalName" && text(spec, "externalName").is_empty() {
            self.required("spec.externalName", "");
        }
        let mut names = std::collections::HashSet::new();
        let mut numbers = std::collections::HashSet::new();
        for (at, port) in ports.iter().enumerate() {
            let path = format!("spec.ports[{at}]");
            let name = text(port, "name");
            if name.is_empty() {
                if ports.len() > 1 {
                    self.required(format!("{path}.name"), "");
                }
            } else if let Some(why) = metadata::dns_label(name) {
                self.invalid(format!("{path}.name"), &name.into(), why);
            } else if !names.insert(name) {
                self.errors
                    .push(FieldError::duplicate(format!("{path}.name"), &name.into()));
            }
            if port.get("port").is_none() {
                self.invalid(
                    format!("{path}.port"),
                    &0.into(),
                    "must be between 1 and 65535, inclusive",
                );
            }
            self.port(port.get("port"), &format!("{path}.port"));
            self.port(port.get("targetPort"), &format!("{path}.targetPort"));
            self.one_of(port, "protocol", &path, &["SCTP", "TCP", "UDP"]);
            if !numbers.insert((
                port.get("port").map(Value::to_string),
                text(port, "protocol"),
            )) {
                let shown =
                    serde_json::json!({"port": port.get("port"), "protocol": port.get("protocol")});
                self.errors.push(FieldError::duplicate(path, &shown));
            }
        }
        let address = |s: &Value| {
            s.get("clusterIP")
                .and_then(Value::as_str)
                .filter(|ip| !ip.is_empty())
                .map(str::to_owned)
        };
        if let Some(old) = old
            && kind != "ExternalName"
            && text(old, "type") != "ExternalName"
            && let Some(before) = address(old)
            && address(spec).as_ref() != Some(&before)
        {
            let shown = spec.get("clusterIPs").cloned().unwrap_or_default();
            self.invalid("spec.clusterIPs[0]", &shown, "may not change once set");
        }
        self.selector_labels(spec.get("selector"), "spec.selector");
    }

    pub(super) fn selector_labels(&mut self, labels: Option<&Value>, path: &str) {
        metadata::labels(labels, path, &mut self.errors);
    }

    fn claim(&mut self, spec: &Value, old: Option<&Value>) {
        if list(spec, "accessModes").is_empty() {
            self.required("spec.accessModes", "at least 1 access mode is required");
        }
        for (at, mode) in list(spec, "accessModes").iter().enumerate() {
            let allowed = [
                "ReadOnlyMany",
                "ReadWriteMany",
                "ReadWriteOnce",
                "ReadWriteOncePod",
            ];
            if !mode.as_str().is_some_and(|m| allowed.contains(&m)) {
                self.errors.push(FieldError::not_supported(
                    format!("spec.accessModes[{at}]"),
                    mode,
                    allowed,
                ));
            }
        }
        if spec.pointer("/resources/requests/storage").is_none() {
            self.required("spec.resources[storage]", "");
        }
        if let Some(old) = old {
            let frozen = |s: &Value| {
                let mut s = s.clone();
                if let Value::Object(map) = &mut s {
                    // What may change, and what is set when the claim is bound.
                    for name in ["resources", "volumeAttributesClassName"] {
                        map.remove(name);
                    }
                    if text(old, "volumeName").is_empty() {
                        map.remove("volumeName");
                    }
                    if old.get("storageClassName").is_none() {
                        map.remove("storageClassName");
                    }
                }
                s
            };
            if frozen(spec) != frozen(old) {
                let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
                self.errors.push(FieldError::forbidden("spec", detail));
            }
        }
    }

    fn rbac(&mut self, kind: &str, object: &Value, old: Option<&Value>) {
        for (at, rule) in list(object, "rules").iter().enumerate() {
            let path = format!("rules[{at}]");
            if list(rule, "verbs").is_empty() {
                self.required(
                    format!("{path}.verbs"),
                    "verbs must contain at least one value",
                );
            }
            if list(rule, "nonResourceURLs").is_empty() {
                if list(rule, "apiGroups").is_empty() {
                    self.required(
                        format!("{path}.apiGroups"),
                        "resource rules must supply at least one api group",
                    );
                }
                if list(rule, "resources").is_empty() {
                    self.required(
                        format!("{path}.resources"),
                        "resource rules must supply at least one resource",
                    );
                }
            } else if kind == "Role" {
                self.invalid(
                    format!("{path}.nonResourceURLs"),
                    rule.get("nonResourceURLs").unwrap_or(&Value::Null),
                    "namespaced rules cannot apply to non-resource URLs",
                );
            }
        }
        if !kind.ends_with("Binding") {
            return;
        }
        let role = object.get("roleRef").unwrap_or(&Value::Null);
        if text(role, "name").is_empty() {
            self.required("roleRef.name", "");
        }
        let kinds: &[&str] = if kind == "RoleBinding" {
            &["Role", "ClusterRole"]
        } else {
            &["ClusterRole"]
        };
        if !kinds.contains(&text(role, "kind")) {
            self.errors.push(FieldError::not_supported(
                "roleRef.kind",
                &text(role, "kind").into(),
                kinds.iter().copied(),
            ));
        }
        if old.is_some_and(|o| o.get("roleRef") != object.get("roleRef")) {
            self.invalid("roleRef", role, "cannot change roleRef");
        }
        for (at, subject) in list(object, "subjects").iter().enumerate() {
            if text(subject, "name").is_empty() {
                self.required(format!("subjects[{at}].name"), "");
            }
            match text(subject, "kind") {
                "ServiceAccount"
                    if text(subject, "namespace").is_empty() && kind == "ClusterRoleBinding" =>
                {
                    self.required(format!("subjects[{at}].namespace"), "");
                }
                "ServiceAccount" | "User" | "Group" => {}
                other => self.errors.push(FieldError::not_supported(
                    format!("subjects[{at}].kind"),
                    &other.into(),
                    ["ServiceAccount", "User", "Group"],
                )),
            }
        }
    }

    fn ingress(&mut self, spec: &Value) {
        if list(spec, "rules").is_empty() && spec.get("defaultBackend").is_none() {
            self.invalid(
                "spec",
                &Value::Null,
                "either `defaultBackend` or `rules` must be specified",
            );
        }
        for (at, rule) in list(spec, "rules").iter().enumerate() {
            let host = text(rule, "host");
            if let Some(why) = metadata::dns_name(host.strip_prefix("*.").unwrap_or(host))
                .filter(|_| !host.is_empty())
            {
                self.invalid(format!("spec.rules[{at}].host"), &host.into(), why);
            }
            let paths = rule.pointer("/http/paths").and_then(Value::as_array);
            if paths.is_some_and(Vec::is_empty) {
                self.required(format!("spec.rules[{at}].http.paths"), "");
            }
            for (i, http) in paths.into_iter().flatten().enumerate() {
                let path = format!("spec.rules[{at}].http.paths[{i}]");
                match text(http, "pathType") {
                    "" => self.required(format!("{path}.pathType"), "pathType must be specified"),
                    "Exact" | "Prefix" if !text(http, "path").starts_with('/') => {
                        self.invalid(
                            format!("{path}.path"),
                            &text(http, "path").into(),
                            "must be an absolute path",
                        );
                    }
                    _ => {}
                }
                self.one_of(
                    http,
                    "pathType",
                    &path,
                    &["Exact", "ImplementationSpecific", "Prefix"],
                );
                if http.pointer("/backend/service").is_none()
                    && http.pointer("/backend/resource").is_none()
                {
                    self.required(format!("{path}.backend"), "");
                }
                if http
                    .pointer("/backend/service")
                    .is_some_and(|s| text(s, "name").is_empty())
                {
                    self.required(format!("{path}.backend.service.name"), "");
                }
            }
        }
    }
}

pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object
        .get(name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
