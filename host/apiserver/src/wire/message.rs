//! The table of messages.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The fields of each message, by its name.
#[derive(Debug)]
pub(super) struct Table(HashMap<&'static str, Vec<Field>>);

#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// In JSON. A dot: the fields of the message inside are the outer one's own.
    pub(super) name: String,
    pub(super) shape: Shape,
    /// A zero is something else than nothing.
    pub(super) counts_when_zero: bool,
    pub(super) scalar: Scalar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    Map,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Boolean,
    Integer,
    Float,
    Bytes,
    Message(String),
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON inside.
    Raw,
    /// A message that is nothing but a list of strings.
    Texts,
    /// A JSON schema, or a list of them.
    Schemas,
    /// A JSON schema, or a boolean.
    SchemaOrBoolean,
    /// A JSON schema, or a list of strings.
    SchemaOrTexts,
}

/// The message of a JSON schema.
pub(super) const SCHEMA: &str = "apiextensions.k8s.io/v1.JSONSchemaProps";

impl Table {
    pub(super) fn fields(&self, message: &str) -> Option<&[Field]> {
        self.0.get(message).map(Vec::as_slice)
    }
}

/// The table, read at its first use.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| read(include_str!("messages.txt")))
}

/// A line that cannot be read is left out; a test sees to it that there is none.
fn read(text: &'static str) -> Table {
    let mut messages: HashMap<&'static str, Vec<Field>> = HashMap::new();
    let mut current = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => {
                current = line;
                messages.entry(current).or_default();
            }
            Some(field) => {
                if let (Some(field), Some(fields)) = (read_field(field), messages.get_mut(current))
                {
                    fields.push(field);
                }
            }
        }
    }
    Table(messages)
}

fn read_field(line: &str) -> Option<Field> {
    let mut words = line.split(' ');
    let (number, name, mut kind) = (words.next()?, words.next()?, words.next()?);
    let mut shape = Shape::One;
    let mut counts_when_zero = false;
    loop {
        if let Some(rest) = kind.strip_prefix("[]") {
            (shape, kind) = (Shape::List, rest);
        } else if let Some(rest) = kind.strip_prefix("{}") {
            (shape, kind) = (Shape::Map, rest);
        } else if let Some(rest) = kind.strip_prefix('*') {
            (counts_when_zero, kind) = (true, rest);
        } else {
            break;
        }
    }
    let scalar = match kind {
        "s" => Scalar::Text,
        "b" => Scalar::Boolean,
        "i" => Scalar::Integer,
        "f" => Scalar::Float,
        "y" => Scalar::Bytes,
        "time" => Scalar::Time,
        "micro" => Scalar::MicroTime,
        "quantity" => Scalar::Quantity,
        "intstr" => Scalar::IntOrString,
        "raw" => Scalar::Raw,
        "items" => Scalar::Texts,
        "schemas" => Scalar::Schemas,
        "schema-or-bool" => Scalar::SchemaOrBoolean,
        "schema-or-texts" => Scalar::SchemaOrTexts,
        other => Scalar::Message(other.strip_prefix(':')?.to_owned()),
    };
    Some(Field {
        number: number.parse().ok()?,
        name: name.to_owned(),
        shape,
        counts_when_zero,
        scalar,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_message_is_there() {
        let text = include_str!("messages.txt");
        let lines = text.lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!(table().0.values().map(Vec::len).sum::<usize>(), lines);
        for field in table().0.values().flatten() {
            if let Scalar::Message(name) = &field.scalar {
                assert!(table().fields(name).is_some(), "{name}");
            }
        }
        for resource in crate::builtin::resources() {
            let name = format!("{}.{}", resource.api_version(), resource.kind);
            assert!(table().fields(&name).is_some(), "{name}");
        }
    }
}
