//! From the schema of a CustomResourceDefinition to nodes, with the rules of structural schemas.

use std::sync::Arc;

use regex::RegexBuilder;
use serde_json::{Map, Value};

mod junctors;

use junctors::Junctors;

use crate::{
    FieldError, Schema, builtin,
    cel::Rule,
    schema::{Kind, ListType, Node},
    validate::{Bound, Checks},
};

/// Schemas nest no deeper.
const DEPTH_MAX: usize = 100;

/// The compiled form of one pattern is no larger, in bytes.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Reads a schema; errors are sorted by their text, as an API server reports them.
pub(crate) fn read(schema: &Value) -> Result<Schema, Vec<FieldError>> {
    let mut reader = Reader {
        errors: Vec::new(),
        unmatched: None,
    };
    let mut root = reader.node(schema, "", Level::Root, 0);
    if reader.errors.is_empty() {
        for (name, node) in [
            ("apiVersion", text()),
            ("kind", text()),
            ("metadata", builtin::object_meta()),
        ] {
            match root
                .properties
                .binary_search_by(|(n, _)| n.as_ref().cmp(name))
            {
                Ok(at) => {
                    if let Some((_, declared)) = root.properties.get_mut(at)
                        && name == "metadata"
                    {
                        *declared = Arc::new(with_checks(&node, declared));
                    }
                }
                Err(at) => root.properties.insert(at, (name.into(), node)),
            }
        }
        root.kind = Kind::Object;
        reader.rules(schema, &mut root, "", true);
    }
    if reader.errors.is_empty() {
        return Ok(Schema {
            root: Arc::new(root),
            builtin: false,
        });
    }
    reader.errors.sort_by_key(ToString::to_string);
    Err(reader.errors)
}

fn text() -> Arc<Node> {
    Arc::new(Node::new(Kind::String))
}

/// `metadata` with what the schema demands of the names.
fn with_checks(meta: &Node, declared: &Arc<Node>) -> Node {
    let mut node = Node::new(Kind::Object);
    node.properties = meta.properties.clone();
    for (name, field) in &mut node.properties {
        if let Some(own) = declared.property(name) {
            *field = own.clone();
        }
    }
    node
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

struct Reader {
    errors: Vec<FieldError>,
    /// The list or map around the current place, if an update cannot match what is in it with what was.
    unmatched: Option<String>,
}

impl Reader {
    fn node(&mut self, schema: &Value, path: &str, level: Level, depth: usize) -> Node {
        if depth > DEPTH_MAX {
            self.errors.push(FieldError::invalid(
                path,
                &Value::from(""),
                format!("nests deeper than {DEPTH_MAX} levels"),
            ));
            return Node::new(Kind::Any);
        }
        let Value::Object(map) = schema else {
            self.errors
                .push(FieldError::type_invalid(path, schema, "must be an object"));
            return Node::new(Kind::Any);
        };
        let at = |name: &str| join(path, name);
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let int_or_string = flag("x-kubernetes-int-or-string");
        let preserve = flag("x-kubernetes-preserve-unknown-fields");
        let embedded = flag("x-kubernetes-embedded-resource");
        let mut node = Node::new(self.kind(map, path, level));
        node.nullable = flag("nullable");
        node.preserve_unknown |= preserve;
        node.embedded = embedded;
        if map
            .get("x-kubernetes-preserve-unknown-fields")
            .is_some_and(|v| *v == Value::Bool(false))
        {
            self.invalid(
                at("x-kubernetes-preserve-unknown-fields"),
                &Value::Bool(false),
                "must be true or undefined",
            );
        }
        if int_or_string && preserve {
            self.invalid(
                at("x-kubernetes-preserve-unknown-fields"),
                &Value::Bool(true),
                "must be false if x-kubernetes-int-or-string is true",
            );
        }
        if int_or_string && embedded {
            self.invalid(
                at("x-kubernetes-embedded-resource"),
                &Value::Bool(true),
                "must be false if x-kubernetes-int-or-string is true",
            );
        }
        if embedded && node.kind != Kind::Object {
            self.errors.push(FieldError::required(
                at("type"),
                "must be object if x-kubernetes-embedded-resource is true",
            ));
        }
        for forbidden in [
            "$ref",
            "definitions",
            "dependencies",
            "patternProperties",
            "additionalItems",
            "id",
            "deprecated",
        ] {
            if map.get(forbidden).is_some_and(|v| !v.is_null()) {
                self.errors.push(FieldError::forbidden(
                    at(forbidden),
                    &format!("{forbidden} is not supported"),
                ));
            }
        }
        self.children(map, &mut node, path, level, depth);
        self.merging(map, &mut node, path);
        let junctors = Junctors {
            skip_any_of: int_or_string,
        };
        let checks = self.checks(map, path, &junctors, depth, &node);
        node.checks = (!is_trivial(&checks)).then(|| Box::new(checks));
        if level != Level::Root {
            self.rules(schema, &mut node, path, false);
        }
        if embedded {
            // It has its own headers, whatever is declared.
            for (name, header) in [
                ("apiVersion", text()),
                ("kind", text()),
                ("metadata", builtin::object_meta()),
            ] {
                if let Err(at) = node
                    .properties
                    .binary_search_by(|(n, _)| n.as_ref().cmp(name))
                {
                    node.properties.insert(at, (name.into(), header));
                }
            }
        }
        if let Some(default) = map.get("default").filter(|d| !d.is_null() || node.nullable) {
            self.default(default, &mut node, path, level);
        }
        node.has_rules = !node.rules.is_empty()
            || node.properties.iter().any(|(_, n)| n.has_rules)
            || [&node.items, &node.additional]
                .into_iter()
                .flatten()
                .any(|n| n.has_rules);
        node
    }

    fn kind(&mut self, map: &Map<String, Value>, path: &str, level: Level) -> Kind {
        let name = map.get("type").and_then(Value::as_str).unwrap_or_default();
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let at = join(path, "type");
        let kind = match name {
            "" if flag("x-kubernetes-int-or-string") => return Kind::IntOrString,
            "" if flag("x-kubernetes-preserve-unknown-fields") => Kind::Any,
            "" => {
                let detail = match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                };
                self.errors.push(FieldError::required(at, detail));
                return Kind::Any;
            }
            "object" => Kind::Object,
            "array" => Kind::Array,
            "string" => Kind::String,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            other => {
                let known = ["array", "boolean", "integer", "number", "object", "string"];
                self.errors
                    .push(FieldError::not_supported(at, &other.into(), known));
                return Kind::Any;
            }
        };
        if level == Level::Root && kind != Kind::Object && !name.is_empty() {
            self.invalid(at, &name.into(), "must be object at the root");
        }
        kind
    }

    fn children(
        &mut self,
        map: &Map<String, Value>,
        node: &mut Node,
        path: &str,
        level: Level,
        depth: usize,
    ) {
        let around = self.unmatched.clone();
        let named = |name: &str| map.get(name).and_then(Value::as_str);
        if self.unmatched.is_none()
            && (named("x-kubernetes-map-type") == Some("atomic")
                || (node.kind == Kind::Array && named("x-kubernetes-list-type") != Some("map")))
        {
            self.unmatched = Some(path.to_owned());
        }
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            for (name, schema) in properties {
                let at = join(path, &format!("properties[{name}]"));
                if level == Level::Root && name == "metadata" {
                    self.metadata(schema, &at);
                }
                node.properties.push((
                    name.as_str().into(),
                    Arc::new(self.node(schema, &at, Level::Field, depth + 1)),
                ));
            }
            node.properties.sort_by(|a, b| a.0.cmp(&b.0));
        }
        match map.get("additionalProperties") {
            None | Some(Value::Null) => {}
            Some(_) if level == Level::Root => {
                self.errors.push(FieldError::forbidden(
                    join(path, "additionalProperties"),
                    "must not be used at the root",
                ));
            }
            Some(_) if !node.properties.is_empty() => self.errors.push(FieldError::forbidden(
                join(path, "additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            )),
            Some(Value::Bool(true)) => node.additional = Some(Arc::new(Node::new(Kind::Any))),
            Some(Value::Bool(false)) => {
                self.errors.push(FieldError::forbidden(
                    join(path, "additionalProperties"),
                    "must not be false",
                ));
            }
            Some(schema) => {
                let at = join(path, "additionalProperties");
                node.additional = Some(Arc::new(self.node(schema, &at, Level::Field, depth + 1)));
            }
        }
        match map.get("items") {
            Some(Value::Array(_)) => self.errors.push(FieldError::forbidden(
                join(path, "items"),
                "items must be a schema object and not an array",
            )),
            Some(schema) if !schema.is_null() => {
                node.items = Some(Arc::new(self.node(
                    schema,
                    &join(path, "items"),
                    Level::Item,
                    depth + 1,
                )));
            }
            _ if node.kind == Kind::Array => self.errors.push(FieldError::required(
                join(path, "items"),
                "must be specified",
            )),
            _ => {}
        }
        self.unmatched = around;
    }

    /// At the root only the names may be restricted.
    fn metadata(&mut self, schema: &Value, path: &str) {
        let names_only = schema
            .get("properties")
            .and_then(Value::as_object)
            .is_none_or(|p| p.keys().all(|k| k == "name" || k == "generateName"));
        let known = schema.as_object().is_none_or(|m| {
            m.keys()
                .all(|k| matches!(k.as_str(), "type" | "properties" | "description"))
        });
        if !names_only || !known {
            self.errors.push(FieldError::forbidden(
                path,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }

    fn merging(&mut self, map: &Map<String, Value>, node: &mut Node, path: &str) {
        let keys: Vec<&str> = map
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let at_keys = join(path, "x-kubernetes-list-map-keys");
        let list_type = map.get("x-kubernetes-list-type").and_then(Value::as_str);
        if let Some(name) = list_type {
            let at = join(path, "x-kubernetes-list-type");
            if node.kind != Kind::Array {
                self.invalid(
                    join(path, "type"),
                    &node.kind.name().into(),
                    "must be array if x-kubernetes-list-type is specified",
                );
            }
            match name {
                "atomic" => {}
                "set" => {
                    node.list = ListType::Set;
                    let items = map.get("items");
                    let item = |name: &str| items.and_then(|items| items.get(name));
                    if item("type") == Some(&"object".into())
                        && item("x-kubernetes-map-type") != Some(&"atomic".into())
                    {
                        self.invalid(
                            join(path, "items.x-kubernetes-map-type"),
                            item("x-kubernetes-map-type").unwrap_or(&Value::Null),
                            "must be atomic as item of a list with x-kubernetes-list-type=set",
                        );
                    }
                }
                "map" => self.map_keys(&keys, node, path),
                other => self.errors.push(FieldError::not_supported(
                    at,
                    &other.into(),
                    ["atomic", "set", "map"],
                )),
            }
        }
        if !keys.is_empty() && list_type != Some("map") {
            self.errors.push(FieldError::required(
                join(path, "x-kubernetes-list-type"),
                "must be map if x-kubernetes-list-map-keys is non-empty",
            ));
        }
        if keys.is_empty() && list_type == Some("map") {
            self.errors.push(FieldError::required(
                at_keys,
                "must not be empty if x-kubernetes-list-type is map",
            ));
        }
        match map.get("x-kubernetes-map-type").and_then(Value::as_str) {
            None | Some("granular") => {}
            Some("atomic") => node.atomic_map = true,
            Some(other) => {
                self.errors.push(FieldError::not_supported(
                    join(path, "x-kubernetes-map-type"),
                    &other.into(),
                    ["atomic", "granular"],
                ));
            }
        }
    }

    fn map_keys(&mut self, keys: &[&str], node: &mut Node, path: &str) {
        let at = join(path, "x-kubernetes-list-map-keys");
        let shown = Value::from(keys.to_vec());
        let Some(items) = node.items.clone() else {
            return;
        };
        if items.kind != Kind::Object {
            self.invalid(
                join(path, "items.type"),
                &items.kind.name().into(),
                "must be object if parent array's x-kubernetes-list-type is map",
            );
            return;
        }
        let required = items
            .checks
            .as_ref()
            .map(|c| c.required.as_slice())
            .unwrap_or_default();
        for key in keys {
            let Some(property) = items.property(key) else {
                self.invalid(
                    at.clone(),
                    &shown,
                    "entries must all be names of item properties",
                );
                continue;
            };
            let inner = join(path, &format!("items.properties[{key}]"));
            if matches!(property.kind, Kind::Object | Kind::Array) {
                self.invalid(
                    join(&inner, "type"),
                    &property.kind.name().into(),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                );
            }
            if property.default.is_none() && !required.iter().any(|r| r.as_ref() == *key) {
                self.errors.push(FieldError::required(
                    join(&inner, "default"),
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                ));
            }
            if property.nullable {
                self.errors.push(FieldError::forbidden(
                    join(&inner, "nullable"),
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                ));
            }
        }
        let mut sorted: Vec<Box<str>> = keys.iter().map(|k| Box::from(*k)).collect();
        sorted.sort();
        if sorted.windows(2).any(|w| matches!(w, [a, b] if a == b)) {
            self.invalid(at, &shown, "must not contain duplicate entries");
        }
        node.list = ListType::Map(sorted.into());
    }

    fn checks(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        junctors: &Junctors,
        depth: usize,
        owner: &Node,
    ) -> Checks {
        let number = |name: &str| map.get(name).and_then(|v| v.as_number().cloned());
        let count = |name: &str| map.get(name).and_then(Value::as_u64);
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let bound = |name: &str, exclusive: &str| {
            number(name).map(|limit| Bound {
                limit,
                exclusive: flag(exclusive),
            })
        };
        let mut checks = Checks {
            required: map
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(Box::from)
                .collect(),
            allowed: map.get("enum").and_then(Value::as_array).cloned(),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: map
                .get("multipleOf")
                .and_then(Value::as_f64)
                .filter(|f| *f > 0.0),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: None,
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            format: map.get("format").and_then(Value::as_str).map(Box::from),
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            not: None,
        };
        if flag("uniqueItems") {
            self.errors.push(FieldError::forbidden(
                join(path, "uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ));
        }
        if let Some(source) = map.get("pattern").and_then(Value::as_str) {
            match RegexBuilder::new(source)
                .size_limit(PATTERN_SIZE_MAX)
                .build()
            {
                Ok(regex) => checks.pattern = Some((source.into(), regex)),
                Err(error) => {
                    let detail = format!("must be a valid regular expression, but isn't: {error}");
                    self.invalid(join(path, "pattern"), &source.into(), &detail);
                }
            }
        }
        let list = |reader: &mut Reader, name: &str| -> Vec<Arc<Node>> {
            let schemas = map
                .get(name)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            schemas
                .iter()
                .enumerate()
                .map(|(i, s)| {
                    Arc::new(reader.nested(
                        s,
                        &join(path, &format!("{name}[{i}]")),
                        junctors,
                        depth + 1,
                        owner,
                    ))
                })
                .collect()
        };
        checks.all_of = list(self, "allOf");
        checks.any_of = list(self, "anyOf");
        checks.one_of = list(self, "oneOf");
        checks.not = map
            .get("not")
            .filter(|n| !n.is_null())
            .map(|s| Arc::new(self.nested(s, &join(path, "not"), junctors, depth + 1, owner)));
        checks
    }

    fn rules(&mut self, schema: &Value, node: &mut Node, path: &str, root: bool) {
        let entries = schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if entries.is_empty() || !self.errors.is_empty() {
            return;
        }
        let mut rules = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            match Rule::compile(entry, node, root) {
                Ok(rule) => {
                    if rule.is_transition()
                        && let Some(around) = &self.unmatched
                    {
                        let detail = format!(
                            "oldSelf cannot be used on the uncorrelatable portion of the schema within {around}"
                        );
                        let at = join(path, &format!("x-kubernetes-validations[{i}].rule"));
                        self.errors.push(FieldError::invalid(
                            at,
                            entry.get("rule").unwrap_or(&Value::Null),
                            detail,
                        ));
                    }
                    rules.push(rule);
                }
                Err(errors) => {
                    let at = join(path, &format!("x-kubernetes-validations[{i}]"));
                    self.errors.extend(errors.into_iter().map(|e| e.under(&at)));
                }
            }
        }
        node.has_rules =
            node.has_rules || !rules.is_empty() || node.properties.iter().any(|(_, n)| n.has_rules);
        node.rules = rules;
    }

    /// A default must be what an object could hold there; unknown fields in it are refused.
    fn default(&mut self, default: &Value, node: &mut Node, path: &str, level: Level) {
        let at = join(path, "default");
        if level == Level::Root {
            self.errors
                .push(FieldError::forbidden(at, "must not be set at the root"));
            return;
        }
        let mut value = default.clone();
        let mut unknown = Vec::new();
        node.prune(&mut value, &mut String::new(), &mut unknown);
        if !unknown.is_empty() {
            self.invalid(at, default, "must not have unknown fields");
            return;
        }
        node.default_children(&mut value, false);
        let mut errors = crate::validate::part(node, &value, &at);
        for error in &mut errors {
            // A default is checked as a value by itself, which has no path.
            error.message = error.message.replace(&format!("{at} in body"), " in body");
        }
        if errors.is_empty() {
            node.default = Some(Box::new(value));
        } else {
            self.errors.extend(errors);
        }
    }

    fn invalid(&mut self, path: String, value: &Value, detail: &str) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }
}

fn is_trivial(c: &Checks) -> bool {
    c.required.is_empty()
        && c.allowed.is_none()
        && c.minimum.is_none()
        && c.maximum.is_none()
        && c.multiple_of.is_none()
        && c.min_length.is_none()
        && c.max_length.is_none()
        && c.pattern.is_none()
        && c.min_items.is_none()
        && c.max_items.is_none()
        && c.min_properties.is_none()
        && c.max_properties.is_none()
        && c.format.is_none()
        && c.all_of.is_empty()
        && c.any_of.is_empty()
        && c.one_of.is_empty()
        && c.not.is_none()
}

fn join(path: &str, name: &str) -> String {
    crate::field_error::joined(path, name)
}
