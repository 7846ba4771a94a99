//! Keeps one Configurator running: loads its module, replaces its worker when it changes, writes its status.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::canary::{CanaryDecision, CanaryPolicy, RunCounts};
use configurator_core::capability::Capabilities;
use configurator_core::configurator::{Configurator, DeletionBy, StatePlace};
use configurator_core::handler::{Accepts, CallLimits, HandlerDescription};
use configurator_core::request::api_version;
use configurator_core::time::Timestamp;
use configurator_guest::digest::Digest;
use configurator_guest::module::Module;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery;
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch;

use super::call_mode::CallMode;
use super::canary::{self, Canary, CanaryEnd, ROLLBACK_ANNOTATION};
use super::driver::RunContext;
use super::earlier::Earlier;
use super::finalizer::Finalizer;
use super::machine_run::MachineContext;
use super::report::{KeeperReport, Reporter};
use super::rights::{Reviewed, RightsReview, Verdict, wait_for_rights};
use super::rollout::Rollout;
use super::state_schema;
use super::state_store::StateStore;
use super::status::{self, Known, Refusal};
use super::sweep::{remove_records, retire_books};
use super::voice::{Said, Voice};
use super::worker::{self, WorkerHandle, WorkerParts, WorkerReport, needs_ledger};
use crate::clock::until;
use crate::declaration::{self, Flows, format_bytes};
use crate::events::{HostEvent, Subject};
use crate::host::Shared;
use crate::idempotency::Effects;
use crate::kubernetes_faults::is_of_another;
use crate::ledger::Ledger;
use crate::module_source::{Fetched, SourceError};
use crate::objects;
use crate::observer::Notice;
use crate::recording::Recorder;
use crate::resource;
use crate::resource::RolledBackStatus;
use crate::resource::machine::ModeSpec;
use crate::rights::Watched;
use crate::shards::changed;
use crate::suspect_requests::SuspectRequests;
use crate::tasks::{TaskKind, Tasks};

/// The longest wait before a module or a kind that was missing is looked for again.
const MAX_LOOK_AGAIN: Duration = Duration::from_secs(15);
/// The wait before it is seen again whether other hosts have let go of a Configurator that is being deleted.
const OTHERS_AGAIN: Duration = Duration::from_secs(1);
/// The time between two decisions about a canary.
const DECIDE_AGAIN: Duration = Duration::from_secs(1);
/// The wait before finalizers that could not be released are tried again.
const RELEASE_AGAIN: Duration = Duration::from_secs(5);
/// A new value of this annotation has every object that was given up tried again at once.
pub const RETRY_ANNOTATION: &str = "configurator.dev/retry";
/// Holds a Configurator that has placed finalizers, until they are released.
const OWN_FINALIZER: &str = "configurator.dev/release";

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
    /// The kind whose objects may have finalizers of an earlier generation.
    to_let_go: Option<ApiResource>,
    flows: watch::Receiver<Option<Arc<Flows>>>,
}

/// What a keeper deals with next.
enum News {
    /// The resource has changed.
    Desired,
    /// Flows that are resources of their own have changed.
    Flows,
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
    loaded: Result<Loaded, Refused>,
}

struct Loaded {
    /// Why the module is a copy of what its source had earlier, where it is.
    copied: Option<String>,
    /// The module that ran before the host started, if the loaded one is to be a canary.
    stable: Option<Arc<Module>>,
    configurator: Configurator,
    module: Arc<Module>,
    resource: ApiResource,
    watched: Watched,
}

/// Why a generation does not run, and whether looking again can help.
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    may_change: bool,
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
        Self {
            flows,
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
            to_let_go: None,
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
                if self.may_be_of_other_flows(&resource) {
                    self.look_again = None;
                    self.load(&resource);
                    self.say().await;
                }
            }
            News::Reviewed(reviewed) => {
                self.on_reviewed(reviewed);
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
    fn shared_flows(&self) -> Arc<Flows> {
        self.flows.borrow().clone().unwrap_or_default()
    }

    /// Whether the Configurator says something else with the flows as they are now than what runs, or what is loaded or was refused may have been of
    /// flows that are no more.
    fn may_be_of_other_flows(&self, resource: &resource::Configurator) -> bool {
        if resource.spec.mode != ModeSpec::Machine || resource.metadata.deletion_timestamp.is_some()
        {
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
            tracing::warn!(configurator = resource.name_any(), "{message}");
            let uid = resource.uid().unwrap_or_default();
            let subject = Subject::configurator(&resource.name_any(), &uid);
            let event = HostEvent::warning(subject, "RightsRefused", message);
            self.shared.publisher.publish(event);
        }
    }

    /// The Configurator is gone: nothing of its books is needed any more.
    async fn end(mut self: Box<Self>) {
        let uid = self.desired.borrow().uid().unwrap_or_default();
        let name = self.desired.borrow().name_any();
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        let is_machine = self.desired.borrow().spec.mode == ModeSpec::Machine;
        let removing = async {
            remove_records(&self.shared, &uid).await?;
            match is_machine {
                true => retire_books(&self.shared, &name).await,
                false => Ok(()),
            }
        };
        if let Err(fault) = removing.await {
            tracing::warn!(configurator = name, %fault, "the records of the Configurator could not be removed; they are at the next start");
        }
        self.shared.observer.noticed(&name, &Notice::Stopped);
        tracing::info!(configurator = name, "stopped");
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
            let name = resource.name_any();
            tracing::warn!(configurator = name, "the module may be old: {message}");
            let uid = resource.uid().unwrap_or_default();
            let subject = Subject::configurator(&name, &uid);
            let event = HostEvent::warning(subject, "ModuleSourceUnavailable", message.clone());
            self.shared.publisher.publish(event);
        }
        self.known.old_module = trouble;
        self.voice.speak_soon();
    }

    /// Has the module fetched and checked beside what runs, in place of what is being fetched.
    fn load(&mut self, resource: &Arc<resource::Configurator>) {
        self.asking = None;
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
        let name = resource.name_any();
        self.known.generation = resource.metadata.generation.unwrap_or_default();
        // A source that knows no versions is not asked for them.
        self.ask_source = None;
        if !matches!(version, Ok(None)) {
            self.ask_again();
        }
        self.source = version.ok().flatten();
        match loaded.and_then(|loaded| self.beside(&resource, loaded)) {
            Ok(loaded) => {
                self.failures = 0;
                self.known.refusal = None;
                // Of a copy it is not known which version it is: the module is fetched as soon as the source can be asked.
                if loaded.copied.is_some() {
                    self.source = None;
                }
                self.say_of_source(loaded.copied.clone());
                self.roll_out(&resource, loaded).await;
            }
            Err(Refused {
                refusal,
                may_change,
            }) => {
                if may_change {
                    self.failures = self.failures.saturating_add(1);
                    let wait = Duration::from_secs(1 << self.failures.min(4)).min(MAX_LOOK_AGAIN);
                    let wait = jittered(wait, self.shared.seed ^ u64::from(self.failures));
                    self.look_again = Some(self.shared.clock.now().after(wait));
                }
                if self.known.refusal.as_ref() != Some(&refusal) {
                    let Refusal { reason, message } = &refusal;
                    tracing::warn!(configurator = name, reason, "{message}");
                    let notice = if may_change {
                        Notice::Waiting {
                            message: message.clone(),
                        }
                    } else {
                        Notice::Refused {
                            reason: (*reason).to_owned(),
                            message: message.clone(),
                        }
                    };
                    self.shared.observer.noticed(&name, &notice);
                    let uid = resource.uid().unwrap_or_default();
                    let subject = Subject::configurator(&name, &uid);
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

    /// Adds the stable module to what was loaded if the loaded module is to be a canary, and if the stable module fits the current Configurator.
    ///
    /// A canary that was rolled back handles no object, even if no other module is available.
    fn beside(
        &self,
        resource: &resource::Configurator,
        mut loaded: Loaded,
    ) -> Result<Loaded, Refused> {
        if canary::policy(resource).is_none() {
            loaded.stable = None;
            return Ok(loaded);
        }
        let running = self.worker.as_ref().map(|worker| worker.stable().clone());
        let before = running.or_else(|| loaded.stable.take());
        let candidate = loaded.module.digest();
        if before
            .as_ref()
            .is_some_and(|before| before.digest() == candidate)
        {
            return Ok(loaded);
        }
        let fits = |before: &Arc<Module>| {
            check_handlers(&loaded.configurator, Some(&self.shared.policy), before).is_ok()
        };
        let stable = before.filter(fits);
        let candidate = candidate.to_string();
        let is_bad = |rolled_back: &RolledBackStatus| rolled_back.digest == candidate;
        if stable.is_none() && self.known.rolled_back.as_ref().is_some_and(is_bad) {
            let why = "none is known that has the handlers which the Configurator names";
            return Err(without_before(resource, &candidate, "was rolled back", why));
        }
        loaded.stable = stable;
        Ok(loaded)
    }

    /// Runs what was loaded: for all objects at once, or as a canary if the rollout says so.
    async fn roll_out(&mut self, resource: &resource::Configurator, mut loaded: Loaded) {
        let candidate = loaded.module.clone();
        let is_same = self.is_of_same(&loaded);
        self.promoted = None;
        let (Some(policy), Some(stable)) = (canary::policy(resource), loaded.stable.take()) else {
            self.end_canary(None);
            return match is_same {
                true => self.swap(loaded.configurator.generation, candidate),
                false => self.replace(loaded).await,
            };
        };
        if is_same {
            let digest = stable.digest().to_string();
            self.known.running = Some((loaded.configurator.generation, digest));
        } else {
            self.canary = None;
            loaded.module = stable;
            self.replace(loaded).await;
        }
        let digest = candidate.digest().to_string();
        let is_bad = |rolled_back: &RolledBackStatus| rolled_back.digest == digest;
        if self.known.rolled_back.as_ref().is_some_and(is_bad) {
            return;
        }
        let is_it = |canary: &&mut Canary| {
            canary.candidate.digest() == candidate.digest()
                && canary.policy.fraction == policy.fraction
        };
        match self.canary.as_mut().filter(is_it) {
            Some(canary) => canary.policy = policy,
            None => self.start_canary(policy, candidate),
        }
    }

    /// Starts a canary.
    fn start_canary(&mut self, policy: CanaryPolicy, candidate: Arc<Module>) {
        let Some(worker) = &mut self.worker else {
            return;
        };
        worker.start_canary(policy.fraction, candidate.clone());
        let now = self.shared.clock.now();
        let canary = Canary {
            candidate,
            policy,
            since: now,
        };
        let digest = canary.candidate.digest().to_string();
        let percent = policy.fraction.percent();
        let name = &worker.configurator.name;
        tracing::info!(configurator = name, digest, percent, "a canary started");
        let subject = Subject::configurator(name, &worker.configurator.uid);
        let message = format!("new runs of {percent} % of the objects use {digest}");
        self.shared.publisher.publish(HostEvent {
            subject,
            is_warning: false,
            reason: "CanaryStarted".to_owned(),
            action: format!("Start canary {digest}"),
            message,
        });
        let notice = Notice::CanaryStarted { digest, percent };
        self.shared.observer.noticed(name, &notice);
        let own = canary.host_status(RunCounts::default(), None);
        let progress = canary::progress(&own, &self.voice.others());
        self.known.rolled_back = None;
        self.known.canary = Some(canary.status(progress, now));
        self.known.own_canary = Some(own);
        self.canary = Some(canary);
        self.decide_at = Some(now.after(DECIDE_AGAIN));
        self.voice.speak_soon();
    }

    /// Ends the canary, if there is one. `rolled_back` says why it was rolled back, if it was.
    fn end_canary(&mut self, rolled_back: Option<RolledBackStatus>) {
        self.known.canary = None;
        self.known.own_canary = None;
        self.known.rolled_back = rolled_back;
        self.decide_at = None;
        if self.canary.take().is_some()
            && self.known.rolled_back.is_some()
            && let Some(worker) = &mut self.worker
        {
            worker.roll_back();
        }
        self.voice.speak_soon();
    }

    /// Promotes the canary, rolls it back, or lets it go on. If hosts share the objects, the one that writes the status decides for all, and the
    /// others follow.
    fn decide_canary(&mut self) {
        self.decide_at = None;
        let (Some(canary), Some(worker)) = (&self.canary, &self.worker) else {
            return;
        };
        let now = self.shared.clock.now();
        let digest = canary.candidate.digest().to_string();
        let own = canary.host_status(
            worker.rollout.canary_runs(&digest),
            self.known.report.canary.as_ref(),
        );
        let others = self.voice.others();
        let progress = canary::progress(&own, &others);
        let status = canary.status(progress, now);
        let decide = || match canary.policy.decide(progress, canary.since, now) {
            CanaryDecision::Wait => None,
            CanaryDecision::Promote => Some(CanaryEnd::Promote),
            CanaryDecision::RollBack => {
                Some(CanaryEnd::RollBack(canary.rolled_back(progress.runs)))
            }
        };
        let ended = canary::ended_by(&digest, &others);
        match ended.or_else(|| self.voice.speaks().then(decide).flatten()) {
            None => {
                self.decide_at = Some(now.after(DECIDE_AGAIN));
                let known = (Some(status), Some(own));
                if (&self.known.canary, &self.known.own_canary) != (&known.0, &known.1) {
                    (self.known.canary, self.known.own_canary) = known;
                    self.voice.speak_soon();
                }
            }
            Some(CanaryEnd::Promote) => {
                let candidate = canary.candidate.clone();
                let before = worker.stable().clone();
                self.swap(self.running_generation(), candidate);
                self.end_canary(None);
                self.promoted = Some((digest, before));
            }
            Some(CanaryEnd::RollBack(rolled_back)) => self.roll_back(rolled_back),
        }
    }

    /// Follows the decision of another host about the canary, or about the last canary that was promoted.
    fn follow_other_hosts(&mut self) {
        if self.canary.is_some() {
            return self.decide_canary();
        }
        let Some((digest, before)) = &self.promoted else {
            return;
        };
        let ended = canary::ended_by(digest, &self.voice.others());
        if let Some(CanaryEnd::RollBack(rolled_back)) = ended {
            let before = before.clone();
            self.promoted = None;
            self.swap(self.running_generation(), before);
            self.roll_back(rolled_back);
        }
    }

    fn running_generation(&self) -> i64 {
        let running = self.known.running.as_ref();
        running.map_or(self.known.generation, |(generation, _)| *generation)
    }

    /// Rolls the canary back.
    fn roll_back(&mut self, rolled_back: RolledBackStatus) {
        let resource = self.desired.borrow().clone();
        let name = resource.name_any();
        let subject = Subject::configurator(&name, &resource.uid().unwrap_or_default());
        let RolledBackStatus { digest, message } = rolled_back.clone();
        tracing::warn!(configurator = name, "{message}");
        let event = HostEvent::warning(subject, "ModuleRolledBack", message.clone());
        self.shared.publisher.publish(event);
        let notice = Notice::RolledBack { digest, message };
        self.shared.observer.noticed(&name, &notice);
        self.end_canary(Some(rolled_back));
    }

    /// Runs that begin from now on are of this module.
    fn swap(&mut self, generation: i64, module: Arc<Module>) {
        let digest = module.digest().to_string();
        self.known.running = Some((generation, digest.clone()));
        self.known.stable = Some(digest.clone());
        let Some(worker) = &mut self.worker else {
            return;
        };
        let before = worker.stable().digest().to_string();
        if before == digest && !worker.has_canary() {
            return;
        }
        worker.swap(module);
        if before == digest {
            return;
        }
        self.known.previous = Some(before.clone());
        let (name, uid) = (&worker.configurator.name, &worker.configurator.uid);
        tracing::info!(
            configurator = name,
            before,
            digest,
            "the module was swapped"
        );
        let notice = Notice::Swapped {
            before: before.clone(),
            digest: digest.clone(),
        };
        self.shared.observer.noticed(name, &notice);
        let subject = Subject::configurator(name, uid);
        let message = format!("runs that begin are of {digest}, and no longer of {before}");
        self.shared.publisher.publish(HostEvent {
            subject,
            is_warning: false,
            reason: "ModuleSwapped".to_owned(),
            // Each swap is an Event of its own.
            action: format!("Swap to {digest}"),
            message,
        });
    }

    /// The old worker ends before the new one begins, so that no object is in two runs.
    async fn replace(&mut self, loaded: Loaded) {
        let Loaded {
            configurator,
            module,
            resource,
            watched,
            ..
        } = loaded;
        let is_namespaced = watched.is_namespaced;
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        let name = configurator.name.clone();
        let digest = module.digest().to_string();
        let shared = &self.shared;
        let by_finalizer = configurator.deletion.by == DeletionBy::Finalizer;
        if by_finalizer && let Err(error) = hold(&shared.client, &name).await {
            tracing::warn!(configurator = name, %error, "the Configurator could not be held by its finalizer");
        }
        self.to_let_go = (!by_finalizer).then(|| resource.clone());
        if shared.shards.is_none() {
            self.let_go().await;
        }
        let shared = &self.shared;
        let ledger = needs_ledger(&configurator)
            .then(|| Ledger::new(shared.config_store.clone(), &configurator.uid));
        let finalizer =
            by_finalizer.then(|| Finalizer::new(shared.client.clone(), resource.clone(), &name));
        let configurator = Arc::new(configurator);
        let store = StateStore::new(
            shared.client.clone(),
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
            client: shared.client.clone(),
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
            configurator = name,
            digest,
            generation = configurator.generation,
            "started"
        );
        self.worker = Some(worker::start(WorkerParts {
            configurator,
            ceiling: shared.policy.clone(),
            context,
            resource,
            is_namespaced,
            client: shared.client.clone(),
            declarative: shared.declarative.clone(),
            publisher: shared.publisher.clone(),
            availability: shared.availability.clone(),
            command_limits: shared.command_limits,
            tasks: self.tasks.clone(),
            seed: shared.seed,
            shards: shared.shards.clone(),
            reporter: self.reporter.clone(),
        }));
        self.shared
            .observer
            .noticed(&name, &Notice::Started { digest, objects: 0 });
    }

    /// Finalizers of a generation that placed some are taken away, since this one does not.
    async fn let_go(&mut self) {
        let Some(kind) = self.to_let_go.take() else {
            return;
        };
        let resource = self.desired.borrow().clone();
        if !is_held(&resource) {
            return;
        }
        if let Err(error) = self.release_objects(&resource, Some(kind)).await {
            tracing::warn!(
                configurator = resource.name_any(),
                error,
                "the finalizers of an earlier generation could not be released; it is tried again at the next start"
            );
        }
    }

    /// Takes the finalizer from every object of the kind, and then from the Configurator. Without the kind there are no
    /// objects.
    async fn release_objects(
        &mut self,
        resource: &resource::Configurator,
        kind: Option<ApiResource>,
    ) -> Result<(), String> {
        if let Some(kind) = kind {
            Finalizer::new(self.shared.client.clone(), kind, &resource.name_any())
                .release_all()
                .await
                .map_err(|fault| fault.to_string())?;
        }
        unhold(&self.shared.client, resource)
            .await
            .map_err(|error| error.to_string())
    }

    /// The Configurator is being deleted: its finalizers go first, its own last.
    async fn release(&mut self, resource: &resource::Configurator) {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        self.known.running = None;
        self.rights.end();
        self.reporter.say(KeeperReport {
            is_bootstrapped: true,
            is_settled: false,
        });
        let name = resource.name_any();
        self.voice.fall_silent().await;
        if !is_held(resource) {
            return;
        }
        // What another host may still place cannot be taken away for good.
        if !self.voice.speaks() || !self.voice.others().is_empty() {
            self.look_again = Some(self.shared.clock.now().after(OTHERS_AGAIN));
            return;
        }
        let watch = &resource.spec.watch;
        let kind = GroupVersionKind::gvk(&watch.group, &watch.version, &watch.kind);
        let kind = discovery::pinned_kind(&self.shared.client, &kind).await;
        let kind = kind.ok().map(|(kind, _)| kind);
        if let Err(error) = self.release_objects(resource, kind).await {
            tracing::warn!(
                configurator = name,
                error,
                "the finalizers could not be released; it is tried again"
            );
            self.look_again = Some(self.shared.clock.now().after(RELEASE_AGAIN));
        }
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
            self.let_go().await;
        }
    }
}

/// Fetches the module, and holds it and the resource against each other and against the cluster.
async fn load(
    shared: &Shared,
    flows: &Flows,
    resource: &resource::Configurator,
    before: Option<String>,
) -> Result<Loaded, Refused> {
    let name = resource.name_any();
    let mut configurator = declaration::check(resource, flows)
        .map_err(|error| refused("Invalid", error.to_string()))?;
    configurator.retry.max_retry_after = shared.max_retry_after;
    configurator.limits.status_size = shared.max_status_size;
    check_memory(&configurator, shared.guest.memory().limit())?;
    let source = resource.spec.module.place();
    shared.observer.noticed(
        &name,
        &Notice::Loading {
            module: source.clone(),
        },
    );
    let Fetched { bytes, copied } =
        shared
            .modules
            .fetch(&resource.spec.module)
            .await
            .map_err(|error| Refused {
                may_change: true,
                ..refused("ModuleNotFound", error.to_string())
            })?;
    // Nothing of a module runs before it is the one that is pinned, not even what describes it.
    check_digest(resource, bytes.digest())?;
    let recorder = recorder(shared, &configurator);
    if let Some(recorder) = &recorder {
        recorder.keep_module(bytes.clone()).await;
    } else if configurator.record == Some(true) {
        tracing::warn!(
            configurator = name,
            "its runs are not recorded: this host has no folder for recordings"
        );
    }
    let loaded = match &shared.call_mode {
        CallMode::Parallel => {
            let owner = configurator.limits.owner;
            shared.guest.load_for(owner, bytes, &source).await
        }
        CallMode::Inline | CallMode::Charged(_) => shared.guest.load_blocking(bytes, &source),
    };
    let module = loaded.map_err(|error| refused("ModuleInvalid", error.to_string()))?;
    check_handlers(&configurator, Some(&shared.policy), &module)?;
    let before = before.filter(|digest| *digest != module.digest().to_string());
    let stable = match (canary::policy(resource), before) {
        (Some(_), Some(before)) => {
            let loaded = earlier(shared, resource, recorder).load(&before).await;
            let candidate = module.digest().to_string();
            let missing = |why: String| {
                let why = format!("{before} is unavailable: {why}");
                without_before(resource, &candidate, "is a canary", &why)
            };
            Some(loaded.map_err(missing)?)
        }
        _ => None,
    };
    let watch = &configurator.watch;
    let kind = GroupVersionKind::gvk(&watch.group, &watch.version, &watch.kind);
    let (resource, capabilities) = discovery::pinned_kind(&shared.client, &kind)
        .await
        .map_err(|error| {
            let kind = &watch.kind;
            let api_version = api_version(&watch.group, &watch.version);
            let message = if objects::is_missing(&error) {
                format!("the API has no kind {kind} in {api_version}; it is looked for again")
            } else {
                format!("the API cannot be asked for the kind {kind} in {api_version}; it is asked again: {}", objects::explained(&error))
            };
            Refused {
                may_change: true,
                ..refused("WatchedKindMissing", message)
            }
        })?;
    let watched = Watched::of(&resource, &capabilities);
    check_watch(&configurator, &watched, &shared.policy)?;
    check_state(&shared.client, &configurator, &resource).await?;
    Ok(Loaded {
        copied,
        stable,
        configurator,
        module,
        watched,
        resource,
    })
}

/// Checks that the operator of the host lets the Configurator read what it watches.
fn check_watch(
    configurator: &Configurator,
    watched: &Watched,
    policy: &Capabilities,
) -> Result<(), Refused> {
    let watch = &configurator.watch;
    let namespaces = match watched.is_namespaced {
        true => &watch.namespaces[..],
        false => &[],
    };
    policy
        .check_watch(&watch.group, &watched.plural, namespaces)
        .map_err(|fault| {
            let message = format!("spec.watch: the policy of this host has {}", fault.message);
            refused("WatchNotAllowed", message)
        })
}

/// Whether the kind keeps what a machine writes to its objects.
async fn check_state(
    client: &Client,
    configurator: &Configurator,
    resource: &ApiResource,
) -> Result<(), Refused> {
    let Some(mode) = &configurator.machine else {
        return Ok(());
    };
    let StatePlace::Status { .. } = mode.place else {
        return Ok(());
    };
    let kind = &resource.kind;
    let not_kept = |why: String| Refused {
        may_change: true,
        ..refused(
            "StateNotKept",
            format!("the kind {kind} cannot keep the states of its objects in their status: {why}"),
        )
    };
    let name = format!("{}.{}", resource.plural, resource.group);
    let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
    let definitions = objects::of(client.clone(), &definitions, "");
    match definitions.get_opt(&name).await {
        Ok(Some(definition)) => {
            state_schema::check(&definition.data, &resource.version, &mode.place)
                .map_err(not_kept)
        }
        Ok(None) => Err(not_kept(
            "it is none of your own, and its schema has no place for them: say spec.state.in: ConfigMap"
                .to_owned(),
        )),
        Err(error) => {
            let error = objects::explained(&error);
            Err(not_kept(format!("its definition cannot be read; it is tried again: {error}")))
        }
    }
}

/// What keeps the runs of a Configurator, where they are to be kept.
fn recorder(shared: &Shared, configurator: &Configurator) -> Option<Arc<Recorder>> {
    let recorder = shared.recorder.clone()?;
    let is_wanted = configurator.record.unwrap_or(recorder.records_all());
    is_wanted.then_some(recorder)
}

/// Refuses a module that may not, or not yet, handle all objects, when no module is known for the other objects.
fn without_before(
    resource: &resource::Configurator,
    candidate: &str,
    is: &str,
    why: &str,
) -> Refused {
    let name = resource.name_any();
    let message = format!(
        "the module {candidate} {is}, but there is no module for the other objects: {why}. Make it available again, or choose a module for all objects: `configurator rollback {name} --to DIGEST`"
    );
    Refused {
        may_change: true,
        ..refused("PredecessorMissing", message)
    }
}

/// The modules that a Configurator ran before.
fn earlier(
    shared: &Shared,
    resource: &resource::Configurator,
    recorder: Option<Arc<Recorder>>,
) -> Earlier {
    let spec = resource.spec.module.clone();
    let guest = shared.guest.clone();
    let uid = resource.metadata.uid.as_deref().unwrap_or_default();
    let owner = CallLimits::default().owned_by(uid).owner;
    Earlier::new(
        shared.modules.clone(),
        guest,
        owner,
        shared.call_mode.clone(),
        spec,
    )
    .recorder(recorder)
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

fn refused(reason: &'static str, message: String) -> Refused {
    Refused {
        refusal: Refusal { reason, message },
        may_change: false,
    }
}

/// Checks that a call of the Configurator fits into the memory that the guests of the host have in all, in bytes.
pub(crate) fn check_memory(configurator: &Configurator, memory: u64) -> Result<(), Refused> {
    let wanted = configurator.limits.memory;
    if wanted <= memory {
        return Ok(());
    }
    let message = format!(
        "spec.limits.memory is {}, and the modules of this host have {} of memory in all; lower spec.limits.memory, or raise the setting guest_memory of the host",
        format_bytes(wanted),
        format_bytes(memory)
    );
    Err(refused("MemoryLimitTooHigh", message))
}

/// Holds the module against what the Configurator says of it.
pub(crate) fn check_module(
    resource: &resource::Configurator,
    configurator: &Configurator,
    module: &Module,
) -> Result<(), Refused> {
    check_digest(resource, module.digest())?;
    check_handlers(configurator, None, module)
}

/// Whether the module is the one that the Configurator pins, where it pins one.
fn check_digest(resource: &resource::Configurator, digest: &Digest) -> Result<(), Refused> {
    let digest = digest.to_string();
    if let Some(wanted) = &resource.spec.module.digest
        && *wanted != digest
    {
        let message = format!("spec.module.digest is {wanted}, but the module has {digest}");
        return Err(Refused {
            may_change: true,
            ..refused("DigestMismatch", message)
        });
    }
    Ok(())
}

/// Whether the module has the handlers that the Configurator names, and may do what these ask for.
fn check_handlers(
    configurator: &Configurator,
    ceiling: Option<&Capabilities>,
    module: &Module,
) -> Result<(), Refused> {
    let phases = configurator
        .phases
        .iter()
        .chain(&configurator.deletion.phases);
    let phases = phases.map(|phase| (format!("phase {:?}", phase.name), phase.handler.as_str()));
    let machine = configurator.machine.as_ref();
    let nodes = machine.into_iter().flat_map(|mode| mode.machine.handlers());
    for (place, handler) in phases.chain(nodes) {
        let Some(found) = module.description().handler(handler) else {
            let message = format!(
                "{place} names the handler {handler:?}, which the module lacks; it has: {}",
                module.handler_names()
            );
            return Err(refused("HandlerMissing", message));
        };
        let fits = match found.accepts {
            Accepts::Either => true,
            Accepts::One => configurator.batch.is_none(),
            Accepts::Batch => configurator.batch.is_some(),
        };
        if !fits {
            let message = format!(
                "the handler {handler:?} of {place} takes {}; set isBatch: {}",
                if found.accepts == Accepts::One {
                    "one object"
                } else {
                    "batches"
                },
                found.accepts == Accepts::Batch
            );
            return Err(refused("HandlerMismatch", message));
        }
        check_capabilities(configurator, ceiling, found, &place)?;
    }
    Ok(())
}

/// Whether all that a handler says it asks for is allowed.
fn check_capabilities(
    configurator: &Configurator,
    ceiling: Option<&Capabilities>,
    handler: &HandlerDescription,
    place: &str,
) -> Result<(), Refused> {
    let Some(said) = &handler.capabilities else {
        return Ok(());
    };
    let name = &handler.name;
    let wanted = serde_json::from_value(said.to_value())
        .map_err(|error| error.to_string())
        .and_then(|spec| declaration::capabilities(&spec).map_err(|error| error.to_string()));
    let wanted = wanted.map_err(|error| {
        let message = format!(
            "the handler {name:?} of {place} says what it asks for in another form than spec.capabilities: {error}"
        );
        refused("ModuleInvalid", message)
    })?;
    let lacks = |rule: String, who: &str| {
        let message = format!("the handler {name:?} of {place} asks for {rule}, which {who}");
        refused("CapabilityMissing", message)
    };
    if let Some(rule) = configurator.capabilities.lacking(&wanted) {
        return Err(lacks(rule, "spec.capabilities does not allow"));
    }
    match ceiling.and_then(|ceiling| ceiling.lacking(&wanted)) {
        Some(rule) => Err(lacks(
            rule,
            "the policy of this host does not allow: its operator can",
        )),
        None => Ok(()),
    }
}

fn is_held(resource: &resource::Configurator) -> bool {
    resource
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == OWN_FINALIZER)
}

async fn hold(client: &Client, name: &str) -> Result<(), kube::Error> {
    let api: Api<resource::Configurator> = Api::all(client.clone());
    let body = json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "Configurator",
        "metadata": {"name": name, "finalizers": [OWN_FINALIZER]},
    });
    api.patch(
        name,
        &PatchParams::apply(status::MANAGER).force(),
        &Patch::Apply(&body),
    )
    .await
    .map(drop)
}

async fn unhold(client: &Client, resource: &resource::Configurator) -> Result<(), kube::Error> {
    let api: Api<resource::Configurator> = Api::all(client.clone());
    let remaining: Vec<&String> = resource
        .finalizers()
        .iter()
        .filter(|finalizer| *finalizer != OWN_FINALIZER)
        .collect();
    let body = json!({"metadata": {"uid": resource.uid(), "finalizers": remaining}});
    match api
        .patch(
            &resource.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&body),
        )
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 404 || is_of_another(&status) => Ok(()),
        patched => patched.map(drop),
    }
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
