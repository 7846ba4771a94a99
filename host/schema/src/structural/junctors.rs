//! What stands below `allOf`, `anyOf`, `oneOf` and `not`: it may restrict what is declared, and declare nothing.

use std::sync::Arc;

use serde_json::Value;

use super::{DEPTH_MAX, Reader, is_trivial, join};
use crate::{
    FieldError,
    schema::{Kind, Node},
};

/// What a place above allows below its junctors.
pub(super) struct Junctors {
    /// `anyOf: [{type: integer}, {type: string}]` is the one use of types there.
    pub(super) skip_any_of: bool,
}

impl Reader {
    /// A schema below a junctor: it may restrict, not declare. `owner` is the place that it speaks of.
    pub(super) fn nested(
        &mut self,
        schema: &Value,
        path: &str,
        junctors: &Junctors,
        depth: usize,
        owner: &Node,
    ) -> Node {
        let mut node = Node::new(Kind::Any);
        let Value::Object(map) = schema else {
            self.errors
                .push(FieldError::type_invalid(path, schema, "must be an object"));
            return node;
        };
        if depth > DEPTH_MAX {
            self.invalid(
                path.to_owned(),
                &Value::from(""),
                &format!("nests deeper than {DEPTH_MAX} levels"),
            );
            return node;
        }
        let allowed_type = match map.get("type").and_then(Value::as_str) {
            None | Some("") => None,
            Some("integer") if junctors.skip_any_of => Some(Kind::Integer),
            Some("string") if junctors.skip_any_of => Some(Kind::String),
            Some(_) => {
                self.errors.push(FieldError::forbidden(
                    join(path, "type"),
                    "must be empty to be structural",
                ));
                None
            }
        };
        node.kind = allowed_type.unwrap_or(Kind::Any);
        node.nullable = owner.nullable;
        for (name, wanted) in [
            ("additionalProperties", "must be undefined to be structural"),
            ("default", "must be undefined to be structural"),
            ("title", "must be empty to be structural"),
            ("description", "must be empty to be structural"),
            ("nullable", "must be false to be structural"),
            (
                "x-kubernetes-preserve-unknown-fields",
                "must be false to be structural",
            ),
            (
                "x-kubernetes-embedded-resource",
                "must be false to be structural",
            ),
            (
                "x-kubernetes-int-or-string",
                "must be false to be structural",
            ),
            (
                "x-kubernetes-list-map-keys",
                "must be empty to be structural",
            ),
            (
                "x-kubernetes-list-type",
                "must be undefined to be structural",
            ),
            (
                "x-kubernetes-map-type",
                "must be undefined to be structural",
            ),
            ("x-kubernetes-validations", "must be empty to be structural"),
        ] {
            if map
                .get(name)
                .is_some_and(|v| !v.is_null() && *v != Value::Bool(false) && v.as_str() != Some(""))
            {
                self.errors
                    .push(FieldError::forbidden(join(path, name), wanted));
            }
        }
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            for (name, schema) in properties {
                let at = join(path, &format!("properties[{name}]"));
                let Some(declared) = owner.property(name).cloned() else {
                    self.missing(owner, &at, path, name);
                    continue;
                };
                let inner = Junctors {
                    skip_any_of: declared.kind == Kind::IntOrString,
                };
                node.properties.push((
                    name.as_str().into(),
                    Arc::new(self.nested(schema, &at, &inner, depth + 1, &declared)),
                ));
            }
            node.properties.sort_by(|a, b| a.0.cmp(&b.0));
        }
        if let Some(schema) = map.get("items").filter(|i| i.is_object()) {
            let item = owner
                .items
                .clone()
                .unwrap_or_else(|| Arc::new(Node::new(Kind::Any)));
            node.items = Some(Arc::new(self.nested(
                schema,
                &join(path, "items"),
                &Junctors { skip_any_of: false },
                depth + 1,
                &item,
            )));
        }
        let checks = self.checks(map, path, junctors, depth, owner);
        node.checks = (!is_trivial(&checks)).then(|| Box::new(checks));
        node
    }

    /// A field that is restricted must be declared, unless anything may stand there.
    fn missing(&mut self, owner: &Node, at: &str, path: &str, name: &str) {
        if name == "metadata" {
            self.errors.push(FieldError::forbidden(
                at,
                "must not be specified in a nested context",
            ));
        } else if owner.kind == Kind::Object || !owner.preserve_unknown {
            let declared = path
                .rsplit_once("allOf")
                .or_else(|| path.rsplit_once("anyOf"))
                .or_else(|| path.rsplit_once("oneOf"))
                .or_else(|| path.rsplit_once("not"));
            let before = declared
                .map_or("", |(before, _)| before)
                .trim_end_matches('.');
            self.errors.push(FieldError::required(
                join(before, &format!("properties[{name}]")),
                &format!("because it is defined in {at}"),
            ));
        }
    }
}
