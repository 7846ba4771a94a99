//! Keeps one Configurator running: loads its module, replaces its worker when it changes, writes its status.

mod account;
mod load;
mod release;
mod rollout;

use std::sync::Arc;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::configurator::{Configurator, DeletionBy};
use configurator_core::time::Timestamp;
use configurator_guest::module::Module;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::ResourceExt as _;
use kube::api::ApiResource;
use tokio::sync::watch;

use self::load::{Loaded, earlier, load, recorder};
pub(crate) use self::load::{check_memory, check_module};
use self::release::hold;
use super::canary::{Canary, ROLLBACK_ANNOTATION};
use super::driver::RunContext;
use super::finalizer::Finalizer;
use super::machine_run::MachineContext;
use super::parameters::ParameterSources;
use super::policies::{NamespacePolicy, PolicyChanges};
use super::rbac_changes::NamespaceRbac;
use super::report::{KeeperReport, Reporter};
use super::rights::{Reviewed, RightsReview, Verdict, wait_for_rights};
use super::rollout::Rollout;
use super::state_store::StateStore;
use super::status::{Known, Refusal};
use super::sweep::{remove_records, retire_books};
use super::voice::{Said, Voice};
use super::worker::{self, WorkerHandle, WorkerParts, WorkerReport, needs_ledger};
use crate::clock::until;
use crate::declaration::{self, FlowSet};
use crate::events::{HostEvent, Subject};
use crate::host::Shared;
use crate::idempotency::Effects;
use crate::impersonation::acting_as;
use crate::ledger::Ledger;
use crate::module_source::SourceError;
use crate::observer::Notice;
use crate::resource::{self, ModeStatus};
use crate::shards::changed;
use crate::suspect_requests::SuspectRequests;
use crate::tasks::{TaskKind, Tasks, if_some};

/// The wait after a change of rights, which often come several at a time, before what is missing is looked for again.
const AFTER_RBAC: Duration = Duration::from_millis(500);
/// The longest wait before a module or a kind that was missing is looked for again.
const MAX_LOOK_AGAIN: Duration = Duration::from_secs(15);
/// A new value of this annotation has every object that was given up tried again at once.
pub const RETRY_ANNOTATION: &str = "configurator.dev/retry";

/// What a keeper is to keep running.
pub type Desired = watch::Receiver<Arc<resource::Configurator>>;

/// Whether a keeper still works.
#[derive(Debug)]
pub struct KeeperLife(watch::Receiver<()>);

impl KeeperLife {
    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Returns when it has ended.
    pub async fn end(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

pub(crate) struct Keeper {
    shared: Arc<Shared>,
    tasks: Tasks,
    desired: Desired,
    reporter: Reporter,
    worker: Option<WorkerHandle>,
    rights: RightsReview,
    known: Known,
    voice: Voice,
    look_again: Option<Timestamp>,
    canary: Option<Canary>,
    /// When the next decision about the canary is due.
    decide_at: Option<Timestamp>,
    /// The digest of the last canary that was promoted, and the module before it. Another host may still roll it back.
    promoted: Option<(String, Arc<Module>)>,
    /// A module that is being fetched and checked, while what runs goes on.
    loading: Option<BoxFuture<'static, Arrived>>,
    /// What the module's source said when it was last fetched, and when it is asked again.
    source: Option<String>,
    ask_source: Option<Timestamp>,
    asking: Option<BoxFuture<'static, Result<Option<String>, SourceError>>>,
    failures: u32,
    retried: Option<String>,
    /// The module that a person asked for last, to be taken for all objects at once.
    asked_back: Option<String>,
    /// The kind whose objects may have finalizers of an earlier generation, which the current one does not place.
    kind_to_release: Option<ApiResource>,
    flows: watch::Receiver<Option<Arc<FlowSet>>>,
    /// How often they had changed when they were last looked at.
    flow_changes: u64,
    /// Changes of the policies for its namespace; `None` for a ClusterConfigurator.
    policies: Option<PolicyChanges>,
    /// What they allowed when it was last loaded.
    policy: Arc<NamespacePolicy>,
    /// Where its parameters are from, apart from itself.
    parameters: Option<ParameterSources>,
    /// Changes of the rights of its ServiceAccount; `None` if it acts as the host.
    rbac: Option<NamespaceRbac>,
}

/// What a keeper deals with next.
enum News {
    /// The resource has changed.
    Desired,
    /// Flows that are resources of their own have changed.
    Flows,
    /// The policies for namespaces have changed.
    Policies,
    /// A source of its parameters has changed.
    Parameters,
    /// The rights of its ServiceAccount may have changed.
    Rbac,
    /// Rights have been reviewed.
    Reviewed(Reviewed),
    /// The worker has reported.
    Report(WorkerReport),
    /// The shards of this host have changed.
    Shards,
    /// Another host has said something in the status.
    Said,
    /// The status is to be written.
    StatusDue,
    /// The module's source is to be asked whether it has another version.
    SourceDue,
    /// A decision about the canary is due.
    CanaryDecisionDue,
    /// The source has answered.
    Version(Result<Option<String>, SourceError>),
    /// A module has been fetched and checked.
    Loaded(Box<Arrived>),
    /// What was refused is to be looked at again.
    LookAgain,
}

/// Why a keeper ends.
enum End {
    /// The host drains.
    Drained,
    /// The resource is gone.
    Deleted,
}

/// What came of fetching and checking the module of a resource.
struct Arrived {
    resource: Arc<resource::Configurator>,
    /// What the source said before, so that what has changed while it was fetched is fetched again.
    version: Result<Option<String>, SourceError>,
    loaded: Result<Loaded, Refusal>,
}

impl Keeper {
    pub(crate) fn new(
        shared: Arc<Shared>,
        tasks: Tasks,
        desired: Desired,
        said: Said,
        reporter: Reporter,
    ) -> Self {
        let known = known_before(&desired.borrow());
        let rights = RightsReview::new(shared.client.clone(), shared.clock.clone(), shared.seed);
        let voice = Voice::new(&shared, &desired.borrow(), said);
        let flows = shared.flows.subscribe();
        let namespace = desired.borrow().key().namespace;
        let rbac = (!namespace.is_empty()).then(|| shared.rbac_changes.of_namespace(&namespace));
        Self {
            policies: (!namespace.is_empty()).then(|| shared.policies.changes()),
            policy: shared.policies.of(&namespace),
            rbac,
            parameters: None,
            flows,
            flow_changes: 0,
            shared,
            tasks,
            desired,
            reporter,
            worker: None,
            rights,
            known,
            voice,
            look_again: None,
            canary: None,
            decide_at: None,
            promoted: None,
            loading: None,
            source: None,
            ask_source: None,
            asking: None,
            failures: 0,
            retried: None,
            asked_back: None,
            kind_to_release: None,
        }
    }

    /// Works until the host drains or the Configurator is gone (its sender is dropped).
    ///
    /// Each piece of news is dealt with in a box, so that a keeper that waits is small.
    pub(crate) async fn run(mut self: Box<Self>) {
        Box::pin(self.begin()).await;
        let shards = self.shared.shards.as_ref();
        let mut changes = shards.map(|shards| shards.changes());
        let end = loop {
            let news = match self.next(&mut changes).await {
                Ok(news) => news,
                Err(end) => break end,
            };
            Box::pin(self.on(news)).await;
        };
        match end {
            End::Deleted => Box::pin(self.end()).await,
            End::Drained => {
                if let Some(worker) = self.worker.take() {
                    worker.stop().await;
                }
                Box::pin(self.voice.fall_silent()).await;
            }
        }
    }

    async fn begin(&mut self) {
        let resource = self.desired.borrow_and_update().clone();
        self.flows.mark_unchanged();
        self.has_other_flows(&resource);
        self.retried = resource.annotations().get(RETRY_ANNOTATION).cloned();
        self.goes_back(&resource);
        self.take_over(&resource).await;
        self.say().await;
    }

    /// Waits for news.
    async fn next(&mut self, changes: &mut Option<watch::Receiver<()>>) -> Result<News, End> {
        let clock = &self.shared.clock;
        let again = until(clock.clone(), self.look_again);
        let status = until(clock.clone(), self.voice.due());
        let source = until(clock.clone(), self.ask_source);
        let decision = until(clock.clone(), self.decide_at);
        tokio::select! {
            biased;
            () = self.tasks.drain_token().cancelled() => Err(End::Drained),
            changed = self.desired.changed() => match changed {
                Ok(()) => Ok(News::Desired),
                Err(_) => Err(End::Deleted),
            },
            Ok(()) = self.flows.changed() => Ok(News::Flows),
            () = if_some(self.policies.as_mut().map(PolicyChanges::next)) => Ok(News::Policies),
            () = if_some(self.parameters.as_mut().map(ParameterSources::changed)) => Ok(News::Parameters),
            () = if_some(self.rbac.as_mut().map(NamespaceRbac::changed)) => Ok(News::Rbac),
            reviewed = self.rights.next() => Ok(News::Reviewed(reviewed)),
            report = next_report(self.worker.as_mut()) => Ok(News::Report(report)),
            () = changed(changes.as_mut()) => Ok(News::Shards),
            () = self.voice.hear() => Ok(News::Said),
            () = status => Ok(News::StatusDue),
            () = source => Ok(News::SourceDue),
            () = decision => Ok(News::CanaryDecisionDue),
            answered = next_of(&mut self.asking) => Ok(News::Version(answered)),
            arrived = next_of(&mut self.loading) => Ok(News::Loaded(Box::new(arrived))),
            () = again => Ok(News::LookAgain),
        }
    }

    async fn on(&mut self, news: News) {
        match news {
            News::Desired => {
                let resource = self.desired.borrow_and_update().clone();
                self.failures = 0;
                self.retry(&resource);
                let goes_back = self.goes_back(&resource);
                self.take_over(&resource).await;
                // This replaces a load for a canary.
                if goes_back {
                    self.load(&resource);
                }
                self.say().await;
            }
            News::Flows => {
                let resource = self.desired.borrow().clone();
                if self.has_other_flows(&resource) && self.may_be_of_other_flows(&resource) {
                    self.look_again = None;
                    self.load(&resource);
                    self.say().await;
                }
            }
            News::Policies => {
                let resource = self.desired.borrow().clone();
                let policy = self.shared.policies.of(&resource.key().namespace);
                if policy != self.policy && resource.metadata.deletion_timestamp.is_none() {
                    self.failures = 0;
                    self.load(&resource);
                    // Runs that begin from now on may do what is allowed now.
                    if let Some(worker) = &self.worker {
                        worker.retry();
                    }
                }
            }
            News::Parameters => {
                let resource = self.desired.borrow().clone();
                if resource.metadata.deletion_timestamp.is_none() {
                    self.failures = 0;
                    self.load(&resource);
                }
            }
            News::Rbac => {
                self.rights.look_again();
                // What it is refused for may have been granted.
                let now = self.shared.clock.now();
                self.look_again = self.look_again.map(|due| due.min(now.after(AFTER_RBAC)));
            }
            News::Reviewed(reviewed) => {
                self.on_reviewed(reviewed);
                // An API server checks whether objects may be watched only when a watch begins. This ends what runs.
                if self.rights.refuse_watching() {
                    let resource = self.desired.borrow().clone();
                    self.load(&resource);
                }
                self.write_status().await;
            }
            News::Report(report) => {
                self.rights.look_at(&report);
                self.known.report = report;
                self.voice.speak_soon();
            }
            News::Shards => self.voice.speak_soon(),
            News::Said => {
                self.follow_other_hosts();
                self.voice.speak_soon();
            }
            News::StatusDue => self.write_status().await,
            News::SourceDue => self.ask_source(),
            News::CanaryDecisionDue => self.decide_canary(),
            News::Version(answered) => self.on_version(answered),
            News::Loaded(arrived) => {
                // The future of this is larger than all others, so it has a box of its own.
                Box::pin(self.on_loaded(*arrived)).await;
                self.write_status().await;
            }
            News::LookAgain => {
                let resource = self.desired.borrow().clone();
                self.take_over(&resource).await;
                self.say().await;
            }
        }
    }

    /// The flows that are resources of their own.
    fn shared_flows(&self) -> Arc<FlowSet> {
        self.flows.borrow().clone().unwrap_or_default()
    }

    /// Whether flows that the Configurator can use have changed since this was asked last.
    fn has_other_flows(&mut self, resource: &resource::Configurator) -> bool {
        let changes = self.shared_flows().changes(&resource.key().namespace);
        std::mem::replace(&mut self.flow_changes, changes) != changes
    }

    /// Whether the Configurator says something else with the flows as they are now than what runs, or what is loaded or was refused may have been of
    /// flows that are no more.
    fn may_be_of_other_flows(&self, resource: &resource::Configurator) -> bool {
        if resource.spec.machine.is_none() || resource.metadata.deletion_timestamp.is_some() {
            return false;
        }
        if self.loading.is_some() || self.known.refusal.is_some() {
            return true;
        }
        let now = declaration::check(resource, &self.shared_flows());
        let running = self
            .worker
            .as_ref()
            .map(|worker| &worker.configurator.machine);
        match (now, running) {
            (Ok(now), Some(running)) => now.machine != *running,
            _ => true,
        }
    }

    /// Has what was given up tried again, when a person asks for it.
    fn retry(&mut self, resource: &resource::Configurator) {
        let asked = resource.annotations().get(RETRY_ANNOTATION).cloned();
        if asked == self.retried || asked.is_none() {
            return;
        }
        self.retried = asked;
        if let Some(worker) = &self.worker {
            worker.retry();
        }
    }

    /// Returns whether a person has just requested a module for all objects at once. It may be pinned already, and be the canary.
    fn goes_back(&mut self, resource: &resource::Configurator) -> bool {
        let asked = resource.annotations().get(ROLLBACK_ANNOTATION).cloned();
        let is_news = asked.is_some() && asked != self.asked_back;
        self.asked_back = asked;
        is_news && resource.metadata.deletion_timestamp.is_none()
    }

    /// Says what the cluster refuses, and has what waited for a right tried again once it is there.
    fn on_reviewed(&mut self, reviewed: Reviewed) {
        self.known.permitted = self.rights.verdict().cloned();
        if reviewed.has_granted
            && wait_for_rights(&self.known.report)
            && let Some(worker) = &self.worker
        {
            worker.retry();
        }
        if let Some(verdict @ Verdict::Refused { .. }) = self.rights.verdict()
            && reviewed.is_news
        {
            let resource = self.desired.borrow().clone();
            let (_, _, message) = verdict.condition();
            tracing::warn!(configurator = %resource.key(), "{message}");
            let uid = resource.uid().unwrap_or_default();
            let subject = Subject::configurator(&resource.key(), &uid);
            let event = HostEvent::warning(subject, "RightsRefused", message);
            self.shared.publisher.publish(event);
        }
    }

    /// The Configurator is gone: nothing of its books is needed any more.
    async fn end(mut self: Box<Self>) {
        let uid = self.desired.borrow().uid().unwrap_or_default();
        let key = self.desired.borrow().key();
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        let is_machine = self.desired.borrow().spec.machine.is_some();
        let removing = async {
            remove_records(&self.shared, &uid).await?;
            match is_machine {
                true => retire_books(&self.shared, &key).await,
                false => Ok(()),
            }
        };
        if let Err(fault) = removing.await {
            tracing::warn!(configurator = %key, %fault, "the records of the Configurator could not be removed; they are at the next start");
        }
        self.shared.observer.noticed(&key, &Notice::Stopped);
        tracing::info!(configurator = %key, "stopped");
    }

    async fn take_over(&mut self, resource: &Arc<resource::Configurator>) {
        self.look_again = None;
        let generation = resource.metadata.generation.unwrap_or_default();
        if resource.metadata.deletion_timestamp.is_some() {
            self.known.generation = generation;
            self.loading = None;
            self.asking = None;
            self.release(resource).await;
            return;
        }
        let is_same = |(running, _): &(i64, String)| *running == generation;
        let is_running = self.known.running.as_ref().is_some_and(is_same) && self.worker.is_some();
        if is_running && self.known.refusal.is_none() {
            // What is being loaded is of this generation: news of its source.
            self.known.generation = generation;
        } else {
            self.load(resource);
        }
    }

    /// Has the source asked whether it has another module than it had when one was last fetched.
    fn ask_source(&mut self) {
        self.ask_source = None;
        let resource = self.desired.borrow().clone();
        if resource.metadata.deletion_timestamp.is_some() || self.loading.is_some() {
            return;
        }
        let modules = self.shared.modules.clone();
        let asked = async move { modules.version(&resource.spec.module).await };
        self.asking = Some(asked.boxed());
    }

    fn on_version(&mut self, answered: Result<Option<String>, SourceError>) {
        self.ask_again();
        match answered {
            Ok(now) if now == self.source => {
                self.say_of_source(None);
            }
            Ok(_) => {
                let resource = self.desired.borrow().clone();
                self.failures = 0;
                self.load(&resource);
            }
            Err(error) => self.say_of_source(Some(error.to_string())),
        }
    }

    fn ask_again(&mut self) {
        let module = &self.desired.borrow().spec.module;
        let interval = self.shared.modules.interval(module);
        self.ask_source = Some(self.shared.clock.now().after(interval));
    }

    /// Says, once, that the source cannot be asked, and that what runs may be old.
    fn say_of_source(&mut self, trouble: Option<String>) {
        if self.known.old_module == trouble {
            return;
        }
        if let Some(message) = &trouble
            && self.known.old_module.is_none()
        {
            let resource = self.desired.borrow().clone();
            let key = resource.key();
            tracing::warn!(configurator = %key, "the module may be old: {message}");
            let uid = resource.uid().unwrap_or_default();
            let subject = Subject::configurator(&key, &uid);
            let event = HostEvent::warning(subject, "ModuleSourceUnavailable", message.clone());
            self.shared.publisher.publish(event);
        }
        self.known.old_module = trouble;
        self.voice.speak_soon();
    }

    /// Has the module fetched and checked beside what runs, in place of what is being fetched.
    fn load(&mut self, resource: &Arc<resource::Configurator>) {
        self.asking = None;
        self.policy = self.shared.policies.of(&resource.key().namespace);
        let (shared, flows) = (self.shared.clone(), self.shared_flows());
        let resource = resource.clone();
        // What runs already need not be fetched.
        let before = self.known.stable.clone().filter(|_| self.worker.is_none());
        let loading = async move {
            let version = shared.modules.version(&resource.spec.module).await;
            let loaded = load(&shared, &flows, &resource, before).await;
            Arrived {
                resource,
                version,
                loaded,
            }
        };
        self.loading = Some(loading.boxed());
        self.voice.speak_soon();
    }

    /// Runs what was loaded; where only the module is another, without an end to what runs. When it cannot be run, what ran goes on.
    async fn on_loaded(&mut self, arrived: Arrived) {
        let Arrived {
            resource,
            version,
            loaded,
        } = arrived;
        let key = resource.key();
        self.known.generation = resource.metadata.generation.unwrap_or_default();
        self.known.mode = Some(match resource.spec.machine {
            None => ModeStatus::Chain,
            Some(_) => ModeStatus::Machine,
        });
        // A source that knows no versions is not asked for them.
        self.ask_source = None;
        if !matches!(version, Ok(None)) {
            self.ask_again();
        }
        self.source = version.ok().flatten();
        match loaded.and_then(|loaded| self.beside(&resource, loaded)) {
            Ok(mut loaded) => {
                self.parameters = loaded.parameters.take();
                self.failures = 0;
                self.known.refusal = None;
                // Of a copy it is not known which version it is: the module is fetched as soon as the source can be asked.
                if loaded.copied.is_some() {
                    self.source = None;
                }
                self.say_of_source(loaded.copied.clone());
                self.roll_out(&resource, loaded).await;
            }
            Err(refusal) => {
                if refusal.is_denial
                    && let Some(worker) = self.worker.take()
                {
                    worker.stop().await;
                    self.known.running = None;
                    self.rights.end();
                }
                if refusal.may_change {
                    self.failures = self.failures.saturating_add(1);
                    let wait = Duration::from_secs(1 << self.failures.min(4)).min(MAX_LOOK_AGAIN);
                    let wait = jittered(wait, self.shared.seed ^ u64::from(self.failures));
                    self.look_again = Some(self.shared.clock.now().after(wait));
                }
                if self.known.refusal.as_ref() != Some(&refusal) {
                    let Refusal {
                        reason,
                        message,
                        may_change,
                        is_denial: _,
                    } = &refusal;
                    tracing::warn!(configurator = %key, reason, "{message}");
                    let notice = if *may_change {
                        Notice::Waiting {
                            message: message.clone(),
                        }
                    } else {
                        Notice::Refused {
                            reason: (*reason).to_owned(),
                            message: message.clone(),
                        }
                    };
                    self.shared.observer.noticed(&key, &notice);
                    let uid = resource.uid().unwrap_or_default();
                    let subject = Subject::configurator(&key, &uid);
                    self.shared.publisher.publish(HostEvent::warning(
                        subject,
                        reason,
                        message.clone(),
                    ));
                }
                self.known.refusal = Some(refusal);
                if self.worker.is_none() {
                    self.reporter.say(KeeperReport {
                        is_bootstrapped: true,
                        is_settled: true,
                    });
                }
            }
        }
    }

    /// Whether what runs differs from this in nothing but its module.
    fn is_of_same(&self, loaded: &Loaded) -> bool {
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
    async fn replace(&mut self, loaded: Loaded) {
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
        self.kind_to_release = (!by_finalizer).then(|| resource.clone());
        if shared.shards.is_none() {
            self.release_earlier().await;
        }
        let shared = &self.shared;
        let ledger = needs_ledger(&configurator)
            .then(|| Ledger::new(shared.config_store.clone(), &configurator.uid));
        let client = acting_as(&shared.client, configurator.service_account.as_ref());
        let finalizer =
            by_finalizer.then(|| Finalizer::new(client.clone(), resource.clone(), &key));
        let configurator = Arc::new(configurator);
        let store = StateStore::new(
            client.clone(),
            resource.clone(),
            &configurator,
            shared.config_store.clone(),
            shared.state_key.clone(),
        );
        let recorder = recorder(shared, &configurator);
        let earlier = earlier(shared, &self.desired.borrow(), recorder.clone());
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
            context,
            resource,
            is_namespaced,
            namespaces,
            client,
            host_client: shared.client.clone(),
            declarative: shared.declarative.clone(),
            publisher: shared.publisher.clone(),
            availability: shared.availability.clone(),
            command_limits: shared.command_limits,
            requesters: shared.requesters.clone(),
            tasks: self.tasks.clone(),
            seed: shared.seed,
            shards: shared.shards.clone(),
            reporter: self.reporter.clone(),
        }));
        self.shared
            .observer
            .noticed(&key, &Notice::Started { digest, objects: 0 });
    }

    /// Says what is known of it, unless that is about to change.
    async fn say(&mut self) {
        if self.loading.is_none() {
            self.write_status().await;
        }
    }

    /// Says what is known of it; of one that is being deleted nothing is said.
    async fn write_status(&mut self) {
        let resource = self.desired.borrow().clone();
        if resource.metadata.deletion_timestamp.is_some() {
            return self.voice.fall_silent().await;
        }
        self.voice.say(&resource, &self.known).await;
        let is_abreast =
            |other: &resource::HostStatus| other.observed_generation >= self.known.generation;
        if self.shared.shards.is_some()
            && self.voice.speaks()
            && self.voice.others().iter().all(is_abreast)
        {
            self.release_earlier().await;
        }
    }
}

/// What another host, or this one before it was started again, has left in the status.
fn known_before(resource: &resource::Configurator) -> Known {
    let status = resource.status.clone().unwrap_or_default();
    Known {
        stable: status.module_digest,
        previous: status.previous_module_digest,
        rolled_back: status.rolled_back,
        ..Known::default()
    }
}

/// What comes of what is under way; never where nothing is.
async fn next_of<T>(under_way: &mut Option<BoxFuture<'static, T>>) -> T {
    let Some(future) = under_way else {
        return std::future::pending().await;
    };
    let came = future.await;
    *under_way = None;
    came
}

async fn next_report(worker: Option<&mut WorkerHandle>) -> WorkerReport {
    if let Some(worker) = worker
        && worker.report.changed().await.is_ok()
    {
        return worker.report.borrow_and_update().clone();
    }
    std::future::pending().await
}

/// Starts a keeper, once the one `before` it has ended.
pub(crate) fn start(
    shared: &Arc<Shared>,
    tasks: &Tasks,
    desired: Desired,
    said: Said,
    reporter: Reporter,
    before: Option<KeeperLife>,
) -> KeeperLife {
    let (life, lives) = watch::channel(());
    // A future holds what it is given twice, so it is given a box.
    let keeper = Box::new(Keeper::new(
        shared.clone(),
        tasks.clone(),
        desired,
        said,
        reporter,
    ));
    tasks.spawn(TaskKind::Worker, async move {
        if let Some(before) = before {
            before.end().await;
        }
        keeper.run().await;
        drop(life);
    });
    KeeperLife(lives)
}
