//! Bodies of requests: bounded, as JSON, YAML or protobuf.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::json;
use crate::protobuf::PROTOBUF;
use crate::status::{Result, Status};
use crate::wire;

/// The media type of a body, without its parameters; `application/json` if none is named.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    match value.split(';').next().unwrap_or_default().trim() {
        "" => "application/json",
        media => media,
    }
}

/// What a body is for, which decides how it is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// An object of this kind.
    Object(&'a str),
    Patch,
    StrategicPatch,
    /// What goes along with a deletion.
    Options,
}

/// Reads a document of the API, at most `depth` levels deep, and the paths of fields that it has twice.
pub(crate) fn parse(
    media: &str,
    body: &[u8],
    depth: usize,
    purpose: Purpose<'_>,
) -> Result<(Value, Vec<String>)> {
    let value = match media {
        "application/json"
        | "application/merge-patch+json"
        | "application/json-patch+json"
        | "application/strategic-merge-patch+json" => {
            return parse_json(body, depth, purpose);
        }
        "application/yaml" => parse_yaml(body, depth)?,
        // Server-side apply sends YAML, of which JSON is a part that is quicker to read.
        "application/apply-patch+yaml" => {
            match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{') => return parse_json(body, depth, purpose),
                _ => parse_yaml(body, depth)?,
            }
        }
        PROTOBUF => wire::decode(body, depth).map_err(|why| {
            Status::bad_request(format!("the body of the request cannot be read: {why}"))
        })?,
        other => {
            tracing::debug!("a body of type {other} is refused");
            return Err(Status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, \
                 application/vnd.kubernetes.protobuf",
            ));
        }
    };
    Ok((value, Vec::new()))
}

fn parse_json(body: &[u8], depth: usize, purpose: Purpose<'_>) -> Result<(Value, Vec<String>)> {
    if depth_of(body) > depth {
        return Err(too_deep(depth));
    }
    let read = json::parse(body).map_err(|why| match purpose {
        Purpose::Object(kind) => unrecognized(
            kind,
            &format!("couldn't get version/kind; json parse error: {why}"),
            body,
        ),
        Purpose::Patch => Status::bad_request(format!("error decoding patch: {why}")),
        Purpose::StrategicPatch => Status::bad_request(why),
        Purpose::Options => Status::bad_request(format!(
            "couldn't get version/kind; json parse error: {why}"
        )),
    })?;
    if let Purpose::Object(kind) = purpose {
        let found = match &read.0 {
            Value::Object(_) => return Ok(read),
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            Value::Null => "null",
        };
        const HEAD: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {HEAD}"
        );
        return Err(unrecognized(kind, &why, body));
    }
    Ok(read)
}

/// What is no object of this kind, with its beginning.
pub(crate) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> Status {
    /// More of a body is not repeated.
    const SHOWN: usize = 30;
    let head = body.get(..SHOWN).unwrap_or(body);
    let mut shown = match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(head).into_owned(),
        Some(_) => head.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if head.len() < body.len() {
        shown.push_str(" ...");
    }
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
    ))
}

fn parse_yaml(body: &[u8], depth: usize) -> Result<Value> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Status::bad_request("error decoding YAML: not UTF-8"))?;
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    if depth_of_value(&value, depth) {
        Ok(value)
    } else {
        Err(too_deep(depth))
    }
}

fn too_deep(depth: usize) -> Status {
    Status::bad_request(format!(
        "the document is nested too deeply: at most {depth} levels are allowed"
    ))
}

/// How deep JSON is nested, found without building anything.
fn depth_of(body: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in body {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a value is at most `left` levels deep.
fn depth_of_value(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| depth_of_value(item, left - 1)),
        Value::Object(fields) => {
            left > 0 && fields.values().all(|field| depth_of_value(field, left - 1))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(media: &str, body: &[u8], depth: usize) -> Result<Value> {
        parse(media, body, depth, Purpose::Patch).map(|(value, _)| value)
    }

    #[test]
    fn deep_documents_are_refused() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read("application/json", nested(100).as_bytes(), 100).is_ok());
        assert!(
            read("application/json", nested(101).as_bytes(), 100)
                .unwrap_err()
                .message
                .contains("100 levels")
        );
        assert!(read("application/json", "[".repeat(1_000_000).as_bytes(), 100).is_err());
        assert!(read("application/yaml", "- ".repeat(5_000).as_bytes(), 100).is_err());
        assert!(read("application/yaml", "[".repeat(1_000_000).as_bytes(), 100).is_err());
        assert!(read("application/json", br#"{"a":"[[[[\"[["}"#, 1).is_ok());
    }

    #[test]
    fn yaml_and_json_are_read_alike() {
        let yaml = read(
            "application/apply-patch+yaml",
            b"kind: A\nmetadata: {name: x}\nn: 9007199254740993\n",
            100,
        )
        .unwrap();
        let json = read(
            "application/apply-patch+yaml",
            br#" {"kind":"A","metadata":{"name":"x"},"n":9007199254740993}"#,
            100,
        )
        .unwrap();
        assert_eq!(yaml, json);
    }

    #[test]
    fn other_forms_are_refused() {
        assert_eq!(read("application/cbor", b"", 100).unwrap_err().code, 415);
    }
}
