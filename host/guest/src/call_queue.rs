//! The order in which calls run.
//!
//! A call begins with a short turn and keeps it until it has used a tick of CPU time. Then it returns that turn and continues with a *long*
//! turn. If no long turn is free, the call is aborted, releases its memory, waits for a long turn, and is made again, which is safe because a
//! handler is a pure function. So long calls wait for each other, and short calls never wait for them. If the last call for the same objects
//! was long, the next one waits for a long turn before it begins. If calls for them yield to others, a tenth of a tick is enough for that.

use std::sync::Arc;
use std::time::Duration;

use configurator_background::fair_queue::{FairQueue, Turn};
use configurator_core::handler::CallLimits;

use crate::long_calls::{Kind, LongCalls};
use crate::owner::owner_of;

/// Size in bytes from which an input makes the call begin with a long turn.
const LARGE_INPUT: u64 = 1 << 20;
/// The fraction of a tick from which a call that yields to others is long. A short call keeps a thread of the runtime until it ends, so many calls
/// that use most of a tick would delay others.
const YIELDS_AT: u32 = 10;

/// Hands out the short and long turns of calls.
pub struct CallQueue {
    short: Arc<FairQueue>,
    long: LongCalls,
    tick: Duration,
}

/// A call that waits for a turn or has one. Dropping it returns the turn.
pub struct QueuedCall<'q> {
    queue: &'q CallQueue,
    limits: CallLimits,
    /// The expected CPU time, if the call needs a long turn.
    expected: Option<Duration>,
    short: Option<Turn>,
    long: Option<Turn>,
}

impl CallQueue {
    /// Creates a queue with this many short and long turns.
    #[must_use]
    pub fn new(short: u32, long: u32, tick: Duration) -> Self {
        Self {
            short: FairQueue::new(short),
            long: LongCalls::new(FairQueue::new(long)),
            tick,
        }
    }

    /// Adds a call with these limits and an input of this size in bytes. The call has no turn yet.
    #[must_use]
    pub fn enqueue(&self, limits: &CallLimits, input_size: u64) -> QueuedCall<'_> {
        let expected = self.long.expected(Kind::of(limits));
        // A tick cannot interrupt the host while it copies the input to the guest.
        let is_large = input_size >= LARGE_INPUT;
        QueuedCall {
            queue: self,
            limits: *limits,
            expected: expected.or(is_large.then_some(self.tick)),
            short: None,
            long: None,
        }
    }

    /// Returns the CPU time of a short turn.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        self.tick
    }

    /// Returns how many calls wait for a long turn.
    #[must_use]
    pub fn waiting_long(&self) -> usize {
        self.long.turns().waiting()
    }
}

impl QueuedCall<'_> {
    /// Waits for a turn: a long one if the call is expected to be long, otherwise a short one. Returns at once if the call has a turn.
    /// Among the short calls of one owner, those that [yield](CallLimits::yields) come last.
    pub async fn take_turn(&mut self) {
        if self.short.is_some() || self.long.is_some() {
            return;
        }
        let owner = owner_of(&self.limits);
        let yields = self.limits.yields;
        match self.expected {
            Some(expected) => {
                self.long = Some(self.queue.long.turns().take(owner, expected).await);
            }
            None => {
                // Short turns have the same length, so the expected time only sets the order.
                let order = Duration::from_nanos(u64::from(yields));
                let mut turn = self.queue.short.take(owner, order).await;
                // A short call occupies its thread of the runtime. Tasks of other owners that could call now join the queue first. Otherwise the
                // order of tasks would decide, and not that of the queue.
                if self.queue.short.has_rivals(owner) {
                    tokio::task::yield_now().await;
                    turn.restart();
                }
                self.short = Some(turn);
            }
        }
    }

    /// Tells whether the call has a long turn.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// Returns the short turn, if the call has one. A long turn is kept.
    pub fn return_short_turn(&mut self) {
        self.short = None;
    }

    /// Exchanges the short turn for a long one. Returns `None` if no long turn is free: the caller must abort the call,
    /// [wait](Self::take_turn), now for a long turn, and make the call again.
    pub fn exchange_turn(&mut self) -> Option<Turn> {
        self.return_short_turn();
        let turn = self.long.take();
        let turn = turn.or_else(|| self.queue.long.turns().try_take(owner_of(&self.limits)));
        self.expected = self.expected.or(Some(self.queue.tick));
        turn
    }

    /// Returns the turn, and remembers whether the call was long.
    pub fn end(self, cpu_time: Duration) {
        let tick = self.queue.tick;
        let is_long_from = if self.limits.yields {
            tick / YIELDS_AT
        } else {
            tick
        };
        let lasted = Some(cpu_time).filter(|time| *time > is_long_from);
        if lasted.is_some() || self.expected.is_some() {
            self.queue.long.note(Kind::of(&self.limits), lasted);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use futures::FutureExt as _;
    use tokio::task::{JoinSet, yield_now};

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    fn limits(objects: u64) -> CallLimits {
        CallLimits {
            objects,
            ..CallLimits::default()
        }
    }

    #[test]
    fn a_long_call_waits_without_a_short_turn_until_a_long_one_is_free() {
        let queue = CallQueue::new(1, 1, TICK);
        let mut first = queue.enqueue(&limits(1), 0);
        assert!(first.take_turn().now_or_never().is_some());
        assert!(!first.is_long());
        let long = first.exchange_turn();
        assert!(long.is_some());
        let mut second = queue.enqueue(&limits(2), 0);
        assert!(second.take_turn().now_or_never().is_some());
        assert!(second.exchange_turn().is_none());
        assert!(second.take_turn().now_or_never().is_none());
        let mut third = queue.enqueue(&limits(3), 0);
        assert!(third.take_turn().now_or_never().is_some());
        drop(long);
        assert!(second.take_turn().now_or_never().is_some());
        assert!(second.is_long());
    }

    #[test]
    fn the_next_call_for_the_same_objects_begins_with_a_long_turn() {
        let queue = CallQueue::new(1, 1, TICK);
        for (cpu_time, next_is_long) in [(2 * TICK, true), (TICK, false)] {
            queue.enqueue(&limits(1), 0).end(cpu_time);
            let mut next = queue.enqueue(&limits(1), 0);
            assert!(next.take_turn().now_or_never().is_some());
            assert_eq!(next.is_long(), next_is_long);
        }
        let yielding = CallLimits {
            yields: true,
            ..limits(3)
        };
        for (cpu_time, next_is_long) in [(TICK / 5, true), (TICK / 10, false)] {
            queue.enqueue(&yielding, 0).end(cpu_time);
            let mut next = queue.enqueue(&yielding, 0);
            assert!(next.take_turn().now_or_never().is_some());
            assert_eq!(next.is_long(), next_is_long);
        }
        for (input_size, is_long) in [(LARGE_INPUT - 1, false), (LARGE_INPUT, true)] {
            let mut other = queue.enqueue(&limits(2), input_size);
            assert!(other.take_turn().now_or_never().is_some());
            assert_eq!(other.is_long(), is_long);
        }
    }

    /// Groups by their weight and number of tasks. Each task makes calls that end in one poll, and has other things to do between them.
    #[tokio::test]
    async fn groups_share_time_by_their_weights_if_no_call_is_interrupted() {
        const GROUPS: [(u32, u32); 2] = [(1, 12), (3, 4)];
        const CALLS: u32 = 2000;
        let queue = Arc::new(CallQueue::new(1, 1, TICK));
        let counts: Arc<[AtomicU32; 2]> = Arc::default();
        let mut tasks = JoinSet::new();
        for (group, (weight, size)) in GROUPS.into_iter().enumerate() {
            for task in 0..size {
                let limits = CallLimits {
                    owner: u128::from(task % 3) + 10 * group as u128,
                    group: group as u128,
                    weight,
                    ..limits(u64::from(task) + 100 * group as u64)
                };
                let (queue, counts) = (queue.clone(), counts.clone());
                tasks.spawn(async move {
                    while counts.iter().map(|count| count.load(Relaxed)).sum::<u32>() < CALLS {
                        let mut call = queue.enqueue(&limits, 0);
                        call.take_turn().await;
                        counts[group].fetch_add(1, Relaxed);
                        call.end(Duration::ZERO);
                        for _ in 0..3 {
                            yield_now().await;
                        }
                    }
                });
            }
        }
        tasks.join_all().await;
        let [light, heavy] = [0, 1].map(|group| counts[group].load(Relaxed));
        // Three times, but for what the times of turns differ.
        assert!(heavy > 2 * light, "{light} and {heavy} calls");
    }
}
