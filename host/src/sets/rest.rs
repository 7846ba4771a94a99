//! The state of a set for which nothing more can be done at the moment.

use configurator_core::desired::check::CheckedSet;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::deletion::{Deletion, DeletionState};
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::members::Members;
use configurator_core::graph::plan::{EntryState, Plan, SetState};
use configurator_core::graph::removal::RemovalState;
use configurator_core::time::Timestamp;

use super::status;
use crate::metrics::MemberCounts;
use crate::resource::object_set::ObjectSetStatus;

/// The most entries that failed which a message names.
const MAX_NAMED: usize = 3;

/// The state of a set for which nothing more can be done at the moment.
pub(super) enum Rest {
    Complete,
    Waiting(Option<Timestamp>),
    Failed(Fault),
}

/// The state of a set at the time of a plan.
pub(super) enum PlannedState<'a> {
    /// The text names the change that the set makes.
    Wanted(Plan, &'a CheckedSet, &'a str),
    /// The text says why no member may be deleted yet.
    Deletion(Deletion, Option<&'a str>),
}

/// Returns the outcome of an attempt that has no action left, and the status of the set.
pub(super) fn at_rest(state: &PlannedState<'_>, members: &Members) -> (Rest, ObjectSetStatus) {
    match state {
        PlannedState::Wanted(plan, checked, change) => (
            rest_of(plan, checked, change),
            status::of_plan(plan, &checked.graph, change, members),
        ),
        PlannedState::Deletion(deletion, unprepared) => (
            rest_of_deletion(deletion, members),
            status::of_deletion(deletion, *unprepared, members),
        ),
    }
}

/// The members of a set by state.
pub(super) fn counts(state: &PlannedState<'_>) -> MemberCounts {
    let mut counts = MemberCounts::default();
    let (entries, removals) = match state {
        PlannedState::Wanted(plan, ..) => (plan.entries.as_slice(), plan.removals.as_slice()),
        PlannedState::Deletion(deletion, _) => (&[][..], deletion.members.as_slice()),
    };
    for state in entries {
        let count = match state {
            EntryState::Ready => &mut counts.ready,
            EntryState::Unknown | EntryState::Writing | EntryState::Waiting(_) => {
                &mut counts.waiting
            }
            EntryState::Blocked { .. } => &mut counts.blocked,
            EntryState::Failed(_) => &mut counts.failed,
        };
        *count = count.saturating_add(1);
    }
    for (_, state) in removals {
        let count = match state {
            RemovalState::Blocked { .. } => &mut counts.blocked,
            RemovalState::Failed(_) => &mut counts.failed,
            RemovalState::Held | RemovalState::Busy | RemovalState::Waiting(_) => {
                &mut counts.deleting
            }
        };
        *count = count.saturating_add(1);
    }
    counts
}

fn rest_of(plan: &Plan, checked: &CheckedSet, change: &str) -> Rest {
    match plan.state {
        SetState::Ready => Rest::Complete,
        SetState::Progressing => Rest::Waiting(plan.wake_at),
        SetState::Unconfirmed { pruned, members } => Rest::Failed(Fault::new(
            FaultKind::ResourceGeneric,
            status::unconfirmed(pruned, members, change),
        )),
        SetState::Failed => {
            let entries = checked.graph.entries().iter().zip(&plan.entries);
            let failed = entries.filter_map(|(entry, state)| match state {
                EntryState::Failed(reason) => Some(format!("entry {:?}: {reason}", entry.name)),
                _ => None,
            });
            let removals = plan.removals.iter();
            let failed =
                failed.chain(removals.filter_map(|(key, state)| failed_removal(key, state)));
            Rest::Failed(failures(failed.collect()))
        }
    }
}

fn rest_of_deletion(deletion: &Deletion, members: &Members) -> Rest {
    match deletion.state {
        DeletionState::Complete => Rest::Complete,
        DeletionState::Refused if members.is_empty() => Rest::Complete,
        DeletionState::Refused | DeletionState::Preparing | DeletionState::Progressing => {
            Rest::Waiting(deletion.wake_at)
        }
        DeletionState::Failed => {
            let failed = deletion.members.iter();
            let failed = failed.filter_map(|(key, state)| failed_removal(key, state));
            Rest::Failed(failures(failed.collect()))
        }
    }
}

fn failed_removal(key: &MemberKey, state: &RemovalState) -> Option<String> {
    match state {
        RemovalState::Failed(reason) => Some(format!("{key} cannot be deleted: {reason}")),
        _ => None,
    }
}

fn failures(failed: Vec<String>) -> Fault {
    let more = failed.len().saturating_sub(MAX_NAMED);
    let mut message = failed
        .into_iter()
        .take(MAX_NAMED)
        .collect::<Vec<_>>()
        .join("; ");
    if more > 0 {
        message.push_str(&format!("; and {more} more, which the ObjectSet names"));
    }
    Fault::new(FaultKind::ResourceGeneric, message)
}
