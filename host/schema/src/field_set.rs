//! Sets of fields of an object: what a field manager owns.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use thiserror::Error;

/// A set of fields, in the form of `FieldsV1`.
///
/// Each step of a path is kept as Kubernetes writes it: `f:name` for a field, `k:{"name":"x"}` for the item of a list with
/// keys, `v:"x"` for the item of a set, `i:0` for a place in a list. Steps are sorted, and there are no empty branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: Vec<(Box<str>, Entry)>,
}

/// A step: whether the field itself is in the set, and what below it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub member: bool,
    pub children: FieldSet,
}

/// Why a value is no `FieldsV1`.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FieldSetError {
    /// A step has no known prefix, or its JSON is malformed.
    #[error("unknown step {0:?} in fieldsV1; steps start with f:, k:, v: or i:")]
    Step(String),
    /// What stands below a step is no object.
    #[error("the value of {0:?} in fieldsV1 is no object")]
    NoObject(String),
}

impl Entry {
    /// The field itself, nothing below.
    pub(crate) fn leaf() -> Entry {
        Entry {
            member: true,
            children: FieldSet::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// Reads a `FieldsV1`.
    ///
    /// # Errors
    /// [`FieldSetError`] names the step.
    pub fn from_value(fields: &Value) -> Result<FieldSet, FieldSetError> {
        let Value::Object(map) = fields else {
            return Err(FieldSetError::NoObject(String::new()));
        };
        let mut set = FieldSet {
            entries: Vec::with_capacity(map.len()),
        };
        for (step, below) in map {
            if step == "." {
                continue;
            }
            let Value::Object(inner) = below else {
                return Err(FieldSetError::NoObject(step.clone()));
            };
            let entry = if inner.is_empty() {
                Entry::leaf()
            } else {
                Entry {
                    member: inner.contains_key("."),
                    children: FieldSet::from_value(below)?,
                }
            };
            set.push(canonical(step)?, entry);
        }
        set.sort();
        Ok(set)
    }

    /// Writes a `FieldsV1`.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        self.write(&mut map);
        Value::Object(map)
    }

    fn write(&self, map: &mut Map<String, Value>) {
        for (step, entry) in &self.entries {
            let mut below = Map::new();
            if entry.member && !entry.children.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            entry.children.write(&mut below);
            map.insert(step.to_string(), Value::Object(below));
        }
    }

    /// Whether it has no field.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a field by the names on its way.
    pub fn insert(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let step = format!("f:{first}");
        let at = match self
            .entries
            .binary_search_by(|(s, _)| s.as_ref().cmp(&step))
        {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (step.into(), Entry::default()));
                at
            }
        };
        if let Some((_, entry)) = self.entries.get_mut(at) {
            if rest.is_empty() {
                entry.member = true;
            } else {
                entry.children.insert(rest);
            }
        }
    }

    /// The set without one field of the object and all below.
    pub(crate) fn without_field(mut self, name: &str) -> FieldSet {
        self.entries
            .retain(|(step, _)| compare_field(step, name).is_ne());
        self
    }

    /// Appends a step; [`FieldSet::sort`] must follow. Empty entries are left out.
    pub(crate) fn push(&mut self, step: Box<str>, entry: Entry) {
        if !entry.is_empty() {
            self.entries.push((step, entry));
        }
    }

    /// Restores the order after pushes; a step that was pushed twice is merged.
    pub(crate) fn sort(&mut self) {
        if self.entries.is_sorted_by(|a, b| a.0 < b.0) {
            return;
        }
        self.entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut merged: Vec<(Box<str>, Entry)> = Vec::with_capacity(self.entries.len());
        for (step, entry) in self.entries.drain(..) {
            match merged.last_mut() {
                Some((last, kept)) if *last == step => {
                    kept.member |= entry.member;
                    kept.children = kept.children.union(&entry.children);
                }
                _ => merged.push((step, entry)),
            }
        }
        self.entries = merged;
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries
            .iter()
            .map(|(step, entry)| (step.as_ref(), entry))
    }

    /// The entry of a step.
    pub(crate) fn get(&self, step: &str) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|(s, _)| s.as_ref().cmp(step))
            .ok()?;
        self.entries.get(at).map(|(_, e)| e)
    }

    /// The entry of a field.
    pub(crate) fn get_field(&self, name: &str) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|(s, _)| compare_field(s, name))
            .ok()?;
        self.entries.get(at).map(|(_, e)| e)
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        if self.is_empty() {
            return other.clone();
        }
        self.zip(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => Entry {
                member: a.member || b.member,
                children: a.children.union(&b.children),
            },
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => Entry::default(),
        })
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.zip(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => Entry {
                member: a.member && b.member,
                children: a.children.intersection(&b.children),
            },
            _ => Entry::default(),
        })
    }

    /// What is in this one but not in `other`. A field does not stand for what is below it.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.zip(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => Entry {
                member: a.member && !b.member,
                children: a.children.difference(&b.children),
            },
            (Some(a), None) => a.clone(),
            (None, _) => Entry::default(),
        })
    }

    /// Whether every field of this one is in `other`.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        self.entries.iter().all(|(step, a)| {
            other
                .get(step)
                .is_some_and(|b| (!a.member || b.member) && a.children.is_subset(&b.children))
        })
    }

    fn zip(
        &self,
        other: &FieldSet,
        join: impl Fn(Option<&Entry>, Option<&Entry>) -> Entry,
    ) -> FieldSet {
        let mut out = FieldSet::default();
        let (mut left, mut right) = (
            self.entries.iter().peekable(),
            other.entries.iter().peekable(),
        );
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return out,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let a = if order.is_le() { left.next() } else { None };
            let b = if order.is_ge() { right.next() } else { None };
            if let Some((step, _)) = a.or(b) {
                out.push(step.clone(), join(a.map(|(_, e)| e), b.map(|(_, e)| e)));
            }
        }
    }

    /// The fields as Kubernetes writes paths, `.spec.containers[name="x"].image`, parents first.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.collect_paths("", &mut out);
        out
    }

    fn collect_paths(&self, prefix: &str, out: &mut Vec<String>) {
        for (step, entry) in &self.entries {
            let path = format!("{prefix}{}", shown(step));
            if entry.member {
                out.push(path.clone());
            }
            entry.children.collect_paths(&path, out);
        }
    }

    /// `object` without these fields, and without what becomes empty by that. Needs no schema.
    ///
    /// Takes time in proportion to the object and the set.
    #[must_use]
    pub fn remove_from(&self, object: &Value) -> Value {
        self.strip(object)
            .unwrap_or_else(|| Value::Object(Map::new()))
    }

    /// Nothing if nothing is left.
    fn strip(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Object(map) => {
                let mut left = Map::new();
                for (name, value) in map {
                    let kept = match self.get_field(name) {
                        None => Some(value.clone()),
                        Some(entry) => entry.strip(value),
                    };
                    if let Some(value) = kept {
                        left.insert(name.clone(), value);
                    }
                }
                (!left.is_empty() || map.is_empty()).then_some(Value::Object(left))
            }
            Value::Array(items) => {
                let steps: Vec<(ItemStep, &Entry)> = self
                    .entries
                    .iter()
                    .filter_map(|(step, entry)| Some((ItemStep::read(step)?, entry)))
                    .collect();
                let mut left = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    match steps
                        .iter()
                        .find(|(step, entry)| step.matches(at, item, entry))
                    {
                        None => left.push(item.clone()),
                        Some((_, entry)) => left.extend(entry.strip(item)),
                    }
                }
                (!left.is_empty() || items.is_empty()).then_some(Value::Array(left))
            }
            scalar => Some(scalar.clone()),
        }
    }
}

impl Entry {
    fn strip(&self, value: &Value) -> Option<Value> {
        if self.children.is_empty() {
            None
        } else {
            self.children.strip(value)
        }
    }
}

/// A step into a list, parsed once for all its items.
enum ItemStep {
    Keys(Map<String, Value>),
    Value(Value),
    Index(usize),
}

impl ItemStep {
    fn read(step: &str) -> Option<ItemStep> {
        if let Some(keys) = step.strip_prefix("k:") {
            serde_json::from_str(keys).ok().map(ItemStep::Keys)
        } else if let Some(value) = step.strip_prefix("v:") {
            serde_json::from_str(value).ok().map(ItemStep::Value)
        } else {
            step.strip_prefix("i:")?.parse().ok().map(ItemStep::Index)
        }
    }

    /// A key that the item lacks stands for its default; then nobody owns that key.
    fn matches(&self, at: usize, item: &Value, entry: &Entry) -> bool {
        match self {
            ItemStep::Keys(keys) => {
                let mut found = false;
                keys.iter().all(|(name, want)| match item.get(name) {
                    Some(have) => {
                        found = true;
                        have == want
                    }
                    None => entry.children.get_field(name).is_none(),
                }) && found
            }
            ItemStep::Value(value) => item == value,
            ItemStep::Index(index) => at == *index,
        }
    }
}

/// Orders a step against `f:` and a name, without building the string.
fn compare_field(step: &str, name: &str) -> Ordering {
    match step.get(..2) {
        Some("f:") => step.get(2..).unwrap_or_default().cmp(name),
        Some(other) => other.cmp("f:"),
        None => step.cmp("f:"),
    }
}

/// A step with its JSON in one form, so that equal steps are equal strings.
fn canonical(step: &str) -> Result<Box<str>, FieldSetError> {
    let wrong = || FieldSetError::Step(step.to_owned());
    if step.starts_with("f:") {
        return Ok(step.into());
    }
    if let Some(keys) = step.strip_prefix("k:") {
        let Ok(Value::Object(keys)) = serde_json::from_str(keys) else {
            return Err(wrong());
        };
        return Ok(key_step(
            keys.iter().map(|(k, v)| (k.as_str(), v)).collect(),
        ));
    }
    if let Some(value) = step.strip_prefix("v:") {
        let value: Value = serde_json::from_str(value).map_err(|_| wrong())?;
        return Ok(value_step(&value));
    }
    match step
        .strip_prefix("i:")
        .and_then(|i| i.parse::<usize>().ok())
    {
        Some(i) => Ok(format!("i:{i}").into()),
        None => Err(wrong()),
    }
}

/// The step of a field.
pub(crate) fn field_step(name: &str) -> Box<str> {
    let mut step = String::with_capacity(name.len() + 2);
    step.push_str("f:");
    step.push_str(name);
    step.into()
}

/// The step of an item of a list with keys.
pub(crate) fn key_step(mut keys: Vec<(&str, &Value)>) -> Box<str> {
    keys.sort_by(|a, b| a.0.cmp(b.0));
    let mut step = String::from("k:{");
    for (at, (name, value)) in keys.iter().enumerate() {
        if at > 0 {
            step.push(',');
        }
        write_string(&mut step, name);
        step.push(':');
        match value {
            Value::String(text) => write_string(&mut step, text),
            other => step.push_str(&other.to_string()),
        }
    }
    step.push('}');
    step.into()
}

/// The step of an item of a set.
pub(crate) fn value_step(value: &Value) -> Box<str> {
    format!("v:{value}").into()
}

/// A JSON string; the common case needs no escapes.
fn write_string(out: &mut String, text: &str) {
    if text.bytes().any(|b| b < 0x20 || b == b'"' || b == b'\\') {
        out.push_str(&Value::String(text.to_owned()).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// A step as Kubernetes writes it in a path.
pub(crate) fn shown(step: &str) -> String {
    if let Some(name) = step.strip_prefix("f:") {
        return format!(".{name}");
    }
    if let Some(keys) = step.strip_prefix("k:") {
        let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
        let mut parts: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
        parts.sort();
        return format!("[{}]", parts.join(","));
    }
    if let Some(value) = step.strip_prefix("v:") {
        return format!("[={value}]");
    }
    format!("[{}]", step.strip_prefix("i:").unwrap_or(step))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn set(value: Value) -> FieldSet {
        FieldSet::from_value(&value).unwrap()
    }

    #[test]
    fn reads_and_writes_fields_v1() {
        let value = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}, "v:\"a/b\"": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}
        });
        let fields = set(value.clone());
        assert_eq!(fields.to_value(), value);
        expect![[r#"
            [
                ".metadata.finalizers",
                ".metadata.finalizers[=\"a/b\"]",
                ".metadata.labels",
                ".metadata.labels.app",
                ".spec.ports[port=80,protocol=\"TCP\"]",
                ".spec.ports[port=80,protocol=\"TCP\"].port",
            ]
        "#]]
        .assert_debug_eq(&fields.paths());
    }

    #[test]
    fn keys_in_another_order_are_the_same_step() {
        assert_eq!(
            set(json!({"k:{ \"b\":1, \"a\":\"x\"}": {}})),
            set(json!({"k:{\"a\":\"x\",\"b\":1}": {}}))
        );
    }

    #[test]
    fn malformed_steps_are_refused() {
        for wrong in [
            json!({"x": {}}),
            json!({"k:[]": {}}),
            json!({"v:{": {}}),
            json!({"i:-1": {}}),
            json!({"f:a": 1}),
            json!(1),
        ] {
            assert!(FieldSet::from_value(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn set_operations() {
        let a = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
        let b = set(json!({"f:a": {"f:x": {}, "f:y": {}}}));
        assert_eq!(
            a.union(&b),
            set(json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}}))
        );
        assert_eq!(a.intersection(&b), set(json!({"f:a": {"f:x": {}}})));
        assert_eq!(a.difference(&b), set(json!({"f:a": {}, "f:b": {}})));
        assert!(a.intersection(&b).is_subset(&a) && !a.is_subset(&b));
    }

    #[test]
    fn removes_what_it_names() {
        let object = json!({
            "metadata": {"labels": {"mine": "1", "yours": "2"}, "annotations": {"mine": "1"}},
            "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
            "ports": [{"port": 80}, {"port": 81}], "set": ["a", "b"]
        });
        let fields = set(json!({
            "f:metadata": {"f:labels": {"f:mine": {}}, "f:annotations": {".": {}, "f:mine": {}}},
            "f:status": {"f:conditions": {"k:{\"type\":\"A\"}": {".": {}, "f:type": {}, "f:status": {}}}},
            "f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            "f:set": {"v:\"a\"": {}}
        }));
        assert_eq!(
            fields.remove_from(&object),
            json!({
                "metadata": {"labels": {"yours": "2"}},
                "status": {"conditions": [{"type": "B", "status": "True"}]},
                "ports": [{"port": 80}], "set": ["b"]
            })
        );
    }
}
