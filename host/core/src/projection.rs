//! Which parts of an object are kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// JSONPaths of the parts that are kept. Empty keeps everything.
///
/// A path is a subset of JSONPath: `.a.b`, `['a.b']`, `[0]`, `[*]`, with or without a leading `$`. Whatever lies
/// under a path is kept with it. `apiVersion`, `kind` and of the metadata the name, namespace, uid, resourceVersion
/// and deletionTimestamp are always kept; managedFields never are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection {
    paths: Vec<Vec<Segment>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Field(String),
    Index(usize),
    Every,
}

/// A path that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is no path of the form .a.b, ['a.b'], [0] or [*] (at character {at})")]
pub struct PathError {
    /// The path.
    pub path: String,
    /// Where reading stopped, counted from 0.
    pub at: usize,
}

const ALWAYS: [&[&str]; 7] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "deletionTimestamp"],
];

impl Projection {
    /// Reads the paths.
    ///
    /// # Errors
    /// At the first path that cannot be read.
    pub fn parse<S: AsRef<str>>(paths: &[S]) -> Result<Self, PathError> {
        let mut parsed = paths
            .iter()
            .map(|path| parse(path.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        if !parsed.is_empty() {
            let fixed = ALWAYS.iter().map(|path| {
                path.iter()
                    .map(|field| Segment::Field((*field).to_owned()))
                    .collect()
            });
            parsed.extend(fixed);
        }
        Ok(Self { paths: parsed })
    }

    /// The first value that an object has at the paths that were given. `None`: it has none there.
    #[must_use]
    pub fn first<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let named = self.paths.len().saturating_sub(ALWAYS.len());
        let mut paths = self.paths.iter().take(named);
        paths.find_map(|path| first(path, object))
    }

    /// Gives `to` the values that `from` has at the paths. Where `from` has nothing, nothing stays in `to`. Items of lists are told by their
    /// place. What every projection keeps is not copied.
    pub fn copy(&self, from: &Value, to: &mut Value) {
        let named = self.paths.len().saturating_sub(ALWAYS.len());
        for path in self.paths.iter().take(named) {
            copy(path, from, to);
        }
    }

    /// Whether everything is kept.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.paths.is_empty()
    }

    /// Drops from the object what is not kept.
    pub fn apply(&self, object: &mut Value) {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let Value::Object(fields) = object else {
            return;
        };
        for (name, value) in std::mem::take(fields) {
            if let Some(Ok(kept)) = self.field(&name).map(|kept| kept.deserialize(value)) {
                fields.insert(name, kept);
            }
        }
    }

    /// Reads what is kept of this field of an object; `None` when nothing is.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Kept<'_>> {
        if self.keeps_all() {
            return Some(Kept(vec![&[]]));
        }
        let below = Kept::below(self.paths.iter().map(Vec::as_slice), name);
        (!below.is_empty()).then_some(Kept(below))
    }
}

fn first<'v>(path: &[Segment], value: &'v Value) -> Option<&'v Value> {
    let Some((segment, rest)) = path.split_first() else {
        return Some(value);
    };
    match (segment, value) {
        (Segment::Field(name), Value::Object(fields)) => first(rest, fields.get(name)?),
        (Segment::Index(index), Value::Array(items)) => first(rest, items.get(*index)?),
        (Segment::Every, Value::Object(fields)) => {
            fields.values().find_map(|value| first(rest, value))
        }
        (Segment::Every, Value::Array(items)) => items.iter().find_map(|item| first(rest, item)),
        _ => None,
    }
}

/// Gives `to` what `from` has at this path.
fn copy(path: &[Segment], from: &Value, to: &mut Value) {
    let Some((segment, rest)) = path.split_first() else {
        to.clone_from(from);
        return;
    };
    match (segment, from, to) {
        (Segment::Field(name), Value::Object(from), Value::Object(to)) => {
            copy_field(name, rest, from, to);
        }
        (Segment::Every, Value::Object(from), Value::Object(to)) => {
            let names: Vec<String> = from.keys().chain(to.keys()).cloned().collect();
            for name in names {
                copy_field(&name, rest, from, to);
            }
        }
        (Segment::Index(index), Value::Array(from), Value::Array(to)) => {
            if let (Some(from), Some(to)) = (from.get(*index), to.get_mut(*index)) {
                copy(rest, from, to);
            }
        }
        (Segment::Every, Value::Array(from), Value::Array(to)) => {
            for (from, to) in from.iter().zip(to) {
                copy(rest, from, to);
            }
        }
        _ => {}
    }
}

fn copy_field(
    name: &str,
    rest: &[Segment],
    from: &Map<String, Value>,
    to: &mut Map<String, Value>,
) {
    match (from.get(name), rest.is_empty()) {
        (Some(from), true) => drop(to.insert(name.to_owned(), from.clone())),
        (None, true) => drop(to.remove(name)),
        (Some(from), false) => {
            let is_list = matches!(from, Value::Array(_));
            if !is_list || to.contains_key(name) {
                let to = to.entry(name).or_insert_with(|| Value::Object(Map::new()));
                copy(rest, from, to);
            }
        }
        (None, false) => {
            if let Some(to) = to.get_mut(name) {
                copy(rest, &Value::Object(Map::new()), to);
            }
        }
    }
}

/// Reads of a value only what lies on one of some paths. Items of a list keep their place; one that no path names
/// becomes `null`.
#[derive(Debug)]
pub struct Kept<'p>(Vec<&'p [Segment]>);

impl<'p> Kept<'p> {
    fn below(paths: impl Iterator<Item = &'p [Segment]>, name: &str) -> Vec<&'p [Segment]> {
        paths
            .filter_map(|path| match path.split_first() {
                Some((Segment::Field(field), rest)) if field == name => Some(rest),
                Some((Segment::Every, rest)) => Some(rest),
                _ => None,
            })
            .collect()
    }

    fn at(&self, index: usize) -> Vec<&'p [Segment]> {
        self.0
            .iter()
            .filter_map(|path| match path.split_first() {
                Some((Segment::Index(at), rest)) if *at == index => Some(rest),
                Some((Segment::Every, rest)) => Some(rest),
                _ => None,
            })
            .collect()
    }
}

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0.iter().any(|path| path.is_empty()) {
            Value::deserialize(deserializer)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(field) = map.next_key_seed(Name(&self))? {
            match field {
                Some((name, kept)) => {
                    fields.insert(name, map.next_value_seed(kept)?);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let below = self.at(items.len());
            let item = if below.is_empty() {
                seq.next_element::<IgnoredAny>()?.map(|_| Value::Null)
            } else {
                seq.next_element_seed(Kept(below))?
            };
            match item {
                Some(item) => items.push(item),
                None => break,
            }
        }
        while items.last().is_some_and(Value::is_null) {
            items.pop();
        }
        Ok(items.into())
    }

    // Nothing lies under the others.

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Reads the name of a field, and what is kept of the field; `None` when nothing is.
struct Name<'a, 'p>(&'a Kept<'p>);

impl<'de, 'p> DeserializeSeed<'de> for Name<'_, 'p> {
    type Value = Option<(String, Kept<'p>)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'p> Visitor<'_> for Name<'_, 'p> {
    type Value = Option<(String, Kept<'p>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let below = Kept::below(self.0.0.iter().copied(), name);
        Ok((!below.is_empty()).then(|| (name.to_owned(), Kept(below))))
    }
}

fn parse(path: &str) -> Result<Vec<Segment>, PathError> {
    let error = |rest: &str| PathError {
        path: path.to_owned(),
        at: path.chars().count() - rest.chars().count(),
    };
    let trimmed = path
        .strip_prefix('{')
        .and_then(|p| p.strip_suffix('}'))
        .unwrap_or(path);
    let mut rest = trimmed.strip_prefix('$').unwrap_or(trimmed);
    let mut segments = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            if name.is_empty() {
                return Err(error(rest));
            }
            segments.push(if name == "*" {
                Segment::Every
            } else {
                Segment::Field(name.to_owned())
            });
            rest = tail;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, tail) = bracket(after).ok_or_else(|| error(rest))?;
            segments.push(inside);
            rest = tail;
        } else {
            return Err(error(rest));
        }
    }
    if segments.is_empty() {
        Err(error(rest))
    } else {
        Ok(segments)
    }
}

fn bracket(after: &str) -> Option<(Segment, &str)> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = after.strip_prefix(quote) {
            let (name, tail) = quoted.split_once(quote)?;
            return Some((Segment::Field(name.to_owned()), tail.strip_prefix(']')?));
        }
    }
    let (inside, tail) = after.split_once(']')?;
    if inside == "*" {
        return Some((Segment::Every, tail));
    }
    Some((Segment::Index(inside.parse().ok()?), tail))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(paths: &[&str], expected: Expect) {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "uid": "u", "managedFields": [1], "labels": {"x": "1"}, "annotations": {"a.b/c": "2", "d": "3"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]},
        });
        let text = match Projection::parse(paths) {
            Ok(projection) => {
                let spec = object["spec"].to_string();
                let mut spec = serde_json::Deserializer::from_str(&spec);
                let of_text = projection
                    .field("spec")
                    .map(|kept| kept.deserialize(&mut spec).unwrap());
                projection.apply(&mut object);
                assert_eq!(of_text.as_ref(), object.get("spec"));
                object.to_string()
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn values_at_paths_are_copied() {
        let copied = |paths: &[&str], from: serde_json::Value, mut to: serde_json::Value| {
            Projection::parse(paths).unwrap().copy(&from, &mut to);
            to.to_string()
        };
        let from = json!({"kind": "x", "spec": {"replicas": 5, "list": [{"image": "new"}], "labels": {"a": "1"}}});
        let to = json!({"spec": {"replicas": 1, "list": [{"image": "old"}, {"image": "old"}], "labels": {"b": "2"}}});
        let text = [
            copied(&[".spec.replicas"], from.clone(), to.clone()),
            copied(&[".spec.list[*].image"], from.clone(), to.clone()),
            copied(
                &[".spec.labels[*]", ".spec.list[7]"],
                from.clone(),
                to.clone(),
            ),
            copied(&[".spec.labels.b", ".spec.none.deep"], from.clone(), to),
            copied(&[".spec.replicas", ".spec.list[0].image"], from, json!({})),
        ];
        expect![[r#"
            {"spec":{"labels":{"b":"2"},"list":[{"image":"old"},{"image":"old"}],"replicas":5}}
            {"spec":{"labels":{"b":"2"},"list":[{"image":"new"},{"image":"old"}],"replicas":1}}
            {"spec":{"labels":{"a":"1"},"list":[{"image":"old"},{"image":"old"}],"replicas":1}}
            {"spec":{"labels":{},"list":[{"image":"old"},{"image":"old"}],"replicas":1}}
            {"spec":{"replicas":5}}
        "#]]
        .assert_eq(&(text.join("\n") + "\n"));
    }

    #[test]
    fn no_paths_keep_all_but_managed_fields() {
        check(
            &[],
            expect![[
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a.b/c":"2","d":"3"},"labels":{"x":"1"},"name":"a","uid":"u"},"spec":{"containers":[{"image":"i","name":"c"},{"image":"j","name":"d"}],"nodeName":"n"}}"#
            ]],
        );
    }

    #[test]
    fn paths_keep_what_lies_under_them() {
        check(
            &[
                ".spec.containers[*].image",
                "$.metadata.annotations['a.b/c']",
            ],
            expect![[
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a.b/c":"2"},"name":"a","uid":"u"},"spec":{"containers":[{"image":"i"},{"image":"j"}]}}"#
            ]],
        );
        check(
            &["{.spec.containers[1]}"],
            expect![[
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":{"containers":[null,{"image":"j","name":"d"}]}}"#
            ]],
        );
        check(
            &[".spec.nodeName.deeper"],
            expect![[
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":{"nodeName":null}}"#
            ]],
        );
    }

    #[test]
    fn a_path_that_cannot_be_read_is_named() {
        check(
            &["spec"],
            expect![[
                r#""spec" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 0)"#
            ]],
        );
        check(
            &[".a..b"],
            expect![[
                r#"".a..b" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 2)"#
            ]],
        );
        check(
            &[".a[x]"],
            expect![[
                r#"".a[x]" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 2)"#
            ]],
        );
        check(
            &[""],
            expect![[r#""" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 0)"#]],
        );
    }
}
