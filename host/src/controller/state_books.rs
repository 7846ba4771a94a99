//! Records of the states of one Configurator's objects, in the config store: an [`Entry`] for each, states that are too large for the
//! object, and the trees that flows began with.
//!
//! They belong to the name of the Configurator, so that one that is made again goes on with its machines. The books of a name that has
//! no Configurator are kept for a while (`retired/<name>` says since when).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::machine::memento::Memento;
use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::objects;
use crate::resource::segment_of;
use crate::seal::random;
use crate::sinks::configstore::{Condition, ConfigStore, Fence, segments_below};

const REVISIONS: &str = "revisions/";
const STATES: &str = "states/";
const TREES: &str = "trees/";
const RETIRED: &str = "retired/";

/// The record of one object's state. It decides which states are accepted: the booked one, and those that were stored after it and
/// name it as their base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    /// The newest revision that is booked.
    revision: u64,
    /// The seal of the state with that revision. A random number where none was stored yet.
    seal: String,
    /// The entry as it is stored.
    #[serde(skip)]
    text: String,
}

impl Entry {
    /// An entry for a state that is yet to be stored: nothing that was stored before follows it.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub(crate) fn begin(object: &ObjectRef, revision: u64) -> Result<Self, Fault> {
        let seal = URL_SAFE_NO_PAD.encode(random::<16>()?);
        Ok(Self {
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            revision,
            seal,
            text: String::new(),
        }
        .written())
    }

    /// The entry of a state that was stored later.
    pub(crate) fn follow(&self, revision: u64, seal: &str) -> Self {
        Self {
            revision,
            seal: seal.to_owned(),
            ..self.clone()
        }
        .written()
    }

    fn read(text: String) -> Option<Self> {
        let entry: Self = serde_json::from_str(&text).ok()?;
        Some(Self { text, ..entry })
    }

    /// With the text that is stored for it.
    fn written(self) -> Self {
        // Texts and a number are always JSON.
        let text = serde_json::to_string(&self).unwrap_or_default();
        Self { text, ..self }
    }

    /// The newest revision that is booked; 0 where none was stored yet.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the base that later states name.
    pub(crate) fn seal(&self) -> &str {
        &self.seal
    }
}

/// The books of one Configurator.
pub(crate) struct StateBooks {
    config: Arc<dyn ConfigStore>,
    /// The Configurator: see [`segment_of`].
    owner: String,
}

impl StateBooks {
    /// The books of a Configurator.
    pub(crate) fn new(config: Arc<dyn ConfigStore>, configurator: &ObjectRef) -> Self {
        Self::of_owner(config, &segment_of(configurator))
    }

    /// The books of the Configurator with this segment: see [`segment_of`].
    pub(crate) fn of_owner(config: Arc<dyn ConfigStore>, owner: &str) -> Self {
        Self {
            config,
            owner: owner.to_owned(),
        }
    }

    /// Returns the owners of all books: see [`segment_of`].
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn owners(config: &dyn ConfigStore) -> Result<BTreeSet<String>, Fault> {
        let mut owners = BTreeSet::new();
        for prefix in [REVISIONS, STATES, TREES] {
            owners.extend(segments_below(config, prefix).await?);
        }
        Ok(owners)
    }

    /// Returns the owners whose books are retired, and since when they are.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn retired(
        config: &dyn ConfigStore,
    ) -> Result<BTreeMap<String, Timestamp>, Fault> {
        let keys = config.scan(RETIRED).await?.into_iter();
        let retired = keys.filter_map(|(key, since)| {
            let owner = key.strip_prefix(RETIRED)?.to_owned();
            let since = since.parse().unwrap_or_default();
            Some((owner, Timestamp::from_millis(since)))
        });
        Ok(retired.collect())
    }

    /// Notes that there is no Configurator of this name since then.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn retire(&self, since: Timestamp, fences: &[Fence]) -> Result<(), Fault> {
        let since = since.as_millis().to_string();
        let write = Write::Put(self.retired_key(), since);
        self.config.write(vec![write], fences).await
    }

    /// Notes that there is a Configurator of this name again.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn resume(&self, fences: &[Fence]) -> Result<(), Fault> {
        let write = Write::Delete(self.retired_key());
        self.config.write(vec![write], fences).await
    }

    /// Removes the books, if they are retired since then. No state that they know is accepted from now on.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn close(&self, since: Timestamp, fences: &[Fence]) -> Result<(), Fault> {
        let key = self.retired_key();
        let is_retired = [Condition::is(key.as_str(), since.as_millis().to_string())];
        let prefixes = [REVISIONS, STATES, TREES].map(|prefix| format!("{prefix}{}/", self.owner));
        let writes = prefixes.into_iter().map(Write::DeletePrefix);
        let writes = writes.chain([Write::Delete(key)]).collect();
        let closed = self.config.write_if(writes, &is_retired, fences);
        closed.await.map(drop)
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

    /// Returns the entry of the object's state.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn entry(&self, uid: &str) -> Result<Option<Entry>, Fault> {
        let entry = self.config.get(&self.revision_key(uid)).await?;
        Ok(entry.and_then(Entry::read))
    }

    /// Replaces what is known of the object's state, with these writes in the same transaction. `false`: somebody else has
    /// replaced it, and nothing is written.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn book(
        &self,
        uid: &str,
        known: Option<&Entry>,
        entry: &Entry,
        mut writes: Vec<Write>,
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        let key = self.revision_key(uid);
        let is_known = match known {
            Some(known) => Condition::is(key.as_str(), known.text.as_str()),
            None => Condition::is_absent(key.as_str()),
        };
        writes.push(Write::Put(key, entry.text.clone()));
        if self.config.write_if(writes, &[is_known], fences).await? {
            return Ok(true);
        }
        // An earlier attempt was carried out, and its answer lost.
        Ok(self.entry(uid).await?.as_ref() == Some(entry))
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
        let Some(text) = self.config.get(&self.moved_key(uid, revision)).await? else {
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
        let write = self.moving(uid, revision, memento);
        self.config.write(vec![write], fences).await
    }

    /// Returns the write that keeps them.
    pub(crate) fn moving(&self, uid: &str, revision: u64, memento: &Memento) -> Write {
        let moved = json!({"nodes": memento.nodes, "engine": memento.engine.as_str()});
        Write::Put(self.moved_key(uid, revision), moved.to_string())
    }

    /// The write that removes a state which a newer one replaces.
    pub(crate) fn dropping(&self, uid: &str, revision: u64) -> Write {
        Write::Delete(self.moved_key(uid, revision))
    }

    /// Removes a state that a newer one has replaced. A failure is harmless.
    pub(crate) async fn drop_moved(&self, uid: &str, revision: u64, fences: &[Fence]) {
        let write = self.dropping(uid, revision);
        if let Err(fault) = self.config.write(vec![write], fences).await {
            tracing::debug!(%fault, "an older state could not be removed");
        }
    }

    /// The phase and the memento of a state whose place is the config store, as JSON.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn pointer(&self, uid: &str) -> Result<Option<Value>, Fault> {
        let stored = self.config.get(&self.pointer_key(uid)).await?;
        Ok(stored.map(|stored| serde_json::from_str(&stored).unwrap_or_default()))
    }

    /// Returns the write of the phase and the memento.
    pub(crate) fn pointing(&self, uid: &str, pointer: &Value) -> Write {
        Write::Put(self.pointer_key(uid), pointer.to_string())
    }

    /// The text of a tree.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn tree(&self, digest: &str) -> Result<Option<String>, Fault> {
        self.config.get(&self.tree_key(digest)).await
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

    fn revision_key(&self, uid: &str) -> String {
        format!("{REVISIONS}{}/{uid}", self.owner)
    }

    fn retired_key(&self) -> String {
        format!("{RETIRED}{}", self.owner)
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
