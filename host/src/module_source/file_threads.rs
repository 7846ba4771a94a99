//! The threads on which modules are read and written.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// How many files are waited for at a time.
const THREADS: usize = 4;

/// Runs work that waits for files, on few threads at a time.
///
/// A host looks at the files of all its Configurators again and again. With a thread for each, these would hold more memory than everything else.
/// Clones share the threads.
#[derive(Debug, Clone)]
pub(super) struct FileThreads(Arc<Semaphore>);

impl Default for FileThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(THREADS)))
    }
}

impl FileThreads {
    /// Does the work in its turn.
    ///
    /// # Errors
    /// When it panics, or the runtime ends.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // It is never closed.
        let turn = self.0.clone().acquire_owned().await;
        // The turn lasts as long as the work, even where nobody waits for it any more.
        let work = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt as _;
    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn no_more_run_than_there_are_threads_even_if_nobody_waits_for_them() {
        let threads = FileThreads::default();
        let (begun, began) = mpsc::channel();
        let (go_on, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let works = (0..=THREADS).map(|number| {
            let (begun, held) = (begun.clone(), held.clone());
            threads.run(move || {
                begun.send(number).unwrap();
                held.lock().unwrap().recv().unwrap();
            })
        });
        let mut works = Box::pin(join_all(works));
        assert!((&mut works).now_or_never().is_none());
        for _ in 0..THREADS {
            began.recv().unwrap();
        }
        drop(works);
        let next = threads.run(|| ());
        tokio::pin!(next);
        assert!((&mut next).now_or_never().is_none());
        for _ in 0..THREADS {
            go_on.send(()).unwrap();
        }
        next.await.unwrap();
    }
}
