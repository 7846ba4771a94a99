//! What came of a run.

use std::time::Duration;

use super::Member;
use crate::plan::Failure;
use crate::request::ObjectRef;
use crate::result::ResultEntry;
use crate::retry::Tries;
use crate::time::Timestamp;

/// Why a run rests.
#[derive(Debug, Clone, PartialEq)]
pub enum Pause {
    /// Its requests failed and are worth another attempt, after this long.
    Resend {
        /// The wait.
        after: Duration,
        /// What failed.
        failure: Failure,
        /// How often it was tried in vain, this time included.
        tries: Tries,
    },
    /// A server refused a request for now, or did not answer: for this long, and for as long as the server is unavailable.
    Park {
        /// The wait.
        after: Duration,
        /// What failed.
        failure: Failure,
        /// How often it was tried in vain, this time included.
        tries: Tries,
    },
    /// Members of its set are not ready. The run goes on when one of them changes, and after this long at the latest.
    Members {
        /// The wait; `None`: for as long as no member changes.
        after: Option<Duration>,
    },
    /// Requests of a graph wait for objects that are not ready. They are read again after this long.
    Unready {
        /// The wait.
        after: Duration,
        /// The first request that others wait for, and why its object is not ready.
        reason: String,
    },
}

/// The outcome of one attempt to reconcile or delete the members of an object's set.
#[derive(Debug, Clone, PartialEq)]
pub enum SetOutcome {
    /// All members are ready and those without an entry are gone, or, of a deleted object, all members are gone. The next handler sees these
    /// results.
    Ready(Vec<(String, ResultEntry)>),
    /// Members are not ready.
    Waiting {
        /// When to look again though no member has changed.
        wake_at: Option<Timestamp>,
    },
    /// Nothing more can be done without a change.
    Failed(Failure),
}

/// How a run ended, for the members that are still in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Finish {
    /// Every phase went through.
    Succeeded,
    /// In a machine: nothing more is to be done before this long, unless the object changes or is told something.
    Rest {
        /// The wait; `None`: for as long as nothing happens.
        after: Option<Duration>,
    },
    /// Begin again at the root phase with the newest objects, after this long.
    Restart {
        /// The wait.
        after: Duration,
        /// What failed.
        failure: Failure,
        /// How often it was tried in vain, this time included.
        tries: Tries,
    },
    /// Nothing more is tried until the object changes.
    Failed {
        /// What failed.
        failure: Failure,
        /// Attempts that have failed, this one included.
        failures: u32,
    },
    /// A batch failed as a whole: try each half by itself, at once.
    Split {
        /// What failed.
        failure: Failure,
    },
}

/// How a run ended, or why it rests.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    /// It is over.
    Finished(Finish),
    /// It rests and is resumed.
    Paused(Pause),
}

impl RunEnd {
    /// The word for it in metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Finished(Finish::Succeeded) => "succeeded",
            Self::Finished(Finish::Rest { .. }) => "rest",
            Self::Finished(Finish::Restart { .. }) => "restart",
            Self::Finished(Finish::Failed { .. }) => "failed",
            Self::Finished(Finish::Split { .. }) => "split",
            Self::Paused(Pause::Resend { .. }) => "resend",
            Self::Paused(Pause::Park { .. }) => "parked",
            Self::Paused(Pause::Members { .. } | Pause::Unready { .. }) => "waiting",
        }
    }
}

/// An object that has left its batch because of a failure that is charged to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Departed {
    /// The object.
    pub member: Member,
    /// What failed.
    pub failure: Failure,
}

/// What came of a run, or of a turn of a machine. `R` is what is needed to go on with it.
#[derive(Debug)]
pub struct RunOutcome<R> {
    /// How it ended, or why it rests, for the members that stayed in it.
    pub end: RunEnd,
    /// What is needed to go on with it after a pause.
    pub run: R,
    /// The members that stayed.
    pub members: Vec<Member>,
    /// The members that left, each with its failure.
    pub departed: Vec<Departed>,
    /// Versions of the host's own writes to members.
    pub own_writes: Vec<(ObjectRef, u64)>,
    /// Whether anything changed at any server.
    pub has_written: bool,
    /// Whether a `bootstrapDep` request of it has not succeeded.
    pub holds_readiness: bool,
}

impl<R> RunOutcome<R> {
    /// The outcome of a run of these members that has written nothing.
    #[must_use]
    pub const fn new(end: RunEnd, run: R, members: Vec<Member>) -> Self {
        Self {
            end,
            run,
            members,
            departed: Vec::new(),
            own_writes: Vec::new(),
            has_written: false,
            holds_readiness: false,
        }
    }

    /// The same outcome, with something else to go on with.
    pub fn map<S>(self, change: impl FnOnce(R) -> S) -> RunOutcome<S> {
        RunOutcome {
            end: self.end,
            run: change(self.run),
            members: self.members,
            departed: self.departed,
            own_writes: self.own_writes,
            has_written: self.has_written,
            holds_readiness: self.holds_readiness,
        }
    }
}
