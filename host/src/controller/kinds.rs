//! Watches a kind with namespaces together with its counterpart for the cluster: Configurator and ClusterConfigurator, Flow and ClusterFlow.

use std::fmt::Debug;

use futures::{Stream, StreamExt as _};
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::cluster::WatchBackoff;

/// Which of the two kinds an event is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// The one for the cluster.
    Cluster,
    /// The one with namespaces.
    Namespace,
}

impl Scope {
    pub(super) const ALL: [Self; 2] = [Self::Cluster, Self::Namespace];

    /// The scope of an object.
    pub(super) fn of(namespace: &str) -> Self {
        match namespace {
            "" => Self::Cluster,
            _ => Self::Namespace,
        }
    }
}

/// An event of one of the two kinds. Objects of the kind for the cluster are converted; they have no namespace.
pub(super) type KindEvent<N> = (Scope, watcher::Result<Event<DeserializeGuard<N>>>);

/// Watches both kinds in the whole cluster.
pub(super) fn watch_both<N, C>(
    client: &Client,
    seed: u64,
) -> impl Stream<Item = KindEvent<N>> + use<N, C>
where
    N: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    C: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static + Into<N>,
{
    let cluster = watch_one::<C>(client, seed).map(|event| {
        let event = event.map(|event| {
            converted(event, |guard: DeserializeGuard<C>| {
                DeserializeGuard(guard.0.map(Into::into))
            })
        });
        (Scope::Cluster, event)
    });
    let namespaces = watch_one::<N>(client, seed).map(|event| (Scope::Namespace, event));
    futures::stream::select(cluster, namespaces)
}

fn watch_one<K>(
    client: &Client,
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<DeserializeGuard<K>>>> + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let api: Api<DeserializeGuard<K>> = Api::all(client.clone());
    watch_kind(api, watcher::Config::default()).backoff(WatchBackoff::new(seed))
}

fn converted<A, B>(event: Event<A>, convert: impl Fn(A) -> B) -> Event<B> {
    match event {
        Event::Apply(object) => Event::Apply(convert(object)),
        Event::Delete(object) => Event::Delete(convert(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(convert(object)),
        Event::InitDone => Event::InitDone,
    }
}
