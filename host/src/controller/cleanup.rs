//! Removes what the host keeps of objects that have gone, or that a Configurator no longer selects.
//!
//! An object that is no longer selected can be selected again, under the same uid, before its cleanup is carried out. So no cleanup
//! removes what a newer run has made: the ledger removes only the record that was meant, and a state goes only once the API no longer
//! has its object, whose uid never comes back.

use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::request::ObjectRef;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::driver::RunContext;
use crate::declarative::DeclarativeRequests;
use crate::ledger::EndedRecord;
use crate::shards::Permit;

/// Cleanups that may be under way, and as many that may wait; more keep the worker waiting.
const MAX_CLEANUPS: usize = 64;

/// What is to be removed of an object.
pub(super) struct Cleanup {
    pub(super) key: ObjectRef,
    pub(super) uid: String,
    pub(super) records: Records,
    /// Kept until the cleanup is over, so that no other host finds the object meanwhile.
    pub(super) permit: Option<Arc<Permit>>,
}

/// Which records of an object are removed.
pub(super) enum Records {
    /// All, with this one of the ledger.
    All(Option<EndedRecord>),
    /// Those of its state.
    State,
}

/// The cleanup queue of a worker.
pub(super) fn queue() -> (mpsc::Sender<Cleanup>, mpsc::Receiver<Cleanup>) {
    mpsc::channel(MAX_CLEANUPS)
}

/// Works until nobody can send any more. What fails is found again at the next start.
pub(super) async fn clean_up(
    context: Arc<RunContext>,
    declarative: DeclarativeRequests,
    mut cleanups: mpsc::Receiver<Cleanup>,
) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
            cleanup = cleanups.recv(), if under_way.len() < MAX_CLEANUPS => match cleanup {
                Some(cleanup) => {
                    if let Records::All(_) = cleanup.records {
                        declarative.cancel(&cleanup.uid);
                    }
                    under_way.push(carry_out(&context, cleanup).boxed());
                }
                None => break,
            },
        }
    }
    while under_way.next().await.is_some() {}
}

async fn carry_out(context: &RunContext, cleanup: Cleanup) {
    let Cleanup {
        key,
        uid,
        records,
        permit,
    } = cleanup;
    let permit = permit.as_deref();
    let removing = async {
        if let Err(fault) = remove_state(context, &key, &uid, permit).await {
            tracing::warn!(object = %key, %fault, "the state of an object that has gone could not be removed; it is at the next start");
        }
        if let Records::All(recorded) = records
            && let Err(fault) = remove_record(context, &key, &uid, recorded, permit).await
        {
            tracing::warn!(object = %key, %fault, "a deletion could not be recorded; it is dealt with again at the next start");
        }
    };
    let lost = async {
        match permit {
            Some(permit) => permit.lost().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        // The next host of the shard finds what is left.
        () = lost => {}
        () = removing => {}
    }
}

/// Removes the state of an object, if the API no longer has the object.
async fn remove_state(
    context: &RunContext,
    key: &ObjectRef,
    uid: &str,
    permit: Option<&Permit>,
) -> Result<(), Fault> {
    let Some(machine) = &context.machine else {
        return Ok(());
    };
    match machine.store.object(key, uid).await? {
        Some(_) => Ok(()),
        None => {
            let fences = Permit::fences_of(permit);
            machine.store.books().forget(uid, fences).await
        }
    }
}

async fn remove_record(
    context: &RunContext,
    key: &ObjectRef,
    uid: &str,
    recorded: Option<EndedRecord>,
    permit: Option<&Permit>,
) -> Result<(), Fault> {
    match (&context.ledger, recorded, &context.finalizer) {
        (Some(ledger), Some(recorded), _) => {
            ledger.remove(recorded, Permit::fences_of(permit)).await
        }
        (None, _, Some(finalizer)) => {
            if let Some(permit) = permit {
                permit.ready(None).await;
            }
            finalizer.release(key, uid).await
        }
        _ => Ok(()),
    }
}
