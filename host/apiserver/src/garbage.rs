//! What follows a deletion: dependents go, namespaces and definitions lose their content.
//!
//! Whoever deletes leaves a *chore* in the same transaction; one task does them, so a crash loses none. A chore is done when nothing
//! is left to do now; what still waits for a finalizer is ordered again when that object goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use configurator_store::Read;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::delete::{FOREGROUND, ORPHAN, deletion, target_at};
use crate::object::{self, OwnerReference};
use crate::registry::Registry;
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::{Result, Status};
use crate::update::{settle, timestamp};
use crate::write::{Next, Target};
use crate::{crd, keys};

/// Chores, or objects, that are read at a time.
const BATCH: usize = 256;

/// How long the collector rests after a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// The collector's task: it lives as long as the server.
pub(crate) async fn run(server: Weak<Inner>, wake: Arc<Notify>) {
    loop {
        wake.notified().await;
        let Some(server) = server.upgrade() else {
            return;
        };
        while let Err(status) = collect(&server).await {
            tracing::warn!("garbage collection: {}", status.message);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn collect(server: &Arc<Inner>) -> Result<()> {
    for (namespace, name) in server.events.excess() {
        let Some(target) = target_at(
            server,
            &keys::object(crate::event::STORAGE, &namespace, &name),
        ) else {
            continue;
        };
        remove(server, &target).await?;
    }
    loop {
        let chores = server.store.range(keys::CHORES.as_bytes(), BATCH)?;
        if chores.is_empty() {
            return Ok(());
        }
        for (key, order) in chores {
            let chore = std::str::from_utf8(&key)
                .unwrap_or_default()
                .strip_prefix(keys::CHORES)
                .unwrap_or_default()
                .to_owned();
            perform(server, &chore).await?;
            finish(server, key, order).await?;
        }
    }
}

/// Crosses a chore off, unless it was ordered again in the meantime.
async fn finish(server: &Inner, key: Bytes, order: Bytes) -> Result<()> {
    let finished = server
        .store
        .write(move |tx| {
            if tx.get(&key)?.as_ref() == Some(&order) {
                tx.delete(key);
            }
            Ok::<_, configurator_store::StoreError>(())
        })
        .await;
    finished.map_err(|error| match error {
        configurator_store::WriteError::Refused(error)
        | configurator_store::WriteError::Store(error) => error.into(),
    })
}

async fn perform(server: &Arc<Inner>, chore: &str) -> Result<()> {
    match chore.split_once(' ') {
        Some(("dependents", uid)) => collect_dependents(server, uid).await,
        Some(("held", key)) => release_held(server, key).await,
        Some(("absent", key)) => collect_ownerless(server, key).await,
        Some(("namespace", name)) => empty_namespace(server, name).await,
        Some(("definition", name)) => empty_definition(server, name).await,
        _ => Ok(()),
    }
}

pub(crate) fn dependents_chore(uid: &str) -> String {
    format!("dependents {uid}")
}

pub(crate) fn foreground_chore(key: &str) -> String {
    format!("held {key}")
}

pub(crate) fn absent_owner_chore(key: &str) -> String {
    format!("absent {key}")
}

pub(crate) fn namespace_chore(name: &str) -> String {
    format!("namespace {name}")
}

pub(crate) fn definition_chore(name: &str) -> String {
    format!("definition {name}")
}

/// What there is to do about an object that was written.
pub(crate) fn chores_of(resource: &Resource, key: &str, object: &Value) -> Vec<String> {
    let mut chores = Vec::new();
    if !object::is_terminating(object) {
        return chores;
    }
    if object::finalizers(object).any(|finalizer| finalizer == FOREGROUND || finalizer == ORPHAN) {
        chores.push(foreground_chore(key));
    }
    if resource.is("", "namespaces") {
        chores.push(namespace_chore(object::name(object)));
    }
    if &*resource.storage == crd::STORAGE {
        chores.push(definition_chore(object::name(object)));
    }
    chores
}

/// Where the owners of an object are.
pub(crate) fn owner_keys(
    registry: &Registry,
    namespace: &str,
    owners: &[OwnerReference],
) -> Vec<String> {
    owners
        .iter()
        .filter_map(|owner| owner_key(registry, namespace, owner))
        .collect()
}

fn owner_key(registry: &Registry, namespace: &str, owner: &OwnerReference) -> Option<String> {
    let resource = registry.by_kind(&owner.api_version, &owner.kind)?;
    Some(keys::object(
        &resource.storage,
        if resource.namespaced { namespace } else { "" },
        &owner.name,
    ))
}

#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    #[serde(default)]
    uid: String,
    deletion_timestamp: Option<String>,
}

fn head(stored: &[u8]) -> Option<Head> {
    serde_json::from_slice(stored).ok()
}

/// Whether a stored object is being deleted.
pub(crate) fn is_terminating(stored: &[u8]) -> bool {
    head(stored).is_some_and(|head| head.metadata.deletion_timestamp.is_some())
}

/// Whether a stored object has this identity.
pub(crate) fn has_uid(stored: &[u8], uid: &str) -> bool {
    head(stored).is_some_and(|head| head.metadata.uid == uid)
}

/// The refusal of a new object in a namespace that is going.
pub(crate) fn namespace_terminating(resource: &Resource, name: &str, namespace: &str) -> Status {
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut status = Status::forbidden(resource, name, &why);
    if let Some(details) = &mut status.details {
        let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
        object::set_field(details, "causes", Some(json!([cause])));
    }
    status
}

/// Deletes an object as a client would, in the background.
async fn remove(server: &Arc<Inner>, target: &Target) -> Result<()> {
    let now = server.now();
    let result = server
        .commit(target, false, |live| {
            let live = live.ok_or_else(|| Status::not_found(&target.resource, &target.name))?;
            Ok(deletion(&target.resource, &live.value, now))
        })
        .await;
    ignore_absence(result.map(|_| ()))
}

fn ignore_absence(result: Result<()>) -> Result<()> {
    match result {
        Err(status) if status.code == http::StatusCode::NOT_FOUND => Ok(()),
        other => other,
    }
}

/// The dependents of an owner, a batch after a key.
fn dependents(server: &Inner, uid: &str, after: Option<&str>) -> Result<Vec<String>> {
    let prefix = keys::dependents_prefix(uid);
    let after = after.map(|after| keys::dependent(uid, after));
    let mut found = Vec::new();
    server.store.read(|state| {
        state.scan(
            prefix.as_bytes(),
            after.as_deref().map(str::as_bytes),
            &mut |key, _| {
                if let Some(dependent) = std::str::from_utf8(key)
                    .ok()
                    .and_then(|key| key.strip_prefix(&prefix))
                {
                    found.push(dependent.to_owned());
                }
                if found.len() < BATCH {
                    std::ops::ControlFlow::Continue(())
                } else {
                    std::ops::ControlFlow::Break(())
                }
            },
        )
    })??;
    Ok(found)
}

/// The owner has gone: its dependents go too, unless another owner keeps them.
async fn collect_dependents(server: &Arc<Inner>, uid: &str) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let batch = dependents(server, uid, after.as_deref())?;
        let Some(last) = batch.last() else {
            return Ok(());
        };
        after = Some(last.clone());
        for key in &batch {
            let Some(target) = target_at(server, key) else {
                continue;
            };
            release_from(server, &target, uid, true).await?;
        }
    }
}

/// Takes one owner from an object; one that has no other owner left goes, if `collect` says so.
async fn release_from(
    server: &Arc<Inner>,
    target: &Target,
    uid: &str,
    collect: bool,
) -> Result<()> {
    let now = server.now();
    let registry = server.registry();
    let result = server
        .commit(target, false, |live| {
            let live = live.ok_or_else(|| Status::not_found(&target.resource, &target.name))?;
            let owners = object::owners(&live.value);
            if owners.iter().all(|owner| owner.uid != uid) {
                return Ok(Next::Keep);
            }
            let mut kept = false;
            for owner in owners.iter().filter(|owner| owner.uid != uid) {
                kept |= match owner_key(&registry, &target.namespace, owner) {
                    Some(key) => server
                        .store
                        .get(key.as_bytes())?
                        .is_some_and(|stored| has_uid(&stored, &owner.uid)),
                    // Of a kind that is not served now nobody knows.
                    None => true,
                };
            }
            if collect && !kept {
                return Ok(deletion(&target.resource, &live.value, now));
            }
            let mut released = live.value.clone();
            let references = released
                .pointer_mut("/metadata/ownerReferences")
                .and_then(Value::as_array_mut);
            if let Some(references) = references {
                references
                    .retain(|reference| reference.get("uid").and_then(Value::as_str) != Some(uid));
                if references.is_empty() {
                    object::set_meta(&mut released, "ownerReferences", Value::Null);
                }
            }
            Ok(Next::Put(released))
        })
        .await;
    ignore_absence(result.map(|_| ()))
}

/// An object that waits for its dependents, either to go or to be let go.
async fn release_held(server: &Arc<Inner>, key: &str) -> Result<()> {
    let Some(target) = target_at(server, key) else {
        return Ok(());
    };
    let Some(live) = server.live(&target)? else {
        return Ok(());
    };
    if !object::is_terminating(&live.value) {
        return Ok(());
    }
    let uid = object::uid(&live.value).to_owned();
    let orphans = object::finalizers(&live.value).any(|finalizer| finalizer == ORPHAN);
    let mut after: Option<String> = None;
    let mut blocked = false;
    loop {
        let batch = dependents(server, &uid, after.as_deref())?;
        let Some(last) = batch.last() else { break };
        after = Some(last.clone());
        for key in &batch {
            let Some(dependent) = target_at(server, key) else {
                continue;
            };
            if orphans {
                release_from(server, &dependent, &uid, false).await?;
                continue;
            }
            release_from(server, &dependent, &uid, true).await?;
            if let Some(left) = server.live(&dependent)? {
                blocked |= object::owners(&left.value)
                    .iter()
                    .any(|owner| owner.uid == uid && owner.block_owner_deletion);
            }
        }
    }
    if blocked {
        return Ok(());
    }
    let finalizer = if orphans { ORPHAN } else { FOREGROUND };
    drop_finalizer(server, &target, finalizer).await
}

async fn drop_finalizer(server: &Arc<Inner>, target: &Target, finalizer: &str) -> Result<()> {
    let result = server
        .commit(target, false, |live| {
            let live = live.ok_or_else(|| Status::not_found(&target.resource, &target.name))?;
            let left: Vec<&str> = object::finalizers(&live.value)
                .filter(|one| *one != finalizer)
                .collect();
            if left.len() == object::finalizers(&live.value).count() {
                return Ok(Next::Keep);
            }
            let mut released = live.value.clone();
            object::set_meta(
                &mut released,
                "finalizers",
                if left.is_empty() {
                    Value::Null
                } else {
                    json!(left)
                },
            );
            Ok(settle(&target.resource, released))
        })
        .await;
    ignore_absence(result.map(|_| ()))
}

/// An object came with owners that do not exist: it is as if they had been deleted after it.
async fn collect_ownerless(server: &Arc<Inner>, key: &str) -> Result<()> {
    let Some(target) = target_at(server, key) else {
        return Ok(());
    };
    let Some(live) = server.live(&target)? else {
        return Ok(());
    };
    for owner in object::owners(&live.value) {
        release_from_absent(server, &target, &owner).await?;
    }
    Ok(())
}

async fn release_from_absent(
    server: &Arc<Inner>,
    target: &Target,
    owner: &OwnerReference,
) -> Result<()> {
    let registry = server.registry();
    let Some(key) = owner_key(&registry, &target.namespace, owner) else {
        return Ok(());
    };
    if server
        .store
        .get(key.as_bytes())?
        .is_some_and(|stored| has_uid(&stored, &owner.uid))
    {
        return Ok(());
    }
    release_from(server, target, &owner.uid, true).await
}

/// Deletes what is in a namespace that is being deleted, then the namespace.
async fn empty_namespace(server: &Arc<Inner>, name: &str) -> Result<()> {
    let Some(namespace) = target_at(server, &keys::object("/namespaces", "", name)) else {
        return Ok(());
    };
    match server.live(&namespace)? {
        Some(live) if object::is_terminating(&live.value) => {}
        _ => return Ok(()),
    }
    let registry = server.registry();
    let storages: BTreeSet<Arc<str>> = registry
        .all()
        .filter(|resource| resource.namespaced && !resource.review)
        .map(|resource| Arc::clone(&resource.storage))
        .collect();
    let mut left = Left::default();
    for storage in storages {
        empty(server, &keys::namespace_prefix(&storage, name), &mut left).await?;
    }
    if !left.objects.is_empty() {
        // Each of them orders this chore again when it goes.
        return tell_what_is_left(server, &namespace, &left).await;
    }
    let result = server
        .commit(&namespace, false, |live| {
            let live = live.ok_or_else(|| Status::not_found(&namespace.resource, name))?;
            let mut emptied = live.value.clone();
            let finalizers = emptied
                .pointer("/spec/finalizers")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let others: Vec<Value> = finalizers
                .into_iter()
                .filter(|finalizer| *finalizer != json!("kubernetes"))
                .collect();
            let spec = object::child_mut(&mut emptied, "spec");
            if others.is_empty() {
                spec.remove("finalizers");
            } else {
                spec.insert("finalizers".to_owned(), json!(others));
            }
            if emptied == live.value {
                return Ok(Next::Keep);
            }
            Ok(settle(&namespace.resource, emptied))
        })
        .await;
    ignore_absence(result.map(|_| ()))
}

/// Objects that wait for their finalizers.
#[derive(Default)]
struct Left {
    /// How many, by resource.
    objects: BTreeMap<String, usize>,
    /// How many, by finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn add(&mut self, resource: &Resource, object: &Value) {
        let name = format!("{}.{}", resource.plural, resource.group);
        *self.objects.entry(name).or_default() += 1;
        for finalizer in object::finalizers(object) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
}

/// Writes into the status of a namespace what it waits for, as the controller of a cluster does.
async fn tell_what_is_left(server: &Arc<Inner>, namespace: &Target, left: &Left) -> Result<()> {
    let list = |counts: &BTreeMap<String, usize>, verb: &str| {
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {verb} {count} resource instances"))
            .collect();
        parts.join(", ")
    };
    let remaining = format!(
        "Some resources are remaining: {}",
        list(&left.objects, "has")
    );
    let finalizers = format!(
        "Some content in the namespace has finalizers remaining: {}",
        list(&left.finalizers, "in")
    );
    let conditions = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            remaining.as_str(),
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            finalizers.as_str(),
        ),
    ];
    let now = timestamp(server.now());
    let result = server
        .commit(namespace, false, |live| {
            let live = live
                .ok_or_else(|| Status::not_found(&namespace.resource, &namespace.name))?;
            let told: Vec<Value> = conditions
                .iter()
                .map(|(kind, status, reason, message)| {
                    let before = live.value.pointer("/status/conditions").and_then(Value::as_array);
                    let since = before
                        .into_iter()
                        .flatten()
                        .find(|old| old.get("type") == Some(&json!(kind)) && old.get("status") == Some(&json!(status)))
                        .and_then(|old| old.get("lastTransitionTime").cloned())
                        .unwrap_or_else(|| json!(now));
                    json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
                })
                .collect();
            let mut object = live.value.clone();
            object::child_mut(&mut object, "status").insert("conditions".to_owned(), json!(told));
            Ok(if object == live.value { Next::Keep } else { Next::Put(object) })
        })
        .await;
    ignore_absence(result.map(|_| ()))
}

/// Deletes everything below a prefix, and adds up what still waits for its finalizers.
async fn empty(server: &Arc<Inner>, prefix: &str, left: &mut Left) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let mut batch = Vec::new();
        server.store.read(|state| {
            state.scan(
                prefix.as_bytes(),
                after.as_deref().map(str::as_bytes),
                &mut |key, _| {
                    batch.extend(std::str::from_utf8(key).ok().map(str::to_owned));
                    if batch.len() < BATCH {
                        std::ops::ControlFlow::Continue(())
                    } else {
                        std::ops::ControlFlow::Break(())
                    }
                },
            )
        })??;
        let Some(last) = batch.last() else {
            return Ok(());
        };
        after = Some(last.clone());
        for key in &batch {
            let Some(target) = target_at(server, key) else {
                continue;
            };
            remove(server, &target).await?;
            if let Some(live) = server.live(&target)? {
                left.add(&target.resource, &live.value);
            }
        }
    }
}

/// Deletes the objects of a definition that is being deleted, then lets the definition go.
async fn empty_definition(server: &Arc<Inner>, name: &str) -> Result<()> {
    let Some(target) = target_at(server, &keys::object(crd::STORAGE, "", name)) else {
        return Ok(());
    };
    match server.live(&target)? {
        Some(live) if object::is_terminating(&live.value) => {}
        _ => return Ok(()),
    }
    let Some((plural, group)) = name.split_once('.') else {
        return Ok(());
    };
    let storage = format!("{group}/{plural}");
    let mut left = Left::default();
    empty(server, &keys::resource_prefix(&storage), &mut left).await?;
    if !left.objects.is_empty() {
        return Ok(());
    }
    drop_finalizer(server, &target, crd::CLEANUP).await?;
    if server.live(&target)?.is_none() {
        server.history.close(&storage);
    }
    Ok(())
}
