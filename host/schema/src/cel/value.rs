//! JSON as CEL values, by the schema.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use cel::{
    Context, Program, Value as CelValue,
    objects::{Key, Map},
};
use serde_json::Value;

use crate::schema::{Kind, Node, anything};

/// How large a value is: what bounds the cost of a rule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// The largest list or map in it.
    pub entries: u64,
    /// The longest string in it, in bytes.
    pub text: u64,
}

/// The CEL value, and its size. Of the metadata of the whole object only the names are visible.
pub(super) fn convert(node: &Node, value: &Value, root: bool) -> (CelValue, Size) {
    let mut size = Size::default();
    let converted = walk(node, value, root, &mut size);
    (converted, size)
}

fn walk(node: &Node, value: &Value, root: bool, size: &mut Size) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(b) => CelValue::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) if node.kind != Kind::Number => CelValue::Int(i),
            _ => CelValue::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => {
            size.text = size.text.max(text.len() as u64);
            string(node, text)
        }
        Value::Array(items) => {
            size.entries = size.entries.max(items.len() as u64);
            CelValue::List(Arc::new(
                items
                    .iter()
                    .map(|item| walk(node.item(), item, false, size))
                    .collect(),
            ))
        }
        Value::Object(map) => {
            size.entries = size.entries.max(map.len() as u64);
            let mut entries: HashMap<Key, CelValue> = HashMap::with_capacity(map.len());
            for (name, value) in map {
                let declared = node.property(name);
                let inner = declared.map_or_else(
                    || node.additional.as_deref().unwrap_or_else(|| anything()),
                    AsRef::as_ref,
                );
                if value.is_null() && !inner.nullable {
                    continue;
                }
                let converted = if root && name == "metadata" {
                    let names = |v: &Value| {
                        v.as_object().map(|m| {
                            m.iter()
                                .filter(|(n, _)| *n == "name" || *n == "generateName")
                                .map(|(n, v)| (n.clone(), v.clone()))
                                .collect()
                        })
                    };
                    walk(
                        inner,
                        &Value::Object(names(value).unwrap_or_default()),
                        false,
                        size,
                    )
                } else {
                    walk(inner, value, false, size)
                };
                let key = if declared.is_some() {
                    escape(name)
                } else {
                    name.clone()
                };
                entries.insert(Key::String(Arc::new(key)), converted);
            }
            CelValue::Map(Map {
                map: Arc::new(entries),
            })
        }
    }
}

/// Strings with some formats are values of another type.
fn string(node: &Node, text: &str) -> CelValue {
    static TIMESTAMP: OnceLock<Option<Program>> = OnceLock::new();
    static DURATION: OnceLock<Option<Program>> = OnceLock::new();
    static BYTES: OnceLock<Option<Program>> = OnceLock::new();
    let plain = || CelValue::String(Arc::new(text.to_owned()));
    let program = match node.checks.as_ref().and_then(|c| c.format.as_deref()) {
        Some("date-time") => TIMESTAMP.get_or_init(|| Program::compile("timestamp(text)").ok()),
        Some("date") => {
            let day = format!("{text}T00:00:00Z");
            return call(
                TIMESTAMP.get_or_init(|| Program::compile("timestamp(text)").ok()),
                &day,
            )
            .unwrap_or_else(plain);
        }
        Some("duration") => DURATION.get_or_init(|| Program::compile("duration(text)").ok()),
        Some("byte") => BYTES.get_or_init(|| Program::compile("bytes(text)").ok()),
        _ => return plain(),
    };
    call(program, text).unwrap_or_else(plain)
}

fn call(program: &Option<Program>, text: &str) -> Option<CelValue> {
    let mut context = Context::default();
    context.add_variable_from_value("text", text);
    program.as_ref()?.execute(&context).ok()
}

/// The name under which a rule finds a field: what CEL cannot spell is escaped.
pub(crate) fn escape(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['-', '.', '/']) && !name.contains("__") {
        return name.to_owned();
    }
    name.replace("__", "\0")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
        .replace('\0', "__underscores__")
}
