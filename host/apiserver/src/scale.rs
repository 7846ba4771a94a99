//! The `scale` subresource: replicas, whatever the kind.

use std::sync::Arc;

use configurator_schema::{FieldError, patch as patches};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::create::Recording;
use crate::object::{self, Live};
use crate::resource::{Resource, ScalePaths};
use crate::server::{Call, Inner, Reply};
use crate::status::{Result, Status};
use crate::update::{self, Part};
use crate::{document, read};

pub(crate) async fn answer(
    server: &Arc<Inner>,
    method: &Method,
    call: &Call,
    name: &str,
) -> Result<Reply> {
    let resource = &call.resource;
    let paths = resource.scale.as_ref().ok_or_else(Status::no_such_path)?;
    if *method == Method::GET {
        let target = call.target(name);
        let stored = read::one(server, resource, &target.namespace, name)?;
        return Reply::value(&scale_of(paths, &object::parse_stored(&stored)?));
    }
    if *method != Method::PUT && *method != Method::PATCH {
        return Err(Status::method_not_allowed());
    }
    let purpose = if *method == Method::PUT {
        document::Purpose::Object("Scale")
    } else {
        document::Purpose::Patch
    };
    let (document, _) = call.body_for(purpose)?;
    let outcome = server
        .commit(&call.target(name), call.query.dry_run, |live| {
            let live = live.ok_or_else(|| Status::not_found(resource, name))?;
            let scale = if *method == Method::PUT {
                document.clone()
            } else {
                patched(call, scale_of(paths, &live.value), &document)?
            };
            let wanted = scaled(resource, paths, live, &scale)?;
            update::change(server, call, live, wanted, Part::Scale, Recording::Update)
        })
        .await?;
    let body = scale_of(paths, &object::parse_stored(&outcome.object)?);
    Ok(Reply {
        code: StatusCode::OK,
        ..Reply::value(&body)?
    })
}

fn patched(call: &Call, mut scale: Value, patch: &Value) -> Result<Value> {
    match call.media.as_str() {
        "application/json-patch+json" => patches::json(&mut scale, patch)
            .map_err(|error| Status::bad_request(error.to_string()))?,
        // A Scale has no lists: the three agree on it.
        _ => patches::merge(&mut scale, patch),
    }
    Ok(scale)
}

/// The object with the replicas that the Scale asks for.
fn scaled(resource: &Resource, paths: &ScalePaths, live: &Live, scale: &Value) -> Result<Value> {
    let name = object::name(&live.value);
    let replicas = scale
        .pointer("/spec/replicas")
        .cloned()
        .unwrap_or_else(|| json!(0));
    if replicas
        .as_i64()
        .is_none_or(|replicas| !(0..=i64::from(i32::MAX)).contains(&replicas))
    {
        let error = FieldError::invalid(
            "spec.replicas",
            &replicas,
            "must be greater than or equal to 0",
        );
        return Err(Status::invalid_kind("autoscaling", "Scale", name, &[error]));
    }
    let mut wanted = live.value.clone();
    let (parent, field) = paths
        .spec_replicas
        .rsplit_once('/')
        .unwrap_or(("", &paths.spec_replicas));
    let mut place = &mut wanted;
    for segment in parent.split('/').filter(|segment| !segment.is_empty()) {
        object::child_mut(place, segment);
        place = place.get_mut(segment).ok_or_else(|| {
            Status::internal(format!("{} has no place for replicas", resource.kind))
        })?;
    }
    object::set_field(place, field, Some(replicas));
    for field in ["resourceVersion", "uid"] {
        let given = object::meta(scale, field);
        if !given.is_empty() {
            object::set_meta(&mut wanted, field, json!(given));
        }
    }
    Ok(wanted)
}

fn scale_of(paths: &ScalePaths, object: &Value) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        let value = object::meta(object, field);
        if !value.is_empty() {
            object::set_field(&mut metadata, field, Some(json!(value)));
        }
    }
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    if let Some(selector) = paths
        .selector
        .as_ref()
        .and_then(|pointer| object.pointer(pointer))
    {
        object::set_field(
            &mut status,
            "selector",
            Some(json!(selector_text(selector))),
        );
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": number(&paths.spec_replicas)}, "status": status,
    })
}

/// A selector as a client would write it in a query.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let mut parts = Vec::new();
    // A ReplicationController has a plain map where the others have a selector with two parts.
    let structured =
        selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let labels = if structured {
        selector.get("matchLabels")
    } else {
        Some(selector)
    };
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |field: &str| {
            expression
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match text("operator") {
            "In" => format!("{} in ({})", text("key"), values.join(",")),
            "NotIn" => format!("{} notin ({})", text("key"), values.join(",")),
            "DoesNotExist" => format!("!{}", text("key")),
            _ => text("key").to_owned(),
        });
    }
    parts.sort();
    parts.join(",")
}
