//! Definitions of custom resources: what may be in one, and the resources that it makes.

use std::sync::{Arc, OnceLock};

use configurator_schema::table::Table;
use configurator_schema::{FieldError, Schema};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object;
use crate::resource::{Custom, NameRule, Resource, Rules, ScalePaths, SelectableField};
use crate::server::Inner;
use crate::update::timestamp;

pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// The definition waits for its objects to go.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The resources of an established definition, one for each served version.
pub(crate) fn served_resources(definition: &Value) -> Vec<Arc<Resource>> {
    if !is_true(definition, "Established") {
        return Vec::new();
    }
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    let stored = versions
        .into_iter()
        .flatten()
        .find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let stored = stored
        .and_then(|version| version.get("name"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let group = text(definition, "/spec/group");
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .filter_map(|version| served_resource(definition, version, &format!("{group}/{stored}")))
        .map(Arc::new)
        .collect()
}

fn served_resource(
    definition: &Value,
    version: &Value,
    stored_api_version: &str,
) -> Option<Resource> {
    let group = text(definition, "/spec/group");
    let plural = text(definition, "/spec/names/plural");
    let name = text(version, "/name");
    let kind = text(definition, "/spec/names/kind");
    let openapi = version
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    // A definition that was stored has been checked.
    let schema = Schema::from_crd(&openapi).ok()?;
    let table = Table::from_crd(version.get("additionalPrinterColumns")).ok()?;
    let list = |pointer: &str| -> Vec<String> {
        let values = definition.pointer(pointer).and_then(Value::as_array);
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let scale = version
        .pointer("/subresources/scale")
        .map(|scale| ScalePaths {
            spec_replicas: pointer(&text(scale, "/specReplicasPath")),
            status_replicas: pointer(&text(scale, "/statusReplicasPath")),
            selector: scale
                .get("labelSelectorPath")
                .and_then(Value::as_str)
                .map(pointer),
        });
    let fields = version
        .get("selectableFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|field| {
            let path = field.get("jsonPath")?.as_str()?;
            Some(SelectableField {
                name: path.trim_start_matches('.').to_owned(),
                pointer: pointer(path),
                absent: "",
            })
        });
    let deprecated = version.get("deprecated") == Some(&Value::Bool(true));
    Some(Resource {
        list_kind: text(definition, "/spec/names/listKind"),
        singular: text(definition, "/spec/names/singular"),
        short_names: list("/spec/names/shortNames"),
        categories: list("/spec/names/categories"),
        namespaced: text(definition, "/spec/scope") == "Namespaced",
        status: version.pointer("/subresources/status").is_some(),
        scale,
        storage: Arc::from(format!("{group}/{plural}")),
        stored_api_version: stored_api_version.to_owned(),
        rules: Rules {
            generation: true,
            create_on_update: false,
            unconditional_update: false,
            returns_deleted: false,
            names: NameRule::Subdomain,
        },
        review: false,
        fields: fields.collect(),
        custom: Some(Custom {
            schema: Arc::new(schema),
            openapi: Arc::new(openapi),
            table: Arc::new(table),
            deprecation: deprecated.then(|| {
                let warning = version.get("deprecationWarning").and_then(Value::as_str);
                warning.map_or_else(
                    || format!("{group}/{name} {kind} is deprecated"),
                    str::to_owned,
                )
            }),
        }),
        table: OnceLock::new(),
        group,
        version: name,
        kind,
        plural,
    })
}

/// `.spec.replicas` as a JSON pointer.
fn pointer(path: &str) -> String {
    path.split('.')
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
        .collect()
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array)?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

fn is_true(definition: &Value, kind: &str) -> bool {
    condition(definition, kind).and_then(|condition| condition.get("status"))
        == Some(&json!("True"))
}

/// A new definition is established at once: there is nobody to wait for.
pub(crate) fn prepare_create(server: &Inner, definition: &mut Value, now: Timestamp) {
    set_defaults(definition);
    object::set_meta(definition, "finalizers", {
        let mut finalizers: Vec<Value> = object::finalizers(definition).map(Value::from).collect();
        if !finalizers.contains(&json!(CLEANUP)) {
            finalizers.push(json!(CLEANUP));
        }
        Value::Array(finalizers)
    });
    object::set_field(definition, "status", None);
    set_status(server, None, definition, now);
}

pub(crate) fn prepare_update(server: &Inner, old: &Value, definition: &mut Value, now: Timestamp) {
    set_defaults(definition);
    set_status(server, Some(old), definition, now);
}

fn set_defaults(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind");
    let spec = object::child_mut(definition, "spec");
    spec.entry("conversion")
        .or_insert_with(|| json!({"strategy": "None"}));
    spec.remove("preserveUnknownFields");
    let names = spec.entry("names").or_insert_with(|| json!({}));
    for (field, value) in [
        ("singular", kind.to_lowercase()),
        ("listKind", format!("{kind}List")),
    ] {
        if text(names, &format!("/{field}")).is_empty() {
            object::set_field(names, field, Some(json!(value)));
        }
    }
}

fn set_status(server: &Inner, old: Option<&Value>, definition: &mut Value, now: Timestamp) {
    let group = text(definition, "/spec/group");
    let names = definition
        .pointer("/spec/names")
        .cloned()
        .unwrap_or_default();
    let conflict = name_conflict(server, &group, object::name(definition), &names);
    let mut conditions = Vec::new();
    let mut add = |kind: &str, fine: bool, reason: &str, message: &str| {
        let status = if fine { "True" } else { "False" };
        let before = old
            .and_then(|old| condition(old, kind))
            .filter(|condition| condition.get("status") == Some(&json!(status)));
        let since = before
            .and_then(|condition| condition.get("lastTransitionTime"))
            .cloned()
            .unwrap_or_else(|| json!(timestamp(now)));
        conditions.push(json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}));
    };
    match &conflict {
        None => add("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some(why) => add("NamesAccepted", false, "ListKindConflict", why),
    }
    let was_established = old.is_some_and(|old| is_true(old, "Established"));
    match (&conflict, was_established) {
        (None, _) | (_, true) => add(
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
        (Some(_), false) => add(
            "Established",
            false,
            "NotAccepted",
            "not all names are accepted",
        ),
    }
    if object::is_terminating(definition) {
        add(
            "Terminating",
            true,
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        );
    }
    let stored_now = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let stored_now = stored_now
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| version.get("name"));
    let mut stored: Vec<Value> = old
        .and_then(|old| old.pointer("/status/storedVersions"))
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for version in stored_now {
        if !stored.contains(version) {
            stored.push(version.clone());
        }
    }
    let accepted = if conflict.is_none() {
        names
    } else {
        json!({"plural": "", "kind": ""})
    };
    let status =
        json!({"acceptedNames": accepted, "conditions": conditions, "storedVersions": stored});
    object::set_field(definition, "status", Some(status));
}

fn name_conflict(server: &Inner, group: &str, definition: &str, names: &Value) -> Option<String> {
    let registry = server.registry();
    let short: Vec<&str> = names
        .get("shortNames")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for other in registry.custom_in_group(group, definition) {
        for field in ["plural", "singular"] {
            let name = names.get(field).and_then(Value::as_str).unwrap_or_default();
            if name == other.plural
                || name == other.singular
                || other.short_names.iter().any(|short| short == name)
            {
                return Some(format!("{name:?} is already in use"));
            }
        }
        if let Some(name) = short.iter().find(|name| {
            other.short_names.iter().any(|one| one == **name)
                || **name == other.plural
                || **name == other.singular
        }) {
            return Some(format!("{name:?} is already in use"));
        }
        for (field, taken) in [("kind", &other.kind), ("listKind", &other.list_kind)] {
            if names.get(field).and_then(Value::as_str) == Some(taken) {
                return Some(format!("{taken:?} is already in use"));
            }
        }
    }
    None
}

/// What is wrong with a definition; nothing for any other resource.
pub(crate) fn validate(
    resource: &Resource,
    definition: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    if &*resource.storage != STORAGE {
        return Vec::new();
    }
    let mut errors = Vec::new();
    // What is well-formed but cannot be done here: nobody is called.
    if definition
        .pointer("/spec/conversion/webhook/clientConfig")
        .is_some()
        && definition.pointer("/spec/conversion/strategy") == Some(&json!("Webhook"))
    {
        errors.push(FieldError::not_supported(
            "spec.conversion.strategy",
            &json!("Webhook"),
            ["None"],
        ));
    }
    if let Some(old) = old.filter(|old| is_true(old, "Established")) {
        for (pointer, field) in [
            ("/spec/group", "spec.group"),
            ("/spec/scope", "spec.scope"),
            ("/spec/names/plural", "spec.names.plural"),
            ("/spec/names/kind", "spec.names.kind"),
        ] {
            if text(old, pointer) != text(definition, pointer) {
                errors.push(FieldError::invalid(
                    field,
                    &json!(text(definition, pointer)),
                    "field is immutable",
                ));
            }
        }
    }
    errors
}

/// The order of versions in discovery: stable before beta before alpha, newer before older.
pub(crate) fn version_priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let last = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return last();
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (major, tail) = rest.split_at_checked(digits).unwrap_or((rest, ""));
    let Ok(major) = major.parse() else {
        return last();
    };
    let ranked = |stability: u8, minor: &str| {
        minor.parse().map_or_else(
            |_| last(),
            |minor| (stability, major, minor, std::cmp::Reverse(String::new())),
        )
    };
    match (tail, tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
        ("", _, _) => (3, major, 0, std::cmp::Reverse(String::new())),
        (_, Some(minor), _) => ranked(2, minor),
        (_, _, Some(minor)) => ranked(1, minor),
        _ => last(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_and_age() {
        let mut versions = vec![
            "foo1", "v1alpha1", "v2", "v1", "v10", "v1beta2", "v1beta10", "bar",
        ];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(
            versions,
            [
                "v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar", "foo1"
            ]
        );
    }
}
