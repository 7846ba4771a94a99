//! The turns that a call takes.
//!
//! A call begins with a short turn, which it has until it has used a tick of CPU time. When it lasts longer, it gives that turn up and goes
//! on with a *long* turn. Where none is free, it ends, returns everything that it has, waits for a long turn, and is made again: a handler
//! is a pure function. So calls that last wait for each other, and no other call waits for them. A call for objects whose last call lasted
//! waits for a long turn at once.

use std::sync::Arc;
use std::time::Duration;

use configurator_background::fair_queue::{FairQueue, Turn};
use configurator_background::work::Background;
use configurator_core::handler::CallLimits;

use crate::long_calls::{Kind, LongCalls};

/// A call with an input of this many bytes is expected to last.
const LARGE_INPUT: u64 = 1 << 20;

/// Short and long turns.
pub struct CallTurns {
    short: Arc<FairQueue>,
    long: LongCalls,
    tick: Duration,
}

/// The turns of one call. Dropping it gives them back.
pub struct TurnsOfCall<'t> {
    turns: &'t CallTurns,
    limits: CallLimits,
    /// CPU time that the call is expected to take, if it is expected to last.
    expected: Option<Duration>,
    short: Option<Turn>,
    long: Option<Turn>,
}

impl CallTurns {
    /// Creates this many short turns. The long ones are those of work in the background.
    #[must_use]
    pub fn new(short: u32, background: &Background, tick: Duration) -> Self {
        Self {
            short: FairQueue::new(short),
            long: LongCalls::new(Arc::clone(background.turns())),
            tick,
        }
    }

    /// Returns the turns of a call with these limits and an input of this size in bytes. The call has none yet.
    #[must_use]
    pub fn of_call(&self, limits: &CallLimits, input_size: u64) -> TurnsOfCall<'_> {
        let expected = self.long.expected(Kind::of(limits));
        // Nothing interrupts the host while it hands the input over.
        let is_large = input_size >= LARGE_INPUT;
        TurnsOfCall {
            turns: self,
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

impl TurnsOfCall<'_> {
    /// Waits until the call has a turn: a long one if it is expected to last, otherwise a short one. A turn that it has is kept.
    /// Of one owner, calls that [yield](CallLimits::yields) come last.
    pub async fn take(&mut self) {
        if self.short.is_some() || self.long.is_some() {
            return;
        }
        let CallLimits { owner, yields, .. } = self.limits;
        match self.expected {
            Some(expected) => {
                self.long = Some(self.turns.long.turns().take(owner, expected).await);
            }
            None => {
                // All short turns last alike, so the expected time only decides the order.
                let order = Duration::from_nanos(u64::from(yields));
                self.short = Some(self.turns.short.take(owner, order).await);
            }
        }
    }

    /// Tells whether the call has a long turn.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// Gives the short turn back, if the call has it. A long turn is kept.
    pub fn return_short(&mut self) {
        self.short = None;
    }

    /// Exchanges the short turn for a long one, as the call lasts. Returns the long turn that the call has now, and `None` where none is free:
    /// the call must end, [wait for a turn](Self::take), which is a long one, and be made again.
    pub fn lasts(&mut self) -> Option<Turn> {
        self.return_short();
        let turn = self.long.take();
        let turn = turn.or_else(|| self.turns.long.turns().try_take(self.limits.owner));
        self.expected = self.expected.or(Some(self.turns.tick));
        turn
    }

    /// Gives the turns back, and remembers whether the call lasted.
    pub fn end(self, cpu_time: Duration) {
        let lasted = Some(cpu_time).filter(|time| *time > self.turns.tick);
        if lasted.is_some() || self.expected.is_some() {
            self.turns.long.note(Kind::of(&self.limits), lasted);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    fn limits(objects: u64) -> CallLimits {
        CallLimits {
            objects,
            ..CallLimits::default()
        }
    }

    #[test]
    fn a_call_that_lasts_waits_for_a_long_turn_where_none_is_free() {
        let turns = CallTurns::new(1, &Background::new(1), TICK);
        let mut first = turns.of_call(&limits(1), 0);
        assert!(first.take().now_or_never().is_some());
        assert!(!first.is_long());
        let long = first.lasts();
        assert!(long.is_some());
        let mut second = turns.of_call(&limits(2), 0);
        assert!(second.take().now_or_never().is_some());
        assert!(second.lasts().is_none());
        assert!(second.take().now_or_never().is_none());
        // It waits without a short turn.
        let mut third = turns.of_call(&limits(3), 0);
        assert!(third.take().now_or_never().is_some());
        drop(long);
        assert!(second.take().now_or_never().is_some());
        assert!(second.is_long());
    }

    #[test]
    fn the_next_call_for_the_same_objects_begins_with_a_long_turn() {
        let turns = CallTurns::new(1, &Background::new(1), TICK);
        for (cpu_time, next_is_long) in [(2 * TICK, true), (TICK, false)] {
            turns.of_call(&limits(1), 0).end(cpu_time);
            let mut next = turns.of_call(&limits(1), 0);
            assert!(next.take().now_or_never().is_some());
            assert_eq!(next.is_long(), next_is_long);
        }
        for (input_size, is_long) in [(LARGE_INPUT - 1, false), (LARGE_INPUT, true)] {
            let mut other = turns.of_call(&limits(2), input_size);
            assert!(other.take().now_or_never().is_some());
            assert_eq!(other.is_long(), is_long);
        }
    }
}
