//! Writes objects, lists and events of watches in protobuf.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use configurator_background::rest::rest_if_due;
use jiff::Timestamp;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::message::{self, Field, Scalar, Shape, Table};
use super::{MAGIC, message_name};

/// A varint.
const VARINT: u32 = 0;
/// Eight bytes.
const FIXED: u32 = 1;
/// Bytes after their number.
const BYTES: u32 = 2;

/// The field of the metadata, and of the items, in each list.
const LIST_METADATA: u32 = 1;
const LIST_ITEMS: u32 = 2;

/// Writes an object or a list, which is given as JSON, in protobuf. `None`: its kind has no message in the table.
///
/// The items of a list are read and written one after another.
///
/// # Errors
/// What is no JSON.
pub(crate) fn encode(json: &[u8]) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let mut text = serde_json::Deserializer::from_slice(json);
    let document = text.deserialize_map(DocumentVisitor)?;
    let Document {
        api_version,
        kind,
        fields,
        items,
    } = document;
    let table = message::table();
    let mut raw = Vec::new();
    match items {
        Some(items) => {
            if let Some(Value::Object(metadata)) = fields.get("metadata") {
                put_message(table, "meta.ListMeta", metadata, LIST_METADATA, &mut raw);
            }
            raw.extend(items);
        }
        None => {
            let name = message_name(&api_version, &kind);
            let Some(message) = table.fields(&name) else {
                return Ok(None);
            };
            write_fields(table, message, &fields, &mut raw);
        }
    }
    Ok(Some(envelope(&api_version, &kind, &raw)))
}

/// Writes an event of a watch, which is given as a line of JSON, as a frame: four bytes with its length, and the event. `None`: the kind of its object
/// has no message in the table.
///
/// # Errors
/// What is no JSON.
pub(crate) fn encode_event(line: &[u8]) -> Result<Option<Vec<u8>>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type")]
        kind: String,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let event: Event<'_> = serde_json::from_slice(line)?;
    let Some(object) = encode(event.object.get().as_bytes())? else {
        return Ok(None);
    };
    let mut frame = vec![0; 4];
    put_bytes(1, event.kind.as_bytes(), &mut frame);
    put_nested(2, &mut frame, |extension| put_bytes(1, &object, extension));
    let length = u32::try_from(frame.len() - 4).unwrap_or(u32::MAX);
    frame.splice(..4, length.to_be_bytes());
    Ok(Some(frame))
}

/// Puts the type of an object before its message.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut envelope = Vec::with_capacity(raw.len() + api_version.len() + kind.len() + 32);
    envelope.extend_from_slice(MAGIC);
    put_nested(1, &mut envelope, |type_meta| {
        put_bytes(1, api_version.as_bytes(), type_meta);
        put_bytes(2, kind.as_bytes(), type_meta);
    });
    put_bytes(2, raw, &mut envelope);
    // The encoding and the type of the content, which is as it is.
    put_bytes(3, b"", &mut envelope);
    put_bytes(4, b"", &mut envelope);
    envelope
}

/// What is read of a document.
#[derive(Default)]
struct Document {
    api_version: String,
    kind: String,
    /// Of a list, all but its items.
    fields: Map<String, Value>,
    /// The items of a list, as fields of its message.
    items: Option<Vec<u8>>,
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "apiVersion" => document.api_version = map.next_value()?,
                "kind" => document.kind = map.next_value()?,
                "items" => match item_message(&document.api_version, &document.kind) {
                    Some(message) => {
                        document.items = Some(map.next_value_seed(Items(message))?);
                    }
                    None => {
                        document.fields.insert(name, map.next_value()?);
                    }
                },
                _ => {
                    document.fields.insert(name, map.next_value()?);
                }
            }
        }
        // The items came before their kind.
        if let Some(message) = item_message(&document.api_version, &document.kind)
            && let Some(Value::Array(items)) = document.fields.remove("items")
        {
            let mut written = Vec::new();
            for item in items.iter().filter_map(Value::as_object) {
                put_item(message, item, &mut written);
            }
            document.items = Some(written);
        }
        Ok(document)
    }
}

fn put_item(message: &[Field], item: &Map<String, Value>, out: &mut Vec<u8>) {
    put_nested(LIST_ITEMS, out, |written| {
        write_fields(message::table(), message, item, written);
    });
}

/// The message of the items of a list of this kind. `None`: it is no list, or its items have no message in the table.
fn item_message(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    let item = kind.strip_suffix("List")?;
    message::table().fields(&message_name(api_version, item))
}

/// Writes items as they are read.
struct Items(&'static [Field]);

impl<'de> DeserializeSeed<'de> for Items {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<u8>, A::Error> {
        let mut written = Vec::new();
        while let Some(item) = items.next_element::<Map<String, Value>>()? {
            put_item(self.0, &item, &mut written);
            rest_if_due();
        }
        Ok(written)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<u8>, E> {
        Ok(Vec::new())
    }
}

/// Writes the fields of a message. What the table does not know, and a value that is not as its field wants it, is left out.
fn write_fields(table: &Table, fields: &[Field], object: &Map<String, Value>, out: &mut Vec<u8>) {
    for field in fields {
        let Field {
            number,
            name,
            shape,
            scalar,
            ..
        } = field;
        if name == "." {
            if let Scalar::Message(inner) = scalar {
                put_message(table, inner, object, *number, out);
            }
            continue;
        }
        match (shape, object.get(name)) {
            (_, None | Some(Value::Null)) => {}
            (Shape::One, Some(value)) => put_value(table, scalar, value, *number, out),
            (Shape::List, Some(Value::Array(items))) => {
                for item in items {
                    put_value(table, scalar, item, *number, out);
                }
            }
            (Shape::Map, Some(Value::Object(entries))) => {
                for (key, value) in entries {
                    put_nested(*number, out, |entry| {
                        put_bytes(1, key.as_bytes(), entry);
                        put_value(table, scalar, value, 2, entry);
                    });
                }
            }
            (Shape::List | Shape::Map, Some(_)) => {}
        }
    }
}

fn put_message(
    table: &Table,
    name: &str,
    object: &Map<String, Value>,
    number: u32,
    out: &mut Vec<u8>,
) {
    put_nested(number, out, |message| {
        if let Some(fields) = table.fields(name) {
            write_fields(table, fields, object, message);
        }
    });
}

fn put_value(table: &Table, scalar: &Scalar, value: &Value, number: u32, out: &mut Vec<u8>) {
    let put_schema = |schema, number, out: &mut Vec<u8>| {
        put_message(table, message::SCHEMA, schema, number, out);
    };
    match (scalar, value) {
        (Scalar::Text, Value::String(text)) => put_bytes(number, text.as_bytes(), out),
        (Scalar::Boolean, Value::Bool(value)) => put_integer(number, i64::from(*value), out),
        (Scalar::Integer, value) => {
            if let Some(value) = integer(value) {
                put_integer(number, value, out);
            }
        }
        (Scalar::Float, Value::Number(value)) => {
            if let Some(value) = value.as_f64() {
                put_tag(number, FIXED, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
        (Scalar::Bytes, Value::String(text)) => {
            if let Ok(bytes) = STANDARD.decode(text) {
                put_bytes(number, &bytes, out);
            }
        }
        (Scalar::Message(name), Value::Object(object)) => {
            put_message(table, name, object, number, out);
        }
        (Scalar::Time | Scalar::MicroTime, Value::String(text)) => {
            if let Ok(time) = text.parse::<Timestamp>() {
                put_nested(number, out, |message| {
                    put_integer(1, time.as_second(), message);
                    put_integer(2, time.subsec_nanosecond().into(), message);
                });
            }
        }
        (Scalar::Quantity, Value::String(text)) => put_texts(number, 1, [text.as_str()], out),
        // A number is a quantity, too.
        (Scalar::Quantity, Value::Number(value)) => {
            put_texts(number, 1, [value.to_string().as_str()], out);
        }
        (Scalar::IntOrString, Value::String(text)) => put_int_or_string(number, 1, 0, text, out),
        (Scalar::IntOrString, value) => {
            if let Some(value) = integer(value) {
                put_int_or_string(number, 0, value, "", out);
            }
        }
        (Scalar::Raw, value) => put_texts(number, 1, [value.to_string().as_str()], out),
        (Scalar::Texts, Value::Array(items)) => put_texts(number, 1, texts(items), out),
        (Scalar::SchemaOrTexts, Value::Array(items)) => put_texts(number, 2, texts(items), out),
        (Scalar::Schemas | Scalar::SchemaOrTexts, Value::Object(schema)) => {
            put_nested(number, out, |message| put_schema(schema, 1, message));
        }
        (Scalar::Schemas, Value::Array(schemas)) => put_nested(number, out, |message| {
            for schema in schemas.iter().filter_map(Value::as_object) {
                put_schema(schema, 2, message);
            }
        }),
        (Scalar::SchemaOrBoolean, Value::Bool(allows)) => {
            put_nested(number, out, |message| {
                put_integer(1, i64::from(*allows), message);
            });
        }
        (Scalar::SchemaOrBoolean, Value::Object(schema)) => put_nested(number, out, |message| {
            put_integer(1, 1, message);
            put_schema(schema, 2, message);
        }),
        _ => {}
    }
}

/// A number without a fraction, also where it is written with one.
fn integer(value: &Value) -> Option<i64> {
    let whole = |value: f64| (value.fract() == 0.0).then_some(value as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

/// The texts of a list.
fn texts(items: &[Value]) -> impl Iterator<Item = &str> {
    items.iter().filter_map(Value::as_str)
}

/// Writes a message that has these texts in one field.
fn put_texts<'a>(
    number: u32,
    field: u32,
    texts: impl IntoIterator<Item = &'a str>,
    out: &mut Vec<u8>,
) {
    put_nested(number, out, |message| {
        for text in texts {
            put_bytes(field, text.as_bytes(), message);
        }
    });
}

/// Writes a number or a text, after the number that says which.
fn put_int_or_string(number: u32, which: i64, integer: i64, text: &str, out: &mut Vec<u8>) {
    put_nested(number, out, |message| {
        put_integer(1, which, message);
        put_integer(2, integer, message);
        put_bytes(3, text.as_bytes(), message);
    });
}

/// Writes a message inside another one.
fn put_nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    write(&mut message);
    put_bytes(number, &message, out);
}

fn put_integer(number: u32, value: i64, out: &mut Vec<u8>) {
    put_tag(number, VARINT, out);
    put_varint(value.cast_unsigned(), out);
}

fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_tag(number, BYTES, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_tag(number: u32, wire_type: u32, out: &mut Vec<u8>) {
    put_varint(u64::from(number << 3 | wire_type), out);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests;
