//! Validation of objects of custom kinds against their schema, with the messages of Kubernetes.

use std::{cmp::Ordering, collections::HashSet, sync::Arc};

use regex::Regex;
use serde_json::{Number, Value};

use crate::{
    FieldError,
    cel::Budget,
    format,
    schema::{Kind, ListType, Node},
};

/// No more faults of one object than this are reported.
const ERRORS_MAX: usize = 100;

/// The value validations of one place; all must hold.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub required: Vec<Box<str>>,
    pub allowed: Option<Vec<Value>>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<(Box<str>, Regex)>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub format: Option<Box<str>>,
    pub all_of: Vec<Arc<Node>>,
    pub any_of: Vec<Arc<Node>>,
    pub one_of: Vec<Arc<Node>>,
    pub not: Option<Arc<Node>>,
}

/// One end of a range.
#[derive(Debug)]
pub(crate) struct Bound {
    pub limit: Number,
    pub exclusive: bool,
}

/// What is wrong with an object.
pub(crate) fn object(root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    root.validate(object, old, "", &mut errors);
    errors.truncate(ERRORS_MAX);
    // Rules may rely on what the schema says, so they are asked last.
    if root.has_rules {
        if errors.iter().any(|error| error.reason.blocks_rules()) {
            errors.push(FieldError::invalid(
                "<nil>",
                &Value::Null,
                "some validation rules were not checked because the object was invalid; correct the existing errors to complete \
                 validation",
            ));
        } else {
            root.evaluate(object, old, "", &mut Budget::default(), &mut errors);
            errors.truncate(ERRORS_MAX);
        }
    }
    errors
}

/// What is wrong with a value that stands at `path`.
pub(crate) fn part(node: &Node, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node.validate(value, None, path, &mut errors);
    if errors.is_empty() {
        node.evaluate(value, None, path, &mut Budget::default(), &mut errors);
    }
    errors
}

impl Node {
    /// What is wrong with `value`, apart from rules. A value that an update leaves alone is not checked again, so that a
    /// schema can be made stricter while objects exist.
    fn validate(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        errors: &mut Vec<FieldError>,
    ) {
        if old == Some(value) || errors.len() >= ERRORS_MAX {
            return;
        }
        if value.is_null() && self.nullable {
            return;
        }
        if !self.has_type(value) {
            let (have, want) = (type_name(value), self.kind.name());
            let detail = format!("{} in body must be of type {want}: {have:?}", named(path));
            errors.push(FieldError::type_invalid(path, &Value::from(have), detail));
            return;
        }
        if let Some(checks) = &self.checks {
            checks.validate(value, path, errors);
        }
        if self.embedded {
            for name in ["apiVersion", "kind"] {
                if value
                    .get(name)
                    .and_then(Value::as_str)
                    .is_none_or(str::is_empty)
                {
                    let path = crate::field_error::joined(path, name);
                    errors.push(FieldError::required(path, ""));
                }
            }
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(node) = self.field(name) {
                        let path = crate::field_error::joined(path, name);
                        node.validate(value, old.and_then(|o| o.get(name)), &path, errors);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    for (at, item) in items.iter().enumerate() {
                        let before = self.counterpart(item, old);
                        node.validate(item, before, &format!("{path}[{at}]"), errors);
                    }
                }
                self.check_unique(items, path, errors);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The item of the old list that is the same by its keys.
    pub(crate) fn counterpart<'a>(
        &self,
        item: &Value,
        old: Option<&'a Value>,
    ) -> Option<&'a Value> {
        let ListType::Map(keys) = &self.list else {
            return None;
        };
        old?.as_array()?.iter().find(|o| {
            keys.iter()
                .all(|k| o.get(k.as_ref()) == item.get(k.as_ref()))
        })
    }

    fn has_type(&self, value: &Value) -> bool {
        match self.kind {
            Kind::Any => true,
            Kind::Object => value.is_object(),
            Kind::Array => value.is_array(),
            Kind::String => value.is_string(),
            Kind::Boolean => value.is_boolean(),
            Kind::Number => value.is_number(),
            Kind::Integer => is_integer(value),
            Kind::IntOrString => is_integer(value) || value.is_string(),
            Kind::Quantity => value.is_number() || value.is_string(),
        }
    }

    fn check_unique(&self, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
        let mut seen = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let key = match &self.list {
                ListType::Atomic => return,
                ListType::Set => item.clone(),
                ListType::Map(keys) => Value::Object(
                    keys.iter()
                        .filter_map(|k| Some((k.to_string(), item.get(k.as_ref())?.clone())))
                        .collect(),
                ),
            };
            if !seen.insert(key.to_string()) {
                errors.push(FieldError::duplicate(format!("{path}[{at}]"), &key));
            }
        }
    }

    /// Whether a nested validation holds.
    fn holds(&self, value: &Value, path: &str) -> bool {
        let mut errors = Vec::new();
        self.validate(value, None, path, &mut errors);
        errors.is_empty()
    }
}

impl Checks {
    fn validate(&self, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
        let name = named(path);
        let mut invalid = |detail: String| errors.push(FieldError::invalid(path, value, detail));
        match value {
            Value::Number(number) => {
                if let Some(min) = &self.minimum {
                    let order = compare(number, &min.limit);
                    if order.is_lt() || (min.exclusive && order.is_eq()) {
                        let than = if min.exclusive {
                            "greater than"
                        } else {
                            "greater than or equal to"
                        };
                        invalid(format!("{name} in body should be {than} {}", min.limit));
                    }
                }
                if let Some(max) = &self.maximum {
                    let order = compare(number, &max.limit);
                    if order.is_gt() || (max.exclusive && order.is_eq()) {
                        let than = if max.exclusive {
                            "less than"
                        } else {
                            "less than or equal to"
                        };
                        invalid(format!("{name} in body should be {than} {}", max.limit));
                    }
                }
                if let Some(factor) = self.multiple_of
                    && !is_multiple(number, factor)
                {
                    invalid(format!("{name} in body should be a multiple of {factor}"));
                }
            }
            Value::String(text) => {
                let length = text.chars().count() as u64;
                if self.min_length.is_some_and(|min| length < min) {
                    invalid(format!(
                        "{name} in body should be at least {} chars long",
                        self.min_length.unwrap_or(0)
                    ));
                }
                if let Some((source, regex)) = &self.pattern
                    && !regex.is_match(text)
                {
                    invalid(format!("{name} in body should match '{source}'"));
                }
                if let Some(max) = self.max_length.filter(|max| length > *max) {
                    errors.push(FieldError::too_long(path, max));
                }
            }
            Value::Array(items) => {
                let length = items.len() as u64;
                if let Some(min) = self.min_items.filter(|min| length < *min) {
                    errors.push(FieldError::invalid(
                        path,
                        &length.into(),
                        format!("{name} in body should have at least {min} items"),
                    ));
                }
                if let Some(max) = self.max_items.filter(|max| length > *max) {
                    errors.push(FieldError::too_many(path, items.len(), max));
                }
            }
            Value::Object(map) => {
                let length = map.len() as u64;
                if let Some(min) = self.min_properties.filter(|min| length < *min) {
                    invalid(format!(
                        "{name} in body should have at least {min} properties"
                    ));
                }
                if let Some(max) = self.max_properties.filter(|max| length > *max) {
                    errors.push(FieldError::too_many(path, map.len(), max));
                }
                for field in &self.required {
                    if !map.contains_key(field.as_ref()) {
                        errors.push(FieldError::required(
                            crate::field_error::joined(path, field),
                            "",
                        ));
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        if let (Some(format), Value::String(text)) = (&self.format, value)
            && !format::is_valid(format, text)
        {
            errors.push(FieldError::type_invalid(
                path,
                value,
                format!("{name} in body must be of type {format}: {text:?}"),
            ));
        }
        if let Some(allowed) = &self.allowed
            && !allowed.contains(value)
        {
            let shown: Vec<String> = allowed
                .iter()
                .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
                .collect();
            errors.push(FieldError::not_supported(
                path,
                value,
                shown.iter().map(String::as_str),
            ));
        }
        self.junctors(value, path, errors);
    }

    fn junctors(&self, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
        let name = named(path);
        let mut fails = |detail: String| {
            errors.push(FieldError::invalid(
                "<nil>",
                &Value::from(""),
                format!("{name:?} {detail}"),
            ))
        };
        if !self.any_of.is_empty() && !self.any_of.iter().any(|n| n.holds(value, path)) {
            fails("must validate at least one schema (anyOf)".to_owned());
        }
        if !self.one_of.is_empty() {
            match self.one_of.iter().filter(|n| n.holds(value, path)).count() {
                1 => {}
                0 => fails(
                    "must validate one and only one schema (oneOf). Found none valid".to_owned(),
                ),
                n => fails(format!(
                    "must validate one and only one schema (oneOf). Found {n} valid alternatives"
                )),
            }
        }
        if self.not.as_ref().is_some_and(|n| n.holds(value, path)) {
            fails("must not validate the schema (not)".to_owned());
        }
        if !self.all_of.iter().all(|n| n.holds(value, path)) {
            for nested in &self.all_of {
                nested.validate(value, None, path, errors);
            }
            errors.push(FieldError::invalid(
                "<nil>",
                &Value::from(""),
                format!("{name:?} must validate all the schemas (allOf)"),
            ));
        }
    }
}

/// A path in a message; of the object itself Kubernetes leaves it empty.
fn named(path: &str) -> &str {
    path
}

/// The name of a value's type in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whole numbers count as integers however they are written.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
}

/// Exact between integers.
fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a
            .as_f64()
            .partial_cmp(&b.as_f64())
            .unwrap_or(Ordering::Equal),
    }
}

fn whole(n: &Number) -> Option<i128> {
    n.as_i64()
        .map(i128::from)
        .or_else(|| n.as_u64().map(i128::from))
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    let quotient = number.as_f64().unwrap_or(0.0) / factor;
    (quotient - quotient.round()).abs() < 1e-9
}
