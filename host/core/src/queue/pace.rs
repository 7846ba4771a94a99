//! Limits how often runs begin, across queues.

use std::fmt::Debug;
use std::sync::Arc;

use super::Queue;
use super::timers::Timer;
use crate::time::Timestamp;

/// Hands out the times at which runs may begin, such as to all Configurators of a namespace.
pub trait Pace: Debug + Send + Sync {
    /// Reserves the next free time for a run. A time in the past means that the run may begin at once.
    fn reserve(&self, now: Timestamp) -> Timestamp;
}

impl<R> Queue<R> {
    /// Limits how often runs begin. Runs that go on after a pause do not count.
    #[must_use]
    pub fn paced(self, pace: Arc<dyn Pace>) -> Self {
        Self {
            pace: Some(pace),
            ..self
        }
    }

    /// Whether a run may begin now. Otherwise a timer is set for when one may.
    pub(super) fn may_begin(&mut self, now: Timestamp) -> bool {
        let Some(pace) = &self.pace else {
            return true;
        };
        if let Some(reserved) = self.reserved_start {
            return reserved <= now;
        }
        let reserved = pace.reserve(now);
        self.reserved_start = Some(reserved);
        if reserved > now {
            self.timer(reserved, Timer::ReservedStart);
        }
        reserved <= now
    }
}
