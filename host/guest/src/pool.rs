//! The threads that run guests.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A fixed number of threads with a bounded queue. The threads end when it is dropped.
pub(crate) struct Pool {
    queue: Arc<Queue>,
    admission: Arc<Semaphore>,
}

/// Why a job gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// The pool is being dropped.
    #[error("the host is shutting down")]
    Closed,
    /// The job panicked; its thread lives on.
    #[error("a guest thread panicked: {0}")]
    Panicked(String),
}

type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    state: Mutex<QueueState>,
    filled: Condvar,
}

struct QueueState {
    jobs: VecDeque<(OwnedSemaphorePermit, Job)>,
    closed: bool,
}

impl Pool {
    /// Starts the threads. `queue` jobs may wait for one; a further caller awaits its admission.
    pub(crate) fn start(threads: usize, queue: usize, stack: usize) -> std::io::Result<Self> {
        let pool = Self {
            queue: Arc::new(Queue {
                state: Mutex::new(QueueState {
                    jobs: VecDeque::new(),
                    closed: false,
                }),
                filled: Condvar::new(),
            }),
            admission: Arc::new(Semaphore::new(queue.clamp(1, Semaphore::MAX_PERMITS))),
        };
        for number in 0..threads {
            let queue = Arc::clone(&pool.queue);
            Builder::new()
                .name(format!("guest-{number}"))
                .stack_size(stack)
                .spawn(move || queue.work())?;
        }
        Ok(pool)
    }

    /// Runs a job on one of the threads. If the future is dropped before a thread takes the job, it is not run.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let admission = Arc::clone(&self.admission);
        let permit = admission
            .acquire_owned()
            .await
            .map_err(|_| PoolError::Closed)?;
        let (reply, result) = oneshot::channel();
        let job = Box::new(move || {
            if reply.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(job))
                .map_err(|panic| PoolError::Panicked(panic_text(&*panic)));
            let _ = reply.send(result);
        });
        self.queue.push(permit, job);
        result.await.map_err(|_| PoolError::Closed)?
    }
}

impl Queue {
    fn push(&self, permit: OwnedSemaphorePermit, job: Job) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back((permit, job));
        drop(state);
        self.filled.notify_one();
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // The job catches panics itself; this is for those of its captured values' destructors.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    fn next(&self) -> Option<Job> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .filled
            .wait_while(state, |state| state.jobs.is_empty() && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return None;
        }
        state.jobs.pop_front().map(|(_permit, job)| job)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self
            .queue
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.closed = true;
        state.jobs.clear();
        drop(state);
        self.queue.filled.notify_all();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".into()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn run<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_panic_is_reported_and_the_thread_lives_on() {
        let pool = Pool::start(1, 1, 1 << 20).unwrap();
        let error = run(pool.run(|| panic!("oh no"))).unwrap_err();
        assert_eq!(error.to_string(), "a guest thread panicked: oh no");
        assert_eq!(run(pool.run(|| 7)).unwrap(), 7);
    }

    #[test]
    fn a_job_whose_caller_has_gone_is_not_run() {
        let pool = Pool::start(1, 2, 1 << 20).unwrap();
        let gate = Arc::new(Barrier::new(2));
        let ran = Arc::new(AtomicUsize::new(0));
        let of_blocker = Arc::clone(&gate);
        let mut blocker = Box::pin(pool.run(move || {
            of_blocker.wait();
        }));
        assert!(poll_once(blocker.as_mut()).is_pending());
        let count = Arc::clone(&ran);
        let mut dropped = Box::pin(pool.run(move || count.fetch_add(1, Ordering::SeqCst)));
        assert!(poll_once(dropped.as_mut()).is_pending());
        drop(dropped);
        gate.wait();
        run(blocker).unwrap();
        run(pool.run(|| ())).unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn callers_past_the_queue_wait_for_admission() {
        let pool = Pool::start(1, 1, 1 << 20).unwrap();
        let gate = Arc::new(Barrier::new(2));
        let started = Arc::new(Barrier::new(2));
        let (of_blocker, of_start) = (Arc::clone(&gate), Arc::clone(&started));
        let mut blocker = Box::pin(pool.run(move || {
            of_start.wait();
            of_blocker.wait();
        }));
        assert!(poll_once(blocker.as_mut()).is_pending());
        started.wait();
        let mut queued = Box::pin(pool.run(|| 1));
        assert!(poll_once(queued.as_mut()).is_pending());
        let mut waiting = Box::pin(pool.run(|| 2));
        assert!(poll_once(waiting.as_mut()).is_pending());
        assert_eq!(pool.queue.state.lock().unwrap().jobs.len(), 1);
        gate.wait();
        assert_eq!(run(queued).unwrap(), 1);
        assert_eq!(run(waiting).unwrap(), 2);
        run(blocker).unwrap();
    }
}
