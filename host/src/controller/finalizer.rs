//! The finalizer that a Configurator with `deletion.by: Finalizer` places on its objects.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::ObjectRef;
use kube::api::{ApiResource, ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde_json::json;

use crate::kubernetes_faults::{fault_of, is_of_another};
use crate::objects;

/// How often a change is tried again when someone else was faster.
const ATTEMPTS: usize = 10;

/// Places and releases the finalizer of one Configurator.
pub struct Finalizer {
    client: Client,
    resource: ApiResource,
    /// The namespace of the Configurator; empty if it has none.
    namespace: String,
    name: String,
    manager: String,
    known: Mutex<Known>,
}

/// The state of the finalizer on objects, by uid.
#[derive(Default)]
struct Known {
    /// Objects that have the finalizer, or are about to get it.
    placed: HashSet<String>,
    /// Objects whose finalizer is to be released. Watch events of these objects may be stale.
    ended: HashSet<String>,
    /// The highest version at which an object was released. What a watch shows of any object at this version or an earlier one may be stale.
    released: Option<u64>,
}

/// The outcome of a change.
#[derive(Default)]
struct Changed {
    /// The version at which the object is as wanted, where it is there and the server's versions are numbers.
    version: Option<u64>,
    /// Whether this has changed it.
    is_changed: bool,
}

/// An object as it was seen.
#[derive(Deserialize)]
struct Seen {
    metadata: ObjectMeta,
}

fn version_of(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}

/// The finalizer of this Configurator: `NAMESPACE.configurator.dev/NAME`, or `configurator.dev/NAME` for a ClusterConfigurator.
#[must_use]
pub fn finalizer_name(configurator: &ObjectRef) -> String {
    let ObjectRef { namespace, name } = configurator;
    match namespace.as_str() {
        "" => format!("configurator.dev/{name}"),
        _ => format!("{namespace}.configurator.dev/{name}"),
    }
}

impl Finalizer {
    /// The finalizer of this Configurator on objects of this kind.
    #[must_use]
    pub fn new(client: Client, resource: ApiResource, configurator: &ObjectRef) -> Self {
        Self {
            client,
            resource,
            namespace: configurator.namespace.clone(),
            name: finalizer_name(configurator),
            manager: configurator_core::field_manager::of_requests(configurator),
            known: Mutex::default(),
        }
    }

    /// Remembers that the object was seen with the finalizer at this version, which is none if the server's versions are no numbers. What is
    /// older than the last release is not remembered: [`place`](Self::place) then asks the API.
    pub fn note_placed(&self, uid: &str, version: Option<u64>) {
        let mut known = self.known();
        let may_be_stale = known
            .released
            .is_some_and(|released| version.is_none_or(|version| version <= released));
        if !may_be_stale && !known.ended.contains(uid) {
            known.placed.insert(uid.to_owned());
        }
    }

    /// Marks the finalizer for [release](Self::release). [`place`](Self::place) cancels this.
    pub fn end(&self, uid: &str) {
        let mut known = self.known();
        known.placed.remove(uid);
        known.ended.insert(uid.to_owned());
    }

    /// Another host places the finalizer on these objects from now on.
    pub fn let_go(&self, is_let_go: impl Fn(&str) -> bool) {
        let mut known = self.known();
        known.placed.retain(|uid| !is_let_go(uid));
        known.ended.retain(|uid| !is_let_go(uid));
    }

    /// Places the finalizer unless it is there, and returns whether this has placed it. An object that is gone, or being deleted, is left
    /// alone. `object` is what was seen of it: while it is still like that, it is not read again.
    ///
    /// # Errors
    /// When the API cannot be reached or refuses.
    pub async fn place(
        &self,
        key: &ObjectRef,
        uid: &str,
        object: &Document,
    ) -> Result<bool, Fault> {
        // This comes first, so that a release in progress sees it.
        {
            let mut known = self.known();
            known.ended.remove(uid);
            if !known.placed.insert(uid.to_owned()) {
                return Ok(false);
            }
        }
        let added = self.add(key, uid, object.read().ok()).await;
        if added.is_err() {
            self.known().placed.remove(uid);
        }
        added
    }

    /// Returns whether this has added it.
    async fn add(&self, key: &ObjectRef, uid: &str, seen: Option<Seen>) -> Result<bool, Fault> {
        let changed = self.change(key, uid, seen, |metadata| {
            let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
            let has = finalizers.contains(&self.name);
            finalizers.push(self.name.clone());
            (!has && metadata.deletion_timestamp.is_none()).then_some(finalizers)
        });
        Ok(changed.await?.is_changed)
    }

    /// Removes the finalizer, so that the object can be deleted. Keeps it if it was placed again after [`end`](Self::end), or during the
    /// release.
    ///
    /// # Errors
    /// When the API cannot be reached or refuses.
    pub async fn release(&self, key: &ObjectRef, uid: &str) -> Result<(), Fault> {
        if self.known().placed.contains(uid) {
            return Ok(());
        }
        let version = self.remove(key, uid).await?;
        let is_placed = {
            let mut known = self.known();
            known.released = known.released.max(version);
            known.ended.remove(uid);
            known.placed.contains(uid)
        };
        match is_placed {
            // `place` may have read the object before the removal.
            true => self.add(key, uid, None).await.map(drop),
            false => Ok(()),
        }
    }

    /// Returns the version from which on the object does not have the finalizer.
    async fn remove(&self, key: &ObjectRef, uid: &str) -> Result<Option<u64>, Fault> {
        let changed = self.change(key, uid, None, |metadata| {
            let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
            let before = finalizers.len();
            finalizers.retain(|name| *name != self.name);
            (finalizers.len() < before).then_some(finalizers)
        });
        Ok(changed.await?.version)
    }

    /// Takes the finalizer away from every object that has it.
    ///
    /// # Errors
    /// When the API cannot be reached or refuses.
    pub async fn release_all(&self) -> Result<(), Fault> {
        for (key, uid) in self.held().await? {
            self.end(&uid);
            self.release(&key, &uid).await?;
        }
        Ok(())
    }

    /// Every object that has the finalizer, whether the Configurator still watches it or not. A Configurator has none outside its namespace.
    ///
    /// # Errors
    /// When the API cannot be reached or refuses.
    pub async fn held(&self) -> Result<Vec<(ObjectRef, String)>, Fault> {
        let all = objects::of(self.client.clone(), &self.resource, &self.namespace);
        let mut params = ListParams::default().limit(500);
        let mut held = Vec::new();
        loop {
            let page = all
                .list_metadata(&params)
                .await
                .map_err(|error| fault_of("list for the finalizer", false, &error))?;
            for object in page.items {
                if object.finalizers().contains(&self.name) {
                    let uid = object.uid().unwrap_or_default();
                    held.push((objects::key_of(&object), uid));
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(held),
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the finalizers by those that `wanted` returns. `None`: they stay. The object as it was seen saves a read if it needs a change and
    /// is still like that.
    async fn change(
        &self,
        key: &ObjectRef,
        uid: &str,
        mut seen: Option<Seen>,
        wanted: impl Fn(&ObjectMeta) -> Option<Vec<String>>,
    ) -> Result<Changed, Fault> {
        let api = objects::of(self.client.clone(), &self.resource, &key.namespace);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let seen = seen.take().map(|seen| seen.metadata);
            let seen =
                seen.filter(|seen| seen.resource_version.is_some() && wanted(seen).is_some());
            let metadata = match seen {
                Some(seen) => Some(seen),
                None => {
                    let found = api.get_metadata_opt(&key.name).await;
                    let found =
                        found.map_err(|error| fault_of("get for the finalizer", false, &error))?;
                    found.map(|object| object.metadata)
                }
            };
            let Some(metadata) = metadata.filter(|found| found.uid.as_deref() == Some(uid)) else {
                return Ok(Changed::default());
            };
            let Some(finalizers) = wanted(&metadata) else {
                return Ok(Changed {
                    version: version_of(&metadata),
                    is_changed: false,
                });
            };
            let patch = json!({"metadata": {
                "uid": uid,
                "resourceVersion": metadata.resource_version,
                "finalizers": finalizers,
            }});
            let params = PatchParams {
                field_manager: Some(self.manager.clone()),
                ..PatchParams::default()
            };
            let patch = Patch::Merge(&patch);
            match api.patch_metadata(&key.name, &params, &patch).await {
                Ok(changed) => {
                    return Ok(Changed {
                        version: version_of(&changed.metadata),
                        is_changed: true,
                    });
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    return Ok(Changed::default());
                }
                Err(kube::Error::Api(status)) if status.code == 409 || is_of_another(&status) => {
                    last = Some(status.message.clone())
                }
                Err(error) => return Err(fault_of("patch for the finalizer", true, &error)),
            }
        }
        Err(Fault::new(
            FaultKind::ResourceConflict,
            format!(
                "the finalizer of {key} could not be changed: {}",
                last.unwrap_or_default()
            ),
        ))
    }
}
