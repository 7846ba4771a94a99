use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::decode;

/// The most levels of a generated message.
const LEVELS: usize = 4;

/// Writes an object and reads it again.
fn round(value: &Value) -> Value {
    let encoded = encode(value.to_string().as_bytes()).unwrap();
    decode(&encoded.expect("a known kind"), 100).unwrap()
}

/// Fills a message of the table by chance: each choice takes a byte.
fn fill(name: &str, levels: usize, chance: &mut impl Iterator<Item = u8>) -> Map<String, Value> {
    let mut object = Map::new();
    for field in message::table().fields(name).expect("a known message") {
        if field.name == "." {
            if let Scalar::Message(inner) = &field.scalar {
                object.extend(fill(inner, levels, chance));
            }
            continue;
        }
        let is_wanted = chance.next().is_some_and(|byte| byte % 3 == 0);
        let Some(value) = is_wanted
            .then(|| make(&field.scalar, levels, chance))
            .flatten()
        else {
            continue;
        };
        let value = match field.shape {
            Shape::One => value,
            Shape::List => json!([value]),
            Shape::Map => json!({"key": value}),
        };
        object.insert(field.name.clone(), value);
    }
    object
}

/// Makes a value that is not zero.
fn make(scalar: &Scalar, levels: usize, chance: &mut impl Iterator<Item = u8>) -> Option<Value> {
    let byte = chance.next()?;
    let number = i64::from(byte) + 1;
    let mut schema = || -> Option<Value> {
        let fields = fill(message::SCHEMA, levels.checked_sub(1)?, chance);
        (!fields.is_empty()).then(|| fields.into())
    };
    Some(match scalar {
        Scalar::Text => json!(format!("text {number}")),
        Scalar::Boolean => json!(true),
        Scalar::Integer if byte % 2 == 0 => json!(number << 40),
        Scalar::Integer => json!(-number),
        Scalar::Float => json!(number as f64 / 4.0),
        Scalar::Bytes => json!(STANDARD.encode([byte, 0xff])),
        Scalar::Message(name) => {
            let fields = fill(name, levels.checked_sub(1)?, chance);
            (!fields.is_empty()).then(|| fields.into())?
        }
        Scalar::Time => json!(format!("2026-11-29T17:00:{:02}Z", byte % 60)),
        Scalar::MicroTime => json!(format!("2026-11-29T17:00:{:02}.000250Z", byte % 60)),
        Scalar::Quantity => json!(format!("{number}Mi")),
        Scalar::IntOrString if byte % 2 == 0 => json!(number),
        Scalar::IntOrString => json!(format!("{number}%")),
        Scalar::Raw => json!({"a": [number, "é"]}),
        Scalar::Texts => json!(["one", format!("{number}")]),
        Scalar::Schemas if byte % 2 == 0 => json!([schema()?]),
        Scalar::SchemaOrTexts if byte % 2 == 0 => json!(["one", "two"]),
        Scalar::SchemaOrBoolean if byte % 2 == 0 => json!(byte % 4 == 0),
        Scalar::Schemas | Scalar::SchemaOrTexts | Scalar::SchemaOrBoolean => schema()?,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        kind in 0..crate::builtin::resources().len(),
        chance in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let resource = &crate::builtin::resources()[kind];
        let (api_version, kind) = (resource.api_version(), resource.kind.clone());
        let name = message_name(&api_version, &kind);
        let mut object = fill(&name, LEVELS, &mut chance.into_iter());
        object.insert("apiVersion".into(), api_version.into());
        object.insert("kind".into(), kind.into());
        let object = Value::Object(object);
        prop_assert_eq!(round(&object), object);
    }
}

#[test]
fn a_config_map_is_written_as_go_writes_it() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": true});
    let encoded = encode(map.to_string().as_bytes()).unwrap().unwrap();
    let expected = [
        b"k8s\0".as_slice(),
        b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap",
        b"\x12\x0f\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v\x20\x01",
        b"\x1a\x00\x22\x00",
    ];
    assert_eq!(encoded, expected.concat());
}

#[test]
fn a_list_has_its_metadata_and_items() {
    let list = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "remainingItemCount": 0},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let encoded = encode(list.to_string().as_bytes()).unwrap().unwrap();
    let expected = [
        b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dConfigMapList".as_slice(),
        b"\x12\x15\x0a\x05\x12\x017\x20\x00\x12\x05\x0a\x03\x0a\x01a\x12\x05\x0a\x03\x0a\x01b",
        b"\x1a\x00\x22\x00",
    ];
    assert_eq!(encoded, expected.concat());
}

#[test]
fn an_event_of_a_watch_is_a_frame() {
    let line = json!({"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}});
    let frame = encode_event(line.to_string().as_bytes()).unwrap().unwrap();
    let (length, event) = frame.split_at(4);
    assert_eq!(
        u32::from_be_bytes(length.try_into().unwrap()) as usize,
        event.len()
    );
    let object = encode(line["object"].to_string().as_bytes())
        .unwrap()
        .unwrap();
    assert!(event.starts_with(b"\x0a\x05ADDED\x12"));
    assert!(event.ends_with(&object));
}

#[test]
fn the_documents_of_the_machinery_are_known() {
    for document in [
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404, "details": {"name": "a", "causes": [{"field": "f"}]}}),
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps"}]}),
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [{"name": "pods", "verbs": ["get"]}]}),
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}),
    ] {
        let mut expected = document.clone();
        // An empty message cannot be told from none.
        if document["metadata"] == json!({}) {
            expected.as_object_mut().unwrap().remove("metadata");
        }
        assert_eq!(round(&document), expected);
    }
}

#[test]
fn a_kind_that_is_not_known_stays_json() {
    for document in [
        json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": []}),
        json!({"kind": "Thing", "apiVersion": "example.com/v1"}),
        json!({"kind": "ThingList", "apiVersion": "example.com/v1", "items": [{}]}),
    ] {
        assert_eq!(encode(document.to_string().as_bytes()).unwrap(), None);
    }
    assert!(encode(b"[]").is_err());
    assert!(encode(b"{\"kind\":").is_err());
}
