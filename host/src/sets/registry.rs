//! The sets of one Configurator that the host has in memory.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configurator_core::fault::Fault;
use configurator_core::graph::member::MemberKey;
use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use super::idle::{Completed, IdleSet};
use super::inventory::InventoryStore;
use super::kinds::{ServedKind, ServedKinds};
use super::live::LiveSet;
use super::seen::ReadFor;
use super::status::UNCONFIRMED;
use super::stores::Stores;
use crate::metrics::{SetCounts, SetMetrics};
use crate::resource::object_set::SetOwner;
use crate::seal::HostKey;
use crate::watched::Watched;

/// The sets of one Configurator. A set is in a run, or at rest here.
pub(crate) struct Sets {
    pub(super) inventories: InventoryStore,
    pub(super) kinds: ServedKinds,
    pub(super) key: Arc<HostKey>,
    pub(super) metrics: SetMetrics,
    pub(super) stores: Stores,
    known: Mutex<Known>,
    /// Of the keys of members of idle sets.
    hasher: RandomState,
    /// Told when other kinds are to be watched.
    wanted: Notify,
}

#[derive(Default)]
struct Known {
    /// By the uid of the owner.
    sets: HashMap<String, Slot>,
    /// The owner's uid, by the id of the set.
    owners: HashMap<String, String>,
}

struct Slot {
    owner: ObjectRef,
    set: Place,
    watched: BTreeSet<WatchedKind>,
    /// The numbers in the metrics.
    counts: Option<SetCounts>,
}

enum Place {
    AtRest(Box<LiveSet>),
    Idle(Box<IdleSet>),
    InRun(Arc<Inbox>),
}

/// A set that was taken into a run.
pub(super) struct Taken {
    /// The set. `None`: it is to be read again.
    pub(super) live: Option<Box<LiveSet>>,
    /// What is known of it nevertheless.
    pub(super) idle: Option<Box<IdleSet>>,
    /// Collects its events.
    pub(super) inbox: Arc<Inbox>,
}

/// A kind in a namespace whose members are watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WatchedKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// Empty: objects of a cluster-scoped kind, or those in all namespaces.
    pub(crate) namespace: String,
}

/// Collects the events of members whose set is in a run.
#[derive(Default)]
pub(super) struct Inbox {
    news: Mutex<News>,
    told: Notify,
}

/// The events since the run last took them in.
#[derive(Default)]
struct News {
    members: HashMap<MemberKey, Shown>,
    listings: Vec<Arc<Listing>>,
}

/// All objects of a kind that carry the label, as a watch has listed them.
struct Listing {
    watched: WatchedKind,
    objects: HashSet<MemberKey>,
}

/// A member of a store, to be read by a poll.
pub(super) struct PolledMember {
    /// The id of the set.
    pub(super) set: String,
    pub(super) key: MemberKey,
}

/// The last event of a member.
pub(crate) enum Shown {
    /// The object, as a poll has read it.
    Object(Box<Value>),
    /// The object, as a watch has shown it.
    Watched(Box<Watched>),
    /// It does not carry the label any more, or does not exist.
    Unselected,
}

impl Inbox {
    /// Takes in what has come, and returns whether anything changed that a plan depends on.
    pub(super) fn take_in(&self, set: &mut LiveSet, now: Timestamp) -> bool {
        let news = std::mem::take(&mut *self.news());
        let mut is_news = false;
        for listing in news.listings {
            is_news |= listing.take_in(set, now);
        }
        for (key, shown) in news.members {
            is_news |= show(set, &key, &shown, now);
        }
        is_news
    }

    /// Returns when something has come.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }

    fn put(&self, key: MemberKey, shown: Shown) {
        self.news().members.insert(key, shown);
        self.told.notify_one();
    }

    fn list(&self, listing: Arc<Listing>) {
        self.news().listings.push(listing);
        self.told.notify_one();
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listing {
    /// Has the members read again that exist, as far as is known, and are not listed. One that was created since is read for nothing.
    fn take_in(&self, set: &mut LiveSet, now: Timestamp) -> bool {
        let is_missing = |key: &MemberKey| {
            let is_of_kind = matches!(key, MemberKey::Kubernetes { group, kind, namespace, .. }
                if *group == self.watched.group && *kind == self.watched.kind && self.watched.covers(namespace));
            is_of_kind && !self.objects.contains(key)
        };
        let members = set.members.inventory();
        let missing: Vec<MemberKey> = members
            .filter(|(key, member)| member.uid.is_some() && is_missing(key))
            .map(|(key, _)| key.clone())
            .collect();
        let mut is_news = false;
        for key in missing {
            is_news |= show(set, &key, &Shown::Unselected, now);
        }
        is_news
    }
}

impl Sets {
    pub(crate) fn new(
        inventories: InventoryStore,
        kinds: ServedKinds,
        stores: Stores,
        metrics: SetMetrics,
    ) -> Self {
        Self {
            inventories,
            kinds,
            key: stores.key.clone(),
            stores,
            metrics,
            known: Mutex::default(),
            hasher: RandomState::new(),
            wanted: Notify::new(),
        }
    }

    /// Whether an owner has an inventory.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn has_inventory(&self, owner: &ObjectRef, uid: &str) -> Result<bool, Fault> {
        let owner = SetOwner {
            namespace: owner.namespace.clone(),
            name: owner.name.clone(),
            uid: uid.to_owned(),
            ..SetOwner::default()
        };
        self.inventories.exists(&owner).await
    }

    /// Whether the set of an owner is in memory, and in no run.
    pub(crate) fn is_at_rest(&self, uid: &str) -> bool {
        let known = self.known();
        let slot = known.sets.get(uid);
        slot.is_some_and(|slot| matches!(slot.set, Place::AtRest(_)))
    }

    /// Whether the set of an owner is complete, as it was before, and nothing has changed since.
    pub(super) fn is_complete(&self, uid: &str, completed: &Completed) -> bool {
        let known = self.known();
        match known.sets.get(uid).map(|slot| &slot.set) {
            Some(Place::AtRest(set)) => set.completed.as_ref() == Some(completed),
            Some(Place::Idle(set)) => !set.is_doubted && set.completed == *completed,
            Some(Place::InRun(_)) | None => false,
        }
    }

    /// Takes the set of an owner into a run.
    pub(super) fn take(&self, owner: &ObjectRef, uid: &str) -> Taken {
        let inbox = Arc::<Inbox>::default();
        let mut known = self.known();
        let place = Place::InRun(inbox.clone());
        let before = match known.sets.get_mut(uid) {
            Some(slot) => Some(std::mem::replace(&mut slot.set, place)),
            None => {
                let slot = Slot {
                    owner: owner.clone(),
                    set: place,
                    watched: BTreeSet::new(),
                    counts: None,
                };
                known.sets.insert(uid.to_owned(), slot);
                None
            }
        };
        let (live, idle) = match before {
            Some(Place::AtRest(set)) => (Some(set), None),
            Some(Place::Idle(set)) => (None, Some(set)),
            // A run was dropped in the middle of an action, so the set is read again.
            Some(Place::InRun(_)) | None => (None, None),
        };
        Taken { live, idle, inbox }
    }

    /// Gives a set that was read again what is still known of its members.
    pub(super) fn restore(&self, idle: IdleSet, set: &mut LiveSet, now: Timestamp) {
        idle.restore(set, &self.hasher, now);
    }

    /// Replaces complete sets without events for this long with summaries.
    pub(super) fn summarize(&self, after: Duration, now: Timestamp) {
        for slot in self.known().sets.values_mut() {
            if let Place::AtRest(set) = &mut slot.set
                && now.since(set.touched) >= after
                && let Some(idle) = IdleSet::of(set, &self.hasher, &self.metrics)
            {
                slot.set = Place::Idle(Box::new(idle));
            }
        }
    }

    /// Tells which members of a set are to be watched from now on.
    pub(super) fn watch(&self, set: &LiveSet, watched: BTreeSet<WatchedKind>) {
        let mut known = self.known();
        let uid = &set.stored.owner.uid;
        known.owners.insert(set.id.to_string(), uid.clone());
        let Some(slot) = known.sets.get_mut(uid) else {
            return;
        };
        if slot.watched != watched {
            slot.watched = watched;
            self.wanted.notify_one();
        }
    }

    /// Updates the metrics of a set.
    pub(super) fn count(&self, uid: &str, counts: SetCounts) {
        let mut known = self.known();
        if let Some(slot) = known.sets.get_mut(uid) {
            let before = slot.counts.as_ref();
            self.metrics.count(before, Some(&counts));
            let is_unconfirmed = |counts: &SetCounts| counts.state == UNCONFIRMED;
            if is_unconfirmed(&counts) && !before.is_some_and(is_unconfirmed) {
                self.metrics.prune_refused();
            }
            slot.counts = Some(counts);
        }
    }

    /// Puts a set to rest after a run. What watches have shown meanwhile is taken in; returns whether it needs another run.
    pub(super) fn put(&self, mut set: Box<LiveSet>, inbox: &Inbox, now: Timestamp) -> bool {
        let mut known = self.known();
        // Nothing can come in while this is locked.
        let is_news = inbox.take_in(&mut set, now);
        if let Some(slot) = known.sets.get_mut(&set.stored.owner.uid) {
            slot.set = Place::AtRest(set);
        }
        is_news
    }

    /// Forgets the set of an owner. It is read again when it is needed.
    pub(crate) fn forget(&self, uid: &str) {
        let mut known = self.known();
        if let Some(slot) = known.sets.remove(uid) {
            self.metrics.count(slot.counts.as_ref(), None);
        }
        known.owners.retain(|_, owner| owner != uid);
        self.wanted.notify_one();
    }

    /// Forgets the sets of owners that another host has.
    pub(crate) fn let_go(&self, is_let_go: impl Fn(&str) -> bool) {
        let mut known = self.known();
        for (_, slot) in known.sets.extract_if(|uid, _| is_let_go(uid)) {
            self.metrics.count(slot.counts.as_ref(), None);
        }
        known.owners.retain(|_, uid| !is_let_go(uid));
        self.wanted.notify_one();
    }

    /// Returns when other kinds are to be watched.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// The kinds whose members are to be watched.
    pub(crate) fn watched(&self) -> HashSet<WatchedKind> {
        let known = self.known();
        let sets = known.sets.values();
        sets.flat_map(|slot| slot.watched.iter().cloned()).collect()
    }

    /// The members in the stores of sets at rest that exist, as far as is known: all of them, or those that are not ready.
    pub(super) fn polled(&self, all: bool) -> Vec<PolledMember> {
        let known = self.known();
        let mut polled = Vec::new();
        for (id, uid) in &known.owners {
            let keys: Vec<MemberKey> = match known.sets.get(uid).map(|slot| &slot.set) {
                Some(Place::AtRest(set)) => set.members_in_stores(all).cloned().collect(),
                Some(Place::Idle(set)) if all => set.in_stores.to_vec(),
                Some(Place::Idle(_) | Place::InRun(_)) | None => Vec::new(),
            };
            let set = |key| PolledMember {
                set: id.clone(),
                key,
            };
            polled.extend(keys.into_iter().map(set));
        }
        polled
    }

    /// Takes in what a watch has shown of a member of the set with this id, and returns the owner if it needs a run.
    pub(crate) fn show(
        &self,
        id: &str,
        key: MemberKey,
        shown: Shown,
        now: Timestamp,
    ) -> Option<ObjectRef> {
        let mut known = self.known();
        let uid = known.owners.get(id)?.clone();
        let slot = known.sets.get_mut(&uid)?;
        match &mut slot.set {
            Place::InRun(inbox) => {
                inbox.put(key, shown);
                None
            }
            Place::AtRest(set) => show(set, &key, &shown, now).then(|| slot.owner.clone()),
            Place::Idle(set) => {
                let is_news = set.show(&self.hasher, &key, &shown);
                is_news.then(|| slot.owner.clone())
            }
        }
    }

    /// A watch has listed all objects of a kind that carry the label. Returns the owners of members that are missing.
    pub(crate) fn listed(
        &self,
        watched: &WatchedKind,
        objects: HashSet<MemberKey>,
        now: Timestamp,
    ) -> Vec<ObjectRef> {
        let hashes = objects.iter().map(|key| self.hasher.hash_one(key));
        let hashes: HashSet<u64> = hashes.collect();
        let listing = Arc::new(Listing {
            watched: watched.clone(),
            objects,
        });
        let mut owners = Vec::new();
        for slot in self.known().sets.values_mut() {
            match &mut slot.set {
                Place::InRun(inbox) => inbox.list(listing.clone()),
                Place::AtRest(set) => {
                    if listing.take_in(set, now) {
                        owners.push(slot.owner.clone());
                    }
                }
                Place::Idle(set) => {
                    if set.list(&self.hasher, watched, |key| hashes.contains(&key)) {
                        owners.push(slot.owner.clone());
                    }
                }
            }
        }
        owners
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sets {
    fn drop(&mut self) {
        for slot in self.known().sets.values() {
            self.metrics.count(slot.counts.as_ref(), None);
        }
    }
}

/// Takes in what a watch has shown, and returns whether anything changed that a plan depends on.
fn show(set: &mut LiveSet, key: &MemberKey, shown: &Shown, now: Timestamp) -> bool {
    let is_known = set
        .members
        .get(key)
        .is_some_and(|known| known.member.is_some());
    match shown {
        // An object that carries the label without a record is found when its entry is written.
        _ if !is_known => false,
        Shown::Object(object) => set.observe(key, Some(object), ReadFor::Look, now),
        // It has been read already.
        Shown::Watched(object) if set.has_version(key, object.version()) => false,
        Shown::Watched(object) => set.observe(key, Some(&object.to_value()), ReadFor::Look, now),
        Shown::Unselected => {
            set.doubt(key);
            true
        }
    }
}

impl WatchedKind {
    /// The kind in all namespaces.
    pub(super) fn everywhere(&self) -> Self {
        Self {
            namespace: String::new(),
            ..self.clone()
        }
    }

    pub(super) fn group_kind(&self) -> (String, String) {
        (self.group.clone(), self.kind.clone())
    }

    /// Whether objects in this namespace are among those watched.
    pub(super) fn covers(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || self.namespace == namespace
    }

    /// The kind of a member, in its namespace.
    pub(super) fn of(kind: &ServedKind, key: &MemberKey) -> Option<Self> {
        let MemberKey::Kubernetes { namespace, .. } = key else {
            return None;
        };
        Some(Self {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
            namespace: namespace.clone(),
        })
    }
}
