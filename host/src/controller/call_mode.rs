//! How handlers are called.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::handler::CallLimits;
use configurator_core::run::Call;
use configurator_guest::call_queue::CallQueue;

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

/// Calls that take a declared time by the host's clock. They wait for turns like those of
/// [`GuestRuntime::call`](configurator_guest::runtime::GuestRuntime::call).
#[derive(Clone)]
pub struct ChargedCalls {
    queue: Arc<CallQueue>,
    duration: Arc<DurationOf>,
}

impl fmt::Debug for ChargedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChargedCalls")
            .field("tick", &self.queue.tick())
            .finish_non_exhaustive()
    }
}

impl ChargedCalls {
    /// Creates calls with this many short turns and as many long ones. `duration` declares how long each call takes.
    #[must_use]
    pub fn new(
        parallel_calls: u32,
        tick: Duration,
        duration: impl Fn(&Call) -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            queue: Arc::new(CallQueue::new(parallel_calls, parallel_calls, tick)),
            duration: Arc::new(duration),
        }
    }

    /// Waits for turns as a real call does, and sleeps for the duration of the call.
    pub(crate) async fn pass(&self, call: &Call, limits: &CallLimits, clock: &SharedClock) {
        let duration = (self.duration)(call);
        let mut queued = self.queue.enqueue(limits, 0);
        loop {
            queued.take_turn().await;
            let mut left = duration;
            if !queued.is_long() {
                let short = duration.min(self.queue.tick());
                clock.sleep(short).await;
                left = left.saturating_sub(short);
                if left.is_zero() {
                    break;
                }
            }
            if let Some(_turn) = queued.exchange_turn() {
                clock.sleep(left).await;
                break;
            }
        }
        queued.end(duration);
    }
}
