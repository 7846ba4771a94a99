//! Turns that owners share fairly.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::owners::{Owner, Owners};

/// The number of pieces of work, expected to end sooner, that may overtake one that waits.
const MAX_OVERTAKES: u32 = 32;

/// Hands out turns. [Groups](Owner::group) share the time by their weights, and owners of a group alternate: see [`Owners`]. Of the work of one
/// owner, what is expected to end first is next; at most 32 of these overtake a piece that was there before.
pub struct FairQueue {
    state: Mutex<State>,
}

struct State {
    free: u32,
    owners: Owners,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    owner: Owner,
    expected: Duration,
    overtaken: u32,
    grant: oneshot::Sender<Turn>,
}

/// The right to do a piece of work. Dropping it gives the turn back.
pub struct Turn {
    queue: Arc<FairQueue>,
    owner: Owner,
    since: Instant,
}

impl FairQueue {
    /// Creates a queue that hands out this many turns at a time.
    #[must_use]
    pub fn new(turns: u32) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                free: turns,
                owners: Owners::default(),
                waiting: VecDeque::new(),
            }),
        })
    }

    /// Takes a turn, if one is free.
    #[must_use]
    pub fn try_take(self: &Arc<Self>, owner: impl Into<Owner>) -> Option<Turn> {
        let owner = owner.into();
        let mut state = self.state();
        if state.free == 0 {
            return None;
        }
        state.begin(owner);
        Some(self.turn(owner))
    }

    /// Tells whether another owner had a turn recently.
    #[must_use]
    pub fn has_rivals(&self, owner: Owner) -> bool {
        self.state().owners.has_rivals(owner)
    }

    fn turn(self: &Arc<Self>, owner: Owner) -> Turn {
        Turn {
            queue: Arc::clone(self),
            owner,
            since: Instant::now(),
        }
    }

    /// Waits for a turn for work with this expected CPU time.
    pub async fn take(self: &Arc<Self>, owner: impl Into<Owner>, expected: Duration) -> Turn {
        let owner = owner.into();
        loop {
            // A turn that comes back goes to those who wait first, so none is free while someone waits.
            if let Some(turn) = self.try_take(owner) {
                return turn;
            }
            let (grant, granted) = oneshot::channel();
            self.state().waiting.push_back(Waiting {
                owner,
                expected,
                overtaken: 0,
                grant,
            });
            self.grant();
            if let Ok(turn) = granted.await {
                return turn;
            }
        }
    }

    /// Returns the number of waiters.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn grant(self: &Arc<Self>) {
        loop {
            let Some(next) = self.state().next() else {
                return;
            };
            let turn = self.turn(next.owner);
            // If the turn is no longer waited for, the turn comes back and goes to the next.
            drop(next.grant.send(turn));
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
            (self.owners.rank(waiting.owner), expected, *at)
        })?;
        let next = self.waiting.remove(at)?;
        let overtaken = self.waiting.iter_mut().take(at);
        for waiting in overtaken.filter(|waiting| waiting.owner.id == next.owner.id) {
            waiting.overtaken = waiting.overtaken.saturating_add(1);
        }
        self.begin(next.owner);
        Some(next)
    }

    fn begin(&mut self, owner: Owner) {
        self.free = self.free.saturating_sub(1);
        self.owners.begin(owner);
    }
}

impl Turn {
    /// Counts the time of the turn from now on.
    pub fn restart(&mut self) {
        self.since = Instant::now();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.free = state.free.saturating_add(1);
        state.owners.end(self.owner, self.since.elapsed());
        drop(state);
        self.queue.grant();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const EXPECTED: Duration = Duration::from_millis(50);

    /// Checks the order in which waiting calls get the only turn, by the owner of each.
    #[track_caller]
    fn check(owners: &[u128], expected: &[usize]) {
        let queue = FairQueue::new(1);
        let held = queue.try_take(0);
        let mut waits: Vec<_> = owners
            .iter()
            .map(|owner| Box::pin(queue.take(*owner, EXPECTED)))
            .map(|mut wait| {
                assert!(wait.as_mut().now_or_never().is_none());
                Some(wait)
            })
            .collect();
        assert_eq!(queue.waiting(), owners.len());
        drop(held);
        let mut order = Vec::new();
        while order.len() < owners.len() {
            for (index, slot) in waits.iter_mut().enumerate() {
                let turn = slot.as_mut().and_then(|wait| wait.as_mut().now_or_never());
                if let Some(turn) = turn {
                    order.push(index);
                    *slot = None;
                    drop(turn);
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
        // The owner of the turn before comes last.
        check(&[0, 1], &[1, 0]);
    }

    #[test]
    fn a_wait_that_is_dropped_takes_no_turn() {
        let queue = FairQueue::new(1);
        let held = queue.try_take(0);
        let mut dropped = Box::pin(queue.take(1, EXPECTED));
        assert!(dropped.as_mut().now_or_never().is_none());
        let mut wait = Box::pin(queue.take(2, EXPECTED));
        assert!(wait.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(held);
        assert!(wait.now_or_never().is_some());
        assert!(queue.try_take(3).is_some());
    }

    #[test]
    fn what_ends_sooner_goes_first_and_starves_nobody() {
        let queue = FairQueue::new(1);
        let mut held = queue.try_take(0);
        let mut long = Box::pin(queue.take(1, Duration::from_secs(1)));
        assert!(long.as_mut().now_or_never().is_none());
        let mut passed = 0;
        loop {
            let mut short = Box::pin(queue.take(1, EXPECTED));
            assert!(short.as_mut().now_or_never().is_none());
            drop(held.take());
            match short.as_mut().now_or_never() {
                None => break,
                turn => held = turn,
            }
            passed += 1;
        }
        assert!(long.now_or_never().is_some());
        assert_eq!(passed, MAX_OVERTAKES);
    }
}
