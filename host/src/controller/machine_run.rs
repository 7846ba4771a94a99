//! Carries out for one object what the machine of its Configurator decides, until nothing is left to be done for now.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::handler::{Cause, Outcome, WatchEvent};
use configurator_core::machine::action::{Action, Entry, Notice};
use configurator_core::machine::apply::{apply, awaited, deadline};
use configurator_core::machine::command::Verb;
use configurator_core::machine::event::{End, Event, LeafFailure, LeafOutput};
use configurator_core::machine::phase::{Machine, PhaseKind, When};
use configurator_core::machine::state::{NodeError, Seen, State, Turn};
use configurator_core::machine::tree::{Node, NodeKind};
use configurator_core::module::RunModule;
use configurator_core::plan::Failure;
use configurator_core::request::ObjectRef;
use configurator_core::result::ResultEntry;
use configurator_core::retry::{self, Decision, Tries, Verdict};
use configurator_core::run::{
    Finish, Member, Pause, Run, RunEnd, RunOutcome, RunStart, Step, host_failure,
};
use configurator_core::time::Timestamp;
use configurator_schema::cel::{Condition, ConditionError};
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::awaited::Sought;
use super::commands::{self, Answer, CommandRef};
use super::driver::{OfMachine, Resting, RunContext, RunReport, Said, SendingGate, drive};
use super::earlier::Earlier;
use super::inbox::{Inbox, Wake};
use super::notices;
use super::places::Place;
use super::state_store::{Found, Held, Saved, StateStore};
use super::watched::is_marked_cancelled;
use crate::clock::until;
use crate::objects;
use crate::shards::Permit;

/// For how long the newest revision may be unknown to the config store while steps follow one another.
const BOOK_AFTER: Duration = Duration::from_secs(1);

/// No name of a node has it.
const REMEDY: &str = "\0";

type Results = Vec<(String, ResultEntry)>;

/// What all machines of one Configurator share.
pub(crate) struct MachineContext {
    pub(crate) store: StateStore,
    earlier: Earlier,
    /// By their text.
    conditions: BTreeMap<String, Result<Condition, ConditionError>>,
}

impl MachineContext {
    pub(crate) fn new(store: StateStore, earlier: Earlier) -> Self {
        let mut conditions = BTreeMap::new();
        for phase in &store.machine().phases {
            let PhaseKind::Stable(checks) = &phase.kind else {
                continue;
            };
            for check in checks {
                if let When::Expression(text) = &check.when {
                    conditions.insert(text.clone(), Condition::compile(text));
                }
            }
        }
        Self {
            store,
            earlier,
            conditions,
        }
    }
}

/// What is kept of a machine between two of its turns: what handlers are to be told, and what could not be done yet.
pub(crate) struct Standing {
    held: Held,
    state: State,
    /// Actions that are not carried out yet.
    pending: VecDeque<Action>,
    /// What has ended and was not told yet.
    ended: VecDeque<LeafEnd>,
    /// Of the entry before, by path; those of a remedy by the path of its leaf with [`REMEDY`].
    results: BTreeMap<String, Results>,
    /// Of the last leaves of the phase before.
    from_before: Results,
    /// Entries that a server has refused for now.
    parked: Vec<Parked>,
    /// What the secret store has answered, and handlers may have been told.
    secrets: Vec<Document>,
    /// What handlers have said of the object's status.
    said: Arc<Said>,
    /// Resources that commands came by, by their uid.
    commands: HashMap<String, CommandRef>,
}

/// An entry that a server has refused for now.
struct Parked {
    run: Run,
    failure: Failure,
    /// When it is tried again at the earliest.
    due: Timestamp,
}

impl Standing {
    fn new(held: Held, state: State) -> Box<Self> {
        Box::new(Self {
            said: Said::new(state.status.clone()),
            held,
            state,
            pending: VecDeque::new(),
            ended: VecDeque::new(),
            results: BTreeMap::new(),
            from_before: Vec::new(),
            parked: Vec::new(),
            secrets: Vec::new(),
            commands: HashMap::new(),
        })
    }

    /// Whether something would be lost with it that is not stored.
    fn is_worth_keeping(&self) -> bool {
        let mut is_due = false;
        if let Some(root) = self.state.root() {
            root.each(&mut |node| is_due |= matches!(node.leaf.turn, Turn::Due { .. }));
        }
        let has_results = !self.results.is_empty() || !self.from_before.is_empty();
        !self.parked.is_empty()
            || !self.pending.is_empty()
            || !self.ended.is_empty()
            || is_due && has_results
    }
}

/// What came of something that was under way.
enum LeafEnd {
    /// An entry.
    Entry(Box<RunOutcome<Run>>),
    /// A check that a handler makes.
    Check(u64, Box<RunOutcome<Run>>),
}

/// Why a turn is over.
enum TurnEnd {
    /// It has come to this.
    Ended(RunEnd),
    /// Somebody else has written the state: what is known of it counts no more.
    Foreign,
}

impl From<Finish> for TurnEnd {
    fn from(finish: Finish) -> Self {
        Self::Ended(RunEnd::Finished(finish))
    }
}

/// What a turn is made of.
pub(crate) struct TurnParts {
    pub(crate) context: Arc<RunContext>,
    pub(crate) own: Arc<MachineContext>,
    pub(crate) start: RunStart,
    pub(crate) inbox: Arc<Inbox>,
    /// What was kept of the turn before.
    pub(crate) standing: Option<Box<Standing>>,
    pub(crate) permit: Option<Arc<Permit>>,
    /// Shared by the runs of its entries.
    pub(crate) place: Arc<Place>,
    /// Cancelled when nothing new is to begin: what is under way is finished and stored.
    pub(crate) stop: CancellationToken,
}

/// A turn of one object's machine.
struct MachineRun {
    context: Arc<RunContext>,
    own: Arc<MachineContext>,
    machine: Arc<Machine>,
    start: RunStart,
    member: Member,
    inbox: Arc<Inbox>,
    permit: Option<Arc<Permit>>,
    place: Arc<Place>,
    stop: CancellationToken,
    standing: Box<Standing>,
    events: VecDeque<Event>,
    leaves: FuturesUnordered<BoxFuture<'static, Option<LeafEnd>>>,
    aborts: HashMap<u64, AbortHandle>,
    gate: SendingGate,
    sending: mpsc::Receiver<(u64, oneshot::Sender<()>)>,
    /// Whether nothing has happened to the object since it was read.
    is_fresh: bool,
    /// The object as handlers see it, as long as it is the same.
    shown: Option<Document>,
    /// Whether the object goes.
    is_going: bool,
    book_due: Timestamp,
    /// Objects that have changed while entries were under way, which may yet wait for them.
    changed: Vec<Seen>,
    written: Written,
}

/// What the runs of a turn have written.
#[derive(Default)]
struct Written {
    /// Whether anything changed at any server.
    has_written: bool,
    /// Versions of the host's own writes to members.
    own_writes: Vec<(ObjectRef, u64)>,
}

/// Gives one object a turn.
///
/// Every await may be the last: what must not be lost is stored before what depends on it is done.
pub(crate) async fn take_turn(parts: TurnParts) -> RunReport {
    let start = parts.start.clone();
    let own = parts.own.clone();
    let (end, standing, written) = match MachineRun::begin(parts).await {
        Ok(run) => run.go().await,
        Err((end, standing)) => (end, standing, Written::default()),
    };
    let awaited = standing.as_ref().map(|standing| {
        let objects = awaited(&own.store.machine(), &standing.state);
        let sought = objects.into_iter().map(|(object, seen)| Sought {
            object: object.clone(),
            seen: seen.map(str::to_owned),
        });
        sought.collect()
    });
    let end = match end {
        TurnEnd::Ended(end) => end,
        TurnEnd::Foreign => {
            let message =
                "somebody else has written the state of the object meanwhile; it is read again";
            end_by(&start, Fault::new(FaultKind::ResourceConflict, message))
        }
    };
    let tries = match &end {
        RunEnd::Paused(Pause::Park { tries, .. } | Pause::Resend { tries, .. }) => *tries,
        RunEnd::Finished(_) => start.tries,
    };
    RunReport {
        outcome: RunOutcome {
            own_writes: written.own_writes,
            has_written: written.has_written,
            ..RunOutcome::new(end, Resting::Turn(tries), start.members)
        },
        standing: standing.filter(|standing| standing.is_worth_keeping()),
        awaited: awaited.unwrap_or_default(),
    }
}

/// Returns what comes of this, while entries that are under way go on.
async fn beside<T>(
    leaves: &mut FuturesUnordered<BoxFuture<'static, Option<LeafEnd>>>,
    ended: &mut VecDeque<LeafEnd>,
    doing: impl Future<Output = T>,
) -> T {
    tokio::pin!(doing);
    loop {
        tokio::select! {
            biased;
            done = &mut doing => return done,
            Some(end) = leaves.next() => ended.extend(end),
        }
    }
}

/// Returns how a turn ends by a fault in the host's own doing.
fn end_by(start: &RunStart, fault: Fault) -> RunEnd {
    let reaction = fault.kind.reaction();
    let failure = host_failure(fault, reaction);
    let policy = &start.configurator.retry;
    let Verdict {
        decision,
        failure,
        tries,
    } = retry::decide(failure, start.tries, policy, start.jitter());
    match decision {
        Decision::Park { after } => RunEnd::Paused(Pause::Park {
            after,
            failure,
            tries,
        }),
        Decision::Fail => RunEnd::Finished(Finish::Failed {
            failure,
            failures: tries.failures,
        }),
        Decision::Resend { after } | Decision::Restart { after } => {
            RunEnd::Finished(Finish::Restart {
                after,
                failure,
                tries,
            })
        }
    }
}

/// A state that is not run, until a person has it begin anew.
fn untrusted(start: &RunStart, why: &str) -> Finish {
    let message = format!(
        "the stored state is not trusted, so nothing is done: {why}. A Command with verb Restart begins anew, at the initial phase"
    );
    Finish::Failed {
        failure: host_failure(
            Fault::new(FaultKind::ResourceGeneric, message),
            Reaction::Fail,
        ),
        failures: start.tries.failures.saturating_add(1),
    }
}

impl MachineRun {
    async fn begin(parts: TurnParts) -> Result<Self, (TurnEnd, Option<Box<Standing>>)> {
        let TurnParts {
            context,
            own,
            start,
            inbox,
            standing,
            permit,
            place,
            stop,
        } = parts;
        let Some(member) = start.members.first().cloned() else {
            return Err((Finish::Succeeded.into(), None));
        };
        let found = match own.store.load(&member.key, &member.uid).await {
            Ok(found) => found,
            Err(fault) => return Err((TurnEnd::Ended(end_by(&start, fault)), standing)),
        };
        let mut events = VecDeque::new();
        let mut begin = |held: Box<Held>, state: Box<State>| {
            events.push_back(Event::Recovered);
            Standing::new(*held, *state)
        };
        let mut standing = match found {
            Found::Gone => return Err((Finish::Succeeded.into(), None)),
            Found::State(held, state) => match standing {
                Some(mut standing) if standing.held.goes_on_as(&held) => {
                    standing.held = *held;
                    standing
                }
                _ => begin(held, state),
            },
            Found::Untrusted(held, why) => {
                let is_restart = |wake: &Wake| matches!(wake, Wake::Command(_, command) if command.verb == Verb::Restart);
                let order = inbox.take_from(is_restart);
                let Some(Wake::Command(resource, command)) = order else {
                    return Err((untrusted(&start, &why).into(), None));
                };
                let mut standing = Standing::new(*held, State::default());
                standing.commands.insert(command.uid.clone(), resource);
                events.push_back(Event::Command(command));
                standing
            }
        };
        let is_going =
            !objects::text(&standing.held.object, "/metadata/deletionTimestamp").is_empty();
        if is_going {
            events.push_back(Event::Deleted);
        } else {
            let is_cancelled = is_marked_cancelled(standing.held.object.get("metadata"));
            events.push_back(Event::Observed {
                // One that is met for the first time has not changed.
                is_changed: member.event == WatchEvent::Modified,
                is_cancelled,
            });
        }
        let now = context.clock.now();
        let due: Vec<Parked> = standing
            .parked
            .extract_if(.., |parked| parked.due <= now)
            .collect();
        let (gate, sending) = mpsc::channel(1);
        let mut run = Self {
            book_due: now.after(BOOK_AFTER),
            context,
            machine: own.store.machine(),
            own,
            start,
            member,
            inbox,
            permit,
            place,
            stop,
            standing,
            events,
            leaves: FuturesUnordered::new(),
            aborts: HashMap::new(),
            gate,
            sending,
            is_fresh: true,
            shown: None,
            is_going,
            changed: Vec::new(),
            written: Written::default(),
        };
        for Parked { run: mut entry, .. } in due {
            let step = entry.resume();
            run.drive(entry, step, LeafEnd::Entry);
        }
        Ok(run)
    }

    async fn go(mut self) -> (TurnEnd, Option<Box<Standing>>, Written) {
        let end = loop {
            match self.step().await {
                Ok(()) => {}
                Err(end) => break end,
            }
        };
        // What was to be sent but once and waits to be is not sent.
        self.sending.close();
        while self.sending.try_recv().is_ok() {}
        // What is under way is not lost: the next turn begins with its ends.
        while let Some(end) = self.leaves.next().await {
            self.standing.ended.extend(end);
        }
        let is_kept = !matches!(end, TurnEnd::Foreign);
        (end, is_kept.then_some(self.standing), self.written)
    }

    /// Does what is next.
    async fn step(&mut self) -> Result<(), TurnEnd> {
        if let Some(action) = self.standing.pending.pop_front() {
            return self.carry_out(action).await;
        }
        let now = self.context.clock.now();
        if let Some(event) = self.next_event(now)? {
            let state = std::mem::take(&mut self.standing.state);
            let (state, actions) = apply(&self.machine, state, event, now);
            self.standing.state = state;
            self.standing.pending.extend(actions);
            return Ok(());
        }
        if self.leaves.is_empty() {
            return self.rest(now).await;
        }
        self.wait(now).await
    }

    /// What has happened and was not told yet.
    fn next_event(&mut self, now: Timestamp) -> Result<Option<Event>, TurnEnd> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        while let Some(end) = self.standing.ended.pop_front() {
            let event = match end {
                LeafEnd::Entry(outcome) => self.ended(*outcome),
                LeafEnd::Check(token, outcome) => Some(self.checked(token, *outcome)?),
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        while let Some(wake) = self.inbox.take() {
            return Ok(Some(match wake {
                Wake::Observed { is_cancelled } => {
                    self.is_fresh = false;
                    Event::Observed {
                        is_changed: true,
                        is_cancelled,
                    }
                }
                Wake::Deleted => {
                    self.is_going = true;
                    Event::Deleted
                }
                Wake::Changed(seen) => {
                    if !self.leaves.is_empty() {
                        seen.clone().replace_in(&mut self.changed);
                    }
                    Event::Changed(seen)
                }
                Wake::Command(resource, command) => {
                    let uid = command.uid.clone();
                    self.standing.commands.insert(uid.clone(), resource);
                    if self.standing.state.commands.contains(&uid) {
                        let notice = Notice::CommandDone { uid };
                        self.standing.pending.push_back(Action::Tell(notice));
                        continue;
                    }
                    Event::Command(command)
                }
            }));
        }
        if !self.standing.pending.is_empty() {
            return Ok(None);
        }
        let due = deadline(&self.machine, &self.standing.state);
        Ok(due.filter(|due| *due <= now).map(|_| Event::Tick))
    }

    /// Waits until something happens.
    async fn wait(&mut self, now: Timestamp) -> Result<(), TurnEnd> {
        let due = deadline(&self.machine, &self.standing.state);
        let tick = until(self.context.clock.clone(), due.filter(|due| *due > now));
        tokio::select! {
            biased;
            Some((token, go)) = self.sending.recv() => self.announce(token, go).await?,
            Some(end) = self.leaves.next() => self.standing.ended.extend(end),
            () = self.inbox.filled() => {}
            () = tick => {}
        }
        Ok(())
    }

    /// Nothing is left to be done.
    async fn rest(&mut self, now: Timestamp) -> Result<(), TurnEnd> {
        if !self.standing.pending.is_empty() {
            return Ok(());
        }
        while let Some(seen) = self.changed.pop() {
            let mut awaited = awaited(&self.machine, &self.standing.state).into_iter();
            if awaited.any(|(key, _)| *key == seen.object) {
                self.events.push_back(Event::Changed(seen));
                return Ok(());
            }
        }
        self.try_to_book().await;
        if let Some(parked) = self.standing.parked.iter().min_by_key(|parked| parked.due) {
            return Err(self.end_by_refusal(&parked.run, &parked.failure, parked.due.since(now)));
        }
        if self.is_going {
            return Err(Finish::Succeeded.into());
        }
        let due = deadline(&self.machine, &self.standing.state);
        let after = due.map(|due| due.since(now));
        Err(Finish::Rest { after }.into())
    }

    async fn carry_out(&mut self, action: Action) -> Result<(), TurnEnd> {
        match action {
            Action::Abandon { token } => {
                if let Some(abort) = self.aborts.remove(&token) {
                    abort.abort();
                }
                let is_it = |run: &Run| run.token() == Some(token);
                self.standing.parked.retain(|parked| !is_it(&parked.run));
            }
            Action::Persist => {
                if let Err(end) = self.persist().await {
                    // A state that could not be stored is stored by the next turn.
                    self.standing.pending.push_front(Action::Persist);
                    return Err(end);
                }
            }
            Action::Tell(notice) => self.tell(&notice).await,
            // Whoever comes next takes them for broken off, and begins with them. What is under way beside them is finished first.
            Action::Enter(_) | Action::Check { .. } if self.stop.is_cancelled() => {}
            Action::Enter(entry) => {
                if let Err(end) = self.refresh().await {
                    self.standing.pending.push_front(Action::Enter(entry));
                    return Err(end);
                }
                match self.module_of_entry().await {
                    Ok(module) => self.enter(*entry, module)?,
                    Err(why) => self.not_entered(&entry, why, false),
                }
            }
            Action::Check { token, index } => {
                if let Err(end) = self.refresh().await {
                    self.standing
                        .pending
                        .push_front(Action::Check { token, index });
                    return Err(end);
                }
                self.check(token, index)?;
            }
        }
        Ok(())
    }

    /// Notes which module the phase begins with, where its entries are to stay on it. On one that was rolled back they do not.
    fn pin(&mut self) {
        let mode = self.start.configurator.machine.as_ref();
        let is_pinned = mode.is_some_and(|mode| mode.pins_modules);
        let State { phase, nodes, .. } = &mut self.standing.state;
        if let Some(root) = nodes.get_mut(phase)
            && is_pinned
            && root
                .module
                .as_deref()
                .is_none_or(|module| self.context.rollout.is_rolled_back(module))
        {
            let module = self.context.rollout.choose(&self.start.members);
            root.module = Some(module.digest().to_owned());
            self.own.earlier.keep(&module);
        }
    }

    /// The module that an entry is of: by default that which runs now, and where its phase is pinned to one, that.
    async fn module_of_entry(&mut self) -> Result<RunModule, String> {
        self.pin();
        let Self {
            own,
            standing,
            leaves,
            ..
        } = self;
        let Standing { state, ended, .. } = &mut **standing;
        let mode = self.start.configurator.machine.as_ref();
        let root = state
            .root()
            .filter(|_| mode.is_some_and(|mode| mode.pins_modules));
        let Some(pinned) = root.and_then(|root| root.module.as_deref()) else {
            return Ok(self.context.rollout.choose(&self.start.members));
        };
        let got = beside(leaves, ended, own.earlier.get(pinned)).await;
        got.map_err(|why| {
            format!(
                "the phase has begun with the module {pinned} and stays on it (spec.machine.moduleUpgrade is Pinned), but it is not to be had: {why}. Put it back, or have the phase begin anew by a Command with verb Restart"
            )
        })
    }

    /// Stores the state, while what is under way goes on.
    async fn persist(&mut self) -> Result<(), TurnEnd> {
        self.pin();
        let saved = self.save().await;
        match saved {
            Ok(Saved::Stored) => {}
            Ok(Saved::Gone) => return Err(Finish::Succeeded.into()),
            Ok(Saved::Foreign) => return Err(TurnEnd::Foreign),
            Err(fault) => return Err(self.end_by(fault)),
        }
        self.shown = None;
        self.is_fresh = self.own.store.shows_objects();
        let now = self.context.clock.now();
        if now >= self.book_due {
            self.book_due = now.after(BOOK_AFTER);
            self.try_to_book().await;
        }
        Ok(())
    }

    async fn save(&mut self) -> Result<Saved, Fault> {
        let Self {
            own,
            standing,
            leaves,
            permit,
            ..
        } = self;
        let Standing {
            held, state, ended, ..
        } = &mut **standing;
        let saving = async {
            let fences = match permit {
                Some(permit) => {
                    permit.ready(None).await;
                    permit.fences()
                }
                None => &[],
            };
            own.store.save(held, state, fences).await
        };
        beside(leaves, ended, saving).await
    }

    /// Books the newest state.
    async fn book(&mut self) -> Result<(), Fault> {
        let fences = Permit::fences_of(self.permit.as_deref());
        self.own.store.book(&mut self.standing.held, fences).await
    }

    /// Books the newest state; a failure is logged. Until a state is booked, an older state that is put back is not noticed.
    async fn try_to_book(&mut self) {
        if let Err(fault) = self.book().await {
            tracing::warn!(object = %self.member.key, %fault, "which state of the object is the newest could not be noted");
        }
    }

    /// Requests that may be sent but once are sent when it is stored that they are.
    async fn announce(&mut self, token: u64, go: oneshot::Sender<()>) -> Result<(), TurnEnd> {
        let before = self.standing.state.clone();
        let now = self.context.clock.now();
        let event = Event::Sending { token };
        let (state, actions) = apply(&self.machine, before.clone(), event, now);
        if !actions.contains(&Action::Persist) {
            return Ok(());
        }
        self.standing.state = state;
        let announced = match self.persist().await {
            // No state from before may be accepted once something was sent.
            Ok(()) => self.book().await.map_err(|fault| self.end_by(fault)),
            Err(end) => Err(end),
        };
        match announced {
            Ok(()) => {
                // Who has been abandoned meanwhile sends nothing.
                let _ = go.send(());
                Ok(())
            }
            Err(end) => {
                self.standing.state = before;
                Err(end)
            }
        }
    }

    /// Reads the object again, if something may have happened to it.
    async fn refresh(&mut self) -> Result<(), TurnEnd> {
        if self.is_fresh {
            return Ok(());
        }
        match self.own.store.refresh(&mut self.standing.held).await {
            Ok(true) => {
                self.is_fresh = true;
                self.shown = None;
                Ok(())
            }
            Ok(false) => Err(Finish::Succeeded.into()),
            Err(fault) => Err(self.end_by(fault)),
        }
    }

    /// An entry has failed before its handler was called.
    fn not_entered(&mut self, entry: &Entry, why: String, is_fatal: bool) {
        let failure = LeafFailure {
            error: NodeError::new(why),
            is_fatal,
            is_unknown: false,
            retry_after: None,
        };
        let (token, end) = (entry.token, End::Failed(failure));
        self.events.push_back(Event::Ended { token, end });
    }

    fn enter(&mut self, mut entry: Entry, module: RunModule) -> Result<(), TurnEnd> {
        let start = self.leaf_start(module)?;
        let module = self.context.rollout.chosen(&start.module);
        if module.description().handler(&entry.handler).is_none() {
            // Its tree was declared for another module.
            let message = format!(
                "the module does not have the handler {:?} any more; it has: {}",
                entry.handler,
                module.handler_names()
            );
            self.not_entered(&entry, message, true);
            return Ok(());
        }
        let standing = &self.standing;
        let own_results = standing
            .results
            .get(&self.results_key(&entry.path, &entry.handler));
        let is_after = matches!(entry.cause, Cause::Again | Cause::Retry);
        if is_after && own_results.is_none() {
            // What the entry before asked for was known to a host that is no more, or to this one too long ago.
            entry.cause = Cause::Recovered;
        }
        if let Some((last, results)) = entry.last.as_mut().zip(own_results) {
            last.request_results.clone_from(results);
        }
        let phase = standing.state.phase.clone();
        let tree = self.tree(&phase);
        let before = tree.and_then(|tree| tree.before(&entry.path, Vec::new()));
        let results = match before {
            Some(before) if !before.is_empty() => {
                let results = before.iter().filter_map(|path| standing.results.get(path));
                results.flatten().cloned().collect()
            }
            _ => standing.from_before.clone(),
        };
        let now = self.context.clock.now();
        let (run, step) = Run::enter_leaf(start, &phase, entry, results, now);
        self.drive(run, step, LeafEnd::Entry);
        Ok(())
    }

    fn check(&mut self, token: u64, index: usize) -> Result<(), TurnEnd> {
        let phase = self.standing.state.phase.clone();
        let kind = self.machine.phase(&phase).map(|phase| &phase.kind);
        let Some(PhaseKind::Stable(checks)) = kind else {
            return Ok(());
        };
        match checks.get(index).map(|check| check.when.clone()) {
            None => {}
            Some(When::Expression(text)) => {
                let holds = match self.own.conditions.get(&text) {
                    Some(Ok(condition)) => condition.holds(&self.standing.held.object),
                    Some(Err(error)) => Err(error.clone()),
                    None => Ok(false),
                };
                let is_so = holds.unwrap_or_else(|error| {
                    // A field that is not there yet is the usual reason.
                    tracing::debug!(object = %self.member.key, phase, expression = text, %error, "a check has no answer");
                    false
                });
                self.events.push_back(Event::Checked { token, is_so });
            }
            Some(When::Handler(handler)) => {
                let entry = Entry {
                    token,
                    path: [phase.as_str(), "/", &handler].concat(),
                    visit: self.standing.state.visit,
                    handler,
                    entry: 1,
                    attempt: 1,
                    cause: Cause::Entered,
                    last: None,
                    outputs: Vec::new(),
                    args: Vec::new(),
                    parameters: Vec::new(),
                    once: false,
                    deadline: None,
                };
                let start = self.leaf_start(self.context.rollout.choose(&self.start.members))?;
                let now = self.context.clock.now();
                let (run, step) = Run::enter_leaf(start, &phase, entry, Vec::new(), now);
                self.drive(run, step, move |outcome| LeafEnd::Check(token, outcome));
            }
        }
        Ok(())
    }

    fn drive(
        &mut self,
        mut run: Run,
        step: Step,
        end: impl FnOnce(Box<RunOutcome<Run>>) -> LeafEnd + Send + 'static,
    ) {
        run.know_secrets(&self.standing.secrets);
        let token = run.token();
        let machine = Some(OfMachine {
            gate: self.gate.clone(),
            said: self.standing.said.clone(),
        });
        let driving = drive(
            self.context.clone(),
            run,
            step,
            self.permit.clone(),
            machine,
            self.place.enter(),
        );
        let (driving, abort) = abortable(driving);
        if let Some(token) = token {
            self.aborts.insert(token, abort);
        }
        let end = driving.map(|outcome| Some(end(Box::new(outcome.ok()?))));
        self.leaves.push(end.boxed());
    }

    /// The end of an entry; nothing where it rests.
    fn ended(&mut self, outcome: RunOutcome<Run>) -> Option<Event> {
        let (mut run, pause) = self.seen(outcome);
        let token = run.token()?;
        self.aborts.remove(&token);
        if let Some(Pause::Park { after, failure, .. }) = pause {
            let due = self.context.clock.now().after(after);
            self.standing.parked.push(Parked { run, failure, due });
            return None;
        }
        let (end, results) = run.take_end()?;
        let key = self.results_key(run.phase(), run.handler());
        self.standing.results.insert(key, results);
        Some(Event::Ended { token, end })
    }

    /// Returns how the turn ends by a fault in the host's own doing.
    fn end_by(&self, fault: Fault) -> TurnEnd {
        TurnEnd::Ended(end_by(&self.start, fault))
    }

    /// The turn is over until an entry that was refused for now can be tried again.
    fn end_by_refusal(&self, entry: &Run, failure: &Failure, after: Duration) -> TurnEnd {
        let tries = Tries {
            refusals: entry.tries().refusals,
            ..self.start.tries
        };
        TurnEnd::Ended(RunEnd::Paused(Pause::Park {
            after,
            failure: failure.clone(),
            tries,
        }))
    }

    fn checked(&mut self, token: u64, outcome: RunOutcome<Run>) -> Result<Event, TurnEnd> {
        let (mut run, pause) = self.seen(outcome);
        if let Some(Pause::Park { after, failure, .. }) = pause {
            return Err(self.end_by_refusal(&run, &failure, after));
        }
        let is_done = |output: &LeafOutput| output.outcome == Outcome::Done;
        let is_so = matches!(run.take_end(), Some((End::Output(output), _)) if is_done(&output));
        Ok(Event::Checked { token, is_so })
    }

    /// Takes note of what a run has done.
    fn seen(&mut self, outcome: RunOutcome<Run>) -> (Run, Option<Pause>) {
        let RunOutcome {
            end,
            run,
            own_writes,
            has_written,
            ..
        } = outcome;
        self.is_fresh = false;
        self.standing.state.status = self.standing.said.status();
        self.written.has_written |= has_written;
        self.written.own_writes.extend(own_writes);
        for secret in run.secrets() {
            if !self.standing.secrets.contains(secret) {
                self.standing.secrets.push(secret.clone());
            }
        }
        let pause = match end {
            RunEnd::Paused(pause) => Some(pause),
            RunEnd::Finished(_) => None,
        };
        (run, pause)
    }

    /// Under which key the results of this handler are kept, which is that of the leaf or a remedy in its place.
    fn results_key(&self, path: &str, handler: &str) -> String {
        match self.handler_of(path) == handler {
            true => path.to_owned(),
            false => [path, REMEDY].concat(),
        }
    }

    /// The tree of a phase: the one that it has begun with, where that is a flow's.
    fn tree(&self, phase: &str) -> Option<&Node> {
        let root = self.standing.state.nodes.get(phase);
        self.machine.tree_of(phase, root)
    }

    fn handler_of(&self, path: &str) -> &str {
        let tree = self.tree(&self.standing.state.phase);
        match tree.and_then(|tree| tree.at(path)).map(|node| &node.kind) {
            Some(NodeKind::Leaf { handler, .. }) => handler,
            _ => "",
        }
    }

    /// What the run of a leaf is made of. Each entry is of one module; the next may be of another.
    fn leaf_start(&mut self, module: RunModule) -> Result<RunStart, TurnEnd> {
        let object = match &self.shown {
            Some(shown) => shown.clone(),
            None => {
                let shown = self
                    .own
                    .store
                    .shown(&self.standing.held, &self.start.configurator);
                let shown = shown.map_err(|fault| self.end_by(fault))?;
                self.shown = Some(shown.clone());
                shown
            }
        };
        let members = vec![Member {
            object,
            ..self.member.clone()
        }];
        Ok(RunStart {
            module,
            members,
            ..self.start.clone()
        })
    }

    async fn tell(&mut self, notice: &Notice) {
        if let Notice::PhaseEntered { from, .. } = notice {
            self.leave(from);
        }
        let configurator = &self.start.configurator.key;
        self.context.metrics.told(configurator, notice);
        self.context
            .observer
            .told(configurator, &self.member.key, notice);
        if let Some(event) = notices::event_of(&self.start.configurator, &self.member, notice) {
            self.context.publisher.publish(event);
        }
        let (uid, answer) = match notice {
            Notice::CommandDone { uid } => (uid, Answer::Done),
            Notice::CommandRefused { uid, why } => (uid, Answer::Refused(why)),
            _ => return,
        };
        if let Some(resource) = self.standing.commands.remove(uid) {
            let now = self.context.clock.now();
            commands::answer(&self.context.host_client, &resource, answer, now).await;
        }
    }

    /// What the last leaves of a phase asked for is told to the first of the next.
    fn leave(&mut self, phase: &str) {
        let Some(last) = self.tree(phase).map(Node::last) else {
            return;
        };
        let standing = &mut self.standing;
        let results = last.iter().filter_map(|path| standing.results.get(path));
        standing.from_before = results.flatten().cloned().collect();
        standing.results.clear();
    }
}
