//! The deletion of members, wave by wave.

use super::deletion::TerminationPolicy;
use super::entry::OnDelete;
use super::member::{Member, MemberKey};
use super::members::KnownMember;
use super::observation::{Found, Observation, Standing};
use super::plan::{Action, Budget, Wake};
use crate::time::Timestamp;

/// The state of a member that is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalState {
    /// It stays until all entries are ready, or until a person or a promotion allows more.
    Held,
    /// An action for it is under way, or about to begin.
    Busy,
    /// It goes after another member is gone.
    Blocked {
        /// The first such member.
        by: MemberKey,
    },
    /// It waits for something else. The text says for what.
    Waiting(String),
    /// The server rejected its deletion. The text has the server's words.
    Failed(String),
}

/// Members that are to go.
pub(super) struct Removal<'a> {
    policy: TerminationPolicy,
    now: Timestamp,
    /// Whether members are marked before they are deleted.
    marks: bool,
    members: Vec<(&'a MemberKey, &'a Member, &'a Observation)>,
}

impl<'a> Removal<'a> {
    pub(super) fn new(policy: TerminationPolicy, now: Timestamp, marks: bool) -> Self {
        Self {
            policy,
            now,
            marks,
            members: Vec::new(),
        }
    }

    /// Adds a member, if the inventory has it.
    pub(super) fn push(&mut self, key: &'a MemberKey, known: &'a KnownMember) {
        if let Some(member) = &known.member {
            self.members.push((key, member, &known.observation));
        }
    }

    /// Returns the writes that record in the inventory that members have no entry any more, in the order of their keys.
    pub(super) fn records(&self, version: u64) -> Vec<Action> {
        let members = self.members.iter();
        let mut keys: Vec<&MemberKey> = members
            .filter(|(_, member, _)| member.removed_in.is_none())
            .map(|(key, ..)| *key)
            .collect();
        keys.sort_unstable();
        let remove = |key: &MemberKey| Action::Remove(key.clone(), version);
        keys.into_iter().map(remove).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns all members, untouched.
    pub(super) fn hold(mut self) -> Vec<(MemberKey, RemovalState)> {
        self.sort();
        let members = self.members.iter();
        members
            .map(|(key, ..)| ((*key).clone(), RemovalState::Held))
            .collect()
    }

    /// Adds the next actions: releases of members that stay, and the deletion of the first wave of the others.
    pub(super) fn run(
        mut self,
        actions: &mut Vec<Action>,
        budget: &mut Budget,
        wake: &mut Wake,
    ) -> Vec<(MemberKey, RemovalState)> {
        self.sort();
        let mut deleted = self
            .members
            .iter()
            .filter(|(key, member, _)| !is_kept(key, member.facts.on_delete, self.policy));
        let first = deleted.next().map(|(key, member, _)| (*key, member.rank()));
        let mut states = Vec::with_capacity(self.members.len());
        for (key, member, observation) in &self.members {
            let keeps = is_kept(key, member.facts.on_delete, self.policy);
            let state = match first {
                Some((blocker, rank)) if !keeps && member.rank() > rank => RemovalState::Blocked {
                    by: blocker.clone(),
                },
                _ => self.step((key, member, observation), keeps, actions, budget, wake),
            };
            states.push(((*key).clone(), state));
        }
        states
    }

    fn sort(&mut self) {
        self.members
            .sort_by_key(|(key, member, _)| (member.rank(), *key));
    }

    fn step(
        &self,
        (key, member, observation): (&MemberKey, &Member, &Observation),
        keeps: bool,
        actions: &mut Vec<Action>,
        budget: &mut Budget,
        wake: &mut Wake,
    ) -> RemovalState {
        if observation.is_busy {
            return RemovalState::Busy;
        }
        let present = match &observation.found {
            Found::Unknown => {
                budget.spend(actions, || Action::Observe(key.clone()));
                return RemovalState::Busy;
            }
            Found::Present(present) if present.carries_nonce_of(member) => present,
            // Someone else's object may have its name by now.
            Found::NoKind | Found::Absent | Found::Present(_) => {
                actions.push(Action::Forget(key.clone()));
                return RemovalState::Busy;
            }
        };
        let uid = || present.uid.clone();
        if member.uid.as_ref() != Some(&present.uid) {
            actions.push(Action::Confirm(key.clone(), uid()));
            return RemovalState::Busy;
        }
        if let Some(rejection) = &observation.rejection {
            match rejection.standing(self.now) {
                Standing::Over => {}
                Standing::Until(at) => {
                    wake.at(at);
                    return RemovalState::Waiting(rejection.message.clone());
                }
                Standing::Final => return RemovalState::Failed(rejection.message.clone()),
            }
        }
        if keeps {
            budget.spend(actions, || Action::Release(key.clone(), uid()));
        } else if present.is_terminating {
            return RemovalState::Waiting(format!(
                "{key} is being deleted; its finalizers are not complete"
            ));
        } else if self.marks && !present.is_marked {
            budget.spend(actions, || Action::Mark(key.clone(), uid()));
        } else {
            budget.spend(actions, || Action::Delete(key.clone(), uid()));
        }
        RemovalState::Busy
    }
}

/// Whether a member stays when its owner or its entry is gone.
fn is_kept(key: &MemberKey, on_delete: OnDelete, policy: TerminationPolicy) -> bool {
    match on_delete {
        OnDelete::Retain => true,
        OnDelete::OnlyUnderWipeOut => policy != TerminationPolicy::WipeOut,
        OnDelete::WithOwner => policy == TerminationPolicy::KeepVolumes && key.is_volume(),
    }
}
