//! Carries out what the ring decides, on Leases (coordination.k8s.io/v1).
//!
//! Why no crate does it: those that there are compare the times in a Lease with their own clock, so that a wrong clock
//! makes two holders, and they do not say how much is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::ring::{Lease, LeaseId, Ring, RingAction};
use configurator_core::time::Timestamp;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::coordination::v1 as api;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Shards;
use crate::clock::SharedClock;
use crate::controller::status::MANAGER;
use crate::metrics::Metrics;
use crate::sinks::configstore::{ConfigStore, Fence};
use crate::tasks::Tasks;

/// Marks the Leases of hosts that share their objects; its value is their common name.
const LABEL: &str = "configurator.dev/ring";

/// One host's part in the election.
pub(crate) struct Election {
    shards: Arc<Shards>,
    ring: Ring,
    leases: Api<api::Lease>,
    store: Arc<dyn ConfigStore>,
    clock: SharedClock,
    metrics: Arc<Metrics>,
    started: Instant,
    under_way: FuturesUnordered<BoxFuture<'static, Done>>,
    listing: Vec<(LeaseId, Lease)>,
    /// Shards that the ring wants to hear of when they are quiet.
    ending: BTreeSet<u16>,
    /// Fences that are being raised.
    unfenced: BTreeMap<u16, Fence>,
}

/// What something under way came to.
enum Done {
    Written {
        lease: LeaseId,
        sent: (Instant, Timestamp),
        outcome: Result<Option<api::Lease>, kube::Error>,
    },
    /// A write was refused because the lease had changed, and this is how.
    Looked {
        lease: LeaseId,
        found: Result<Option<api::Lease>, kube::Error>,
    },
    Fenced {
        shard: u16,
        fence: Fence,
    },
}

impl Election {
    pub(crate) fn new(
        shards: Arc<Shards>,
        client: Client,
        store: Arc<dyn ConfigStore>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            ring: Ring::new(shards.ring_options()),
            leases: Api::namespaced(client, &shards.sharding.namespace),
            store,
            clock: shards.clock.clone(),
            metrics,
            started: Instant::now(),
            under_way: FuturesUnordered::new(),
            listing: Vec::new(),
            ending: BTreeSet::new(),
            unfenced: BTreeMap::new(),
            shards,
        }
    }

    /// Works until the host drains and has given back what it had.
    pub(crate) async fn run(mut self, tasks: Tasks) {
        let labels = format!("{LABEL}={}", self.shards.sharding.name);
        let config = watcher::Config::default().labels(&labels);
        let mut events = watch(self.leases.clone(), config).default_backoff().boxed();
        let drain = tasks.drain_token().clone();
        let mut is_leaving = false;
        let quiet = self.shards.clone();
        loop {
            let is_quiet = |shard: &u16| self.shards.is_quiet(*shard);
            for shard in self.ending.extract_if(.., is_quiet) {
                self.ring.quiet(shard);
            }
            let now = self.now();
            if self.ring.is_gone(now) {
                return;
            }
            for action in self.ring.act(now) {
                self.carry_out(action);
            }
            self.shards.note_members(&self.ring.members(now));
            tokio::select! {
                biased;
                () = drain.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    self.ring.leave();
                }
                Some(done) = self.under_way.next(), if !self.under_way.is_empty() => self.on_done(done),
                () = quiet.quiet.notified() => {}
                Some(event) = events.next() => self.on_event(event),
                () = self.clock.sleep(self.ring.tick()) => {}
            }
        }
    }

    /// Milliseconds since the start: no clock that somebody may set.
    fn now(&self) -> Timestamp {
        let since = self.started.elapsed().as_millis();
        Timestamp::from_millis(i64::try_from(since).unwrap_or(i64::MAX))
    }

    fn on_event(&mut self, event: watcher::Result<Event<api::Lease>>) {
        match event {
            Ok(Event::Init) => self.listing.clear(),
            Ok(Event::InitApply(lease)) => self.listing.extend(self.read(&lease)),
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut self.listing);
                self.ring.listed(listed, self.now());
            }
            Ok(Event::Apply(lease)) => {
                if let Some((id, lease)) = self.read(&lease) {
                    self.ring.observe(id, lease, self.now());
                }
            }
            Ok(Event::Delete(lease)) => {
                if let Some(id) = self.id_of(&lease.name_any()) {
                    self.ring.gone(&id);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the Leases cannot be watched; it is tried again");
            }
        }
    }

    fn on_done(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Written {
                lease,
                sent,
                outcome,
            } => match outcome {
                Ok(written) => {
                    let is_mine = written
                        .as_ref()
                        .and_then(|written| written.spec.as_ref()?.holder_identity.as_deref())
                        == Some(self.shards.identity());
                    if let (LeaseId::Shard(shard), true) = (&lease, is_mine) {
                        self.shards.note_renewal(*shard, sent);
                    }
                    let written = written.and_then(|written| Some(self.read(&written)?.1));
                    let sent = Timestamp::from_millis(
                        i64::try_from(sent.0.duration_since(self.started).as_millis())
                            .unwrap_or_default(),
                    );
                    self.ring.wrote(&lease, written, sent, now);
                }
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    let leases = self.leases.clone();
                    let name = self.name_of(&lease);
                    let look = async move {
                        let found = leases.get_opt(&name).await;
                        Done::Looked { lease, found }
                    };
                    self.under_way.push(look.boxed());
                }
                Err(error) => {
                    tracing::warn!(lease = self.name_of(&lease), %error, "the Lease could not be written; it is tried again");
                    self.ring.failed(&lease, now);
                }
            },
            Done::Looked { lease, found } => {
                match found {
                    Ok(Some(found)) => {
                        if let Some((id, found)) = self.read(&found) {
                            self.ring.observe(id, found, now);
                        }
                    }
                    Ok(None) => self.ring.gone(&lease),
                    Err(error) => tracing::warn!(%error, "a Lease cannot be read"),
                }
                self.ring.failed(&lease, now);
            }
            Done::Fenced { shard, fence } => {
                if self.unfenced.get(&shard) == Some(&fence) {
                    self.unfenced.remove(&shard);
                    tracing::info!(shard, "the objects of the shard are this host's");
                    self.shards.begin(shard, fence);
                    self.count();
                }
            }
        }
    }

    fn carry_out(&mut self, action: RingAction) {
        match action {
            RingAction::Claim {
                lease,
                version,
                transitions,
            } => {
                let body = self.claim(&lease, version.as_deref(), transitions);
                let leases = self.leases.clone();
                let name = self.name_of(&lease);
                self.write(lease, async move {
                    let written = if version.is_some() {
                        let params = PatchParams::default();
                        leases.patch(&name, &params, &Patch::Merge(&body)).await
                    } else {
                        let lease =
                            serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
                        leases.create(&PostParams::default(), &lease).await
                    };
                    written.map(Some)
                });
            }
            RingAction::Release { lease, version } => {
                let body = json!({
                    "metadata": {"resourceVersion": version},
                    "spec": {"holderIdentity": null, "renewTime": self.wall_clock()},
                });
                let leases = self.leases.clone();
                let name = self.name_of(&lease);
                self.write(lease, async move {
                    let params = PatchParams::default();
                    leases
                        .patch(&name, &params, &Patch::Merge(&body))
                        .await
                        .map(Some)
                });
            }
            RingAction::Remove { lease, version } => {
                let leases = self.leases.clone();
                let name = self.name_of(&lease);
                let params = DeleteParams {
                    preconditions: Some(Preconditions {
                        resource_version: Some(version),
                        uid: None,
                    }),
                    ..DeleteParams::default()
                };
                self.write(lease, async move {
                    leases.delete(&name, &params).await.map(|_| None)
                });
            }
            RingAction::Begin { shard, version } => self.raise(shard, &version),
            RingAction::Drain(shard) => {
                tracing::info!(shard, "the shard is given back when its runs have ended");
                self.unfenced.remove(&shard);
                self.ending.insert(shard);
                self.shards.drain(shard);
                self.count();
            }
            RingAction::Lose(shard) => {
                tracing::warn!(
                    shard,
                    "the shard was lost: its Lease was not renewed in time, or another host has it"
                );
                self.metrics.shard_lost();
                self.unfenced.remove(&shard);
                self.ending.insert(shard);
                self.shards.lose(shard);
                self.count();
            }
        }
    }

    fn count(&self) {
        self.metrics.shards(self.shards.held().len());
    }

    /// From now on nothing of whoever had the shard before comes through to the config store. Only then do runs begin.
    fn raise(&mut self, shard: u16, version: &str) {
        let name = format!("{}/{shard}", self.shards.sharding.name);
        let number = version.parse().unwrap_or_default();
        let fence = Fence::new(&name, number, self.shards.identity());
        let store = self.store.clone();
        let clock = self.clock.clone();
        self.unfenced.insert(shard, fence.clone());
        let raise = async move {
            let mut failures = 0;
            while let Err(fault) = store.raise(&fence).await {
                failures += 1;
                tracing::warn!(shard, %fault, "the shard waits for the config store");
                let wait = Duration::from_millis(500 << failures.min(3));
                clock
                    .sleep(jittered(wait, failures ^ u64::from(shard)))
                    .await;
            }
            Done::Fenced { shard, fence }
        };
        self.under_way.push(raise.boxed());
    }

    fn write(
        &self,
        lease: LeaseId,
        write: impl Future<Output = Result<Option<api::Lease>, kube::Error>> + Send + 'static,
    ) {
        let sent = (Instant::now(), self.clock.now());
        let patience = self.shards.sharding.lease / 3;
        let write = async move {
            let outcome = tokio::time::timeout(patience, write).await;
            let outcome =
                outcome.unwrap_or_else(|elapsed| Err(kube::Error::Service(Box::new(elapsed))));
            Done::Written {
                lease,
                sent,
                outcome,
            }
        };
        self.under_way.push(write.boxed());
    }

    fn claim(&self, lease: &LeaseId, version: Option<&str>, transitions: u32) -> Value {
        let now = self.wall_clock();
        let sharding = &self.shards.sharding;
        let mut spec = json!({
            "holderIdentity": self.shards.identity(),
            "leaseDurationSeconds": sharding.lease.as_secs(),
            "renewTime": now,
            "leaseTransitions": transitions,
        });
        if let (None, Some(spec)) = (version, spec.as_object_mut()) {
            spec.insert("acquireTime".into(), now);
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self.name_of(lease),
                "resourceVersion": version,
                "labels": {LABEL: sharding.name, "app.kubernetes.io/managed-by": MANAGER},
            },
            "spec": spec,
        })
    }

    /// For people who read a Lease; nothing is decided by it.
    fn wall_clock(&self) -> Value {
        let millis = self.clock.now().as_millis();
        let now = k8s_openapi::jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
        format!("{now:.6}").into()
    }

    fn read(&self, lease: &api::Lease) -> Option<(LeaseId, Lease)> {
        let id = self.id_of(lease.metadata.name.as_deref()?)?;
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        let lease = Lease {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            version: lease.resource_version().unwrap_or_default(),
            duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            transitions: u32::try_from(spec.lease_transitions.unwrap_or_default())
                .unwrap_or_default(),
        };
        Some((id, lease))
    }

    fn name_of(&self, lease: &LeaseId) -> String {
        let name = &self.shards.sharding.name;
        match lease {
            LeaseId::Host(host) => format!("{name}-host-{host}"),
            LeaseId::Shard(shard) => format!("{name}-shard-{shard}"),
        }
    }

    fn id_of(&self, name: &str) -> Option<LeaseId> {
        let rest = name.strip_prefix(&self.shards.sharding.name)?;
        if let Some(host) = rest.strip_prefix("-host-") {
            return Some(LeaseId::Host(host.to_owned()));
        }
        let shard = rest.strip_prefix("-shard-")?;
        Some(LeaseId::Shard(shard.parse().ok()?))
    }
}
