//! Watches the Configurators and gives each a keeper.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Resource, ResourceExt};
use tokio::sync::watch;

use super::keeper::{self, KeeperReport, RETRY_ANNOTATION};
use crate::cluster::WatchBackoff;
use crate::host::Shared;
use crate::ledger::Ledger;
use crate::objects;
use crate::resource::{Configurator, HostStatus};
use crate::tasks::Tasks;

/// What a host says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReport {
    /// Whether the Configurators are known.
    pub is_listed: bool,
    /// Of each Configurator.
    pub keepers: BTreeMap<String, KeeperReport>,
    /// Why the Configurators cannot be watched at the moment.
    pub watch_error: Option<String>,
}

impl HostReport {
    /// Whether every Configurator has settled every object that existed at start.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_listed && self.keepers.values().all(|keeper| keeper.is_bootstrapped)
    }

    /// Whether nothing runs, is queued or waits to be tried again.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_listed && self.keepers.values().all(|keeper| keeper.is_settled)
    }
}

struct Kept {
    uid: String,
    desired: watch::Sender<Arc<Configurator>>,
    hosts: watch::Sender<Vec<HostStatus>>,
    report: watch::Receiver<KeeperReport>,
}

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    tasks: Tasks,
    kept: BTreeMap<String, Kept>,
    /// Keepers that end: another of the same name waits for them.
    ending: BTreeMap<String, watch::Receiver<KeeperReport>>,
    reports: watch::Sender<HostReport>,
    is_listed: bool,
    listing: Vec<String>,
    watch_error: Option<String>,
}

impl Supervisor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        tasks: Tasks,
        reports: watch::Sender<HostReport>,
    ) -> Self {
        Self {
            shared,
            tasks,
            kept: BTreeMap::new(),
            ending: BTreeMap::new(),
            reports,
            is_listed: false,
            listing: Vec::new(),
            watch_error: None,
        }
    }

    /// Works until the host drains.
    pub(crate) async fn run(mut self) {
        let api: Api<DeserializeGuard<Configurator>> = Api::all(self.shared.client.clone());
        let mut events = watch_kind(api, watcher::Config::default())
            .backoff(WatchBackoff::new(self.shared.seed))
            .boxed();
        let drain = self.tasks.drain_token().clone();
        loop {
            self.report();
            tokio::select! {
                biased;
                () = drain.cancelled() => return,
                () = any_changed(&mut self.kept) => {}
                event = events.next() => match event {
                    Some(Ok(event)) => self.on_event(event).await,
                    Some(Err(error)) => {
                        let error = objects::explained(&error);
                        tracing::warn!(error, "the Configurators cannot be watched; it is tried again");
                        self.watch_error = Some(error);
                    }
                    None => return,
                },
            }
        }
    }

    async fn on_event(&mut self, event: Event<DeserializeGuard<Configurator>>) {
        // Listing again is yet to succeed.
        if !matches!(event, Event::Init) {
            self.watch_error = None;
        }
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.push(object.name_any());
                self.keep(object);
            }
            Event::Apply(object) => self.keep(object),
            Event::Delete(object) => self.let_go(&object.name_any()),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                let gone: Vec<String> = self
                    .kept
                    .keys()
                    .filter(|name| !listed.contains(name))
                    .cloned()
                    .collect();
                for name in gone {
                    self.let_go(&name);
                }
                if !std::mem::replace(&mut self.is_listed, true) {
                    self.sweep().await;
                }
            }
        }
    }

    fn let_go(&mut self, name: &str) {
        if let Some(kept) = self.kept.remove(name) {
            self.ending.retain(|_, report| report.has_changed().is_ok());
            self.ending.insert(name.to_owned(), kept.report);
        }
    }

    /// Removes the ledgers of Configurators that went while no host was there. They are listed once more after the
    /// ledgers were: another host may have begun one meanwhile.
    async fn sweep(&self) {
        let store = self.shared.config_store.as_ref();
        let stale = async {
            let mut recorded = Ledger::recorded_for(store)
                .await
                .map_err(|fault| fault.to_string())?;
            if recorded.is_empty() {
                return Ok(());
            }
            let all: Api<Configurator> = Api::all(self.shared.client.clone());
            let there = all
                .list_metadata(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            for configurator in there {
                recorded.remove(&configurator.uid().unwrap_or_default());
            }
            for uid in recorded {
                Ledger::new(self.shared.config_store.clone(), &uid)
                    .close()
                    .await
                    .map_err(|fault| fault.to_string())?;
            }
            Ok::<(), String>(())
        };
        if let Err(error) = stale.await {
            tracing::warn!(
                error,
                "stale ledgers could not be removed; they are at the next start"
            );
        }
    }

    fn keep(&mut self, object: DeserializeGuard<Configurator>) {
        let name = object.name_any();
        let resource = match object.0 {
            Ok(resource) => Arc::new(resource),
            Err(invalid) => {
                tracing::warn!(
                    configurator = name,
                    error = invalid.error,
                    "the Configurator cannot be read and is left alone"
                );
                return;
            }
        };
        let uid = resource.uid().unwrap_or_default();
        let hosts = resource
            .status
            .as_ref()
            .map(|status| status.hosts.clone())
            .unwrap_or_default();
        match self.kept.get(&name) {
            Some(kept) if kept.uid == uid => {
                kept.hosts.send_if_modified(|known| {
                    let is_news = *known != hosts;
                    if is_news {
                        *known = hosts;
                    }
                    is_news
                });
                // A status of one's own is no news.
                kept.desired.send_if_modified(|known| {
                    let is_news = known.meta().generation != resource.meta().generation
                        || known.meta().deletion_timestamp != resource.meta().deletion_timestamp
                        || known.annotations().get(RETRY_ANNOTATION)
                            != resource.annotations().get(RETRY_ANNOTATION);
                    if is_news {
                        *known = resource;
                    }
                    is_news
                });
            }
            _ => {
                self.let_go(&name);
                let before = self.ending.remove(&name);
                let (desired, receiver) = watch::channel(resource);
                let (hosts, said) = watch::channel(hosts);
                let report = keeper::start(&self.shared, &self.tasks, receiver, said, before);
                self.kept.insert(
                    name,
                    Kept {
                        uid,
                        desired,
                        hosts,
                        report,
                    },
                );
            }
        }
    }

    fn report(&self) {
        let report = HostReport {
            is_listed: self.is_listed,
            keepers: self
                .kept
                .iter()
                .map(|(name, kept)| (name.clone(), *kept.report.borrow()))
                .collect(),
            watch_error: self.watch_error.clone(),
        };
        self.reports.send_if_modified(|known| {
            let is_new = *known != report;
            if is_new {
                *known = report;
            }
            is_new
        });
    }
}

/// Returns when a keeper has something new to say.
async fn any_changed(kept: &mut BTreeMap<String, Kept>) {
    let changes: Vec<_> = kept
        .values_mut()
        .map(|kept| {
            Box::pin(async move {
                if kept.report.changed().await.is_err() {
                    // The keeper has ended: nothing more will come.
                    std::future::pending::<()>().await;
                }
            })
        })
        .collect();
    if changes.is_empty() {
        std::future::pending::<()>().await;
    }
    futures::future::select_all(changes).await;
}
