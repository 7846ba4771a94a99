//! How handlers are called.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::handler::CallLimits;
use configurator_core::run::Call;
use configurator_guest::fair_queue::FairQueue;
use configurator_guest::long_calls::{Kind, LongCalls};

use crate::clock::SharedClock;

/// How handlers are called.
#[derive(Debug, Clone, Default)]
pub enum CallMode {
    /// Several at a time, and off the task's thread when they last.
    #[default]
    Parallel,
    /// On the task's thread. For the simulator, where time must not pass while a handler runs.
    Inline,
    /// On the task's thread, and each call takes a declared time. For tests in virtual time.
    Charged(ChargedCalls),
}

/// Declares how long a call takes.
type DurationOf = dyn Fn(&Call) -> Duration + Send + Sync;

/// Calls that take a declared time by the host's clock. They wait for each other as those of
/// [`GuestRuntime::call`](configurator_guest::runtime::GuestRuntime::call) do.
#[derive(Clone)]
pub struct ChargedCalls {
    turns: Arc<FairQueue>,
    long_calls: Arc<LongCalls>,
    tick: Duration,
    duration: Arc<DurationOf>,
}

impl fmt::Debug for ChargedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChargedCalls")
            .field("tick", &self.tick)
            .finish_non_exhaustive()
    }
}

impl ChargedCalls {
    /// Allows this many calls at a time, and as many that take longer than a tick. `duration` declares how long each takes.
    #[must_use]
    pub fn new(
        parallel_calls: u32,
        tick: Duration,
        duration: impl Fn(&Call) -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            turns: FairQueue::new(parallel_calls),
            long_calls: Arc::new(LongCalls::new(parallel_calls)),
            tick,
            duration: Arc::new(duration),
        }
    }

    /// Returns when the call has taken its time.
    pub(crate) async fn pass(&self, call: &Call, limits: &CallLimits, clock: &SharedClock) {
        let duration = (self.duration)(call);
        let kind = Kind::of(limits);
        let expected = self.long_calls.expected(kind);
        if expected.is_none() {
            let _turn = self.turns.take_short(limits).await;
            clock.sleep(duration.min(self.tick)).await;
        }
        if expected.is_some() || duration > self.tick {
            let expected = expected.unwrap_or(self.tick);
            let turns = self.long_calls.turns();
            let _turn = turns.take(limits.owner, expected).await;
            clock.sleep(duration).await;
        }
        let lasted = (duration > self.tick).then_some(duration);
        self.long_calls.note(kind, lasted);
    }
}
