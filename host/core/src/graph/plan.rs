//! The next actions for the set of an owner that lives.

use std::time::Duration;

use super::Graph;
use super::contradiction::{self, Wait};
use super::deletion::TerminationPolicy;
use super::entry::{Entry, OnExisting, OnImmutable};
use super::member::{Member, MemberFacts, MemberKey};
use super::members::Members;
use super::observation::{
    Found, Health, MemberOwner, Observation, Present, RejectionKind, Standing,
};
use super::removal::{Removal, RemovalState};
use crate::time::Timestamp;

/// The input of [`plan`].
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// The desired set.
    pub graph: &'a Graph,
    /// The version of the desired set: a later set has a higher one.
    pub version: u64,
    /// The policy of the owner, for members that only [`TerminationPolicy::WipeOut`] deletes.
    pub policy: TerminationPolicy,
    /// The most actions at servers at one time, those under way included.
    pub parallel: usize,
    /// How much may be deleted.
    pub pruning: Pruning,
    /// The time.
    pub now: Timestamp,
}

/// How much a plan may delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pruning {
    /// Up to a percentage of the members if there are at least so many to prune.
    UpTo {
        /// The percentage of the members in the inventory.
        percent: u8,
        /// Fewer members than this are always pruned.
        from: usize,
    },
    /// Everything: a person confirmed it.
    Confirmed,
    /// Nothing, and nothing is recreated: a module under canary decided. A set is ready although members are left that have no entry.
    Suspended,
}

/// An action that may run now. All actions of one plan may run side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the member, and watch it.
    Observe(MemberKey),
    /// Write facts to the inventory and clear `removed_in`. A new member gets a nonce.
    Record(MemberKey, MemberFacts),
    /// Write the member's uid to the inventory.
    Confirm(MemberKey, String),
    /// Write to the inventory that the set has no entry for the member since this version.
    Remove(MemberKey, u64),
    /// Drop the member from the inventory.
    Forget(MemberKey),
    /// Write an entry to its server.
    Apply {
        /// The entry's index.
        entry: usize,
        /// The uid of the member that is changed. `None`: it must be absent.
        uid: Option<String>,
    },
    /// Mark the member with this uid as about to be pruned.
    Mark(MemberKey, String),
    /// Delete the member with this uid.
    Delete(MemberKey, String),
    /// Take the set's labels, references and finalizers off the member with this uid.
    Release(MemberKey, String),
}

impl Action {
    /// Whether it writes to the inventory only. The host writes all of these in one transaction, and plans again after it.
    #[must_use]
    pub const fn is_inventory_write(&self) -> bool {
        matches!(
            self,
            Self::Record(..) | Self::Confirm(..) | Self::Remove(..) | Self::Forget(_)
        )
    }
}

/// The state of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// The host has not read its member yet.
    Unknown,
    /// Its member is to be written after another entry is ready.
    Blocked {
        /// The index of the first such entry.
        by: usize,
    },
    /// Its member is being written, or is about to be.
    Writing,
    /// Its member may become ready without another action. The text says what is missing.
    Waiting(String),
    /// Its member is as described, and others may go on.
    Ready,
    /// A person, or a change, has to help. The text says why and what to do.
    Failed(String),
}

/// The state of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetState {
    /// Something is still going on, or being waited for.
    Progressing,
    /// All entries are ready, and all other members are gone.
    Ready,
    /// An entry or a deletion failed, and everything that does not depend on it is complete.
    Failed,
    /// All entries are ready. More members would be pruned than [`Pruning::UpTo`] allows.
    Unconfirmed {
        /// The members that would be pruned.
        pruned: usize,
        /// The members in the inventory.
        members: usize,
    },
}

/// The next actions, and the state of everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The actions that may run now.
    pub actions: Vec<Action>,
    /// The state of each entry, by index.
    pub entries: Vec<EntryState>,
    /// The members without an entry, in the order of their deletion.
    pub removals: Vec<(MemberKey, RemovalState)>,
    /// The state of the set.
    pub state: SetState,
    /// The time at which to plan again though nothing was observed.
    pub wake_at: Option<Timestamp>,
}

/// Plans the next actions. The time is linear in entries, dependencies and members but for a logarithm.
///
/// - A member is recorded before it is created, and read before either.
/// - An entry is written after the entries that it depends on are ready. An entry that needs no write keeps its state, whatever becomes of
///   its dependencies. Where orders contradict one another, a creation goes before an update.
/// - A failed entry stops the entries that depend on it and all pruning, and nothing else.
/// - Members without an entry are deleted after all entries are ready, wave by wave, each wave after the one before it is absent.
/// - A member is written or deleted only if its uid or nonce proves that it belongs to this set. Deletion needs both.
///
/// The members are [arranged](Members::arrange) for the graph.
#[must_use]
pub fn plan(input: &PlanInput<'_>, members: &mut Members) -> Plan {
    let graph = input.graph;
    members.arrange(graph);
    let members = &*members;
    let mut budget = Budget::new(input.parallel, members);
    let mut wake = Wake::default();
    let mut actions = Vec::new();
    let mut steps: Vec<Step> = Vec::with_capacity(graph.entries().len());
    let known = members.of_entries();
    for (index, (entry, known)) in graph.entries().iter().zip(known).enumerate() {
        let (member, observation) = (known.member.as_ref(), &known.observation);
        update_inventory(graph, (index, entry), member, observation, &mut actions);
        steps.push(step(entry, member, observation, input, &mut wake));
    }
    let freed = if graph.has_orders() {
        let waits: Vec<Wait> = steps.iter().map(Step::wait).collect();
        contradiction::freed(graph, &waits)
    } else {
        Vec::new()
    };
    let mut entries = Vec::with_capacity(steps.len());
    for (index, entry) in graph.entries().iter().enumerate() {
        let Some(step) = steps.get(index) else { break };
        let order = match step {
            Step::Write { is_new: true, .. } => graph.provision(),
            _ => graph.update(),
        };
        let blocker = || {
            if freed.binary_search(&index).is_ok() {
                return None;
            }
            let mut dependencies = order.dependencies(index).iter().copied();
            dependencies.find(|dependency| !matches!(steps.get(*dependency), Some(Step::Ready)))
        };
        entries.push(match step {
            Step::Unknown => {
                budget.spend(&mut actions, || Action::Observe(entry.key.clone()));
                EntryState::Unknown
            }
            Step::Busy | Step::Record => EntryState::Writing,
            Step::Waiting(reason) => EntryState::Waiting(reason.clone()),
            Step::Ready => EntryState::Ready,
            Step::Failed(reason) => EntryState::Failed(reason.clone()),
            Step::Write { uid, .. } => match blocker() {
                Some(by) => EntryState::Blocked { by },
                None => {
                    let uid = uid.clone();
                    budget.spend(&mut actions, || Action::Apply { entry: index, uid });
                    EntryState::Writing
                }
            },
            Step::Replace { uid } => match blocker() {
                Some(by) => EntryState::Blocked { by },
                None => {
                    let action = || Action::Delete(entry.key.clone(), uid.clone());
                    budget.spend(&mut actions, action);
                    EntryState::Writing
                }
            },
        });
    }
    let is_ready = entries.iter().all(|state| *state == EntryState::Ready);
    let mut removal = Removal::new(input.policy, input.now, true);
    for (key, known) in members.without_entry() {
        removal.push(key, known);
    }
    actions.extend(removal.records(input.version));
    let members = members.inventory().count();
    let is_allowed = input.pruning.allows(removal.len(), members);
    let removals = if is_ready && is_allowed {
        removal.run(&mut actions, &mut budget, &mut wake)
    } else {
        removal.hold()
    };
    let state = if is_ready && !is_allowed && input.pruning != Pruning::Suspended {
        SetState::Unconfirmed {
            pruned: removals.len(),
            members,
        }
    } else {
        set_state(&entries, &removals, &actions, input.pruning)
    };
    Plan {
        actions,
        entries,
        removals,
        state,
        wake_at: wake.at,
    }
}

fn set_state(
    entries: &[EntryState],
    removals: &[(MemberKey, RemovalState)],
    actions: &[Action],
    pruning: Pruning,
) -> SetState {
    let is_pruned = removals.is_empty() || pruning == Pruning::Suspended;
    let is_failed = entries
        .iter()
        .any(|state| matches!(state, EntryState::Failed(_)))
        || removals
            .iter()
            .any(|(_, state)| matches!(state, RemovalState::Failed(_)));
    let is_moving = !actions.is_empty()
        || entries.iter().any(|state| {
            matches!(
                state,
                EntryState::Unknown | EntryState::Writing | EntryState::Waiting(_)
            )
        })
        || removals
            .iter()
            .any(|(_, state)| matches!(state, RemovalState::Busy | RemovalState::Waiting(_)));
    let is_ready = entries.iter().all(|state| *state == EntryState::Ready);
    match (is_moving, is_failed) {
        (false, true) => SetState::Failed,
        (false, false) if is_ready && is_pruned => SetState::Ready,
        _ => SetState::Progressing,
    }
}

impl Pruning {
    fn allows(self, pruned: usize, members: usize) -> bool {
        match self {
            Self::Confirmed => true,
            Self::Suspended => pruned == 0,
            Self::UpTo { percent, from } => {
                pruned < from || pruned * 100 <= members * usize::from(percent)
            }
        }
    }
}

/// Actions at servers that may still begin.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new(parallel: usize, members: &Members) -> Self {
        Self(parallel.saturating_sub(members.busy()))
    }

    /// Adds an action if one may still begin.
    pub(super) fn spend(&mut self, actions: &mut Vec<Action>, action: impl FnOnce() -> Action) {
        if let Some(left) = self.0.checked_sub(1) {
            self.0 = left;
            actions.push(action());
        }
    }
}

/// The earliest of several times.
#[derive(Debug, Default)]
pub(super) struct Wake {
    pub(super) at: Option<Timestamp>,
}

impl Wake {
    pub(super) fn at(&mut self, time: Timestamp) {
        self.at = Some(self.at.map_or(time, |at| at.min(time)));
    }
}

/// The next step for an entry, without regard to other entries.
#[derive(Debug)]
enum Step {
    Unknown,
    Busy,
    /// The inventory must have the member first.
    Record,
    Write {
        uid: Option<String>,
        is_new: bool,
    },
    Replace {
        uid: String,
    },
    Waiting(String),
    Ready,
    Failed(String),
}

impl Step {
    const fn wait(&self) -> Wait {
        match self {
            Self::Write { is_new: true, .. } => Wait::Create,
            Self::Write { .. } | Self::Replace { .. } => Wait::Update,
            Self::Ready => Wait::Ready,
            _ => Wait::Other,
        }
    }
}

/// Whether a member that exists belongs to the set.
enum Claim {
    /// `is_labelled`: its labels say so too.
    Ours {
        is_labelled: bool,
    },
    Free,
    Foreign(String),
}

fn claim(entry: &Entry, member: Option<&Member>, present: &Present) -> Claim {
    match (&present.owner, member) {
        (MemberOwner::ThisSet { .. }, Some(member)) if present.carries_nonce_of(member) => {
            Claim::Ours { is_labelled: true }
        }
        (MemberOwner::ThisSet { .. }, _) => Claim::Foreign(format!(
            "{} carries the labels of this set, and the inventory does not have it; delete it, or remove the labels and set `on-existing` to `adopt`",
            entry.key
        )),
        (MemberOwner::Other(owner), _) => Claim::Foreign(format!(
            "{} belongs to {owner}; remove it there, or here",
            entry.key
        )),
        (MemberOwner::Unowned, Some(member)) if member.uid.as_ref() == Some(&present.uid) => {
            Claim::Ours { is_labelled: false }
        }
        (MemberOwner::Unowned, _) => Claim::Free,
    }
}

/// Brings the inventory up to date with an entry and with what was observed.
fn update_inventory(
    graph: &Graph,
    (index, entry): (usize, &Entry),
    member: Option<&Member>,
    observation: &Observation,
    actions: &mut Vec<Action>,
) {
    let record = || {
        let facts = graph.facts(index);
        facts.map(|facts| Action::Record(entry.key.clone(), facts))
    };
    let Some(member) = member else {
        let is_wanted = match &observation.found {
            Found::Absent => true,
            Found::Present(present) => {
                entry.on_existing == OnExisting::Adopt
                    && !present.is_terminating
                    && matches!(claim(entry, None, present), Claim::Free)
            }
            Found::Unknown | Found::NoKind => false,
        };
        if is_wanted && !observation.is_busy {
            actions.extend(record());
        }
        return;
    };
    if !graph.has_facts(index, &member.facts) || member.removed_in.is_some() {
        actions.extend(record());
    }
    if let Found::Present(present) = &observation.found
        && present.carries_nonce_of(member)
        && member.uid.as_ref() != Some(&present.uid)
    {
        actions.push(Action::Confirm(entry.key.clone(), present.uid.clone()));
    }
}

fn step(
    entry: &Entry,
    member: Option<&Member>,
    observation: &Observation,
    input: &PlanInput<'_>,
    wake: &mut Wake,
) -> Step {
    if observation.is_busy {
        return Step::Busy;
    }
    let present = match &observation.found {
        Found::Unknown => return Step::Unknown,
        Found::NoKind => return without_kind(entry, input.graph),
        Found::Absent => {
            return match (rejected(entry, observation, false, input, wake), member) {
                (Some(step), _) => step,
                (None, None) => Step::Record,
                (None, Some(_)) => Step::Write {
                    uid: None,
                    is_new: true,
                },
            };
        }
        Found::Present(present) => present,
    };
    if present.is_terminating {
        return Step::Waiting(format!(
            "{} is being deleted; it is created again when it is gone",
            entry.key
        ));
    }
    let is_labelled = match claim(entry, member, present) {
        Claim::Foreign(reason) => return Step::Failed(reason),
        Claim::Ours { is_labelled } => is_labelled,
        Claim::Free => match (entry.on_existing, member) {
            (OnExisting::CreateOnly, _) => return health(entry, present, input.now, wake),
            (OnExisting::Refuse, _) => {
                return Step::Failed(format!(
                    "{} exists and belongs to no set; delete it, or set `on-existing` to `adopt`",
                    entry.key
                ));
            }
            (OnExisting::Adopt, None) => return Step::Record,
            (OnExisting::Adopt, Some(_)) => false,
        },
    };
    let is_current = is_labelled && !present.differs && !present.is_marked;
    if is_current || entry.on_existing == OnExisting::CreateOnly {
        return health(entry, present, input.now, wake);
    }
    rejected(entry, observation, is_labelled, input, wake).unwrap_or_else(|| Step::Write {
        uid: Some(present.uid.clone()),
        is_new: false,
    })
}

fn without_kind(entry: &Entry, graph: &Graph) -> Step {
    if graph.provides_kind_of(&entry.key) {
        Step::Waiting(format!(
            "the API server does not serve the kind of {} yet",
            entry.key
        ))
    } else {
        Step::Failed(format!(
            "the API server does not serve the kind of {}; install its CustomResourceDefinition",
            entry.key
        ))
    }
}

/// Returns what follows from the rejection of the last write. `None`: write. Only a member with the set's labels is recreated.
fn rejected(
    entry: &Entry,
    observation: &Observation,
    is_labelled: bool,
    input: &PlanInput<'_>,
    wake: &mut Wake,
) -> Option<Step> {
    let rejection = observation.rejection.as_ref()?;
    if let (RejectionKind::Immutable, Found::Present(present)) =
        (rejection.kind, &observation.found)
        && is_labelled
        && entry.on_immutable == OnImmutable::Recreate
    {
        return Some(match input.pruning {
            Pruning::Suspended => Step::Waiting(format!(
                "{} is recreated when the canary is promoted",
                entry.key
            )),
            Pruning::UpTo { .. } | Pruning::Confirmed => Step::Replace {
                uid: present.uid.clone(),
            },
        });
    }
    let message = || rejection.message.clone();
    match rejection.standing(input.now) {
        Standing::Over => None,
        Standing::Until(at) => {
            wake.at(at);
            Some(Step::Waiting(message()))
        }
        Standing::Final => Some(Step::Failed(message())),
    }
}

fn health(entry: &Entry, present: &Present, now: Timestamp, wake: &mut Wake) -> Step {
    match &present.health {
        Health::Ready => Step::Ready,
        Health::Failed(reason) => Step::Failed(reason.clone()),
        Health::Waiting(reason) => {
            let Some(timeout) = entry.timeout else {
                return Step::Waiting(reason.clone());
            };
            let deadline = present.unready_since.after(timeout);
            if now < deadline {
                wake.at(deadline);
                return Step::Waiting(reason.clone());
            }
            Step::Failed(format!(
                "{} was not ready within {}: {reason}",
                entry.key,
                seconds(timeout)
            ))
        }
    }
}

fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs_f64())
}
