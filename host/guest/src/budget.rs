//! Memory that everything in a process shares, handed out in order.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::sync::oneshot;

/// The number of reservations that may overtake one that waits for more memory than is free.
const MAX_OVERTAKES: u32 = 32;

/// A number of bytes that reservations are taken from. A clone is the same budget.
///
/// # Guarantees
/// - All reservations together never exceed the budget.
/// - Reservations that do not fit wait in order. A smaller one may overtake a larger one that waits, and after 32 of
///   these none does until the larger one was granted.
/// - A wait that is dropped leaves the queue, and a reservation that is dropped returns its bytes.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// The id of the next wait.
    next: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    bytes: u64,
    /// How many reservations have overtaken it.
    overtaken: u32,
    grant: oneshot::Sender<Reservation>,
}

/// More memory was requested than the whole budget has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} bytes do not fit into a budget of {limit} bytes")]
pub struct NeverFits {
    /// The requested memory, in bytes.
    pub wanted: u64,
    /// The budget, in bytes.
    pub limit: u64,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                limit,
                state: Mutex::new(State {
                    free: limit,
                    next: 0,
                    waiting: VecDeque::new(),
                }),
            }),
        }
    }

    /// The budget, in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.shared.limit
    }

    /// Returns the bytes that are reserved.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.limit().saturating_sub(self.state().free)
    }

    /// Returns how many reservations wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Reserves this many bytes, if they are free and no wait has been overtaken too often.
    #[must_use]
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        let mut state = self.state();
        if !state.may_take(state.waiting.len(), bytes) {
            return None;
        }
        let ahead = state.waiting.len();
        state.take(ahead, bytes);
        drop(state);
        Some(self.reservation(bytes))
    }

    /// Queues for this many bytes. The place in the queue is taken at once, not when the wait is first polled.
    ///
    /// # Errors
    /// When the whole budget is smaller.
    pub fn reserve(&self, bytes: u64) -> Result<Wait, NeverFits> {
        let limit = self.limit();
        if bytes > limit {
            return Err(NeverFits {
                wanted: bytes,
                limit,
            });
        }
        let (grant, granted) = oneshot::channel();
        let mut state = self.state();
        let id = state.next;
        state.next = id.wrapping_add(1);
        state.waiting.push_back(Waiting {
            id,
            bytes,
            overtaken: 0,
            grant,
        });
        drop(state);
        self.grant();
        Ok(Wait {
            budget: self.clone(),
            id,
            granted,
        })
    }

    /// Grants what fits now. Reservations are handed over outside of the lock, because one whose wait was dropped returns its bytes
    /// at once.
    fn grant(&self) {
        let granted = self.state().granted();
        for waiting in granted {
            let _ = waiting.grant.send(self.reservation(waiting.bytes));
        }
    }

    fn release(&self, bytes: u64) {
        if bytes > 0 {
            let mut state = self.state();
            state.free = state.free.saturating_add(bytes);
            drop(state);
            self.grant();
        }
    }

    fn reservation(&self, bytes: u64) -> Reservation {
        Reservation {
            budget: self.clone(),
            bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = &self.shared.state;
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether a reservation behind the first `ahead` waits may be taken now.
    fn may_take(&self, ahead: usize, bytes: u64) -> bool {
        let mut ahead = self.waiting.iter().take(ahead);
        bytes <= self.free && ahead.all(|waiting| waiting.overtaken < MAX_OVERTAKES)
    }

    /// Takes a reservation, which overtakes the first `ahead` waits.
    fn take(&mut self, ahead: usize, bytes: u64) {
        self.free = self.free.saturating_sub(bytes);
        for waiting in self.waiting.iter_mut().take(ahead) {
            waiting.overtaken = waiting.overtaken.saturating_add(1);
        }
    }

    fn granted(&mut self) -> Vec<Waiting> {
        let mut granted = Vec::new();
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at) {
            let bytes = waiting.bytes;
            if self.may_take(at, bytes) {
                self.take(at, bytes);
                granted.extend(self.waiting.remove(at));
            } else {
                at += 1;
            }
        }
        granted
    }
}

/// A place in the queue for memory. Dropping it gives up the place.
#[derive(Debug)]
pub struct Wait {
    budget: MemoryBudget,
    id: u64,
    granted: oneshot::Receiver<Reservation>,
}

impl Wait {
    /// Returns whether the memory has not been granted yet.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let state = self.budget.state();
        state.waiting.iter().any(|waiting| waiting.id == self.id)
    }

    /// Waits on this thread. Not for threads of an async runtime.
    #[must_use]
    pub fn blocking(self) -> Reservation {
        let mut wait = pin!(self);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match wait.as_mut().poll(&mut context) {
                Poll::Ready(reservation) => return reservation,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Wait {
    type Output = Reservation;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reservation> {
        match Pin::new(&mut self.granted).poll(context) {
            Poll::Ready(Ok(reservation)) => Poll::Ready(reservation),
            // The sender is in the queue of the budget that this holds, until it has sent.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        let before = state.waiting.len();
        state.waiting.retain(|waiting| waiting.id != self.id);
        let has_left = state.waiting.len() < before;
        drop(state);
        if has_left {
            self.budget.grant();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Bytes of a budget. They are returned when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: u64,
}

impl Reservation {
    /// The reserved bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether it has all bytes of the budget.
    #[must_use]
    pub fn is_whole_budget(&self) -> bool {
        self.bytes >= self.budget.limit()
    }

    /// Grows by this many bytes if they are free, also ahead of others that wait: what holds memory and cannot go on
    /// would keep them waiting longer.
    #[must_use]
    pub fn try_grow(&mut self, more: u64) -> bool {
        let mut state = self.budget.state();
        let fits = more <= state.free;
        if fits {
            state.free = state.free.saturating_sub(more);
            self.bytes = self.bytes.saturating_add(more);
        }
        fits
    }

    /// Adds the bytes of another reservation of the same budget.
    pub fn absorb(&mut self, mut other: Self) {
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut other.bytes));
    }

    /// Returns all but this many bytes.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(surplus);
        self.budget.release(surplus);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these waits have been granted.
    fn granted(waits: &[Wait]) -> Vec<usize> {
        let waits = waits.iter().enumerate();
        waits
            .filter(|(_, wait)| !wait.is_waiting())
            .map(|(index, _)| index)
            .collect()
    }

    fn queue(budget: &MemoryBudget, sizes: &[u64]) -> Vec<Wait> {
        let waits = sizes.iter().map(|bytes| budget.reserve(*bytes).unwrap());
        waits.collect()
    }

    #[test]
    fn waits_of_one_size_are_granted_in_order() {
        let budget = MemoryBudget::new(100);
        let mut held: Vec<_> = (0..4).map(|_| budget.try_reserve(25).unwrap()).collect();
        assert!(budget.try_reserve(1).is_none());
        let waits = queue(&budget, &[25, 25, 25, 25]);
        assert_eq!(granted(&waits), [] as [usize; 0]);
        held.truncate(2);
        assert_eq!(granted(&waits), [0, 1]);
        drop(held);
        assert_eq!(granted(&waits), [0, 1, 2, 3]);
        assert_eq!(budget.reserved(), 100);
        drop(waits);
        assert_eq!((budget.reserved(), budget.waiting()), (0, 0));
    }

    #[test]
    fn a_large_wait_is_overtaken_a_bounded_number_of_times() {
        let budget = MemoryBudget::new(100);
        let held = budget.try_reserve(60).unwrap();
        let mut large = queue(&budget, &[80]);
        for _ in 0..MAX_OVERTAKES / 2 {
            drop(budget.try_reserve(10).expect("a small one overtakes"));
            drop(budget.reserve(10).unwrap().blocking());
        }
        assert!(budget.try_reserve(10).is_none());
        let small = queue(&budget, &[10]);
        assert_eq!(granted(&small), [] as [usize; 0]);
        drop(held);
        assert_eq!(granted(&large), [0]);
        assert_eq!(granted(&small), [0]);
        assert_eq!(large.pop().unwrap().blocking().bytes(), 80);
    }

    #[test]
    fn a_wait_that_is_dropped_lets_those_behind_it_pass() {
        let budget = MemoryBudget::new(100);
        let _held = budget.try_reserve(60).unwrap();
        let mut waits = queue(&budget, &[90]);
        for _ in 0..MAX_OVERTAKES {
            let _ = budget.try_reserve(1).unwrap();
        }
        waits.extend(queue(&budget, &[10, 10]));
        assert_eq!(granted(&waits), [] as [usize; 0]);
        drop(waits.remove(0));
        assert_eq!(granted(&waits), [0, 1]);
        assert_eq!(budget.reserved(), 80);
    }

    #[test]
    fn a_granted_wait_that_is_dropped_returns_its_bytes() {
        let budget = MemoryBudget::new(100);
        let first = budget.reserve(100).unwrap();
        let second = budget.reserve(100).unwrap();
        assert!(second.is_waiting());
        drop(first);
        assert!(!second.is_waiting());
        drop(second);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn more_than_the_budget_is_refused_with_both_numbers() {
        let error = MemoryBudget::new(100).reserve(101).unwrap_err();
        assert_eq!(
            error.to_string(),
            "101 bytes do not fit into a budget of 100 bytes"
        );
    }

    #[test]
    fn a_reservation_grows_shrinks_and_absorbs_within_the_budget() {
        let budget = MemoryBudget::new(100);
        let mut one = budget.try_reserve(40).unwrap();
        assert!(one.try_grow(40));
        assert!(!one.try_grow(21));
        one.absorb(budget.try_reserve(20).unwrap());
        assert_eq!((one.bytes(), budget.reserved()), (100, 100));
        let wait = budget.reserve(70).unwrap();
        one.shrink_to(30);
        assert!(!wait.is_waiting());
        assert_eq!(budget.reserved(), 100);
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        let budget = MemoryBudget::new(100);
        let held = budget.try_reserve(100).unwrap();
        let wait = budget.reserve(50).unwrap();
        let thread = std::thread::spawn(move || wait.blocking().bytes());
        drop(held);
        assert_eq!(thread.join().unwrap(), 50);
    }
}
