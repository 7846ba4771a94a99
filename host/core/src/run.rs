//! One pass of one object, or of a batch, through the phases of a chain. In a machine, one entry of a leaf of an object's tree.
//!
//! A [`Run`] is a state machine. Whoever drives it does what its [`Step`] says and hands back what came of it,
//! until it has finished. It persists nothing.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::authorization::{
    AuthorizedOperation, Caller, Denied, authorize, authorize_handover, held_by,
};
use crate::ceiling::Ceiling;
use crate::configurator::{Configurator, Phase};
use crate::content::ContentDigest;
use crate::desired::DesiredSet;
use crate::digest::digest_of;
use crate::document::Document;
use crate::fault::{Fault, FaultKind, Reaction};
use crate::handler::{
    CallFault, Cause, Context, Event, HandlerError, HandlerInput, HandlerOutput, Outcome,
    ResourceObject, StatusUpdate, Wake, WatchEvent, WatchedObject,
};
use crate::machine::action::{Entry, Role};
use crate::machine::event::{End, LeafFailure, LeafOutput};
use crate::machine::state::NodeError;
use crate::module::RunModule;
use crate::output::{self, Applied, OutputRules, SetRule};
use crate::parking::Server;
use crate::plan::{
    self, Conclusion, EntryId, Failure, InvalidRequest, Kept, Plan, PlanRules, PlannedAction,
    PlannedStep,
};
use crate::request::{
    KubernetesRequest, ObjectKey, ObjectRef, Operation, Request, Requests, SinkName,
};
use crate::result::{RequestResult, ResultEntry};
use crate::retry::{self, Decision, Tries, Verdict};
use crate::time::Timestamp;

pub use outcome::{Departed, Finish, Pause, RunEnd, RunOutcome, SetOutcome};
pub use unready::{LONGEST_WAIT, UnreadyPlan};

mod outcome;
mod unready;

/// One object of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Names the object.
    pub key: ObjectRef,
    /// Its identity.
    pub uid: String,
    /// The object, projected.
    pub object: Document,
    /// Why it is in the run.
    pub event: WatchEvent,
    /// Of its content when the run began.
    pub content: ContentDigest,
    /// When its last scheduled resync was due, or when it appeared. `None`: this host has seen neither.
    pub occasion: Option<Timestamp>,
}

/// Which chain of phases a run goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chain {
    /// `spec.chain.phases`.
    Phases,
    /// `spec.deletion.phases`.
    Deletion,
}

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// The declaration, as it was when the run began.
    pub configurator: Arc<Configurator>,
    /// What others allow at most, as it was when the run began.
    pub ceiling: Arc<Ceiling>,
    /// The objects; exactly one unless the Configurator takes batches.
    pub members: Vec<Member>,
    /// The chain.
    pub chain: Chain,
    /// How often these objects were tried in vain since they last changed.
    pub tries: Tries,
    /// The module that its handlers are called in.
    pub module: RunModule,
}

impl RunStart {
    /// The seed that varies the wait after the next failure. A [`Run`] of these objects has the same one.
    #[must_use]
    pub fn jitter(&self) -> u64 {
        let id = run_id(&self.configurator.uid, self.chain, &self.members);
        jitter(&id, self.tries)
    }
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Call the handler; then [`Run::on_call`].
    Call(Box<Call>),
    /// Execute the requests; then [`Run::on_results`].
    Execute(Arc<Plan>),
    /// Create, update and delete members of the object's set until nothing more can be done at the moment; then [`Run::on_set`].
    Reconcile(Arc<SetRequest>),
    /// Delete the members of the object's set until nothing more can be done at the moment; then [`Run::on_set`].
    Dismantle,
    /// Keep the run, without a slot, until this is over; then [`Run::resume`].
    Pause(Pause),
    /// Nothing more; the run is over.
    Finish(Finish),
}

/// A set that a handler returned.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRequest {
    /// The set, which has not been checked.
    pub set: DesiredSet,
    /// The names of the requests and groups of the same output.
    pub taken: Vec<String>,
    /// Whether the next handler sees the members.
    pub needs_results: bool,
}

/// A call of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The handler's name.
    pub handler: String,
    /// What it sees.
    pub input: Arc<HandlerInput>,
}

/// The entry of a machine's leaf that a run is for.
#[derive(Debug, Clone)]
struct LeafRun {
    /// The phase that the object is in; the one that the run goes through has the leaf's handler.
    phase: String,
    chain: [Phase; 1],
    entry: Entry,
    /// Whether requests were sent that may be sent but once.
    is_sent: bool,
    output: Option<LeafOutput>,
    failure: Option<LeafFailure>,
}

impl LeafRun {
    /// Ends the entry with this failure, unless it has failed already.
    fn fail(&mut self, failure: Failure, retry_after: Option<Duration>, tries: Tries) -> Finish {
        let fault = &failure.fault;
        // A server that is away may have carried out what it did not answer.
        let may_be_done = self.is_sent && failure.reaction == Reaction::Park;
        self.failure.get_or_insert_with(|| LeafFailure {
            error: NodeError::new(fault.to_string()),
            is_fatal: failure.reaction == Reaction::Fail,
            is_unknown: fault.kind == FaultKind::OutcomeUnknown || may_be_done,
            retry_after,
        });
        let failures = tries.failures.saturating_add(1);
        Finish::Failed { failure, failures }
    }
}

/// What handlers said about the objects, beside their requests.
#[derive(Debug, Clone, Default)]
struct Effects {
    statuses: Vec<StatusUpdate>,
    events: Vec<Event>,
}

/// One pass of one object, or of a batch, through the phases.
#[derive(Debug, Clone)]
pub struct Run {
    configurator: Arc<Configurator>,
    ceiling: Arc<Ceiling>,
    members: Vec<Member>,
    chain: Chain,
    tries: Tries,
    id: String,
    position: usize,
    entered: Timestamp,
    results: Vec<(String, ResultEntry)>,
    args: Vec<(String, Document)>,
    next_args: Vec<(String, Document)>,
    plan: Option<Arc<Plan>>,
    /// Whether the rest of the plan waits for objects to become ready.
    waiting: Option<unready::Waiting>,
    kept: Kept,
    applied: Applied,
    pending: Effects,
    effects: Effects,
    departed: Vec<Departed>,
    secrets: Vec<Document>,
    leaf: Option<Box<LeafRun>>,
    module: RunModule,
    attached: Option<Attachment>,
    set: SetProgress,
}

/// How far a run has come with the object's set.
#[derive(Debug, Clone, Default)]
enum SetProgress {
    /// No handler has returned a set.
    #[default]
    None,
    /// The handler of the phase that the run is in returned this one. Its requests go first.
    Returned(Arc<SetRequest>),
    /// The members are being brought to what it says. The results are those of the requests.
    Reconciling(Arc<SetRequest>, Vec<(String, ResultEntry)>),
    /// The members are as the handler of this phase wants them. No other phase may return a set.
    Ready(String),
    /// The members of a deleted object are gone.
    Dismantled,
}

/// A value of the host that goes with a run.
pub type Attachment = Arc<dyn Any + Send + Sync>;

impl Run {
    /// Begins a run. The first step is always a call of the chain's first handler; an empty chain, or no members,
    /// has succeeded at once.
    #[must_use]
    pub fn start(start: RunStart, now: Timestamp) -> (Self, Step) {
        let id = run_id(&start.configurator.uid, start.chain, &start.members);
        let run = Self::new(start, id, now);
        let step = run.enter();
        (run, step)
    }

    fn new(start: RunStart, id: String, now: Timestamp) -> Self {
        let RunStart {
            configurator,
            ceiling,
            members,
            chain,
            tries,
            module,
        } = start;
        let secrets = configurator.secrets.clone();
        Self {
            configurator,
            ceiling,
            members,
            chain,
            tries,
            id,
            position: 0,
            entered: now,
            results: Vec::new(),
            args: Vec::new(),
            next_args: Vec::new(),
            plan: None,
            waiting: None,
            kept: Kept::new(),
            applied: Applied::new(),
            pending: Effects::default(),
            effects: Effects::default(),
            departed: Vec::new(),
            secrets,
            module,
            leaf: None,
            attached: None,
            set: SetProgress::default(),
        }
    }

    /// Begins the entry of a leaf, of an object that is in this phase; `results` are those of the leaf before it. The first
    /// step is always a call of its handler.
    ///
    /// A request or a handler that fails ends the run: the machine decides what follows. Only what waits for a sink rests.
    #[must_use]
    pub fn enter_leaf(
        start: RunStart,
        phase: &str,
        entry: Entry,
        results: Vec<(String, ResultEntry)>,
        now: Timestamp,
    ) -> (Self, Step) {
        let id = visit_id(&start.configurator.uid, phase, entry.visit, &start.members);
        let mut run = Self::new(start, id, now);
        run.tries = Tries {
            failures: entry.attempt.saturating_sub(1),
            refusals: 0,
        };
        run.results = results;
        run.args.clone_from(&entry.args);
        run.leaf = Some(Box::new(LeafRun {
            phase: phase.to_owned(),
            chain: [Phase {
                name: entry.path.clone(),
                handler: entry.handler.clone(),
            }],
            entry,
            is_sent: false,
            output: None,
            failure: None,
        }));
        let step = run.enter();
        (run, step)
    }

    /// How the entry of a leaf ended, once the run has finished, and the results that the next leaf gets. `None` for a run
    /// that is none of a leaf, or has not finished.
    pub fn take_end(&mut self) -> Option<(End, Vec<(String, ResultEntry)>)> {
        let leaf = self.leaf.as_mut()?;
        let end = match (leaf.output.take(), leaf.failure.take()) {
            // An outcome `failed` comes with notes that an error has not.
            (Some(output), failure)
                if failure.is_none() || matches!(output.outcome, Outcome::Failed(_)) =>
            {
                End::Output(Box::new(output))
            }
            (_, failure) => End::Failed(failure?),
        };
        Some((end, std::mem::take(&mut self.results)))
    }

    /// Whether these requests may be sent but once, and the machine must hear of it first.
    #[must_use]
    pub fn is_once(&self, plan: &Plan) -> bool {
        self.leaf
            .as_ref()
            .is_some_and(|leaf| leaf.entry.once && !leaf.is_sent)
            && plan.steps.iter().any(PlannedStep::is_effect)
    }

    /// Requests that may be sent but once are about to be: from now on nothing of this run is tried again.
    pub fn note_sending(&mut self) {
        if let Some(leaf) = &mut self.leaf {
            leaf.is_sent = true;
        }
    }

    /// Returns whether requests were sent that may be sent but once.
    #[must_use]
    pub fn has_sent_once(&self) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| leaf.is_sent)
    }

    /// The entry of the leaf has failed like this, although its requests went well.
    pub fn fail_leaf(&mut self, failure: Failure) -> Step {
        if let Some(leaf) = &mut self.leaf {
            leaf.output = None;
        }
        let failure = Failure {
            reaction: match failure.reaction {
                Reaction::Park => Reaction::Restart,
                reaction => reaction,
            },
            ..failure
        };
        self.react(failure)
    }

    /// The host could not do its own part before the plan was executed. Nothing was sent, so the run begins again or waits for the sink.
    pub fn on_host_failure(&mut self, failure: Failure) -> Step {
        match failure.reaction {
            Reaction::Park => self.react(failure),
            Reaction::Resend | Reaction::Restart | Reaction::Fail => {
                Step::Finish(self.begin_again(failure))
            }
        }
    }

    /// Every phase went through, but the host could not write what the handlers said of the objects: the run begins again.
    pub fn begin_again(&mut self, failure: Failure) -> Finish {
        if self.leaf.is_some() {
            return match self.fail_leaf(failure) {
                Step::Finish(finish) => finish,
                Step::Call(_)
                | Step::Execute(_)
                | Step::Reconcile(_)
                | Step::Dismantle
                | Step::Pause(_) => Finish::Succeeded,
            };
        }
        if self.members.len() > 1 && failure.reaction != Reaction::Park {
            return Finish::Split { failure };
        }
        let Verdict {
            decision,
            failure,
            tries,
        } = self.decide(failure);
        match decision {
            Decision::Resend { after } | Decision::Restart { after } | Decision::Park { after } => {
                Finish::Restart {
                    after,
                    failure,
                    tries,
                }
            }
            Decision::Fail => Finish::Failed {
                failure,
                failures: tries.failures,
            },
        }
    }

    /// The token of the entry that the run is for.
    #[must_use]
    pub fn token(&self) -> Option<u64> {
        self.leaf.as_ref().map(|leaf| leaf.entry.token)
    }

    /// The same for the same objects with the same content, also after a restart of the host; for a leaf, as long as its
    /// phase does not begin anew.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The module that its handlers are called in, from its beginning to its end.
    #[must_use]
    pub fn module(&self) -> &RunModule {
        &self.module
    }

    /// The declaration that the run follows.
    #[must_use]
    pub fn configurator(&self) -> &Arc<Configurator> {
        &self.configurator
    }

    /// The objects that are still in the run.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Which chain it goes through.
    #[must_use]
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// How many attempts have failed.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.tries.failures
    }

    /// How often its objects were tried in vain.
    #[must_use]
    pub fn tries(&self) -> Tries {
        self.tries
    }

    /// The name of the phase that the run is in; of the last one when it has finished. For a leaf, the path of its node.
    #[must_use]
    pub fn phase(&self) -> &str {
        self.phases()
            .get(self.position)
            .or_else(|| self.phases().last())
            .map_or("", |phase| phase.name.as_str())
    }

    /// The number of the entry: see [`Context::entry`].
    #[must_use]
    pub fn entry(&self) -> u32 {
        self.leaf.as_ref().map_or(1, |leaf| leaf.entry.entry)
    }

    fn plan_rules<'a>(&'a self, namespace: &'a str) -> PlanRules<'a> {
        PlanRules {
            configurator: &self.configurator.key,
            capabilities: &self.configurator.capabilities,
            ceiling: &self.ceiling,
            namespace,
            entry: self.entry_id(),
        }
    }

    /// Plans requests that come before the deletion of an object's set. They go side by side.
    ///
    /// # Errors
    /// When one cannot be sent as it is, whatever the rules say.
    pub fn plan_pre_terminate(&self, requests: Vec<Request>) -> Result<Plan, InvalidRequest> {
        let first = self.members.first();
        let entry = EntryId {
            run: first.map_or("", |member| &member.uid),
            phase: "pre-terminate",
            number: 0,
        };
        let rules = PlanRules {
            entry,
            ..self.plan_rules(first.map_or("", |member| &member.key.namespace))
        };
        let requests = Requests {
            resource_requests: requests,
            ..Requests::default()
        };
        Plan::of(requests, &Kept::default(), rules)
    }

    /// Returns the step with another operation, authorized like any other.
    #[must_use]
    pub fn with_operation(&self, step: &PlannedStep, operation: Operation) -> PlannedStep {
        let first = self.members.first();
        let rules = self.plan_rules(first.map_or("", |member| &member.key.namespace));
        let request = Request {
            operation,
            ..step.request.clone()
        };
        let action = match rules.authorize(&request) {
            Ok(authorized) => PlannedAction::Send(Box::new(authorized)),
            Err(denied) => PlannedAction::Refuse(denied.into_fault()),
        };
        PlannedStep {
            request,
            action,
            on_error: step.on_error,
        }
    }

    /// Authorizes an operation on a member of the object's set, which this field manager sends.
    ///
    /// # Errors
    /// As [`authorize`].
    pub fn authorize_member(
        &self,
        operation: &Operation,
        field_manager: &str,
    ) -> Result<AuthorizedOperation, Denied> {
        let caller = self.caller_of_members(field_manager);
        let capabilities = &self.configurator.capabilities;
        authorize(operation, caller, capabilities, &self.ceiling)
    }

    /// Authorizes the patch of a member that changes nothing but which manager owns which field, as [`authorize_handover`] does. This field
    /// manager sends it.
    ///
    /// # Errors
    /// As [`authorize`].
    pub fn authorize_handover(
        &self,
        target: &KubernetesRequest,
        managed_fields: &Value,
        field_manager: &str,
    ) -> Result<AuthorizedOperation, Denied> {
        let caller = self.caller_of_members(field_manager);
        let capabilities = &self.configurator.capabilities;
        authorize_handover(target, managed_fields, caller, capabilities, &self.ceiling)
    }

    fn caller_of_members<'a>(&'a self, field_manager: &'a str) -> Caller<'a> {
        let first = self.members.first();
        Caller {
            field_manager,
            namespace: first.map_or("", |member| &member.key.namespace),
            partition: &self.configurator.key.namespace,
            effect: &self.id,
        }
    }

    /// Checks that the members of a set may be watched that are of the same kind and in the same namespace as this object.
    ///
    /// # Errors
    /// [`FaultKind::ResourcePermission`]; the message says whose rules lack one.
    pub fn check_watch(&self, key: &ObjectKey) -> Result<(), Fault> {
        held_by(&self.configurator.capabilities, &self.ceiling, |rules| {
            rules.check_wait(key)
        })
    }

    /// Returns whether the run is an entry of a machine's leaf.
    #[must_use]
    pub fn is_of_leaf(&self) -> bool {
        self.leaf.is_some()
    }

    /// Returns the phase that a machine's object is in; empty in a chain.
    #[must_use]
    pub fn visited_phase(&self) -> &str {
        self.leaf.as_ref().map_or("", |leaf| leaf.phase.as_str())
    }

    /// Identifies the entry that the run is in.
    #[must_use]
    pub fn entry_id(&self) -> EntryId<'_> {
        EntryId {
            run: &self.id,
            phase: self.phase(),
            number: self.entry(),
        }
    }

    /// Objects that have left the batch since the last call of this.
    pub fn take_departed(&mut self) -> Vec<Departed> {
        std::mem::take(&mut self.departed)
    }

    /// Events that the handlers of settled phases returned since the last call of this.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.effects.events)
    }

    /// The statuses that the handlers of settled phases returned, for the end of the run: those of one run are one
    /// apply, so they are not taken before.
    pub fn take_statuses(&mut self) -> Vec<StatusUpdate> {
        std::mem::take(&mut self.effects.statuses)
    }

    /// What the secret store has answered in this run, each answer once, so that it can be kept out of what is shown.
    #[must_use]
    pub fn secrets(&self) -> &[Document] {
        &self.secrets
    }

    /// The handler may have been told these by runs before this one.
    pub fn know_secrets(&mut self, secrets: &[Document]) {
        for secret in secrets {
            if !self.secrets.contains(secret) {
                self.secrets.push(secret.clone());
            }
        }
    }

    /// Takes in what the secret store has answered.
    fn learn_secrets<'a>(&mut self, results: impl IntoIterator<Item = &'a RequestResult>) {
        let results = results.into_iter();
        let answers = results.filter(|result| result.sink == SinkName::Secretstore);
        for answer in answers.flat_map(|result| &result.query_objects) {
            // A run that rests reads the same secrets again, as often as the outage is long.
            if !self.secrets.contains(answer) {
                self.secrets.push(answer.clone());
            }
        }
    }

    /// The name of the handler of the phase that the run is in; empty when it has finished.
    #[must_use]
    pub fn handler(&self) -> &str {
        self.phases()
            .get(self.position)
            .or_else(|| self.phases().last())
            .map_or("", |phase| phase.handler.as_str())
    }

    /// Returns the bytes of the answers that a run keeps while it rests: those that the handler is called with, those that are not asked for
    /// again, and secrets.
    #[must_use]
    pub fn size_of_answers(&self) -> u64 {
        let results = self.results.iter().map(|(_, entry)| entry.size());
        let kept = self.kept.values().map(|(_, result)| result.size());
        let secrets = self.secrets.iter().map(|secret| secret.size() as u64);
        let of_plan = std::iter::once(self.size_of_unready());
        results.chain(kept).chain(secrets).chain(of_plan).sum()
    }

    /// Has a value go with the run, in place of the last one. It is dropped with the run.
    pub fn attach(&mut self, value: Attachment) {
        self.attached = Some(value);
    }

    /// Takes the value that goes with the run.
    pub fn detach(&mut self) -> Option<Attachment> {
        self.attached.take()
    }

    /// Returns how a run ends that was to rest and cannot be kept meanwhile. Phases begin again after the same wait. An entry of a machine has
    /// failed, and is made again as its phase says.
    pub fn end_in_place_of(&mut self, pause: Pause) -> Finish {
        let (after, failure, tries) = match pause {
            Pause::Resend {
                after,
                failure,
                tries,
            }
            | Pause::Park {
                after,
                failure,
                tries,
            } => (after, failure, tries),
            Pause::Members { .. } | Pause::Unready { .. } => {
                let message = "the run cannot wait for objects to become ready, because there is no memory for the answers that it would keep";
                let fault = Fault::new(FaultKind::ResourceGeneric, message);
                return self.begin_again(host_failure(fault, Reaction::Restart));
            }
        };
        match &mut self.leaf {
            None => Finish::Restart {
                after,
                failure,
                tries,
            },
            Some(leaf) => leaf.fail(failure, Some(after), tries),
        }
    }

    /// Goes on after a [`Step::Pause`]: with the members of the set or the rest of the plan if the run waits for objects, and with another call
    /// of the handler with the same input otherwise.
    pub fn resume(&mut self) -> Step {
        match (&self.set, self.unready_plan()) {
            (SetProgress::Reconciling(request, _), _) => Step::Reconcile(request.clone()),
            (_, Some(plan)) => Step::Execute(plan),
            (_, None) => self.enter(),
        }
    }

    /// What the call came to.
    pub fn on_call(&mut self, called: Result<HandlerOutput, CallFault>, now: Timestamp) -> Step {
        let output = match called {
            Ok(output) => output,
            Err(fault) => return self.on_call_fault(&fault),
        };
        let refs: Vec<ObjectRef> = self
            .members
            .iter()
            .map(|member| member.key.clone())
            .collect();
        let rules = OutputRules {
            members: &refs,
            is_batch: self.is_batch(),
            max_requests: self.configurator.max_requests,
            applied: &self.applied,
            is_leaf: self.role().is_some_and(|role| role != Role::Upkeep),
            sets: self.set_rule(),
            partition: &self.configurator.key.namespace,
        };
        if let Err(fault) = output::check(&output, rules) {
            return self.react(handler_failure(fault, Reaction::Fail));
        }
        self.pending = Effects {
            statuses: output.statuses,
            events: output.events,
        };
        if let Some(leaf) = &mut self.leaf {
            leaf.output = Some(LeafOutput {
                outcome: output.outcome.clone(),
                next: output.next,
                data: output.data,
                progress: output.progress,
                output: output.output,
                details: output.details,
                args: output.pass_through_args.clone(),
            });
        }
        if let Outcome::Wait(wake) = &output.outcome
            && let Err(fault) = self.check_wait(wake)
        {
            return self.react(handler_failure(fault, Reaction::Fail));
        }
        if let Outcome::Failed(error) = output.outcome {
            self.settle_effects();
            return self.on_call_fault(&CallFault::Handler(error));
        }
        if let Some(set) = output.desired {
            let requests = &output.requests.resource_requests;
            let names = requests
                .iter()
                .flat_map(|request| [Some(&request.name), request.group_by.as_ref()]);
            self.set = SetProgress::Returned(Arc::new(SetRequest {
                set,
                taken: names.flatten().cloned().collect(),
                needs_results: self.role() == Some(Role::Node)
                    || self.position + 1 < self.phases().len(),
            }));
        }
        self.next_args = output.pass_through_args;
        let namespace = refs.first().map_or("", |key| key.namespace.as_str());
        let rules = self.plan_rules(namespace);
        let plan = match Plan::of(output.requests, &self.kept, rules) {
            Ok(plan) => Arc::new(plan),
            Err(invalid) => {
                return self.react(handler_failure(
                    output::invalid_request(invalid),
                    Reaction::Fail,
                ));
            }
        };
        let refused = plan.refused(now);
        let is_empty = plan.steps.is_empty();
        self.plan = Some(plan.clone());
        match refused {
            Some(results) => self.on_results(results, now),
            None if is_empty => self.on_results(Vec::new(), now),
            None => Step::Execute(plan),
        }
    }

    /// The output cannot be carried out, whatever happens. Nothing of it was sent.
    pub fn refuse_output(&mut self, fault: Fault) -> Step {
        self.react(handler_failure(fault, Reaction::Fail))
    }

    /// What the requests came to: one result for each, in order.
    pub fn on_results(&mut self, results: Vec<RequestResult>, now: Timestamp) -> Step {
        let Some(plan) = self.plan.take() else {
            let fault = Fault::new(FaultKind::ResourceGeneric, "results came without requests");
            return self.react(host_failure(fault, Reaction::Fail));
        };
        // Without a failure, the entry of this phase is over, and nothing of it is sent again.
        if results.iter().any(|result| result.error.is_some()) {
            plan::keep_successes(&plan, &results, &mut self.kept);
        }
        self.waiting = None;
        self.learn_secrets(&results);
        // Whoever is entered after a leaf sees what it has caught.
        let is_last = self.leaf.is_none() && self.position + 1 >= self.phases().len();
        let mut concluded = plan::conclude(&plan, results, is_last, self.is_batch());
        self.spare_the_whole(&mut concluded);
        let leaving: BTreeSet<&ObjectRef> = concluded.charged.keys().collect();
        let (leavers, members) = std::mem::take(&mut self.members)
            .into_iter()
            .partition(|member| leaving.contains(&member.key));
        self.members = members;
        let departed: Vec<Member> = leavers;
        self.departed
            .extend(departed.into_iter().filter_map(|member| {
                let failure = concluded.charged.get(&member.key)?.clone();
                Some(Departed { member, failure })
            }));
        let stays = |of: &Option<ObjectRef>| of.as_ref().is_none_or(|of| !leaving.contains(of));
        self.pending.statuses.retain(|status| stays(&status.of));
        self.pending.events.retain(|event| stays(&event.of));
        if self.members.is_empty() {
            return Step::Finish(Finish::Succeeded);
        }
        if concluded.is_incomplete && concluded.failure.is_none() {
            // What failed is charged to others, but some of these objects' requests were not sent.
            let failure = concluded.charged.into_values().next();
            let nobody = || host_failure(plan::not_sent(""), Reaction::Restart);
            return Step::Finish(Finish::Split {
                failure: failure.unwrap_or_else(nobody),
            });
        }
        if let Some(failure) = concluded.failure {
            return self.react(failure);
        }
        self.tries.refusals = 0;
        for (_, request) in output::applies_of(&plan) {
            let phase = self.phase().to_owned();
            self.applied
                .insert((request.object_key(), request.subresource.clone()), phase);
        }
        self.kept.clear();
        if let SetProgress::Returned(request) = &self.set {
            let request = request.clone();
            self.set = SetProgress::Reconciling(request.clone(), concluded.entries);
            return Step::Reconcile(request);
        }
        self.leave(concluded.entries, now)
    }

    /// Goes on with the next phase, which gets these results.
    fn leave(&mut self, results: Vec<(String, ResultEntry)>, now: Timestamp) -> Step {
        self.settle_effects();
        self.position += 1;
        self.entered = now;
        self.results = results;
        self.args = std::mem::take(&mut self.next_args);
        self.enter()
    }

    /// Takes in the outcome of a [`Step::Reconcile`] or a [`Step::Dismantle`]. Statuses and Events of the handler are published whatever the
    /// outcome is.
    pub fn on_set(&mut self, outcome: SetOutcome, now: Timestamp) -> Step {
        self.settle_effects();
        match outcome {
            SetOutcome::Waiting { wake_at } => Step::Pause(Pause::Members {
                after: wake_at.map(|at| at.since(now)),
            }),
            SetOutcome::Failed(failure) => {
                self.set = SetProgress::None;
                self.react(failure)
            }
            SetOutcome::Ready(members) => match std::mem::take(&mut self.set) {
                SetProgress::Reconciling(_, mut results) => {
                    self.set = SetProgress::Ready(self.phase().to_owned());
                    self.tries.refusals = 0;
                    results.extend(members);
                    self.leave(results, now)
                }
                _ => {
                    self.set = SetProgress::Dismantled;
                    self.enter()
                }
            },
        }
    }

    /// Whether the handler of the phase that the run is in may return a set.
    fn set_rule(&self) -> SetRule<'_> {
        let leaf = self.leaf.as_ref().map(|leaf| &leaf.entry);
        match &self.set {
            SetProgress::Ready(phase) => SetRule::Taken(phase),
            _ if self.configurator.sets.is_none() => SetRule::Undeclared,
            _ if self.chain == Chain::Deletion => SetRule::Deletion,
            _ if leaf.is_some_and(|leaf| leaf.role == Role::Check) => SetRule::Check,
            _ if leaf.is_some_and(|leaf| leaf.once) => SetRule::Once,
            _ => SetRule::Allowed,
        }
    }

    fn role(&self) -> Option<Role> {
        self.leaf.as_ref().map(|leaf| leaf.entry.role)
    }

    /// Where every object of a batch is refused for now, the batch waits as a whole.
    fn spare_the_whole(&self, concluded: &mut Conclusion) {
        let charged = &mut concluded.charged;
        let parks = |member: &Member| {
            let failure = charged.get(&member.key);
            failure.is_some_and(|failure| failure.reaction == Reaction::Park)
        };
        if concluded.failure.is_none() && self.members.iter().all(parks) {
            concluded.failure = std::mem::take(charged).into_values().next();
        }
    }

    /// Whether the handler may wait for these objects.
    fn check_wait(&self, wake: &Wake) -> Result<(), Fault> {
        wake.objects
            .iter()
            .try_for_each(|key| self.check_watch(key))
    }

    fn phases(&self) -> &[Phase] {
        if let Some(leaf) = &self.leaf {
            return &leaf.chain;
        }
        match self.chain {
            Chain::Phases => &self.configurator.phases,
            Chain::Deletion => &self.configurator.deletion.phases,
        }
    }

    fn is_batch(&self) -> bool {
        self.configurator.batch.is_some()
    }

    fn settle_effects(&mut self) {
        let Effects { statuses, events } = std::mem::take(&mut self.pending);
        self.effects.statuses.extend(statuses);
        self.effects.events.extend(events);
    }

    fn enter(&self) -> Step {
        if self.members.is_empty() {
            return Step::Finish(Finish::Succeeded);
        }
        let Some(phase) = self.phases().get(self.position) else {
            let is_dismantled = matches!(self.set, SetProgress::Dismantled);
            let has_set = self.chain == Chain::Deletion && self.configurator.sets.is_some();
            return match has_set && !is_dismantled {
                true => Step::Dismantle,
                false => Step::Finish(Finish::Succeeded),
            };
        };
        let mut objects = self.members.iter().map(|member| WatchedObject {
            object: member.object.clone(),
            event: member.event,
        });
        let resource_object = if self.is_batch() {
            ResourceObject::Batch(objects.collect())
        } else {
            match objects.next() {
                Some(object) => ResourceObject::One(object),
                None => return Step::Finish(Finish::Succeeded),
            }
        };
        let context = match &self.leaf {
            Some(leaf) => self.leaf_context(leaf),
            None => self.context(phase),
        };
        let entry = self.leaf.as_ref().map(|leaf| &leaf.entry);
        let input = HandlerInput {
            resource_object,
            request_results: self.results.clone(),
            pass_through_args: self.args.clone(),
            last: entry.and_then(|entry| entry.last.clone()),
            outputs: entry.map(|entry| entry.outputs.clone()).unwrap_or_default(),
            plan: None,
            context,
        };
        Step::Call(Box::new(Call {
            handler: phase.handler.clone(),
            input: Arc::new(input),
        }))
    }

    fn context(&self, phase: &Phase) -> Context {
        Context {
            configurator: self.configurator.key.name.clone(),
            phase: phase.name.clone(),
            node: phase.name.clone(),
            entry: 1,
            attempt: self.tries.failures.saturating_add(1),
            cause: if self.tries.failures == 0 {
                Cause::Entered
            } else {
                Cause::Retry
            },
            now: self.entered,
            seed: chance(&self.id, &phase.name, 1),
            parameters: self.configurator.parameters.clone(),
            run_id: self.id.clone(),
        }
    }

    fn leaf_context(&self, leaf: &LeafRun) -> Context {
        let entry = &leaf.entry;
        Context {
            configurator: self.configurator.key.name.clone(),
            phase: leaf.phase.clone(),
            node: entry.path.clone(),
            entry: entry.entry,
            attempt: entry.attempt,
            cause: entry.cause.clone(),
            now: self.entered,
            seed: chance(&self.id, &entry.path, entry.entry),
            parameters: overlaid(&self.configurator.parameters, &entry.parameters),
            run_id: self.id.clone(),
        }
    }

    fn on_call_fault(&mut self, fault: &CallFault) -> Step {
        let (reaction, retry_after) = match fault {
            CallFault::Handler(HandlerError { fatal: true, .. })
            | CallFault::InputTooLarge { .. }
            | CallFault::OutputTooLarge { .. }
            | CallFault::StatusTooLarge { .. }
            | CallFault::InvalidOutput { .. }
            | CallFault::UnknownHandler { .. } => (Reaction::Fail, None),
            CallFault::Handler(error) => (Reaction::Restart, error.retry_after),
            CallFault::Trap { .. }
            | CallFault::Deadline { .. }
            | CallFault::Memory { .. }
            | CallFault::Stack { .. }
            | CallFault::Host { .. } => (Reaction::Restart, None),
        };
        if let (Some(leaf), CallFault::Handler(error)) = (&mut self.leaf, fault) {
            leaf.failure = Some(LeafFailure {
                error: NodeError::from(error),
                is_fatal: error.fatal,
                is_unknown: false,
                retry_after: error.retry_after,
            });
        }
        let message = format!("phase {:?}: {fault}", self.phase());
        let is_of_module = !matches!(fault, CallFault::Host { .. });
        let fault = Fault::new(FaultKind::ResourceGeneric, message).with_retry_after(retry_after);
        self.react(Failure {
            is_of_module,
            ..handler_failure(fault, reaction)
        })
    }

    fn react(&mut self, failure: Failure) -> Step {
        let is_parked = failure.reaction == Reaction::Park;
        if let Some(leaf) = &mut self.leaf
            && (leaf.is_sent || !is_parked)
        {
            let retry_after = failure.retry_after(&self.configurator.retry);
            return Step::Finish(leaf.fail(failure, retry_after, self.tries));
        }
        if self.members.len() > 1 && !is_parked {
            return Step::Finish(Finish::Split { failure });
        }
        let Verdict {
            decision,
            failure,
            tries,
        } = self.decide(failure);
        match decision {
            Decision::Resend { after } => Step::Pause(Pause::Resend {
                after,
                failure,
                tries,
            }),
            Decision::Restart { after } => Step::Finish(Finish::Restart {
                after,
                failure,
                tries,
            }),
            Decision::Park { after } => Step::Pause(Pause::Park {
                after,
                failure,
                tries,
            }),
            Decision::Fail => Step::Finish(Finish::Failed {
                failure,
                failures: tries.failures,
            }),
        }
    }

    fn decide(&mut self, failure: Failure) -> Verdict {
        let jitter = jitter(&self.id, self.tries);
        let verdict = retry::decide(failure, self.tries, &self.configurator.retry, jitter);
        self.tries = verdict.tries;
        verdict
    }
}

fn handler_failure(fault: Fault, reaction: Reaction) -> Failure {
    Failure {
        request_name: String::new(),
        server: fault.kind.sink().map(Server::behind).map(Box::new),
        fault,
        reaction,
        is_of_module: true,
    }
}

/// A failure of the host: nothing that a handler has done.
#[must_use]
pub fn host_failure(fault: Fault, reaction: Reaction) -> Failure {
    Failure {
        is_of_module: false,
        ..handler_failure(fault, reaction)
    }
}

fn run_id(configurator_uid: &str, chain: Chain, members: &[Member]) -> String {
    let chain: &[u8] = match chain {
        Chain::Phases => b"phases",
        Chain::Deletion => b"deletion",
    };
    let contents: Vec<_> = members
        .iter()
        .map(|member| member.content.bytes())
        .collect();
    let members = members.iter().zip(&contents);
    let members = members.flat_map(|(member, content)| [member.uid.as_bytes(), content]);
    digest_of(
        [configurator_uid.as_bytes(), chain]
            .into_iter()
            .chain(members),
    )
}

/// Names all entries of one visit to a phase.
fn visit_id(configurator_uid: &str, phase: &str, visit: u64, members: &[Member]) -> String {
    let visit = visit.to_be_bytes();
    let parts = [
        configurator_uid.as_bytes(),
        b"machine",
        phase.as_bytes(),
        &visit,
    ];
    let members = members.iter().map(|member| member.uid.as_bytes());
    digest_of(parts.into_iter().chain(members))
}

/// Parameters, with those of others laid over them: of two with the same name, the last counts.
fn overlaid(parameters: &Document, over: &[Document]) -> Document {
    if over.is_empty() {
        return parameters.clone();
    }
    let fields = |document: &Document| match document.to_value() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut all = fields(parameters);
    for document in over {
        all.extend(fields(document));
    }
    Document::of(&all).unwrap_or_else(|_| parameters.clone())
}

/// The seed of a handler: below 2^53, so that it is the same number in every language.
fn chance(run_id: &str, node: &str, entry: u32) -> u64 {
    seed(run_id, node, entry) >> 11
}

/// Chooses the wait after one more failure than these.
fn jitter(run_id: &str, tries: Tries) -> u64 {
    seed(run_id, "backoff", tries.failures.saturating_add(1))
}

fn seed(run_id: &str, node: &str, entry: u32) -> u64 {
    let mut hash = Sha256::new();
    hash.update(run_id.as_bytes());
    hash.update([0]);
    hash.update(node.as_bytes());
    hash.update(entry.to_be_bytes());
    let digest = hash.finalize();
    let bytes = digest.iter().take(8);
    bytes.fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests;
