//! Watches the members of the sets of one Configurator: one watch for each kind and namespace that a set has members of. They begin and end
//! with the sets.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::task::{Context, Poll};

use configurator_core::desired::marks::{self, CONFIGURATOR};
use configurator_core::graph::member::MemberKey;
use configurator_core::request::{ObjectRef, api_version};
use configurator_core::time::Timestamp;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::api::{Api, ApiResource};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Client, ResourceExt};

use super::registry::{Sets, Shown, WatchedKind};
use super::watched_member::WatchedMember;
use crate::cluster::WatchBackoff;
use crate::objects;

type Watched = watcher::Result<Event<WatchedMember>>;

/// The watches of one Configurator.
pub(crate) struct MemberWatches {
    client: Client,
    /// Selects the members of the Configurator's sets.
    selector: String,
    seed: u64,
    watches: HashMap<WatchedKind, Watch>,
}

struct Watch {
    events: BoxStream<'static, Watched>,
    /// The objects of the listing under way.
    listing: HashSet<MemberKey>,
}

/// An event of a watch.
pub(crate) struct MemberEvent {
    watched: WatchedKind,
    event: Watched,
}

impl MemberWatches {
    /// `configurator` is the uid of the Configurator.
    pub(crate) fn new(client: Client, configurator: &str, seed: u64) -> Self {
        Self {
            client,
            selector: format!("{CONFIGURATOR}={configurator}"),
            seed,
            watches: HashMap::new(),
        }
    }

    /// From now on these kinds are watched, and no others.
    pub(crate) fn watch(&mut self, all: &HashSet<WatchedKind>) {
        self.watches.retain(|watched, _| all.contains(watched));
        for watched in all {
            if !self.watches.contains_key(watched) {
                let watch = Watch {
                    events: self.begin(watched),
                    listing: HashSet::new(),
                };
                self.watches.insert(watched.clone(), watch);
            }
        }
    }

    fn begin(&self, watched: &WatchedKind) -> BoxStream<'static, Watched> {
        let WatchedKind {
            group,
            version,
            kind,
            plural,
            namespace,
        } = watched;
        let resource = ApiResource {
            group: group.clone(),
            version: version.clone(),
            api_version: api_version(group, version),
            kind: kind.clone(),
            plural: plural.clone(),
        };
        let client = self.client.clone();
        let api: Api<WatchedMember> = match namespace.as_str() {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, namespace, &resource),
        };
        let config = watcher::Config::default().labels(&self.selector);
        watch_kind(api, config)
            .backoff(WatchBackoff::new(self.seed))
            .boxed()
    }

    /// Returns the next event.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<MemberEvent> {
        for (watched, watch) in &mut self.watches {
            if let Poll::Ready(Some(event)) = Pin::new(&mut watch.events).poll_next(context) {
                let watched = watched.clone();
                return Poll::Ready(MemberEvent { watched, event });
            }
        }
        Poll::Pending
    }

    /// Takes in an event, and returns the owners that need a run because of it.
    pub(crate) fn take_in(
        &mut self,
        MemberEvent { watched, event }: MemberEvent,
        sets: &Sets,
        now: Timestamp,
    ) -> Vec<ObjectRef> {
        let Some(watch) = self.watches.get_mut(&watched) else {
            return Vec::new();
        };
        match event {
            Ok(Event::Init) => {
                watch.listing.clear();
                Vec::new()
            }
            Ok(Event::InitApply(object)) => {
                watch.listing.insert(key_of(&watched, &object));
                show(&watched, object, sets, now).into_iter().collect()
            }
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut watch.listing);
                sets.listed(&watched, listed, now)
            }
            Ok(Event::Apply(object)) => show(&watched, object, sets, now).into_iter().collect(),
            Ok(Event::Delete(object)) => {
                let key = key_of(&watched, &object);
                let id = object.labels().get(marks::PART_OF);
                id.and_then(|id| sets.show(id, key, Shown::Unselected, now))
                    .into_iter()
                    .collect()
            }
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    plural = watched.plural,
                    group = watched.group,
                    namespace = watched.namespace,
                    error,
                    "members of sets cannot be watched; the host retries"
                );
                Vec::new()
            }
        }
    }
}

fn show(
    watched: &WatchedKind,
    mut object: WatchedMember,
    sets: &Sets,
    now: Timestamp,
) -> Option<ObjectRef> {
    let key = key_of(watched, &object);
    let id = object.labels().get(marks::PART_OF)?.clone();
    let api_version = api_version(&watched.group, &watched.version);
    object.complete(&api_version, &watched.kind);
    sets.show(&id, key, Shown::Watched(Box::new(object)), now)
}

fn key_of(watched: &WatchedKind, object: &WatchedMember) -> MemberKey {
    MemberKey::Kubernetes {
        group: watched.group.clone(),
        kind: watched.kind.clone(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}
