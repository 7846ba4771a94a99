//! Notifies Configurators when the rights of ServiceAccounts may have changed.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Client;
use kube::api::{Api, PartialObjectMeta, Resource};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use serde::de::DeserializeOwned;

use crate::cluster::WatchBackoff;
use crate::host::Shared;
use crate::objects;

/// Watches roles and their bindings.
pub(crate) async fn run(shared: Arc<Shared>) {
    let (client, seed) = (&shared.client, shared.seed);
    let mut changes = SelectAll::new();
    changes.push(watched::<Role>(client, seed));
    changes.push(watched::<RoleBinding>(client, seed));
    changes.push(watched::<ClusterRole>(client, seed));
    changes.push(watched::<ClusterRoleBinding>(client, seed));
    while let Some(namespace) = changes.next().await {
        shared.rbac_changes.notify(&namespace);
    }
}

/// Yields the namespace of each change. It is empty for a cluster-scoped object, and after a listing, which may contain missed changes.
fn watched<K>(client: &Client, seed: u64) -> BoxStream<'static, Arc<str>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let mut has_warned = false;
    watch_kind(api, watcher::Config::default())
        .backoff(WatchBackoff::new(seed))
        .filter_map(move |event| std::future::ready(changed(event, &mut has_warned)))
        .boxed()
}

fn changed<K: Resource<DynamicType = ()>>(
    event: Result<Event<PartialObjectMeta<K>>, watcher::Error>,
    has_warned: &mut bool,
) -> Option<Arc<str>> {
    match event {
        Ok(Event::Init | Event::InitApply(_)) => None,
        Ok(Event::InitDone) => Some("".into()),
        Ok(Event::Apply(object) | Event::Delete(object)) => {
            Some(object.metadata.namespace.unwrap_or_default().into())
        }
        Err(error) => {
            if !std::mem::replace(has_warned, true) {
                tracing::warn!(
                    kind = %K::kind(&()),
                    error = objects::explained(&error),
                    "rights are not watched, so a right that is withdrawn takes effect minutes later; the host retries"
                );
            }
            None
        }
    }
}
