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
        other => return Err(unsupported(call, other)),
    };
    let document = document::parse(&call.media, &call.body, call.depth)?;
    if kind != Kind::Json && !document.is_object() {
        return Err(Status::bad_request(
            "error decoding patch: the patch must be an object",
        ));
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
        body: call.output.one(&call.resource, &outcome.object)?,
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
        Status::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("the server rejected our request due to an error in our request: {error}"),
        )
    };
    match kind {
        Kind::Merge => patches::merge(&mut object, patch),
        Kind::Json => patches::json(&mut object, patch).map_err(unprocessable)?,
        Kind::Strategic => {
            let schema = call
                .resource
                .schema()
                .ok_or_else(|| unsupported(call, &call.media))?;
            patches::strategic(&schema, &mut object, patch)
                .map_err(|error| Status::bad_request(error.to_string()))?;
        }
    }
    check_identity(call, live, &object)?;
    create::decode(call, object, warnings)
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

fn check_identity(call: &Call, live: &Live, object: &Value) -> Result<()> {
    let name = object::name(&live.value);
    if object::name(object) != name {
        let error = FieldError::invalid(
            "metadata.name",
            &json!(object::name(object)),
            "field is immutable",
        );
        return Err(Status::invalid(&call.resource, name, &[error]));
    }
    Ok(())
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
    let mut warnings = Vec::new();
    let mut config = create::decode_applied(
        call,
        document::parse(&call.media, &call.body, call.depth)?,
        &mut warnings,
    )?;
    match object::name(&config) {
        "" => object::set_meta(&mut config, "name", json!(name)),
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
    let schema = call
        .resource
        .schema()
        .ok_or_else(|| unsupported(call, &call.media))?;
    let api_version = call.resource.api_version();
    let outcome = server
        .commit(&call.target(name), call.query.dry_run, |live| {
            if live.is_none() && (part != Part::Main || !object::uid(&config).is_empty()) {
                return Err(Status::not_found(&call.resource, name));
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
            let mut wanted = apply::apply(request).map_err(refused)?;
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
                    if revision.is_some() {
                        return Err(Status::conflict(&call.resource, name, "the object does not exist any more; remove metadata.resourceVersion to create it"));
                    }
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
        body: call.output.one(&call.resource, &outcome.object)?,
        warnings,
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
                metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace"));
            }
        }
        Part::Main | Part::Finalize | Part::Scale => {}
    }
    config
}

fn refused(error: ApplyError) -> Status {
    match error {
        ApplyError::Malformed(why) => Status::bad_request(why),
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

fn unsupported(call: &Call, media: &str) -> Status {
    let mut accepted = vec![
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];
    if call.resource.custom.is_none() {
        accepted.push("application/strategic-merge-patch+json");
    }
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {} (not {media})",
        accepted.join(", ")
    ))
}
