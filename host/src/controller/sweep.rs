//! Removes what the host keeps for Configurators that are gone.

use std::sync::Arc;

use configurator_core::fault::Fault;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use super::state_books::StateBooks;
use crate::host::Shared;
use crate::ledger::Ledger;
use crate::resource::Configurator;
use crate::shards::{Permit, Shards};

/// Removes the books of the Configurator that had this uid. Where hosts share objects, the one that has the shard of the uid does.
///
/// # Errors
/// When the config store cannot be written.
pub(super) async fn remove_books(shared: &Shared, uid: &str) -> Result<(), Fault> {
    let Ok(permit) = Shards::permit(shared.shards.as_ref(), uid) else {
        return Ok(());
    };
    let fences = Permit::fences_of(permit.as_ref());
    let store = &shared.config_store;
    Ledger::new(store.clone(), uid).close(fences).await?;
    StateBooks::new(store.clone(), uid).close(fences).await
}

/// Removes the books of Configurators that went while no host was there to do so. They are listed after the books were: another
/// host may have begun one meanwhile.
pub(super) async fn sweep(shared: Arc<Shared>) {
    let store = shared.config_store.as_ref();
    let sweeping = async {
        let said = |fault: Fault| fault.to_string();
        let recorded = Ledger::recorded_for(store).await.map_err(said)?;
        let mut kept = StateBooks::owners(store).await.map_err(said)?;
        kept.extend(recorded);
        if kept.is_empty() {
            return Ok(());
        }
        let all: Api<Configurator> = Api::all(shared.client.clone());
        let there = all
            .list_metadata(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        for configurator in there {
            kept.remove(&configurator.uid().unwrap_or_default());
        }
        for uid in kept {
            remove_books(&shared, &uid).await.map_err(said)?;
        }
        Ok::<(), String>(())
    };
    if let Err(error) = sweeping.await {
        tracing::warn!(
            error,
            "stale ledgers and states could not be removed; they are at the next start"
        );
    }
}
