//! Objects of any kind that machines wait for. Only their metadata is asked for, and only their versions are kept.
//!
//! Whoever begins to wait is woken once when the object is first seen: it may have changed before anybody looked.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::Pin;
use std::task::{Context, Poll};

use configurator_core::request::{ObjectKey, ObjectRef, api_version};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Client, ResourceExt};

use crate::cluster::WatchBackoff;
use crate::objects;

type Metadata = PartialObjectMeta<DynamicObject>;

/// A kind in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    group: String,
    version: String,
    plural: String,
    namespace: String,
}

struct Watch {
    events: BoxStream<'static, watcher::Result<Event<Metadata>>>,
    /// Names that the listing under way has shown.
    listing: HashSet<String>,
    /// Whether the first one is complete.
    is_listed: bool,
    /// What is waited for, by name.
    objects: HashMap<String, Waited>,
}

#[derive(Default)]
struct Waited {
    by: BTreeSet<ObjectRef>,
    /// `None`: it was not seen, or has gone.
    version: Option<String>,
}

/// Somebody who waited, and for what.
pub(crate) type Woken = (ObjectRef, ObjectKey);

/// What machines of one Configurator wait for.
pub(crate) struct Awaited {
    client: Client,
    seed: u64,
    watches: HashMap<Kind, Watch>,
    by: HashMap<ObjectRef, Vec<ObjectKey>>,
    woken: Vec<Woken>,
}

impl Awaited {
    pub(crate) fn new(client: Client, seed: u64) -> Self {
        Self {
            client,
            seed,
            watches: HashMap::new(),
            by: HashMap::new(),
            woken: Vec::new(),
        }
    }

    /// From now on, this object's machine waits for these, and no others.
    pub(crate) fn wait(&mut self, machine: &ObjectRef, keys: Vec<ObjectKey>) {
        let before = match keys.is_empty() {
            true => self.by.remove(machine),
            false => self.by.insert(machine.clone(), keys.clone()),
        };
        let before = before.unwrap_or_default();
        for key in keys.iter().filter(|key| !before.contains(key)) {
            let kind = kind_of(key);
            let watch = self.watches.entry(kind.clone()).or_insert_with(|| Watch {
                events: watched(&self.client, &kind, self.seed),
                listing: HashSet::new(),
                is_listed: false,
                objects: HashMap::new(),
            });
            let waited = watch.objects.entry(key.name.clone()).or_default();
            waited.by.insert(machine.clone());
            // What the watch has shown already is not shown again.
            if watch.is_listed || waited.version.is_some() {
                self.woken.push((machine.clone(), key.clone()));
            }
        }
        for key in before.iter().filter(|key| !keys.contains(key)) {
            let kind = kind_of(key);
            let Some(watch) = self.watches.get_mut(&kind) else {
                continue;
            };
            if let Some(waited) = watch.objects.get_mut(&key.name) {
                waited.by.remove(machine);
                if waited.by.is_empty() {
                    watch.objects.remove(&key.name);
                }
            }
            if watch.objects.is_empty() {
                self.watches.remove(&kind);
            }
        }
    }

    /// The next one that is woken; never, while nobody waits.
    pub(crate) async fn next(&mut self) -> Woken {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Woken> {
        loop {
            if let Some(woken) = self.woken.pop() {
                return Poll::Ready(woken);
            }
            let mut is_news = false;
            for (kind, watch) in &mut self.watches {
                if let Poll::Ready(Some(event)) = Pin::new(&mut watch.events).poll_next(context) {
                    is_news = true;
                    watch.on(kind, event, &mut self.woken);
                }
            }
            if !is_news {
                return Poll::Pending;
            }
        }
    }
}

impl Watch {
    fn on(&mut self, kind: &Kind, event: watcher::Result<Event<Metadata>>, woken: &mut Vec<Woken>) {
        match event {
            Ok(Event::Init) => self.listing.clear(),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let name = object.name_any();
                if self.objects.contains_key(&name) {
                    self.listing.insert(name.clone());
                }
                let version = object.resource_version();
                self.seen(kind, &name, version, woken);
            }
            Ok(Event::Delete(object)) => self.seen(kind, &object.name_any(), None, woken),
            Ok(Event::InitDone) => {
                self.is_listed = true;
                let listed = std::mem::take(&mut self.listing);
                let is_gone = |(name, waited): &(&String, &Waited)| {
                    waited.version.is_some() && !listed.contains(*name)
                };
                let gone = self.objects.iter().filter(is_gone);
                let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
                for name in gone {
                    self.seen(kind, &name, None, woken);
                }
            }
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    plural = kind.plural,
                    group = kind.group,
                    error,
                    "objects that machines wait for cannot be watched; it is tried again"
                );
            }
        }
    }

    fn seen(&mut self, kind: &Kind, name: &str, version: Option<String>, woken: &mut Vec<Woken>) {
        let Some(waited) = self.objects.get_mut(name) else {
            return;
        };
        if waited.version == version {
            return;
        }
        waited.version = version;
        let key = ObjectKey {
            group: kind.group.clone(),
            version: kind.version.clone(),
            plural: kind.plural.clone(),
            namespace: kind.namespace.clone(),
            name: name.to_owned(),
        };
        woken.extend(waited.by.iter().map(|by| (by.clone(), key.clone())));
    }
}

fn kind_of(key: &ObjectKey) -> Kind {
    Kind {
        group: key.group.clone(),
        version: key.version.clone(),
        plural: key.plural.clone(),
        namespace: key.namespace.clone(),
    }
}

fn watched(
    client: &Client,
    kind: &Kind,
    seed: u64,
) -> BoxStream<'static, watcher::Result<Event<Metadata>>> {
    let resource = ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: api_version(&kind.group, &kind.version),
        // Only the address counts.
        kind: String::new(),
        plural: kind.plural.clone(),
    };
    let client = client.clone();
    let api: Api<Metadata> = match kind.namespace.as_str() {
        "" => Api::all_with(client, &resource),
        namespace => Api::namespaced_with(client, namespace, &resource),
    };
    watch_kind(api, watcher::Config::default())
        .backoff(WatchBackoff::new(seed))
        .boxed()
}
