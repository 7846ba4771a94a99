//! PUT: an object replaced, or one part of it; and the rules that every change of an object follows.

use std::sync::Arc;

use configurator_schema::FieldError;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::create::{self, Recording};
use crate::object::{self, Live};
use crate::resource::Resource;
use crate::server::{Call, Inner, Reply};
use crate::status::{Result, Status};
use crate::write::Next;
use crate::{admission, crd};

/// The part of an object that a request may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    /// Of a namespace: its own finalizers.
    Finalize,
    Scale,
}

impl Part {
    /// The name under which managed fields know it.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Scale => "scale",
        }
    }
}

pub(crate) async fn replace(
    server: &Arc<Inner>,
    call: &Call,
    name: &str,
    part: Part,
) -> Result<Reply> {
    let mut warnings = Vec::new();
    let (document, repeated) = call.document()?;
    let document = create::decode(call, document, repeated, &mut warnings)?;
    match object::name(&document) {
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
    let creates = call.resource.rules.create_on_update && part == Part::Main;
    let outcome = server
        .commit(&call.target(name), call.query.dry_run, |live| match live {
            Some(live) => {
                let revision = object::meta(&document, "resourceVersion");
                if revision.is_empty()
                    && (call.resource.custom.is_some() || !call.resource.rules.unconditional_update)
                {
                    let error = FieldError::invalid(
                        "metadata.resourceVersion",
                        &json!(0),
                        "must be specified for an update",
                    );
                    // Of a custom kind a Kubernetes server tells the resource instead.
                    let kind = match &call.resource.custom {
                        Some(_) => &call.resource.plural,
                        None => &call.resource.kind,
                    };
                    return Err(Status::invalid_kind(
                        &call.resource.group,
                        kind,
                        name,
                        &[error],
                    ));
                }
                change(
                    server,
                    call,
                    live,
                    document.clone(),
                    part,
                    Recording::Update,
                )
            }
            None if creates && object::meta(&document, "resourceVersion").is_empty() => {
                create::prepare(
                    server,
                    call,
                    document.clone(),
                    Recording::Update,
                    &mut Vec::new(),
                )
                .map(Next::Put)
            }
            None => Err(Status::not_found(&call.resource, name)),
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
        warnings,
    })
}

/// What becomes of a stored object when a request wants it to be `wanted`.
///
/// `wanted` is a whole object, of which only `part` counts. Nothing is written if nothing but the times of managed fields would change.
pub(crate) fn change(
    server: &Inner,
    call: &Call,
    live: &Live,
    mut wanted: Value,
    part: Part,
    recording: Recording,
) -> Result<Next> {
    let resource = &call.resource;
    let old = &live.value;
    let name = object::name(old);
    let revision = object::meta(&wanted, "resourceVersion");
    if !revision.is_empty() && revision != object::meta(old, "resourceVersion") {
        return Err(Status::modified(resource, name));
    }
    let uid = object::uid(&wanted);
    if !uid.is_empty() && uid != object::uid(old) {
        return Err(if call.is_patch {
            let error = FieldError::invalid("metadata.uid", &json!(uid), "field is immutable");
            Status::invalid(resource, name, &[error.clone(), error])
        } else {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
                 UID in precondition: {uid}, UID in object meta: {}",
                registry_key(call, name),
                object::uid(old)
            );
            Status::conflict(resource, name, &why)
        });
    }
    let applied = (recording == Recording::Applied)
        .then(|| managed_fields(&wanted).cloned())
        .flatten();
    let cleared = recording == Recording::Update
        && managed_fields(&wanted)
            .and_then(Value::as_array)
            .is_some_and(|list| {
                list.is_empty() || list.len() == 1 && list.iter().all(|entry| *entry == json!({}))
            });
    let sent = managed_fields(&wanted).cloned().unwrap_or_default();
    wanted = keep_other_parts(resource, old, wanted, part);
    // What only the server says.
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "managedFields",
        "name",
        "namespace",
    ] {
        let kept = old
            .get("metadata")
            .and_then(|metadata| metadata.get(field))
            .cloned()
            .unwrap_or(Value::Null);
        object::set_meta(&mut wanted, field, kept);
    }
    object::set_meta(&mut wanted, "selfLink", Value::Null);
    if part == Part::Main || part == Part::Scale {
        admission::prepare_update(server, resource, old, &mut wanted)?;
    }
    create::set_defaults(resource, &mut wanted);
    if &*resource.storage == crd::STORAGE {
        crd::prepare_update(server, old, &mut wanted, call.now());
    }
    if object::is_terminating(old) {
        refuse_new_finalizers(resource, old, &wanted)?;
    }
    let mut errors = admission::metadata_errors(resource, &wanted);
    errors.extend(create::validate(resource, &wanted, Some(old)));
    errors.extend(crd::validate(resource, &wanted, Some(old)));
    let mut seen = Vec::new();
    errors.retain(|error| {
        !seen.contains(error) && {
            seen.push(error.clone());
            true
        }
    });
    if !errors.is_empty() {
        return Err(Status::invalid(resource, name, &errors));
    }
    if (resource.custom.is_some() || resource.rules.generation)
        && generation_counts(resource, old, &wanted, part)
    {
        let generation = old
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        object::set_meta(&mut wanted, "generation", json!(generation + 1));
    }
    if cleared {
        object::set_meta(&mut wanted, "managedFields", Value::Null);
    } else if let Some(fields) = applied {
        object::set_meta(&mut wanted, "managedFields", fields);
    } else if recording == Recording::Update {
        if part == Part::Main && sent.as_array().is_some_and(|list| !list.is_empty()) {
            object::set_meta(&mut wanted, "managedFields", sent);
        }
        create::record(call, Some(old), &mut wanted, part);
    } else {
        object::set_meta(&mut wanted, "managedFields", Value::Null);
    }
    if same_but_times(old, &wanted) {
        return Ok(Next::Keep);
    }
    Ok(settle(resource, wanted))
}

/// Where a Kubernetes server keeps the object.
fn registry_key(call: &Call, name: &str) -> String {
    let resource = &call.resource;
    let group = match &resource.custom {
        Some(_) => format!("{}/", resource.group),
        None => String::new(),
    };
    let namespace = match &call.path.namespace {
        Some(namespace) => format!("{namespace}/"),
        None => String::new(),
    };
    format!("/registry/{group}{}/{namespace}{name}", resource.plural)
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/managedFields")
}

/// An object that is being deleted goes when nothing holds it any more.
pub(crate) fn settle(resource: &Resource, object: Value) -> Next {
    let held_by_namespace = resource.is("", "namespaces")
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|finalizers| !finalizers.is_empty());
    if object::is_terminating(&object) && !object::has_finalizers(&object) && !held_by_namespace {
        Next::Finish(object)
    } else {
        Next::Put(object)
    }
}

/// The stored object with the requested part of the wanted one.
fn keep_other_parts(resource: &Resource, old: &Value, wanted: Value, part: Part) -> Value {
    match part {
        Part::Main => {
            let mut merged = wanted;
            if resource.status {
                object::set_field(&mut merged, "status", old.get("status").cloned());
            }
            merged
        }
        Part::Status => {
            let mut merged = old.clone();
            object::set_field(&mut merged, "status", wanted.get("status").cloned());
            // Of a built-in kind, labels, annotations and finalizers may go along with the status.
            if resource.custom.is_none()
                && let Some(Value::Object(metadata)) = wanted.get("metadata")
            {
                for field in ["labels", "annotations", "finalizers"] {
                    if field == "labels" && resource.is("apps", "deployments") {
                        continue;
                    }
                    object::set_meta(
                        &mut merged,
                        field,
                        metadata.get(field).cloned().unwrap_or(Value::Null),
                    );
                }
            }
            merged
        }
        Part::Finalize => {
            let mut merged = old.clone();
            let finalizers = wanted
                .pointer("/spec/finalizers")
                .cloned()
                .unwrap_or_else(|| json!([]));
            object::child_mut(&mut merged, "spec").insert("finalizers".to_owned(), finalizers);
            merged
        }
        Part::Scale => wanted,
    }
}

fn refuse_new_finalizers(resource: &Resource, old: &Value, wanted: &Value) -> Result<()> {
    let added: Vec<&str> = object::finalizers(wanted)
        .filter(|new| object::finalizers(old).all(|old| old != *new))
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added
            .iter()
            .map(|f| format!("{f:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    // A Kubernetes server finds this twice, and says so in the causes.
    let error = FieldError::forbidden("metadata.finalizers", &why);
    Err(Status::invalid(
        resource,
        object::name(old),
        &[error.clone(), error],
    ))
}

/// Whether a change is one of what is wanted, not of what is seen or of what is noted about the object.
fn generation_counts(resource: &Resource, old: &Value, new: &Value, part: Part) -> bool {
    let empty = serde_json::Map::new();
    let (old, new) = (
        old.as_object().unwrap_or(&empty),
        new.as_object().unwrap_or(&empty),
    );
    let counts = |key: &str| {
        !(matches!(key, "apiVersion" | "kind" | "metadata") || key == "status" && resource.status)
    };
    let annotations = |object: &serde_json::Map<String, Value>| {
        let metadata = object.get("metadata")?.get("annotations").cloned()?;
        Some(metadata).filter(|map| *map != json!({}))
    };
    // Those of a Deployment go to its ReplicaSets.
    if resource.is("apps", "deployments")
        && part != Part::Status
        && annotations(old) != annotations(new)
    {
        return true;
    }
    old.iter()
        .any(|(key, value)| counts(key) && new.get(key) != Some(value))
        || new.keys().any(|key| counts(key) && !old.contains_key(key))
}

/// Whether two objects differ at most in when their managed fields were written, and in the version they were written through.
fn same_but_times(old: &Value, new: &Value) -> bool {
    let empty = serde_json::Map::new();
    let (old, new) = (
        old.as_object().unwrap_or(&empty),
        new.as_object().unwrap_or(&empty),
    );
    let metadata = |object: &serde_json::Map<String, Value>| {
        object
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let fields = |map: &serde_json::Map<String, Value>| -> Vec<(String, Value)> {
        map.iter()
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "metadata"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let same_fields = old.len() == new.len()
        && old.iter().all(|(key, value)| {
            matches!(key.as_str(), "apiVersion" | "metadata") || new.get(key) == Some(value)
        });
    if !same_fields && fields(old) != fields(new) {
        return false;
    }
    let (mut old, mut new) = (metadata(old), metadata(new));
    let without_times = |fields: Option<Value>| {
        let mut entries = fields
            .and_then(|fields| {
                if let Value::Array(entries) = fields {
                    Some(entries)
                } else {
                    None
                }
            })
            .unwrap_or_default();
        for entry in &mut entries {
            object::set_field(entry, "time", None);
        }
        entries
    };
    without_times(old.remove("managedFields")) == without_times(new.remove("managedFields"))
        && old == new
}

/// A time as the API writes it: whole seconds.
pub(crate) fn timestamp(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}
