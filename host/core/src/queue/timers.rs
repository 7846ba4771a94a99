//! What is to happen at which time.

use super::batches::Lane;
use super::slot::{Vain, Work};
use super::{Action, AwaitedObjects, Queue, Ticket};
use crate::handler::WatchEvent;
use crate::request::ObjectRef;
use crate::time::Timestamp;

/// When, and a number that no other timer has.
pub(super) type TimerKey = (Timestamp, u64);

/// What is to happen.
#[derive(Debug, Clone)]
pub(super) enum Timer {
    Delay(ObjectRef),
    Resync(ObjectRef),
    OwnWrite(ObjectRef),
    Overdue(ObjectRef),
    Paused(Ticket),
    Close(Lane),
    /// A run may begin, if one waits.
    ReservedStart,
}

impl<R> Queue<R> {
    /// When [`tick`](Self::tick) is due, if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Action<R>> {
        while let Some((&at, _)) = self.timers.first_key_value() {
            if at.0 > now {
                break;
            }
            let Some((at, timer)) = self.timers.pop_first() else {
                break;
            };
            self.fire(at, timer, now);
        }
        self.finish_call(now)
    }

    pub(super) fn fire(&mut self, at: TimerKey, timer: Timer, now: Timestamp) {
        match timer {
            Timer::Delay(key) => {
                if self
                    .slots
                    .get(&key)
                    .is_some_and(|slot| slot.work == Work::Delayed(at))
                {
                    self.idle(&key);
                    if let Some(chain) = self.next_chain(&key) {
                        self.enqueue_alone(&key, chain, now);
                    }
                }
            }
            Timer::Resync(key) => {
                let is_idle = self
                    .slots
                    .get(&key)
                    .is_some_and(|slot| slot.work == Work::Idle);
                if let Some(live) = self.live_mut(&key)
                    && live.resync == Some(at)
                {
                    live.resync = None;
                    if is_idle {
                        live.occasion = Some(at.0);
                        live.vain = Vain::default();
                        live.pending.get_or_insert(WatchEvent::Resync);
                        self.wake(&key, now);
                    }
                }
            }
            Timer::OwnWrite(key) => {
                if let Some(live) = self.live_mut(&key) {
                    live.awaited = None;
                }
                self.wake(&key, now);
            }
            Timer::Overdue(key) => {
                let overdue = self
                    .live_mut(&key)
                    .filter(|live| live.is_deleting && !live.deletion_done);
                if let Some(uid) = overdue.map(|live| {
                    live.deletion_done = true;
                    live.pending = None;
                    live.uid.clone()
                }) {
                    self.actions.push(Action::Release { key, uid });
                }
            }
            Timer::Paused(ticket) => {
                let paused = self.paused.get(&ticket);
                let is_due = paused.filter(|paused| paused.timer == Some(at));
                match is_due.map(|paused| self.is_waiting(paused)) {
                    None => {}
                    Some(false) => {
                        if let Some(paused) = self.paused.get_mut(&ticket) {
                            paused.awaits = AwaitedObjects::None;
                        }
                        let paused = self.paused.get(&ticket);
                        let is_suspect = paused.is_some_and(|paused| {
                            let members = paused.members.iter();
                            self.is_suspect(members.map(|member| &member.key), now)
                        });
                        self.lines.push_ready(ticket, is_suspect);
                    }
                    Some(true) => {
                        if let Some(paused) = self.paused.get_mut(&ticket) {
                            paused.timer = None;
                        }
                    }
                }
            }
            // Every call ends with the start of runs.
            Timer::ReservedStart => {}
            Timer::Close(lane) => {
                if self.open.get(&lane).is_some_and(|open| open.closes == at) {
                    self.close(lane, now);
                }
            }
        }
    }

    pub(super) fn timer(&mut self, at: Timestamp, timer: Timer) -> TimerKey {
        self.sequence += 1;
        let key = (at, self.sequence);
        self.timers.insert(key, timer);
        key
    }
}
