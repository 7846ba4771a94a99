//! Objects whose turn has come, alone or in batches.

use super::slot::Work;
use super::timers::{Timer, TimerKey};
use super::{Action, Queue};
use crate::request::ObjectRef;
use crate::ring::shard_of;
use crate::run::Chain;
use crate::time::Timestamp;

/// Objects that have a run together.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) keys: Vec<ObjectRef>,
    pub(super) chain: Chain,
}

/// A batch that more objects may join.
#[derive(Debug)]
pub(super) struct OpenBatch {
    pub(super) keys: Vec<ObjectRef>,
    pub(super) closes: TimerKey,
}

/// The objects that may share a batch are those with the same lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane {
    pub(super) chain: Chain,
    pub(super) shard: u16,
    /// Whether the canary handles them.
    pub(super) is_canary: bool,
    /// Whether their last runs failed.
    pub(super) has_failed: bool,
}

impl<R> Queue<R> {
    pub(super) fn enqueue(&mut self, key: &ObjectRef, now: Timestamp) {
        let Some(chain) = self.next_chain(key) else {
            return self.forget_empty(key);
        };
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if slot.work != Work::Idle {
            return;
        }
        if let Some(until) = slot.quiet_until.filter(|until| *until > now) {
            return self.delay(key, until);
        }
        if let (Some(live), true) = (&mut slot.live, slot.gone.is_empty()) {
            if live.awaited.is_some() {
                return;
            }
            let (space, changed) = live.guard.on_turn(live.pending, now);
            if let Some(is_looping) = changed {
                self.actions.push(Action::Loop {
                    key: key.clone(),
                    is_looping,
                });
            }
            if !space.is_zero() {
                self.delay(key, now.after(space));
                return;
            }
        }
        let Some(batch) = self.configurator.batch else {
            return self.enqueue_alone(key, chain, now);
        };
        self.queued(key, chain);
        let uid = self.next_uid(key);
        let shard = uid.map_or(0, |uid| shard_of(uid, self.shards));
        let lane = self.lane(chain, shard, key);
        self.join(lane, key.clone(), now.after(batch.max_delay), now);
    }

    /// Puts an object that is queued in the open batch of a lane; where there is none, in one that closes at this time.
    pub(super) fn join(&mut self, lane: Lane, key: ObjectRef, closes: Timestamp, now: Timestamp) {
        if !self.open.contains_key(&lane) {
            let closes = self.timer(closes, Timer::Close(lane));
            self.open.insert(
                lane,
                OpenBatch {
                    keys: Vec::new(),
                    closes,
                },
            );
        }
        let most = self.configurator.batch.map_or(1, |batch| batch.max_size);
        let is_full = self.open.get_mut(&lane).is_some_and(|open| {
            open.keys.push(key);
            open.keys.len() >= most
        });
        if is_full {
            self.close(lane, now);
        }
    }

    /// Queues a run of this object alone. It waits for no batch.
    pub(super) fn enqueue_alone(&mut self, key: &ObjectRef, chain: Chain, now: Timestamp) {
        let keys = vec![key.clone()];
        self.push(Unit { keys, chain }, now);
        self.queued(key, chain);
    }

    pub(super) fn push(&mut self, unit: Unit, now: Timestamp) {
        let is_suspect = self.is_suspect(&unit.keys, now);
        self.lines.push(unit, is_suspect);
    }

    pub(super) fn queued(&mut self, key: &ObjectRef, chain: Chain) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.work = Work::Queued(chain);
        }
    }

    pub(super) fn close(&mut self, lane: Lane, now: Timestamp) {
        if let Some(open) = self.open.remove(&lane) {
            self.timers.remove(&open.closes);
            if !open.keys.is_empty() {
                let (keys, chain) = (open.keys, lane.chain);
                self.push(Unit { keys, chain }, now);
            }
        }
    }

    pub(super) fn lane(&self, chain: Chain, shard: u16, key: &ObjectRef) -> Lane {
        let slot = self.slots.get(key);
        Lane {
            chain,
            shard,
            is_canary: self.is_canary(key),
            has_failed: slot.is_some_and(|slot| slot.has_failed),
        }
    }
}
