//! Removes the partitions of namespaces that are gone from the config store and the secret store.

use std::collections::BTreeSet;
use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::partition::{NAMESPACES, Partition};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, metadata_watcher};

use crate::cluster::WatchBackoff;
use crate::host::Shared;
use crate::kubernetes_faults::fault_of;
use crate::objects;
use crate::shards::{Permit, Shards, changed};
use crate::sinks::configstore::segments_below;
use crate::tasks::Tasks;

/// A namespace by its name and uid.
type Named = (String, String);

/// Works until the host drains. Where hosts share objects, the one that has the shard of a namespace's uid removes its partitions.
pub(crate) async fn run(shared: Arc<Shared>, tasks: Tasks) {
    let drain = tasks.drain_token().clone();
    let working = async {
        let api: Api<Namespace> = Api::all(shared.client.clone());
        let mut events = metadata_watcher(api, watcher::Config::default())
            .backoff(WatchBackoff::new(shared.seed))
            .boxed();
        let mut changes = shared.shards.as_ref().map(|shards| shards.changes());
        let mut is_listed = false;
        loop {
            let removed = tokio::select! {
                Some(event) = events.next() => match event {
                    Ok(Event::InitDone) => {
                        is_listed = true;
                        remove_left(&shared).await
                    }
                    Ok(Event::Delete(gone)) => {
                        let uid = gone.uid().unwrap_or_default();
                        remove(&shared, &(gone.name_any(), uid)).await
                    }
                    Ok(Event::Init | Event::InitApply(_) | Event::Apply(_)) => Ok(()),
                    Err(error) => {
                        let error = objects::explained(&error);
                        tracing::warn!(error, "the Namespaces cannot be watched; the host retries");
                        Ok(())
                    }
                },
                // Before, another host had to remove what is this one's now.
                () = changed(changes.as_mut()), if is_listed => remove_left(&shared).await,
            };
            if let Err(fault) = removed {
                tracing::warn!(%fault, "the partitions of a deleted namespace could not be removed; the host retries when it starts");
            }
        }
    };
    tokio::select! {
        () = drain.cancelled() => {}
        () = working => {}
    }
}

async fn remove(shared: &Shared, (name, uid): &Named) -> Result<(), Fault> {
    let Ok(permit) = Shards::permit(shared.shards.as_ref(), uid) else {
        return Ok(());
    };
    let fences = Permit::fences_of(permit.as_ref());
    let partition = Partition::of_namespace(name, uid);
    let write = Write::DeletePrefix(partition.prefix().to_owned());
    shared.config_store.write(vec![write], fences).await?;
    shared.secret_store.delete_all(partition.prefix()).await
}

/// Removes the partitions of all namespaces that do not exist.
async fn remove_left(shared: &Shared) -> Result<(), Fault> {
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
        return Ok(());
    }
    // They are listed after the partitions: a namespace may have been created meanwhile.
    let namespaces: Api<Namespace> = Api::all(shared.client.clone());
    let listed = namespaces.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(|error| fault_of("the Namespaces", false, &error))?;
    for namespace in listed {
        kept.remove(&(namespace.name_any(), namespace.uid().unwrap_or_default()));
    }
    for named in &kept {
        remove(shared, named).await?;
    }
    Ok(())
}
