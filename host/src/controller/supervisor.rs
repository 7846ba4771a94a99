//! Watches the Configurators and gives each a keeper.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{BoxFuture, Fuse, FusedFuture as _};
use futures::{FutureExt as _, StreamExt};
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Resource, ResourceExt};
use tokio::sync::watch;

use super::canary::ROLLBACK_ANNOTATION;
use super::keeper::{self, KeeperLife, RETRY_ANNOTATION};
use super::report::{HostReport, Reporter};
use super::sweep::sweep;
use crate::cluster::WatchBackoff;
use crate::declaration::Flows;
use crate::host::Shared;
use crate::objects;
use crate::resource::flow::Flow;
use crate::resource::machine::FlowSpec;
use crate::resource::{Configurator, HostStatus};
use crate::shards::changed;
use crate::tasks::Tasks;

struct Kept {
    uid: String,
    desired: watch::Sender<Arc<Configurator>>,
    hosts: watch::Sender<Vec<HostStatus>>,
    reporter: Reporter,
    life: KeeperLife,
}

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    tasks: Tasks,
    kept: BTreeMap<String, Kept>,
    /// Keepers that end: another of the same name waits for them.
    ending: BTreeMap<String, KeeperLife>,
    reports: watch::Sender<HostReport>,
    listing: Vec<String>,
    /// Whether records of deleted Configurators may be left. `Some(true)`: also of some that were deleted while no host was there.
    sweep_due: Option<bool>,
    /// By the name of the resource: the name that each goes by, and what it says.
    flows: BTreeMap<String, (String, FlowSpec)>,
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
            listing: Vec::new(),
            sweep_due: None,
            flows: BTreeMap::new(),
        }
    }

    /// Works until the host drains.
    pub(crate) async fn run(mut self) {
        let api: Api<DeserializeGuard<Configurator>> = Api::all(self.shared.client.clone());
        let mut events = watch_kind(api, watcher::Config::default())
            .backoff(WatchBackoff::new(self.shared.seed))
            .boxed();
        let flows: Api<DeserializeGuard<Flow>> = Api::all(self.shared.client.clone());
        let mut flows = watch_kind(flows, watcher::Config::default())
            .backoff(WatchBackoff::new(self.shared.seed))
            .boxed();
        let drain = self.tasks.drain_token().clone();
        let mut changes = self.shared.shards.as_ref().map(|shards| shards.changes());
        let mut held = BTreeSet::new();
        let mut sweeping: Fuse<BoxFuture<'static, ()>> = Fuse::terminated();
        loop {
            if sweeping.is_terminated()
                && let Some(is_thorough) = self.sweep_due.take()
            {
                sweeping = sweep(self.shared.clone(), is_thorough).boxed().fuse();
            }
            // A Configurator may need any of the flows.
            let has_flows = self.shared.flows.borrow().is_some();
            tokio::select! {
                biased;
                () = drain.cancelled() => return,
                () = &mut sweeping, if !sweeping.is_terminated() => {}
                () = changed(changes.as_mut()) => {
                    let before = std::mem::replace(&mut held, self.held());
                    // Before, another host had to remove what belongs to them.
                    if held.difference(&before).next().is_some() {
                        self.sweep_due = Some(true);
                    }
                }
                Some(event) = flows.next() => self.on_flow(event),
                event = events.next(), if has_flows => match event {
                    Some(Ok(event)) => self.on_event(event).await,
                    Some(Err(error)) => {
                        let error = objects::explained(&error);
                        tracing::warn!(error, "the Configurators cannot be watched; it is tried again");
                        self.say_watched(Some(error));
                    }
                    None => return,
                },
            }
        }
    }

    fn held(&self) -> BTreeSet<u16> {
        let shards = self.shared.shards.as_ref();
        shards.map(|shards| shards.held()).unwrap_or_default()
    }

    fn on_flow(&mut self, event: watcher::Result<Event<DeserializeGuard<Flow>>>) {
        let is_listing = self.shared.flows.borrow().is_none();
        match event {
            Ok(Event::Init) => return self.flows.clear(),
            Ok(Event::InitApply(flow)) => return self.know_flow(flow),
            Ok(Event::Apply(flow)) => self.know_flow(flow),
            Ok(Event::Delete(flow)) => {
                self.flows.remove(&flow.name_any());
            }
            Ok(Event::InitDone) => {}
            // Without the flows, those who need none can work.
            Err(error) if is_listing => {
                let error = objects::explained(&error);
                tracing::warn!(error, "the Flows cannot be watched; it is tried again");
            }
            Err(error) => {
                let error = objects::explained(&error);
                return tracing::debug!(error, "the Flows cannot be watched; it is tried again");
            }
        }
        let flows: Flows = self.flows.values().cloned().collect();
        self.shared.flows.send_if_modified(|known| {
            let is_news = known.as_deref() != Some(&flows);
            if is_news {
                *known = Some(Arc::new(flows));
            }
            is_news
        });
    }

    fn know_flow(&mut self, flow: DeserializeGuard<Flow>) {
        let name = flow.name_any();
        match flow.0 {
            Ok(flow) => {
                self.flows.insert(name, flow.named());
            }
            Err(invalid) => {
                tracing::warn!(
                    flow = name,
                    error = invalid.error,
                    "the Flow cannot be read and is left alone"
                );
            }
        }
    }

    async fn on_event(&mut self, event: Event<DeserializeGuard<Configurator>>) {
        // Listing again is yet to succeed.
        if !matches!(event, Event::Init) {
            self.say_watched(None);
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
                let is_first = self
                    .reports
                    .send_if_modified(|report| !std::mem::replace(&mut report.is_listed, true));
                if is_first {
                    self.sweep_due = Some(true);
                }
            }
        }
    }

    fn let_go(&mut self, name: &str) {
        if let Some(kept) = self.kept.remove(name) {
            self.sweep_due.get_or_insert(false);
            kept.reporter.retire();
            self.ending.retain(|_, life| !life.is_over());
            self.ending.insert(name.to_owned(), kept.life);
        }
    }

    fn keep(&mut self, object: DeserializeGuard<Configurator>) {
        let name = object.name_any();
        let resource = match object.0 {
            Ok(mut resource) => {
                // They are longer than the rest, and nobody reads them.
                resource.metadata.managed_fields = None;
                Arc::new(resource)
            }
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
                        || [RETRY_ANNOTATION, ROLLBACK_ANNOTATION].iter().any(|name| {
                            known.annotations().get(*name) != resource.annotations().get(*name)
                        });
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
                let reporter = Reporter::new(self.reports.clone(), &name);
                let life = keeper::start(
                    &self.shared,
                    &self.tasks,
                    receiver,
                    said,
                    reporter.clone(),
                    before,
                );
                self.kept.insert(
                    name,
                    Kept {
                        uid,
                        desired,
                        hosts,
                        reporter,
                        life,
                    },
                );
            }
        }
    }

    fn say_watched(&self, error: Option<String>) {
        self.reports.send_if_modified(|report| {
            let is_new = report.watch_error != error;
            report.watch_error = error;
            is_new
        });
    }
}
