//! Makes running guests look at their deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// Ticks without a running call after which the thread sleeps until the next one. Waking it costs a call some
/// microseconds, so it does not sleep between calls that follow each other closely. Each tick costs as much.
const IDLE_TICKS: u32 = 3;

/// The time between ticks while a call [rests](crate::long_calls) at each of them.
const SHORT_TICK: Duration = Duration::from_millis(1);

/// Increments the engine's epoch while calls run. Its thread ends with it.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

struct Shared {
    running: AtomicUsize,
    /// Calls that want short ticks.
    resting: AtomicUsize,
    asleep: AtomicBool,
    ended: AtomicBool,
}

/// While this lives, a call is running.
pub(crate) struct Running<'a>(&'a Shared);

/// While this lives, ticks are short.
pub(crate) struct ShortTicks(Arc<Shared>);

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: Engine, tick: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            running: AtomicUsize::new(0),
            resting: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("guest-ticker".into())
            .stack_size(128 << 10)
            .spawn(move || of_thread.run(&engine, tick))?
            .thread()
            .clone();
        Ok(Self { shared, thread })
    }

    /// A call begins.
    pub(crate) fn running(&self) -> Running<'_> {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        // Either this sees that the thread sleeps, or the thread sees this call before it does.
        if self.shared.asleep.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(&self.shared)
    }

    /// Shortens the ticks. The one that has begun is not shortened.
    pub(crate) fn shorten(&self) -> ShortTicks {
        self.shared.resting.fetch_add(1, Ordering::Relaxed);
        ShortTicks(Arc::clone(&self.shared))
    }
}

impl Shared {
    fn run(&self, engine: &Engine, tick: Duration) {
        let mut idle = 0;
        while !self.ended.load(Ordering::SeqCst) {
            if self.running.load(Ordering::SeqCst) > 0 {
                idle = 0;
            } else {
                idle += 1;
            }
            if idle > IDLE_TICKS {
                self.asleep.store(true, Ordering::SeqCst);
                while self.asleep.load(Ordering::SeqCst)
                    && self.running.load(Ordering::SeqCst) == 0
                    && !self.ended.load(Ordering::SeqCst)
                {
                    std::thread::park();
                }
                self.asleep.store(false, Ordering::SeqCst);
                idle = 0;
            }
            std::thread::park_timeout(match self.resting.load(Ordering::Relaxed) {
                0 => tick,
                _ => tick.min(SHORT_TICK),
            });
            engine.increment_epoch();
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for ShortTicks {
    fn drop(&mut self) {
        self.0.resting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}
