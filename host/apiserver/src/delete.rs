//! DELETE: one object, or all that are selected.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::output::ListMeta;
use crate::query::Query;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::server::{Call, Inner, Reply};
use crate::status::{Result, Status};
use crate::update::{settle, timestamp};
use crate::write::{Next, Outcome, Target};
use crate::{document, keys, object, read};

/// What a client may say about a deletion, in the body or as parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeleteOptions {
    preconditions: Preconditions,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    dry_run: Vec<String>,
    grace_period_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// What becomes of the objects that this one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    /// None was asked for: what an earlier deletion asked for stays.
    Unstated,
    /// `orphanDependents: false`: as before, but dependents are not let go.
    NotOrphan,
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    /// Returns the finalizers that an object has after a deletion.
    fn finalizers(&self, live: &Value) -> Vec<String> {
        let (removed, added): (&[&str], _) = match self {
            Self::Unstated => (&[], None),
            Self::NotOrphan => (&[ORPHAN], None),
            Self::Background => (&[ORPHAN, FOREGROUND], None),
            Self::Foreground => (&[ORPHAN], Some(FOREGROUND)),
            Self::Orphan => (&[FOREGROUND], Some(ORPHAN)),
        };
        let kept = object::finalizers(live).filter(|finalizer| !removed.contains(finalizer));
        let mut finalizers: Vec<String> = kept.map(str::to_owned).collect();
        if let Some(added) = added
            && !finalizers.iter().any(|finalizer| finalizer == added)
        {
            finalizers.push(added.to_owned());
        }
        finalizers
    }
}

/// While it is there, the object waits for its dependents to go.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// While it is there, the object waits for its dependents to be let go.
pub(crate) const ORPHAN: &str = "orphan";

struct Deletion {
    preconditions: Preconditions,
    propagation: Propagation,
    dry_run: bool,
}

impl Deletion {
    fn of(call: &Call) -> Result<Self> {
        let options: DeleteOptions = if call.body.is_empty() {
            DeleteOptions::default()
        } else {
            let (value, _) = call.body_for(document::Purpose::Options)?;
            let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
            if !matches!(text("kind"), "" | "DeleteOptions") {
                return Err(Status::bad_request(format!(
                    "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
                    text("kind"),
                    text("apiVersion")
                )));
            }
            serde_json::from_value(value).map_err(|error| {
                Status::bad_request(format!("the body is no DeleteOptions: {error}"))
            })?
        };
        let Query {
            propagation_policy,
            orphan_dependents,
            dry_run,
            grace_period_seconds,
            ..
        } = &call.query;
        // Nothing here takes its time: no Pod runs.
        let _ = grace_period_seconds;
        if let Some(other) = options.dry_run.iter().find(|value| *value != "All") {
            let error =
                configurator_schema::FieldError::not_supported("dryRun", &json!([other]), ["All"]);
            return Err(Status::invalid_kind(
                "meta.k8s.io",
                "DeleteOptions",
                "",
                &[error],
            ));
        }
        let policy = options
            .propagation_policy
            .as_ref()
            .or(propagation_policy.as_ref());
        let propagation = match (
            policy.map(String::as_str),
            options.orphan_dependents.or(*orphan_dependents),
        ) {
            (None, None) => Propagation::Unstated,
            (None, Some(false)) => Propagation::NotOrphan,
            (Some("Background"), None) => Propagation::Background,
            (Some("Foreground"), None) => Propagation::Foreground,
            (Some("Orphan"), None) | (None, Some(true)) => Propagation::Orphan,
            (Some(other), None) => {
                let error = configurator_schema::FieldError::not_supported(
                    "propagationPolicy",
                    &json!(other),
                    ["Foreground", "Background", "Orphan", "nil"],
                );
                return Err(Status::invalid_kind(
                    "meta.k8s.io",
                    "DeleteOptions",
                    "",
                    &[error],
                ));
            }
            (Some(_), Some(_)) => {
                let error = configurator_schema::FieldError::invalid(
                    "propagationPolicy",
                    &json!(policy),
                    "orphanDependents and deletionPropagation cannot be both set",
                );
                return Err(Status::invalid_kind(
                    "meta.k8s.io",
                    "DeleteOptions",
                    "",
                    &[error],
                ));
            }
        };
        Ok(Self {
            preconditions: options.preconditions,
            propagation,
            dry_run: *dry_run || !options.dry_run.is_empty(),
        })
    }

    fn check(&self, resource: &Resource, live: &Value) -> Result<()> {
        let name = object::name(live);
        let refuse = |what: &str, wanted: &str, is: &str, hint: &str| {
            let mut status = Status::conflict(resource, name, "");
            status.message = format!(
                "Operation cannot be fulfilled on {} {name:?}: the {what} in the precondition ({wanted}) does not match the {what} in \
                 record ({is}). The object might have been {hint}",
                resource.kind_with_group()
            );
            if let Some(details) = &mut status.details {
                object::set_field(details, "kind", Some(json!(resource.kind)));
            }
            Err(status)
        };
        if let Some(uid) = self
            .preconditions
            .uid
            .as_deref()
            .filter(|uid| *uid != object::uid(live))
        {
            return refuse("UID", uid, object::uid(live), "deleted and then recreated");
        }
        let revision = object::meta(live, "resourceVersion");
        if let Some(wanted) = self
            .preconditions
            .resource_version
            .as_deref()
            .filter(|wanted| *wanted != revision)
        {
            return refuse("ResourceVersion", wanted, revision, "modified");
        }
        Ok(())
    }

    fn next(&self, resource: &Resource, live: &Value, now: Timestamp) -> Result<Next> {
        self.check(resource, live)?;
        let finalizers = self.propagation.finalizers(live);
        if object::finalizers(live).eq(finalizers.iter().map(String::as_str)) {
            return Ok(deletion(resource, live, now));
        }
        let mut changed = live.clone();
        let value = match finalizers.is_empty() {
            true => Value::Null,
            false => json!(finalizers),
        };
        object::set_meta(&mut changed, "finalizers", value);
        Ok(
            match finalizers.is_empty() && !object::is_terminating(live) {
                true => deletion(resource, &changed, now),
                false => marked(resource, changed, now),
            },
        )
    }
}

/// What becomes of an object that shall be deleted in the background.
pub(crate) fn deletion(resource: &Resource, live: &Value, now: Timestamp) -> Next {
    if object::is_terminating(live) {
        return match settle(resource, live.clone()) {
            Next::Remove(gone) | Next::Finish(gone) => Next::Remove(gone),
            Next::Keep | Next::Put(_) => Next::Keep,
        };
    }
    let held = object::has_finalizers(live) || resource.is("", "namespaces");
    if held {
        marked(resource, live.clone(), now)
    } else if resource.is("", "pods") {
        // A Pod is told to end before it goes.
        Next::Remove(stamped(resource, live.clone(), now))
    } else {
        Next::Remove(live.clone())
    }
}

/// An object that waits for its finalizers.
fn marked(resource: &Resource, object: Value, now: Timestamp) -> Next {
    let mut object = stamped(resource, object, now);
    if resource.is("", "namespaces") {
        object::child_mut(&mut object, "status").insert("phase".to_owned(), json!("Terminating"));
    }
    match settle(resource, object) {
        Next::Finish(gone) => Next::Remove(gone),
        other => other,
    }
}

/// The object with the time of its deletion.
fn stamped(resource: &Resource, mut object: Value, now: Timestamp) -> Value {
    if object::is_terminating(&object) {
        return object;
    }
    object::set_meta(&mut object, "deletionTimestamp", json!(timestamp(now)));
    if !resource.is("", "namespaces") {
        object::set_meta(&mut object, "deletionGracePeriodSeconds", json!(0));
    }
    if let Some(generation) = object
        .pointer("/metadata/generation")
        .and_then(Value::as_i64)
    {
        object::set_meta(&mut object, "generation", json!(generation + 1));
    }
    object
}

pub(crate) async fn one(server: &Arc<Inner>, call: &Call, name: &str) -> Result<Reply> {
    let deletion = Deletion::of(call)?;
    let outcome = delete(server, call, &deletion, &call.target(name)).await?;
    let resource = &call.resource;
    if outcome.removed && !resource.rules.returns_deleted {
        let value = object::parse_stored(&outcome.object)?;
        return Reply::value(&Status::success(resource, name, object::uid(&value)));
    }
    call.output.one(resource, &outcome.object).map(Reply::ok)
}

async fn delete(
    server: &Arc<Inner>,
    call: &Call,
    deletion: &Deletion,
    target: &Target,
) -> Result<Outcome> {
    let resource = &call.resource;
    if resource.is("", "namespaces")
        && matches!(
            target.name.as_str(),
            "default" | "kube-system" | "kube-public"
        )
    {
        return Err(Status::forbidden(
            resource,
            &target.name,
            "this namespace may not be deleted",
        ));
    }
    server
        .commit(target, deletion.dry_run, |live| {
            let live = live.ok_or_else(|| Status::not_found(resource, &target.name))?;
            deletion.next(resource, &live.value, call.now())
        })
        .await
}

pub(crate) async fn collection(server: &Arc<Inner>, call: &Call) -> Result<Reply> {
    if call.resource.namespaced && call.path.namespace.is_none() {
        return Err(Status::method_not_allowed());
    }
    let deletion = Deletion::of(call)?;
    let selector = Selector::parse(
        &call.query.label_selector,
        &call.query.field_selector,
        &call.resource,
    )?;
    let (revision, items) = read::all(server, &call.resource, &call.path, &selector)?;
    let mut deleted = Vec::with_capacity(items.len());
    for item in items {
        let name = object::name(&object::parse_stored(&item)?).to_owned();
        match delete(server, call, &deletion, &call.target(&name)).await {
            // What is told is what was there when the deletion began.
            Ok(_) => deleted.push(item),
            // Somebody else was quicker.
            Err(status) if status.code == StatusCode::NOT_FOUND => {}
            Err(status) => return Err(status),
        }
    }
    call.output
        .list(
            &call.resource,
            &deleted,
            &ListMeta {
                revision,
                ..ListMeta::default()
            },
        )
        .map(Reply::ok)
}

/// The object at a key of the store.
pub(crate) fn target_at(server: &Inner, key: &str) -> Option<Target> {
    let (storage, namespace, name) = keys::parts(key)?;
    let resource = server.registry().by_storage(storage)?;
    Some(Target {
        resource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_deletion_says_anew_how_dependents_are_treated() {
        let live = json!({"metadata": {"finalizers": ["f", ORPHAN, FOREGROUND]}});
        let check = |propagation: Propagation, expected: &[&str]| {
            assert_eq!(propagation.finalizers(&live), expected);
        };
        check(Propagation::Unstated, &["f", ORPHAN, FOREGROUND]);
        check(Propagation::NotOrphan, &["f", FOREGROUND]);
        check(Propagation::Background, &["f"]);
        check(Propagation::Foreground, &["f", FOREGROUND]);
        check(Propagation::Orphan, &["f", ORPHAN]);
    }
}
