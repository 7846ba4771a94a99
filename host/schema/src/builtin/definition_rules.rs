//! Rules of CustomResourceDefinitions.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{Report, list, text};
use crate::{FieldError, Reason, Schema, metadata, table::Table};

/// Names, versions, and the schema and columns of each version.
pub(super) fn validate(report: &mut Report, object: &Value, old: Option<&Value>) {
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
    protected_group(report, object, group);
    if text(spec, "scope").is_empty() {
        report.required("spec.scope", "");
    }
    report.one_of(spec, "scope", "spec", &["Cluster", "Namespaced"]);
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        report.invalid(
            "spec.preserveUnknownFields",
            &Value::Bool(true),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        );
    }
    let names = spec.get("names").unwrap_or(&Value::Null);
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(names, field);
        if name.is_empty() {
            report.required(format!("spec.names.{field}"), "");
            continue;
        }
        // The names in URLs are lower-case.
        let fault = if matches!(field, "plural" | "singular") {
            metadata::dns_1035_label(name)
        } else {
            metadata::dns_1035_label(&name.to_lowercase())
                .map(|why| format!("may have mixed case, but should otherwise match: {why}"))
        };
        if let Some(why) = fault {
            report.invalid(format!("spec.names.{field}"), &name.into(), why);
        }
    }
    for field in ["shortNames", "categories"] {
        for (at, name) in list(names, field).iter().enumerate() {
            if let Some(why) = metadata::dns_1035_label(name.as_str().unwrap_or_default()) {
                report.invalid(format!("spec.names.{field}[{at}]"), name, why);
            }
        }
    }
    let wanted = format!("{}.{group}", text(names, "plural"));
    let name = object
        .pointer("/metadata/name")
        .cloned()
        .unwrap_or_default();
    if old.is_none() && name.as_str() != Some(&wanted) {
        report.invalid(
            "metadata.name",
            &name,
            "must be spec.names.plural+\".\"+spec.group",
        );
    }
    conversion(report, spec.get("conversion").unwrap_or(&Value::Null));
    versions(report, spec);
    stored_versions(report, object, spec);
}

/// Groups of Kubernetes itself are not for others.
fn protected_group(report: &mut Report, object: &Value, group: &str) {
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let approved = object
        .pointer("/metadata/annotations/api-approved.kubernetes.io")
        .is_some();
    if is_protected && !approved {
        report.required(
            "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        );
    }
}

fn conversion(report: &mut Report, conversion: &Value) {
    report.one_of(
        conversion,
        "strategy",
        "spec.conversion",
        &["None", "Webhook"],
    );
    if text(conversion, "strategy") != "Webhook" {
        return;
    }
    if conversion.pointer("/webhook/clientConfig").is_none() {
        report.required(
            "spec.conversion.webhookClientConfig",
            "required when strategy is set to Webhook",
        );
    }
    let versions = conversion.pointer("/webhook/conversionReviewVersions");
    if versions.and_then(Value::as_array).is_none_or(Vec::is_empty) {
        report.required("spec.conversion.conversionReviewVersions", "");
    }
}

/// A version under which objects may be stored has to stay.
fn stored_versions(report: &mut Report, object: &Value, spec: &Value) {
    let has = |name: &str| {
        list(spec, "versions")
            .iter()
            .any(|v| text(v, "name") == name)
    };
    let stored = object.pointer("/status/storedVersions");
    for (at, name) in stored
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let text = name.as_str().unwrap_or_default();
        if !has(text) {
            report.invalid(
                format!("status.storedVersions[{at}]"),
                name,
                format!(
                    "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a \
                     storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
                ),
            );
        }
    }
}

/// Where faults of a version are shown: what is the same in all of them is shown as one of the whole definition.
struct Places {
    schema: String,
    columns: String,
    is_one_column_list: bool,
    subresources: String,
    selectable: String,
}

impl Places {
    fn of(versions: &[Value], at: usize) -> Self {
        let same = |pointer: &str| {
            let mut all = versions.iter().map(|version| version.pointer(pointer));
            let first = all.next();
            all.all(|other| Some(other) == first)
        };
        let place = |pointer: &str, whole: &str, part: &str| {
            if same(pointer) {
                format!("spec.{whole}")
            } else {
                format!("spec.versions[{at}].{part}")
            }
        };
        Self {
            schema: place(
                "/schema",
                "validation.openAPIV3Schema",
                "schema.openAPIV3Schema",
            ),
            columns: place("/additionalPrinterColumns", "", ""),
            is_one_column_list: same("/additionalPrinterColumns"),
            subresources: place("/subresources", "subresources", "subresources"),
            selectable: place("/selectableFields", "selectableFields", "selectableFields"),
        }
    }
}

fn versions(report: &mut Report, spec: &Value) {
    let versions = list(spec, "versions");
    let mut seen = HashSet::new();
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}]");
        let places = Places::of(versions, at);
        let name = text(version, "name");
        if let Some(why) = metadata::dns_1035_label(name) {
            errors.push(FieldError::invalid(
                format!("{path}.name"),
                &name.into(),
                &why,
            ));
            if at == 0 {
                errors.push(FieldError::invalid("spec.version", &name.into(), why));
            }
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), &name.into()));
        }
        match version.pointer("/schema/openAPIV3Schema") {
            None => errors.push(FieldError::required(
                format!("{path}.schema.openAPIV3Schema"),
                "",
            )),
            Some(schema) => {
                if let Err(faults) = Schema::from_crd(schema) {
                    errors.extend(faults.into_iter().map(|fault| fault.under(&places.schema)));
                }
                selectable_fields(version, schema, &places.selectable, &mut errors);
            }
        }
        if let Err(faults) = Table::from_crd(version.get("additionalPrinterColumns")) {
            errors.extend(faults.into_iter().map(|fault| {
                let mut fault = fault.under(places.columns.trim_end_matches('.'));
                if places.is_one_column_list {
                    // As the field is called where it belongs to the whole definition.
                    fault.path = fault.path.replace(".jsonPath", ".JSONPath");
                }
                fault
            }));
        }
        if let Some(scale) = version.pointer("/subresources/scale") {
            scale_paths(
                scale,
                &format!("{}.scale", places.subresources),
                &mut errors,
            );
        }
    }
    // What is shown at one place is found in each version.
    let mut told: Vec<FieldError> = Vec::new();
    for error in errors {
        if !told.contains(&error) {
            told.push(error);
        }
    }
    report.errors.extend(told);
    let marked = |field: &str| {
        versions
            .iter()
            .filter(|version| version.get(field) == Some(&Value::Bool(true)))
            .count()
    };
    let names: Value = match versions {
        [] => Value::Null,
        all => all.iter().map(|v| text(v, "name")).collect(),
    };
    if marked("storage") != 1 {
        report.invalid(
            "spec.versions",
            &names,
            "must have exactly one version marked as storage version",
        );
    }
    if marked("storage") == 0 {
        report.invalid(
            "status.storedVersions",
            &Value::Null,
            "must have at least one stored version",
        );
    }
}

fn scale_paths(scale: &Value, place: &str, errors: &mut Vec<FieldError>) {
    for (field, roots, under) in [
        ("specReplicasPath", &[".spec."][..], ".spec"),
        ("statusReplicasPath", &[".status."], ".status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "either .spec or .status",
        ),
    ] {
        let path = text(scale, field);
        if path.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(FieldError::required(format!("{place}.{field}"), ""));
            }
        } else if !path.starts_with('.') {
            errors.push(FieldError::invalid(
                format!("{place}.{field}"),
                &path.into(),
                "must be a simple json path starting with .",
            ));
        } else if !roots.iter().any(|root| path.starts_with(root)) {
            errors.push(FieldError::invalid(
                format!("{place}.{field}"),
                &path.into(),
                format!("should be a json path under {under}"),
            ));
        }
    }
}

fn selectable_fields(version: &Value, schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    for (at, field) in list(version, "selectableFields").iter().enumerate() {
        let path = text(field, "jsonPath");
        let place = format!("{place}[{at}].jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let refuse = |why: &str| {
            FieldError::new(
                place.clone(),
                Reason::Invalid,
                format!("Invalid value: {path:?}: {why}"),
            )
        };
        let Some(names) = path.strip_prefix('.') else {
            errors.push(refuse(&format!(
                "is an invalid path: expected [ or . but got: {path}"
            )));
            continue;
        };
        let found = names.split('.').try_fold(schema, |schema, name| {
            schema.get("properties").and_then(|all| all.get(name))
        });
        match found.map(|schema| text(schema, "type")) {
            None => errors.push(refuse("is an invalid path: does not refer to a valid field")),
            Some("string" | "integer" | "boolean") => {}
            Some(_) => errors.push(refuse("must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.")),
        }
    }
}
