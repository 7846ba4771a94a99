//! The body of a whole object: for `create`, `replace` and `apply`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::Fields;
use super::{generated_name, precondition_fields};
use crate::request::{KubernetesRequest, api_version};
use crate::text::quoted;

/// The fields that say what an object is.
pub(super) const TYPE: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// The fields of `metadata` that say which one it is.
pub(super) const NAME: [&str; 3] = ["name", "namespace", "generateName"];

/// The body with what the request says of type and name filled in, where the body leaves it out.
///
/// # Errors
/// Where the body says something else.
pub(super) fn complete(request: &KubernetesRequest) -> Result<Arc<str>, String> {
    let body = request
        .body
        .as_ref()
        .ok_or_else(|| format!("`{}` needs `resource-body`", request.verb.name()))?;
    let fields = Fields::of(body.as_str(), "the body", &TYPE)?;
    let mut is_complete = request.precondition.is_none();
    let api_version = api_version(&request.group, &request.version);
    if request.subresource.is_none() {
        is_complete &= agrees(&fields, "apiVersion", &api_version)?;
        if !request.kind.is_empty() {
            is_complete &= agrees(&fields, "kind", &request.kind)?;
        }
    }
    let metadata = Fields::of(
        fields.get("metadata").unwrap_or("{}"),
        "the `metadata` of the body",
        &NAME,
    )?;
    is_complete &= agrees(&metadata, "name", &request.name)?;
    is_complete &= match request.namespace.as_str() {
        "" if metadata.get("namespace").is_none() => true,
        namespace => agrees(&metadata, "namespace", namespace)?,
    };
    check_generate_name(&metadata, request)?;
    if is_complete {
        return Ok(body.as_str().into());
    }
    let mut object = match body.to_value() {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    if request.subresource.is_none() {
        object.insert("apiVersion".into(), api_version.into());
        if !request.kind.is_empty() {
            object.insert("kind".into(), request.kind.as_str().into());
        }
    }
    let mut metadata = take_metadata(&mut object);
    metadata.insert("name".into(), request.name.as_str().into());
    if !request.namespace.is_empty() {
        metadata.insert("namespace".into(), request.namespace.as_str().into());
    }
    if let Some(precondition) = &request.precondition {
        for (field, value) in precondition_fields(precondition) {
            metadata.insert(field.into(), value);
        }
    }
    object.insert("metadata".into(), Value::Object(metadata));
    Ok(Value::Object(object).to_string().into())
}

/// Whether the field is there. An empty one is as good as none.
fn agrees(fields: &Fields<'_>, field: &str, wanted: &str) -> Result<bool, String> {
    let Some(text) = fields.get(field) else {
        return Ok(false);
    };
    if fields.is(field, wanted) {
        return Ok(true);
    }
    if fields.is(field, "") {
        return Ok(false);
    }
    Err(disagrees(field, text, wanted))
}

pub(super) fn disagrees(field: &str, text: &str, wanted: &str) -> String {
    format!(
        "the body has {} as `{field}`, and the request {wanted:?}",
        quoted(text.trim_matches('"'))
    )
}

/// A server that makes a name of it puts something behind it.
fn check_generate_name(metadata: &Fields<'_>, request: &KubernetesRequest) -> Result<(), String> {
    let Some(text) = metadata.get("generateName") else {
        return Ok(());
    };
    match metadata.string("generateName") {
        Some(prefix) if request.name.starts_with(generated_name::truncated(&prefix)) => Ok(()),
        _ => Err(disagrees("generateName", text, &request.name)),
    }
}

/// Takes the metadata out of an object; empty where it has none.
pub(super) fn take_metadata(object: &mut Map<String, Value>) -> Map<String, Value> {
    match object.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    }
}
