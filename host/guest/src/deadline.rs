//! How long a call may run.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Wall time is capped at this many times the deadline.
const WALL_FACTOR: u32 = 10;

/// The clocks of one call. Made and asked on the thread that runs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    cpu: Duration,
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
    /// Starts now, for this thread.
    pub(crate) fn start() -> Self {
        Self {
            cpu: thread_cpu_time(),
            wall: Instant::now(),
        }
    }

    /// CPU time of this thread since the start.
    pub(crate) fn cpu(&self) -> Duration {
        thread_cpu_time().saturating_sub(self.cpu)
    }

    /// Wall time since the start.
    pub(crate) fn wall(&self) -> Duration {
        self.wall.elapsed()
    }

    /// Whether the time is up.
    pub(crate) fn check(&self, deadline: Duration) -> Result<(), DeadlineExceeded> {
        let used = self.cpu();
        if used > deadline {
            return Err(DeadlineExceeded::Cpu { used });
        }
        let used = self.wall();
        if used > deadline.saturating_mul(WALL_FACTOR) {
            return Err(DeadlineExceeded::Wall { used });
        }
        Ok(())
    }
}

fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
