//! Carries out what the ring decides, on Leases (coordination.k8s.io/v1).
//!
//! Why no crate does it: those that there are compare the times in a Lease with their own clock, so that a wrong clock
//! makes two holders, and they do not say how much is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::fault::Fault;
use configurator_core::request::ObjectRef;
use configurator_core::ring::{Asked, Lease, LeaseId, Ring, RingAction};
use configurator_core::time::Timestamp;
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::coordination::v1 as api;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Shards;
use super::leases::{self, GROUP_LABEL, fence_name, wall_clock};
use crate::clock::SharedClock;
use crate::controller::status::MANAGER;
use crate::events::{HostEvent, Publisher, Subject};
use crate::metrics::Metrics;
use crate::sinks::configstore::{ConfigStore, Fence, StandingFence};
use crate::tasks::Tasks;

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
    listing_asked: Asked,
    /// The fence of each shard, as it was read before the shard was claimed.
    standing: BTreeMap<u16, StandingFence>,
    /// Fences that are being raised, and what was begun with the shard before.
    unfenced: BTreeMap<u16, AbortHandle>,
    /// Shards whose Lease went back: until then another host may work in them, and they are not given back.
    unsettled: BTreeMap<u16, Timestamp>,
    publisher: Publisher,
}

/// What something under way came to.
enum Done {
    Written {
        lease: LeaseId,
        sent: (Instant, Timestamp),
        outcome: Result<Written, WriteError>,
    },
    /// A write was refused because the lease had changed, and this is how.
    Looked {
        lease: LeaseId,
        asked: Asked,
        found: Result<Option<api::Lease>, kube::Error>,
    },
    /// The fence of a shard stands. `is_behind`: the Lease is older than the fence before.
    Fenced {
        shard: u16,
        fence: Fence,
        is_behind: bool,
    },
    /// No other host works in the shard any longer.
    Settled { shard: u16, fence: Fence },
    /// It was cancelled.
    Abandoned,
}

/// A Lease that was written.
struct Written {
    /// `None`: it was removed.
    lease: Option<api::Lease>,
    /// The fence that stood before, if a shard was claimed.
    standing: Option<StandingFence>,
}

/// Why a Lease was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// A shard is not claimed without its fence.
    #[error("{0}")]
    Store(Fault),
}

impl Election {
    pub(crate) fn new(
        shards: Arc<Shards>,
        client: Client,
        store: Arc<dyn ConfigStore>,
        metrics: Arc<Metrics>,
        publisher: Publisher,
    ) -> Self {
        let ring = Ring::new(shards.ring_options());
        Self {
            listing_asked: ring.asked(),
            ring,
            leases: Api::namespaced(client, &shards.sharding.namespace),
            store,
            clock: shards.clock.clone(),
            metrics,
            started: Instant::now(),
            under_way: FuturesUnordered::new(),
            listing: Vec::new(),
            ending: BTreeSet::new(),
            standing: BTreeMap::new(),
            unfenced: BTreeMap::new(),
            unsettled: BTreeMap::new(),
            publisher,
            shards,
        }
    }

    /// Works until the host drains and has given back what it had.
    pub(crate) async fn run(mut self, tasks: Tasks) {
        let labels = format!("{GROUP_LABEL}={}", self.shards.sharding.name);
        let config = watcher::Config::default().labels(&labels);
        let leases = self.leases.clone();
        let watch = || {
            watch(leases.clone(), config.clone())
                .default_backoff()
                .boxed()
        };
        let mut events = watch();
        let drain = tasks.drain_token().clone();
        let mut is_leaving = false;
        let quiet = self.shards.clone();
        loop {
            let now = self.now();
            self.unsettled.retain(|_, until| now < *until);
            let is_quiet =
                |shard: &u16| self.shards.is_quiet(*shard) && !self.unsettled.contains_key(shard);
            for shard in self.ending.extract_if(.., is_quiet) {
                self.ring.quiet(shard);
            }
            let rolled_back = self.ring.take_rolled_back();
            if !rolled_back.is_empty() {
                for lease in rolled_back {
                    let message = "the API server has the Lease in an older state than it was: the control plane was restored from a backup. What was known of Leases is read again. Watches of other objects may see no change until the host is restarted";
                    self.warn_about(&lease, message);
                }
                // A watch from a version in the future reports nothing.
                events = watch();
                // The claims of Configurators are Leases too.
                self.shards.renew_tenure();
            }
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
            Ok(Event::Init) => {
                self.listing.clear();
                self.listing_asked = self.ring.asked();
            }
            Ok(Event::InitApply(lease)) => self.listing.extend(self.read(&lease)),
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut self.listing);
                self.ring.listed(listed, self.listing_asked, self.now());
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
                Ok(Written {
                    lease: written,
                    standing,
                }) => {
                    let is_mine = written
                        .as_ref()
                        .and_then(|written| written.spec.as_ref()?.holder_identity.as_deref())
                        == Some(self.shards.identity());
                    if let (LeaseId::Shard(shard), true) = (&lease, is_mine) {
                        self.shards.note_renewal(*shard, sent);
                        if let Some(standing) = standing {
                            self.standing.insert(*shard, standing);
                        }
                    }
                    let written = written.and_then(|written| Some(self.read(&written)?.1));
                    let sent = Timestamp::from_millis(
                        i64::try_from(sent.0.duration_since(self.started).as_millis())
                            .unwrap_or_default(),
                    );
                    self.ring.wrote(&lease, written, sent, now);
                }
                Err(WriteError::Api(kube::Error::Api(status)))
                    if matches!(status.code, 404 | 409) =>
                {
                    let leases = self.leases.clone();
                    let name = self.name_of(&lease);
                    let asked = self.ring.asked();
                    let look = async move {
                        let found = leases.get_opt(&name).await;
                        Done::Looked {
                            lease,
                            asked,
                            found,
                        }
                    };
                    self.under_way.push(look.boxed());
                }
                Err(error) => {
                    tracing::warn!(lease = self.name_of(&lease), %error, "the Lease could not be written; it is tried again");
                    self.ring.failed(&lease, now);
                }
            },
            Done::Looked {
                lease,
                asked,
                found,
            } => {
                match found {
                    Ok(Some(found)) => {
                        if let Some((id, found)) = self.read(&found) {
                            self.ring.found(id, found, asked, now);
                        }
                    }
                    Ok(None) => self.ring.gone(&lease),
                    Err(error) => tracing::warn!(%error, "a Lease cannot be read"),
                }
                self.ring.failed(&lease, now);
            }
            Done::Fenced {
                shard,
                fence,
                is_behind: false,
            }
            | Done::Settled { shard, fence } => {
                self.unfenced.remove(&shard);
                self.unsettled.remove(&shard);
                tracing::info!(shard, "the objects of the shard are this host's");
                self.shards.begin(shard, fence);
                self.count();
            }
            Done::Fenced {
                shard,
                fence,
                is_behind: true,
            } => {
                let message = "the config store knows of a later owner of the shard than its Lease: the control plane was restored from a backup, or the Lease was deleted. The host waits until nobody else can be working in the shard";
                self.warn_about(&LeaseId::Shard(shard), message);
                let sharding = &self.shards.sharding;
                let span = sharding.lease + sharding.patience();
                self.unsettled.insert(shard, now.after(span));
                let clock = self.clock.clone();
                self.begin_fencing(shard, async move {
                    clock.sleep(span).await;
                    Done::Settled { shard, fence }
                });
            }
            Done::Abandoned => {}
        }
    }

    /// Starts a task that a shard waits for before it begins. It is cancelled when the shard is lost.
    fn begin_fencing(&mut self, shard: u16, fencing: impl Future<Output = Done> + Send + 'static) {
        let (fencing, handle) = abortable(fencing);
        self.unfenced.insert(shard, handle);
        let fencing = async move { fencing.await.unwrap_or(Done::Abandoned) };
        self.under_way.push(fencing.boxed());
    }

    fn call_off(&mut self, shard: u16) {
        if let Some(handle) = self.unfenced.remove(&shard) {
            handle.abort();
        }
    }

    /// Reports that a Lease went back to an earlier state.
    fn warn_about(&self, lease: &LeaseId, message: &str) {
        let name = self.name_of(lease);
        tracing::warn!(lease = name, "{message}");
        self.metrics.lease_rolled_back();
        let subject = Subject {
            api_version: "coordination.k8s.io/v1".into(),
            kind: "Lease".into(),
            // It is published where Events about Configurators are, for which the host has the right.
            key: ObjectRef {
                namespace: String::new(),
                name,
            },
            uid: String::new(),
        };
        let event = HostEvent::warning(subject, "LeaseRolledBack", message.to_owned());
        self.publisher.publish(event);
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
                let store = self.store.clone();
                let fence = match &lease {
                    LeaseId::Shard(shard) if self.ring.ends(*shard).is_none() => {
                        Some(self.fence_name(*shard))
                    }
                    LeaseId::Shard(_) | LeaseId::Host(_) => None,
                };
                self.write(lease, async move {
                    // What is read before the claim is replaced after it.
                    let standing = match fence {
                        Some(fence) => {
                            let read = StandingFence::read(store.as_ref(), &fence).await;
                            Some(read.map_err(WriteError::Store)?)
                        }
                        None => None,
                    };
                    let lease = if version.is_some() {
                        let params = PatchParams::default();
                        leases.patch(&name, &params, &Patch::Merge(&body)).await?
                    } else {
                        let lease =
                            serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
                        leases.create(&PostParams::default(), &lease).await?
                    };
                    Ok(Written {
                        lease: Some(lease),
                        standing,
                    })
                });
            }
            RingAction::Release { lease, version } => {
                let body = json!({
                    "metadata": {"resourceVersion": version},
                    "spec": {"holderIdentity": null, "renewTime": wall_clock(&self.clock)},
                });
                let leases = self.leases.clone();
                let name = self.name_of(&lease);
                self.write(lease, async move {
                    let params = PatchParams::default();
                    let lease = leases.patch(&name, &params, &Patch::Merge(&body)).await?;
                    Ok(Written {
                        lease: Some(lease),
                        standing: None,
                    })
                });
            }
            RingAction::Remove { lease, version } => {
                let leases = self.leases.clone();
                let name = self.name_of(&lease);
                self.write(lease, async move {
                    leases::delete(&leases, &name, Some(version)).await?;
                    Ok(Written {
                        lease: None,
                        standing: None,
                    })
                });
            }
            RingAction::Begin { shard, transitions } => self.raise(shard, transitions),
            RingAction::Drain(shard) => {
                tracing::info!(shard, "the shard is given back when its runs have ended");
                self.call_off(shard);
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
                self.call_off(shard);
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
    ///
    /// The fence takes the place of the one that was read before the shard was claimed. When another has been raised meanwhile, it is
    /// read again, and only a renewal that was sent after that shows that the shard is still this host's.
    fn raise(&mut self, shard: u16, transitions: u32) {
        let name = self.fence_name(shard);
        let shards = self.shards.clone();
        let store = self.store.clone();
        let clock = self.clock.clone();
        let mut standing = self.standing.remove(&shard);
        let raise = async move {
            let mut failures = 0;
            loop {
                let raising = async {
                    let known = match standing.take() {
                        Some(known) => known,
                        None => {
                            let asked = Instant::now();
                            let read = StandingFence::read(store.as_ref(), &name).await?;
                            shards.renewed_after(shard, asked).await;
                            read
                        }
                    };
                    let fence = known.next(shards.identity(), transitions);
                    let is_raised = fence.raise(store.as_ref(), &known).await?;
                    let is_behind = known.is_ahead_of(&fence);
                    Ok::<_, Fault>(is_raised.then_some((fence, is_behind)))
                };
                match raising.await {
                    Ok(Some((fence, is_behind))) => {
                        break Done::Fenced {
                            shard,
                            fence,
                            is_behind,
                        };
                    }
                    Ok(None) => {}
                    Err(fault) => {
                        failures += 1;
                        tracing::warn!(shard, %fault, "the shard waits for the config store");
                        let wait = Duration::from_millis(500 << failures.min(3));
                        let chance = failures ^ u64::from(shard);
                        clock.sleep(jittered(wait, chance)).await;
                    }
                }
            }
        };
        self.begin_fencing(shard, raise);
    }

    fn fence_name(&self, shard: u16) -> String {
        fence_name(&self.shards.sharding.name, shard)
    }

    fn write(
        &self,
        lease: LeaseId,
        write: impl Future<Output = Result<Written, WriteError>> + Send + 'static,
    ) {
        let sent = (Instant::now(), self.clock.now());
        let patience = self.shards.sharding.lease / 3;
        let write = async move {
            let outcome = tokio::time::timeout(patience, write).await;
            let outcome = outcome
                .unwrap_or_else(|elapsed| Err(kube::Error::Service(Box::new(elapsed)).into()));
            Done::Written {
                lease,
                sent,
                outcome,
            }
        };
        self.under_way.push(write.boxed());
    }

    fn claim(&self, lease: &LeaseId, version: Option<&str>, transitions: u32) -> Value {
        let now = wall_clock(&self.clock);
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
                "labels": {GROUP_LABEL: sharding.name, "app.kubernetes.io/managed-by": MANAGER},
            },
            "spec": spec,
        })
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
        let group = &self.shards.sharding.name;
        let rest = name.strip_prefix(group)?;
        if let Some(host) = rest.strip_prefix("-host-") {
            return Some(LeaseId::Host(host.to_owned()));
        }
        leases::shard_of(group, name).map(LeaseId::Shard)
    }
}
