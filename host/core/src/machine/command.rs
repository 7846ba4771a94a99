//! What a person, or another controller, can tell a machine to do.

use super::tree::RecoverFrom;
use crate::handler::Signal;

/// An order. It acts once, however often it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Its identity.
    pub uid: String,
    /// Who gave it.
    pub by: String,
    /// What to do.
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
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
