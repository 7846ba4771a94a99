//! The body of a patch, which may change anything but what object it is of.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::{NAME, TYPE, disagrees, take_metadata};
use super::fields::{Fields, folded};
use super::precondition_fields;
use crate::request::{KubernetesRequest, PatchType, api_version};
use crate::text::quoted;

/// Directives of a strategic merge patch that replace or delete what they stand in.
const DIRECTIVES: [&str; 2] = ["$patch", "$retainKeys"];

/// The body of a patch, with the preconditions in the form that its type has for them.
///
/// # Errors
/// Where it does not have the form of its type, or touches `apiVersion`, `kind`, or the name.
pub(super) fn checked(request: &KubernetesRequest) -> Result<Arc<str>, String> {
    let body = request
        .body
        .as_ref()
        .ok_or_else(|| "`patch` needs `resource-body`".to_owned())?;
    match request.patch_type {
        PatchType::Json => operations(body.as_str(), request),
        PatchType::Merge | PatchType::Strategic => merge(body.as_str(), request),
    }
}

fn merge(body: &str, request: &KubernetesRequest) -> Result<Arc<str>, String> {
    let fields = Fields::of(body, "the patch", &TYPE)?;
    let metadata = fields.raw("metadata").unwrap_or("{}");
    let metadata = Fields::of(metadata, "the `metadata` of the patch", &NAME)?;
    if request.patch_type == PatchType::Strategic {
        let mut names = fields.names().chain(metadata.names());
        if let Some(directive) = names.find(|name| DIRECTIVES.contains(name)) {
            return Err(format!(
                "the patch has `{directive}` where it touches what object it is of"
            ));
        }
    }
    let api_version = api_version(&request.group, &request.version);
    // Of a subresource, the type is its own.
    if request.subresource.is_none() {
        unchanged(&fields, "apiVersion", &api_version)?;
        unchanged(&fields, "kind", &request.kind)?;
    }
    unchanged(&metadata, "name", &request.name)?;
    unchanged(&metadata, "namespace", &request.namespace)?;
    if metadata.raw("generateName").is_some() {
        return Err("the patch changes `generateName`".to_owned());
    }
    let Some(precondition) = &request.precondition else {
        return Ok(body.into());
    };
    let mut object = match serde_json::from_str(body) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let mut metadata = take_metadata(&mut object);
    for (field, value) in precondition_fields(precondition) {
        metadata.insert(field.into(), value);
    }
    object.insert("metadata".into(), Value::Object(metadata));
    Ok(Value::Object(object).to_string().into())
}

/// The field is left out, or is what it is already.
fn unchanged(fields: &Fields<'_>, field: &str, wanted: &str) -> Result<(), String> {
    match fields.raw(field) {
        None => Ok(()),
        Some(_) if fields.is(field, wanted) && !wanted.is_empty() => Ok(()),
        Some(text) => Err(disagrees(field, text, wanted)),
    }
}

/// One operation of a JSON Patch (RFC 6902).
#[derive(Deserialize, Serialize)]
struct PatchOperation<'a> {
    op: Operator,
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    from: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    value: Option<&'a RawValue>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Operator {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

fn operations(body: &str, request: &KubernetesRequest) -> Result<Arc<str>, String> {
    let sent: Vec<PatchOperation<'_>> = serde_json::from_str(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("the body is not a JSON Patch (RFC 6902): line {line}, column {column}")
    })?;
    for operation in &sent {
        // A move takes away what it moves.
        let written = match operation.op {
            Operator::Test => [None, None],
            Operator::Move => [Some(&operation.path), operation.from.as_ref()],
            Operator::Add | Operator::Remove | Operator::Replace | Operator::Copy => {
                [Some(&operation.path), None]
            }
        };
        for pointer in [Some(&operation.path), operation.from.as_ref()]
            .into_iter()
            .flatten()
        {
            // Some servers ignore what stands before the first slash.
            if !pointer.is_empty() && !pointer.starts_with('/') {
                return Err(format!(
                    "the patch has a path without a slash at its beginning: {}",
                    quoted(pointer)
                ));
            }
        }
        for pointer in written.into_iter().flatten() {
            if is_identity(pointer) {
                return Err(format!(
                    "the patch changes {}, and with it what object it is of",
                    quoted(pointer)
                ));
            }
        }
    }
    let tests: Vec<(String, Box<RawValue>)> = request
        .precondition
        .iter()
        .flat_map(precondition_fields)
        .filter_map(|(field, value)| {
            let value = RawValue::from_string(value.to_string()).ok()?;
            Some((format!("/metadata/{field}"), value))
        })
        .collect();
    let tests = tests.iter().map(|(path, value)| PatchOperation {
        op: Operator::Test,
        path: Cow::Borrowed(path),
        from: None,
        value: Some(value),
    });
    let all: Vec<PatchOperation<'_>> = tests.chain(sent).collect();
    serde_json::to_string(&all)
        .map(Into::into)
        .map_err(|error| format!("the patch cannot be written: {error}"))
}

/// Whether a pointer names what the object is, or something that holds it.
fn is_identity(pointer: &str) -> bool {
    let mut tokens = pointer
        .split('/')
        .skip(1)
        .map(|token| folded(&token.replace("~1", "/").replace("~0", "~")));
    let is_any =
        |names: &[&str], token: &str| names.iter().any(|name| name.eq_ignore_ascii_case(token));
    match (tokens.next(), tokens.next()) {
        (None, _) => true,
        (Some(first), None) => is_any(&TYPE, &first),
        (Some(first), Some(second)) => match first.as_str() {
            "metadata" => is_any(&NAME, &second),
            _ => is_any(&["apiVersion", "kind"], &first),
        },
    }
}
