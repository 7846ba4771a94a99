//! The one place where tasks are spawned. Each has a kind, which says what becomes of it when the host stops.

use std::future::Future;

use futures::future::{self, Either, Pending};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Watches objects and drives their runs. Sees the token itself and ends when its runs have.
    Worker,
    /// Watches something for all Configurators of the host. Dropped with the first stage.
    Watch,
    /// One run. Left to finish; ended with the second stage.
    Run,
    /// Sends declarative requests. Sees the token itself.
    Declarative,
    /// Publishes Events and statuses. Ends when nobody is left who could send.
    Publisher,
    /// Keeps a login at a server alive. Ends with whoever uses it.
    Session,
    /// Shares the objects with other hosts. Sees the token itself, and gives back what this host has.
    Election,
}

/// Tasks of one host, and the two stages of its end.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Tasks {
    /// Spawns a task. It is dropped at its next await when the second stage begins.
    pub fn spawn<F>(&self, kind: TaskKind, future: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let abort = self.abort.clone();
        tracing::trace!(?kind, "task");
        // The futures around it would each hold a copy of a large future. A box is moved instead.
        let future = Box::pin(future);
        self.tracker
            .spawn(async move { abort.run_until_cancelled(future).await })
    }

    /// Spawns a task that is dropped at its next await when the first stage begins.
    pub fn spawn_until_drained<F>(&self, kind: TaskKind, future: F) -> JoinHandle<Option<()>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let drain = self.drain.clone();
        self.spawn(kind, async move {
            drain.run_until_cancelled_owned(future).await;
        })
    }

    /// Cancelled when the first stage begins: nothing new starts.
    #[must_use]
    pub fn drain_token(&self) -> &CancellationToken {
        &self.drain
    }

    /// The first stage: nothing new starts, what runs may finish.
    pub fn drain(&self) {
        self.drain.cancel();
        self.tracker.close();
    }

    /// The second stage: what runs is dropped at its next await.
    pub fn abort(&self) {
        self.drain();
        self.abort.cancel();
    }

    /// Returns when every task has ended. Call [`drain`](Self::drain) first.
    pub async fn wait(&self) {
        self.tracker.wait().await;
    }
}

/// Awaits the future; never returns without one.
pub(crate) fn if_some<F: Future>(future: Option<F>) -> Either<F, Pending<F::Output>> {
    match future {
        Some(future) => Either::Left(future),
        None => Either::Right(future::pending()),
    }
}
