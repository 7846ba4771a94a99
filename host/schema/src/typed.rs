//! Objects read through their schema: which fields they have, how two of them differ, merge, and lose fields.
//!
//! The rules are those of structured merge and diff: a leaf is a scalar, an atomic list or map, or an empty container;
//! everything else is told apart field by field and item by item.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use crate::{
    field_set::{Entry, FieldSet, field_step, key_step, value_step},
    schema::{Kind, ListType, Node, anything},
};

/// How the right object differs from the left. No field is in two of the sets.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

/// The differences at one place, on the way to a [`Comparison`].
#[derive(Default)]
struct Difference {
    added: Entry,
    modified: Entry,
    removed: Entry,
}

impl Node {
    /// The fields of `value`, as an apply of it owns them.
    pub(crate) fn field_set(&self, value: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        if !self.merges(value) {
            return set;
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let node = self.child(name);
                    let mut entry = node.own(value);
                    let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                    entry.member |= empty || self.property(name).is_none();
                    set.push(field_step(name), entry);
                }
            }
            Value::Array(items) => {
                let Some(steps) = self.item_steps(items) else {
                    return set;
                };
                for (step, item) in steps.into_iter().zip(items) {
                    let mut entry = self.item().own(item);
                    entry.member = true;
                    set.push(step, entry);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        set.sort();
        set
    }

    fn own(&self, value: &Value) -> Entry {
        if self.merges(value) && self.keyed(value) {
            Entry {
                member: false,
                children: self.field_set(value),
            }
        } else {
            Entry::leaf()
        }
    }

    /// How `right` differs from `left`.
    pub(crate) fn compare(&self, left: &Value, right: &Value) -> Comparison {
        let found = self.difference(Some(left), Some(right));
        Comparison {
            added: found.added.children,
            modified: found.modified.children,
            removed: found.removed.children,
        }
    }

    fn difference(&self, left: Option<&Value>, right: Option<&Value>) -> Difference {
        let mut found = Difference::default();
        let empty = |v: Option<&Value>| v.is_none_or(is_hollow);
        let apart =
            |v: Option<&Value>| v.is_none_or(|v| v.is_null() || self.merges(v) && self.keyed(v));
        let same_kind = match (left, right) {
            (Some(l), Some(r)) => l.is_null() || r.is_null() || l.is_object() == r.is_object(),
            _ => true,
        };
        if (empty(left) && empty(right)) || !apart(left) || !apart(right) || !same_kind {
            match (left, right) {
                (None, Some(_)) => found.added.member = true,
                (Some(_), None) => found.removed.member = true,
                (Some(l), Some(r)) if l != r => found.modified.member = true,
                _ => {}
            }
            return found;
        }
        if left.or(right).is_some_and(Value::is_array) || right.is_some_and(Value::is_array) {
            self.compare_items(left, right, &mut found);
        } else {
            self.compare_fields(left, right, &mut found);
        }
        found.added.member |= left.is_none();
        found.removed.member |= right.is_none();
        found.added.children.sort();
        found.modified.children.sort();
        found.removed.children.sort();
        found
    }

    fn compare_fields(&self, left: Option<&Value>, right: Option<&Value>, found: &mut Difference) {
        let left = left.and_then(Value::as_object);
        let right = right.and_then(Value::as_object);
        for (name, l) in left.into_iter().flatten() {
            let r = right.and_then(|m| m.get(name));
            found.push(self.child(name).difference(Some(l), r), || field_step(name));
        }
        for (name, r) in right.into_iter().flatten() {
            if left.is_none_or(|m| !m.contains_key(name)) {
                found.push(self.child(name).difference(None, Some(r)), || {
                    field_step(name)
                });
            }
        }
    }

    fn compare_items(&self, left: Option<&Value>, right: Option<&Value>, found: &mut Difference) {
        let mut pairs: BTreeMap<Box<str>, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (step, item) in self.indexed(left) {
            pairs.entry(step).or_default().0.push(item);
        }
        for (step, item) in self.indexed(right) {
            pairs.entry(step).or_default().1.push(item);
        }
        for (step, (ls, rs)) in pairs {
            // Items that occur twice are compared as one leaf: nobody can say which is which.
            let inner = match (ls.as_slice(), rs.as_slice()) {
                (l @ ([] | [_]), r @ ([] | [_])) => self
                    .item()
                    .difference(l.first().copied(), r.first().copied()),
                (l @ ([] | [_]), _) => {
                    let mut inner = l
                        .first()
                        .map(|l| self.item().difference(Some(l), None))
                        .unwrap_or_default();
                    inner.removed.member = false;
                    inner.added.member = true;
                    inner
                }
                (_, r @ ([] | [_])) => {
                    let mut inner = r
                        .first()
                        .map(|r| self.item().difference(None, Some(r)))
                        .unwrap_or_default();
                    inner.added.member = false;
                    inner.removed.member = true;
                    inner
                }
                (l, r) if l != r => Difference {
                    modified: Entry::leaf(),
                    ..Difference::default()
                },
                _ => continue,
            };
            found.push(inner, || step.clone());
        }
    }

    fn indexed<'a>(&self, list: Option<&'a Value>) -> Vec<(Box<str>, &'a Value)> {
        let items = list
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        self.item_steps(items)
            .unwrap_or_default()
            .into_iter()
            .zip(items)
            .collect()
    }

    /// `config` laid over `live`: every field of `config` wins; items keep the order of `live` where `config` allows it.
    pub(crate) fn merge(&self, live: Value, config: Value) -> Value {
        if config.is_null() && self.merges(&live) && !is_hollow(&live) {
            return live;
        }
        let apart = |v: &Value| self.merges(v) && self.keyed(v);
        if !apart(&live) || !apart(&config) || (is_hollow(&live) && is_hollow(&config)) {
            return config;
        }
        match (live, config) {
            (Value::Object(mut live), Value::Object(config)) => {
                for (name, value) in config {
                    let merged = match live.remove(&name) {
                        Some(before) => self.child(&name).merge(before, value),
                        None => value,
                    };
                    live.insert(name, merged);
                }
                Value::Object(live)
            }
            (Value::Array(live), Value::Array(config)) => self.merge_items(live, config),
            (_, config) => config,
        }
    }

    fn merge_items(&self, live: Vec<Value>, config: Vec<Value>) -> Value {
        let (Some(left), Some(right)) = (self.item_steps(&live), self.item_steps(&config)) else {
            return Value::Array(config);
        };
        let in_right: HashSet<&str> = right.iter().map(AsRef::as_ref).collect();
        // Shared items wait here for their turn; what occurs twice in `live` is not merged.
        let mut shared: HashMap<&str, Option<Value>> = HashMap::new();
        let mut own: VecDeque<(&str, Option<Value>)> = VecDeque::with_capacity(live.len());
        for (step, item) in left.iter().zip(live) {
            if !in_right.contains(step.as_ref()) {
                own.push_back((step, Some(item)));
                continue;
            }
            own.push_back((step, None));
            shared
                .entry(step)
                .and_modify(|twice| *twice = None)
                .or_insert(Some(item));
        }
        let mut turns: VecDeque<&str> = right
            .iter()
            .map(AsRef::as_ref)
            .filter(|s| shared.contains_key(s))
            .collect();
        let mut out = Vec::with_capacity(own.len().max(config.len()));
        let mut theirs = right.iter().zip(config).peekable();
        let mut done: HashSet<&str> = HashSet::new();
        loop {
            // First what `live` has in front of the next item: its own items; shared ones go to the place `config` gives them.
            while let Some((step, mine)) = own.front_mut() {
                if let Some(item) = mine.take() {
                    out.push(item);
                } else if !done.contains(step)
                    && turns.front().is_none_or(|turn| turn == step)
                    && theirs.peek().is_some()
                {
                    break;
                }
                own.pop_front();
            }
            let Some((step, item)) = theirs.next() else {
                break;
            };
            let before = shared.remove(step.as_ref()).flatten();
            out.push(match before {
                Some(before) => self.item().merge(before, item),
                None => item,
            });
            done.insert(step);
            if turns.front().is_some_and(|turn| *turn == step.as_ref()) {
                turns.pop_front();
            }
        }
        Value::Array(out)
    }

    /// `value` without the fields in `set`; nothing if nothing is left. What becomes empty goes as well, unless it is in `keep`.
    pub(crate) fn without(
        &self,
        value: Value,
        set: &FieldSet,
        keep: Option<&Entry>,
    ) -> Option<Value> {
        if set.is_empty() {
            return Some(value);
        }
        if !self.merges(&value) {
            // An atomic container goes as a whole.
            return if value.is_object() || value.is_array() {
                None
            } else {
                Some(value)
            };
        }
        let stays = keep.is_some_and(|k| k.member) || is_hollow(&value);
        match value {
            Value::Object(map) => {
                let mut left = Map::new();
                for (name, value) in map {
                    let kept = match set.get_field(&name) {
                        Some(entry) if entry.member => None,
                        Some(entry) => {
                            let keep = keep.and_then(|k| k.children.get_field(&name));
                            self.child(&name).without(value, &entry.children, keep)
                        }
                        None => Some(value),
                    };
                    if let Some(value) = kept {
                        left.insert(name, value);
                    }
                }
                (stays || !left.is_empty()).then_some(Value::Object(left))
            }
            Value::Array(items) => {
                let Some(steps) = self.item_steps(&items) else {
                    return Some(Value::Array(items));
                };
                let mut left = Vec::with_capacity(items.len());
                for (step, item) in steps.into_iter().zip(items) {
                    match set.get(&step) {
                        Some(entry) if entry.member => {}
                        Some(entry) => {
                            let keep = keep.and_then(|k| k.children.get(&step));
                            left.extend(self.item().without(item, &entry.children, keep));
                        }
                        None => left.push(item),
                    }
                }
                (stays || !left.is_empty()).then_some(Value::Array(left))
            }
            scalar => Some(scalar),
        }
    }

    /// `set` and the declared fields on the way to what is in it.
    pub(crate) fn with_named_parents(&self, set: &FieldSet) -> FieldSet {
        let mut out = FieldSet::default();
        for (step, entry) in set.entries() {
            let name = step.strip_prefix("f:");
            let declared = name.and_then(|n| self.property(n));
            let below = match name {
                Some(name) => self.child(name),
                None => self.item(),
            };
            out.push(
                step.into(),
                Entry {
                    member: entry.member || (declared.is_some() && !entry.children.is_empty()),
                    children: below.with_named_parents(&entry.children),
                },
            );
        }
        out
    }

    /// Checks that `config` can be applied: known fields, right types, list items that can be told apart.
    pub(crate) fn check_config(&self, config: &Value, path: &str) -> Result<(), String> {
        if config.is_null() || self.kind == Kind::Any {
            return Ok(());
        }
        let expected = match (self.kind, config) {
            (Kind::Object, Value::Object(map)) => {
                for (name, value) in map {
                    let inner = format!("{path}.{name}");
                    match self.field(name) {
                        Some(node) => node.check_config(value, &inner)?,
                        None if self.preserve_unknown => {}
                        None => return Err(format!("{inner}: field not declared in schema")),
                    }
                }
                return Ok(());
            }
            (Kind::Array, Value::Array(items)) => return self.check_items(items, path),
            (Kind::Object, _) => "map",
            (Kind::Array, _) => "list",
            (Kind::String, v) if !v.is_string() => "string",
            (Kind::Boolean, v) if !v.is_boolean() => "boolean",
            (Kind::Integer | Kind::Number, v) if !v.is_number() => "numeric (int or float)",
            (
                Kind::IntOrString | Kind::Quantity,
                Value::Object(_) | Value::Array(_) | Value::Bool(_),
            ) => "int or string",
            _ => return Ok(()),
        };
        Err(format!(
            "{path}: expected {expected}, got {}",
            shown_value(expected, config)
        ))
    }

    fn check_items(&self, items: &[Value], path: &str) -> Result<(), String> {
        let mut seen = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let unkeyed = matches!(self.list, ListType::Map(_))
                && item.is_object()
                && self.item_step(item).is_err();
            let inner = if self.list == ListType::Atomic || unkeyed {
                // An item without any key is the rules' to refuse: each key is required, or has a default.
                format!("{path}[{at}]")
            } else {
                let step = self
                    .item_step(item)
                    .map_err(|e| format!("{path}: element {at}: {e}"))?;
                let inner = format!("{path}{}", crate::field_set::shown(&step));
                if !seen.insert(step) {
                    return Err(format!(
                        "{path}: duplicate entries for key {}",
                        inner.get(path.len()..).unwrap_or_default()
                    ));
                }
                inner
            };
            self.item().check_config(item, &inner)?;
        }
        Ok(())
    }

    /// What stands under a name; of an unknown field nothing is known.
    pub(crate) fn child(&self, name: &str) -> &Node {
        self.field(name).unwrap_or_else(|| anything())
    }

    /// What an item is.
    pub(crate) fn item(&self) -> &Node {
        self.items.as_deref().unwrap_or_else(|| anything())
    }

    /// Whether the items of a list can be told apart; what is no list counts as such.
    fn keyed(&self, value: &Value) -> bool {
        value
            .as_array()
            .is_none_or(|items| items.iter().all(|item| self.can_key(item)))
    }

    fn can_key(&self, item: &Value) -> bool {
        match &self.list {
            ListType::Atomic => false,
            ListType::Set => !(item.is_object() || item.is_array() || item.is_null()),
            ListType::Map(keys) => {
                item.is_object()
                    && keys
                        .iter()
                        .any(|k| item.get(k.as_ref()).is_some() || self.key_default(k).is_some())
            }
        }
    }

    /// The steps of all items, or nothing if one of them has none.
    fn item_steps(&self, items: &[Value]) -> Option<Vec<Box<str>>> {
        items.iter().map(|item| self.item_step(item).ok()).collect()
    }

    fn item_step(&self, item: &Value) -> Result<Box<str>, String> {
        match &self.list {
            ListType::Atomic => Err("the list is atomic".to_owned()),
            ListType::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => Err(
                    "associative list without keys has an element that's an explicit null"
                        .to_owned(),
                ),
                scalar => Ok(value_step(scalar)),
            },
            ListType::Map(names) => {
                let Value::Object(map) = item else {
                    return Err(
                        "associative list with keys may not have non-map elements".to_owned()
                    );
                };
                let keys: Vec<(&str, &Value)> = names
                    .iter()
                    .filter_map(|name| {
                        Some((
                            name.as_ref(),
                            map.get(name.as_ref()).or_else(|| self.key_default(name))?,
                        ))
                    })
                    .collect();
                if keys.is_empty() {
                    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
                    return Err(format!(
                        "associative list with keys has an element that omits all key fields {names:?} (and doesn't have default values for any key fields)"
                    ));
                }
                Ok(key_step(keys))
            }
        }
    }

    fn key_default(&self, key: &str) -> Option<&Value> {
        self.items.as_ref()?.property(key)?.default.as_deref()
    }
}

/// A value of a wrong type, as a server of the Go language shows it.
fn shown_value(expected: &str, value: &Value) -> String {
    match value {
        Value::String(_) if expected.starts_with("numeric") => "string".to_owned(),
        Value::Bool(_) if expected.starts_with("numeric") => "boolean".to_owned(),
        Value::Object(_) | Value::Array(_) if expected.starts_with("numeric") => "map".to_owned(),
        Value::Object(_) if matches!(expected, "list" | "map") => {
            format!("&{{{}}}", crate::field_error::in_go(value))
        }
        scalar => format!(
            "&value.valueUnstructured{{Value:{}}}",
            crate::field_error::in_go_syntax(scalar)
        ),
    }
}

impl Difference {
    fn push(&mut self, inner: Difference, step: impl Fn() -> Box<str>) {
        for (whole, part) in [
            (&mut self.added, inner.added),
            (&mut self.modified, inner.modified),
            (&mut self.removed, inner.removed),
        ] {
            if !part.is_empty() {
                whole.children.push(step(), part);
            }
        }
    }
}

/// Null, or a container with nothing in it.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
