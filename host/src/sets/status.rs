//! The state of a set, for people.

use configurator_core::desired::marks;
use configurator_core::graph::Graph;
use configurator_core::graph::deletion::{Deletion, DeletionState};
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::members::Members;
use configurator_core::graph::plan::{EntryState, Plan, SetState};
use configurator_core::graph::removal::RemovalState;
use configurator_core::time::Timestamp;

use crate::resource::object_set::{MemberStatus, ObjectSetStatus, SetCondition, SetOwner};

/// The state of a set whose change would delete more members than is allowed.
pub(super) const UNCONFIRMED: &str = "Unconfirmed";
/// The state of a set whose owner suspends it.
const SUSPENDED: &str = "Suspended";
/// The state of a set that others have changed, and that no handler keeps at the moment.
const DRIFTED: &str = "Drifted";
/// The most members in the status.
pub(crate) const MAX_LISTED: usize = 100;
/// The most characters of a reason.
const MAX_REASON: usize = 1024;

/// Returns the status of the set of an owner that lives. `change` names the change that the set makes.
pub(super) fn of_plan(
    plan: &Plan,
    graph: &Graph,
    change: &str,
    members: &Members,
) -> ObjectSetStatus {
    let entries = graph.entries().iter().zip(&plan.entries).enumerate();
    let unready = entries.filter(|(_, (_, state))| **state != EntryState::Ready);
    let mut unready: Vec<_> = unready.collect();
    // A set may have more entries than anybody reads reasons.
    unready.sort_by_key(|(_, (_, state))| rank(name_of_state(state)));
    unready.truncate(MAX_LISTED);
    let unready = unready
        .into_iter()
        .map(|(index, (entry, state))| MemberStatus {
            object: entry.key.to_string(),
            entry: entry.name.clone(),
            state: name_of_state(state).to_owned(),
            waits_for: match state {
                EntryState::Blocked { by } => name_of(graph, *by),
                _ => String::new(),
            },
            reason: shortened(&plan.reason(graph, index).unwrap_or_default()),
        });
    let ready = plan
        .entries
        .iter()
        .filter(|state| **state == EntryState::Ready);
    let state = match plan.state {
        SetState::Progressing => "Progressing",
        SetState::Ready => "Ready",
        SetState::Failed => "Failed",
        SetState::Unconfirmed { .. } => UNCONFIRMED,
    };
    let unconfirmed = match plan.state {
        SetState::Unconfirmed { pruned, members } => Some(unconfirmed(pruned, members, change)),
        _ => None,
    };
    let removals = of_removals(&plan.removals, members);
    status(
        state,
        ready.count(),
        members,
        unready.chain(removals).collect(),
        unconfirmed,
    )
}

/// Returns the status of the set of an owner that is being deleted. `unprepared` says why no member may be deleted yet.
pub(super) fn of_deletion(
    deletion: &Deletion,
    unprepared: Option<&str>,
    members: &Members,
) -> ObjectSetStatus {
    let (state, reason) = match deletion.state {
        DeletionState::Refused => (
            "Kept",
            Some("the termination policy of the owner is DoNotTerminate".to_owned()),
        ),
        DeletionState::Failed => ("Failed", None),
        DeletionState::Preparing => ("Deleting", unprepared.map(shortened)),
        DeletionState::Progressing | DeletionState::Complete => ("Deleting", None),
    };
    let removals = of_removals(&deletion.members, members).collect();
    status(state, 0, members, removals, reason)
}

/// Turns the status into that of a suspended set.
pub(super) fn suspend(status: &mut ObjectSetStatus) {
    let is_complete = status.state == "Ready";
    status.state = SUSPENDED.to_owned();
    if !is_complete {
        status.waiting_for = format!("the owner has the annotation {}: \"true\"", marks::SUSPEND);
    }
}

/// Turns the status into that of a set that others have changed, and that no handler keeps at the moment.
pub(super) fn drift(status: &mut ObjectSetStatus) {
    status.state = DRIFTED.to_owned();
}

/// Says why the change of this name is not carried out.
pub(super) fn unconfirmed(pruned: usize, members: usize, change: &str) -> String {
    format!(
        "the change would delete {pruned} of {members} members, which is more than spec.sets.maxPrunePercent allows; to allow it, give the owner the annotation {}: \"{change}\"",
        marks::CONFIRM_PRUNE
    )
}

fn of_removals<'a>(
    removals: &'a [(MemberKey, RemovalState)],
    members: &'a Members,
) -> impl Iterator<Item = MemberStatus> + 'a {
    removals.iter().map(|(key, state)| {
        let member = members.get(key).and_then(|known| known.member.as_ref());
        let waits_for = match state {
            RemovalState::Blocked { by } => by.to_string(),
            _ => String::new(),
        };
        let (state, reason) = match state {
            RemovalState::Held => ("Held", String::new()),
            RemovalState::Busy => ("Deleting", String::new()),
            RemovalState::Blocked { by } => ("Blocked", format!("waits for the deletion of {by}")),
            RemovalState::Waiting(reason) => ("Deleting", reason.clone()),
            RemovalState::Failed(reason) => ("Failed", reason.clone()),
        };
        MemberStatus {
            object: key.to_string(),
            entry: member.map_or_else(String::new, |member| member.facts.entry.clone()),
            state: state.to_owned(),
            waits_for,
            reason: shortened(&reason),
        }
    })
}

fn status(
    state: &str,
    ready: usize,
    members: &Members,
    mut listed: Vec<MemberStatus>,
    reason: Option<String>,
) -> ObjectSetStatus {
    listed.sort_by_key(|member| rank(&member.state));
    let waiting_for = reason.unwrap_or_else(|| {
        listed
            .first()
            .map_or_else(String::new, |first| match first.reason.is_empty() {
                true => first.object.clone(),
                false => format!("{}: {}", first.object, first.reason),
            })
    });
    listed.truncate(MAX_LISTED);
    ObjectSetStatus {
        state: state.to_owned(),
        objects: u32::try_from(members.len()).unwrap_or(u32::MAX),
        ready: u32::try_from(ready).unwrap_or(u32::MAX),
        waiting_for,
        members: listed,
        ..ObjectSetStatus::default()
    }
}

/// Failures first, then what others wait for.
fn rank(state: &str) -> u8 {
    match state {
        "Failed" => 0,
        "Waiting" | "Writing" | "Deleting" | "Unknown" => 1,
        _ => 2,
    }
}

const fn name_of_state(state: &EntryState) -> &'static str {
    match state {
        EntryState::Unknown => "Unknown",
        EntryState::Blocked { .. } => "Blocked",
        EntryState::Writing => "Writing",
        EntryState::Waiting(_) => "Waiting",
        EntryState::Ready => "Ready",
        EntryState::Failed(_) => "Failed",
    }
}

/// Adds what does not follow from a plan.
pub(super) fn complete(
    status: &mut ObjectSetStatus,
    owner: &SetOwner,
    generation: i64,
    before: Option<&ObjectSetStatus>,
    now: Timestamp,
) {
    status.owner = owner.to_string();
    status.observed_generation = generation;
    let is_ready = match status.state.as_str() {
        SUSPENDED => status.waiting_for.is_empty(),
        state => state == "Ready",
    };
    let value = if is_ready { "True" } else { "False" };
    let before = before.and_then(|before| before.conditions.first());
    let since = before.filter(|before| before.status == value).map_or_else(
        || now.to_string(),
        |before| before.last_transition_time.clone(),
    );
    status.conditions = vec![SetCondition {
        type_: "Ready".to_owned(),
        status: value.to_owned(),
        reason: status.state.clone(),
        message: status.waiting_for.clone(),
        last_transition_time: since,
    }];
}

fn name_of(graph: &Graph, index: usize) -> String {
    let entry = graph.entries().get(index);
    entry.map_or_else(String::new, |entry| entry.name.clone())
}

fn shortened(reason: &str) -> String {
    reason.chars().take(MAX_REASON).collect()
}
