//! The members of a set, as the host knows them.

use std::sync::Arc;

use indexmap::IndexMap;
use indexmap::map::Entry as At;

use super::Graph;
use super::entry::OnDelete;
use super::member::{Inventory, Member, MemberKey};
use super::observation::{Observation, Observations};
use super::plan::Action;

/// The inventory of a set, and what was observed of its members.
///
/// The members that entries describe come first, in the order of the entries, so that a plan looks up none of them.
#[derive(Debug, Clone, Default)]
pub struct Members {
    known: IndexMap<MemberKey, KnownMember>,
    /// The number of entries that the members were arranged for.
    entries: usize,
    /// The identity of the graph that they were arranged for. `None`: they were not.
    arranged_for: Option<Arc<()>>,
}

/// A member, as the host knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownMember {
    /// The inventory's record. `None`: the inventory does not have it.
    pub member: Option<Member>,
    /// The state that was observed last.
    pub observation: Observation,
}

impl Members {
    /// Joins an inventory with observations.
    #[must_use]
    pub fn new(inventory: Inventory, observations: Observations) -> Self {
        let mut members = Self::default();
        members.known.reserve(inventory.len());
        for (key, member) in inventory {
            members.known.entry(key).or_default().member = Some(member);
        }
        for (key, observation) in observations {
            members.known.entry(key).or_default().observation = observation;
        }
        members
    }

    /// The members of the inventory, in no particular order.
    pub fn inventory(&self) -> impl Iterator<Item = (&MemberKey, &Member)> {
        let known = self.known.iter();
        known.filter_map(|(key, known)| Some((key, known.member.as_ref()?)))
    }

    /// The number of members in the inventory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inventory().count()
    }

    /// Whether the inventory has no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inventory().next().is_none()
    }

    /// Returns what is known of a member. `None`: nothing.
    #[must_use]
    pub fn get(&self, key: &MemberKey) -> Option<&KnownMember> {
        self.known.get(key)
    }

    /// Returns what is known of a member, to change it. A member that was not known is from now on.
    pub fn get_mut(&mut self, key: &MemberKey) -> &mut KnownMember {
        self.known.entry(key.clone()).or_default()
    }

    /// All members that the host knows, with or without a record in the inventory.
    pub fn iter(&self) -> impl Iterator<Item = (&MemberKey, &KnownMember)> {
        self.known.iter()
    }

    /// Has every member of the inventory stay whatever becomes of its owner.
    pub fn retain_all(&mut self) {
        for known in self.known.values_mut() {
            if let Some(member) = &mut known.member {
                member.facts.on_delete = OnDelete::Retain;
            }
        }
    }

    /// Carries out an action that changes the inventory only; all others change nothing. `nonce` is for a member that the inventory does not
    /// have yet.
    pub fn record(&mut self, action: Action, nonce: impl FnOnce() -> String) {
        match action {
            Action::Record(key, facts) => {
                let known = self.get_mut(&key);
                match &mut known.member {
                    Some(member) => {
                        member.facts = facts;
                        member.removed_in = None;
                    }
                    member => {
                        *member = Some(Member {
                            facts,
                            removed_in: None,
                            nonce: nonce(),
                            uid: None,
                        });
                    }
                }
            }
            Action::Confirm(key, uid) => {
                if let Some(member) = &mut self.get_mut(&key).member {
                    member.uid = Some(uid);
                }
            }
            Action::Remove(key, version) => {
                if let Some(member) = &mut self.get_mut(&key).member {
                    member.removed_in = Some(version);
                }
            }
            Action::Forget(key) => self.get_mut(&key).member = None,
            Action::Observe(_)
            | Action::Apply { .. }
            | Action::Mark(..)
            | Action::Delete(..)
            | Action::Release(..) => {}
        }
    }

    /// Arranges the members for the entries of a graph, and drops all others that the inventory does not have. The time is linear; where the
    /// members are arranged for this graph already, it is that of the members without an entry.
    pub fn arrange(&mut self, graph: &Graph) {
        // Members that were added since then came after those of the entries.
        if !(self.arranged_for.as_ref()).is_some_and(|known| Arc::ptr_eq(known, &graph.identity)) {
            self.put_first(graph);
        }
        for index in (self.entries..self.known.len()).rev() {
            let is_unknown = |(_, known): (&MemberKey, &KnownMember)| known.member.is_none();
            if self.known.get_index(index).is_some_and(is_unknown) {
                self.known.swap_remove_index(index);
            }
        }
    }

    /// Brings the members of the entries to the places of the entries.
    fn put_first(&mut self, graph: &Graph) {
        let entries = graph.entries();
        for (index, entry) in entries.iter().enumerate() {
            let is_there = |(key, _): (&MemberKey, &KnownMember)| *key == entry.key;
            if self.known.get_index(index).is_some_and(is_there) {
                continue;
            }
            let at = match self.known.entry(entry.key.clone()) {
                At::Occupied(found) => found.index(),
                At::Vacant(vacant) => {
                    let at = vacant.index();
                    vacant.insert(KnownMember::default());
                    at
                }
            };
            self.known.swap_indices(at, index);
        }
        self.entries = entries.len();
        self.arranged_for = Some(graph.identity.clone());
    }

    /// The members that entries describe, in the order of the entries, for members that were arranged.
    pub(super) fn of_entries(&self) -> impl Iterator<Item = &KnownMember> {
        self.known.values().take(self.entries)
    }

    /// The members of the inventory without an entry, for members that were arranged.
    pub(super) fn without_entry(&self) -> impl Iterator<Item = (&MemberKey, &KnownMember)> {
        self.known.iter().skip(self.entries)
    }

    /// All members that the host knows.
    pub(super) fn all(&self) -> impl Iterator<Item = (&MemberKey, &KnownMember)> {
        self.known.iter()
    }

    /// The number of actions under way.
    pub(super) fn busy(&self) -> usize {
        let known = self.known.values();
        known.filter(|known| known.observation.is_busy).count()
    }
}
