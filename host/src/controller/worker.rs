//! Watches the objects of one Configurator and gives each its runs.

mod commands;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::canary::Fraction;
use configurator_core::capability::Capabilities;
use configurator_core::configurator::{Configurator, DeletionBy};
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::machine::state::Seen;
use configurator_core::parking::{Server, Unavailable};
use configurator_core::plan::Failure;
use configurator_core::queue::{
    Action, CanaryObjects, Counts, Delayed, Finished, Observed, Queue, Ticket,
};
use configurator_core::request::{ObjectRef, SinkName};
use configurator_core::retry::Tries;
use configurator_core::run::{Chain, Finish, Member, Pause, Run, RunStart, Step, host_failure};
use configurator_core::time::Timestamp;
use configurator_guest::module::Module;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, SelectAll};
use futures::{FutureExt, Stream, StreamExt};
use kube::api::{Api, ApiResource};
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Client, Resource as _};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::commands::orders;
use super::awaited::Awaited;
use super::cleanup::{self, Cleanup, Cleanups, Records};
use super::commands::{CommandEvent, Errands};
use super::driver::{Driven, RunContext, drive};
use super::finalizer::finalizer_name;
use super::inbox::{Inbox, Wake};
use super::machine_run::{Standing, TurnParts, Turned, take_turn};
use super::mailbox::Mailbox;
use super::parking::Availability;
use super::pending::{CommandLimits, PendingCommands};
use super::places::{Lending, Place, PlaceNews};
use super::report::{KeeperReport, Reporter};
use super::requesters::Requesters;
use super::rollout::Rollout;
use super::round_robin::RoundRobin;
use super::watched::Watched;
use crate::clock::until;
use crate::cluster::WatchBackoff;
use crate::declarative::DeclarativeRequests;
use crate::events::{HostEvent, Publisher, Subject};
use crate::objects;
use crate::observer::Notice;
use crate::resource::{DelayStatus, FailureStatus};
use crate::shards::{Elsewhere, Permit, Shards, changed};
use crate::tasks::{TaskKind, Tasks};

/// The largest number of objects in a list of the status: of those that failed, and of those that are delayed.
pub const MAX_LISTED: usize = 50;
/// The most characters of a message in the status.
const MAX_MESSAGE: usize = 1024;
/// Objects of one page of a listing, where it is not streamed.
const PAGE_SIZE: u32 = 500;
/// At most this often the worker says something of itself: counting takes time.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// Objects whose machine has something in memory between two of its turns. More begin their next turn with what is stored.
const STANDINGS: usize = 1024;

/// What a worker is made of.
pub struct WorkerParts {
    /// The declaration.
    pub configurator: Arc<Configurator>,
    /// What the operator of the host allows at most.
    pub ceiling: Arc<Capabilities>,
    /// What its runs share.
    pub context: Arc<RunContext>,
    /// The watched kind.
    pub resource: ApiResource,
    /// Whether its objects have namespaces.
    pub is_namespaced: bool,
    /// Watches, as the Configurator's ServiceAccount.
    pub client: Client,
    /// Reads and answers Commands, as the host.
    pub host_client: Client,
    /// Sends declarative requests.
    pub declarative: DeclarativeRequests,
    /// Publishes Events.
    pub publisher: Publisher,
    /// Which servers are unavailable.
    pub availability: Arc<Availability>,
    /// With a machine: limits of its Commands.
    pub command_limits: CommandLimits,
    /// With a machine: finds out whether the API server checks who creates Commands.
    pub(crate) requesters: Arc<Requesters>,
    /// Spawns runs.
    pub tasks: Tasks,
    /// Decides the jitter.
    pub seed: u64,
    /// Where hosts share the objects: which are this host's.
    pub(crate) shards: Option<Arc<Shards>>,
    /// Told at once.
    pub reporter: Reporter,
}

/// What a worker says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Whether the first listing is complete.
    pub is_listed: bool,
    /// Whether every object that existed at start has settled.
    pub is_bootstrapped: bool,
    /// Numbers of objects.
    pub counts: Counts,
    /// Whether nothing runs, is queued or waits to be tried again.
    pub is_settled: bool,
    /// The digest of the canary, and the number of objects that it handles.
    pub canary: Option<(String, CanaryObjects)>,
    /// Objects that were given up, the newest last.
    pub failures: Vec<FailureStatus>,
    /// Objects that a server has refused for now, those that were refused last at the end.
    pub delayed: Vec<DelayStatus>,
    /// Objects that keep changing because of their own runs.
    pub looping: Vec<ObjectRef>,
    /// Sinks whose server is unavailable to runs, and why.
    pub parked: BTreeMap<SinkName, String>,
    /// Why objects cannot be watched at the moment.
    pub watch_error: Option<String>,
}

/// A change of the modules of a Configurator.
enum Renewal {
    /// Makes this module the one of all objects.
    Swap(Arc<Module>),
    /// Starts a canary for these objects.
    StartCanary(Fraction, Arc<Module>),
    /// Rolls the canary back.
    RollBack,
    /// The modules of the selected objects have been changed already. A canary handles the objects of the fraction.
    Done(Selection, Option<Fraction>),
}

impl Renewal {
    /// Changes the modules. Returns the objects whose module has changed, and those that a canary handles from now on.
    fn apply(self, rollout: &Rollout) -> (Selection, Option<Fraction>) {
        let canary = rollout.canary();
        match self {
            Self::Swap(module) => {
                let is_it = |other: &Arc<Module>| other.digest() == module.digest();
                let changed = match canary {
                    Some((fraction, canary)) if is_it(&canary) => Selection::Outside(fraction),
                    Some((fraction, _)) if is_it(&rollout.stable()) => Selection::Within(fraction),
                    _ => Selection::All,
                };
                rollout.swap(module);
                (changed, None)
            }
            Self::StartCanary(fraction, module) => {
                // The objects of an earlier, larger canary return to the stable module.
                let before = canary.map_or(fraction, |(before, _)| before);
                rollout.start_canary(fraction, module);
                let changed = Selection::Within(fraction.larger(before));
                (changed, Some(fraction))
            }
            Self::Done(changed, canary) => (changed, canary),
            Self::RollBack => {
                rollout.roll_back();
                let changed =
                    canary.map_or(Selection::None, |(fraction, _)| Selection::Within(fraction));
                (changed, None)
            }
        }
    }
}

/// A selection of objects.
#[derive(Clone, Copy)]
enum Selection {
    None,
    All,
    Within(Fraction),
    Outside(Fraction),
}

impl Selection {
    fn contains(self, uid: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Within(fraction) => fraction.contains(uid),
            Self::Outside(fraction) => !fraction.contains(uid),
        }
    }
}

/// A worker under way.
pub struct WorkerHandle {
    /// The declaration that it follows.
    pub configurator: Arc<Configurator>,
    /// The watched kind.
    pub resource: ApiResource,
    /// What it says of itself.
    pub report: watch::Receiver<WorkerReport>,
    stop: CancellationToken,
    retry: Arc<Notify>,
    /// Which modules its runs are of. What was asked for last may be yet to come.
    pub rollout: Arc<Rollout>,
    stable: Arc<Module>,
    has_canary: bool,
    is_machine: bool,
    renewals: Arc<Mailbox<Renewal>>,
    task: JoinHandle<Option<()>>,
}

impl WorkerHandle {
    /// No new runs begin; returns when those under way have ended.
    pub async fn stop(self) {
        self.stop.cancel();
        // An error means that the task was dropped, which is as good.
        let _ = self.task.await;
    }

    /// Runs that begin from now on are of this module, and every object has one that had another; those under way go on with theirs. In mode
    /// Machine each entry that begins is of it, and only what was given up is tried again.
    ///
    /// In a chain the worker itself changes what runs are of, so that none begins on the new module before every object is known to need one.
    pub fn swap(&mut self, module: Arc<Module>) {
        self.stable = module.clone();
        self.has_canary = false;
        self.renew(Renewal::Swap(module));
    }

    /// Starts a canary: as [`swap`](Self::swap), but for these objects only.
    pub fn start_canary(&mut self, fraction: Fraction, module: Arc<Module>) {
        self.has_canary = true;
        self.renew(Renewal::StartCanary(fraction, module));
    }

    /// Rolls the canary back: its objects have one more run, of the stable module.
    pub fn roll_back(&mut self) {
        if std::mem::take(&mut self.has_canary) {
            self.renew(Renewal::RollBack);
        }
    }

    fn renew(&self, renewal: Renewal) {
        // An entry that begins asks for its module itself, and is made no second time.
        let renewal = match self.is_machine {
            true => {
                let (changed, canary) = renewal.apply(&self.rollout);
                Renewal::Done(changed, canary)
            }
            false => renewal,
        };
        self.renewals.post(renewal);
    }

    /// Returns the module of all objects that the canary does not handle.
    #[must_use]
    pub const fn stable(&self) -> &Arc<Module> {
        &self.stable
    }

    /// Returns whether there is a canary.
    #[must_use]
    pub const fn has_canary(&self) -> bool {
        self.has_canary
    }

    /// Has every object that was given up tried again at once.
    pub fn retry(&self) {
        // A worker that has not yet seen the last call will do so, and one that has ended has nothing to retry.
        self.retry.notify_one();
    }
}

/// Starts a worker.
#[must_use]
pub fn start(parts: WorkerParts) -> WorkerHandle {
    let (reports, report) = watch::channel(WorkerReport::default());
    let retry = Arc::<Notify>::default();
    let renewals = Arc::<Mailbox<Renewal>>::default();
    let rollout = parts.context.rollout.clone();
    let is_machine = parts.context.machine.is_some();
    let stop = parts.tasks.drain_token().child_token();
    let configurator = parts.configurator.clone();
    let resource = parts.resource.clone();
    let tasks = parts.tasks.clone();
    let queue = Queue::new(parts.configurator.clone(), parts.seed);
    // A future holds what it is given twice, so it is given a box.
    let worker = Box::new(Worker {
        queue: queue.sharded(parts.shards.as_ref().map_or(1, |shards| shards.number())),
        stop: stop.clone(),
        retry: Arc::clone(&retry),
        renewals: Arc::clone(&renewals),
        reports,
        runs: FuturesUnordered::new(),
        turns: RoundRobin::default(),
        members: HashMap::new(),
        lending: Arc::default(),
        reclaiming: HashMap::new(),
        failures: VecDeque::new(),
        looping: BTreeSet::new(),
        unavailable: parts.availability.unavailable(),
        refused: BTreeMap::new(),
        unread: None,
        unlisted: 0,
        is_listed: false,
        held: BTreeSet::new(),
        permit: None,
        watch_error: None,
        is_bootstrapped: false,
        report_due: Timestamp::default(),
        is_unreported: true,
        has_said_settled: false,
        cleanups: None,
        inboxes: HashMap::new(),
        standings: HashMap::new(),
        pending: PendingCommands::new(parts.command_limits),
        errands: Errands::new(
            parts.host_client.clone(),
            parts.context.machine.clone(),
            parts.context.clock.clone(),
        ),
        has_swept: false,
        streams: SelectAll::new(),
        orders: orders(&parts),
        changes: parts.shards.as_ref().map(|shards| shards.changes()),
        recorded: Vec::new(),
        awaited: Awaited::new(parts.client.clone(), parts.seed),
        parts,
    });
    let task = tasks.spawn(TaskKind::Worker, worker.run());
    WorkerHandle {
        configurator,
        resource,
        report,
        stop,
        retry,
        stable: rollout.stable(),
        has_canary: false,
        is_machine,
        rollout,
        renewals,
        task,
    }
}

/// What a run came to; nothing when it broke off. As long as the permit is there, no other host begins one.
type RunOutcome = (Ticket, Option<Turned>, Option<Arc<Permit>>);

struct Worker {
    parts: WorkerParts,
    queue: Queue,
    stop: CancellationToken,
    retry: Arc<Notify>,
    renewals: Arc<Mailbox<Renewal>>,
    reports: watch::Sender<WorkerReport>,
    runs: FuturesUnordered<BoxFuture<'static, RunOutcome>>,
    /// Whose turn it is among runs and watches.
    turns: RoundRobin,
    members: HashMap<Ticket, Vec<Member>>,
    lending: Arc<Lending>,
    /// Runs that wait for a place after they have lent theirs.
    reclaiming: HashMap<Ticket, oneshot::Sender<()>>,
    failures: VecDeque<FailureStatus>,
    looping: BTreeSet<ObjectRef>,
    /// The servers that are unavailable.
    unavailable: watch::Receiver<BTreeMap<Server, Unavailable>>,
    /// Why a run was refused last, by sink, since its server was last unavailable.
    refused: BTreeMap<SinkName, String>,
    /// Why what was handled before cannot be read.
    unread: Option<(SinkName, String)>,
    /// Watches whose first listing is not complete.
    unlisted: usize,
    /// Whether they were complete once.
    is_listed: bool,
    /// The shards whose objects it has, where hosts share them.
    held: BTreeSet<u16>,
    /// That of the run whose end is being dealt with.
    permit: Option<Arc<Permit>>,
    watch_error: Option<String>,
    is_bootstrapped: bool,
    report_due: Timestamp,
    is_unreported: bool,
    has_said_settled: bool,
    cleanups: Option<Cleanups>,
    /// With a machine: what objects that are in a run, or will be next, are told.
    inboxes: HashMap<ObjectRef, Arc<Inbox>>,
    /// With a machine: what their machines have in memory.
    standings: HashMap<ObjectRef, Box<Standing>>,
    /// With a machine: Commands that wait for their object or have finished.
    pending: PendingCommands,
    /// What is asked and told about them.
    errands: Errands,
    /// Whether what went while no host was there is out of the books of states.
    has_swept: bool,
    /// The watches of the objects.
    streams: SelectAll<ObjectStream>,
    /// With a machine: what people tell it to do.
    orders: OrderStream,
    /// Where hosts share the objects: whether their shards have changed.
    changes: Option<watch::Receiver<()>>,
    /// What was handled before, until the first listings are complete.
    recorded: Vec<(ObjectRef, String)>,
    /// With a machine: what the machines of objects wait for.
    awaited: Awaited,
}

/// The next thing that a worker deals with.
#[expect(
    clippy::large_enum_variant,
    reason = "one exists at a time, for one turn of the loop"
)]
enum News<E> {
    /// The worker is to stop.
    Stop,
    /// The shards of this host have changed.
    Shards,
    /// Servers have become available or unavailable.
    Availability,
    /// Every object that was given up is to be tried again.
    Retry,
    /// The keeper has another module or canary for the runs to come.
    Renewals(Vec<Renewal>),
    /// Runs have lent or taken back their places.
    Places(Vec<PlaceNews>),
    /// Whether the object of this Command exists.
    Asked(String, bool),
    /// A run has ended.
    Ended(E),
    /// A watch of these objects has an event.
    Object(String, watcher::Result<Event<Watched>>),
    /// The watch of Commands has an event.
    Order(CommandEvent),
    /// What this object's machine waits for has changed.
    Awaited(ObjectRef, Seen),
}

/// Sources that are left alone while the worker drains.
struct Watches<'a> {
    streams: &'a mut SelectAll<ObjectStream>,
    /// `None` while no more Commands can be taken in.
    orders: Option<&'a mut OrderStream>,
    awaited: &'a mut Awaited,
}

type OrderStream = futures::stream::BoxStream<'static, CommandEvent>;
type ObjectStream = futures::stream::BoxStream<'static, (String, watcher::Result<Event<Watched>>)>;

impl Worker {
    /// Each piece of news is dealt with in a box, so that a worker without work is small.
    async fn run(mut self: Box<Self>) {
        Box::pin(self.begin()).await;
        loop {
            let now = self.now();
            if self.queue.next_deadline().is_some_and(|at| at <= now) {
                let actions = self.queue.tick(now);
                Box::pin(self.act(actions)).await;
            }
            if self.pending.next_deadline().is_some_and(|at| at <= now) {
                self.expire(now);
            }
            if self.pending.wants_listing() {
                self.orders = orders(&self.parts);
            }
            // That something runs is said before anything comes of it.
            let is_news = self.has_said_settled && !self.queue.is_quiet();
            if is_news || now >= self.report_due {
                self.report();
                self.report_due = now.after(REPORT_INTERVAL);
                self.is_unreported = false;
            }
            let is_draining = self.stop.is_cancelled();
            if is_draining {
                self.queue.drain();
                // Runs under way end, wherever their places are.
                self.reclaiming.clear();
                if self.queue.is_quiet() {
                    break;
                }
            }
            if let Some(news) = self.next(is_draining).await {
                Box::pin(self.on(news)).await;
                self.is_unreported = true;
            }
        }
        self.streams = SelectAll::new();
        // Cleanups that are under way are finished, so that they are not repeated after a restart.
        if let Some(cleanups) = self.cleanups.take() {
            cleanups.end().await;
        }
        self.report();
    }

    async fn begin(&mut self) {
        self.on_availability().await;
        match self.parts.shards.clone() {
            None => self.list().await,
            Some(shards) => self.share(&shards).await,
        }
    }

    /// Waits for news. Returns none when a time has come at which there is something to do.
    async fn next(&mut self, is_draining: bool) -> Option<News<RunOutcome>> {
        let report_due = self.is_unreported.then_some(self.report_due);
        let next = [
            self.queue.next_deadline(),
            self.pending.next_deadline(),
            report_due,
        ];
        let next = next.into_iter().flatten().min();
        let deadline = until(self.parts.context.clock.clone(), next);
        let takes_commands = !self.errands.is_full();
        let watches = Watches {
            streams: &mut self.streams,
            orders: takes_commands.then_some(&mut self.orders),
            awaited: &mut self.awaited,
        };
        let watches = (!is_draining).then_some(watches);
        tokio::select! {
            biased;
            () = self.stop.cancelled(), if !is_draining => Some(News::Stop),
            () = changed(self.changes.as_mut()), if !is_draining => Some(News::Shards),
            changed = self.unavailable.changed() => Some(match changed {
                Ok(()) => News::Availability,
                Err(_) => News::Stop,
            }),
            () = self.retry.notified() => Some(News::Retry),
            renewals = self.renewals.next() => Some(News::Renewals(renewals)),
            news = self.lending.next() => Some(News::Places(news)),
            (command, exists) = self.errands.next(), if !is_draining => {
                Some(News::Asked(command, exists))
            }
            news = next_news(&mut self.turns, &mut self.runs, watches) => Some(news),
            () = deadline => None,
        }
    }

    async fn on(&mut self, news: News<RunOutcome>) {
        match news {
            News::Stop => self.stop.cancel(),
            News::Shards => {
                if let Some(shards) = self.parts.shards.clone() {
                    self.share(&shards).await;
                    // Commands for objects that were another host's were passed over.
                    self.orders = orders(&self.parts);
                }
            }
            News::Availability => self.on_availability().await,
            News::Retry => {
                let now = self.now();
                let actions = self.queue.retry_given_up(now);
                self.act(actions).await;
            }
            News::Renewals(renewals) => {
                for renewal in renewals {
                    self.on_renewal(renewal).await;
                }
            }
            News::Places(news) => self.on_places(news).await,
            News::Asked(command, exists) => self.on_asked(&command, exists),
            News::Ended(outcome) => self.on_driven(outcome).await,
            News::Object(scope, event) => self.on_event(&scope, event).await,
            News::Order(event) => self.on_command_event(event).await,
            News::Awaited(machine, seen) => self.tell(&machine, Wake::Changed(seen)).await,
        }
    }

    fn now(&self) -> Timestamp {
        self.parts.context.clock.now()
    }

    /// Lists and watches the objects, from the start.
    async fn list(&mut self) {
        // What the ledger has is known before the first run asks, so that nothing is recorded twice.
        self.recorded = self.read_recorded().await;
        self.streams = self.streams();
        self.unlisted = self.streams.len();
    }

    /// Takes over the objects of shards that were gained, and lets go of those of shards that were lost.
    async fn share(&mut self, shards: &Shards) {
        let held = shards.held();
        let before = std::mem::replace(&mut self.held, held.clone());
        if before.difference(&held).next().is_some() {
            let is_let_go = |uid: &str| !held.contains(&shards.of(uid));
            if let Some(ledger) = &self.parts.context.ledger {
                ledger.let_go(is_let_go);
            }
            if let Some(finalizer) = &self.parts.context.finalizer {
                finalizer.let_go(is_let_go);
            }
            self.failures.retain(|failed| !is_let_go(&failed.uid));
            self.pending.retain(|uid| !is_let_go(uid));
            let now = self.now();
            let actions = self.queue.let_go(is_let_go, now);
            self.act(actions).await;
        }
        if held.is_empty() {
            self.streams = SelectAll::new();
            self.unlisted = 0;
        } else if held.difference(&before).next().is_some() {
            // Nothing is kept of objects that are another host's, so they are listed when they no longer are.
            self.list().await;
        }
    }

    /// Whether the object is in a namespace that the Configurator excludes.
    fn excludes(&self, object: &Watched) -> bool {
        let namespace = object.meta().namespace.as_deref();
        namespace.is_some_and(|namespace| self.parts.configurator.watch.excludes(namespace))
    }

    /// Whether the object with this uid is this host's.
    fn has(&self, uid: &str) -> bool {
        let shards = self.parts.shards.as_ref();
        shards.is_none_or(|shards| self.held.contains(&shards.of(uid)))
    }

    fn streams(&self) -> SelectAll<ObjectStream> {
        let watched = &self.parts.configurator.watch;
        // The state comes as events of the watch, one after another: neither side holds a page of it, and there is one
        // request where pages are many.
        let mut config = watcher::Config::default()
            .page_size(PAGE_SIZE)
            .streaming_lists();
        if !watched.label_selector.is_empty() {
            config = config.labels(&watched.label_selector);
        }
        if !watched.field_selector.is_empty() {
            config = config.fields(&watched.field_selector);
        }
        let namespaces: Vec<String> = if watched.namespaces.is_empty() || !self.parts.is_namespaced
        {
            vec![String::new()]
        } else {
            watched.namespaces.clone()
        };
        let mut streams = SelectAll::new();
        for namespace in namespaces {
            let client = self.parts.client.clone();
            let api: Api<Watched> = if namespace.is_empty() {
                Api::all_with(client, &self.parts.resource)
            } else {
                Api::namespaced_with(client, &namespace, &self.parts.resource)
            };
            let events = watched_by(api, config.clone(), self.parts.seed);
            streams.push(events.map(move |event| (namespace.clone(), event)).boxed());
        }
        streams
    }

    async fn on_event(&mut self, scope: &str, event: watcher::Result<Event<Watched>>) {
        let event = match event {
            Ok(event) => {
                self.watch_error = None;
                event
            }
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    configurator = %self.parts.configurator.key,
                    error,
                    "the watch failed; it is tried again"
                );
                self.watch_error = Some(error);
                return;
            }
        };
        if let Event::InitApply(object) | Event::Apply(object) | Event::Delete(object) = &event
            && self.excludes(object)
        {
            return;
        }
        let now = self.now();
        let mut shown = None;
        let mut is_listing_over = false;
        let actions = match event {
            Event::Init => {
                self.queue.list(scope);
                Vec::new()
            }
            Event::InitApply(object) => {
                shown = Some(object.key());
                // Where hosts share objects, another host may have handled it before.
                let is_known_new = self.is_listed && self.parts.shards.is_none();
                self.observe(object, is_known_new.then_some(now))
            }
            Event::Apply(object) => {
                shown = Some(object.key());
                self.observe(object, Some(now))
            }
            Event::Delete(object) => {
                if let Some(inbox) = self.inboxes.get(&object.key()) {
                    inbox.put(Wake::Deleted);
                }
                self.queue.gone(&object.key(), object.uid(), now)
            }
            Event::InitDone => {
                if self.unlisted == 0 {
                    self.recorded = self.read_recorded().await;
                }
                self.unlisted = self.unlisted.saturating_sub(1);
                is_listing_over = self.unlisted == 0;
                self.is_listed |= self.unlisted == 0;
                // With the last listing also what was handled in namespaces that are not watched any more.
                let is_last = self.unlisted == 0;
                let in_scope = |(key, _): &mut (ObjectRef, String)| {
                    is_last || scope.is_empty() || key.namespace == scope
                };
                let expected = self.recorded.extract_if(.., in_scope).collect();
                self.queue
                    .listed(scope, expected, self.unlisted == 0, self.now())
            }
        };
        self.act(actions).await;
        if self.is_listed && self.unlisted == 0 {
            if !std::mem::replace(&mut self.has_swept, true) {
                self.sweep().await;
            }
            if let Some(key) = shown {
                self.deliver(&key).await;
            }
            if is_listing_over {
                self.deliver_all().await;
            }
        }
    }

    /// Removes what is stored of objects that went while no host was there.
    async fn sweep(&mut self) {
        let known = match cleanup::stored_objects(&self.parts.context).await {
            Ok(known) => known,
            Err(fault) => {
                return tracing::warn!(%fault, "it cannot be read which objects something is stored of; what has gone is removed at the next start");
            }
        };
        let there = self.queue.uids();
        let gone: Vec<(ObjectRef, String)> = known
            .into_iter()
            .filter(|(_, uid)| self.has(uid) && !there.contains(uid.as_str()))
            .collect();
        if gone.is_empty() {
            return;
        }
        let cleanups = self.cleanups();
        let (shards, stop) = (self.parts.shards.clone(), self.stop.clone());
        let queueing = async move {
            for (key, uid) in gone {
                let Ok(permit) = Shards::permit(shards.as_ref(), &uid) else {
                    continue;
                };
                let cleanup = Box::new(Cleanup {
                    key,
                    uid,
                    records: Records::Stored,
                    permit: permit.map(Arc::new),
                });
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    _ = cleanups.send(cleanup) => {}
                }
            }
        };
        self.parts.tasks.spawn(TaskKind::Publisher, queueing);
    }

    /// Tells an object's machine something. One that has no turn gets one.
    async fn tell(&mut self, key: &ObjectRef, wake: Wake) {
        self.inboxes.entry(key.clone()).or_default().put(wake);
        let now = self.now();
        let actions = self.queue.nudge(key, now);
        self.act(actions).await;
    }

    /// Takes in a watched object. `appeared` is when it appeared, if the queue does not know it yet.
    fn observe(&mut self, object: Watched, appeared: Option<Timestamp>) -> Vec<Action> {
        if !self.has(object.uid()) {
            let now = self.now();
            return self.queue.displaced(&object.key(), object.uid(), now);
        }
        let finalizer = finalizer_name(&self.parts.configurator.key);
        if let Some(placed) = &self.parts.context.finalizer
            && object.has_finalizer(&finalizer)
        {
            placed.note_placed(object.uid(), object.version());
        }
        let is_cancelled = object.is_cancelled();
        match object.observe(&self.parts.configurator, &finalizer) {
            Ok(observed) => {
                let now = self.now();
                if let Some(inbox) = self.inboxes.get(&observed.key) {
                    let known = self.queue.known(&observed.key);
                    if observed.deleting_since.is_some() {
                        inbox.put(Wake::Deleted);
                    } else if known.is_some_and(|(_, content)| content != observed.content) {
                        inbox.put(Wake::Observed { is_cancelled });
                    }
                }
                let observed = Observed {
                    appeared,
                    ..observed
                };
                self.queue.observe(observed, now)
            }
            Err(error) => {
                tracing::warn!(configurator = %self.parts.configurator.key, %error, "an object is left alone");
                Vec::new()
            }
        }
    }

    /// What was handled once, and may have gone or be watched no more. Until it can be read, nothing that is missing
    /// can be noticed, so it is waited for.
    async fn read_recorded(&mut self) -> Vec<(ObjectRef, String)> {
        let context = self.parts.context.clone();
        let mut failures = 0;
        loop {
            let read = match (&context.ledger, &context.finalizer) {
                (Some(ledger), _) => ledger.read().await,
                (None, Some(finalizer)) => finalizer.held().await,
                (None, None) => Ok(Vec::new()),
            };
            match read {
                Ok(mut recorded) => {
                    self.unread = None;
                    recorded.retain(|(_, uid)| self.has(uid));
                    return recorded;
                }
                Err(fault) => {
                    failures += 1;
                    let sink = fault.kind.sink().unwrap_or(SinkName::Kubernetes);
                    self.unread = Some((sink, fault.message.clone()));
                    self.report();
                    tracing::warn!(configurator = %self.parts.configurator.key, %fault, "what was handled before cannot be read; it is tried again");
                    let wait = jittered(
                        Duration::from_secs(1 << failures.min(3)),
                        self.parts.seed ^ failures,
                    );
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => return Vec::new(),
                        () = context.clock.sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Servers have become available or unavailable.
    async fn on_availability(&mut self) {
        let before = self.parked();
        let unavailable = self.unavailable.borrow_and_update().clone();
        let now = self.now();
        let actions = self.queue.set_unavailable(unavailable, now);
        let parked = self.parked();
        self.refused
            .retain(|sink, _| parked.contains_key(sink) || !before.contains_key(sink));
        self.act(actions).await;
    }

    /// Sinks whose server is unavailable to runs, and why.
    fn parked(&self) -> BTreeMap<SinkName, String> {
        let unavailable = self.queue.unavailable();
        let refused = self.refused.iter();
        let refused =
            refused.filter(|(sink, _)| unavailable.keys().any(|server| server.sink == **sink));
        let refused = refused.map(|(sink, why)| (*sink, why.clone()));
        refused.chain(self.unread.clone()).collect()
    }

    async fn on_driven(&mut self, (ticket, driven, permit): RunOutcome) {
        let now = self.now();
        self.permit = permit;
        let members = self.members.remove(&ticket).unwrap_or_default();
        // A run can break off while it waits for a place.
        self.reclaiming.remove(&ticket);
        let keys: Vec<ObjectRef> = members.iter().map(|member| member.key.clone()).collect();
        let driven = driven.map(|turned| {
            if let Some(key) = keys.first()
                && self.parts.context.machine.is_some()
            {
                self.awaited.wait(key, turned.awaited);
                if let Some(standing) = turned.standing
                    && self.standings.len() < STANDINGS
                {
                    self.standings.insert(key.clone(), standing);
                }
            }
            turned.driven
        });
        let actions = match driven {
            Some(Driven::Finished { finished, .. }) => {
                if let Finish::Restart { failure, .. } = &finished.finish {
                    self.on_refusal(failure);
                }
                self.queue.finish(ticket, finished, now)
            }
            Some(Driven::Paused {
                run,
                pause,
                finished,
                ..
            }) => {
                if let Pause::Park { failure, .. } = &pause {
                    self.on_refusal(failure);
                }
                self.queue.pause(ticket, run, &pause, finished, now)
            }
            None => self.queue.finish(ticket, broken_off(members), now),
        };
        self.act(actions).await;
        self.permit = None;
        self.hear_on(&keys).await;
    }

    /// A server has refused a run for now, or has not answered it. What the host itself asks of the server is not observed
    /// elsewhere.
    fn on_refusal(&mut self, failure: &Failure) {
        if let (Reaction::Park, Some(server)) = (failure.reaction, &failure.server) {
            self.refused
                .insert(server.sink, failure.fault.message.clone());
            if failure.fault.retry_after.is_none() {
                self.parts.availability.suspect(server.sink);
            }
        }
    }

    /// What was told to objects when their turn was over gives them another.
    async fn hear_on(&mut self, keys: &[ObjectRef]) {
        for key in keys {
            let is_empty = self.inboxes.get(key).is_none_or(|inbox| inbox.is_empty());
            let now = self.now();
            let actions = match is_empty {
                true => Vec::new(),
                false => self.queue.nudge(key, now),
            };
            self.act(actions).await;
            if is_empty && !self.queue.is_running(key) {
                self.inboxes.remove(key);
            }
        }
    }

    async fn on_renewal(&mut self, renewal: Renewal) {
        let now = self.now();
        let (changed, canary) = renewal.apply(&self.parts.context.rollout);
        self.queue.set_canary(canary, now);
        let actions = match self.parts.context.machine {
            Some(_) => self.queue.retry_given_up(now),
            None => self.queue.renew(|uid| changed.contains(uid), now),
        };
        self.act(actions).await;
    }

    async fn on_places(&mut self, news: Vec<PlaceNews>) {
        for news in news {
            let now = self.now();
            let actions = match news {
                PlaceNews::Lent(ticket) => self.queue.lend(ticket, now),
                PlaceNews::TakenBack(ticket) => {
                    // Entries of the same machine that wait for the place go on.
                    self.reclaiming.remove(&ticket);
                    self.queue.take_back(ticket, now)
                }
                PlaceNews::Reclaimed(ticket, grant) => {
                    self.reclaiming.insert(ticket, grant);
                    self.queue.reclaim(ticket, now)
                }
            };
            self.act(actions).await;
        }
    }

    async fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Start {
                    ticket,
                    members,
                    chain,
                    tries,
                    is_suspect,
                } => {
                    let start = RunStart {
                        configurator: self.parts.configurator.clone(),
                        ceiling: self.parts.ceiling.clone(),
                        module: self.parts.context.rollout.choose(&members),
                        members,
                        chain,
                        tries,
                    };
                    self.start(ticket, start, is_suspect);
                }
                Action::Resume {
                    ticket,
                    run,
                    is_suspect,
                } => self.resume(ticket, *run, is_suspect),
                // Dropping the grant lets the run go on.
                Action::Continue { ticket } => drop(self.reclaiming.remove(&ticket)),
                Action::Forget { key, uid } => self.forget(key, uid).await,
                Action::Release { key, uid } => {
                    let message = "the deletion phases did not end within deletion.timeout; the object is let go";
                    self.warn_about(&key, &uid, "DeletionTimedOut", message.into());
                    self.forget(key, uid).await;
                }
                Action::GiveUp {
                    key,
                    uid,
                    failure,
                    failures,
                } => self.give_up(&key, uid, &failure, failures),
                Action::Recover { key } => {
                    self.failures.retain(|failed| !names(failed, &key));
                }
                Action::Loop {
                    key,
                    is_looping: true,
                } => {
                    self.looping.insert(key);
                }
                Action::Loop {
                    key,
                    is_looping: false,
                } => {
                    self.looping.remove(&key);
                }
                Action::Bootstrapped { given_up } => {
                    self.is_bootstrapped = true;
                    let objects = self.queue.counts().objects;
                    tracing::info!(
                        configurator = %self.parts.configurator.key,
                        objects,
                        given_up,
                        "every object has had its turn"
                    );
                    let notice = Notice::Bootstrapped { objects };
                    self.parts
                        .context
                        .observer
                        .noticed(&self.parts.configurator.key, &notice);
                }
            }
        }
    }

    fn start(&mut self, ticket: Ticket, start: RunStart, is_suspect: bool) {
        if start.chain == Chain::Phases && self.parts.context.machine.is_some() {
            return self.take_turn(ticket, start, is_suspect);
        }
        let (run, step) = Run::start(start, self.now());
        self.drive(ticket, run, step, is_suspect);
    }

    fn resume(&mut self, ticket: Ticket, mut run: Run, is_suspect: bool) {
        if run.chain() == Chain::Phases && self.parts.context.machine.is_some() {
            let start = RunStart {
                configurator: self.parts.configurator.clone(),
                ceiling: self.parts.ceiling.clone(),
                members: run.members().to_vec(),
                chain: run.chain(),
                tries: run.tries(),
                module: self.parts.context.rollout.choose(run.members()),
            };
            return self.take_turn(ticket, start, is_suspect);
        }
        let step = run.resume();
        self.drive(ticket, run, step, is_suspect);
    }

    fn drive(&mut self, ticket: Ticket, run: Run, step: Step, is_suspect: bool) {
        let context = self.parts.context.clone();
        let place = Place::new(ticket, is_suspect, self.lending.clone());
        let members = run.members().to_vec();
        self.spawn(ticket, members, |permit| {
            let driving = drive(context, ticket, run, step, permit, place.enter());
            let turned = driving.map(|driven| Turned {
                driven,
                standing: None,
                awaited: Vec::new(),
            });
            turned.boxed()
        });
    }

    /// In a machine, the unit is a turn of one object's machine.
    fn take_turn(&mut self, ticket: Ticket, start: RunStart, is_suspect: bool) {
        let context = self.parts.context.clone();
        let (Some(own), Some(member)) = (context.machine.clone(), start.members.first()) else {
            return;
        };
        let inbox = self.inboxes.entry(member.key.clone()).or_default().clone();
        let standing = self.standings.remove(&member.key);
        let members = start.members.clone();
        let stop = self.stop.clone();
        let place = Place::new(ticket, is_suspect, self.lending.clone());
        self.spawn(ticket, members, |permit| {
            let parts = TurnParts {
                stop,
                context,
                own,
                start,
                inbox,
                standing,
                permit,
                place,
            };
            take_turn(parts, ticket).boxed()
        });
    }

    fn spawn(
        &mut self,
        ticket: Ticket,
        members: Vec<Member>,
        driving: impl FnOnce(Option<Arc<Permit>>) -> BoxFuture<'static, Turned>,
    ) {
        let shards = self.parts.shards.as_ref();
        let claim =
            shards.map(|shards| shards.claim(members.iter().map(|member| member.uid.as_str())));
        let permit = claim.map(|claim| claim.begin().map(Arc::new));
        self.members.insert(ticket, members);
        let permit = match permit {
            None => None,
            Some(Some(permit)) => Some(permit),
            // The shard has just gone, which this worker will hear next.
            Some(None) => {
                let outcome = (ticket, None, None);
                return self.runs.push(std::future::ready(outcome).boxed());
            }
        };
        let driving = driving(permit.clone());
        let driving = std::panic::AssertUnwindSafe(driving).catch_unwind();
        let held = permit.clone();
        let task = self.parts.tasks.spawn(TaskKind::Run, async move {
            let Some(permit) = held else {
                return driving.await.ok();
            };
            tokio::select! {
                biased;
                () = permit.lost() => None,
                driven = driving => driven.ok(),
            }
        });
        let outcome = async move { (ticket, task.await.ok().flatten().flatten(), permit) };
        self.runs.push(outcome.boxed());
    }

    async fn forget(&mut self, key: ObjectRef, uid: String) {
        self.standings.remove(&key);
        self.awaited.wait(&key, Vec::new());
        let ledger = self.parts.context.ledger.as_ref();
        let records = Records::All(ledger.and_then(|ledger| ledger.end(&key, &uid)));
        if let Some(finalizer) = &self.parts.context.finalizer {
            finalizer.end(&uid);
        }
        let permit = match &self.permit {
            Some(permit) => Some(permit.clone()),
            None => match Shards::permit(self.parts.shards.as_ref(), &uid) {
                Ok(permit) => permit.map(Arc::new),
                // The next host of the shard finds the object in the records.
                Err(Elsewhere) => return,
            },
        };
        let cleanup = Box::new(Cleanup {
            key,
            uid,
            records,
            permit,
        });
        // The queue ends only after this worker.
        let _ = self.cleanups().send(cleanup).await;
    }

    /// Returns the queue of cleanups. Most workers never need it, so it begins when it is used first.
    fn cleanups(&mut self) -> mpsc::Sender<Box<Cleanup>> {
        let WorkerParts {
            context,
            declarative,
            tasks,
            ..
        } = &self.parts;
        let cleanups = self
            .cleanups
            .get_or_insert_with(|| Cleanups::begin(context.clone(), declarative.clone(), tasks));
        cleanups.queue()
    }

    fn give_up(&mut self, key: &ObjectRef, uid: String, failure: &Failure, failures: u32) {
        let configurator = &self.parts.configurator.key;
        tracing::warn!(%configurator, object = %key, fault = %failure.fault, failures, "the object is given up until it changes");
        let reason = match failure.fault.kind {
            FaultKind::RetryExceedLimit => "RetryExceedLimitError",
            _ => "RunFailed",
        };
        self.warn_about(key, &uid, reason, failure.fault.to_string());
        self.failures.retain(|failed| !names(failed, key));
        if self.failures.len() >= MAX_LISTED {
            self.failures.pop_front();
        }
        self.failures.push_back(FailureStatus {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid,
            request: failure.request_name.clone(),
            kind: failure.fault.kind.name().to_owned(),
            message: failure.fault.message.chars().take(MAX_MESSAGE).collect(),
            attempts: failures,
            time: self.now().to_string(),
        });
    }

    fn warn_about(&self, key: &ObjectRef, uid: &str, reason: &str, message: String) {
        let subject = Subject::watched(&self.parts.configurator, key, uid);
        self.parts
            .publisher
            .publish(HostEvent::warning(subject, reason, message));
    }

    /// Returns the digest of the canary, and the number of objects that it handles.
    fn canary(&self, is_idle: bool) -> Option<(String, CanaryObjects)> {
        let context = &self.parts.context;
        let (_, module) = context.rollout.canary()?;
        let digest = module.digest().to_string();
        let objects = match self.queue.canary_objects() {
            // The object of a machine that rests has no entry until something happens, so the canary does not await an entry of each object.
            Some(CanaryObjects { total, .. }) if context.machine.is_some() => CanaryObjects {
                total,
                awaited: total.saturating_sub(context.rollout.canary_runs(&digest).runs),
            },
            Some(objects) => objects,
            None => is_idle.then(CanaryObjects::default)?,
        };
        Some((digest, objects))
    }

    fn report(&mut self) {
        // Other hosts have every object.
        let is_idle = self.parts.shards.is_some() && self.held.is_empty();
        let counts = self.queue.counts();
        let delayed = match counts.delayed {
            0 => Vec::new(),
            _ => self.queue.delayed(MAX_LISTED),
        };
        let report = WorkerReport {
            canary: self.canary(is_idle),
            is_listed: self.is_listed || is_idle,
            is_bootstrapped: self.is_bootstrapped || is_idle,
            counts,
            delayed: delayed.into_iter().map(delay_status).collect(),
            is_settled: self.unlisted == 0 && (self.queue.is_settled() || is_idle),
            failures: self.failures.iter().cloned().collect(),
            looping: self.looping.iter().cloned().collect(),
            parked: self.parked(),
            watch_error: self.watch_error.clone(),
        };
        self.parts
            .context
            .metrics
            .counts(&self.parts.configurator.key, report.counts);
        self.has_said_settled = report.is_settled;
        self.parts.reporter.say(KeeperReport {
            is_bootstrapped: report.is_bootstrapped,
            is_settled: report.is_settled,
        });
        self.reports.send_if_modified(|known| {
            let is_new = *known != report;
            if is_new {
                *known = report;
            }
            is_new
        });
    }
}

/// The next thing that happens. With many short runs one has always ended, so runs and watches take turns: otherwise no
/// change or deletion would be seen until the queue is empty.
async fn next_news<E>(
    turns: &mut RoundRobin,
    runs: &mut (impl Stream<Item = E> + Unpin + Send),
    mut watches: Option<Watches<'_>>,
) -> News<E> {
    /// A stream that has ended, or is empty, has nothing any more.
    fn item<T>(polled: Poll<Option<T>>) -> Poll<T> {
        match polled {
            Poll::Ready(Some(item)) => Poll::Ready(item),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
    poll_fn(|context| {
        let Some(watches) = &mut watches else {
            return item(runs.poll_next_unpin(context)).map(News::Ended);
        };
        let Watches {
            streams,
            orders,
            awaited,
        } = watches;
        turns.poll(
            context,
            [
                &mut |context| item(runs.poll_next_unpin(context)).map(News::Ended),
                &mut |context| {
                    item(streams.poll_next_unpin(context))
                        .map(|(scope, event)| News::Object(scope, event))
                },
                &mut |context| match orders {
                    Some(orders) => item(orders.poll_next_unpin(context)).map(News::Order),
                    None => Poll::Pending,
                },
                &mut |context| {
                    awaited
                        .poll(context)
                        .map(|(machine, seen)| News::Awaited(machine, seen))
                },
            ],
        )
    })
    .await
}

/// Watches, and begins anew with a listing in pages where the server refuses to stream one.
fn watched_by(
    api: Api<Watched>,
    config: watcher::Config,
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<Watched>>> + Send {
    let paged = watcher::Config {
        initial_list_strategy: InitialListStrategy::ListWatch,
        ..config.clone()
    };
    let backoff = move || WatchBackoff::new(seed);
    let streamed = watch_kind(api.clone(), config).backoff(backoff()).boxed();
    // Few need the fallback, so it is boxed.
    let (mut events, mut fallback) = (streamed, Some(Box::new((api, paged))));
    futures::stream::poll_fn(move |context| {
        let polled = events.poll_next_unpin(context);
        if let Poll::Ready(Some(Err(error))) = &polled
            && refuses_to_stream(error)
            && let Some(fallback) = fallback.take()
        {
            let (api, paged) = *fallback;
            events = watch_kind(api, paged).backoff(backoff()).boxed();
            return events.poll_next_unpin(context);
        }
        polled
    })
}

/// Whether a server answers that it does not know, or does not allow, what a streamed listing is asked for with.
fn refuses_to_stream(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}

fn delay_status(delayed: Delayed<'_>) -> DelayStatus {
    let Delayed {
        key,
        uid,
        failure,
        refusals,
        at,
    } = delayed;
    DelayStatus {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: uid.to_owned(),
        request: failure.request_name.clone(),
        kind: failure.fault.kind.name().to_owned(),
        message: failure.fault.message.chars().take(MAX_MESSAGE).collect(),
        refusals,
        time: at.to_string(),
    }
}

fn names(failed: &FailureStatus, key: &ObjectRef) -> bool {
    failed.namespace == key.namespace && failed.name == key.name
}

/// What stands in the place of the outcome of a run that broke off, which must not lose objects: by a bug of the host, or
/// because another host has a shard of its objects; those that are left are run again.
fn broken_off(members: Vec<Member>) -> Finished {
    let fault = Fault::new(
        FaultKind::ResourceGeneric,
        "the run broke off: another host took over an object of it, or the host has a bug",
    );
    let failure = host_failure(fault, Reaction::Restart);
    Finished {
        finish: Finish::Restart {
            after: Duration::from_secs(5),
            failure,
            tries: Tries {
                failures: 1,
                refusals: 0,
            },
        },
        members,
        departed: Vec::new(),
        own_writes: Vec::new(),
        has_written: false,
        holds_readiness: true,
    }
}

/// Whether deletions of this Configurator's objects must be noticed although nobody watched.
#[must_use]
pub fn needs_ledger(configurator: &Configurator) -> bool {
    configurator.deletion.by == DeletionBy::Ledger && configurator.deletion.is_handled()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[tokio::test]
    async fn events_are_seen_while_runs_end_all_the_time() {
        let silent = tower::service_fn(async |_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        });
        let mut awaited = Awaited::new(Client::new(silent, "default"), 0);
        let mut turns = RoundRobin::default();
        let mut runs = stream::repeat(());
        let events = stream::iter([Event::Init, Event::InitDone]);
        let mut streams = SelectAll::new();
        streams.push(events.map(|event| (String::new(), Ok(event))).boxed());
        let mut orders = stream::iter([(String::new(), Ok(Event::Init))]).boxed();
        let mut seen = Vec::new();
        for _ in 0..7 {
            let watches = Watches {
                streams: &mut streams,
                orders: Some(&mut orders),
                awaited: &mut awaited,
            };
            let news = next_news(&mut turns, &mut runs, Some(watches)).await;
            seen.push(match news {
                News::Ended(()) => "run",
                News::Object(..) => "object",
                News::Order(_) => "Command",
                News::Awaited(..) => "awaited",
                _ => "other",
            });
        }
        assert_eq!(
            seen,
            ["run", "object", "Command", "run", "object", "run", "run"]
        );
    }
}
