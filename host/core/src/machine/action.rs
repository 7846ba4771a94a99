//! What is to be done for a machine.

use std::time::Duration;

use super::phase::Phase;
use super::tree::RecoverFrom;
use crate::document::Document;
use crate::handler::{Cause, HandlerState};
use crate::time::Timestamp;

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Drop this entry: nobody waits for its end.
    Abandon {
        /// That of the entry.
        token: u64,
    },
    /// Store the state. What follows must not be done before it is stored.
    Persist,
    /// Tell whoever wants to know.
    Tell(Notice),
    /// Call a handler and carry out its requests; then [`Event::Ended`](super::event::Event::Ended).
    Enter(Box<Entry>),
    /// Find out whether this check of the phase is so; then [`Event::Checked`](super::event::Event::Checked).
    Check {
        /// Names the answer.
        token: u64,
        /// Which of the phase's checks.
        index: usize,
    },
}

/// A turn of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Names the end.
    pub token: u64,
    /// The part that the handler has in the phase.
    pub role: Role,
    /// Path of its node.
    pub path: String,
    /// How often any phase had begun from its first step when this one did: tells turns of the same leaf apart.
    pub visit: u64,
    /// The handler's name.
    pub handler: String,
    /// Counts from 1.
    pub entry: u32,
    /// Counts from 1 within an entry.
    pub attempt: u32,
    /// Why it is entered.
    pub cause: Cause,
    /// What it left behind when it was entered before.
    pub last: Option<HandlerState>,
    /// What earlier steps of the same flow left, by path within the flow.
    pub outputs: Vec<(String, Document)>,
    /// What the leaf before it passed on.
    pub args: Vec<(String, Document)>,
    /// Parameters of the nodes down to the leaf's own, each laid over those before.
    pub parameters: Vec<Document>,
    /// Whether [`Event::Sending`](super::event::Event::Sending) must come before its requests are sent.
    pub once: bool,
    /// When it has failed by its timeout, or that of a node above.
    pub deadline: Option<Timestamp>,
}

/// The part that a handler has in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is a leaf of the tree, or a remedy in its place.
    Node,
    /// It says whether a [`Check`](super::phase::Check) is so.
    Check,
    /// It is the [upkeep](super::phase::Phase::upkeep).
    Upkeep,
}

impl Entry {
    /// The entry of a handler that belongs to a phase without work. It knows nothing of earlier ones.
    #[must_use]
    pub fn of_phase(role: Role, token: u64, phase: &Phase, visit: u64, handler: &str) -> Self {
        Self {
            token,
            role,
            path: [&phase.name, "/", handler].concat(),
            visit,
            handler: handler.to_owned(),
            entry: 1,
            attempt: 1,
            cause: Cause::Entered,
            last: None,
            outputs: Vec::new(),
            args: Vec::new(),
            parameters: phase.parameters.iter().cloned().collect(),
            once: false,
            deadline: None,
        }
    }
}

/// Something that is worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The object is in another phase.
    PhaseEntered {
        /// Where it was; empty at the beginning.
        from: String,
        /// Where it is.
        to: String,
    },
    /// A flow has begun.
    FlowStarted {
        /// Its name.
        flow: String,
    },
    /// A flow is done.
    FlowCompleted {
        /// Its name.
        flow: String,
    },
    /// A flow was broken off.
    FlowFailed {
        /// Its name.
        flow: String,
        /// Why.
        message: String,
    },
    /// A flow goes on.
    FlowResumed {
        /// Its name.
        flow: String,
        /// Where.
        from: RecoverFrom,
    },
    /// A flow did not begin, because another has not finished.
    FlowRefused {
        /// Its name.
        flow: String,
        /// The phase of the other.
        unfinished: String,
    },
    /// A leaf is entered for the first time.
    StepStarted {
        /// Its path.
        path: String,
    },
    /// A leaf is done, was skipped, or has failed for good.
    StepEnded {
        /// Its path.
        path: String,
        /// What it failed with.
        error: Option<String>,
        /// For how long it was at it.
        took: Duration,
    },
    /// A leaf failed and is tried again.
    StepFailed {
        /// Its path.
        path: String,
        /// What it failed with.
        error: String,
        /// How many failures in a row that makes.
        failures: u32,
    },
    /// A person must act.
    ActionNeeded {
        /// The path of the leaf.
        path: String,
        /// The code of its error.
        code: String,
        /// What to do, in Markdown.
        guidance: String,
    },
    /// Nobody knows what became of requests that may be sent but once.
    OutcomeUnknown {
        /// The path of the leaf.
        path: String,
    },
    /// A command was not carried out.
    CommandRefused {
        /// Its uid.
        uid: String,
        /// Why.
        why: String,
    },
    /// A command was carried out.
    CommandDone {
        /// Its uid.
        uid: String,
    },
    /// The state names a phase that the machine does not have: nothing is done.
    UnknownPhase {
        /// The phase.
        phase: String,
    },
    /// Phases that have no work follow one another without end.
    PhasesInCircle {
        /// The phase where it was stopped.
        phase: String,
    },
}
