//! One page of an inventory: an `ObjectSet`, and its sequence number in the config store.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use configurator_core::desired::marks;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::Write;
use configurator_core::request::ObjectRef;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ObjectMeta, Request};
use serde_json::json;

use super::InventoryStore;
use crate::kubernetes_faults::fault_of;
use crate::objects::Written;
use crate::resource::object_set::{ObjectSet, ObjectSetSpec};
use crate::sinks::configstore::{Condition, Fence};

/// A page, as it is stored, without its members.
#[derive(Debug, Clone)]
pub(super) struct Page {
    /// The `ObjectSet`.
    pub(super) object_set: ObjectRef,
    /// The key of its sequence number in the config store.
    pub(super) sequence_key: String,
    pub(super) sequence: u64,
    /// The sequence number that the config store has.
    pub(super) booked: u64,
    /// `None`: it has not been created.
    pub(super) resource_version: Option<String>,
    pub(super) uid: String,
    /// The hash of the page that was read or written last, without its sequence number and seal.
    content: u64,
}

impl Page {
    /// A page that has not been created.
    pub(super) const fn new(object_set: ObjectRef, sequence_key: String) -> Self {
        Self {
            object_set,
            sequence_key,
            sequence: 0,
            booked: 0,
            resource_version: None,
            uid: String::new(),
            content: 0,
        }
    }

    /// The fault of a page that is not as a host has left it.
    pub(super) fn damaged(&self, why: &str) -> Fault {
        let message = format!(
            "the ObjectSet {} {why}, so its members can be neither written nor deleted; restore it as it was, or give up the set with the annotation {} of its owner",
            self.object_set,
            marks::ABANDON
        );
        Fault::new(FaultKind::ResourceGeneric, message)
    }

    /// The fault of a page that was written by somebody else since it was read.
    pub(super) fn overtaken(&self) -> Fault {
        let message = format!(
            "another host has written the ObjectSet {} meanwhile; it is read again",
            self.object_set
        );
        Fault::new(FaultKind::ResourceConflict, message)
    }
}

impl InventoryStore {
    /// Reads a page, whose sequence number in the config store is known. `None`: it does not exist.
    ///
    /// # Errors
    /// When the API cannot be asked, or the page is not as a host has left it.
    pub(super) async fn read_page(&self, page: &mut Page) -> Result<Option<ObjectSet>, Fault> {
        let name = &page.object_set;
        let found = self.api(&name.namespace).get_opt(&name.name).await;
        let what = format!("the ObjectSet {name}");
        let found = found.map_err(|error| fault_of(&what, false, &error))?;
        let Some(found) = found else {
            return match page.booked {
                0 => Ok(None),
                _ => Err(page.damaged("is missing")),
            };
        };
        let spec = &found.spec;
        let key = self.key.get().await?;
        let mut unsealed = ObjectSetSpec {
            seal: String::new(),
            ..spec.clone()
        };
        let text = sealed_text(name, &unsealed)?;
        if !key.is_seal(&[b"inventory", text.as_bytes()], &spec.seal) {
            return Err(page.damaged("was changed by somebody else than a host"));
        }
        let booked = page.booked;
        let is_newest = spec.sequence == booked || spec.sequence == booked + 1;
        // The number goes first when the inventory is deleted.
        let is_ending = booked == 0 && spec.members.is_empty();
        if !is_newest && !is_ending {
            return Err(page.damaged(&format!(
                "has the sequence number {}, and the newest one is {booked}: it is older than the newest",
                spec.sequence
            )));
        }
        page.sequence = spec.sequence;
        page.resource_version = found.resource_version();
        page.uid = found.uid().unwrap_or_default();
        unsealed.sequence = 0;
        page.content = content_of(&unsealed);
        Ok(Some(found))
    }

    /// Writes a page, unless it is stored like this. `spec` has neither a sequence number nor a seal. On success, `page` is what is stored now.
    ///
    /// # Errors
    /// When a server cannot be asked, or somebody else has written the page meanwhile: then the inventory is to be read again.
    pub(super) async fn write_page(
        &self,
        page: &mut Page,
        mut spec: ObjectSetSpec,
        metadata: ObjectMeta,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let content = content_of(&spec);
        if page.resource_version.is_some() && page.content == content {
            return Ok(());
        }
        // A host may have stopped before it wrote the number of the page that is stored.
        if page.sequence > page.booked {
            self.book(page, fences).await?;
        }
        spec.sequence = page.sequence + 1;
        let key = self.key.get().await?;
        let text = sealed_text(&page.object_set, &spec)?;
        spec.seal = key.seal(&[b"inventory", text.as_bytes()]);
        let sequence = spec.sequence;
        let name = &page.object_set.name;
        let mut object = ObjectSet::new(name, spec);
        object.metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(page.object_set.namespace.clone()),
            uid: (!page.uid.is_empty()).then(|| page.uid.clone()),
            resource_version: page.resource_version.clone(),
            ..metadata
        };
        let what = format!("the ObjectSet {}", page.object_set);
        let object = serde_json::to_vec(&object)
            .map_err(|error| Fault::new(FaultKind::ResourceGeneric, format!("{what}: {error}")))?;
        let requests = Request::new(self.api(&page.object_set.namespace).resource_url());
        let params = PostParams::default();
        let request = match &page.resource_version {
            None => requests.create(&params, object),
            Some(_) => requests.replace(name, &params, object),
        };
        let written = Written::by(&self.client, request).await;
        let written = written.map_err(|error| fault_of(&what, true, &error))?;
        page.resource_version = written.resource_version;
        page.uid = written.uid;
        page.content = content;
        page.sequence = sequence;
        self.book(page, fences).await
    }

    /// Deletes a page without members.
    ///
    /// # Errors
    /// When a server cannot be asked.
    pub(super) async fn delete_page(&self, page: &mut Page, fences: &[Fence]) -> Result<(), Fault> {
        let key = page.sequence_key.clone();
        self.config.write(vec![Write::Delete(key)], fences).await?;
        page.booked = 0;
        if page.resource_version.is_none() {
            return Ok(());
        }
        let api = self.api(&page.object_set.namespace);
        let name = &page.object_set.name;
        let what = format!("the ObjectSet {}", page.object_set);
        let gone =
            |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
        let patch = json!({"metadata": {
            "uid": page.uid,
            "resourceVersion": page.resource_version,
            "finalizers": null,
        }});
        match api
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
        {
            Ok(_) => {}
            Err(error) if gone(&error) => return Ok(()),
            Err(error) => return Err(fault_of(&what, true, &error)),
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(page.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match api.delete(name, &params).await {
            Ok(_) => {}
            Err(error) if gone(&error) => {}
            Err(error) => return Err(fault_of(&what, true, &error)),
        }
        page.resource_version = None;
        page.sequence = 0;
        Ok(())
    }

    /// The sequence number that the config store has; 0 where it has none.
    async fn booked(&self, key: &str) -> Result<u64, Fault> {
        let number = self.config.get(key).await?;
        Ok(number.and_then(|number| number.parse().ok()).unwrap_or(0))
    }

    /// Writes the sequence number of what is stored.
    async fn book(&self, page: &mut Page, fences: &[Fence]) -> Result<(), Fault> {
        let key = page.sequence_key.as_str();
        let condition = match page.booked {
            0 => Condition::is_absent(key),
            booked => Condition::is(key, booked.to_string()),
        };
        let write = Write::Put(key.to_owned(), page.sequence.to_string());
        if !self.config.write_if(vec![write], &[condition], fences).await?
            // An earlier attempt was carried out, and its answer lost.
            && self.booked(key).await? != page.sequence
        {
            return Err(page.overtaken());
        }
        page.booked = page.sequence;
        Ok(())
    }
}

/// The text that is sealed: the name, and everything but the seal.
fn sealed_text(object_set: &ObjectRef, unsealed: &ObjectSetSpec) -> Result<String, Fault> {
    let sealed = (&object_set.namespace, &object_set.name, unsealed);
    let text = serde_json::to_string(&sealed);
    text.map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))
}

/// The hash of a page that has neither a sequence number nor a seal.
fn content_of(spec: &ObjectSetSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    let text = serde_json::to_string(spec).unwrap_or_default();
    text.hash(&mut hasher);
    hasher.finish()
}
