//! Watches over the servers behind the sinks, and says which are unavailable.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::{Fault, Reaction};
use configurator_core::parking::{Parking, Refusal, Server, Unavailable, is_of_object};
use configurator_core::request::{Operation, SinkName};
use configurator_core::result::Answer;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};

use crate::clock::{SharedClock, until};
use crate::metrics::Metrics;
use crate::sinks::{Scope, Sink, Sinks};
use crate::tasks::Tasks;

/// What is known of the servers. Shared by everything that sends.
pub struct Availability {
    parking: Mutex<Parking>,
    /// Wakes the prober.
    changed: Notify,
    unavailable: watch::Sender<BTreeMap<Server, Unavailable>>,
    clock: SharedClock,
    metrics: Arc<Metrics>,
}

impl Availability {
    /// Every server is available. `seed` decides the jitter of probes; a server that asks to be left alone for longer than
    /// `max_retry_after` is probed after that.
    #[must_use]
    pub fn new(
        seed: u64,
        max_retry_after: Duration,
        clock: SharedClock,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            parking: Mutex::new(Parking::new(seed, max_retry_after)),
            changed: Notify::new(),
            unavailable: watch::Sender::default(),
            clock,
            metrics,
        })
    }

    /// The servers that are unavailable, from now on.
    #[must_use]
    pub fn unavailable(&self) -> watch::Receiver<BTreeMap<Server, Unavailable>> {
        self.unavailable.subscribe()
    }

    /// The same sinks; what their servers answer is observed.
    #[must_use]
    pub fn observe(self: &Arc<Self>, sinks: Sinks) -> Sinks {
        let observed = |inner| -> Arc<dyn Sink> {
            Arc::new(Observed {
                inner,
                availability: self.clone(),
            })
        };
        Sinks {
            kubernetes: observed(sinks.kubernetes),
            configstore: observed(sinks.configstore),
            secretstore: observed(sinks.secretstore),
            http: observed(sinks.http),
            extension: observed(sinks.extension),
        }
    }

    /// The host itself could not reach the server behind this sink: it is probed.
    pub fn suspect(&self, sink: SinkName) {
        let now = self.clock.now();
        self.parking().suspect(sink, now);
        self.changed.notify_one();
    }

    fn note(
        &self,
        authorized: &AuthorizedOperation,
        scope: &Scope,
        answer: Result<&Answer, &Fault>,
    ) {
        let now = self.clock.now();
        let operation = authorized.operation();
        let server = Server::of(operation);
        let refused = match answer {
            Err(fault) if fault.kind.reaction() == Reaction::Park => fault,
            // A server that refuses a request for good is there.
            Err(Fault {
                status: Some(_), ..
            })
            | Ok(_) => {
                let mut parking = self.parking();
                if parking.observe_success(&server, now) {
                    self.publish(&server, &parking);
                }
                return;
            }
            Err(_) => return,
        };
        if let Operation::Kubernetes(request) = operation
            && refused.status.is_some()
            && is_of_object(request)
        {
            return;
        }
        let refusal = Refusal {
            object: scope.object.clone(),
            namespace: authorized.namespace().to_owned(),
            status: refused.status,
            retry_after: refused.retry_after,
        };
        let mut parking = self.parking();
        if parking.observe_failure(&server, refusal, now) {
            self.publish(&server, &parking);
        }
        drop(parking);
        self.changed.notify_one();
    }

    fn publish(&self, server: &Server, parking: &Parking) {
        let unavailable = parking.unavailable();
        match unavailable.get(server) {
            Some(Unavailable::Down) => {
                tracing::warn!(%server, "the server is down; the runs that need it are parked");
            }
            Some(Unavailable::Refusing) => {
                tracing::warn!(%server, "the server refuses several objects alike; their runs are parked");
            }
            None => tracing::info!(%server, "the server is back; its runs go on"),
        }
        let is_parked = unavailable.keys().any(|one| one.sink == server.sink);
        self.metrics.parked(server.sink, is_parked);
        self.unavailable.send_replace(unavailable);
    }

    fn parking(&self) -> MutexGuard<'_, Parking> {
        self.parking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink whose answers tell whether its servers are available.
struct Observed {
    inner: Arc<dyn Sink>,
    availability: Arc<Availability>,
}

#[async_trait]
impl Sink for Observed {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let answer = self.inner.execute(operation, scope).await;
        self.availability.note(operation, scope, answer.as_ref());
        answer
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

/// Probes the servers that may be unavailable, and announces what changes.
pub struct Prober {
    /// Probed.
    pub sinks: Sinks,
    /// What is known.
    pub availability: Arc<Availability>,
}

impl Prober {
    /// Works until the host drains. Servers are probed side by side, so that one that does not answer delays no other.
    pub async fn run(self, tasks: Tasks) {
        let Self {
            sinks,
            availability,
        } = self;
        let clock = &availability.clock;
        let mut probes = FuturesUnordered::new();
        loop {
            let due = availability.parking().due(clock.now());
            for server in due {
                let sink = sinks.get(server.sink).clone();
                probes.push(async move { (sink.probe().await, server) });
            }
            let next = availability.parking().next_deadline();
            tokio::select! {
                biased;
                () = tasks.drain_token().cancelled() => return,
                Some((answer, server)) = probes.next(), if !probes.is_empty() => {
                    if let Err(fault) = &answer {
                        tracing::debug!(%server, %fault, "the probe failed");
                    }
                    let answer = answer.map_err(|fault| fault.retry_after);
                    let mut parking = availability.parking();
                    if parking.probed(&server, answer, clock.now()) {
                        availability.publish(&server, &parking);
                    }
                }
                () = availability.changed.notified() => {}
                () = until(clock.clone(), next) => {}
            }
        }
    }
}
