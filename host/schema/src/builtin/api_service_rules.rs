//! The rules of APIServices, as `validation.go` of k8s.io/kube-aggregator states them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::rules::{Report, text};
use crate::metadata;

impl Report {
    pub(super) fn api_service(&mut self, object: &Value, spec: &Value) {
        let (group, version) = (text(spec, "group"), text(spec, "version"));
        let name = object.pointer("/metadata/name").unwrap_or(&Value::Null);
        let wanted = format!("{version}.{group}");
        if name.as_str() != Some(&wanted) {
            self.invalid(
                "metadata.name",
                name,
                format!("must be `spec.version+\".\"+spec.group`: {wanted:?}"),
            );
        }
        if group.is_empty() {
            if version != "v1" {
                self.required(
                    "spec.group",
                    "only v1 may have an empty group and it better be legacy kube",
                );
            }
        } else if let Some(why) = metadata::dns_name(group) {
            self.invalid("spec.group", &json!(group), why);
        }
        if let Some(why) = metadata::dns_1035_label(version) {
            self.invalid("spec.version", &json!(version), why);
        }
        for (name, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
            let number = spec.get(name).and_then(Value::as_i64).unwrap_or_default();
            if !(1..=most).contains(&number) {
                self.invalid(
                    format!("spec.{name}"),
                    &json!(number),
                    format!("must be positive and less than {most}"),
                );
            }
        }
        let bundle = STANDARD.decode(text(spec, "caBundle")).unwrap_or_default();
        let is_insecure = spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true));
        let Some(service) = spec.get("service").filter(|service| !service.is_null()) else {
            if !bundle.is_empty() {
                self.invalid(
                    "spec.caBundle",
                    &json!(format!("{} bytes", bundle.len())),
                    "local APIServices may not have a caBundle",
                );
            }
            if is_insecure {
                self.invalid(
                    "spec.insecureSkipTLSVerify",
                    &json!(true),
                    "local APIServices may not have insecureSkipTLSVerify",
                );
            }
            return;
        };
        for name in ["namespace", "name"] {
            if text(service, name).is_empty() {
                self.required(format!("spec.service.{name}"), "");
            }
        }
        if let Some(port) = service.get("port")
            && port
                .as_i64()
                .is_some_and(|port| !(1..=65535).contains(&port))
        {
            self.invalid(
                "spec.service.port",
                port,
                "port is not valid: must be between 1 and 65535, inclusive",
            );
        }
        if is_insecure && !bundle.is_empty() {
            self.invalid(
                "spec.insecureSkipTLSVerify",
                &json!(true),
                "may not be true if caBundle is present",
            );
        }
    }
}
