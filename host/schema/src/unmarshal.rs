//! Values of a wrong type in objects of built-in kinds, in the words of a server of the Go language.

use serde_json::Value;

use crate::schema::{Kind, Node};

/// The first value that cannot be read, and why; none if there is no such value, or it cannot be told in these words.
pub(crate) fn fault(root: &Node, object: &Value) -> Option<String> {
    let place = Place {
        owner: root,
        path: String::new(),
    };
    place.fault(root, object)
}

/// Where a value stands: in a field of the innermost struct around it.
struct Place<'a> {
    owner: &'a Node,
    /// Names of fields from the root, without keys of maps and positions in lists.
    path: String,
}

impl Place<'_> {
    fn fault(&self, node: &Node, value: &Value) -> Option<String> {
        let found = match (node.kind, value) {
            (Kind::Quantity, value) => {
                let fault = crate::quantity::Quantity::from_json(value).err()?;
                return Some(fault.to_string());
            }
            (_, Value::Null) | (Kind::Any | Kind::IntOrString, _) => return None,
            (Kind::Object, Value::Object(map)) => {
                return map.iter().find_map(|(name, value)| {
                    let inner = node.field(name)?;
                    if node.property(name).is_none() {
                        return self.fault(inner, value);
                    }
                    let path = if self.path.is_empty() {
                        name.clone()
                    } else {
                        format!("{}.{name}", self.path)
                    };
                    let owner = if node.go_name.is_some() {
                        node
                    } else {
                        self.owner
                    };
                    Place { owner, path }.fault(inner, value)
                });
            }
            (Kind::Array, Value::Array(items)) => {
                return items.iter().find_map(|item| self.fault(node.item(), item));
            }
            (Kind::String, Value::String(_)) | (Kind::Boolean, Value::Bool(_)) => return None,
            (Kind::Number, Value::Number(_)) => return None,
            (Kind::Integer, Value::Number(number)) if !number.is_f64() => return None,
            (Kind::Integer, Value::Number(number)) => format!("number {number}"),
            (_, Value::Object(_)) => "object".to_owned(),
            (_, Value::Array(_)) => "array".to_owned(),
            (_, Value::String(_)) => "string".to_owned(),
            (_, Value::Number(_)) => "number".to_owned(),
            (_, Value::Bool(_)) => "bool".to_owned(),
        };
        let owner = self.owner.go_name.as_deref()?;
        let owner = owner.rsplit('.').next().unwrap_or(owner);
        Some(format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{} of type {}",
            self.path,
            type_name(node)?
        ))
    }
}

/// None for what reads itself.
fn type_name(node: &Node) -> Option<String> {
    Some(match node.kind {
        Kind::String => match node.go_format.as_deref() {
            Some("byte") => "[]uint8".to_owned(),
            Some("date-time") => return None,
            _ => "string".to_owned(),
        },
        Kind::Boolean => "bool".to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Integer => node.go_format.as_deref().unwrap_or("int64").to_owned(),
        Kind::Array => format!("[]{}", type_name(node.item())?),
        Kind::Object => match (&node.go_name, &node.additional) {
            (Some(name), _) => name.to_string(),
            (None, Some(values)) => format!("map[string]{}", type_name(values)?),
            (None, None) => return None,
        },
        Kind::Quantity => "resource.Quantity".to_owned(),
        Kind::Any | Kind::IntOrString => return None,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: (&str, &str), object: Value, expect: Expect) {
        let (group, kind) = kind;
        let schema = crate::builtin(group, "v1", kind).unwrap();
        expect.assert_eq(&fault(&schema.root, &object).unwrap_or_default());
    }

    #[test]
    fn faults_name_the_struct_and_the_type() {
        check(
            ("", "ConfigMap"),
            json!({"data": {"k": 1}}),
            expect![
                "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
            ],
        );
        check(
            ("", "ConfigMap"),
            json!({"metadata": {"labels": {"a": true}}}),
            expect![
                "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"
            ],
        );
        check(
            ("apps", "Deployment"),
            json!({"spec": {"replicas": "x"}}),
            expect![
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
            ],
        );
        check(
            ("", "Pod"),
            json!({"spec": {"containers": {}}}),
            expect![
                "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"
            ],
        );
        check(
            ("", "Pod"),
            json!({"spec": {"containers": []}}),
            expect![""],
        );
    }
}
