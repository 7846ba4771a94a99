//! How handlers are called.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::run::Call;
use tokio::sync::Semaphore;

use crate::clock::SharedClock;

/// How handlers are called.
#[derive(Debug, Clone, Default)]
pub enum CallMode {
    /// Several at a time, and off the task's thread when they last.
    #[default]
    Parallel,
    /// On the task's thread. For the simulator, where time must not pass while a handler runs.
    Inline,
    /// On the task's thread, each for as long as is declared. For tests in virtual time.
    Charged(ChargedCalls),
}

/// How long a call takes.
type DurationOf = dyn Fn(&Call) -> Duration + Send + Sync;

/// Calls that take a declared time by the host's clock, in the order of [`GuestRuntime::call`](configurator_guest::runtime::GuestRuntime::call):
/// each has a turn for a tick at most, and one that takes longer is made again with a place among those that do.
#[derive(Clone)]
pub struct ChargedCalls {
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
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
    /// So many calls at a time, and as many that take longer than a tick. `duration` says how long each takes.
    #[must_use]
    pub fn new(
        parallel_calls: usize,
        tick: Duration,
        duration: impl Fn(&Call) -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(parallel_calls)),
            places: Arc::new(Semaphore::new(parallel_calls)),
            tick,
            duration: Arc::new(duration),
        }
    }

    /// Returns when the call has taken its time.
    pub(crate) async fn pass(&self, call: &Call, clock: &SharedClock) {
        let duration = (self.duration)(call);
        // Neither is ever closed.
        let turn = self.turns.acquire().await;
        clock.sleep(duration.min(self.tick)).await;
        drop(turn);
        if duration > self.tick {
            let _place = self.places.acquire().await;
            clock.sleep(duration).await;
        }
    }
}
