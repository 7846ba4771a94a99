//! Watches the Configurators and ClusterConfigurators, and gives each a keeper.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use configurator_core::request::ObjectRef;
use futures::future::{BoxFuture, Fuse, FusedFuture as _};
use futures::{FutureExt as _, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::canary::ROLLBACK_ANNOTATION;
use super::keeper::{self, KeeperLife, RETRY_ANNOTATION};
use super::kinds::{KindEvent, Scope, watch_both};
use super::report::{HostReport, Reporter};
use super::sweep::sweep;
use crate::declaration::FlowSet;
use crate::host::Shared;
use crate::objects::{self, key_of};
use crate::resource::flow::{ClusterFlow, Flow};
use crate::resource::{ClusterConfigurator, Configurator, HostStatus};
use crate::shards::changed;
use crate::tasks::Tasks;

/// A copy of the resource, which `kubectl apply` adds.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

struct Kept {
    uid: String,
    desired: watch::Sender<Arc<Configurator>>,
    hosts: watch::Sender<Vec<HostStatus>>,
    reporter: Reporter,
    leaving: CancellationToken,
    life: KeeperLife,
}

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    tasks: Tasks,
    kept: BTreeMap<ObjectRef, Kept>,
    /// Configurators that are not in the scope of this host.
    outside: BTreeMap<ObjectRef, Arc<Configurator>>,
    /// Keepers that end: another of the same name waits for them.
    ending: BTreeMap<ObjectRef, KeeperLife>,
    reports: watch::Sender<HostReport>,
    /// What the listings under way have found.
    listing: BTreeMap<Scope, Vec<ObjectRef>>,
    /// The kinds that have been listed.
    listed: BTreeSet<Scope>,
    /// Why a kind cannot be watched.
    errors: BTreeMap<Scope, String>,
    /// Whether records of deleted Configurators may be left. `Some(true)`: also of some that were deleted while no host was there.
    sweep_due: Option<bool>,
    flows: FlowSet,
    /// What the listings of flows under way have found.
    listing_flows: BTreeMap<Scope, BTreeSet<ObjectRef>>,
    /// The kinds of flows that have been listed, or cannot be.
    listed_flows: BTreeSet<Scope>,
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
            outside: BTreeMap::new(),
            ending: BTreeMap::new(),
            reports,
            listing: BTreeMap::new(),
            listed: BTreeSet::new(),
            errors: BTreeMap::new(),
            sweep_due: None,
            flows: FlowSet::default(),
            listing_flows: BTreeMap::new(),
            listed_flows: BTreeSet::new(),
        }
    }

    /// Works until the host drains.
    pub(crate) async fn run(mut self) {
        let (client, seed) = (&self.shared.client, self.shared.seed);
        let mut events = watch_both::<Configurator, ClusterConfigurator>(client, seed).boxed();
        let mut flows = watch_both::<Flow, ClusterFlow>(client, seed).boxed();
        let drain = self.tasks.drain_token().clone();
        let mut changes = self.shared.shards.as_ref().map(|shards| shards.changes());
        let mut held = BTreeSet::new();
        let mut namespaces = self.shared.namespaces.subscribe();
        namespaces.mark_changed();
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
                Ok(()) = namespaces.changed(), if self.shared.scope.is_limited() => {
                    self.apply_scope();
                }
                Some(event) = flows.next() => self.on_flow(event),
                Some(event) = events.next(), if has_flows => self.on_event(event),
            }
        }
    }

    fn held(&self) -> BTreeSet<u16> {
        let shards = self.shared.shards.as_ref();
        shards.map(|shards| shards.held()).unwrap_or_default()
    }

    fn on_flow(&mut self, (scope, event): KindEvent<Flow>) {
        match event {
            Ok(Event::Init) => {
                self.listing_flows.insert(scope, BTreeSet::new());
                return;
            }
            Ok(Event::InitApply(flow)) => {
                let listing = self.listing_flows.entry(scope).or_default();
                listing.insert(key_of(&flow));
                return self.know_flow(flow);
            }
            Ok(Event::Apply(flow)) => self.know_flow(flow),
            Ok(Event::Delete(flow)) => self.flows.remove(&key_of(&flow)),
            Ok(Event::InitDone) => {
                let listed = self.listing_flows.remove(&scope).unwrap_or_default();
                self.flows
                    .retain(|key| Scope::of(&key.namespace) != scope || listed.contains(key));
                self.listed_flows.insert(scope);
            }
            Err(error) => {
                let error = objects::explained(&error);
                let message = "the Flows cannot be watched; the host retries";
                // Configurators that need no flows of this kind can run without them.
                match self.listed_flows.insert(scope) {
                    true => tracing::warn!(error, ?scope, "{message}"),
                    false => return tracing::debug!(error, ?scope, "{message}"),
                }
            }
        }
        if self.listed_flows.len() < Scope::ALL.len() {
            return;
        }
        let flows = &self.flows;
        self.shared.flows.send_if_modified(|known| {
            let is_news = known.as_deref() != Some(flows);
            if is_news {
                *known = Some(Arc::new(flows.clone()));
            }
            is_news
        });
    }

    fn know_flow(&mut self, flow: DeserializeGuard<Flow>) {
        let key = key_of(&flow);
        match flow.0 {
            Ok(flow) => self.flows.insert(flow),
            Err(invalid) => {
                tracing::warn!(
                    flow = %key,
                    error = invalid.error,
                    "the Flow cannot be read and is ignored"
                );
            }
        }
    }

    fn on_event(&mut self, (scope, event): KindEvent<Configurator>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    error,
                    ?scope,
                    "the Configurators cannot be watched; the host retries"
                );
                self.errors.insert(scope, error);
                return self.say_watched();
            }
        };
        // Listing again is yet to succeed.
        if !matches!(event, Event::Init) && self.errors.remove(&scope).is_some() {
            self.say_watched();
        }
        match event {
            Event::Init => {
                self.listing.insert(scope, Vec::new());
            }
            Event::InitApply(object) => {
                self.listing.entry(scope).or_default().push(key_of(&object));
                self.keep(object);
            }
            Event::Apply(object) => self.keep(object),
            Event::Delete(object) => self.let_go(&key_of(&object)),
            Event::InitDone => self.on_listed(scope),
        }
    }

    /// All objects of one of the kinds are known.
    fn on_listed(&mut self, scope: Scope) {
        let listed = self.listing.remove(&scope).unwrap_or_default();
        let is_gone =
            |key: &&ObjectRef| Scope::of(&key.namespace) == scope && !listed.contains(key);
        let outside: Vec<ObjectRef> = self.outside.keys().filter(is_gone).cloned().collect();
        for key in outside {
            self.forget_outside(&key);
        }
        let gone: Vec<ObjectRef> = self.kept.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.let_go(&key);
        }
        self.listed.insert(scope);
        if self.listed.len() < Scope::ALL.len() {
            return;
        }
        self.shared.quota_usage.set_listed();
        let is_first = self
            .reports
            .send_if_modified(|report| !std::mem::replace(&mut report.is_listed, true));
        if is_first {
            self.sweep_due = Some(true);
        }
    }

    /// Ends the keeper of a deleted Configurator.
    fn let_go(&mut self, key: &ObjectRef) {
        self.forget_outside(key);
        if self.end(key, false) {
            self.sweep_due.get_or_insert(false);
        }
    }

    /// Ends the keeper of a Configurator, and returns whether there was one. With `leaves`, the Configurator exists but is out of scope.
    fn end(&mut self, key: &ObjectRef, leaves: bool) -> bool {
        let Some(kept) = self.kept.remove(key) else {
            return false;
        };
        if leaves {
            kept.leaving.cancel();
        }
        let resource = kept.desired.borrow().clone();
        self.shared.quota_usage.remove(key, &resource.metadata);
        kept.reporter.retire();
        self.ending.retain(|_, life| !life.is_over());
        self.ending.insert(key.clone(), kept.life);
        true
    }

    fn is_in_scope(&self, key: &ObjectRef, resource: &Configurator) -> bool {
        let namespaces = self.shared.namespaces.known();
        let scope = &self.shared.scope;
        scope.contains(key, resource.labels(), namespaces.as_deref())
    }

    /// Ends the keepers of Configurators that have left the scope, and starts keepers for those that have entered it.
    fn apply_scope(&mut self) {
        let kept = self.kept.iter();
        let left: Vec<(ObjectRef, Arc<Configurator>)> = kept
            .map(|(key, kept)| (key.clone(), kept.desired.borrow().clone()))
            .filter(|(key, resource)| !self.is_in_scope(key, resource))
            .collect();
        for (key, resource) in left {
            self.leave_outside(key, resource);
        }
        for (key, resource) in self.outside.clone() {
            self.keep_resource(key, resource);
        }
    }

    /// Ends the keeper of a Configurator that is out of scope, if it has one, and remembers the Configurator: it may enter the scope.
    fn leave_outside(&mut self, key: ObjectRef, resource: Arc<Configurator>) {
        self.end(&key, true);
        let name = key.to_string();
        self.outside.insert(key, resource);
        self.reports
            .send_if_modified(|report| report.outside.insert(name));
    }

    fn forget_outside(&mut self, key: &ObjectRef) {
        if self.outside.remove(key).is_some() {
            let name = key.to_string();
            self.reports
                .send_if_modified(|report| report.outside.remove(&name));
        }
    }

    fn keep(&mut self, object: DeserializeGuard<Configurator>) {
        let key = key_of(&object);
        let resource = match object.0 {
            Ok(mut resource) => {
                // They are as long as the rest, and nobody reads them.
                resource.metadata.managed_fields = None;
                resource.annotations_mut().remove(LAST_APPLIED);
                Arc::new(resource.resolved())
            }
            Err(invalid) => {
                tracing::warn!(
                    configurator = %key,
                    error = invalid.error,
                    "the Configurator cannot be read and is ignored"
                );
                return;
            }
        };
        self.keep_resource(key, resource);
    }

    fn keep_resource(&mut self, key: ObjectRef, resource: Arc<Configurator>) {
        if !self.is_in_scope(&key, &resource) {
            return self.leave_outside(key, resource);
        }
        self.forget_outside(&key);
        let uid = resource.uid().unwrap_or_default();
        let hosts = resource
            .status
            .as_ref()
            .map(|status| status.hosts.clone())
            .unwrap_or_default();
        match self.kept.get(&key) {
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
                self.let_go(&key);
                self.shared.quota_usage.add(&key, &resource.metadata);
                let before = self.ending.remove(&key);
                let (desired, receiver) = watch::channel(resource);
                let (hosts, said) = watch::channel(hosts);
                let reporter = Reporter::new(self.reports.clone(), &key.to_string());
                let leaving = CancellationToken::new();
                let life = keeper::start(
                    &self.shared,
                    &self.tasks,
                    receiver,
                    said,
                    reporter.clone(),
                    leaving.clone(),
                    before,
                );
                self.kept.insert(
                    key,
                    Kept {
                        uid,
                        desired,
                        hosts,
                        reporter,
                        leaving,
                        life,
                    },
                );
            }
        }
    }

    fn say_watched(&self) {
        let error = self.errors.values().next().cloned();
        self.reports.send_if_modified(|report| {
            let is_new = report.watch_error != error;
            report.watch_error = error;
            is_new
        });
    }
}
