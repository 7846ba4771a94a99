//! The state of members at their servers, as far as the host has observed it.

use std::collections::HashMap;

use super::member::{Member, MemberKey};
use crate::time::Timestamp;

/// Observations by member. A member without one has not been read yet.
pub type Observations = HashMap<MemberKey, Observation>;

/// The state of a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// The state at the server.
    pub found: Found,
    /// Whether an action for this member is under way.
    pub is_busy: bool,
    /// The answer to the last action, if the server rejected it. The host drops it when the entry or the member changes.
    pub rejection: Option<Rejection>,
}

/// The state of a member at its server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Found {
    /// The host has not read it yet.
    #[default]
    Unknown,
    /// The API server does not serve its kind.
    NoKind,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(Box<Present>),
}

/// A member that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// The server's uid.
    pub uid: String,
    /// The set that it belongs to, as its labels and annotations say.
    pub owner: MemberOwner,
    /// Whether its deletion has begun.
    pub is_terminating: bool,
    /// Whether it carries the mark that is put on members before they are pruned.
    pub is_marked: bool,
    /// Whether it differs from its entry, so that a write would change it.
    pub differs: bool,
    /// Whether others may go on. A member that this plan has written counts by a status newer than the write.
    pub health: Health,
    /// The time of the last write or, if later, the time at which it lost its readiness.
    pub unready_since: Timestamp,
}

/// The set that a member belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberOwner {
    /// It belongs to no set.
    Unowned,
    /// It belongs to this set and carries a nonce.
    ThisSet {
        /// The nonce.
        nonce: String,
    },
    /// It belongs to another set or is managed by another controller.
    Other(String),
}

/// Whether a member is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Others may go on.
    Ready,
    /// It may become ready. The text says what is missing.
    Waiting(String),
    /// It will not become ready without a change. The text says why.
    Failed(String),
}

/// A rejected action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Whether and how to go on.
    pub kind: RejectionKind,
    /// The server's words, for a person.
    pub message: String,
}

/// Whether and how to go on after a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionKind {
    /// Retry at this time.
    RetryAt(Timestamp),
    /// A field is immutable.
    Immutable,
    /// Without a change the answer will be the same.
    Permanent,
}

/// Whether a rejection still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The action may be tried again.
    Over,
    /// The action may be tried again at this time.
    Until(Timestamp),
    /// Trying again does not help.
    Final,
}

impl Rejection {
    pub(super) fn standing(&self, now: Timestamp) -> Standing {
        match self.kind {
            RejectionKind::RetryAt(at) if at <= now => Standing::Over,
            RejectionKind::RetryAt(at) => Standing::Until(at),
            RejectionKind::Immutable | RejectionKind::Permanent => Standing::Final,
        }
    }
}

impl Present {
    /// Whether the nonce proves that a member of the inventory is this object.
    pub(super) fn carries_nonce_of(&self, member: &Member) -> bool {
        matches!(&self.owner, MemberOwner::ThisSet { nonce } if *nonce == member.nonce)
    }
}
