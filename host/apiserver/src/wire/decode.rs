//! Reads protobuf as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::message::{self, Field, Scalar, Shape, Table};
use super::{MAGIC, message_name};

/// Reads a document in protobuf as JSON, at most `depth` levels deep.
///
/// # Errors
/// What is wrong with the body, or that its kind is not known in this form.
pub(crate) fn decode(body: &[u8], depth: usize) -> Result<Value, String> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or("the body does not begin with the mark of the binary form")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    each(envelope, |number, value| {
        match (number, value) {
            (1, Wire::Bytes(type_meta)) => each(type_meta, |number, value| {
                match (number, value) {
                    (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                    (2, Wire::Bytes(text)) => kind = utf8(text)?,
                    _ => {}
                }
                Ok(())
            })?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let name = message_name(&api_version, &kind);
    let table = message::table();
    if table.fields(&name).is_none() {
        return Err(format!(
            "no kind {kind:?} is known in version {api_version:?} in the binary form; send JSON instead"
        ));
    }
    let mut object = Map::new();
    fill(table, &name, raw, depth, &mut object)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// A value as it is on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
}

/// Visits the fields of a message.
fn each<'a>(
    mut bytes: &'a [u8],
    mut visit: impl FnMut(u64, Wire<'a>) -> Result<(), String>,
) -> Result<(), String> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Wire::Integer(varint(&mut bytes)?),
            1 => Wire::Integer(fixed(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| truncated())?;
                Wire::Bytes(take(&mut bytes, length)?)
            }
            5 => Wire::Integer(fixed(&mut bytes, 4)?),
            other => {
                return Err(format!(
                    "the body has a field of the unknown wire type {other}"
                ));
            }
        };
        visit(key >> 3, value)?;
    }
    Ok(())
}

fn truncated() -> String {
    "the body is cut off".to_owned()
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or_else(truncated)?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first().ok_or_else(truncated)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("the body has a number that does not end".to_owned())
}

fn fixed(bytes: &mut &[u8], length: usize) -> Result<u64, String> {
    Ok(take(bytes, length)?
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn utf8(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "the body has text that is not UTF-8".to_owned())
}

/// Adds the fields of a message to an object.
fn fill(
    table: &Table,
    name: &str,
    bytes: &[u8],
    depth: usize,
    object: &mut Map<String, Value>,
) -> Result<(), String> {
    let depth = depth
        .checked_sub(1)
        .ok_or("the document is nested too deeply")?;
    let fields = table
        .fields(name)
        .ok_or_else(|| format!("the message {name} is not known"))?;
    each(bytes, |number, wire| {
        // What a newer client sends and this table does not know is left out, as an unknown field would be.
        let Some(field) = fields
            .iter()
            .find(|field| u64::from(field.number) == number)
        else {
            return Ok(());
        };
        let Field {
            name,
            shape,
            counts_when_zero,
            scalar,
            ..
        } = field;
        if name == "." {
            if let (Scalar::Message(inner), Wire::Bytes(bytes)) = (scalar, wire) {
                fill(table, inner, bytes, depth + 1, object)?;
            }
            return Ok(());
        }
        match shape {
            Shape::One => {
                let value = value(table, scalar, wire, depth)?;
                if *counts_when_zero && !value.is_null() || !is_zero(&value) {
                    object.insert(name.clone(), value);
                }
            }
            Shape::List => {
                let value = value(table, scalar, wire, depth)?;
                match object.entry(name.clone()).or_insert_with(|| json!([])) {
                    Value::Array(items) => items.push(value),
                    other => *other = json!([value]),
                }
            }
            Shape::Map => {
                let Wire::Bytes(entry) = wire else {
                    return Err(format!("the field {name} is no map"));
                };
                let (mut key, mut entry_value) = (String::new(), None);
                each(entry, |number, wire| {
                    match (number, wire) {
                        (1, Wire::Bytes(text)) => key = utf8(text)?,
                        (2, wire) => entry_value = Some(value(table, scalar, wire, depth)?),
                        _ => {}
                    }
                    Ok(())
                })?;
                let entry_value = match entry_value {
                    Some(value) => value,
                    None => value(table, scalar, Wire::Bytes(&[]), depth)?,
                };
                if let Value::Object(entries) =
                    object.entry(name.clone()).or_insert_with(|| json!({}))
                {
                    entries.insert(key, entry_value);
                }
            }
        }
        Ok(())
    })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn value(table: &Table, scalar: &Scalar, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    let bytes = match wire {
        Wire::Integer(number) => {
            return match scalar {
                Scalar::Boolean => Ok(json!(number != 0)),
                Scalar::Float => Ok(json!(f64::from_bits(number))),
                // Negative numbers are sent as the same bits without a sign.
                Scalar::Integer => Ok(json!(number.cast_signed())),
                _ => Err("the body has a number where the kind has none".to_owned()),
            };
        }
        Wire::Bytes(bytes) => bytes,
    };
    match scalar {
        Scalar::Text => Ok(json!(utf8(bytes)?)),
        Scalar::Bytes => Ok(json!(STANDARD.encode(bytes))),
        Scalar::Message(name) => {
            let mut object = Map::new();
            fill(table, name, bytes, depth, &mut object)?;
            Ok(Value::Object(object))
        }
        Scalar::Time => time(bytes, 0),
        Scalar::MicroTime => time(bytes, 6),
        Scalar::Quantity => Ok(json!(text_of(bytes, 1)?)),
        Scalar::IntOrString => match integer_of(bytes, 1)? {
            0 => Ok(json!(integer_of(bytes, 2)?)),
            _ => Ok(json!(text_of(bytes, 3)?)),
        },
        Scalar::Raw => {
            let mut inner: &[u8] = &[];
            each(bytes, |number, wire| {
                if let (1, Wire::Bytes(bytes)) = (number, wire) {
                    inner = bytes;
                }
                Ok(())
            })?;
            if inner.is_empty() {
                return Ok(Value::Null);
            }
            let purpose = crate::document::Purpose::Patch;
            crate::document::parse("application/json", inner, depth, purpose)
                .map(|(value, _)| value)
                .map_err(|status| status.message)
        }
        Scalar::Texts => {
            let mut items = Vec::new();
            each(bytes, |number, wire| {
                if let (1, Wire::Bytes(text)) = (number, wire) {
                    items.push(Value::from(utf8(text)?));
                }
                Ok(())
            })?;
            Ok(Value::Array(items))
        }
        Scalar::Schemas | Scalar::SchemaOrBoolean | Scalar::SchemaOrTexts => {
            schema_or_other(table, scalar, bytes, depth)
        }
        Scalar::Boolean | Scalar::Integer | Scalar::Float if bytes.is_empty() => Ok(Value::Null),
        Scalar::Boolean | Scalar::Integer | Scalar::Float => {
            Err("the body has bytes where the kind has a number".to_owned())
        }
    }
}

/// Reads what is a JSON schema or something else.
fn schema_or_other(
    table: &Table,
    scalar: &Scalar,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, String> {
    let schema = |bytes: &[u8]| {
        let mut object = Map::new();
        fill(table, message::SCHEMA, bytes, depth, &mut object)?;
        Ok::<Value, String>(Value::Object(object))
    };
    let (mut one, mut many, mut allows) = (None, Vec::new(), false);
    each(bytes, |number, wire| {
        match (scalar, number, wire) {
            (Scalar::Schemas, 2, Wire::Bytes(bytes)) => many.push(schema(bytes)?),
            (Scalar::SchemaOrTexts, 2, Wire::Bytes(text)) => many.push(utf8(text)?.into()),
            (Scalar::SchemaOrBoolean, 1, Wire::Integer(value)) => allows = value != 0,
            (Scalar::Schemas | Scalar::SchemaOrTexts, 1, Wire::Bytes(bytes))
            | (Scalar::SchemaOrBoolean, 2, Wire::Bytes(bytes)) => one = Some(schema(bytes)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(match (one, scalar) {
        (Some(schema), _) => schema,
        (None, Scalar::SchemaOrBoolean) => Value::Bool(allows),
        (None, _) => Value::Array(many),
    })
}

/// A time as the API writes it; null if it is not set.
fn time(bytes: &[u8], precision: u8) -> Result<Value, String> {
    let (seconds, nanoseconds) = (integer_of(bytes, 1)?, integer_of(bytes, 2)?);
    // The zero time of Go is in the year 1 and means that there is none.
    if bytes.is_empty() || seconds <= -62_135_596_800 {
        return Ok(Value::Null);
    }
    let nanoseconds =
        i32::try_from(nanoseconds).map_err(|_| "the body has a time that is out of range")?;
    let time = Timestamp::new(seconds, if precision == 0 { 0 } else { nanoseconds })
        .map_err(|error| error.to_string())?;
    Ok(json!(if precision == 0 {
        format!("{time:.0}")
    } else {
        format!("{time:.6}")
    }))
}

fn integer_of(bytes: &[u8], wanted: u64) -> Result<i64, String> {
    let mut found = 0;
    each(bytes, |number, wire| {
        if let Wire::Integer(value) = wire
            && number == wanted
        {
            found = value.cast_signed();
        }
        Ok(())
    })?;
    Ok(found)
}

fn text_of(bytes: &[u8], wanted: u64) -> Result<String, String> {
    let mut found = String::new();
    each(bytes, |number, wire| {
        if let Wire::Bytes(text) = wire
            && number == wanted
        {
            found = utf8(text)?;
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A field whose value is bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        assert!(bytes.len() < 128);
        let mut field = vec![number << 3 | 2, bytes.len() as u8];
        field.extend_from_slice(bytes);
        field
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &type_meta), &field(2, raw)].concat()
    }

    #[test]
    fn a_deployment_is_read() {
        let meta = [
            field(1, b"web"),
            field(3, b""),
            field(8, &[]),
            field(11, &[field(1, b"app"), field(2, b"web")].concat()),
        ]
        .concat();
        let port = [vec![0x10, 0x50], field(1, b"http")].concat();
        let probe = [
            field(
                1,
                &field(
                    2,
                    &[field(1, b"/"), field(2, &[0x08, 0x01, 0x1a, 0x01, b'h'])].concat(),
                ),
            ),
            vec![0x10, 0x05],
        ]
        .concat();
        let container = [field(1, b"main"), field(6, &port), field(10, &probe)].concat();
        let template = field(2, &field(2, &container));
        let spec = [vec![0x08, 0x00], field(3, &template), vec![0x28, 0x00]].concat();
        let body = envelope(
            "apps/v1",
            "Deployment",
            &[field(1, &meta), field(2, &spec), field(3, &[])].concat(),
        );
        assert_eq!(
            decode(&body, 100).unwrap(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {
                "replicas": 0, "template": {"spec": {"containers": [
                    {"name": "main", "ports": [{"name": "http", "hostPort": 80}], "livenessProbe": {"httpGet": {"path": "/", "port": "h"}, "initialDelaySeconds": 5}}]}}}})
        );
    }

    #[test]
    fn values_of_their_own_are_read() {
        let seconds = [0x08, 0x80, 0xe2, 0xcf, 0xaa, 0x06];
        let event = [
            field(7, &seconds),
            field(10, &[&seconds[..], &[0x10, 0xc0, 0x84, 0x3d]].concat()),
            field(6, &[]),
        ]
        .concat();
        let event = decode(&envelope("v1", "Event", &event), 100).unwrap();
        assert_eq!(event["lastTimestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(event["eventTime"], "2023-11-14T22:13:20.001000Z");
        assert_eq!(event.get("firstTimestamp"), None);
        let secret = field(2, &[field(1, b"k"), field(2, b"\xff")].concat());
        assert_eq!(
            decode(&envelope("v1", "Secret", &secret), 100).unwrap()["data"],
            json!({"k": "/w=="})
        );
        assert!(
            decode(&envelope("v9", "Nothing", b""), 100)
                .unwrap_err()
                .contains("send JSON instead")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, 100);
            let _ = decode(&[MAGIC, &bytes].concat(), 100);
            for kind in ["Pod", "Event", "ConfigMap", "Service"] {
                let mut body = envelope("v1", kind, b"");
                body.truncate(body.len() - 2);
                body.push(0x12);
                body.push((bytes.len() & 0x7f) as u8);
                body.extend_from_slice(&bytes);
                let _ = decode(&body, 100);
            }
        }
    }
}
