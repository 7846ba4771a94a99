//! Removes what the host keeps for Configurators that are gone.
//!
//! The ledger and the causes of HTTP requests belong to the uid of a Configurator and are removed with it. The books of states belong to
//! its name and outlive it, as the states in objects do: a Configurator that is created again goes on with its machines, and still
//! refuses states that are older than those it knew. If it is not created again in time, the books are removed, and every state that they
//! knew is refused from then on.

use std::collections::BTreeSet;
use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::request::ObjectRef;
use kube::ResourceExt as _;
use kube::api::{ApiResource, ListParams};

use super::state_books::StateBooks;
use crate::host::Shared;
use crate::idempotency::Effects;
use crate::kubernetes_faults::fault_of;
use crate::ledger::Ledger;
use crate::objects;
use crate::resource::{ClusterConfigurator, Configurator, segment_of};
use crate::shards::{Permit, Shards};

/// The owners of books and the uids of Configurators.
#[derive(Default)]
struct Names {
    owners: BTreeSet<String>,
    uids: BTreeSet<String>,
}

/// Removes the ledger of the Configurator that had this uid, and the causes of its HTTP requests. Where hosts share objects, the one that
/// has the shard of the uid does.
///
/// # Errors
/// When the config store cannot be written.
pub(super) async fn remove_records(shared: &Shared, uid: &str) -> Result<(), Fault> {
    let Ok(permit) = Shards::permit(shared.shards.as_ref(), uid) else {
        return Ok(());
    };
    let fences = Permit::fences_of(permit.as_ref());
    let ledger = Ledger::new(shared.config_store.clone(), uid);
    ledger.close(fences).await?;
    Effects::close(shared.config_store.as_ref(), uid, fences).await
}

/// Notes that this Configurator is gone, and removes its books of states once they have been kept long enough.
///
/// # Errors
/// When the config store cannot be written.
pub(super) async fn retire_books(shared: &Shared, key: &ObjectRef) -> Result<(), Fault> {
    retire(shared, &segment_of(key)).await
}

async fn retire(shared: &Shared, owner: &str) -> Result<(), Fault> {
    let Ok(permit) = Shards::permit(shared.shards.as_ref(), owner) else {
        return Ok(());
    };
    let fences = Permit::fences_of(permit.as_ref());
    let books = StateBooks::of_owner(shared.config_store.clone(), owner);
    let now = shared.clock.now();
    books.retire(now, fences).await?;
    match shared.state_retention.is_zero() {
        true => books.close(now, fences).await,
        false => Ok(()),
    }
}

/// Removes the records of deleted Configurators. With `is_thorough`, also of those that were deleted while no host was running; every
/// record is read for that.
pub(super) async fn sweep(shared: Arc<Shared>, is_thorough: bool) {
    let sweeping = async {
        let store = shared.config_store.as_ref();
        let mut kept = Names::default();
        if is_thorough {
            kept.uids.extend(Ledger::owners(store).await?);
            kept.uids.extend(Effects::owners(store).await?);
            kept.owners = StateBooks::owners(store).await?;
        }
        let retired = StateBooks::retired(store).await?;
        kept.owners.extend(retired.keys().cloned());
        let claims = shared.claims.as_ref().filter(|_| is_thorough);
        let claimed = match claims {
            Some(claims) => {
                let listed = claims.list().await;
                listed.map_err(|error| fault_of("the Leases", false, &error))?
            }
            None => Vec::new(),
        };
        if kept.owners.is_empty() && kept.uids.is_empty() && claimed.is_empty() {
            return Ok(());
        }
        // They are listed after the books and the claims: another host may have begun some meanwhile.
        let there = configurators(&shared).await?;
        if let Some(claims) = claims {
            let swept = claims.remove_others(claimed, &there.uids).await;
            swept.map_err(|error| fault_of("the Leases", false, &error))?;
        }
        for uid in kept.uids.difference(&there.uids) {
            remove_records(&shared, uid).await?;
        }
        for owner in &kept.owners {
            let Ok(permit) = Shards::permit(shared.shards.as_ref(), owner) else {
                continue;
            };
            let fences = Permit::fences_of(permit.as_ref());
            let books = StateBooks::of_owner(shared.config_store.clone(), owner);
            match (there.owners.contains(owner), retired.get(owner)) {
                (true, None) => {}
                (true, Some(_)) => books.resume(fences).await?,
                (false, None) => retire(&shared, owner).await?,
                (false, Some(since)) => {
                    if shared.clock.now() >= since.after(shared.state_retention) {
                        books.close(*since, fences).await?;
                    }
                }
            }
        }
        Ok::<(), Fault>(())
    };
    if let Err(fault) = sweeping.await {
        tracing::warn!(%fault, "what is left of Configurators that are gone could not be removed; it is at the next start");
    }
}

async fn configurators(shared: &Shared) -> Result<Names, Fault> {
    let mut there = Names::default();
    for kind in [
        ApiResource::erase::<ClusterConfigurator>(&()),
        ApiResource::erase::<Configurator>(&()),
    ] {
        let all = objects::of(shared.client.clone(), &kind, "");
        let listed = all.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(|error| fault_of("the Configurators", false, &error))?;
        for configurator in listed {
            there.uids.extend(configurator.uid());
            let key = objects::key_of(&configurator);
            there.owners.insert(segment_of(&key));
        }
    }
    Ok(there)
}
