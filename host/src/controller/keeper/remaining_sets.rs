//! The sets that a Configurator still has.

use configurator_core::desired::marks::CONFIGURATOR;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};

use super::release::is_held;
use crate::controller::status::Refusal;
use crate::host::Shared;
use crate::objects;
use crate::resource;
use crate::resource::object_set::ObjectSet;

/// Returns one of the sets of a Configurator. `None`: it has none.
pub(super) async fn remaining_set(
    client: &Client,
    resource: &resource::Configurator,
) -> Result<Option<ObjectSet>, kube::Error> {
    // A Configurator is held before it has a set.
    if !is_held(resource) {
        return Ok(None);
    }
    let api: Api<ObjectSet> = match resource.key().namespace.as_str() {
        "" => Api::all(client.clone()),
        namespace => Api::namespaced(client.clone(), namespace),
    };
    let uid = resource.uid().unwrap_or_default();
    let its = ListParams::default()
        .labels(&format!("{CONFIGURATOR}={uid}"))
        .limit(1);
    match api.list(&its).await {
        Ok(found) => Ok(found.items.into_iter().next()),
        // A host that was never meant to keep sets may have neither the kind nor the right.
        Err(kube::Error::Api(status))
            if resource.spec.sets.is_none() && matches!(status.code, 403 | 404) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Refuses a Configurator without `spec.sets` that still has sets. The earlier generation goes on, so that the owners of these sets can be
/// deleted.
pub(super) async fn check_sets(
    shared: &Shared,
    resource: &resource::Configurator,
) -> Result<(), Refusal> {
    if resource.spec.sets.is_some() {
        return Ok(());
    }
    let found = remaining_set(&shared.client, resource).await;
    let found = found.map_err(|error| {
        let error = objects::explained(&error);
        Refusal::for_now(
            "SetsUnknown",
            format!("the ObjectSets cannot be listed; the host retries: {error}"),
        )
    })?;
    match found {
        None => Ok(()),
        Some(set) => Err(Refusal::for_now(
            "SetsRemain",
            format!(
                "`spec.sets` is missing, and the Configurator still has sets, one of {}: put it back until their owners are deleted, or have given up their sets",
                set.spec.owner
            ),
        )),
    }
}
