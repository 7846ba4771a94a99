//! Keeps one Configurator running: loads its module, replaces its worker when it changes, writes its status.

mod account;
mod check;
mod claim;
mod load;
mod policy;
mod quotas;
mod release;
mod remaining_sets;
mod replace;
mod rollout;
mod source;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::time::Timestamp;
use configurator_guest::module::Module;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::ResourceExt as _;
use kube::api::ApiResource;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::check::check;
use self::load::{Loaded, load};
pub(crate) use self::load::{check_memory, check_module};
use self::quotas::QUOTA_EXCEEDED;
use super::canary::{Canary, ROLLBACK_ANNOTATION};
use super::namespace_changes::NamespaceReceiver;
use super::parameters::ParameterSources;
use super::policies::{NamespacePolicy, PolicyChanges};
use super::report::{KeeperReport, Reporter};
use super::rights::{Reviewed, RightsReview, Verdict, wait_for_rights};
use super::status::{Known, Refusal};
use super::sweep::{remove_records, retire_books};
use super::voice::{Said, Voice};
use super::worker::{WorkerHandle, WorkerReport};
use crate::clock::until;
use crate::declaration::{self, FlowSet};
use crate::events::{HostEvent, Subject};
use crate::host::Shared;
use crate::module_source::SourceError;
use crate::observer::Notice;
use crate::resource::{self, ModeStatus, SetsDeletionSpec};
use crate::shards::{ClaimFault, ConfiguratorClaim, Shards, changed};
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
    /// Cancelled when the resource is no longer in the scope of the host.
    leaving: CancellationToken,
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
    kind_to_release: Option<Box<ApiResource>>,
    /// What an Event has said of the sets of a Configurator that is being deleted.
    told_of_sets: Option<SetsDeletionSpec>,
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
    rbac: Option<NamespaceReceiver>,
    /// Changes of the quota usage of its namespace; `None` for a ClusterConfigurator.
    usage: Option<NamespaceReceiver>,
    /// The claim of this Configurator; `None` if no hosts share the objects.
    claim: Option<ConfiguratorClaim>,
    /// The attempt to claim that is under way.
    claiming: Option<BoxFuture<'static, Result<(), ClaimFault>>>,
    /// The time of the next attempt to claim.
    claim_again: Option<Timestamp>,
    /// The error of the last attempt to claim. The same error is logged once.
    unclaimed: Option<String>,
    /// Whether older Configurators used up the quota of Configurators when this was last looked at.
    is_over_quota: bool,
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
    /// The quota usage of its namespace has changed.
    Usage,
    /// The rights of its ServiceAccount may have changed.
    Rbac,
    /// Rights have been reviewed.
    Reviewed(Reviewed),
    /// The worker has reported.
    Report(WorkerReport),
    /// The shards of this host or the state of the claim have changed.
    Shards,
    /// An attempt to claim has ended.
    Claimed(Result<(), ClaimFault>),
    /// The next attempt to claim is due.
    ClaimDue,
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
    /// The resource is no longer in the scope of the host.
    OutOfScope,
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
        leaving: CancellationToken,
    ) -> Self {
        let known = known_before(&desired.borrow());
        let rights = RightsReview::new(
            shared.client.clone(),
            shared.reviews.clone(),
            shared.clock.clone(),
            shared.seed,
        );
        let claim = shared.shards.as_ref().map(Shards::configurator_claim);
        let voice = Voice::new(&shared, &desired.borrow(), said, claim.clone());
        let flows = shared.flows.subscribe();
        let namespace = desired.borrow().key().namespace;
        let is_namespaced = !namespace.is_empty();
        Self {
            policies: is_namespaced.then(|| shared.policies.changes()),
            policy: shared.policies.of(&namespace),
            rbac: is_namespaced.then(|| shared.rbac_changes.subscribe(&namespace)),
            usage: is_namespaced.then(|| shared.quota_usage.subscribe(&namespace)),
            is_over_quota: false,
            claim,
            claiming: None,
            claim_again: None,
            unclaimed: None,
            parameters: None,
            flows,
            flow_changes: 0,
            shared,
            tasks,
            desired,
            leaving,
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
            told_of_sets: None,
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
                Ok(news) => news.or_else(|| self.due()),
                Err(end) => break end,
            };
            if let Some(news) = news {
                Box::pin(self.on(news)).await;
            }
        };
        match end {
            End::Deleted => Box::pin(self.end()).await,
            End::OutOfScope => Box::pin(self.leave()).await,
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
        self.look_at_claim();
        self.take_over(&resource).await;
        self.say().await;
    }

    /// Waits for news. Returns none when a time has come at which there may be something to do.
    async fn next(
        &mut self,
        changes: &mut Option<watch::Receiver<()>>,
    ) -> Result<Option<News>, End> {
        let due = pin!(until(self.shared.clock.clone(), self.next_deadline()));
        // `select!` keeps twice what it is given, and a keeper waits here nearly always, so it is given references.
        let drained = pin!(self.tasks.drain_token().cancelled());
        let leaving = pin!(self.leaving.cancelled());
        let desired = pin!(self.desired.changed());
        let flows = pin!(self.flows.changed());
        let policies = pin!(if_some(self.policies.as_mut().map(PolicyChanges::next)));
        let parameters = self.parameters.as_mut().map(ParameterSources::changed);
        let parameters = pin!(if_some(parameters));
        let rbac = pin!(if_some(self.rbac.as_mut().map(NamespaceReceiver::changed)));
        let usage = pin!(if_some(self.usage.as_mut().map(NamespaceReceiver::changed)));
        let rights = pin!(self.rights.next());
        let report = pin!(next_report(self.worker.as_mut()));
        let shards = pin!(changed(changes.as_mut()));
        let said = pin!(self.voice.hear());
        let news = tokio::select! {
            biased;
            () = drained => return Err(End::Drained),
            () = leaving => return Err(End::OutOfScope),
            changed = desired => match changed {
                Ok(()) => News::Desired,
                Err(_) => return Err(End::Deleted),
            },
            Ok(()) = flows => News::Flows,
            () = policies => News::Policies,
            () = parameters => News::Parameters,
            () = rbac => News::Rbac,
            () = usage => News::Usage,
            reviewed = rights => News::Reviewed(reviewed),
            report = report => News::Report(report),
            () = shards => News::Shards,
            claimed = next_of(&mut self.claiming) => News::Claimed(claimed),
            () = said => News::Said,
            answered = next_of(&mut self.asking) => News::Version(answered),
            arrived = next_of(&mut self.loading) => News::Loaded(Box::new(arrived)),
            () = due => return Ok(None),
        };
        Ok(Some(news))
    }

    /// What is to be done later, and when. Of what is due at once, the first is done first.
    fn deadlines(&self) -> [(Option<Timestamp>, News); 5] {
        [
            (self.claim_again, News::ClaimDue),
            (self.voice.due(), News::StatusDue),
            (self.ask_source, News::SourceDue),
            (self.decide_at, News::CanaryDecisionDue),
            (self.look_again, News::LookAgain),
        ]
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines().into_iter().filter_map(|(at, _)| at).min()
    }

    /// What is due now.
    fn due(&self) -> Option<News> {
        let now = self.shared.clock.now();
        let mut deadlines = self.deadlines().into_iter();
        let due = deadlines.find(|(at, _)| at.is_some_and(|at| at <= now));
        due.map(|(_, news)| news)
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
            News::Usage => {
                let resource = self.desired.borrow().clone();
                let was_over = self.is_over_quota;
                let is_deleted = resource.metadata.deletion_timestamp.is_some();
                if !is_deleted
                    && (self.look_at_quota(&resource) != was_over
                        || self.has_too_many_objects(&resource))
                {
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
                // Before the objects are listed, the number that was counted when it was loaded holds.
                if self.policy.quotas.objects.is_some() && self.known.report.is_listed {
                    let resource = self.desired.borrow().clone();
                    let usage = &self.shared.quota_usage;
                    usage.set_objects(&resource.key(), &resource.metadata, self.objects());
                }
            }
            News::Shards => {
                self.look_at_claim();
                self.voice.speak_soon();
            }
            News::Claimed(claimed) => self.on_claimed(claimed),
            News::ClaimDue => self.try_claim(),
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
        let removed = removing.await;
        self.release_claim(&uid).await;
        if let Err(fault) = removed {
            tracing::warn!(configurator = %key, %fault, "the records of the Configurator could not be removed; they are at the next start");
        }
        self.shared.observer.noticed(&key, &Notice::Stopped);
        tracing::info!(configurator = %key, "stopped");
    }

    async fn take_over(&mut self, resource: &Arc<resource::Configurator>) {
        self.look_again = None;
        let generation = resource.metadata.generation.unwrap_or_default();
        // Until its sets are gone, a deleted Configurator runs like any other: their members are deleted with their owners.
        if resource.metadata.deletion_timestamp.is_some() && !self.is_blocked(resource).await {
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

    /// Has the module fetched and checked beside what runs, in place of what is being fetched.
    fn load(&mut self, resource: &Arc<resource::Configurator>) {
        self.asking = None;
        self.policy = self.shared.policies.of(&resource.key().namespace);
        self.look_at_quota(resource);
        let (shared, flows) = (self.shared.clone(), self.shared_flows());
        let resource = resource.clone();
        // What runs already need not be fetched.
        let before = self.known.stable.clone().filter(|_| self.worker.is_none());
        let loading = async move {
            // Nothing is asked in the name of a Configurator that is not allowed to run.
            let checked = match check(&shared, &flows, &resource).await {
                Ok(checked) => checked,
                Err(refusal) => {
                    return Arrived {
                        resource,
                        version: Ok(None),
                        loaded: Err(refusal),
                    };
                }
            };
            let modules = &checked.policy.modules;
            let version = shared.modules.version(&resource.spec.module, modules).await;
            let loaded = load(&shared, checked, &resource, before).await;
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
                if refusal.is_denial && refusal.reason != QUOTA_EXCEEDED {
                    let usage = &self.shared.quota_usage;
                    usage.set_objects(&key, &resource.metadata, 0);
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
                        reads_in_vain: false,
                    });
                }
            }
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

/// Starts a keeper once the one `before` it has ended. When `leaving` is cancelled, the keeper ends its runs and releases the claim.
pub(crate) fn start(
    shared: &Arc<Shared>,
    tasks: &Tasks,
    desired: Desired,
    said: Said,
    reporter: Reporter,
    leaving: CancellationToken,
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
        leaving,
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
