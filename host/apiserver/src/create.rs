//! POST: a new object.

use std::sync::Arc;

use configurator_schema::managed::{self, Writer};
use configurator_schema::{FieldError, Reason, builtin_defaults, builtin_validate};
use http::StatusCode;
use serde_json::{Value, json};

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
    if call.resource.namespaced && call.path.namespace.is_none() {
        return Err(Status::method_not_allowed());
    }
    let mut warnings = Vec::new();
    let (document, repeated) = call.document()?;
    let document = decode(call, document, repeated, &mut warnings)?;
    let name = object::name(&document).to_owned();
    let prefix = object::meta(&document, "generateName").to_owned();
    let generates = name.is_empty() && !prefix.is_empty();
    if generates {
        let mut errors = admission::generate_name_errors(&call.resource, &prefix);
        if !errors.is_empty() {
            let mut object = document;
            let name = admission::generated_name(server, &prefix);
            object::set_meta(&mut object, "name", json!(name));
            errors.extend(admission::metadata_errors(&call.resource, &object));
            return Err(Status::invalid(&call.resource, &name, &errors));
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
                    body: body.into(),
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
            Some(live) if object::is_terminating(&live.value) => {
                let mut status = Status::already_exists(&call.resource, name);
                status.message = format!("object is being deleted: {}", status.message);
                Err(status)
            }
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
        return Err(Status::unclassified(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let sent = object::metadata_mut(&mut object).remove("managedFields");
    let applied = match (recording, sent) {
        (Recording::Applied, fields) => fields,
        (Recording::Update, Some(fields)) => {
            object::set_meta(&mut object, "managedFields", fields);
            None
        }
        (Recording::Update, None) => None,
    };
    for field in [
        "resourceVersion",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
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
    // Nobody sets a status beside its subresource; those who report for a node do so when they register it.
    if resource.status && !resource.is("", "nodes") && &*resource.storage != crd::STORAGE {
        object::set_field(&mut object, "status", None);
    }
    admission::take_string_data(resource, &mut object);
    set_defaults(resource, &mut object);
    // What the server adds from here on is nobody's.
    match applied {
        Some(fields) => object::set_meta(&mut object, "managedFields", fields),
        None if recording == Recording::Update => record(call, None, &mut object, Part::Main),
        None => {}
    }
    admission::prepare_create(server, resource, &mut object)?;
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
    warnings.extend(admission::drop_repeated_owners(&mut object));
    warnings.dedup();
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
    if event::is_converted(&call.resource) {
        // Fields are owned under the names of the version that the client speaks.
        let before = before.map(|before| event::to_events_group(before.clone()));
        let mut shown = event::to_events_group(object.clone());
        managed::record_update(&schema, before.as_ref(), &mut shown, writer);
        let fields = shown.pointer("/metadata/managedFields").cloned();
        object::set_meta(object, "managedFields", fields.unwrap_or_default());
        return;
    }
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
        if old.is_none() && object.get("eventTime").is_none_or(Value::is_null) {
            return vec![FieldError::required("eventTime", "")];
        }
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
    repeated: Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let resource = &call.resource;
    check_kind(resource, &mut document)?;
    check_namespace(call, &mut document)?;
    check_fields(call, &mut document, repeated, warnings)?;
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
        let body = document.to_string();
        let why = format!("Object 'Kind' is missing in '{body}'");
        return Err(crate::document::unrecognized(
            &resource.kind,
            &why,
            body.as_bytes(),
        ));
    }
    if resource.custom.is_some() && api_version.is_empty() {
        return Err(Status::bad_request(format!(
            "the API version in the data () does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && kind != resource.kind
        || !api_version.is_empty() && api_version != expected
    {
        let version = version_of(if api_version.is_empty() {
            &expected
        } else {
            &api_version
        });
        let given = if kind.is_empty() {
            &resource.kind
        } else {
            &kind
        };
        let given_version = if api_version.is_empty() {
            &expected
        } else {
            &api_version
        };
        if resource.custom.is_some() {
            if kind == resource.kind {
                return Err(Status::bad_request(format!(
                    "the API version in the data ({api_version}) does not match the expected API version ({expected})"
                )));
            }
            let error =
                FieldError::invalid("kind", &json!(kind), format!("must be {}", resource.kind));
            let name = object::name(document);
            return Err(Status::invalid_kind(&resource.group, &kind, name, &[error]));
        }
        let group = |version: &str| {
            version
                .split_once('/')
                .map_or("core", |(group, _)| group)
                .split('.')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let why = if kinds_known(given_version, given) {
            format!(
                "converting ({version}.{given}) to ({}.{}): unknown conversion",
                group(&expected),
                resource.kind
            )
        } else {
            format!(
                "no kind {given:?} is registered for version {given_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        };
        return Err(Status::bad_request(format!(
            "{given} in version {version:?} cannot be handled as a {}: {why}",
            resource.kind
        )));
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

/// Where a text stops to be base64.
fn illegal_base64(value: &Value) -> Option<usize> {
    use base64::Engine as _;
    let text = value.as_str()?;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .err()?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    Some(
        text.bytes()
            .position(|byte| !is_legal(byte))
            .unwrap_or(text.len()),
    )
}

fn kinds_known(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    configurator_schema::builtin(group, version, kind).is_some()
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
        None if !call.resource.namespaced => object::set_meta(document, "namespace", Value::Null),
        None => {}
    }
    Ok(())
}

/// Removes unknown fields, and says so as the request wants it; refuses values of a wrong type.
pub(crate) fn check_fields(
    call: &Call,
    document: &mut Value,
    repeated: Vec<String>,
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
            configurator_schema::canonicalize_metadata(metadata);
        }
    } else {
        schema.canonicalize(document);
        if let Some(why) = schema.unmarshal_fault(document) {
            return Err(refuse(why));
        }
        let wrong: Vec<String> = schema
            .validate(document, None)
            .iter()
            .filter(|error| error.reason == Reason::TypeInvalid)
            .map(ToString::to_string)
            .collect();
        if !wrong.is_empty() {
            return Err(refuse(wrong.join(", ")));
        }
        for field in ["data", "binaryData"] {
            if (resource.is("", "secrets")
                || field == "binaryData" && resource.is("", "configmaps"))
                && let Some(data) = document.get(field).and_then(Value::as_object)
                && let Some(at) = data.values().find_map(illegal_base64)
            {
                return Err(refuse(format!("illegal base64 data at input byte {at}")));
            }
        }
    }
    let told: Vec<String> = repeated
        .iter()
        .map(|path| format!("duplicate field {path:?}"))
        .chain(
            schema
                .prune(document)
                .iter()
                .map(|path| format!("unknown field {path:?}")),
        )
        .collect();
    match call.query.field_validation {
        _ if told.is_empty() => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(told),
        FieldValidation::Strict => {
            return Err(refuse(format!(
                "strict decoding error: {}",
                told.join(", ")
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
    let (document, _) = call.document()?;
    let target = call.target(name);
    if subresource == "binding" && object::text(&document, "/target/name").is_empty() {
        return Err(Status::unclassified("target.name: Required value"));
    }
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
                let why = format!("pod {name} is already assigned to node {:?}", object::text(&pod, "/spec/nodeName"));
                let mut status = Status::conflict(&call.resource, name, &why);
                status.message = status.message.replacen("on pods", "on pods/binding", 1);
                status.details = Some(json!({"name": name, "kind": "pods/binding"}));
                return Err(status);
            }
            object::child_mut(&mut pod, "spec").insert("nodeName".to_owned(), json!(node));
            let scheduled = json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": update::timestamp(call.now())
            });
            let status = object::child_mut(&mut pod, "status");
            let conditions = status.entry("conditions").or_insert_with(|| json!([]));
            if let Value::Array(conditions) = conditions {
                conditions.retain(|have| have.get("type") != Some(&json!("PodScheduled")));
                conditions.push(scheduled);
            }
            Ok(Next::Put(pod))
        })
        .await?;
    let mut reply = Reply::value(
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )?;
    reply.code = StatusCode::CREATED;
    Ok(reply)
}

/// Reads the configuration of an apply, which needs its kind and version. Its fields are held to the schema later.
pub(crate) fn decode_applied(call: &Call, mut document: Value) -> Result<Value> {
    let resource = &call.resource;
    let text = |field: &str| {
        document
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("kind") != resource.kind || text("apiVersion") != resource.api_version() {
        let version = match text("apiVersion") {
            "" => "/".to_owned(),
            core if !core.contains('/') => format!("/{core}"),
            other => other.to_owned(),
        };
        return Err(Status::bad_request(format!(
            "invalid object type: {version}, Kind={}",
            text("kind")
        )));
    }
    check_namespace(call, &mut document)?;
    if resource.custom.is_some()
        && let Some(metadata) = document.get_mut("metadata")
    {
        configurator_schema::canonicalize_metadata(metadata);
    }
    Ok(document)
}
