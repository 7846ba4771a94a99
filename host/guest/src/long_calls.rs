//! Calls that last longer than a tick.
//!
//! A call begins with a turn, which it has for a tick at most. When it lasts longer, it gives up its turn and goes on with a
//! *place*, on a thread that gives way to all others. Where no place is free, the call returns everything that it has, waits for a
//! place, and is made again: a handler is a pure function. So calls that last wait for each other, and no other call waits for them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use rustix::process::nice;
use tokio::sync::oneshot;

use crate::drive::{DriveError, Fiber, drive_blocking};

/// How much the threads of these calls give way to others, of 19.
const NICENESS: i32 = 10;
/// Stack of such a thread, in bytes. The call has a stack of its own.
const STACK: usize = 256 << 10;
/// Owners whose last place is remembered. One that is forgotten goes first, like a new one.
const REMEMBERED: usize = 1024;

/// Hands out places. The next is of the owner whose last one was longest ago, so an owner with many such calls keeps none of another
/// waiting for more than one of them.
pub(crate) struct LongCalls {
    state: Mutex<State>,
}

struct State {
    free: u32,
    /// Counts places that were handed out.
    places: u64,
    last_places: HashMap<u128, u64>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    owner: u128,
    grant: oneshot::Sender<Place>,
}

/// A call that lasts may run while this lives.
pub(crate) struct Place {
    calls: Arc<LongCalls>,
}

impl LongCalls {
    /// So many places.
    pub(crate) fn new(places: u32) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                free: places,
                places: 0,
                last_places: HashMap::new(),
                waiting: VecDeque::new(),
            }),
        })
    }

    /// A place, if one is free.
    pub(crate) fn try_take(self: &Arc<Self>, owner: u128) -> Option<Place> {
        let mut state = self.state();
        if state.free == 0 {
            return None;
        }
        state.begin(owner);
        Some(Place {
            calls: Arc::clone(self),
        })
    }

    /// Waits for a place.
    pub(crate) async fn take(self: &Arc<Self>, owner: u128) -> Result<Place, DriveError> {
        let granted = {
            let (grant, granted) = oneshot::channel();
            self.state().waiting.push_back(Waiting { owner, grant });
            self.grant();
            granted
        };
        granted.await.map_err(|_| DriveError::Closed)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn grant(self: &Arc<Self>) {
        loop {
            let Some(next) = self.state().next() else {
                return;
            };
            let place = Place {
                calls: Arc::clone(self),
            };
            // One that nobody waits for any more comes back, and is handed out to the next.
            drop(next.grant.send(place));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> Option<Waiting> {
        self.waiting.retain(|waiting| !waiting.grant.is_closed());
        if self.free == 0 {
            return None;
        }
        let last = |owner| self.last_places.get(owner).copied().unwrap_or(0);
        let waiting = self.waiting.iter().enumerate();
        let (at, _) = waiting.min_by_key(|(at, waiting)| (last(&waiting.owner), *at))?;
        let next = self.waiting.remove(at)?;
        self.begin(next.owner);
        Some(next)
    }

    fn begin(&mut self, owner: u128) {
        self.free = self.free.saturating_sub(1);
        self.places = self.places.saturating_add(1);
        if self.last_places.len() >= REMEMBERED {
            let oldest = self.last_places.iter().min_by_key(|(_, place)| **place);
            if let Some(owner) = oldest.map(|(owner, _)| *owner) {
                self.last_places.remove(&owner);
            }
        }
        self.last_places.insert(owner, self.places);
    }
}

impl Place {
    /// Runs a call to its end on a thread of its own, which gives way to others.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        call: Fiber<'static, T>,
    ) -> Result<T, DriveError> {
        let (reply, result) = oneshot::channel();
        Builder::new()
            .name("guest-call".into())
            .stack_size(STACK)
            .spawn(move || {
                // Of this thread alone. Where it is refused, the call competes with others.
                let _ = nice(NICENESS);
                let ended = drive_blocking(call);
                drop(self);
                let _ = reply.send(ended);
            })
            .map_err(DriveError::Thread)?;
        result.await.unwrap_or(Err(DriveError::Closed))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.calls.state();
        state.free = state.free.saturating_add(1);
        drop(state);
        self.calls.grant();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// The order in which those that wait get the one place that there is, by the owner of each.
    #[track_caller]
    fn check(owners: &[u128], expected: &[usize]) {
        let calls = LongCalls::new(1);
        let held = calls.try_take(0);
        let mut waits: Vec<_> = owners
            .iter()
            .map(|owner| Box::pin(calls.take(*owner)))
            .map(|mut wait| {
                assert!(wait.as_mut().now_or_never().is_none());
                Some(wait)
            })
            .collect();
        assert_eq!(calls.waiting(), owners.len());
        drop(held);
        let mut order = Vec::new();
        while order.len() < owners.len() {
            for (index, slot) in waits.iter_mut().enumerate() {
                let place = slot.as_mut().and_then(|wait| wait.as_mut().now_or_never());
                if let Some(place) = place {
                    order.push(index);
                    *slot = None;
                    drop(place);
                    break;
                }
            }
        }
        assert_eq!(order, expected);
    }

    #[test]
    fn owners_take_turns() {
        check(&[1, 1, 1], &[0, 1, 2]);
        check(&[1, 1, 1, 2, 3], &[0, 3, 4, 1, 2]);
        // The owner of the place before comes last.
        check(&[0, 1], &[1, 0]);
    }

    #[test]
    fn a_wait_that_is_dropped_takes_no_place() {
        let calls = LongCalls::new(1);
        let held = calls.try_take(0);
        let mut dropped = Box::pin(calls.take(1));
        assert!(dropped.as_mut().now_or_never().is_none());
        let mut wait = Box::pin(calls.take(2));
        assert!(wait.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(held);
        assert!(wait.now_or_never().is_some());
        assert!(calls.try_take(3).is_some());
    }

    #[tokio::test]
    async fn a_call_runs_on_a_thread_of_its_own_and_returns_its_place() {
        let calls = LongCalls::new(1);
        let place = calls.try_take(0).unwrap();
        let here = std::thread::current().id();
        let call = Box::pin(async { std::thread::current().id() });
        assert_ne!(place.run(call).await.unwrap(), here);
        assert!(calls.try_take(0).is_some());
    }
}
