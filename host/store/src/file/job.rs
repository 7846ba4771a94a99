//! A transaction on its way through the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::error::panic_message;
use crate::transaction::Changes;
use crate::{Read, StoreError, Transaction, WriteError};

/// A transaction on its way through the writer.
pub(super) trait Job: Send {
    /// Runs the transaction's code. Empty changes: it wrote nothing or was refused.
    fn run(&mut self, base: &dyn Read, revision: u64) -> Changes;

    /// Tells the caller, unless it knows by now, how it ended. Runs the callback if it was written.
    fn finish(self: Box<Self>, ended: Result<(), StoreError>);

    /// Tells the caller that the end is unknown. It is still to be finished.
    fn leave_open(&mut self, error: StoreError);
}

pub(super) struct Call<T, E, F, G> {
    change: Option<F>,
    then: G,
    result: Option<Result<T, WriteError<E>>>,
    answer: Option<oneshot::Sender<Result<T, WriteError<E>>>>,
}

impl<T, E, F, G> Call<T, E, F, G> {
    pub(super) fn new(change: F, then: G) -> (Self, oneshot::Receiver<Result<T, WriteError<E>>>) {
        let (answer, receiver) = oneshot::channel();
        (
            Self {
                change: Some(change),
                then,
                result: None,
                answer: Some(answer),
            },
            receiver,
        )
    }
}

impl<T, E, F, G> Job for Call<T, E, F, G>
where
    T: Send,
    E: Send,
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send,
    G: FnOnce(&T) + Send,
{
    fn run(&mut self, base: &dyn Read, revision: u64) -> Changes {
        let Some(change) = self.change.take() else {
            return Changes::new();
        };
        let mut transaction = Transaction::new(base, revision);
        // One caller's panic must not take the others of its group along.
        match catch_unwind(AssertUnwindSafe(|| change(&mut transaction))) {
            Ok(Ok(value)) => {
                self.result = Some(Ok(value));
                transaction.into_changes()
            }
            Ok(Err(refusal)) => {
                self.result = Some(Err(WriteError::Refused(refusal)));
                Changes::new()
            }
            Err(payload) => {
                self.result = Some(Err(WriteError::Store(StoreError::Panicked {
                    cause: panic_message(&*payload),
                })));
                Changes::new()
            }
        }
    }

    fn finish(mut self: Box<Self>, ended: Result<(), StoreError>) {
        let result = match (self.result, ended) {
            // A refusal falls too: it may rest on what an earlier transaction of the group wrote.
            (_, Err(error)) => Err(WriteError::Store(error)),
            (Some(Ok(value)), Ok(())) => {
                (self.then)(&value);
                Ok(value)
            }
            (Some(Err(refusal)), Ok(())) => Err(refusal),
            (None, Ok(())) => Err(WriteError::Store(StoreError::Closed)),
        };
        if let Some(answer) = self.answer.take() {
            // The caller may have gone.
            let _ = answer.send(result);
        }
    }

    fn leave_open(&mut self, error: StoreError) {
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(Err(WriteError::Store(error)));
        }
    }
}

/// Finishes all transactions of a group, in order.
pub(super) fn finish_all(group: Vec<Box<dyn Job>>, ended: &Result<(), StoreError>) {
    for job in group {
        // A callback that panics harms only its own caller.
        let _ = catch_unwind(AssertUnwindSafe(|| job.finish(ended.clone())));
    }
}
