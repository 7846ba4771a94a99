//! Kubernetes objects as entries of a set.

use std::fmt;

use serde_json::Value;

use super::entry::Provides;
use super::member::MemberKey;
use crate::field;
use crate::request::group_of;

/// The identity of an object, and what other entries can use once it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedObject {
    /// The member that the object describes.
    pub key: MemberKey,
    /// A CustomResourceDefinition provides its kind, a Namespace provides room for objects.
    pub provides: Option<Provides>,
}

/// The reason that a document cannot be an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectError {
    /// A field that identifies the object is missing, empty or of another type.
    Missing(&'static str),
    /// The object asks the server for a name. A set must find it again.
    GeneratedName,
    /// The document is a list of objects, such as a `RoleList`.
    List {
        /// The kind.
        kind: String,
    },
}

impl std::error::Error for ObjectError {}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "the object needs `{field}`, a text that is not empty"),
            Self::GeneratedName => f.write_str(
                "the object has `metadata.generateName` and no `metadata.name`; give it a name, so that the set can find it again",
            ),
            Self::List { kind } => {
                write!(f, "{kind} is a list of objects; make an entry of each item")
            }
        }
    }
}

/// Reads the identity of an object. A namespace that the object leaves out is the empty one: the host fills it in where the kind is
/// namespaced.
///
/// # Errors
/// The first thing that is missing or not allowed.
pub fn describe(object: &Value) -> Result<DescribedObject, ObjectError> {
    let text = |path: &str| field::text(object, path);
    let needed = |path: &str, field| match text(path) {
        "" => Err(ObjectError::Missing(field)),
        text => Ok(text.to_owned()),
    };
    let api_version = needed("/apiVersion", "apiVersion")?;
    let kind = needed("/kind", "kind")?;
    if kind.ends_with("List") && object.get("items").is_some_and(Value::is_array) {
        return Err(ObjectError::List { kind });
    }
    if text("/metadata/name").is_empty() && !text("/metadata/generateName").is_empty() {
        return Err(ObjectError::GeneratedName);
    }
    let name = needed("/metadata/name", "metadata.name")?;
    let group = group_of(&api_version);
    let provides = match (group, kind.as_str()) {
        ("", "Namespace") => Some(Provides::Namespace(name.clone())),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(Provides::Kind {
            group: needed("/spec/group", "spec.group")?,
            kind: needed("/spec/names/kind", "spec.names.kind")?,
        }),
        _ => None,
    };
    Ok(DescribedObject {
        key: MemberKey::Kubernetes {
            group: group.to_owned(),
            kind,
            namespace: text("/metadata/namespace").to_owned(),
            name,
        },
        provides,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "as `json!` and `expect!` are used"
    )]
    #[track_caller]
    fn check(object: Value, expected: Expect) {
        let text = match describe(&object) {
            Err(error) => error.to_string(),
            Ok(described) => match described.provides {
                None => described.key.to_string(),
                Some(provides) => format!("{} provides {provides:?}", described.key),
            },
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn objects_are_identified_without_their_version() {
        check(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}),
            expect!["Deployment.apps shop/web"],
        );
        check(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            expect![[r#"Namespace shop provides Namespace("shop")"#]],
        );
        check(
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.shop.example"},
                "spec": {"group": "shop.example", "names": {"kind": "Widget", "plural": "widgets"}},
            }),
            expect![[
                r#"CustomResourceDefinition.apiextensions.k8s.io widgets.shop.example provides Kind { group: "shop.example", kind: "Widget" }"#
            ]],
        );
    }

    #[test]
    fn documents_that_cannot_be_found_again_are_refused() {
        check(
            json!([]),
            expect!["the object needs `apiVersion`, a text that is not empty"],
        );
        check(
            json!({"apiVersion": "v1"}),
            expect!["the object needs `kind`, a text that is not empty"],
        );
        check(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}}),
            expect!["the object needs `metadata.name`, a text that is not empty"],
        );
        check(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}}),
            expect![
                "the object has `metadata.generateName` and no `metadata.name`; give it a name, so that the set can find it again"
            ],
        );
        check(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleList", "items": []}),
            expect!["RoleList is a list of objects; make an entry of each item"],
        );
        check(
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a"}}),
            expect!["the object needs `spec.group`, a text that is not empty"],
        );
    }
}
