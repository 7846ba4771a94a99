//! Replaces what runs.

use std::sync::Arc;

use configurator_core::configurator::{Configurator, DeletionBy};

use super::Keeper;
use super::load::{Loaded, recorder};
use super::release::hold;
use crate::controller::driver::RunContext;
use crate::controller::earlier::Earlier;
use crate::controller::finalizer::Finalizer;
use crate::controller::machine_run::MachineContext;
use crate::controller::report::KeeperReport;
use crate::controller::rollout::Rollout;
use crate::controller::state_store::StateStore;
use crate::controller::worker::{self, WorkerParts, WorkerReport, needs_ledger};
use crate::idempotency::Effects;
use crate::impersonation::acting_as;
use crate::ledger::Ledger;
use crate::observer::Notice;
use crate::sets::{InventoryStore, ServedKinds, Sets, Stores};
use crate::suspect_requests::SuspectRequests;

impl Keeper {
    /// Whether what runs differs from this in nothing but its module.
    pub(super) fn is_of_same(&self, loaded: &Loaded) -> bool {
        let Some(worker) = &self.worker else {
            return false;
        };
        let running = &worker.configurator;
        loaded.resource == worker.resource
            && **running
                == Configurator {
                    generation: running.generation,
                    ..loaded.configurator.clone()
                }
    }

    /// The old worker ends before the new one begins, so that no object is in two runs.
    pub(super) async fn replace(&mut self, loaded: Loaded) {
        let Loaded {
            configurator,
            module,
            resource,
            watched,
            namespaces,
            ..
        } = loaded;
        let is_namespaced = watched.is_namespaced;
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        let key = configurator.key.clone();
        let digest = module.digest().to_string();
        let shared = &self.shared;
        let by_finalizer = configurator.deletion.by == DeletionBy::Finalizer;
        if by_finalizer && let Err(error) = hold(&shared.client, &key).await {
            tracing::warn!(configurator = %key, %error, "the Configurator could not be held by its finalizer");
        }
        self.kind_to_release = (!by_finalizer).then(|| Box::new(resource.clone()));
        if shared.shards.is_none() {
            self.release_earlier().await;
        }
        let shared = &self.shared;
        let ledger = needs_ledger(&configurator)
            .then(|| Ledger::new(shared.config_store.clone(), &configurator.uid));
        let client = acting_as(&shared.client, configurator.service_account.as_ref());
        let finalizer =
            by_finalizer.then(|| Box::new(Finalizer::new(client.clone(), resource.clone(), &key)));
        let configurator = Arc::new(configurator);
        let sets = configurator.sets.is_some().then(|| {
            let inventories = InventoryStore::new(
                shared.client.clone(),
                shared.config_store.clone(),
                shared.state_key.clone(),
                &configurator,
            );
            let kinds = ServedKinds::new(shared.client.clone());
            let metrics = shared.metrics.sets_of(&key);
            let stores = Stores {
                config: shared.config_store.clone(),
                secrets: shared.secret_store.clone(),
                generator: shared.secret_generator.clone(),
                partitions: shared.partitions.clone(),
                key: shared.state_key.clone(),
                namespace: key.namespace.clone(),
                partition: configurator.partition.clone(),
            };
            Arc::new(Sets::new(inventories, kinds, stores, metrics))
        });
        let store = StateStore::new(
            client.clone(),
            resource.clone(),
            &configurator,
            shared.config_store.clone(),
            shared.state_key.clone(),
        );
        let recorder = recorder(shared, &configurator);
        let earlier = Earlier::new(shared, &self.desired.borrow(), recorder.clone());
        let rolled_back = self.known.rolled_back.as_ref();
        let rolled_back = rolled_back.map(|rolled_back| rolled_back.digest.clone());
        let context = Arc::new(RunContext {
            machine: store.map(|store| Arc::new(MachineContext::new(store, earlier))),
            guest: shared.guest.clone(),
            call_mode: shared.call_mode.clone(),
            rollout: Arc::new(Rollout::new(module, rolled_back)),
            executor: shared.executor.clone(),
            answers: shared.answers.clone(),
            suspects: SuspectRequests::new(configurator.concurrency),
            clock: shared.clock.clone(),
            client: client.clone(),
            host_client: shared.client.clone(),
            resource: resource.clone(),
            effects: Effects::new(
                shared.config_store.clone(),
                shared.state_key.clone(),
                &configurator,
                shared.clock.clone(),
            ),
            ledger,
            finalizer,
            sets,
            publisher: shared.publisher.clone(),
            recorder,
            observer: shared.observer.clone(),
            metrics: shared.metrics.clone(),
        });
        let before = self.known.stable.replace(digest.clone());
        if before.as_ref().is_some_and(|before| *before != digest) {
            self.known.previous = before;
        }
        self.known.running = Some((configurator.generation, digest.clone()));
        self.known.is_suspended = configurator.suspend;
        self.known.report = WorkerReport::default();
        self.rights.begin(configurator.clone(), watched);
        self.reporter.say(KeeperReport::default());
        tracing::info!(
            configurator = %key,
            digest,
            generation = configurator.generation,
            "started"
        );
        self.worker = Some(worker::start(WorkerParts {
            configurator,
            policies: shared.policies.clone(),
            run_rates: shared.run_rates.clone(),
            context,
            resource,
            is_namespaced,
            namespaces: namespaces.map(Box::new),
            client,
            host_client: shared.client.clone(),
            declarative: shared.declarative.clone(),
            publisher: shared.publisher.clone(),
            availability: shared.availability.clone(),
            command_limits: shared.command_limits,
            requesters: shared.requesters.clone(),
            tasks: self.tasks.clone(),
            seed: shared.seed,
            claim: self.claim.clone(),
            reporter: self.reporter.clone(),
        }));
        self.shared
            .observer
            .noticed(&key, &Notice::Started { digest, objects: 0 });
    }
}
