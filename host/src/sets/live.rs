//! One set, as the host has it in memory.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use configurator_core::desired::check::CheckedSet;
use configurator_core::desired::difference::difference;
use configurator_core::desired::marks::{self, SetId};
use configurator_core::desired::{Content, DesiredEntry, store_mark};
use configurator_core::document::Document;
use configurator_core::field;
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::members::Members;
use configurator_core::graph::observation::{Found, Health, Present, Rejection, RejectionKind};
use configurator_core::request::Readiness;
use configurator_core::retry::Tries;
use configurator_core::time::Timestamp;
use configurator_schema::cel::Condition;
use serde_json::Value;

use super::corrections::Corrections;
use super::idle::Completed;
use super::inventory::Stored;
use super::kinds::ServedKind;
use super::seen::{ReadFor, Seen, content_hash, is_known};
use crate::objects::text;
use crate::readiness::ReadyWhen;

/// The inventory of a set, what was observed of its members, and the entries that a handler returned last.
pub(crate) struct LiveSet {
    pub(crate) id: SetId,
    pub(crate) stored: Stored,
    pub(crate) members: Members,
    pub(crate) wanted: Option<Wanted>,
    /// Whether the kinds of all members are watched, and none is missing at the API.
    pub(crate) is_watched: bool,
    /// How often in a row actions failed, by member.
    pub(crate) tries: HashMap<MemberKey, Tries>,
    pub(super) seen: HashMap<MemberKey, Seen>,
    /// The corrections of members that had drifted.
    pub(super) corrections: HashMap<MemberKey, Corrections>,
    /// Members that a watch showed to be gone while an action for them was under way. The answer to the action may be older than that.
    doubted: HashSet<MemberKey>,
    /// Members that others have changed, and that nobody corrects at the moment. It was told of each.
    pub(crate) drifted: BTreeSet<MemberKey>,
    /// What it was when it was complete. `None`: it is not, or something has changed since.
    pub(super) completed: Option<Completed>,
    /// When a member was seen last.
    pub(super) touched: Timestamp,
}

/// The entries that a handler returned.
pub(crate) struct Wanted {
    pub(crate) checked: Arc<CheckedSet>,
    /// The digest of all entries.
    pub(crate) digest: String,
    /// By the index of the entry.
    pub(super) entries: Vec<WantedEntry>,
    by_key: HashMap<MemberKey, usize>,
    /// Whether a member is in a store.
    is_of_stores: bool,
}

/// One entry that a handler returned.
pub(crate) struct WantedEntry {
    /// The digest of the entry.
    pub(crate) digest: String,
    /// The kind of its object. `None`: the API did not serve it when it was asked last.
    pub(crate) kind: Option<ServedKind>,
    pub(super) conditions: Conditions,
}

/// When a member is ready, and when it has failed.
pub(super) struct Conditions {
    ready_when: ReadyWhen,
    failed_when: Option<Box<Condition>>,
}

impl Wanted {
    /// Compiles the expressions of a checked set. `digests` and `kinds` are by the index of the entry.
    ///
    /// # Errors
    /// The first expression that does not compile, with the name of its entry.
    pub(crate) fn new(
        checked: Arc<CheckedSet>,
        digest: String,
        digests: Vec<String>,
        kinds: Vec<Option<ServedKind>>,
    ) -> Result<Self, String> {
        let set = &checked.set.entries;
        let mut entries = Vec::with_capacity(set.len());
        for ((entry, digest), kind) in set.iter().zip(digests).zip(kinds) {
            let of_entry = |error: String| format!("entry {:?}: {error}", entry.name);
            let default = match &entry.content {
                Content::Kubernetes(_) => Readiness::Healthy,
                Content::Config(_) | Content::Secret(_) => Readiness::Exists,
            };
            let ready_when = entry.ready_when.as_ref().unwrap_or(&default);
            let failed_when = entry.failed_when.as_deref();
            let failed_when = failed_when.map(|source| {
                let compiled = Condition::compile(source);
                compiled.map_err(|error| of_entry(format!("`failed-when`: {error}")))
            });
            entries.push(WantedEntry {
                digest,
                kind,
                conditions: Conditions {
                    ready_when: ReadyWhen::new(ready_when).map_err(of_entry)?,
                    failed_when: failed_when.transpose()?.map(Box::new),
                },
            });
        }
        let by_key = checked.graph.entries().iter().enumerate();
        let by_key = by_key.map(|(index, entry)| (entry.key.clone(), index));
        let mut graph = checked.graph.entries().iter();
        Ok(Self {
            is_of_stores: graph.any(|entry| entry.key.partition().is_some()),
            by_key: by_key.collect(),
            checked,
            digest,
            entries,
        })
    }

    /// The entry with this index, and its declaration.
    pub(crate) fn entry(&self, index: usize) -> Option<(&DesiredEntry, &WantedEntry)> {
        Some((
            self.checked.set.entries.get(index)?,
            self.entries.get(index)?,
        ))
    }

    /// The entry that describes a member.
    pub(crate) fn entry_of(&self, key: &MemberKey) -> Option<(&DesiredEntry, &WantedEntry)> {
        self.entry(*self.by_key.get(key)?)
    }

    /// All entries with their members. The kind is `None` if the API did not serve it when it was asked last.
    pub(crate) fn members(
        &self,
    ) -> impl Iterator<Item = (&DesiredEntry, &MemberKey, Option<&ServedKind>)> {
        let graph = self.checked.graph.entries().iter();
        let entries = self.checked.set.entries.iter().zip(graph);
        entries
            .zip(&self.entries)
            .map(|((entry, member), wanted)| (entry, &member.key, wanted.kind.as_ref()))
    }

    /// The entries whose kind the API did not serve when it was asked last.
    pub(crate) fn unserved(&mut self) -> impl Iterator<Item = (&DesiredEntry, &mut WantedEntry)> {
        let entries = self.checked.set.entries.iter().zip(&mut self.entries);
        entries.filter(|(entry, wanted)| object_of(entry).is_some() && wanted.kind.is_none())
    }
}

/// The object that an entry describes.
pub(crate) fn object_of(entry: &DesiredEntry) -> Option<&Document> {
    match &entry.content {
        Content::Kubernetes(object) => Some(object),
        Content::Config(_) | Content::Secret(_) => None,
    }
}

impl LiveSet {
    pub(crate) fn new(stored: Stored, members: Members) -> Self {
        Self {
            id: SetId::of(&stored.object_set),
            stored,
            members,
            wanted: None,
            is_watched: false,
            tries: HashMap::new(),
            seen: HashMap::new(),
            corrections: HashMap::new(),
            doubted: HashSet::new(),
            drifted: BTreeSet::new(),
            completed: None,
            touched: Timestamp::default(),
        }
    }

    /// Takes over what a handler wants. Members whose entry has changed differ from it until they are written.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        for (index, graph_entry) in wanted.checked.graph.entries().iter().enumerate() {
            let Some(entry) = wanted.entries.get(index) else {
                continue;
            };
            let before = self.wanted.as_ref().and_then(|before| {
                let index = *before.by_key.get(&graph_entry.key)?;
                before.entries.get(index)
            });
            if before.is_some_and(|before| before.digest == entry.digest) {
                continue;
            }
            let known = self.members.get_mut(&graph_entry.key);
            known.observation.found = match &known.member {
                // Its readiness may be told by other rules, and its object was not kept.
                Some(_) => Found::Unknown,
                // The server refuses to create it if it exists, and then it is read.
                None => Found::Absent,
            };
            known.observation.rejection = None;
            self.tries.remove(&graph_entry.key);
        }
        self.wanted = Some(wanted);
        self.completed = None;
        self.is_watched = false;
    }

    /// Takes in an object that was read, or that there is none, and returns whether anything changed that a plan depends on. An object that
    /// is older than the one known is ignored.
    pub(crate) fn observe(
        &mut self,
        key: &MemberKey,
        object: Option<&Value>,
        read_for: ReadFor,
        now: Timestamp,
    ) -> bool {
        self.touched = now;
        let Some(object) = object else {
            self.seen.remove(key);
            let known = self.members.get_mut(key);
            let is_news = known.observation.found != Found::Absent;
            known.observation.found = Found::Absent;
            self.completed.take_if(|_| is_news);
            return is_news;
        };
        let before = self.seen.get(key);
        let mut seen = Seen::of(object, before, read_for);
        let is_older = before.is_some_and(|before| before.version > seen.version);
        let uid = text(object, "/metadata/uid");
        let known_uid = match self.members.get(key).map(|known| &known.observation.found) {
            Some(Found::Present(present)) => present.uid.as_str(),
            _ => "",
        };
        if is_older && known_uid == uid {
            return false;
        }
        let content = content_hash(object);
        if read_for == ReadFor::Write {
            seen.settled = Some(content);
        }
        let is_status_older = seen.has_older_status();
        let wanted = self.wanted.as_ref().and_then(|wanted| wanted.entry_of(key));
        let (differs, health) = match wanted {
            None => (false, Health::Ready),
            Some((entry, wanted)) => (
                wanted.differs(entry, object, &seen, content),
                wanted.conditions.health(object, is_status_older),
            ),
        };
        if !differs {
            seen.settled = Some(content);
        }
        let known = self.members.get_mut(key);
        let unready_since = match &known.observation.found {
            Found::Present(before)
                if read_for == ReadFor::Look && before.health != Health::Ready =>
            {
                before.unready_since
            }
            _ => now,
        };
        let present = Present {
            uid: uid.to_owned(),
            owner: self.id.owner_of(object),
            is_terminating: field::at(object, "/metadata/deletionTimestamp").is_some(),
            is_marked: marks::is_pruning(object),
            differs,
            health,
            unready_since,
        };
        let found = Found::Present(Box::new(present));
        let is_news = !is_same(&known.observation.found, &found);
        if is_news {
            known.observation.rejection = None;
        }
        known.observation.found = found;
        self.completed.take_if(|_| is_news);
        self.seen.insert(key.clone(), seen);
        if let Some(contested) = self.contested(key) {
            self.members.get_mut(key).observation.rejection = Some(contested);
        }
        is_news
    }

    /// Takes note of a correction of a member that had drifted. Returns whether a fight has begun with it: the next ones are spaced out.
    pub(crate) fn corrected(&mut self, key: &MemberKey, now: Timestamp) -> bool {
        self.corrections.entry(key.clone()).or_default().note(now)
    }

    /// The reason to wait with the correction of a member that others change again and again.
    fn contested(&self, key: &MemberKey) -> Option<Rejection> {
        let next = self.corrections.get(key)?.next()?;
        let found = &self.members.get(key)?.observation.found;
        let differs = matches!(found, Found::Present(present) if present.differs);
        let (_, wanted) = self.wanted.as_ref()?.entry_of(key)?;
        // An entry that has changed is written at once.
        (differs && self.is_applied(key, wanted)).then(|| Rejection {
            kind: RejectionKind::RetryAt(next),
            message: format!(
                "{key} is changed by others again and again; the next correction is at {next}"
            ),
        })
    }

    /// Whether a version of a member is the one that was read last, or an older one.
    pub(super) fn has_version(&self, key: &MemberKey, version: Option<u64>) -> bool {
        let seen = self.seen.get(key);
        seen.is_some_and(|seen| is_known(seen.version, version))
    }

    /// Has a member read again: its state is not known any more.
    pub(crate) fn doubt(&mut self, key: &MemberKey) {
        self.completed = None;
        let observation = &mut self.members.get_mut(key).observation;
        observation.found = Found::Unknown;
        if observation.is_busy {
            self.doubted.insert(key.clone());
        }
    }

    /// Takes in that the API does not serve the kind of a member.
    pub(crate) fn lose_kind(&mut self, key: &MemberKey) {
        self.completed = None;
        self.members.get_mut(key).observation.found = Found::NoKind;
        self.seen.remove(key);
        if let Some(wanted) = &mut self.wanted
            && let Some(index) = wanted.by_key.get(key)
            && let Some(entry) = wanted.entries.get_mut(*index)
        {
            entry.kind = None;
            self.is_watched = false;
        }
    }

    /// Whether the API did not serve the kind of a member when it was asked last.
    pub(crate) fn lacks_kind(&self) -> bool {
        self.without_kind().next().is_some()
    }

    /// Has the members read again whose kind the API did not serve.
    pub(crate) fn seek_kinds(&mut self) {
        let keys: Vec<MemberKey> = self.without_kind().cloned().collect();
        for key in keys {
            self.members.get_mut(&key).observation.found = Found::Unknown;
        }
    }

    /// Whether every member is as its entry describes it and ready, and nothing else is known of the set.
    pub(super) fn is_quiet(&self) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        let is_settled = |found: &Found| {
            matches!(found, Found::Present(present)
                if !present.differs && !present.is_terminating && !present.is_marked && present.health == Health::Ready)
        };
        let mut members = self.members.iter();
        self.tries.is_empty()
            && self.doubted.is_empty()
            && self.drifted.is_empty()
            && members.all(|(key, known)| {
                wanted.by_key.contains_key(key)
                    && is_settled(&known.observation.found)
                    && known.observation.rejection.is_none()
                    && self
                        .seen
                        .get(key)
                        .is_some_and(|seen| seen.settled.is_some())
            })
    }

    fn without_kind(&self) -> impl Iterator<Item = &MemberKey> {
        let known = self.members.iter();
        let lost = known.filter(|(_, known)| matches!(known.observation.found, Found::NoKind));
        lost.map(|(key, _)| key)
    }

    /// Ends the action of a member, after its answer was taken in.
    pub(crate) fn end_action(&mut self, key: &MemberKey, rejection: Option<Rejection>) {
        let observation = &mut self.members.get_mut(key).observation;
        observation.is_busy = false;
        if self.doubted.remove(key) {
            observation.found = Found::Unknown;
        }
        let rejection = rejection.or_else(|| self.contested(key));
        self.members.get_mut(key).observation.rejection = rejection;
    }

    /// The members in the stores that exist, as far as is known: all of them, or those that are not ready.
    pub(crate) fn members_in_stores(&self, all: bool) -> impl Iterator<Item = &MemberKey> {
        let has_any = self
            .wanted
            .as_ref()
            .is_some_and(|wanted| wanted.is_of_stores);
        let members = has_any.then(|| self.members.iter()).into_iter().flatten();
        let polled = members.filter(move |(key, known)| match &known.observation.found {
            Found::Present(present) => {
                key.partition().is_some() && (all || present.health != Health::Ready)
            }
            Found::Unknown | Found::NoKind | Found::Absent => false,
        });
        polled.map(|(key, _)| key)
    }

    /// The version of the object that was read last.
    pub(crate) fn version_of(&self, key: &MemberKey) -> Option<u64> {
        self.seen.get(key)?.version
    }

    /// The generation of the object that was read last. `None`: it has none.
    pub(crate) fn generation_of(&self, key: &MemberKey) -> Option<u64> {
        self.seen.get(key)?.generation
    }

    /// Whether the object that was read last carries the digest of its entry: the host has applied it since the entry last changed.
    pub(crate) fn is_applied(&self, key: &MemberKey, entry: &WantedEntry) -> bool {
        self.seen
            .get(key)
            .is_some_and(|seen| seen.digest.as_deref() == Some(&*entry.digest))
    }
}

/// Whether a plan is the same for both. The time is that of the first.
fn is_same(before: &Found, after: &Found) -> bool {
    match (before, after) {
        (Found::Present(before), Found::Present(after)) => {
            before.uid == after.uid
                && before.owner == after.owner
                && before.is_terminating == after.is_terminating
                && before.is_marked == after.is_marked
                && before.differs == after.differs
                && before.health == after.health
        }
        (before, after) => before == after,
    }
}

impl WantedEntry {
    fn differs(&self, entry: &DesiredEntry, object: &Value, seen: &Seen, content: u64) -> bool {
        if seen.digest.as_deref() != Some(&*self.digest) {
            return true;
        }
        if seen.settled == Some(content) {
            return false;
        }
        let Some(desired) = object_of(entry) else {
            // Whoever changes a generated secret gives it another value for good.
            let is_generated =
                matches!(&entry.content, Content::Secret(secret) if secret.value.is_none());
            return store_mark::is_changed(object)
                && !(is_generated && object.get("version").is_some());
        };
        let mut desired = desired.to_value();
        super::ignored(entry).copy(object, &mut desired);
        difference(&desired, object).is_some()
    }
}

impl Conditions {
    /// Whether an object is ready. `is_status_older` says that its status is from before its last write.
    pub(super) fn health(&self, object: &Value, is_status_older: bool) -> Health {
        // What an expression is about may not be there yet.
        let has_failed = self.failed_when.as_ref();
        if has_failed.is_some_and(|condition| condition.holds(object) == Ok(true)) {
            return Health::Failed("the expression of `failed-when` is true".to_owned());
        }
        self.ready_when.health(object, is_status_older)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The answer to a deletion was on its way when the watch showed that the object is gone.
    #[test]
    fn an_answer_from_before_the_deletion_was_seen_is_not_believed() {
        let key = MemberKey::Kubernetes {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        let members = Members::new(Vec::new().into_iter().collect(), HashMap::new());
        let mut set = LiveSet::new(Stored::default(), members);
        set.members.get_mut(&key).observation.is_busy = true;
        set.doubt(&key);
        let answer = json!({"metadata": {
            "uid": "1", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z",
        }});
        set.observe(&key, Some(&answer), ReadFor::Look, Timestamp::default());
        set.end_action(&key, None);
        let observation = &set.members.get_mut(&key).observation;
        assert_eq!(observation.found, Found::Unknown);
        assert!(!observation.is_busy);
        // The next answer is believed.
        set.observe(&key, None, ReadFor::Look, Timestamp::default());
        set.end_action(&key, None);
        assert_eq!(set.members.get_mut(&key).observation.found, Found::Absent);
    }
}
