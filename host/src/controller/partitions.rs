//! Removes the partitions of deleted namespaces from the config store and the secret store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::partition::{NAMESPACES, Partition};
use configurator_core::time::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use super::namespaces::NamespaceSet;
use crate::clock::until;
use crate::host::Shared;
use crate::kubernetes_faults::fault_of;
use crate::shards::{Permit, Shards, changed};
use crate::sinks::configstore::segments_below;

/// The wait before partitions are looked for again after a removal. A request that was sent before can take effect later. After failures the wait
/// doubles each time.
const AGAIN: Duration = Duration::from_secs(15);
/// How often it doubles at most: to about an hour.
const MAX_DOUBLINGS: u32 = 8;

/// A namespace by its name and uid.
type Named = (String, String);

/// Removes partitions as namespaces are deleted. Where hosts share objects, the host that holds the shard of a namespace's uid removes them.
pub(crate) async fn run(shared: Arc<Shared>) {
    let clock = &shared.clock;
    let mut namespaces = shared.namespaces.subscribe();
    // They may have been listed before.
    namespaces.mark_changed();
    let mut changes = shared.shards.as_ref().map(|shards| shards.changes());
    let mut before: Option<Arc<NamespaceSet>> = None;
    let mut again: Option<Timestamp> = None;
    let mut failures = 0_u32;
    loop {
        let removed = tokio::select! {
            Ok(()) = namespaces.changed() => {
                let now = namespaces.borrow_and_update().clone();
                let Some(now) = now else { continue };
                match before.replace(now.clone()) {
                    None => remove_left(&shared).await,
                    Some(before) => remove_gone(&shared, &before, &now).await,
                }
            }
            // Another host was responsible for the new shards before.
            () = changed(changes.as_mut()), if before.is_some() => remove_left(&shared).await,
            () = until(clock.clone(), again), if again.is_some() => {
                again = None;
                remove_left(&shared).await
            }
        };
        match removed {
            Ok(has_removed) => {
                failures = 0;
                if has_removed {
                    again = Some(clock.now().after(AGAIN));
                }
            }
            Err(fault) => {
                let wait = AGAIN * 2_u32.pow(failures.min(MAX_DOUBLINGS));
                tracing::warn!(%fault, ?wait, "the partitions of deleted namespaces could not be removed; the host retries");
                again = Some(clock.now().after(wait));
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// Removes the partitions of namespaces that exist in `before`, but not now. Returns whether there were any.
async fn remove_gone(
    shared: &Shared,
    before: &NamespaceSet,
    now: &NamespaceSet,
) -> Result<bool, Fault> {
    let mut has_removed = false;
    for (name, known) in before {
        if now.get(name).is_none_or(|now| now.uid != known.uid) {
            has_removed |= remove(shared, &(name.clone(), known.uid.clone())).await?;
        }
    }
    Ok(has_removed)
}

/// Removes a partition, unless that is the task of another host. Returns whether it was this host's.
async fn remove(shared: &Shared, (name, uid): &Named) -> Result<bool, Fault> {
    let Ok(permit) = Shards::permit(shared.shards.as_ref(), uid) else {
        return Ok(false);
    };
    let fences = Permit::fences_of(permit.as_ref());
    let partition = Partition::of_namespace(name, uid);
    let write = Write::DeletePrefix(partition.prefix().to_owned());
    shared.config_store.write(vec![write], fences).await?;
    shared.secret_store.delete_all(partition.prefix()).await?;
    Ok(true)
}

/// Removes the partitions of all namespaces that do not exist. Returns whether there were any.
async fn remove_left(shared: &Shared) -> Result<bool, Fault> {
    let mut kept = BTreeSet::new();
    let config = shared.config_store.as_ref();
    for name in segments_below(config, NAMESPACES).await? {
        let uids = segments_below(config, &format!("{NAMESPACES}{name}/")).await?;
        kept.extend(uids.into_iter().map(|uid| (name.clone(), uid)));
    }
    for name in shared.secret_store.folders(NAMESPACES).await? {
        let uids = shared
            .secret_store
            .folders(&format!("{NAMESPACES}{name}/"))
            .await?;
        kept.extend(uids.into_iter().map(|uid| (name.clone(), uid)));
    }
    if kept.is_empty() {
        return Ok(false);
    }
    // They are listed after the partitions: a namespace may have been created meanwhile.
    let namespaces: Api<Namespace> = Api::all(shared.client.clone());
    let listed = namespaces.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(|error| fault_of("the Namespaces", false, &error))?;
    for namespace in listed {
        kept.remove(&(namespace.name_any(), namespace.uid().unwrap_or_default()));
    }
    let mut has_removed = false;
    for named in &kept {
        has_removed |= remove(shared, named).await?;
    }
    Ok(has_removed)
}
