//! What the config store has of the states of one Configurator's objects: the newest revision of each, states that are too large
//! for the object, and the trees that flows began with.

use std::collections::BTreeSet;
use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::machine::memento::Memento;
use configurator_core::request::ObjectRef;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::objects;
use crate::sinks::configstore::{ConfigStore, Fence};

const REVISIONS: &str = "revisions/";
const STATES: &str = "states/";
const TREES: &str = "trees/";

/// What the books say of the state of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    /// The newest revision that is known.
    revision: u64,
}

/// The books of one Configurator.
pub(crate) struct StateBooks {
    config: Arc<dyn ConfigStore>,
    /// The uid of the Configurator.
    owner: String,
}

impl StateBooks {
    /// The books of the Configurator with this uid.
    pub(crate) fn new(config: Arc<dyn ConfigStore>, owner: &str) -> Self {
        Self {
            config,
            owner: owner.to_owned(),
        }
    }

    /// Of which Configurators, by uid, there are books.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn owners(config: &dyn ConfigStore) -> Result<BTreeSet<String>, Fault> {
        let mut owners = BTreeSet::new();
        for prefix in [REVISIONS, STATES, TREES] {
            let keys = config.scan(prefix).await?;
            let found = keys.iter().filter_map(|(key, _)| {
                let (owner, _) = key.strip_prefix(prefix)?.split_once('/')?;
                Some(owner.to_owned())
            });
            owners.extend(found);
        }
        Ok(owners)
    }

    /// Removes the books of a Configurator that is gone.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn close(&self, fences: &[Fence]) -> Result<(), Fault> {
        let prefixes = [REVISIONS, STATES, TREES].map(|prefix| format!("{prefix}{}/", self.owner));
        let writes = prefixes.into_iter().map(Write::DeletePrefix).collect();
        self.config.write(writes, fences).await
    }

    /// The objects that are in the books, with their uids.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn objects(&self) -> Result<Vec<(ObjectRef, String)>, Fault> {
        let prefix = self.revision_key("");
        let keys = self.config.scan(&prefix).await?.into_iter();
        let objects = keys.filter_map(|(key, entry)| {
            let uid = key.strip_prefix(&prefix)?.to_owned();
            let Entry {
                namespace, name, ..
            } = serde_json::from_str(&entry).ok()?;
            Some((ObjectRef { namespace, name }, uid))
        });
        Ok(objects.collect())
    }

    /// Removes an object that has gone.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn forget(&self, uid: &str, fences: &[Fence]) -> Result<(), Fault> {
        let states = Write::DeletePrefix(self.moved_prefix(uid));
        let revision = Write::Delete(self.revision_key(uid));
        self.config.write(vec![states, revision], fences).await
    }

    /// The newest revision of the object's state that is known; 0 where none is.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn revision(&self, uid: &str) -> Result<u64, Fault> {
        let entry = self.value(&self.revision_key(uid)).await?;
        let entry: Option<Entry> = entry.and_then(|entry| serde_json::from_str(&entry).ok());
        Ok(entry.map_or(0, |entry| entry.revision))
    }

    /// Notes which revision is the newest.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn book(
        &self,
        key: &ObjectRef,
        uid: &str,
        revision: u64,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let entry = json!(Entry {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            revision,
        });
        let write = Write::Put(self.revision_key(uid), entry.to_string());
        self.config.write(vec![write], fences).await
    }

    /// The nodes and the engine's part of a state that is kept here.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn moved(
        &self,
        uid: &str,
        revision: u64,
    ) -> Result<Option<(Value, String)>, Fault> {
        let Some(text) = self.value(&self.moved_key(uid, revision)).await? else {
            return Ok(None);
        };
        let mut moved: Value = serde_json::from_str(&text).unwrap_or_default();
        let engine = objects::text(&moved, "/engine").to_owned();
        let nodes = moved.get_mut("nodes").map(Value::take);
        Ok(Some((nodes.unwrap_or_default(), engine)))
    }

    /// Keeps the nodes and the engine's part of a state.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn move_out(
        &self,
        uid: &str,
        revision: u64,
        memento: &Memento,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let moved = json!({"nodes": memento.nodes, "engine": memento.engine.as_str()});
        let write = Write::Put(self.moved_key(uid, revision), moved.to_string());
        self.config.write(vec![write], fences).await
    }

    /// Removes a state that a newer one has replaced. One that stays is only in the way.
    pub(crate) async fn drop_moved(&self, uid: &str, revision: u64, fences: &[Fence]) {
        let write = Write::Delete(self.moved_key(uid, revision));
        if let Err(fault) = self.config.write(vec![write], fences).await {
            tracing::debug!(%fault, "an older state could not be removed");
        }
    }

    /// The phase and the memento of a state whose place is the config store, as JSON.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn pointer(&self, uid: &str) -> Result<Option<Value>, Fault> {
        let stored = self.value(&self.pointer_key(uid)).await?;
        Ok(stored.map(|stored| serde_json::from_str(&stored).unwrap_or_default()))
    }

    /// Writes that.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn point(
        &self,
        uid: &str,
        pointer: &Value,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let write = Write::Put(self.pointer_key(uid), pointer.to_string());
        self.config.write(vec![write], fences).await
    }

    /// The text of a tree.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn tree(&self, digest: &str) -> Result<Option<String>, Fault> {
        self.value(&self.tree_key(digest)).await
    }

    /// Keeps trees, by their digests.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn keep_trees(
        &self,
        trees: impl Iterator<Item = (String, String)>,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let writes: Vec<Write> = trees
            .map(|(digest, tree)| Write::Put(self.tree_key(&digest), tree))
            .collect();
        match writes.is_empty() {
            true => Ok(()),
            false => self.config.write(writes, fences).await,
        }
    }

    /// What the config store has under exactly this key.
    async fn value(&self, key: &str) -> Result<Option<String>, Fault> {
        let found = self.config.scan(key).await?;
        let found = found.into_iter().find(|(found, _)| found == key);
        Ok(found.map(|(_, value)| value))
    }

    fn revision_key(&self, uid: &str) -> String {
        format!("{REVISIONS}{}/{uid}", self.owner)
    }

    fn moved_prefix(&self, uid: &str) -> String {
        format!("{STATES}{}/{uid}/", self.owner)
    }

    fn moved_key(&self, uid: &str, revision: u64) -> String {
        format!("{}{revision}", self.moved_prefix(uid))
    }

    fn tree_key(&self, digest: &str) -> String {
        format!("{TREES}{}/{digest}", self.owner)
    }

    fn pointer_key(&self, uid: &str) -> String {
        format!("{}phase", self.moved_prefix(uid))
    }
}
