//! The next actions for the set of an owner that is being deleted.

use serde::{Deserialize, Serialize};

use super::member::MemberKey;
use super::members::Members;
use super::plan::{Action, Budget, Wake};
use super::removal::Removal;
pub use super::removal::RemovalState;
use crate::time::Timestamp;

/// The fate of members when their owner is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TerminationPolicy {
    /// The owner stays, and so does everything else.
    DoNotTerminate,
    /// Volumes, volume claims and snapshots are released, and everything else is deleted.
    KeepVolumes,
    /// Members are deleted, except those that only `WipeOut` deletes.
    #[default]
    Delete,
    /// Members are deleted, except those that are always retained.
    WipeOut,
}

/// The input of [`delete`]. A deletion needs neither the handler nor the desired set.
#[derive(Debug, Clone, Copy)]
pub struct DeletionInput<'a> {
    /// The members of the set.
    pub members: &'a Members,
    /// The policy that the owner states now.
    pub policy: TerminationPolicy,
    /// Whether requests that come before the deletion have succeeded or were skipped.
    pub is_prepared: bool,
    /// The most actions at servers at one time, those under way included.
    pub parallel: usize,
    /// The time.
    pub now: Timestamp,
}

/// The state of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionState {
    /// The policy is [`TerminationPolicy::DoNotTerminate`]: nothing changes.
    Refused,
    /// The requests that come before the deletion are next.
    Preparing,
    /// Members are being deleted or released.
    Progressing,
    /// The server rejected the deletion of a member, and nothing else can be done before it is gone.
    Failed,
    /// No member is left: the owner may go.
    Complete,
}

/// The next actions, and the state of members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The actions that may run now, side by side.
    pub actions: Vec<Action>,
    /// The members, in the order of their deletion.
    pub members: Vec<(MemberKey, RemovalState)>,
    /// The state of the deletion.
    pub state: DeletionState,
    /// The time at which to plan again though nothing was observed.
    pub wake_at: Option<Timestamp>,
}

/// Plans the next actions of a deletion.
///
/// Members that stay are released at once. The others are deleted wave by wave, each wave after the one before it is absent. A member is
/// deleted only if its uid and its nonce prove that it belongs to the set; otherwise it is forgotten and left alone.
#[must_use]
pub fn delete(input: &DeletionInput<'_>) -> Deletion {
    let mut removal = Removal::new(input.policy, input.now, false);
    for (key, known) in input.members.all() {
        removal.push(key, known);
    }
    let held = |removal: Removal<'_>, state| Deletion {
        actions: Vec::new(),
        members: removal.hold(),
        state,
        wake_at: None,
    };
    if input.policy == TerminationPolicy::DoNotTerminate {
        return held(removal, DeletionState::Refused);
    }
    if !input.is_prepared {
        return held(removal, DeletionState::Preparing);
    }
    let (mut actions, mut wake) = (Vec::new(), Wake::default());
    let mut budget = Budget::new(input.parallel, input.members);
    let members = removal.run(&mut actions, &mut budget, &mut wake);
    let is_moving = members
        .iter()
        .any(|(_, state)| matches!(state, RemovalState::Busy | RemovalState::Waiting(_)));
    let state = match (members.is_empty(), is_moving) {
        (true, _) => DeletionState::Complete,
        (false, true) => DeletionState::Progressing,
        (false, false) => DeletionState::Failed,
    };
    Deletion {
        actions,
        members,
        state,
        wake_at: wake.at,
    }
}
