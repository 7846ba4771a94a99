//! Calls that last longer than a tick.
//!
//! A call begins with a turn, which it has for a tick at most. When it lasts longer, it gives up its turn and goes on with a
//! *place*, on a thread that gives way to all others. Where no place is free, the call returns everything that it has, waits for a
//! place, and is made again: a handler is a pure function. So calls that last wait for each other, and no other call waits for them.
//! A call for objects whose last call lasted waits for a place at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use configurator_core::handler::CallLimits;
use rustix::process::nice;
use tokio::sync::oneshot::{self, error::RecvError};

use crate::drive::{DriveError, Fiber, drive_blocking};
use crate::owner_turns::OwnerTurns;

/// The niceness of the threads of these calls; 19 is the lowest priority.
const NICENESS: i32 = 10;
/// Stack of such a thread, in bytes. The call has a stack of its own.
const STACK: usize = 256 << 10;
/// Kinds of call that are remembered because the last call lasted.
const KINDS: usize = 4096;
/// The number of calls, expected to end sooner, that may overtake one that waits.
const MAX_OVERTAKES: u32 = 32;

/// Hands out places. Owners take turns: the next place goes to the owner whose last one was longest ago. Among the calls of one owner,
/// the call that is expected to end first is next; at most 32 of these overtake a call that was there before.
pub(crate) struct LongCalls {
    state: Mutex<State>,
}

struct State {
    free: u32,
    owners: OwnerTurns,
    /// The CPU time of the last call of each kind, with its number among those that lasted.
    lasted: HashMap<Kind, (Duration, u64)>,
    /// Counts the calls that lasted.
    noted: u64,
    waiting: VecDeque<Waiting>,
}

/// A kind of calls that are expected to take the same time: those of one owner for the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    owner: u128,
    objects: u64,
}

impl Kind {
    /// Returns the kind of a call with these limits.
    pub(crate) const fn of(limits: &CallLimits) -> Self {
        Self {
            owner: limits.owner,
            objects: limits.objects,
        }
    }
}

struct Waiting {
    owner: u128,
    expected: Duration,
    overtaken: u32,
    grant: oneshot::Sender<Place>,
}

/// The right to run a call that lasts. Dropping it gives the place back.
pub(crate) struct Place {
    calls: Arc<LongCalls>,
}

impl LongCalls {
    /// Creates this many places.
    pub(crate) fn new(places: u32) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                free: places,
                owners: OwnerTurns::default(),
                lasted: HashMap::new(),
                noted: 0,
                waiting: VecDeque::new(),
            }),
        })
    }

    /// Returns the CPU time of the last call of this kind, if it lasted.
    pub(crate) fn expected(&self, kind: Kind) -> Option<Duration> {
        Some(self.state().lasted.get(&kind)?.0)
    }

    /// Remembers the CPU time of a call that lasted, and forgets the kind of one that did not.
    pub(crate) fn note(&self, kind: Kind, lasted: Option<Duration>) {
        let mut state = self.state();
        let Some(lasted) = lasted else {
            state.lasted.remove(&kind);
            return;
        };
        if state.lasted.len() >= KINDS && !state.lasted.contains_key(&kind) {
            let oldest = state.lasted.iter().min_by_key(|(_, (_, number))| *number);
            if let Some(oldest) = oldest.map(|(kind, _)| *kind) {
                state.lasted.remove(&oldest);
            }
        }
        state.noted = state.noted.saturating_add(1);
        let number = state.noted;
        state.lasted.insert(kind, (lasted, number));
    }

    /// Takes a place, if one is free.
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

    /// Waits for a place, for a call with this expected CPU time.
    ///
    /// # Errors
    /// Never, as long as this exists.
    pub(crate) async fn take(
        self: &Arc<Self>,
        owner: u128,
        expected: Duration,
    ) -> Result<Place, RecvError> {
        let (grant, granted) = oneshot::channel();
        self.state().waiting.push_back(Waiting {
            owner,
            expected,
            overtaken: 0,
            grant,
        });
        self.grant();
        granted.await
    }

    /// Returns how many calls wait for a place.
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
            // If the call is no longer waited for, the place comes back and goes to the next.
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
        let waiting = self.waiting.iter().enumerate();
        let (at, _) = waiting.min_by_key(|(at, waiting)| {
            let may_be_overtaken = waiting.overtaken < MAX_OVERTAKES;
            let expected = may_be_overtaken.then_some(waiting.expected);
            (self.owners.last(waiting.owner), expected, *at)
        })?;
        let next = self.waiting.remove(at)?;
        let overtaken = self.waiting.iter_mut().take(at);
        for waiting in overtaken.filter(|waiting| waiting.owner == next.owner) {
            waiting.overtaken = waiting.overtaken.saturating_add(1);
        }
        self.begin(next.owner);
        Some(next)
    }

    fn begin(&mut self, owner: u128) {
        self.free = self.free.saturating_sub(1);
        self.owners.record(owner);
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
                // This changes this thread only. If the system refuses, the call has the priority of the others.
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

    const EXPECTED: Duration = Duration::from_millis(50);

    /// Checks the order in which waiting calls get the only place, by the owner of each.
    #[track_caller]
    fn check(owners: &[u128], expected: &[usize]) {
        let calls = LongCalls::new(1);
        let held = calls.try_take(0);
        let mut waits: Vec<_> = owners
            .iter()
            .map(|owner| Box::pin(calls.take(*owner, EXPECTED)))
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
        let mut dropped = Box::pin(calls.take(1, EXPECTED));
        assert!(dropped.as_mut().now_or_never().is_none());
        let mut wait = Box::pin(calls.take(2, EXPECTED));
        assert!(wait.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(held);
        assert!(wait.now_or_never().is_some());
        assert!(calls.try_take(3).is_some());
    }

    #[test]
    fn what_ends_sooner_goes_first_and_starves_nobody() {
        let calls = LongCalls::new(1);
        let held = calls.try_take(0);
        let second = Duration::from_secs(1);
        let mut long = Box::pin(calls.take(1, second));
        assert!(long.as_mut().now_or_never().is_none());
        let mut passed = 0;
        let mut held = held;
        while long.as_mut().now_or_never().is_none() {
            let mut short = Box::pin(calls.take(1, EXPECTED));
            assert!(short.as_mut().now_or_never().is_none());
            drop(held.take());
            held = short.as_mut().now_or_never().and_then(Result::ok);
            passed += u32::from(held.is_some());
        }
        assert_eq!(passed, MAX_OVERTAKES);
    }

    #[test]
    fn what_lasted_is_expected_to_last_until_it_does_not() {
        let calls = LongCalls::new(1);
        let kind = |objects| Kind { owner: 1, objects };
        calls.note(kind(0), Some(EXPECTED));
        assert_eq!(calls.expected(kind(0)), Some(EXPECTED));
        assert_eq!(calls.expected(kind(1)), None);
        calls.note(kind(0), None);
        assert_eq!(calls.expected(kind(0)), None);
        for objects in 0..2 * KINDS as u64 {
            calls.note(kind(objects), Some(EXPECTED));
        }
        assert_eq!(calls.state().lasted.len(), KINDS);
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
