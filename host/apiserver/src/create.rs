//! POST: a new object.

use std::sync::Arc;

use configurator_schema::managed::{self, Writer};
use configurator_schema::{FieldError, Reason, builtin_defaults, builtin_validate};
use http::StatusCode;
use serde_json::{Value, json};

use crate::document::drop_nulls;
use crate::object;
use crate::query::FieldValidation;
use crate::resource::Resource;
use crate::server::{Call, Inner, Reply};
use crate::status::{Result, Status};
use crate::update::{self, Part};
use crate::write::Next;
use crate::{admission, crd, event};

/// How many generated names are tried.
const NAMES: usize = 8;

pub(crate) async fn create(server: &Arc<Inner>, call: &Call) -> Result<Reply> {
    let mut warnings = Vec::new();
    let document = decode(call, call.document()?, &mut warnings)?;
    if call.resource.namespaced && call.path.namespace.is_none() {
        return Err(Status::bad_request(
            "an empty namespace may not be set during creation",
        ));
    }
    let name = object::name(&document).to_owned();
    let prefix = object::meta(&document, "generateName").to_owned();
    let generates = name.is_empty() && !prefix.is_empty();
    if generates {
        let errors = admission::generate_name_errors(&call.resource, &prefix);
        if !errors.is_empty() {
            return Err(Status::invalid(&call.resource, &prefix, &errors));
        }
    }
    for attempt in 1.. {
        let mut object = document.clone();
        let name = if generates {
            admission::generated_name(server, &prefix)
        } else {
            name.clone()
        };
        if generates {
            object::set_meta(&mut object, "name", json!(name));
        }
        match insert(server, call, object, &name, &mut warnings).await {
            Err(status) if generates && status.reason == "AlreadyExists" && attempt < NAMES => {}
            result => {
                let stored = result?;
                let body = call.output.one(&call.resource, &stored)?;
                return Ok(Reply {
                    code: StatusCode::CREATED,
                    body,
                    warnings,
                });
            }
        }
    }
    Err(Status::already_exists(&call.resource, &name))
}

async fn insert(
    server: &Arc<Inner>,
    call: &Call,
    object: Value,
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<bytes::Bytes> {
    let prepared = prepare(server, call, object, Recording::Update, warnings)?;
    let target = call.target(name);
    let outcome = server
        .commit(&target, call.query.dry_run, |live| match live {
            Some(_) => Err(Status::already_exists(&call.resource, name)),
            None => Ok(Next::Put(prepared.clone())),
        })
        .await?;
    Ok(outcome.object)
}

/// Who has already written down which fields the manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Nobody: this is a plain write.
    Update,
    /// Server-side apply has.
    Applied,
}

/// A new object as it is stored, from a decoded document.
pub(crate) fn prepare(
    server: &Inner,
    call: &Call,
    mut object: Value,
    recording: Recording,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let resource = &call.resource;
    if !object::meta(&object, "resourceVersion").is_empty() {
        return Err(Status::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let applied = object::metadata_mut(&mut object)
        .remove("managedFields")
        .filter(|_| recording == Recording::Applied);
    for field in [
        "resourceVersion",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        object::set_meta(&mut object, field, Value::Null);
    }
    object::set_meta(&mut object, "uid", json!(admission::new_uid(server)));
    object::set_meta(
        &mut object,
        "creationTimestamp",
        json!(update::timestamp(call.now())),
    );
    if resource.custom.is_some() || resource.rules.generation {
        object::set_meta(&mut object, "generation", json!(1));
    }
    admission::prepare_create(server, resource, &mut object)?;
    set_defaults(resource, &mut object);
    if &*resource.storage == crd::STORAGE {
        crd::prepare_create(server, &mut object, call.now());
    }
    let mut errors = admission::metadata_errors(resource, &object);
    errors.extend(validate(resource, &object, None));
    errors.extend(crd::validate(resource, &object, None));
    let mut seen = Vec::new();
    errors.retain(|error| {
        !seen.contains(error) && {
            seen.push(error.clone());
            true
        }
    });
    if !errors.is_empty() {
        let name = object::name(&object).to_owned();
        return Err(Status::invalid(resource, &name, &errors));
    }
    warnings.dedup();
    match applied {
        Some(fields) => object::set_meta(&mut object, "managedFields", fields),
        None => record(call, None, &mut object, Part::Main),
    }
    Ok(object)
}

/// Writes down which fields this request's manager owns now.
pub(crate) fn record(call: &Call, before: Option<&Value>, object: &mut Value, part: Part) {
    let Some(schema) = call.resource.schema() else {
        return;
    };
    let api_version = call.resource.api_version();
    let writer = Writer {
        manager: &call.manager,
        api_version: &api_version,
        subresource: part.subresource(),
        now: call.now(),
    };
    managed::record_update(&schema, before, object, writer);
}

pub(crate) fn set_defaults(resource: &Resource, object: &mut Value) {
    if let Some(custom) = &resource.custom {
        custom.schema.default(object);
    } else {
        // What is stored in another form has the defaults of that form.
        let version = if event::is_converted(resource) {
            ("", "v1")
        } else {
            (resource.group.as_str(), resource.version.as_str())
        };
        builtin_defaults(version.0, version.1, &resource.kind, object);
    }
}

pub(crate) fn validate(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    if let Some(custom) = &resource.custom {
        custom.schema.validate(object, old)
    } else if event::is_converted(resource) {
        builtin_validate("", "v1", "Event", object, old)
    } else {
        let mut errors = builtin_validate(
            &resource.group,
            &resource.version,
            &resource.kind,
            object,
            old,
        );
        // A definition's own finalizer has no slash, which the rules of the core group would refuse.
        errors.retain(|error| {
            &*resource.storage != crd::STORAGE || !error.path.starts_with("metadata.finalizers")
        });
        errors
    }
}

/// Reads a document as an object of the resource: kind, namespace, unknown fields and types.
pub(crate) fn decode(
    call: &Call,
    mut document: Value,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let resource = &call.resource;
    check_kind(resource, &mut document)?;
    check_namespace(call, &mut document)?;
    check_fields(call, &mut document, warnings)?;
    Ok(if event::is_converted(resource) {
        event::to_core_group(document)
    } else {
        document
    })
}

fn check_kind(resource: &Resource, document: &mut Value) -> Result<()> {
    if !document.is_object() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {})",
            resource.kind
        )));
    }
    let expected = resource.api_version();
    let field = |name: &str| {
        document
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (kind, api_version) = (field("kind"), field("apiVersion"));
    if resource.custom.is_some() && kind.is_empty() {
        return Err(Status::bad_request("Object 'Kind' is missing"));
    }
    if !kind.is_empty() && kind != resource.kind
        || !api_version.is_empty() && api_version != expected
    {
        return Err(if kind == resource.kind || kind.is_empty() {
            Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            ))
        } else {
            Status::bad_request(format!(
                "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for this path",
                version_of(&api_version),
                resource.kind
            ))
        });
    }
    object::set_field(document, "kind", Some(json!(resource.kind)));
    object::set_field(document, "apiVersion", Some(json!(expected)));
    match document.get("metadata") {
        None | Some(Value::Null) => object::set_field(document, "metadata", Some(json!({}))),
        Some(Value::Object(_)) => {}
        Some(_) => {
            return Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {0}: metadata must be an object",
                resource.kind, resource.version
            )));
        }
    }
    Ok(())
}

fn version_of(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or(api_version)
}

fn check_namespace(call: &Call, document: &mut Value) -> Result<()> {
    let given = object::meta(document, "namespace").to_owned();
    match &call.path.namespace {
        Some(namespace) if given.is_empty() => {
            object::set_meta(document, "namespace", json!(namespace))
        }
        Some(namespace) if *namespace != given => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Some(_) => {}
        None if !call.resource.namespaced && !given.is_empty() => {
            return Err(Status::bad_request(
                "namespace may not be set on cluster-scoped resources".to_owned(),
            ));
        }
        None => {}
    }
    Ok(())
}

/// Removes unknown fields, and says so as the request wants it; refuses values of a wrong type.
pub(crate) fn check_fields(
    call: &Call,
    document: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let resource = &call.resource;
    let Some(schema) = resource.schema() else {
        return Ok(());
    };
    let refuse = |why: String| {
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {0}: {why}",
            resource.kind, resource.version
        ))
    };
    if resource.custom.is_some() {
        if let Some(metadata) = document.get_mut("metadata") {
            drop_nulls(metadata);
        }
    } else {
        drop_nulls(document);
        let wrong: Vec<String> = schema
            .validate(document, None)
            .iter()
            .filter(|error| error.reason == Reason::TypeInvalid)
            .map(ToString::to_string)
            .collect();
        if !wrong.is_empty() {
            return Err(refuse(wrong.join(", ")));
        }
    }
    let unknown = schema.prune(document);
    if unknown.is_empty() {
        return Ok(());
    }
    match call.query.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            warnings.extend(unknown.iter().map(|path| format!("unknown field {path:?}")))
        }
        FieldValidation::Strict => {
            let list: Vec<String> = unknown
                .iter()
                .map(|path| format!("unknown field {path:?}"))
                .collect();
            return Err(refuse(format!(
                "strict decoding error: {}",
                list.join(", ")
            )));
        }
    }
    Ok(())
}

/// `pods/x/binding` and `pods/x/eviction`: how a scheduler places a Pod, and how a drain removes it.
pub(crate) async fn pod_subresource(
    server: &Arc<Inner>,
    call: &Call,
    name: &str,
    subresource: &str,
) -> Result<Reply> {
    let document = call.document()?;
    let target = call.target(name);
    let node = document
        .pointer("/target/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    server
        .commit(&target, call.query.dry_run, |live| {
            let live = live.ok_or_else(|| Status::not_found(&call.resource, name))?;
            if subresource == "eviction" {
                return Ok(crate::delete::deletion(
                    &call.resource,
                    &live.value,
                    call.now(),
                ));
            }
            let mut pod = live.value.clone();
            if !pod
                .pointer("/spec/nodeName")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty()
            {
                return Err(Status::conflict(
                    &call.resource,
                    name,
                    &format!("pod {name} is already assigned to a node"),
                ));
            }
            object::child_mut(&mut pod, "spec").insert("nodeName".to_owned(), json!(node));
            Ok(Next::Put(pod))
        })
        .await?;
    let mut reply = Reply::value(
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )?;
    reply.code = StatusCode::CREATED;
    Ok(reply)
}

/// Reads the configuration of an apply, which needs its kind and version.
pub(crate) fn decode_applied(
    call: &Call,
    document: Value,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    for field in ["apiVersion", "kind"] {
        if document
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            return Err(Status::bad_request(format!(
                "invalid object: Object '{field}' is missing"
            )));
        }
    }
    let mut document = document;
    check_kind(&call.resource, &mut document)?;
    check_namespace(call, &mut document)?;
    check_fields(call, &mut document, warnings)?;
    Ok(document)
}
