//! Removes what the host keeps of objects that have gone, or that a Configurator no longer selects.
//!
//! An object that is no longer selected can be selected again, under the same uid, before its cleanup is carried out. So no cleanup
//! removes what a newer run has made: the ledger removes only the record that was meant, and a state or the cause of HTTP requests goes
//! only once the API no longer has its object, whose uid never comes back.

use std::collections::BTreeSet;
use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::request::ObjectRef;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::driver::RunContext;
use crate::declarative::DeclarativeRequests;
use crate::kubernetes_faults::fault_of;
use crate::ledger::EndedRecord;
use crate::objects;
use crate::shards::Permit;
use crate::tasks::{TaskKind, Tasks};

/// Cleanups that may be under way, and as many that may wait; more keep the worker waiting.
const MAX_CLEANUPS: usize = 64;

/// The removal of an object's records.
pub(super) struct Cleanup {
    pub(super) key: ObjectRef,
    pub(super) uid: String,
    pub(super) records: Records,
    /// Kept until the cleanup is over, so that no other host finds the object meanwhile.
    pub(super) permit: Option<Arc<Permit>>,
}

/// The records of an object that are removed.
pub(super) enum Records {
    /// All of them. The record in the ledger is given here.
    All(Option<EndedRecord>),
    /// The state and the causes of HTTP requests.
    Stored,
}

/// The cleanups of a worker, and the task that carries them out.
pub(super) struct Cleanups {
    /// A queue holds space for many entries from the start, so entries are boxed.
    queue: mpsc::Sender<Box<Cleanup>>,
    task: JoinHandle<Option<()>>,
}

impl Cleanups {
    /// Spawns the task.
    pub(super) fn begin(
        context: Arc<RunContext>,
        declarative: DeclarativeRequests,
        tasks: &Tasks,
    ) -> Self {
        let (queue, queued) = mpsc::channel(MAX_CLEANUPS);
        let cleaning = clean_up(context, declarative, queued);
        let task = tasks.spawn(TaskKind::Publisher, cleaning);
        Self { queue, task }
    }

    /// Returns the queue. While it is full, senders wait.
    pub(super) fn queue(&self) -> mpsc::Sender<Box<Cleanup>> {
        self.queue.clone()
    }

    /// Waits for the cleanups that are queued and under way.
    pub(super) async fn end(self) {
        drop(self.queue);
        // An error means that the task was dropped: what is left is found again at the next start.
        let _ = self.task.await;
    }
}

/// Carries out cleanups until the queue is closed. A cleanup that fails is found again at the next start.
async fn clean_up(
    context: Arc<RunContext>,
    declarative: DeclarativeRequests,
    mut cleanups: mpsc::Receiver<Box<Cleanup>>,
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
                    under_way.push(carry_out(&context, *cleanup).boxed());
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
        if let Err(fault) = remove_stored(context, &key, &uid, permit).await {
            tracing::warn!(object = %key, %fault, "what is stored of an object that has gone could not be removed; it is removed at the next start");
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

/// Returns the objects that have a stored state, or a stored cause of HTTP requests.
///
/// # Errors
/// When the config store cannot be read.
pub(super) async fn stored_objects(
    context: &RunContext,
) -> Result<BTreeSet<(ObjectRef, String)>, Fault> {
    let mut stored: BTreeSet<(ObjectRef, String)> = BTreeSet::new();
    if let Some(machine) = &context.machine {
        stored.extend(machine.store.books().objects().await?);
    }
    stored.extend(context.effects.objects().await?);
    Ok(stored)
}

/// Removes the state of an object and the cause of its HTTP requests, if the API no longer has the object.
async fn remove_stored(
    context: &RunContext,
    key: &ObjectRef,
    uid: &str,
    permit: Option<&Permit>,
) -> Result<(), Fault> {
    if context.machine.is_none() && !context.effects.is_used() || exists(context, key, uid).await? {
        return Ok(());
    }
    let fences = Permit::fences_of(permit);
    if let Some(machine) = &context.machine {
        machine.store.books().forget(uid, fences).await?;
    }
    context.effects.forget(uid, fences).await
}

async fn exists(context: &RunContext, key: &ObjectRef, uid: &str) -> Result<bool, Fault> {
    let api = objects::of(context.client.clone(), &context.resource, &key.namespace);
    let object = api.get_metadata_opt(&key.name).await;
    let object = object.map_err(|error| fault_of(&format!("the object {key}"), false, &error))?;
    Ok(object.is_some_and(|object| object.metadata.uid.as_deref() == Some(uid)))
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
            // Members that are left, or are being looked at, hold their owner.
            if let Some(sets) = &context.sets
                && sets.has_inventory(key, uid).await?
            {
                return Ok(());
            }
            if let Some(permit) = permit {
                permit.ready(None).await;
            }
            finalizer.release(key, uid).await
        }
        _ => Ok(()),
    }
}
