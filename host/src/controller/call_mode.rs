//! How handlers are called.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use configurator_background::work::Background;
use configurator_core::handler::CallLimits;
use configurator_core::run::Call;
use configurator_guest::call_turns::CallTurns;

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

/// Calls that take a declared time by the host's clock. They take turns as those of
/// [`GuestRuntime::call`](configurator_guest::runtime::GuestRuntime::call) do.
#[derive(Clone)]
pub struct ChargedCalls {
    turns: Arc<CallTurns>,
    duration: Arc<DurationOf>,
}

impl fmt::Debug for ChargedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChargedCalls")
            .field("tick", &self.turns.tick())
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
            turns: Arc::new(CallTurns::new(
                parallel_calls,
                &Background::new(parallel_calls),
                tick,
            )),
            duration: Arc::new(duration),
        }
    }

    /// Returns when the call has taken its time.
    pub(crate) async fn pass(&self, call: &Call, limits: &CallLimits, clock: &SharedClock) {
        let duration = (self.duration)(call);
        let mut turns = self.turns.of_call(limits, 0);
        loop {
            turns.take().await;
            let begun = match turns.is_long() {
                true => Duration::ZERO,
                false => duration.min(self.turns.tick()),
            };
            clock.sleep(begun).await;
            if !turns.is_long() && begun == duration {
                break;
            }
            if let Some(_turn) = turns.lasts() {
                clock.sleep(duration.saturating_sub(begun)).await;
                break;
            }
        }
        turns.end(duration);
    }
}
