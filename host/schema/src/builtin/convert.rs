//! From generated definitions to nodes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use serde_json::{Map, Value, json};

use super::lists::{self, MergeRule};
use crate::schema::{Kind, ListType, Node, PatchStrategy};

const REFERENCE: &str = "#/components/schemas/";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Definitions that hold any JSON, or themselves: nothing below them is checked here.
fn is_opaque(definition: &str) -> bool {
    let name = definition.rsplit('.').next().unwrap_or(definition);
    matches!(name, "JSON" | "RawExtension" | "FieldsV1" | "Patch")
        || name.starts_with("JSONSchemaProps")
}

/// The node of a definition; each is built once for all kinds that use it.
pub(super) fn node(definition: &str, definitions: &Map<String, Value>) -> Arc<Node> {
    static NODES: OnceLock<Mutex<HashMap<String, Arc<Node>>>> = OnceLock::new();
    let nodes = NODES.get_or_init(Mutex::default);
    if let Some(node) = nodes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(definition)
    {
        return node.clone();
    }
    // Not under the lock: a definition is built from others. Built twice at worst.
    let node = Arc::new(match definitions.get(definition) {
        _ if is_opaque(definition) => Node::new(Kind::Any),
        _ if definition == QUANTITY => Node::new(Kind::Quantity),
        Some(schema) => object(definition, schema, definitions),
        None => Node::new(Kind::Any),
    });
    nodes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(definition.to_owned())
        .or_insert(node)
        .clone()
}

fn object(definition: &str, schema: &Value, definitions: &Map<String, Value>) -> Node {
    let mut node = plain(schema, definitions);
    let mut parts = definition.rsplit('.');
    if let (Some(name), Some(package)) = (parts.next(), parts.next()) {
        node.go_name = Some(format!("{package}.{name}").into());
    }
    node.atomic_map |= lists::is_atomic(definition);
    let rules = lists::rules(definition);
    for (name, field) in &mut node.properties {
        if let Some(default) = lists::key_default(definition, name) {
            let mut own = Node::new(field.kind);
            own.default = Some(Box::new(Value::from(default)));
            *field = Arc::new(own);
        }
        if let Some((_, rule)) = rules.iter().find(|(n, _)| *n == name.as_ref()) {
            *field = Arc::new(ruled(field, *rule));
        }
    }
    node
}

/// The field with its rule. Only lists and maps have rules, so what is below is shared.
fn ruled(field: &Node, rule: MergeRule) -> Node {
    let mut node = Node::new(field.kind);
    node.preserve_unknown = field.preserve_unknown;
    node.properties = field.properties.clone();
    node.additional = field.additional.clone();
    node.items = field.items.clone();
    node.go_name = field.go_name.clone();
    node.go_format = field.go_format.clone();
    node.atomic_map = field.atomic_map;
    let keys = |names: &[&str]| ListType::Map(names.iter().map(|n| Box::from(*n)).collect());
    match rule {
        MergeRule::Keys(names) => node.list = keys(names),
        MergeRule::Merged(names, key) => {
            node.list = keys(names);
            node.patch = PatchStrategy {
                merge_key: Some(key),
                ..PatchStrategy::default()
            };
        }
        MergeRule::MergedRetain(key) => {
            node.list = keys(&[key]);
            node.patch = PatchStrategy {
                merge_key: Some(key),
                retain_keys: true,
                ..PatchStrategy::default()
            };
        }
        MergeRule::PatchOnly(key) => node.patch.merge_key = Some(key),
        MergeRule::Set => node.list = ListType::Set,
        MergeRule::MergedSet => {
            node.list = ListType::Set;
            node.patch.merge_key = Some("");
        }
        MergeRule::AtomicMap => node.atomic_map = true,
        MergeRule::RetainKeys => node.patch.retain_keys = true,
        MergeRule::Replace => node.patch.replace = true,
    }
    node
}

fn plain(schema: &Value, definitions: &Map<String, Value>) -> Node {
    let kind = match schema.get("type").and_then(Value::as_str) {
        _ if schema.get("x-kubernetes-int-or-string").is_some() => Kind::IntOrString,
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::String,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        _ => Kind::Any,
    };
    let mut node = Node::new(kind);
    node.go_format = schema.get("format").and_then(Value::as_str).map(Into::into);
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        node.properties = properties
            .iter()
            .map(|(name, s)| (name.as_str().into(), place(s, definitions)))
            .collect();
        node.properties.sort_by(|a, b| a.0.cmp(&b.0));
    }
    node.additional = schema
        .get("additionalProperties")
        .filter(|a| a.is_object())
        .map(|s| place(s, definitions));
    node.items = schema.get("items").map(|s| place(s, definitions));
    node.preserve_unknown |=
        kind == Kind::Object && node.properties.is_empty() && node.additional.is_none();
    node
}

fn place(schema: &Value, definitions: &Map<String, Value>) -> Arc<Node> {
    match schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| r.strip_prefix(REFERENCE))
    {
        Some(name) => node(name, definitions),
        None => Arc::new(plain(schema, definitions)),
    }
}

/// Adds to definitions how their lists and maps merge, in the words of OpenAPI extensions.
pub(super) fn annotate(definitions: &mut Map<String, Value>) {
    for (definition, schema) in definitions {
        if lists::is_atomic(definition) {
            set(schema, "x-kubernetes-map-type", json!("atomic"));
        }
        for (field, rule) in lists::rules(definition) {
            let Some(place) = schema.get_mut("properties").and_then(|p| p.get_mut(*field)) else {
                continue;
            };
            describe(place, *rule);
        }
    }
}

fn describe(place: &mut Value, rule: MergeRule) {
    let (keys, patch) = match rule {
        MergeRule::Keys(keys) => (Some(keys), None),
        MergeRule::Merged(keys, key) => (Some(keys), Some(("merge", key))),
        MergeRule::MergedRetain(key) => {
            set(place, "x-kubernetes-list-map-keys", json!([key]));
            set(place, "x-kubernetes-list-type", json!("map"));
            (None, Some(("merge,retainKeys", key)))
        }
        MergeRule::PatchOnly(key) => (None, Some(("merge", key))),
        MergeRule::Set => {
            set(place, "x-kubernetes-list-type", json!("set"));
            (None, None)
        }
        MergeRule::MergedSet => {
            set(place, "x-kubernetes-list-type", json!("set"));
            (None, Some(("merge", "")))
        }
        MergeRule::AtomicMap => {
            set(place, "x-kubernetes-map-type", json!("atomic"));
            (None, None)
        }
        MergeRule::RetainKeys => (None, Some(("retainKeys", ""))),
        MergeRule::Replace => (None, Some(("replace", ""))),
    };
    if let Some(keys) = keys {
        set(place, "x-kubernetes-list-map-keys", json!(keys));
        set(place, "x-kubernetes-list-type", json!("map"));
    }
    if let Some((strategy, key)) = patch {
        set(place, "x-kubernetes-patch-strategy", json!(strategy));
        if !key.is_empty() {
            set(place, "x-kubernetes-patch-merge-key", json!(key));
        }
    }
}

fn set(schema: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = schema {
        map.insert(name.to_owned(), value);
    }
}
