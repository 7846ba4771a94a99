//! Long calls: remembers which calls are expected to be long, and runs them on threads of low priority.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use configurator_background::fair_queue::{FairQueue, Turn};
use configurator_background::priority::{Part, give_way, run_when_idle};
use configurator_background::rest::REST;
use configurator_core::handler::CallLimits;
use tokio::sync::oneshot;

use crate::deadline::thread_cpu_nanos;
use crate::drive::{Begun, DriveError, Fiber, drive_blocking, drive_while};
use crate::ticker::ShortTicks;

/// Stack of such a thread, in bytes. The call has a stack of its own.
const STACK: usize = 256 << 10;
/// How long a thread that runs only while a processor is idle may get less than a quarter of one.
const STARVING: Duration = Duration::from_millis(100);
/// How long processors count as busy after a thread has starved: the first time, and at most. The time doubles if threads starve again and
/// again. It is short at first, because processors are often busy for a moment. It grows, because a thread takes up to 1.5 s to notice.
const BUSY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// A thread that starves within this time after another one starves again.
const AGAIN: Duration = Duration::from_secs(20);
/// Kinds of call that are remembered because the last call lasted.
const KINDS: usize = 4096;

/// Long turns, and the kinds of call that need them.
pub struct LongCalls {
    turns: Arc<FairQueue>,
    lasted: Mutex<Lasted>,
}

#[derive(Default)]
struct Lasted {
    /// The CPU time of the last call of each kind, with its number among those that lasted.
    kinds: HashMap<Kind, (Duration, u64)>,
    /// Counts the calls that lasted.
    noted: u64,
}

/// A kind of calls that are expected to take the same time: those of one owner for the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    owner: u128,
    objects: u64,
}

impl Kind {
    /// Returns the kind of a call with these limits.
    #[must_use]
    pub const fn of(limits: &CallLimits) -> Self {
        Self {
            owner: limits.owner,
            objects: limits.objects,
        }
    }
}

impl LongCalls {
    /// Uses these turns.
    #[must_use]
    pub fn new(turns: Arc<FairQueue>) -> Self {
        Self {
            turns,
            lasted: Mutex::default(),
        }
    }

    /// Returns the long turns.
    #[must_use]
    pub fn turns(&self) -> &Arc<FairQueue> {
        &self.turns
    }

    /// Returns the CPU time of the last call of this kind, if it lasted.
    #[must_use]
    pub fn expected(&self, kind: Kind) -> Option<Duration> {
        Some(self.lasted().kinds.get(&kind)?.0)
    }

    /// Remembers the CPU time of a call that lasted, and forgets the kind of one that did not.
    pub fn note(&self, kind: Kind, lasted: Option<Duration>) {
        let mut known = self.lasted();
        let Some(time) = lasted else {
            known.kinds.remove(&kind);
            return;
        };
        if known.kinds.len() >= KINDS && !known.kinds.contains_key(&kind) {
            let oldest = known.kinds.iter().min_by_key(|(_, (_, number))| *number);
            if let Some(oldest) = oldest.map(|(kind, _)| *kind) {
                known.kinds.remove(&oldest);
            }
        }
        known.noted = known.noted.saturating_add(1);
        let number = known.noted;
        known.kinds.insert(kind, (time, number));
    }

    fn lasted(&self) -> MutexGuard<'_, Lasted> {
        self.lasted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a call to its end on a thread that runs only while a processor is idle. If that thread starves, the call continues on a thread of low
/// priority, and so do others while the processors count as [busy](BUSY).
///
/// The first thread rests at each tick, so its ticks are short.
pub(crate) async fn run<T: Send + 'static>(
    mut turn: Turn,
    mut call: Fiber<'static, T>,
    short_ticks: ShortTicks,
) -> Result<T, DriveError> {
    if !are_busy() {
        let drive = move || {
            let _short_ticks = short_ticks;
            run_when_idle();
            let mut share = ProcessorShare::measure();
            drive_while(call, || {
                std::thread::sleep(REST);
                !share.is_starved()
            })
        };
        let (returned, begun) = on_thread(turn, drive).await?;
        match begun? {
            Begun::Ended(ended) => return Ok(ended),
            Begun::Lasts(rest) => (turn, call) = (returned, rest),
        }
        let mut starved = starved();
        *starved = Some(Starved::after(*starved, Instant::now()));
    }
    let drive = move || {
        give_way(Part::Quarter);
        drive_blocking(call)
    };
    let (_turn, ended) = on_thread(turn, drive).await?;
    ended
}

/// Returns whether a thread that runs only while a processor is idle would starve.
fn are_busy() -> bool {
    starved().is_some_and(|starved| starved.at.elapsed() < starved.busy)
}

/// Returns the last time such a thread of this process starved.
fn starved() -> MutexGuard<'static, Option<Starved>> {
    static STARVED: Mutex<Option<Starved>> = Mutex::new(None);
    STARVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a thread starved, and for how long processors count as busy from then on.
#[derive(Clone, Copy)]
struct Starved {
    at: Instant,
    busy: Duration,
}

impl Starved {
    /// A thread starves at this time. Threads that starve together count as one.
    fn after(last: Option<Self>, at: Instant) -> Self {
        let [first, most] = BUSY;
        let busy = match last.map(|last| (last, at.saturating_duration_since(last.at))) {
            Some((last, ago)) if ago < last.busy => return last,
            Some((last, ago)) if ago < AGAIN => last.busy.saturating_mul(2).min(most),
            _ => first,
        };
        Self { at, busy }
    }
}

/// Runs `drive` on its own thread. The turn lasts until `drive` has returned, even if the future is dropped.
async fn on_thread<T: Send + 'static>(
    turn: Turn,
    drive: impl FnOnce() -> T + Send + 'static,
) -> Result<(Turn, T), DriveError> {
    let (reply, result) = oneshot::channel();
    Builder::new()
        .name("guest-call".into())
        .stack_size(STACK)
        .spawn(move || {
            let driven = drive();
            // The caller may have dropped the future.
            let _ = reply.send((turn, driven));
        })
        .map_err(DriveError::Thread)?;
    result.await.map_err(|_| DriveError::Closed)
}

/// The share of a processor that this thread gets.
struct ProcessorShare {
    wall: Instant,
    /// CPU time of the thread at that time, in nanoseconds.
    cpu: i64,
}

impl ProcessorShare {
    /// Starts to measure.
    fn measure() -> Self {
        Self {
            wall: Instant::now(),
            cpu: thread_cpu_nanos(),
        }
    }

    /// Returns whether the thread got less than a quarter of a processor for [`STARVING`]. Starts over after that time.
    fn is_starved(&mut self) -> bool {
        let wall = self.wall.elapsed();
        if wall < STARVING {
            return false;
        }
        let cpu = thread_cpu_nanos().saturating_sub(self.cpu);
        *self = Self::measure();
        u128::from(cpu.unsigned_abs()).saturating_mul(4) < wall.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticker::Ticker;

    const EXPECTED: Duration = Duration::from_millis(50);

    #[test]
    fn what_lasted_is_expected_to_last_until_it_does_not() {
        let calls = LongCalls::new(FairQueue::new(1));
        let kind = |objects| Kind { owner: 1, objects };
        calls.note(kind(0), Some(EXPECTED));
        assert_eq!(calls.expected(kind(0)), Some(EXPECTED));
        assert_eq!(calls.expected(kind(1)), None);
        calls.note(kind(0), None);
        assert_eq!(calls.expected(kind(0)), None);
        for objects in 0..2 * KINDS as u64 {
            calls.note(kind(objects), Some(EXPECTED));
        }
        assert_eq!(calls.lasted().kinds.len(), KINDS);
    }

    #[test]
    fn processors_count_as_busy_for_longer_if_threads_starve_again_and_again() {
        let mut starved = None;
        let mut at = Instant::now();
        let mut starve_after = |seconds| {
            at += Duration::from_secs(seconds);
            starved.insert(Starved::after(starved, at)).busy.as_millis()
        };
        let busy = [1, 1, 2, 3, 5, 9, 11, 19, 20, 0].map(&mut starve_after);
        let expected = [
            500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 500, 500,
        ];
        assert_eq!(busy, expected);
    }

    #[tokio::test]
    async fn a_call_runs_on_a_thread_of_its_own_and_returns_its_turn() {
        let calls = LongCalls::new(FairQueue::new(1));
        let turn = calls.turns().try_take(0).unwrap();
        let here = std::thread::current().id();
        let call = Box::pin(async { std::thread::current().id() });
        let ticker = Ticker::start(wasmtime::Engine::default(), EXPECTED).unwrap();
        assert_ne!(run(turn, call, ticker.shorten()).await.unwrap(), here);
        assert!(calls.turns().try_take(0).is_some());
    }
}
