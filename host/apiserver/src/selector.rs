//! Label and field selectors.

use crate::object::Traits;
use crate::resource::Resource;
use crate::status::{Result, Status};

/// Both selectors of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq)]
enum LabelRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

#[derive(Debug, Clone)]
struct FieldRequirement {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone)]
enum Field {
    Name,
    Namespace,
    /// The position in the resource's selectable fields.
    Other(usize),
}

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str, resource: &Resource) -> Result<Self> {
        let labels = parse_labels(labels)
            .map_err(|why| Status::bad_request(format!("unable to parse requirement: {why}")))?;
        let fields = parse_fields(fields, resource)?;
        Ok(Self { labels, fields })
    }

    /// Selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether more than the key is needed to decide.
    pub(crate) fn needs_traits(&self) -> bool {
        !self.labels.is_empty()
            || self
                .fields
                .iter()
                .any(|requirement| matches!(requirement.field, Field::Other(_)))
    }

    /// Whether nothing but the key and the labels is needed to decide.
    pub(crate) fn needs_labels_only(&self) -> bool {
        self.fields
            .iter()
            .all(|requirement| !matches!(requirement.field, Field::Other(_)))
    }

    /// Whether a key can belong to a selected object at all.
    pub(crate) fn matches_key(&self, namespace: &str, name: &str) -> bool {
        self.fields
            .iter()
            .all(|requirement| match requirement.field {
                Field::Name => (requirement.value == name) == requirement.equal,
                Field::Namespace => (requirement.value == namespace) == requirement.equal,
                Field::Other(_) => true,
            })
    }

    /// The only name that can match, if the selector asks for one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.fields
            .iter()
            .find(|r| r.equal && matches!(r.field, Field::Name))
            .map(|r| r.value.as_str())
    }

    pub(crate) fn matches(&self, namespace: &str, name: &str, traits: &Traits) -> bool {
        self.matches_key(namespace, name)
            && self
                .fields
                .iter()
                .all(|requirement| match requirement.field {
                    Field::Name | Field::Namespace => true,
                    Field::Other(at) => traits
                        .fields
                        .get(at)
                        .is_some_and(|value| (*value == requirement.value) == requirement.equal),
                })
            && self
                .labels
                .iter()
                .all(|requirement| requirement.matches(traits))
    }
}

impl LabelRequirement {
    fn matches(&self, traits: &Traits) -> bool {
        let number = |key: &str| {
            traits
                .label(key)
                .and_then(|value| value.parse::<i64>().ok())
        };
        match self {
            Self::In(key, values) => traits
                .label(key)
                .is_some_and(|value| values.iter().any(|one| one == value)),
            Self::NotIn(key, values) => traits
                .label(key)
                .is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Exists(key) => traits.label(key).is_some(),
            Self::Absent(key) => traits.label(key).is_none(),
            Self::Greater(key, bound) => number(key).is_some_and(|value| value > *bound),
            Self::Less(key, bound) => number(key).is_some_and(|value| value < *bound),
        }
    }
}

/// Splits at commas that are not inside parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let mut depth = 0u32;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

fn parse_labels(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    split_requirements(text)
        .into_iter()
        .map(|requirement| parse_label(requirement.trim()))
        .collect()
}

fn parse_label(text: &str) -> Result<LabelRequirement, String> {
    if let Some(key) = text.strip_prefix('!') {
        return Ok(LabelRequirement::Absent(label_key(key)?));
    }
    if let Some(list) = text.strip_suffix(')') {
        let (head, values) = list
            .split_once('(')
            .ok_or_else(|| format!("found ')' without '(' in {text:?}"))?;
        let (key, operator) = head
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(|| format!("found no operator in {text:?}"))?;
        let key = label_key(key)?;
        let values: Vec<String> = values
            .split(',')
            .map(|value| label_value(value.trim()))
            .collect::<Result<_, _>>()?;
        return match operator {
            "in" => Ok(LabelRequirement::In(key, values)),
            "notin" => Ok(LabelRequirement::NotIn(key, values)),
            other => Err(format!("found {other:?}, expected: in, notin")),
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(LabelRequirement::NotIn(
            label_key(key)?,
            vec![label_value(value.trim())?],
        ));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(LabelRequirement::In(
            label_key(key)?,
            vec![label_value(value.trim())?],
        ));
    }
    let number = |value: &str| {
        value.trim().parse().map_err(|_| {
            format!("for 'Gt', 'Lt' operators, the value must be an integer: {text:?}")
        })
    };
    if let Some((key, value)) = text.split_once('>') {
        return Ok(LabelRequirement::Greater(label_key(key)?, number(value)?));
    }
    if let Some((key, value)) = text.split_once('<') {
        return Ok(LabelRequirement::Less(label_key(key)?, number(value)?));
    }
    Ok(LabelRequirement::Exists(label_key(text)?))
}

fn label_key(text: &str) -> Result<String, String> {
    let key = text.trim();
    match crate::names::label_key_fault(key) {
        None => Ok(key.to_owned()),
        Some(why) => Err(format!("key: Invalid value: {key:?}: {why}")),
    }
}

fn label_value(value: &str) -> Result<String, String> {
    match crate::names::label_value_fault(value) {
        None => Ok(value.to_owned()),
        Some(why) => Err(format!("values[0]: Invalid value: {value:?}: {why}")),
    }
}

fn parse_fields(text: &str, resource: &Resource) -> Result<Vec<FieldRequirement>> {
    let mut requirements = Vec::new();
    for part in split_escaped(text) {
        if part.is_empty() {
            continue;
        }
        let (name, value, equal) = if let Some((name, value)) = part.split_once("!=") {
            (name, value, false)
        } else if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (name, value, true)
        } else {
            return Err(Status::bad_request(format!(
                "invalid selector: '{part}'; can't understand '{part}'"
            )));
        };
        let field = match name {
            "metadata.name" => Field::Name,
            "metadata.namespace" if resource.namespaced => Field::Namespace,
            other => match resource.fields.iter().position(|field| field.name == other) {
                Some(at) => Field::Other(at),
                None => {
                    return Err(Status::bad_request(format!(
                        "Unable to find {:?} that match label selector \"\", field selector {text:?}: field label not supported: {other}",
                        format!(
                            "{}/{}, Resource={}",
                            resource.group, resource.version, resource.plural
                        )
                    )));
                }
            },
        };
        requirements.push(FieldRequirement {
            field,
            value: unescape(value),
            equal,
        });
    }
    Ok(requirements)
}

/// Splits at commas without a backslash before them.
fn split_escaped(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|character| {
        let split = character == ',' && !escaped;
        escaped = character == '\\' && !escaped;
        split
    })
    .collect()
}

fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            plain.extend(characters.next())
        } else {
            plain.push(character)
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pods() -> std::sync::Arc<Resource> {
        crate::registry::Registry::builtin()
            .resource("", "v1", "pods")
            .unwrap()
    }

    #[track_caller]
    fn check(labels: &str, fields: &str, expected: bool) {
        let traits = Traits {
            labels: vec![("app".into(), "web".into()), ("tier".into(), "3".into())],
            fields: pods()
                .fields
                .iter()
                .map(|field| {
                    if field.name == "spec.nodeName" {
                        "n1".into()
                    } else {
                        String::new()
                    }
                })
                .collect(),
        };
        let selector = Selector::parse(labels, fields, &pods()).unwrap();
        assert_eq!(
            selector.matches("default", "a", &traits),
            expected,
            "{labels} {fields}"
        );
    }

    #[test]
    fn selectors_select() {
        check("", "", true);
        check("app=web", "", true);
        check("app==web,tier", "", true);
        check("app!=web", "", false);
        check("other!=web", "", true);
        check("app in (web, db),tier notin (1,2)", "", true);
        check("app in (db)", "", false);
        check("!app", "", false);
        check("!other", "", true);
        check("tier>2,tier<4", "", true);
        check("tier>3", "", false);
        check("", "metadata.name=a,metadata.namespace!=x", true);
        check("", "metadata.name!=a", false);
        check("", "spec.nodeName=n1", true);
        check("", "spec.nodeName=,status.phase=Running", false);
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for labels in ["a b", "a in b", "a in (b", "=x", "a=b c", "a>x"] {
            assert!(Selector::parse(labels, "", &pods()).is_err(), "{labels}");
        }
        let error = Selector::parse("", "spec.foo=1", &pods()).unwrap_err();
        assert!(
            error
                .message
                .ends_with("field label not supported: spec.foo"),
            "{}",
            error.message
        );
        assert!(Selector::parse("", "metadata.name", &pods()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_an_answer(labels in ".{0,40}", fields in ".{0,40}") {
            let _ = Selector::parse(&labels, &fields, &pods());
        }
    }
}
