//! Removes what the host keeps of objects that have gone.

use std::sync::Arc;

use configurator_core::request::ObjectRef;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::driver::RunContext;
use crate::declarative::DeclarativeRequests;
use crate::shards::Permit;

/// Cleanups that may be under way, and as many that may wait; more keep the worker waiting.
const MAX_CLEANUPS: usize = 64;

/// An object that has gone, or that the Configurator no longer selects.
pub(super) struct Departed {
    pub(super) key: ObjectRef,
    pub(super) uid: String,
    /// Kept until its records are removed, so that no other host finds the object in them.
    pub(super) permit: Option<Arc<Permit>>,
}

/// The cleanup queue of a worker.
pub(super) fn queue() -> (mpsc::Sender<Departed>, mpsc::Receiver<Departed>) {
    mpsc::channel(MAX_CLEANUPS)
}

/// Works until nobody can send any more. What fails is found again at the next start.
pub(super) async fn clean_up(
    context: Arc<RunContext>,
    declarative: DeclarativeRequests,
    mut departures: mpsc::Receiver<Departed>,
) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
            departed = departures.recv(), if under_way.len() < MAX_CLEANUPS => match departed {
                Some(departed) => {
                    declarative.cancel(&departed.uid);
                    under_way.push(remove_records(&context, departed).boxed());
                }
                None => break,
            },
        }
    }
    while under_way.next().await.is_some() {}
}

async fn remove_records(context: &RunContext, departed: Departed) {
    let Departed {
        key,
        uid,
        permit: _permit,
    } = departed;
    if let Some(machine) = &context.machine
        && let Err(fault) = machine.store.books().forget(&uid).await
    {
        tracing::warn!(object = %key, %fault, "the state of an object that has gone could not be removed");
    }
    let removed = match (&context.ledger, &context.finalizer) {
        (Some(ledger), _) => ledger.forget(&uid).await,
        (None, Some(finalizer)) => finalizer.release(&key, &uid).await,
        (None, None) => Ok(()),
    };
    if let Err(fault) = removed {
        tracing::warn!(object = %key, %fault, "a deletion could not be recorded; it is dealt with again at the next start");
    }
}
