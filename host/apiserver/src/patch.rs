//! PATCH: merge, JSON, strategic and apply.

use std::sync::Arc;

use configurator_schema::apply::{self, ApplyError, ApplyRequest};
use configurator_schema::managed::Writer;
use configurator_schema::{FieldError, patch as patches};
use http::StatusCode;
use serde_json::{Value, json};

use crate::create::{self, Recording};
use crate::object::{self, Live};
use crate::server::{Call, Inner, Reply};
use crate::status::{Result, Status};
use crate::update::{self, Part};
use crate::write::Next;
use crate::{document, event};

pub(crate) async fn patch(
    server: &Arc<Inner>,
    call: &Call,
    name: &str,
    part: Part,
) -> Result<Reply> {
    let kind = match call.media.as_str() {
        "application/merge-patch+json" => Kind::Merge,
        "application/json-patch+json" => Kind::Json,
        "application/strategic-merge-patch+json" if call.resource.custom.is_none() => {
            Kind::Strategic
        }
        "application/apply-patch+yaml" => return apply(server, call, name, part).await,
        _ => return Err(unsupported(call)),
    };
    let (document, _) = call.body_for(if kind == Kind::Strategic {
        document::Purpose::StrategicPatch
    } else {
        document::Purpose::Patch
    })?;
    if call.query.force.is_some() {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(Status::invalid_kind(
            "meta.k8s.io",
            "PatchOptions",
            "",
            &[error],
        ));
    }
    if kind != Kind::Json && !document.is_object() {
        let prefix = if kind == Kind::Merge {
            "error decoding patch: "
        } else {
            ""
        };
        return Err(Status::bad_request(format!(
            "{prefix}json: cannot unmarshal array into Go value of type map[string]interface {{}}"
        )));
    }
    let warnings = std::sync::Mutex::new(Vec::new());
    let outcome = server
        .commit(&call.target(name), call.query.dry_run, |live| {
            let live = live.ok_or_else(|| Status::not_found(&call.resource, name))?;
            let mut found = Vec::new();
            let wanted = patched(call, live, kind, &document, &mut found)?;
            *warnings
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = found;
            update::change(server, call, live, wanted, part, Recording::Update)
        })
        .await?;
    let warnings = warnings
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Reply {
        code: StatusCode::OK,
        body: call.output.one(&call.resource, &outcome.object)?.into(),
        warnings,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Merge,
    Json,
    Strategic,
}

fn patched(
    call: &Call,
    live: &Live,
    kind: Kind,
    patch: &Value,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let mut object = as_served(call, &live.value);
    let unprocessable = |error: patches::PatchError| {
        if !patch.is_array() {
            return Status::bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            );
        }
        tracing::debug!("a JSON patch is refused: {error}");
        let mut status = Status::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
        status.details = Some(json!({}));
        status
    };
    match kind {
        Kind::Merge => patches::merge(&mut object, patch),
        Kind::Json => patches::json(&mut object, patch).map_err(unprocessable)?,
        Kind::Strategic => {
            let schema = call.resource.schema().ok_or_else(|| unsupported(call))?;
            patches::strategic(&schema, &mut object, patch)
                .map_err(|error| Status::unclassified(error.to_string()))?;
        }
    }
    check_identity(live, &object)?;
    let shown = match kind {
        Kind::Strategic => configurator_schema::field_error::in_go(patch),
        Kind::Merge | Kind::Json if call.resource.custom.is_some() => object.to_string(),
        Kind::Merge | Kind::Json => in_order(&object),
    };
    create::decode(call, object, Vec::new(), warnings)
        .map_err(|status| in_patch(call, &shown, status))
}

/// That a patched object cannot be read is a fault of the patch.
fn in_patch(call: &Call, shown: &str, status: Status) -> Status {
    let why = status
        .message
        .split_once(" cannot be handled as a ")
        .and_then(|(_, rest)| rest.strip_prefix(call.resource.kind.as_str()))
        .and_then(|rest| rest.strip_prefix(": "));
    match why {
        Some(why) => {
            let error = FieldError::invalid("patch", &json!(shown), why);
            Status::invalid_kind("", "", "", &[error])
        }
        None => status,
    }
}

/// An object as a Kubernetes server writes it, whose metadata are in the order of their declaration.
fn in_order(object: &Value) -> String {
    const METADATA: [&str; 15] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    const MANAGER: [&str; 7] = [
        "manager",
        "operation",
        "apiVersion",
        "time",
        "fieldsType",
        "fieldsV1",
        "subresource",
    ];
    let ordered = |map: &serde_json::Map<String, Value>,
                   names: &[&str],
                   inner: &dyn Fn(&str, &Value) -> String| {
        let known = names
            .iter()
            .filter_map(|name| Some((*name, map.get(*name)?)));
        let others = map
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()));
        let fields: Vec<String> = known
            .chain(others.map(|(name, value)| (name.as_str(), value)))
            .map(|(name, value)| format!("{}:{}", json!(name), inner(name, value)))
            .collect();
        format!("{{{}}}", fields.join(","))
    };
    let plain = |_: &str, value: &Value| value.to_string();
    let in_metadata = |name: &str, value: &Value| match value {
        Value::Array(entries) if name == "managedFields" => {
            let entries: Vec<String> = entries
                .iter()
                .map(|entry| match entry {
                    Value::Object(entry) => ordered(entry, &MANAGER, &plain),
                    other => other.to_string(),
                })
                .collect();
            format!("[{}]", entries.join(","))
        }
        other => other.to_string(),
    };
    let in_object = |name: &str, value: &Value| match value {
        Value::Object(metadata) if name == "metadata" => ordered(metadata, &METADATA, &in_metadata),
        other => other.to_string(),
    };
    match object {
        Value::Object(map) => ordered(map, &[], &in_object),
        other => other.to_string(),
    }
}

/// The stored object in the version of the request.
fn as_served(call: &Call, stored: &Value) -> Value {
    let mut object = if event::is_converted(&call.resource) {
        event::to_events_group(stored.clone())
    } else {
        stored.clone()
    };
    object::set_field(
        &mut object,
        "apiVersion",
        Some(json!(call.resource.api_version())),
    );
    object
}

fn check_identity(live: &Live, object: &Value) -> Result<()> {
    let name = object::name(&live.value);
    match object::name(object) {
        given if given == name => Ok(()),
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        given => Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
    }
}

/// Server-side apply: the body is everything that this manager wants.
async fn apply(server: &Arc<Inner>, call: &Call, name: &str, part: Part) -> Result<Reply> {
    if call.query.field_manager.is_none() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(Status::invalid_kind(
            "meta.k8s.io",
            "PatchOptions",
            "",
            &[error],
        ));
    }
    let (document, _) = call.body_for(document::Purpose::Object(&call.resource.kind))?;
    let what = format!(
        "{}/{}",
        object::meta(&document, "namespace"),
        object::name(&document)
    );
    let config = create::decode_applied(call, document)?;
    match object::name(&config) {
        "" => {
            return Err(Status::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        given if given != name => {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        _ => {}
    }
    if config
        .pointer("/metadata/managedFields")
        .is_some_and(|fields| !fields.is_null() && *fields != json!([]))
    {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let schema = call.resource.schema().ok_or_else(|| unsupported(call))?;
    let api_version = call.resource.api_version();
    let outcome = server
        .commit(&call.target(name), call.query.dry_run, |live| {
            if live.is_none() && part != Part::Main {
                return Err(Status::not_found(&call.resource, name));
            }
            if live.is_none() && !object::uid(&config).is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    object::uid(&config)
                );
                return Err(Status::conflict(&call.resource, name, &why));
            }
            let served = live.map(|live| as_served(call, &live.value));
            let mut config = config.clone();
            let revision = object::metadata_mut(&mut config).remove("resourceVersion");
            let request = ApplyRequest {
                schema: &schema,
                live: served.as_ref(),
                config: only_part(call, config, part),
                writer: Writer { manager: &call.manager, api_version: &api_version, subresource: part.subresource(), now: call.now() },
                force: call.query.force.unwrap_or(false),
            };
            let mut wanted = apply::apply(request).map_err(|error| refused(call, &what, error))?;
            if event::is_converted(&call.resource) {
                wanted = event::to_core_group(wanted);
            }
            match live {
                Some(live) => {
                    if let Some(Value::String(revision)) = revision {
                        object::set_meta(&mut wanted, "resourceVersion", json!(revision));
                    }
                    update::change(server, call, live, wanted, part, Recording::Applied)
                }
                None => {
                    create::prepare(server, call, wanted, Recording::Applied, &mut Vec::new()).map(Next::Put)
                }
            }
        })
        .await?;
    let code = if outcome.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(Reply {
        code,
        body: call.output.one(&call.resource, &outcome.object)?.into(),
        warnings: Vec::new(),
    })
}

/// Through the main path nobody applies a status, and through the status path nothing else.
fn only_part(call: &Call, mut config: Value, part: Part) -> Value {
    match part {
        Part::Main if call.resource.status => object::set_field(&mut config, "status", None),
        Part::Status => {
            if let Value::Object(fields) = &mut config {
                fields.retain(|key, _| {
                    matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status")
                });
            }
            if let Some(Value::Object(metadata)) = config.get_mut("metadata") {
                metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "uid"));
            }
        }
        Part::Main | Part::Finalize | Part::Scale => {}
    }
    config
}

fn refused(call: &Call, what: &str, error: ApplyError) -> Status {
    match error {
        ApplyError::Malformed(why) => Status::unclassified(format!(
            "failed to create typed patch object ({what}; {}, Kind={}): {why}",
            call.resource.group_version(),
            call.resource.kind
        )),
        ApplyError::Conflicts(conflicts) => {
            let message = conflicts.to_string();
            let mut status = Status::new(StatusCode::CONFLICT, "Conflict", message);
            let causes: Vec<Value> = conflicts
                .0
                .iter()
                .map(|conflict| json!({"reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field}))
                .collect();
            status.details = Some(json!({"causes": causes}));
            status
        }
    }
}

fn unsupported(call: &Call) -> Status {
    if call.resource.custom.is_some() {
        return Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
             application/merge-patch+json, application/apply-patch+yaml",
        );
    }
    let mut status = Status::unsupported_media_type("415: Unsupported Media Type");
    status.details = Some(json!({}));
    status
}
