//! What the queue knows of one object.

use std::collections::VecDeque;

use super::timers::TimerKey;
use super::{BUSY, Ticket};
use crate::content::ContentDigest;
use crate::document::Document;
use crate::handler::WatchEvent;
use crate::loop_guard::LoopGuard;
use crate::plan::Failure;
use crate::retry::Tries;
use crate::run::Chain;
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) live: Option<Live>,
    pub(super) gone: VecDeque<Gone>,
    pub(super) work: Work,
    pub(super) is_given_up: bool,
    /// A server has asked the host to send nothing for the object before this time, even if the object changes.
    pub(super) quiet_until: Option<Timestamp>,
    /// Whether the last run failed, for this content or an earlier one. The object then shares batches only with others like it.
    pub(super) has_failed: bool,
    /// Whether a server refused the last run, for this content or an earlier one, and is not down.
    pub(super) was_refused: bool,
    /// Whether the last run held its place for [`BUSY`].
    pub(super) was_slow: bool,
    /// When its last two runs began, the newest first.
    pub(super) began: [Option<Timestamp>; 2],
}

#[derive(Debug)]
pub(super) struct Live {
    pub(super) uid: String,
    pub(super) version: Option<u64>,
    pub(super) content: ContentDigest,
    pub(super) object: Document,
    pub(super) is_deleting: bool,
    /// Why it should get a run; `None`: it needs none.
    pub(super) pending: Option<WatchEvent>,
    pub(super) completed: Option<ContentDigest>,
    /// Whether it gets one more run when that which is under way has ended, whatever comes of that.
    pub(super) renews: bool,
    pub(super) vain: Vain,
    /// It must be seen at this version before it is entered again.
    pub(super) awaited: Option<u64>,
    /// Whether the canary handles it.
    pub(super) is_canary: bool,
    /// Whether it has not finished a run of the canary yet.
    pub(super) awaits_canary_run: bool,
    pub(super) guard: LoopGuard,
    pub(super) resync: Option<TimerKey>,
    /// See [`Member::occasion`](crate::run::Member::occasion).
    pub(super) occasion: Option<Timestamp>,
    pub(super) deletion_done: bool,
}

#[derive(Debug)]
pub(super) struct Gone {
    pub(super) uid: String,
    pub(super) object: Document,
    pub(super) content: ContentDigest,
    pub(super) vain: Vain,
}

/// What was tried in vain since the object last changed or went through.
#[derive(Debug, Default)]
pub(super) struct Vain {
    pub(super) failures: u32,
    pub(super) refused: Option<Box<Refused>>,
}

#[derive(Debug)]
pub(super) struct Refused {
    pub(super) refusals: u32,
    pub(super) failure: Failure,
    pub(super) at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    Idle,
    /// In a unit, or in the open batch of this chain.
    Queued(Chain),
    Running(Ticket),
    Delayed(TimerKey),
    Paused(Ticket),
}

impl Live {
    /// A run of it has ended for good. One that was asked for meanwhile follows; without, it was of the module that is the object's now.
    pub(super) fn end_run(&mut self) {
        if std::mem::take(&mut self.renews) {
            self.pending.get_or_insert(WatchEvent::Resync);
        } else {
            self.awaits_canary_run = false;
        }
    }
}

impl Vain {
    pub(super) fn tries(&self) -> Tries {
        Tries {
            failures: self.failures,
            refusals: self.refused.as_ref().map_or(0, |refused| refused.refusals),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.failures == 0 && self.refused.is_none()
    }
}

impl Slot {
    /// Whether the last run failed, was refused or held its place for long, or the object keeps changing because of its own runs, or has many.
    pub(super) fn is_suspect(&self, now: Timestamp) -> bool {
        let is_looping = |live: &Live| live.guard.is_looping();
        let [_, second] = self.began;
        self.has_failed
            || self.was_refused
            || self.was_slow
            || second.is_some_and(|began| now.since(began) < BUSY)
            || self.live.as_ref().is_some_and(is_looping)
    }

    /// What its object was refused last, with the uid of that object: the dead come before the living.
    pub(super) fn refused(&self) -> Option<(&str, &Refused)> {
        let gone = self.gone.front().map(|gone| (&gone.uid, &gone.vain));
        let live = self.live.as_ref().map(|live| (&live.uid, &live.vain));
        let (uid, vain) = gone.or(live)?;
        Some((uid, vain.refused.as_deref()?))
    }

    pub(super) fn empty() -> Self {
        Self {
            live: None,
            gone: VecDeque::new(),
            work: Work::Idle,
            is_given_up: false,
            quiet_until: None,
            has_failed: false,
            was_refused: false,
            was_slow: false,
            began: [None; 2],
        }
    }
}
