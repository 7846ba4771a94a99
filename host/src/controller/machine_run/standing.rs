//! What is kept of a machine in memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::machine::action::Action;
use configurator_core::machine::state::{State, Turn};
use configurator_core::plan::Failure;
use configurator_core::run::{Pause, Run};
use configurator_core::time::Timestamp;

use super::set_claims::SetClaims;
use super::{LeafEnd, Results};
use crate::controller::commands::CommandRef;
use crate::controller::driver::Said;
use crate::controller::state_store::Held;

/// What is kept of a machine between two of its turns: what handlers are to be told, and what could not be done yet.
pub(crate) struct Standing {
    pub(super) held: Held,
    pub(super) state: State,
    /// Actions that are not carried out yet.
    pub(super) pending: VecDeque<Action>,
    /// What has ended and was not told yet.
    pub(super) ended: VecDeque<LeafEnd>,
    /// Of the entry before, by path; those of a remedy by the path of its leaf with [`REMEDY`].
    pub(super) results: BTreeMap<String, Results>,
    /// Of the last leaves of the phase before.
    pub(super) from_before: Results,
    /// Entries that rest.
    pub(super) parked: Vec<Parked>,
    /// What the secret store has answered, and handlers may have been told.
    pub(super) secrets: Vec<Document>,
    /// What handlers have said of the object's status.
    pub(super) said: Arc<Said>,
    /// Resources that commands came by, by their uid.
    pub(super) commands: HashMap<String, CommandRef>,
    /// The nodes of the phase that have returned a set.
    pub(super) claims: Arc<SetClaims>,
    /// Entries with a lower token began before the object changed last.
    pub(super) stale_below: u64,
}

/// An entry that rests.
pub(super) struct Parked {
    pub(super) run: Run,
    pub(super) why: Rest,
    /// When it goes on at the latest. `None`: when something happens.
    pub(super) due: Option<Timestamp>,
}

/// Why an entry rests.
pub(super) enum Rest {
    /// A server has refused it for now.
    Refused(Failure),
    /// Requests wait for an object, which this text names.
    Unready(String),
    /// Members of the set are not ready. It goes on with the next turn.
    Members,
}

impl Rest {
    /// Returns why an entry rests that has paused like this, and for how long at most. `None`: no entry of a machine pauses so.
    pub(super) fn of(pause: Pause) -> Option<(Self, Option<Duration>)> {
        match pause {
            Pause::Park { after, failure, .. } => Some((Self::Refused(failure), Some(after))),
            Pause::Unready { after, reason } => Some((Self::Unready(reason), Some(after))),
            Pause::Members { after } => Some((Self::Members, after)),
            Pause::Resend { .. } => None,
        }
    }
}

impl Standing {
    pub(super) fn new(held: Held, state: State) -> Box<Self> {
        Box::new(Self {
            said: Said::new(state.status.clone()),
            held,
            state,
            pending: VecDeque::new(),
            ended: VecDeque::new(),
            results: BTreeMap::new(),
            from_before: Vec::new(),
            parked: Vec::new(),
            secrets: Vec::new(),
            commands: HashMap::new(),
            claims: Arc::default(),
            stale_below: 0,
        })
    }

    /// Whether something would be lost with it that is not stored.
    pub(super) fn is_worth_keeping(&self) -> bool {
        let mut is_due = false;
        if let Some(root) = self.state.root() {
            root.each(&mut |node| is_due |= matches!(node.leaf.turn, Turn::Due { .. }));
        }
        let has_results = !self.results.is_empty() || !self.from_before.is_empty();
        !self.parked.is_empty()
            || !self.claims.is_empty()
            || !self.pending.is_empty()
            || !self.ended.is_empty()
            || is_due && has_results
    }
}
