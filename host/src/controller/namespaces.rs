//! Watches the namespaces of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PartialObjectMeta};
use kube::core::{Selector, SelectorExt as _};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use tokio::sync::watch;

use crate::cluster::WatchBackoff;
use crate::host::Shared;
use crate::objects;

/// The longest wait for the first listing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The identity and labels of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownNamespace {
    pub(crate) uid: String,
    pub(crate) labels: BTreeMap<String, String>,
}

/// Namespaces by their names.
pub(crate) type NamespaceSet = BTreeMap<String, KnownNamespace>;

/// All namespaces. `None` until they are listed.
#[derive(Debug, Clone)]
pub(crate) struct Namespaces(watch::Sender<Option<Arc<NamespaceSet>>>);

impl Default for Namespaces {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Namespaces {
    /// Subscribes to the namespaces.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<NamespaceSet>>> {
        self.0.subscribe()
    }

    /// Returns the namespaces; `None` until they are listed.
    pub(crate) fn known(&self) -> Option<Arc<NamespaceSet>> {
        self.0.borrow().clone()
    }

    /// Evaluates a selector, now and at each change. Returns `None` if the namespaces are not listed within 5 s.
    pub(crate) async fn selected(&self, selector: Selector) -> Option<SelectedNamespaces> {
        let mut all = self.subscribe();
        let listed = tokio::time::timeout(PATIENCE, all.wait_for(Option::is_some)).await;
        listed.ok()?.ok()?;
        let mut selected = SelectedNamespaces {
            selector,
            all,
            names: BTreeSet::new(),
        };
        selected.select();
        Some(selected)
    }
}

/// The namespaces that a selector selects.
#[derive(Debug, Clone)]
pub struct SelectedNamespaces {
    selector: Selector,
    all: watch::Receiver<Option<Arc<NamespaceSet>>>,
    names: BTreeSet<String>,
}

impl SelectedNamespaces {
    /// Whether the selector selects this namespace.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Waits until the selected namespaces change.
    pub(crate) async fn changed(&mut self) {
        loop {
            if self.all.changed().await.is_err() {
                return std::future::pending().await;
            }
            if self.select() {
                return;
            }
        }
    }

    /// Evaluates the selector. Returns whether the selected namespaces have changed.
    fn select(&mut self) -> bool {
        let all = self.all.borrow_and_update().clone().unwrap_or_default();
        let selected = all
            .iter()
            .filter(|(_, namespace)| self.selector.matches(&namespace.labels));
        let names: BTreeSet<String> = selected.map(|(name, _)| name.clone()).collect();
        let is_other = names != self.names;
        self.names = names;
        is_other
    }
}

/// Watches the namespaces.
pub(crate) async fn run(shared: Arc<Shared>) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(shared.client.clone());
    let mut events = watch_kind(api, watcher::Config::default())
        .backoff(WatchBackoff::new(shared.seed))
        .boxed();
    let known = &shared.namespaces.0;
    let mut listed = NamespaceSet::new();
    let mut has_failed = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(namespace)) => {
                let (name, namespace) = read(namespace);
                listed.insert(name, namespace);
            }
            Ok(Event::InitDone) => {
                has_failed = false;
                let listed = Arc::new(std::mem::take(&mut listed));
                known.send_if_modified(|known| {
                    let is_other = known.as_ref() != Some(&listed);
                    *known = Some(listed);
                    is_other
                });
            }
            Ok(Event::Apply(namespace)) => {
                let (name, namespace) = read(namespace);
                known.send_if_modified(|known| {
                    let known = Arc::make_mut(known.get_or_insert_default());
                    known.insert(name, namespace.clone()) != Some(namespace)
                });
            }
            Ok(Event::Delete(namespace)) => {
                let (name, _) = read(namespace);
                known.send_if_modified(|known| {
                    let known = Arc::make_mut(known.get_or_insert_default());
                    known.remove(&name).is_some()
                });
            }
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    let error = objects::explained(&error);
                    tracing::warn!(error, "the Namespaces cannot be watched; the host retries");
                }
            }
        }
    }
}

fn read(namespace: PartialObjectMeta<Namespace>) -> (String, KnownNamespace) {
    let metadata = namespace.metadata;
    let known = KnownNamespace {
        uid: metadata.uid.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
    };
    (metadata.name.unwrap_or_default(), known)
}
