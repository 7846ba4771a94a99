//! Carries out for one object what the machine of its Configurator decides, until nothing is left to be done for now.

mod entries;
mod set_claims;
mod standing;
mod storing;
mod upkeep;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::handler::WatchEvent;
use configurator_core::machine::action::{Action, Notice};
use configurator_core::machine::apply::{apply, awaited, deadline};
use configurator_core::machine::command::Verb;
use configurator_core::machine::event::Event;
use configurator_core::machine::phase::{Machine, PhaseKind, When};
use configurator_core::machine::state::{Seen, State};
use configurator_core::plan::Failure;
use configurator_core::request::ObjectRef;
use configurator_core::result::ResultEntry;
use configurator_core::retry::{self, Decision, Tries, Verdict};
use configurator_core::run::{
    Finish, Member, Pause, Run, RunEnd, RunOutcome, RunStart, host_failure,
};
use configurator_core::time::Timestamp;
use configurator_schema::cel::{Condition, ConditionError};
use futures::StreamExt as _;
use futures::future::{AbortHandle, BoxFuture};
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use self::set_claims::SetClaim;
pub(crate) use self::standing::Standing;
use self::standing::{Parked, Rest};
use self::upkeep::UPKEEP;
use super::awaited::Sought;
use super::commands::{self, Answer};
use super::driver::{Resting, RunContext, RunReport, SendingGate};
use super::earlier::Earlier;
use super::inbox::{Inbox, Wake};
use super::notices;
use super::places::Place;
use super::state_store::{Found, Held, StateStore};
use crate::clock::until;
use crate::objects;
use crate::shards::Permit;
use crate::watched::is_marked_cancelled;

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

/// What came of something that was under way.
enum LeafEnd {
    /// An entry.
    Entry(Box<RunOutcome<Run>>),
    /// A check that a handler makes.
    Check(u64, Box<RunOutcome<Run>>),
    /// The upkeep of the phase.
    Upkeep(Box<RunOutcome<Run>>),
    /// A look at the set, which may have failed.
    Inspected(Option<Box<Failure>>),
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
    /// Whether the upkeep of the phase has begun since anything has happened to the object.
    is_kept_up: bool,
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
        RunEnd::Paused(Pause::Members { .. } | Pause::Unready { .. }) | RunEnd::Finished(_) => {
            start.tries
        }
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
    end_by_failure(start, host_failure(fault, reaction))
}

fn end_by_failure(start: &RunStart, failure: Failure) -> RunEnd {
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
        if !is_going && member.event == WatchEvent::Modified {
            standing.stale_below = standing.state.token;
            standing
                .parked
                .retain(|parked| parked.run.token() != Some(UPKEEP));
        }
        let (gate, sending) = mpsc::channel(1);
        let mut run = Self {
            book_due: context.clock.now().after(BOOK_AFTER),
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
            is_kept_up: false,
            changed: Vec::new(),
            written: Written::default(),
        };
        if is_going {
            run.end_upkeep();
        }
        run.renew_stale();
        run.resume_parked();
        Ok(run)
    }

    /// Goes on with the entries whose time has come, and with those that wait for members: one of these may have changed.
    fn resume_parked(&mut self) {
        let now = self.context.clock.now();
        let goes_on = |parked: &mut Parked| {
            matches!(parked.why, Rest::Members) || parked.due.is_some_and(|due| due <= now)
        };
        let parked = self.standing.parked.extract_if(.., goes_on);
        for Parked { run: mut entry, .. } in parked.collect::<Vec<_>>() {
            let step = entry.resume();
            match entry.token() {
                Some(UPKEEP) => {
                    self.is_kept_up = true;
                    self.drive(entry, step, LeafEnd::Upkeep);
                }
                _ => self.drive(entry, step, LeafEnd::Entry),
            }
        }
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
                LeafEnd::Upkeep(outcome) => {
                    self.kept_up(*outcome)?;
                    None
                }
                LeafEnd::Inspected(failure) => {
                    if let (Some(_), Some(failure)) = (self.aborts.remove(&UPKEEP), failure) {
                        return Err(self.not_kept_up(*failure));
                    }
                    None
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        // What has just been parked may be stale.
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        while let Some(wake) = self.inbox.take() {
            return Ok(Some(match wake {
                Wake::Observed { is_cancelled } => {
                    self.is_fresh = false;
                    self.end_upkeep();
                    self.standing.stale_below = self.standing.state.token;
                    self.renew_stale();
                    Event::Observed {
                        is_changed: true,
                        is_cancelled,
                    }
                }
                Wake::Deleted => {
                    self.is_going = true;
                    self.end_upkeep();
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
        if self.keep_up()? {
            return Ok(());
        }
        let due = deadline(&self.machine, &self.standing.state);
        let parked = &self.standing.parked;
        let next = parked.iter().filter_map(|parked| parked.due).chain(due);
        let next = next.min().map(|next| next.since(now));
        let awaits_members = parked
            .iter()
            .any(|parked| matches!(parked.why, Rest::Members));
        if let Some(first) = parked.iter().min_by_key(|parked| parked.due) {
            let pause = match &first.why {
                Rest::Refused(failure) if !awaits_members => {
                    let after = first.due.unwrap_or(now).since(now);
                    return Err(self.end_by_refusal(&first.run, failure, after));
                }
                Rest::Unready(reason) if !awaits_members => Pause::Unready {
                    after: next.unwrap_or_default(),
                    reason: reason.clone(),
                },
                _ => Pause::Members { after: next },
            };
            return Err(TurnEnd::Ended(RunEnd::Paused(pause)));
        }
        if self.is_going {
            return Err(Finish::Succeeded.into());
        }
        let after = due.map(|due| due.since(now));
        Err(Finish::Rest { after }.into())
    }

    async fn carry_out(&mut self, action: Action) -> Result<(), TurnEnd> {
        match action {
            Action::Abandon { token } => self.abandon(token),
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
                self.end_upkeep();
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
}
