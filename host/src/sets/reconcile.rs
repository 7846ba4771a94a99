//! Reconciles or deletes the members of one owner.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use configurator_core::backoff::mix;
use configurator_core::configurator::SetOptions;
use configurator_core::desired::check::{CheckedSet, Owner, SetRules};
use configurator_core::desired::marks;
use configurator_core::desired::{DesiredEntry, DesiredSet};
use configurator_core::digest::digest_of;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::graph::deletion::{DeletionInput, TerminationPolicy, delete};
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::members::Members;
use configurator_core::graph::observation::{Rejection, RejectionKind};
use configurator_core::graph::plan::{Action, PlanInput, Pruning, plan};
use configurator_core::plan::Failure;
use configurator_core::request::{SinkName, api_version, group_of};
use configurator_core::result::{RequestResult, ResultEntry};
use configurator_core::retry::{self, Decision};
use configurator_core::run::{Member, Run, SetOutcome, SetRequest};
use configurator_core::time::Timestamp;
use futures::StreamExt as _;
use futures::future::FutureExt as _;
use futures::stream::FuturesUnordered;
use kube::Client;
use kube::api::ApiResource;
use serde::Deserialize;
use serde_json::Value;

use super::actions::{Done, FIELDS_OF_OTHERS, MemberActions, Prepared};
use super::idle::Completed;
use super::kinds::{KindName, ServedKind};
use super::live::{LiveSet, Wanted};
use super::policy::{policy_of, policy_text};
use super::pre_terminate::{POLL, Preparation};
use super::registry::{Inbox, Sets, Taken, WatchedKind};
use super::rest::{PlannedState, Rest, at_rest, counts};
use super::seen::ReadFor;
use super::{abandonment, pre_terminate, rights, status};
use crate::answers::RunAnswers;
use crate::clock::{SharedClock, until};
use crate::events::{HostEvent, Publisher, Subject};
use crate::executor::Executor;
use crate::kubernetes_faults::fault_of;
use crate::metrics::{MemberCounts, Metrics, SetCounts};
use crate::objects;
use crate::redaction::Redactor;
use crate::resource::object_set::{ObjectSetStatus, SetOwner};
use crate::seal::{StateKey, random};
use crate::shards::Permit;

/// How many digits of a digest name a change.
const DIGITS: usize = 12;

/// How often an attempt that takes long publishes the status of its set.
const PROGRESS: Duration = Duration::from_secs(5);

/// The wait before the API is asked again for a kind that it did not serve.
const KIND_WAIT: Duration = Duration::from_secs(2);

/// The set of one owner, in a run of it.
#[derive(Clone, Copy)]
pub(crate) struct SetRun<'a> {
    pub(crate) run: &'a Run,
    pub(crate) sets: &'a Sets,
    pub(crate) executor: &'a Executor,
    pub(crate) answers: &'a RunAnswers,
    pub(crate) permit: Option<&'a Permit>,
    pub(crate) metrics: &'a Metrics,
    pub(crate) clock: &'a SharedClock,
    pub(crate) publisher: &'a Publisher,
    pub(crate) redactor: &'a Arc<Redactor>,
    /// As [`Sending`](crate::executor::Sending) has it.
    pub(crate) yields: bool,
    /// Reads the owner.
    pub(crate) client: &'a Client,
    /// The owner's kind.
    pub(crate) resource: &'a ApiResource,
    /// Whether the handler is of a module that is tried on some objects first.
    pub(crate) is_canary: bool,
    /// Whether the owner did not have the finalizer before this run. Then it most likely has no inventory.
    pub(crate) is_new: bool,
}

/// The next actions for a set.
struct Planned<'a> {
    actions: Vec<Action>,
    wake_at: Option<Timestamp>,
    state: PlannedState<'a>,
}

/// The goal of an attempt.
#[derive(Clone, Copy)]
pub(super) enum Goal<'a> {
    /// Each entry has its member, and no other member is left. The text names the change that this makes.
    Wanted(TerminationPolicy, Pruning, &'a CheckedSet, &'a str),
    /// No member is left. The text says why none may be deleted yet.
    None(TerminationPolicy, Option<&'a str>),
}

/// Why a set is only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// The owner suspends it.
    Suspended,
    /// No handler keeps it at the moment.
    Unattended,
}

impl Hold {
    /// What the owner says.
    pub(super) fn of(owner: &Value) -> Option<Self> {
        marks::is_true(owner, marks::SUSPEND).then_some(Self::Suspended)
    }
}

impl<'a> SetRun<'a> {
    pub(super) fn actions(self) -> MemberActions<'a> {
        MemberActions {
            run: self.run,
            sinks: self.executor.sinks(),
            kinds: &self.sets.kinds,
            answers: self.answers,
            permit: self.permit,
            metrics: self.metrics,
            stores: &self.sets.stores,
        }
    }

    /// Creates, updates and deletes members until nothing more can be done at the moment.
    pub(crate) async fn reconcile(self, request: &SetRequest) -> SetOutcome {
        let Some(owner) = self.run.members().first() else {
            return SetOutcome::Ready(Vec::new());
        };
        self.outcome(self.try_reconcile(owner, request).await)
    }

    /// Deletes the members of a deleted owner until nothing more can be done at the moment. The members of an owner that lives are left alone.
    pub(crate) async fn dismantle(self) -> SetOutcome {
        let Some(owner) = self.run.members().first() else {
            return SetOutcome::Ready(Vec::new());
        };
        self.outcome(self.try_dismantle(owner).await)
    }

    fn outcome(self, came: Result<SetOutcome, Fault>) -> SetOutcome {
        came.unwrap_or_else(|fault| SetOutcome::Failed(self.failure(fault)))
    }

    pub(super) fn failure(self, fault: Fault) -> Failure {
        let fault = Fault {
            message: self.redactor.redact(&fault.message),
            ..fault
        };
        begun_again(Failure::of_request("desired", fault))
    }

    async fn try_reconcile(
        self,
        member: &Member,
        request: &SetRequest,
    ) -> Result<SetOutcome, Fault> {
        let Some(options) = &self.run.configurator().sets else {
            return Err(unsupported("the Configurator does not declare `spec.sets`"));
        };
        let object = member.object.to_value();
        if let Some(reason) = abandonment::reason_of(&object) {
            self.abandon(member, &reason).await?;
            return Err(invalid(format!(
                "the set was given up, because the owner has the annotation {}; it begins anew when the annotation is gone",
                marks::ABANDON
            )));
        }
        let owner = self.owner_of(member);
        check_size(&request.set, options.max_entries)?;
        let digests = Digests::of(self.sets.key.get().await?, request);
        let termination = policy_text(request.set.termination_policy.as_ref());
        let policy = policy_of(&termination, &object);
        let hold = Hold::of(&object);
        let completed = Completed {
            digest: digests.all.clone(),
            termination_policy: termination.clone(),
            policy,
            generation: generation_of(member),
        };
        if hold.is_none()
            && !request.needs_results
            && self.sets.is_complete(&member.uid, &completed)
        {
            return Ok(SetOutcome::Ready(Vec::new()));
        }
        let Taken { live, idle, inbox } = self.sets.take(&member.key, &member.uid);
        let mut set = match live {
            Some(live) => live,
            None => self.load(&owner).await?,
        };
        if set.wanted.as_ref().map(|wanted| &wanted.digest) != Some(&digests.all) {
            let wanted = self.wanted(&owner, request, digests).await?;
            rights::check(self.run, &wanted)?;
            pre_terminate::check(self.run, self.redactor, &request.set.pre_terminate)?;
            set.stored.version += 1;
            set.want(wanted);
        }
        if let Some(idle) = idle {
            self.sets.restore(*idle, &mut set, self.clock.now());
        }
        if set.stored.termination_policy != termination {
            set.stored.termination_policy = termination;
            // A deletion after a restart knows the policy from the inventory alone.
            if !set.members.is_empty() {
                self.save(&mut set).await?;
            }
        }
        let Some(wanted) = &set.wanted else {
            return Err(unsupported("the set has no entries"));
        };
        let (checked, change) = (wanted.checked.clone(), change_of(wanted));
        let pruning = match self.is_canary {
            true => Pruning::Suspended,
            false => pruning_of(&object, &change, options),
        };
        let goal = Goal::Wanted(policy, pruning, &checked, &change);
        set.seek_kinds();
        set.completed = None;
        let rest = self.turn(&mut set, &inbox, goal, hold).await?;
        let lacks_kind = set.lacks_kind();
        if let Rest::Complete = rest {
            self.keep_pre_terminate(&mut set, &request.set.pre_terminate)
                .await?;
        }
        let results = match (&rest, request.needs_results) {
            (Rest::Complete, true) => self.results(&set).await?,
            _ => Vec::new(),
        };
        // A canary leaves members that have no entry, which go once it is promoted.
        if let (Rest::Complete, None, false) = (&rest, hold, self.is_canary) {
            set.completed = Some(completed);
        }
        Ok(match self.put(set, &inbox, rest) {
            Rest::Complete => SetOutcome::Ready(results),
            Rest::Waiting(wake_at) => {
                let looks_at = lacks_kind.then(|| self.clock.now().after(KIND_WAIT));
                SetOutcome::Waiting {
                    wake_at: wake_at.into_iter().chain(looks_at).min(),
                }
            }
            // No watch shows that a kind is served.
            Rest::Failed(fault) if lacks_kind => failed(fault, Reaction::Restart),
            Rest::Failed(fault) => failed(fault, Reaction::Fail),
        })
    }

    async fn try_dismantle(self, member: &Member) -> Result<SetOutcome, Fault> {
        let api = objects::of(self.client.clone(), self.resource, &member.key.namespace);
        let live = api.get_opt(&member.key.name).await;
        let what = format!("the owner {}", member.key);
        let live = live.map_err(|error| fault_of(&what, false, &error))?;
        let live = live.filter(|live| live.metadata.uid.as_deref() == Some(&member.uid));
        let ending = self.run.configurator().ending();
        let lives = live
            .as_ref()
            .is_some_and(|live| live.metadata.deletion_timestamp.is_none());
        if lives && ending.is_none() {
            // It is not selected any more.
            self.sets.forget(&member.uid);
            return Ok(SetOutcome::Ready(Vec::new()));
        }
        // Without an owner, what it said last counts.
        let object = live.and_then(|live| serde_json::to_value(live).ok());
        let object = object.unwrap_or_else(|| member.object.to_value());
        if let Some(reason) = abandonment::reason_of(&object) {
            self.abandon(member, &reason).await?;
            return Ok(SetOutcome::Ready(Vec::new()));
        }
        if lives && ending.is_some_and(|ending| ending.keeps_members) {
            self.abandon(member, "its Configurator is being deleted")
                .await?;
            return Ok(SetOutcome::Ready(Vec::new()));
        }
        let owner = self.owner_of(member);
        let Taken { live, inbox, .. } = self.sets.take(&member.key, &member.uid);
        let mut set = match live {
            Some(live) => live,
            None => self.load(&owner).await?,
        };
        let policy = policy_of(&set.stored.termination_policy, &object);
        let hold = Hold::of(&object);
        let preparation = match hold.is_some() || policy == TerminationPolicy::DoNotTerminate {
            true => Preparation::Done,
            false => self.pre_terminate(&mut set, &object).await?,
        };
        let goal = Goal::None(policy, preparation.reason());
        let mut rest = self.turn(&mut set, &inbox, goal, hold).await?;
        match preparation {
            Preparation::Done => {}
            Preparation::Waiting(_) => rest = Rest::Waiting(Some(self.clock.now().after(POLL))),
            Preparation::Failed(failure, _) => {
                self.put(set, &inbox, rest);
                return Ok(SetOutcome::Failed(failure));
            }
        }
        if policy == TerminationPolicy::DoNotTerminate && !set.members.is_empty() {
            self.publisher.publish(HostEvent::warning(
                self.subject(member),
                "SetKept",
                "the object is being deleted, but its termination policy is DoNotTerminate: nothing of its set is deleted, and the object stays; change the policy to delete it".to_owned(),
            ));
        }
        if let Rest::Complete = rest {
            self.write_ready().await;
            let fences = Permit::fences_of(self.permit);
            self.sets
                .inventories
                .delete(&mut set.stored, fences)
                .await?;
            self.sets.forget(&member.uid);
            return Ok(SetOutcome::Ready(Vec::new()));
        }
        Ok(match self.put(set, &inbox, rest) {
            Rest::Complete => SetOutcome::Ready(Vec::new()),
            Rest::Waiting(wake_at) => SetOutcome::Waiting { wake_at },
            Rest::Failed(fault) => failed(fault, Reaction::Restart),
        })
    }

    /// Puts a set to rest. What watches have shown since its last plan is looked at at once.
    fn put(self, set: Box<LiveSet>, inbox: &Inbox, rest: Rest) -> Rest {
        let now = self.clock.now();
        match self.sets.put(set, inbox, now) {
            true => Rest::Waiting(Some(now)),
            false => rest,
        }
    }

    pub(super) async fn load(self, owner: &SetOwner) -> Result<Box<LiveSet>, Fault> {
        let (stored, inventory) = self.sets.inventories.load(owner, self.is_new).await?;
        let members = Members::new(inventory, HashMap::new());
        Ok(Box::new(LiveSet::new(stored, members)))
    }

    pub(super) fn owner_of(self, member: &Member) -> SetOwner {
        let watch = &self.run.configurator().watch;
        SetOwner {
            api_version: api_version(&watch.group, &watch.version),
            kind: watch.kind.clone(),
            namespace: member.key.namespace.clone(),
            name: member.key.name.clone(),
            uid: member.uid.clone(),
        }
    }

    pub(super) fn subject(self, member: &Member) -> Subject {
        Subject::watched(self.run.configurator(), &member.key, &member.uid)
    }

    /// Checks what a handler returned.
    async fn wanted(
        self,
        owner: &SetOwner,
        request: &SetRequest,
        digests: Digests,
    ) -> Result<Wanted, Fault> {
        let set = &request.set;
        let mut served: HashMap<(String, String), Option<ServedKind>> = HashMap::new();
        let mut kinds = Vec::with_capacity(set.entries.len());
        for entry in &set.entries {
            let name = KindName::of(entry);
            let kind = match &name {
                Some(name) => self.sets.kinds.find(name).await?,
                None => None,
            };
            if let Some(name) = name {
                served.insert((name.group, name.kind), kind.clone());
            }
            kinds.push(kind);
        }
        let configurator = self.run.configurator();
        let taken: Vec<&str> = request.taken.iter().map(String::as_str).collect();
        let group = group_of(&owner.api_version);
        let is_namespaced = |group: &str, kind: &str| {
            let kind = served.get(&(group.to_owned(), kind.to_owned()))?;
            Some(kind.as_ref()?.is_namespaced)
        };
        let checked = set.clone().check(SetRules {
            owner: Owner {
                group,
                kind: &owner.kind,
                namespace: &owner.namespace,
                name: &owner.name,
            },
            partition: &configurator.key.namespace,
            taken: &taken,
            is_namespaced: &is_namespaced,
        })?;
        let Digests { all, entries } = digests;
        Wanted::new(Arc::new(checked), all, entries, kinds).map_err(invalid)
    }

    /// Carries out actions until nothing more can be done at the moment. For a set that is on hold, that is only to read its members.
    pub(super) async fn turn(
        self,
        set: &mut LiveSet,
        inbox: &Inbox,
        goal: Goal<'_>,
        hold: Option<Hold>,
    ) -> Result<Rest, Fault> {
        let actions = self.actions();
        let parallel = self.run.configurator().concurrency;
        let mut under_way = FuturesUnordered::new();
        let mut is_dirty = false;
        let mut published = self.clock.now();
        loop {
            inbox.take_in(set, self.clock.now());
            let mut planned = self.plan(set, goal);
            let mut held = Vec::new();
            if hold.is_some() {
                let is_held = |action: &mut Action| !matches!(action, Action::Observe(_));
                held.extend(planned.actions.extract_if(.., is_held));
                planned.wake_at = None;
            }
            let (records, to_perform): (Vec<Action>, Vec<Action>) = planned
                .actions
                .into_iter()
                .partition(Action::is_inventory_write);
            let has_records = !records.is_empty();
            let mut is_new = false;
            for record in records {
                is_new |= matches!(&record, Action::Record(key, _)
                    if set.members.get(key).is_none_or(|known| known.member.is_none()));
                let nonce = match is_new {
                    true => URL_SAFE_NO_PAD.encode(random::<12>()?),
                    false => String::new(),
                };
                set.members.record(record, || nonce);
            }
            is_dirty |= has_records;
            set.is_watched &= !has_records;
            // A member is in the inventory before it exists. All else is written at the end of the turn.
            if is_new {
                self.save(set).await?;
                is_dirty = false;
            }
            if has_records {
                continue;
            }
            for action in &to_perform {
                if let Some(prepared) = Prepared::new(action, set) {
                    set.members.get_mut(&prepared.key).observation.is_busy = true;
                    under_way.push(actions.perform(prepared));
                }
            }
            // A plan takes time. When all actions are under way that may be, a quarter of them ends before the next plan.
            let plan_from = match under_way.len() < parallel {
                true => parallel,
                false => parallel.saturating_sub((parallel / 4).max(1)),
            };
            if under_way.is_empty() {
                if is_dirty {
                    self.save(set).await?;
                }
                self.watch(set).await?;
                let (mut rest, mut status) = at_rest(&planned.state, &set.members);
                match (hold, goal) {
                    (Some(Hold::Suspended), _) => status::suspend(&mut status),
                    (Some(Hold::Unattended), Goal::Wanted(_, _, checked, _)) => {
                        if self.tell_of_drift(set, checked, &held) {
                            status::drift(&mut status);
                        }
                    }
                    (Some(Hold::Unattended), Goal::None(..)) | (None, _) => {}
                }
                if hold.is_some() && !matches!(rest, Rest::Complete) {
                    rest = Rest::Waiting(None);
                }
                self.publish(set, status, counts(&planned.state)).await?;
                return Ok(rest);
            }
            let now = self.clock.now();
            if hold.is_none() && now >= published.after(PROGRESS) {
                published = now;
                self.publish_progress(set, &planned.state).await;
            }
            loop {
                tokio::select! {
                    Some(done) = under_way.next() => {
                        let (key, done) = done?;
                        self.on_done(set, &key, done);
                        // A plan takes in all that is there.
                        while let Some(Some(done)) = under_way.next().now_or_never() {
                            let (key, done) = done?;
                            self.on_done(set, &key, done);
                        }
                        if under_way.len() <= plan_from {
                            break;
                        }
                    }
                    () = inbox.told() => {
                        // Most events are the echoes of the actions.
                        if inbox.take_in(set, self.clock.now()) {
                            break;
                        }
                    }
                    () = until(self.clock.clone(), planned.wake_at) => break,
                }
            }
        }
    }

    /// Shows how far an attempt is. It goes on if that cannot be written.
    async fn publish_progress(self, set: &mut LiveSet, state: &PlannedState<'_>) {
        let (_, status) = at_rest(state, &set.members);
        if let Err(fault) = self.publish(set, status, counts(state)).await {
            tracing::debug!(object_set = %set.stored.object_set, %fault, "the progress of the set could not be published");
        }
    }

    fn plan<'g>(self, set: &mut LiveSet, goal: Goal<'g>) -> Planned<'g> {
        let parallel = self.run.configurator().concurrency;
        let now = self.clock.now();
        match goal {
            Goal::Wanted(policy, pruning, checked, change) => {
                let input = PlanInput {
                    graph: &checked.graph,
                    version: set.stored.version,
                    policy,
                    parallel,
                    pruning,
                    now,
                };
                let mut plan = plan(&input, &mut set.members);
                Planned {
                    actions: std::mem::take(&mut plan.actions),
                    wake_at: plan.wake_at,
                    state: PlannedState::Wanted(plan, checked, change),
                }
            }
            Goal::None(policy, unprepared) => {
                let mut deletion = delete(&DeletionInput {
                    members: &set.members,
                    policy,
                    is_prepared: unprepared.is_none(),
                    parallel,
                    now,
                });
                Planned {
                    actions: std::mem::take(&mut deletion.actions),
                    wake_at: deletion.wake_at,
                    state: PlannedState::Deletion(deletion, unprepared),
                }
            }
        }
    }

    fn on_done(self, set: &mut LiveSet, key: &MemberKey, done: Done) {
        let now = self.clock.now();
        let rejection = match done {
            Done::Seen(object, read_for) => {
                set.observe(key, object.as_deref(), read_for, now);
                None
            }
            Done::Repaired(object, message) => {
                set.observe(key, Some(&object), ReadFor::Write, now);
                let is_fight = set.corrected(key, now);
                self.tell_of_repair(key, message.as_deref(), is_fight);
                None
            }
            Done::NoKind => {
                set.lose_kind(key);
                None
            }
            Done::Rejected(fault) => Some(fault),
        };
        let is_rejected = rejection.is_some();
        let rejection = rejection.map(|fault| self.rejection(set, key, fault, now));
        if !is_rejected {
            set.tries.remove(key);
        }
        set.end_action(key, rejection);
    }

    /// Decides whether an action that the server rejected is tried again.
    fn rejection(
        self,
        set: &mut LiveSet,
        key: &MemberKey,
        fault: Fault,
        now: Timestamp,
    ) -> Rejection {
        let tries = set.tries.entry(key.clone()).or_default();
        let is_immutable = fault.status == Some(422) && fault.message.contains("immutable");
        // Fields that others have do not become free by waiting.
        let is_conflict = fault.kind == FaultKind::ResourceConflict;
        let mut failure = Failure::of_request(key.to_string(), fault);
        if is_conflict {
            failure.reaction = Reaction::Fail;
        }
        let jitter = mix(u64::from(tries.failures) ^ now.as_millis().unsigned_abs());
        let policy = &self.run.configurator().retry;
        let verdict = retry::decide(failure, *tries, policy, jitter);
        *tries = verdict.tries;
        Rejection {
            kind: match verdict.decision {
                _ if is_immutable => RejectionKind::Immutable,
                Decision::Resend { after }
                | Decision::Restart { after }
                | Decision::Park { after } => RejectionKind::RetryAt(now.after(after)),
                Decision::Fail => RejectionKind::Permanent,
            },
            message: self.redactor.redact(&verdict.failure.fault.message),
        }
    }

    /// Says that a member was corrected, and whose fields were taken back.
    fn tell_of_repair(self, key: &MemberKey, conflict: Option<&str>, is_fight: bool) {
        let Some(owner) = self.run.members().first() else {
            return;
        };
        self.sets.metrics.repaired();
        let conflicts = match conflict {
            None if key.partition().is_some() => " the store does not say by whom",
            None => " no field manager has the fields that differed",
            Some(conflict) => conflict.split(FIELDS_OF_OTHERS).nth(1).unwrap_or(conflict),
        };
        tracing::info!(configurator = %self.run.configurator().key, object = %owner.key, member = %key, "a member had drifted and was corrected");
        let tell = |reason: &'static str, message: String| {
            self.publisher.publish(HostEvent {
                action: key.to_string(),
                ..HostEvent::warning(self.subject(owner), reason, self.redactor.redact(&message))
            });
        };
        tell(
            "DriftRepaired",
            format!("{key} was changed by others and is corrected:{conflicts}"),
        );
        if is_fight {
            self.sets.metrics.fight_began();
            let advice = match key.partition() {
                None => {
                    "list the fields in `ignored-paths` of the entry, or have the others leave them alone"
                }
                Some(_) => "have the others leave it alone, or remove the entry",
            };
            tell(
                "DriftContested",
                format!(
                    "{key} is changed by others again and again, and is corrected less and less often from now on; {advice}:{conflicts}"
                ),
            );
        }
    }

    /// Returns when something may be written.
    pub(super) async fn write_ready(self) {
        if let Some(permit) = self.permit {
            permit.ready(None).await;
        }
    }

    pub(super) async fn save(self, set: &mut LiveSet) -> Result<(), Fault> {
        self.write_ready().await;
        let fences = Permit::fences_of(self.permit);
        let LiveSet {
            stored, members, ..
        } = set;
        self.sets
            .inventories
            .save(stored, members.inventory(), fences)
            .await
    }

    async fn publish(
        self,
        set: &mut LiveSet,
        mut said: ObjectSetStatus,
        members: MemberCounts,
    ) -> Result<(), Fault> {
        self.write_ready().await;
        let generation = self
            .run
            .members()
            .first()
            .and_then(generation_of)
            .unwrap_or_default();
        let stored = &mut set.stored;
        status::complete(
            &mut said,
            &stored.owner,
            generation,
            stored.status(),
            self.clock.now(),
        );
        let counts = SetCounts {
            state: said.state.clone(),
            members,
        };
        self.sets.count(&stored.owner.uid, counts);
        self.sets.inventories.publish(stored, said).await
    }

    /// Watches the kinds of all members, unless they are watched. First looks up the kinds that the API did not serve before, because the set
    /// may have defined them since.
    async fn watch(self, set: &mut LiveSet) -> Result<(), Fault> {
        if set.is_watched {
            return Ok(());
        }
        let unserved = set.wanted.iter_mut().flat_map(Wanted::unserved);
        for (entry, wanted) in unserved {
            if let Some(name) = KindName::of(entry) {
                wanted.kind = self.sets.kinds.find(&name).await?;
            }
        }
        let wanted = set.wanted.as_ref();
        let members = wanted.into_iter().flat_map(Wanted::members);
        let mut watched: BTreeSet<WatchedKind> = members
            .filter_map(|(_, key, kind)| WatchedKind::of(kind?, key))
            .collect();
        for (key, _) in set.members.inventory() {
            if wanted.is_none_or(|wanted| wanted.entry_of(key).is_none())
                && let Some(kind) = self.sets.kinds.preferred(key).await?
            {
                watched.extend(WatchedKind::of(&kind, key));
            }
        }
        self.sets.watch(set, watched);
        let mut wanted = set.wanted.iter_mut().flat_map(Wanted::unserved);
        set.is_watched = wanted.next().is_none();
        Ok(())
    }

    /// Reads the members for the next handler. The value of a secret is not among what it sees.
    async fn results(self, set: &LiveSet) -> Result<Vec<(String, ResultEntry)>, Fault> {
        let actions = self.actions();
        let Some(wanted) = &set.wanted else {
            return Ok(Vec::new());
        };
        let mut results = Vec::new();
        for (entry, key, kind) in wanted.members() {
            let created = self.clock.now();
            let (sink, object) = match (key, kind) {
                (MemberKey::Kubernetes { .. }, None) => continue,
                (MemberKey::Kubernetes { .. }, Some(kind)) => {
                    (SinkName::Kubernetes, actions.read((key, kind)).await?)
                }
                (MemberKey::Config { .. }, _) => (SinkName::Configstore, actions.value(key).await?),
                (MemberKey::Secret { .. }, _) => {
                    let mut secret = actions.value(key).await?;
                    if let Some(Value::Object(fields)) = &mut secret {
                        fields.remove("value");
                    }
                    (SinkName::Secretstore, secret)
                }
            };
            let document = object.map(|object| Document::of(&object));
            let document = document
                .transpose()
                .map_err(|error| invalid(error.to_string()))?;
            let result = RequestResult {
                request_name: entry.name.clone(),
                sink,
                is_declarative: false,
                query_objects: document.into_iter().collect(),
                created,
                finished: Some(self.clock.now()),
                error: None,
                http_response: None,
            };
            results.push((entry.name.clone(), ResultEntry::One(result)));
        }
        Ok(results)
    }
}

/// Names the change that a set makes, for people who confirm it: the same as long as a handler returns the same set.
pub(super) fn change_of(wanted: &Wanted) -> String {
    let digest = digest_of([wanted.digest.as_bytes()]);
    digest.chars().take(DIGITS).collect()
}

/// Returns how many members the change of this name may delete.
fn pruning_of(owner: &Value, change: &str, options: &SetOptions) -> Pruning {
    match marks::annotation(owner, marks::CONFIRM_PRUNE) {
        Some(confirmed) if confirmed == change => Pruning::Confirmed,
        _ => Pruning::UpTo {
            percent: options.max_prune_percent,
            from: options.prune_from,
        },
    }
}

/// Refuses a set that is larger than allowed, before anything is written.
fn check_size(set: &DesiredSet, max_entries: usize) -> Result<(), Fault> {
    if set.entries.len() > max_entries {
        return Err(invalid(format!(
            "the set has {} entries; spec.sets.maxEntries allows {max_entries}",
            set.entries.len()
        )));
    }
    Ok(())
}

/// What a handler returned, as digests. They have a key, because entries may hold secrets.
struct Digests {
    /// Of everything that the check of the set depends on.
    all: String,
    entries: Vec<String>,
}

impl Digests {
    fn of(key: &StateKey, request: &SetRequest) -> Self {
        let set = &request.set;
        let digest = |entry: &DesiredEntry| {
            let text = serde_json::to_string(entry).unwrap_or_default();
            key.seal(&[b"entry", text.as_bytes()])
        };
        let entries: Vec<String> = set.entries.iter().map(digest).collect();
        let others = (
            &set.orders,
            &set.pre_terminate,
            set.allow_empty,
            &request.taken,
        );
        let others = serde_json::to_string(&others).unwrap_or_default();
        let parts = [b"set".as_slice(), others.as_bytes()].into_iter();
        let parts: Vec<&[u8]> = parts.chain(entries.iter().map(String::as_bytes)).collect();
        Self {
            all: key.seal(&parts),
            entries,
        }
    }
}

/// What the host could not do with a set is begun again from the root.
pub(super) fn begun_again(failure: Failure) -> Failure {
    match failure.reaction {
        Reaction::Resend => Failure {
            reaction: Reaction::Restart,
            ..failure
        },
        _ => failure,
    }
}

fn failed(fault: Fault, reaction: Reaction) -> SetOutcome {
    SetOutcome::Failed(Failure {
        reaction,
        ..Failure::of_request("desired", fault)
    })
}

fn generation_of(member: &Member) -> Option<i64> {
    #[derive(Deserialize)]
    struct Owner {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        generation: Option<i64>,
    }
    let owner: Owner = member.object.read().ok()?;
    owner.metadata.generation
}

pub(super) fn invalid(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

fn unsupported(message: &str) -> Fault {
    Fault::new(FaultKind::UnsupportedResourceOperation, message)
}
