//! How long a call may run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::drive::step_aside;

/// Wall time is capped at this many times the deadline.
const WALL_FACTOR: u32 = 10;

/// The clocks of one call. Asked on the thread that runs it.
#[derive(Debug, Clone)]
pub(crate) struct Stopwatch {
    /// What the CPU clock of the thread showed at the start, in nanoseconds, had all of the call run on this thread.
    cpu: Arc<AtomicI64>,
    wall: Instant,
}

/// A call ran too long.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeadlineExceeded {
    /// In CPU time.
    #[error("it used {used:.0?} of CPU time")]
    Cpu { used: Duration },
    /// In wall time.
    #[error("it took {used:?} of wall time")]
    Wall { used: Duration },
}

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self {
            cpu: Arc::new(AtomicI64::new(thread_cpu_nanos())),
            wall: Instant::now(),
        }
    }

    /// CPU time since the start.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.cpu_nanos()).unwrap_or(0))
    }

    fn cpu_nanos(&self) -> i64 {
        thread_cpu_nanos().saturating_sub(self.cpu.load(Ordering::Relaxed))
    }

    /// Wall time since the start.
    pub(crate) fn wall(&self) -> Duration {
        self.wall.elapsed()
    }

    /// Returns the CPU time since the start.
    ///
    /// # Errors
    /// When the time is up.
    pub(crate) fn check(&self, deadline: Duration) -> Result<Duration, DeadlineExceeded> {
        let cpu_time = self.cpu();
        if cpu_time > deadline {
            return Err(DeadlineExceeded::Cpu { used: cpu_time });
        }
        let used = self.wall();
        if used > deadline.saturating_mul(WALL_FACTOR) {
            return Err(DeadlineExceeded::Wall { used });
        }
        Ok(cpu_time)
    }

    /// Stops the CPU clock, [steps aside](step_aside), and goes on with the clock of the thread on which the call is
    /// polled next.
    pub(crate) async fn step_aside(self) {
        let used = self.cpu_nanos();
        step_aside().await;
        let start = thread_cpu_nanos().saturating_sub(used);
        self.cpu.store(start, Ordering::Relaxed);
    }
}

/// Returns the CPU time of this thread, in nanoseconds.
pub(crate) fn thread_cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}
