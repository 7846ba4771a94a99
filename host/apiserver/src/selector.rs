//! Label and field selectors.

use crate::labels::{self, LabelRequirement};
use crate::object::Traits;
use crate::resource::Resource;
use crate::status::{Result, Status};

/// Both selectors of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
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
        let labels = labels::parse(labels).map_err(Status::bad_request)?;
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
                        "field label not supported: {other}"
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
