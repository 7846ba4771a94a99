//! The objects that a Pod refers to.

use serde_json::Value;

/// Returns the kinds and names of the ServiceAccount, ConfigMaps and Secrets that a Pod uses, all in its namespace.
pub(super) fn references(pod_spec: &Value) -> Vec<(&'static str, &str)> {
    let mut found = References::default();
    found.add("ServiceAccount", pod_spec, "/serviceAccountName");
    for secret in items(pod_spec, "/imagePullSecrets") {
        found.add("Secret", secret, "/name");
    }
    for volume in items(pod_spec, "/volumes") {
        found.add("ConfigMap", volume, "/configMap/name");
        found.add("Secret", volume, "/secret/secretName");
        for source in items(volume, "/projected/sources") {
            found.add("ConfigMap", source, "/configMap/name");
            found.add("Secret", source, "/secret/name");
        }
    }
    for container in containers(pod_spec) {
        for source in items(container, "/envFrom") {
            found.add("ConfigMap", source, "/configMapRef/name");
            found.add("Secret", source, "/secretRef/name");
        }
        for variable in items(container, "/env") {
            found.add("ConfigMap", variable, "/valueFrom/configMapKeyRef/name");
            found.add("Secret", variable, "/valueFrom/secretKeyRef/name");
        }
    }
    found.0
}

/// Returns its init containers and containers.
pub(super) fn containers(pod_spec: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["/initContainers", "/containers"];
    lists.into_iter().flat_map(|list| items(pod_spec, list))
}

/// Returns the items of a list, or nothing if the list is absent.
pub(super) fn items<'a>(of: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = of.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[derive(Default)]
struct References<'a>(Vec<(&'static str, &'a str)>);

impl<'a> References<'a> {
    fn add(&mut self, kind: &'static str, of: &'a Value, pointer: &str) {
        if let Some(name) = of.pointer(pointer).and_then(Value::as_str) {
            self.0.push((kind, name));
        }
    }
}
