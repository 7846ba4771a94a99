//! Runs CPU-bound work on threads of low priority.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use rayon_core::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use tokio::sync::oneshot;

use crate::fair_queue::FairQueue;
use crate::owners::Owner;
use crate::priority::{Part, give_way};
use crate::rest;

/// Size in bytes from which a document is processed in the background. Parsing such a document takes several times as long as handing it to
/// another thread.
pub const LARGE: usize = 256 << 10;

/// Runs CPU-bound work, a limited number of jobs at a time. Cloning is cheap, and clones share the limit.
#[derive(Clone)]
pub struct Background {
    turns: Arc<FairQueue>,
    threads: Arc<Threads>,
    /// Whether work runs on the thread that awaits it.
    is_inline: bool,
}

/// Threads that start with the first job and stay. A new thread for each job would get memory that is not in use yet, and the kernel would have
/// to clear all of it.
struct Threads {
    /// One for each job at a time.
    count: u32,
    pool: OnceLock<ThreadPool>,
}

impl Threads {
    fn pool(&self) -> Result<&ThreadPool, ThreadPoolBuildError> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(usize::try_from(self.count).unwrap_or(1))
            .thread_name(|_| "background".to_owned())
            .start_handler(|_| give_way(Part::Tenth))
            // The job's caller is told. Without a handler, a panic would end the process.
            .panic_handler(|_| {})
            .build()?;
        // Another thread may have been quicker.
        Ok(self.pool.get_or_init(|| pool))
    }
}

/// Why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum BackgroundError {
    /// The system could not start the threads.
    #[error("no thread can be started: {0}")]
    Thread(#[from] ThreadPoolBuildError),
    /// The job panicked.
    #[error("a job in the background panicked")]
    Panicked,
}

impl Background {
    /// Creates a background that runs at most this many jobs at a time.
    #[must_use]
    pub fn new(parallel: u32) -> Self {
        Self {
            turns: FairQueue::new(parallel),
            threads: Arc::new(Threads {
                count: parallel.max(1),
                pool: OnceLock::new(),
            }),
            is_inline: false,
        }
    }

    /// Creates a background that runs each job on the thread that awaits it. Simulations need this: virtual time must not advance during a
    /// job, and the order of jobs must be reproducible.
    #[must_use]
    pub fn inline() -> Self {
        Self {
            is_inline: true,
            ..Self::new(1)
        }
    }

    /// Returns how many jobs wait for a turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.turns.waiting()
    }

    /// Processes a document of this size: in the background if it is [large](LARGE), otherwise at once.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_for<T: Send + 'static>(
        &self,
        size: usize,
        owner: impl Into<Owner>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BackgroundError> {
        match size < LARGE {
            true => Ok(work()),
            false => self.run(owner, work).await,
        }
    }

    /// Runs a job on a thread of low priority, when its owner gets a turn. Owners alternate. A job that has started runs to its end
    /// even if the future is dropped.
    ///
    /// # Errors
    /// If no thread can be started, or the job panics.
    pub async fn run<T: Send + 'static>(
        &self,
        owner: impl Into<Owner>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BackgroundError> {
        if self.is_inline {
            return Ok(work());
        }
        let turn = self.turns.take(owner, Duration::ZERO).await;
        let (reply, result) = oneshot::channel();
        self.threads.pool()?.spawn(move || {
            rest::begin();
            let done = work();
            drop(turn);
            // The caller may have dropped the future.
            let _ = reply.send(done);
        });
        result.await.map_err(|_| BackgroundError::Panicked)
    }
}

impl Default for Background {
    /// Returns the background of the process, always the same. It runs [a job less](spare_processors) than there are processors, so that a
    /// processor is left to other work.
    fn default() -> Self {
        static SHARED: LazyLock<Background> = LazyLock::new(|| Background::new(spare_processors()));
        SHARED.clone()
    }
}

/// Returns one less than the processors that the process may use, and at least 1.
#[must_use]
pub fn spare_processors() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let processors = u32::try_from(processors).unwrap_or(u32::MAX);
    processors.saturating_sub(1).max(1)
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background")
            .field("is_inline", &self.is_inline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn work_is_done_on_another_thread_when_there_is_a_turn() {
        let background = Background::new(1);
        let here = std::thread::current().id();
        let there = background.run(0, || std::thread::current().id()).await;
        assert_ne!(there.unwrap(), here);
        let held = background.turns.take(0, Duration::ZERO).await;
        let mut waiting = Box::pin(background.run(1, || 1));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert_eq!(waiting.await.unwrap(), 1);
    }

    /// On two processors, two parts of the process with a background each would leave no processor to other work.
    #[tokio::test]
    async fn the_default_is_one_for_the_whole_process() {
        let turns = spare_processors();
        let held: Vec<_> = (0..turns)
            .map(|_| Background::default().turns.try_take(0).unwrap())
            .collect();
        assert!(Background::default().turns.try_take(0).is_none());
        drop(held);
    }

    #[tokio::test]
    async fn small_work_is_done_where_it_is_awaited() {
        let here = std::thread::current().id();
        for (background, size, is_here) in [
            (Background::new(1), LARGE - 1, true),
            (Background::new(1), LARGE, false),
            (Background::inline(), LARGE, true),
        ] {
            let done = background.run_for(size, 0, || std::thread::current().id());
            assert_eq!(done.await.unwrap() == here, is_here);
        }
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_returns_its_turn() {
        let background = Background::new(1);
        let work = || -> u32 { panic!("oh no") };
        let error = background.run(0, work).await.unwrap_err();
        assert!(matches!(error, BackgroundError::Panicked), "{error}");
        assert_eq!(background.run(0, || 1).await.unwrap(), 1);
    }
}
