//! What a person, or another controller, can tell a machine to do.

use std::fmt;

use super::tree::RecoverFrom;
use crate::handler::Signal;

/// An order. It acts once, however often it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Its identity.
    pub uid: String,
    /// Who made the request.
    pub requester: Requester,
    /// What to do.
    pub verb: Verb,
}

/// The user who made a request. Displayed as the name, with `(unverified)` after it unless the API server checked it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// The name of the user.
    pub name: String,
    /// Whether an admission policy checked that the user has this name, and may make such a request.
    pub is_verified: bool,
}

impl fmt::Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.is_verified {
            ""
        } else {
            " (unverified)"
        };
        write!(f, "{}{note}", self.name)
    }
}

/// The signal that an approval sends.
pub const APPROVED: &str = "approved";

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// Wake those who wait for the signal [`APPROVED`], and tell them who made the request. Refused if nobody waits for it, so that an
    /// approval never counts for a later step.
    Approve,
    /// Break off the phase; what follows is its `on_error`.
    Cancel,
    /// Go on with the phase that was broken off or has failed.
    Resume(Option<RecoverFrom>),
    /// Begin the phase that was broken off, has failed or is under way anew; in a terminal phase, or without a state, begin at the
    /// initial one.
    Restart,
    /// Wake those who wait for it; if nobody does, keep it for who will.
    Signal(Signal),
    /// Take a node of the phase that is under way, was broken off or has failed for done.
    Skip {
        /// Its path: `InFlight/attach/bind-eips`.
        node: String,
        /// Why.
        reason: String,
    },
}
