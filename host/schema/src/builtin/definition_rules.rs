//! Rules of CustomResourceDefinitions.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{Report, list, text};
use crate::{FieldError, Schema, metadata, table::Table};

/// Names, versions, and the schema and columns of each version.
pub(super) fn validate(report: &mut Report, object: &Value) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let group = text(spec, "group");
    if group.is_empty() {
        report.required("spec.group", "");
    } else if let Some(why) = metadata::dns_name(group) {
        report.invalid("spec.group", &group.into(), why);
    } else if !group.contains('.') {
        report.invalid(
            "spec.group",
            &group.into(),
            "should be a domain with at least one dot",
        );
    }
    if text(spec, "scope").is_empty() {
        report.required("spec.scope", "");
    }
    report.one_of(spec, "scope", "spec", &["Cluster", "Namespaced"]);
    let names = spec.get("names").unwrap_or(&Value::Null);
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(names, field);
        if name.is_empty() {
            report.required(format!("spec.names.{field}"), "");
            continue;
        }
        // The names in URLs are lower-case.
        let lower = name.to_lowercase();
        let checked = if matches!(field, "plural" | "singular") {
            name
        } else {
            &lower
        };
        if let Some(why) = metadata::dns_label(checked) {
            report.invalid(format!("spec.names.{field}"), &name.into(), why);
        }
    }
    let wanted = format!("{}.{group}", text(names, "plural"));
    let name = object
        .pointer("/metadata/name")
        .cloned()
        .unwrap_or_default();
    if name.as_str() != Some(&wanted) {
        report.invalid(
            "metadata.name",
            &name,
            "must be spec.names.plural+\".\"+spec.group",
        );
    }
    versions(report, spec);
}

fn versions(report: &mut Report, spec: &Value) {
    let versions = list(spec, "versions");
    if versions.is_empty() {
        report.required("spec.versions", "must have at least one version");
        return;
    }
    let mut seen = HashSet::new();
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}]");
        let name = text(version, "name");
        if let Some(why) = metadata::dns_label(name) {
            report.invalid(format!("{path}.name"), &name.into(), why);
        }
        if !seen.insert(name) {
            report
                .errors
                .push(FieldError::duplicate(format!("{path}.name"), &name.into()));
        }
        let place = format!("{path}.schema.openAPIV3Schema");
        match version.pointer("/schema/openAPIV3Schema") {
            None => report.required(place, "schemas are required"),
            Some(schema) => {
                if let Err(errors) = Schema::from_crd(schema) {
                    report
                        .errors
                        .extend(errors.into_iter().map(|e| e.under(&place)));
                }
            }
        }
        if let Err(errors) = Table::from_crd(version.get("additionalPrinterColumns")) {
            report
                .errors
                .extend(errors.into_iter().map(|e| e.under(&path)));
        }
    }
    let stored = versions
        .iter()
        .filter(|v| v.get("storage") == Some(&Value::Bool(true)))
        .count();
    if stored != 1 {
        let names: Vec<&str> = versions.iter().map(|v| text(v, "name")).collect();
        report.invalid(
            "spec.versions",
            &Value::from(names),
            "must have exactly one version marked as storage version",
        );
    }
    if !versions
        .iter()
        .any(|v| v.get("served") == Some(&Value::Bool(true)))
    {
        let names: Vec<&str> = versions.iter().map(|v| text(v, "name")).collect();
        report.invalid(
            "spec.versions",
            &Value::from(names),
            "must have at least one version served",
        );
    }
}
