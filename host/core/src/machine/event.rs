//! What happens to a machine.

use std::time::Duration;

use super::command::Command;
use super::state::{NodeError, Seen};
use crate::document::Document;
use crate::handler::{Outcome, Progress};

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The object was seen.
    Observed {
        /// Whether its content is new.
        is_changed: bool,
        /// Whether it is marked as cancelled.
        is_cancelled: bool,
    },
    /// The object goes.
    Deleted,
    /// Whoever carried out the actions has gone, and what was under way is lost.
    Recovered,
    /// The requests of an entry that may be sent but once are about to be.
    Sending {
        /// That of the [`Entry`](super::action::Entry).
        token: u64,
    },
    /// An entry has ended.
    Ended {
        /// That of the [`Entry`](super::action::Entry).
        token: u64,
        /// How.
        end: End,
    },
    /// An entry was dropped that waited for objects, because the object or the module has changed since it began. The handler is entered
    /// again. What was sent and may be sent but once goes on.
    Renewed {
        /// That of the [`Entry`](super::action::Entry).
        token: u64,
    },
    /// A [`Check`](super::phase::Check) was made.
    Checked {
        /// That of the [`Action::Check`](super::action::Action::Check).
        token: u64,
        /// Whether it is so.
        is_so: bool,
    },
    /// Time has passed.
    Tick,
    /// An object that a leaf waits for is now of this version. Who was told so before is not told again.
    Changed(Seen),
    /// An order.
    Command(Command),
}

/// How an entry ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The handler returned an output, and its requests went well.
    Output(Box<LeafOutput>),
    /// The handler, or a request of it, failed.
    Failed(LeafFailure),
}

/// What a handler said, beside its requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeafOutput {
    /// How the call ended.
    pub outcome: Outcome,
    /// Go to this phase whatever the transitions say.
    pub next: Option<String>,
    /// The handler's own notes.
    pub data: Option<Document>,
    /// How far it has come.
    pub progress: Option<Progress>,
    /// For later steps of the flow.
    pub output: Option<Document>,
    /// What a person sees.
    pub details: Option<Document>,
    /// What the next leaf gets.
    pub args: Vec<(String, Document)>,
}

/// How an entry failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafFailure {
    /// What happened.
    pub error: NodeError,
    /// Whether there is no use in another attempt.
    pub is_fatal: bool,
    /// Whether nobody knows what became of requests that may be sent but once.
    pub is_unknown: bool,
    /// The wait before the next attempt that was asked for.
    pub retry_after: Option<Duration>,
}
