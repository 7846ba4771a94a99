//! Objects of any kind that machines wait for. Only their metadata is asked for, and only their versions are kept.
//!
//! A machine is told of each version once, and of the first as well: the object may have changed before anybody looked. What it was told
//! is in its state, so that a restart wakes only those whose objects have changed meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::task::{Context, Poll};

use configurator_core::machine::state::Seen;
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

impl Kind {
    fn object(&self, name: &str) -> ObjectKey {
        ObjectKey {
            group: self.group.clone(),
            version: self.version.clone(),
            plural: self.plural.clone(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

struct Watch {
    events: BoxStream<'static, watcher::Result<Event<Metadata>>>,
    /// Of all objects, by name.
    versions: HashMap<String, String>,
    /// Those of the listing under way.
    listing: HashMap<String, String>,
    /// Whether the first one is complete.
    is_listed: bool,
    /// Who waits, by the name of the object.
    machines: HashMap<String, BTreeSet<ObjectRef>>,
}

/// An object that a machine waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sought {
    pub(crate) object: ObjectKey,
    /// The version that it was last told of; empty: the object was not there.
    pub(crate) seen: Option<String>,
}

/// Somebody who waited, and for what.
pub(crate) type Woken = (ObjectRef, Seen);

/// What machines of one Configurator wait for.
pub(crate) struct Awaited {
    client: Client,
    seed: u64,
    watches: HashMap<Kind, Watch>,
    machines: HashMap<ObjectRef, Vec<Sought>>,
    woken: Vec<Woken>,
}

impl Awaited {
    pub(crate) fn new(client: Client, seed: u64) -> Self {
        Self {
            client,
            seed,
            watches: HashMap::new(),
            machines: HashMap::new(),
            woken: Vec::new(),
        }
    }

    /// From now on, this object's machine waits for these, and no others.
    pub(crate) fn wait(&mut self, machine: &ObjectRef, all: Vec<Sought>) {
        for sought in &all {
            let object = &sought.object;
            let kind = kind_of(object);
            let watch = self.watches.entry(kind).or_insert_with_key(|kind| Watch {
                events: watched(&self.client, kind, self.seed),
                versions: HashMap::new(),
                listing: HashMap::new(),
                is_listed: false,
                machines: HashMap::new(),
            });
            let machines = watch.machines.entry(object.name.clone()).or_default();
            machines.insert(machine.clone());
            // What the watch has shown already is not shown again.
            if let Some(version) = watch.version(&object.name)
                && let Some(seen) = sought.news(version)
            {
                self.woken.push((machine.clone(), seen));
            }
        }
        let is_sought = |object: &ObjectKey| all.iter().any(|sought| sought.object == *object);
        let before = self.machines.remove(machine).unwrap_or_default();
        for Sought { object, .. } in before.iter().filter(|before| !is_sought(&before.object)) {
            let kind = kind_of(object);
            let Some(watch) = self.watches.get_mut(&kind) else {
                continue;
            };
            if let Some(machines) = watch.machines.get_mut(&object.name) {
                machines.remove(machine);
                if machines.is_empty() {
                    watch.machines.remove(&object.name);
                }
            }
            if watch.machines.is_empty() {
                self.watches.remove(&kind);
            }
        }
        if !all.is_empty() {
            self.machines.insert(machine.clone(), all);
        }
    }

    /// Returns the next machine that is woken.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Woken> {
        loop {
            if let Some(woken) = self.woken.pop() {
                return Poll::Ready(woken);
            }
            let mut is_news = false;
            for (kind, watch) in &mut self.watches {
                let Poll::Ready(Some(event)) = Pin::new(&mut watch.events).poll_next(context)
                else {
                    continue;
                };
                is_news = true;
                for name in watch.on(kind, event) {
                    let version = watch.version(&name).unwrap_or_default();
                    let object = kind.object(&name);
                    for machine in watch.machines.get(&name).into_iter().flatten() {
                        let all = self.machines.get(machine).into_iter().flatten();
                        // Several of its leaves may wait for it, each with what it was told.
                        let mut its = all.filter(|sought| sought.object == object);
                        let news = its.find_map(|sought| sought.news(version));
                        self.woken.extend(news.map(|seen| (machine.clone(), seen)));
                    }
                }
            }
            if !is_news {
                return Poll::Pending;
            }
        }
    }
}

impl Sought {
    /// What its machine is to be told where the object is of this version, unless it was told so before.
    fn news(&self, version: &str) -> Option<Seen> {
        (self.seen.as_deref() != Some(version)).then(|| Seen {
            object: self.object.clone(),
            version: version.to_owned(),
        })
    }
}

impl Watch {
    /// Empty: it is not there. `None`: nobody knows yet.
    fn version(&self, name: &str) -> Option<&str> {
        let version = self.versions.get(name).map(String::as_str);
        version.or_else(|| self.is_listed.then_some(""))
    }

    /// Names of objects that somebody waits for, and of which there is news.
    fn on(&mut self, kind: &Kind, event: watcher::Result<Event<Metadata>>) -> Vec<String> {
        let (name, version) = match event {
            Ok(Event::Init) => {
                self.listing.clear();
                return Vec::new();
            }
            Ok(Event::InitApply(object)) => {
                let version = object.resource_version().unwrap_or_default();
                self.listing.insert(object.name_any(), version);
                return Vec::new();
            }
            Ok(Event::InitDone) => {
                self.is_listed = true;
                self.versions = std::mem::take(&mut self.listing);
                return self.machines.keys().cloned().collect();
            }
            Ok(Event::Apply(object)) => (object.name_any(), object.resource_version()),
            Ok(Event::Delete(object)) => (object.name_any(), None),
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    plural = kind.plural,
                    group = kind.group,
                    error,
                    "objects that machines wait for cannot be watched; it is tried again"
                );
                return Vec::new();
            }
        };
        let is_awaited = self.machines.contains_key(&name);
        let news = is_awaited.then(|| name.clone());
        match version {
            Some(version) => self.versions.insert(name, version),
            None => self.versions.remove(&name),
        };
        news.into_iter().collect()
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
