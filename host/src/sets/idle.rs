//! Idle sets. The host keeps only a summary of each in memory, which tells whether an event changes anything. If one does, the host reads the
//! rest again.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::observation::{Found, Health, MemberOwner, Present};
use configurator_core::time::Timestamp;
use serde_json::Value;

use super::corrections::Corrections;
use super::live::{Conditions, LiveSet, Wanted};
use super::registry::{Sets, Shown, WatchedKind};
use super::seen::{ReadFor, Seen, content_hash, is_known};
use crate::clock::SharedClock;
use crate::metrics::{CountedIdle, SetMetrics};

/// The longest time between two searches for idle sets.
const ROUND: Duration = Duration::from_secs(5);

/// Periodically replaces sets without events for this long with summaries. Never returns.
pub(crate) async fn summarize(sets: Arc<Sets>, clock: SharedClock, after: Duration) -> Infallible {
    loop {
        clock.sleep(after.min(ROUND)).await;
        sets.summarize(after, clock.now());
    }
}

/// What a set was when it was complete. As long as a run finds the same, and no member has changed, there is nothing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completed {
    /// The digest of all entries.
    pub(super) digest: String,
    /// As the inventory has it.
    pub(super) termination_policy: String,
    pub(super) policy: TerminationPolicy,
    /// The generation of the owner.
    pub(super) generation: Option<i64>,
}

/// The summary of a complete set.
pub(super) struct IdleSet {
    pub(super) completed: Completed,
    /// In the order of their keys' hashes.
    members: Box<[IdleMember]>,
    /// The members in the stores, which are polled.
    pub(super) in_stores: Box<[MemberKey]>,
    /// Whether a member may have changed since.
    pub(super) is_doubted: bool,
    corrections: HashMap<MemberKey, Corrections>,
    _counted: CountedIdle,
}

/// The summary of a member that is ready and as its entry describes it.
struct IdleMember {
    /// The hash of its key.
    key: u64,
    /// The hash of its kind.
    kind: u64,
    /// The hash of its namespace.
    namespace: u64,
    /// The hash of the digest of its entry.
    digest: u64,
    seen: Seen,
    conditions: Conditions,
    /// Whether it may have changed since.
    is_doubted: bool,
}

impl IdleSet {
    /// Summarizes a set, and takes out of it what the summary needs. `None`: it has something that a summary does not keep.
    pub(super) fn of(
        set: &mut LiveSet,
        hasher: &RandomState,
        metrics: &SetMetrics,
    ) -> Option<Self> {
        if set.completed.is_none() || !set.is_quiet() {
            return None;
        }
        let in_stores = set.members_in_stores(true).cloned().collect();
        let completed = set.completed.take()?;
        let Wanted {
            checked, entries, ..
        } = set.wanted.take()?;
        let graph = checked.graph.entries().iter();
        let members = graph.zip(entries).filter_map(|(graph_entry, entry)| {
            let seen = set.seen.remove(&graph_entry.key)?;
            Some(IdleMember {
                key: hasher.hash_one(&graph_entry.key),
                kind: kind_hash(hasher, &graph_entry.key),
                namespace: namespace_hash(hasher, &graph_entry.key),
                digest: hasher.hash_one(&entry.digest),
                seen: Seen {
                    digest: None,
                    ..seen
                },
                conditions: entry.conditions,
                is_doubted: false,
            })
        });
        let mut members: Box<[IdleMember]> = members.collect();
        members.sort_unstable_by_key(|member| member.key);
        Some(Self {
            completed,
            members,
            in_stores,
            is_doubted: false,
            corrections: std::mem::take(&mut set.corrections),
            _counted: metrics.idle(),
        })
    }

    /// Takes in what a watch or a poll has shown, and returns whether a member may have changed by it.
    pub(super) fn show(&mut self, hasher: &RandomState, key: &MemberKey, shown: &Shown) -> bool {
        let key = hasher.hash_one(key);
        let Ok(index) = self.members.binary_search_by_key(&key, |member| member.key) else {
            return false;
        };
        let Some(member) = self.members.get_mut(index) else {
            return false;
        };
        let is_same = match shown {
            Shown::Object(object) => member.is_same(object),
            Shown::Watched(object) if is_known(member.seen.version, object.version()) => true,
            Shown::Watched(object) => member.is_same(&object.to_value()),
            Shown::Unselected => false,
        };
        member.is_doubted |= !is_same;
        self.is_doubted |= !is_same;
        !is_same
    }

    /// Takes in the hashes of all objects of a kind that a watch has listed. Returns whether a member is missing.
    pub(super) fn list(
        &mut self,
        hasher: &RandomState,
        watched: &WatchedKind,
        is_listed: impl Fn(u64) -> bool,
    ) -> bool {
        let kind = hasher.hash_one((&watched.group, &watched.kind));
        let namespace = hasher.hash_one(&watched.namespace);
        let is_everywhere = watched.covers("");
        let mut is_missing = false;
        for member in &mut self.members {
            let is_covered = is_everywhere || member.namespace == namespace;
            if member.kind == kind && is_covered && !is_listed(member.key) {
                member.is_doubted = true;
                is_missing = true;
            }
        }
        self.is_doubted |= is_missing;
        is_missing
    }

    /// Gives a set that was read again what is known of its members. Those that may have changed are to be read.
    pub(super) fn restore(self, set: &mut LiveSet, hasher: &RandomState, now: Timestamp) {
        let Some(wanted) = &set.wanted else {
            return;
        };
        let mut known: HashMap<u64, IdleMember> = self
            .members
            .into_iter()
            .filter(|member| !member.is_doubted)
            .map(|member| (member.key, member))
            .collect();
        let checked = wanted.checked.clone();
        for (graph_entry, entry) in checked.graph.entries().iter().zip(&wanted.entries) {
            let key = &graph_entry.key;
            let Some(idle) = known.remove(&hasher.hash_one(key)) else {
                continue;
            };
            if idle.digest != hasher.hash_one(&entry.digest) {
                continue;
            }
            let member = set.members.get_mut(key);
            let Some(record) = &member.member else {
                continue;
            };
            let Some(uid) = record.uid.clone() else {
                continue;
            };
            member.observation.found = Found::Present(Box::new(Present {
                uid,
                owner: MemberOwner::ThisSet {
                    nonce: record.nonce.clone(),
                },
                is_terminating: false,
                is_marked: false,
                differs: false,
                health: Health::Ready,
                unready_since: now,
            }));
            let seen = Seen {
                digest: Some(entry.digest.clone()),
                ..idle.seen
            };
            set.seen.insert(key.clone(), seen);
        }
        set.corrections = self.corrections;
    }
}

impl IdleMember {
    /// Whether an object has what the member had when its set was complete, and is ready.
    fn is_same(&mut self, object: &Value) -> bool {
        let seen = Seen::of(object, Some(&self.seen), ReadFor::Look);
        if self.seen.version > seen.version {
            // The event is older than the set.
            return true;
        }
        let health = self.conditions.health(object, seen.has_older_status());
        let is_same = seen.settled == Some(content_hash(object)) && health == Health::Ready;
        if is_same {
            self.seen = Seen {
                digest: None,
                ..seen
            };
        }
        is_same
    }
}

/// The hash of a member's kind. Members in stores have none.
fn kind_hash(hasher: &RandomState, key: &MemberKey) -> u64 {
    match key {
        MemberKey::Kubernetes { group, kind, .. } => hasher.hash_one((group, kind)),
        MemberKey::Config { .. } | MemberKey::Secret { .. } => 0,
    }
}

fn namespace_hash(hasher: &RandomState, key: &MemberKey) -> u64 {
    match key {
        MemberKey::Kubernetes { namespace, .. } => hasher.hash_one(namespace),
        MemberKey::Config { .. } | MemberKey::Secret { .. } => 0,
    }
}
