//! Watches the objects of one Configurator and gives each its runs.

mod commands;
mod handle;
mod objects;
mod report;
mod runs;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use configurator_core::ceiling::Ceiling;
use configurator_core::configurator::{Configurator, DeletionBy};
use configurator_core::machine::state::Seen;
use configurator_core::parking::{Server, Unavailable};
use configurator_core::queue::{Queue, Ticket};
use configurator_core::request::{ObjectRef, SinkName};
use configurator_core::run::Member;
use configurator_core::time::Timestamp;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures::{Stream, StreamExt, stream};
use kube::Client;
use kube::api::ApiResource;
use kube::runtime::watcher::{self, Event};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::commands::orders;
use self::handle::Renewal;
pub use self::handle::WorkerHandle;
pub use self::report::WorkerReport;
use super::awaited::Awaited;
use super::cleanup::Cleanups;
use super::commands::{CommandEvent, Errands};
use super::driver::{Resting, RunContext, RunReport};
use super::inbox::{Inbox, Wake};
use super::machine_run::Standing;
use super::mailbox::Mailbox;
use super::namespaces::SelectedNamespaces;
use super::parking::Availability;
use super::pending::{CommandLimits, PendingCommands};
use super::places::{Lending, PlaceNews};
use super::policies::Policies;
use super::report::Reporter;
use super::requesters::Requesters;
use super::round_robin::RoundRobin;
use super::run_rates::{NamespacePace, RunRates};
use crate::clock::until;
use crate::declarative::DeclarativeRequests;
use crate::events::Publisher;
use crate::resource::FailureStatus;
use crate::sets::{self, MemberEvent, MemberWatches, Sets, WatchOptions};
use crate::shards::{ConfiguratorClaim, Permit, changed};
use crate::tasks::{TaskKind, Tasks, if_some};
use crate::watched::Watched;

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
    /// What others allow at most.
    pub(crate) policies: Policies,
    /// What its runs share.
    pub context: Arc<RunContext>,
    /// The watched kind.
    pub resource: ApiResource,
    /// Whether its objects have namespaces.
    pub is_namespaced: bool,
    /// Limits how often runs of its namespace begin.
    pub(crate) run_rates: RunRates,
    /// The namespaces whose objects are selected; `None`: all.
    pub namespaces: Option<Box<SelectedNamespaces>>,
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
    /// Where hosts share the objects: whether this host runs the Configurator, and for which objects.
    pub(crate) claim: Option<ConfiguratorClaim>,
    /// Told at once.
    pub reporter: Reporter,
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
    let pace = NamespacePace {
        rates: parts.run_rates.clone(),
        policies: parts.policies.clone(),
        namespace: parts.configurator.key.namespace.clone(),
    };
    let queue = Queue::new(parts.configurator.clone(), parts.seed)
        .sharded(parts.claim.as_ref().map_or(1, ConfiguratorClaim::number))
        .paced(Arc::new(pace));
    // A future holds what it is given twice, so it is given a box.
    let worker = Box::new(Worker {
        queue,
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
        changes: parts.claim.as_ref().map(ConfiguratorClaim::changes),
        recorded: Vec::new(),
        awaited: is_machine.then(|| Box::new(Awaited::new(parts.client.clone(), parts.seed))),
        member_watches: parts.context.sets.is_some().then(|| {
            let watches = MemberWatches::new(parts.client.clone(), watch_options(&parts));
            Box::new(watches)
        }),
        members_changed: BTreeSet::new(),
        drifts: drifts(&parts),
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

/// A run that is no longer under way.
struct EndedRun {
    ticket: Ticket,
    /// What came of it; nothing when it broke off.
    report: Option<RunReport>,
    /// As long as it is there, no other host begins a run of these objects.
    permit: Option<Arc<Permit>>,
}

struct Worker {
    parts: WorkerParts,
    queue: Queue<Resting>,
    stop: CancellationToken,
    retry: Arc<Notify>,
    renewals: Arc<Mailbox<Renewal>>,
    reports: watch::Sender<WorkerReport>,
    runs: FuturesUnordered<BoxFuture<'static, EndedRun>>,
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
    awaited: Option<Box<Awaited>>,
    /// With sets: the watches of their members.
    member_watches: Option<Box<MemberWatches>>,
    /// With sets: objects in a run whose members have changed meanwhile.
    members_changed: BTreeSet<ObjectRef>,
    /// With sets: the owners of members in the stores that others have changed.
    drifts: Option<BoxStream<'static, ObjectRef>>,
}

/// The next thing that a worker deals with.
enum News<E> {
    /// The worker is to stop.
    Stop,
    /// The shards of this host have changed.
    Shards,
    /// Other namespaces are selected.
    Namespaces,
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
    Object(Box<ObjectEvent>),
    /// The watch of Commands has an event.
    Order(Box<CommandEvent>),
    /// What this object's machine waits for has changed.
    Awaited(ObjectRef, Seen),
    /// A watch of members of sets has an event.
    Member(Box<MemberEvent>),
    /// Members of other kinds are to be watched.
    MemberKinds,
    /// A member in a store has changed.
    Drift(ObjectRef),
}

/// Sources that are left alone while the worker drains.
struct Watches<'a> {
    streams: &'a mut SelectAll<ObjectStream>,
    /// `None` while no more Commands can be taken in.
    orders: Option<&'a mut OrderStream>,
    awaited: Option<&'a mut Awaited>,
    member_watches: Option<&'a mut MemberWatches>,
}

type OrderStream = BoxStream<'static, CommandEvent>;
type ObjectStream = BoxStream<'static, ObjectEvent>;
/// An event, with the namespace that is watched; empty: all of them.
type ObjectEvent = (String, watcher::Result<Event<Watched>>);

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
        match self.parts.claim.clone() {
            None => self.list().await,
            Some(claim) => self.share(&claim).await,
        }
    }

    /// What a run that begins now may do at most.
    fn ceiling(&self) -> Arc<Ceiling> {
        let namespace = &self.parts.configurator.key.namespace;
        self.parts.policies.of(namespace).ceiling.clone()
    }

    /// Waits for news. Returns none when a time has come at which there is something to do.
    async fn next(&mut self, is_draining: bool) -> Option<News<EndedRun>> {
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
            awaited: self.awaited.as_deref_mut(),
            member_watches: self.member_watches.as_deref_mut(),
        };
        let sets = self.parts.context.sets.as_deref();
        let watches = (!is_draining).then_some(watches);
        // `select!` keeps twice what it is given, and a worker waits here nearly always, so it is given references.
        let deadline = pin!(deadline);
        let stop = pin!(self.stop.cancelled());
        let shards = pin!(changed(self.changes.as_mut()));
        let namespaces = self.parts.namespaces.as_mut();
        let namespaces = pin!(if_some(namespaces.map(|selected| selected.changed())));
        let unavailable = pin!(self.unavailable.changed());
        let retry = pin!(self.retry.notified());
        let renewals = pin!(self.renewals.next());
        let places = pin!(self.lending.next());
        let kinds = pin!(if_some(sets.map(Sets::wanted)));
        let asked = pin!(self.errands.next());
        let news = pin!(next_news(&mut self.turns, &mut self.runs, watches));
        tokio::select! {
            biased;
            () = stop, if !is_draining => Some(News::Stop),
            () = shards, if !is_draining => Some(News::Shards),
            () = namespaces, if !is_draining => Some(News::Namespaces),
            changed = unavailable => Some(match changed {
                Ok(()) => News::Availability,
                Err(_) => News::Stop,
            }),
            () = retry => Some(News::Retry),
            renewals = renewals => Some(News::Renewals(renewals)),
            news = places => Some(News::Places(news)),
            () = kinds, if !is_draining => Some(News::MemberKinds),
            Some(owner) = if_some(self.drifts.as_mut().map(StreamExt::next)), if !is_draining => {
                Some(News::Drift(owner))
            }
            (command, exists) = asked, if !is_draining => Some(News::Asked(command, exists)),
            news = news => Some(news),
            () = deadline => None,
        }
    }

    async fn on(&mut self, news: News<EndedRun>) {
        match news {
            News::Stop => self.stop.cancel(),
            News::Shards => {
                if let Some(claim) = self.parts.claim.clone() {
                    self.share(&claim).await;
                    // Commands for objects that were another host's were passed over.
                    self.orders = orders(&self.parts);
                }
            }
            // Objects that are no longer selected are not listed, so they are gone.
            News::Namespaces => self.list().await,
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
            News::Ended(ended) => self.on_ended(ended).await,
            News::Object(event) => {
                let (scope, event) = *event;
                self.on_event(&scope, event).await;
            }
            News::Order(event) => self.on_command_event(*event).await,
            News::Awaited(machine, seen) => self.tell(&machine, Wake::Changed(seen)).await,
            News::MemberKinds => {
                if let (Some(sets), Some(watches)) =
                    (&self.parts.context.sets, &mut self.member_watches)
                {
                    watches.watch(sets.watched());
                }
            }
            News::Drift(owner) => self.on_members(owner).await,
            News::Member(event) => {
                let now = self.now();
                let (Some(sets), Some(watches)) =
                    (&self.parts.context.sets, &mut self.member_watches)
                else {
                    return;
                };
                for owner in watches.take_in(*event, sets, now) {
                    self.on_members(owner).await;
                }
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.parts.context.clock.now()
    }

    /// Tells an object's machine something. One that has no turn gets one.
    async fn tell(&mut self, key: &ObjectRef, wake: Wake) {
        self.inboxes.entry(key.clone()).or_default().put(wake);
        let now = self.now();
        let actions = self.queue.nudge(key, now);
        self.act(actions).await;
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

    async fn on_renewal(&mut self, renewal: Renewal) {
        let now = self.now();
        let (changed, canary) = renewal.apply(&self.parts.context.rollout);
        self.queue.set_canary(canary, now);
        // What a canary has left undeleted is deleted when it is promoted, although its objects keep their module.
        let is_left = self.parts.context.sets.is_some() && canary.is_none();
        let is_changed = |uid: &str| is_left || changed.contains(uid);
        let mode = self.parts.configurator.machine.as_ref();
        let actions = match mode.map(|mode| mode.machine.has_upkeep()) {
            None | Some(true) => self.queue.renew(is_changed, now),
            Some(false) => {
                let mut actions = self.queue.retry_given_up(now);
                actions.extend(self.queue.renew_waiting(is_changed, now));
                actions
            }
        };
        self.act(actions).await;
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
            member_watches,
        } = watches;
        turns.poll(
            context,
            [
                &mut |context| item(runs.poll_next_unpin(context)).map(News::Ended),
                &mut |context| {
                    item(streams.poll_next_unpin(context))
                        .map(|event| News::Object(Box::new(event)))
                },
                &mut |context| match orders {
                    Some(orders) => item(orders.poll_next_unpin(context))
                        .map(|event| News::Order(Box::new(event))),
                    None => Poll::Pending,
                },
                &mut |context| match awaited {
                    Some(awaited) => awaited
                        .poll(context)
                        .map(|(machine, seen)| News::Awaited(machine, seen)),
                    None => Poll::Pending,
                },
                &mut |context| match member_watches {
                    Some(watches) => watches
                        .poll(context)
                        .map(|event| News::Member(Box::new(event))),
                    None => Poll::Pending,
                },
            ],
        )
    })
    .await
}

fn watch_options(parts: &WorkerParts) -> WatchOptions {
    let configurator = &parts.configurator;
    let sets = configurator.sets.as_ref();
    WatchOptions {
        configurator: configurator.uid.clone(),
        is_wide: configurator.key.namespace.is_empty(),
        max_watches: sets.map_or(0, |sets| sets.max_watches),
        interval: sets.map_or(Duration::MAX, |sets| sets.poll_interval),
        clock: parts.context.clock.clone(),
        seed: parts.seed,
    }
}

/// Returns the owners of members in the stores that others have changed. Also drops idle sets from memory. Sets of machines stay, because a
/// phase without an upkeep could not restore them. `None`: the Configurator has no sets.
fn drifts(parts: &WorkerParts) -> Option<BoxStream<'static, ObjectRef>> {
    let (sets, clock) = (parts.context.sets.clone()?, &parts.context.clock);
    let options = parts.configurator.sets.as_ref()?;
    let drifts = sets::poll(sets.clone(), clock.clone(), options.poll_interval);
    if parts.configurator.machine.is_some() {
        return Some(drifts.boxed());
    }
    let summaries = sets::summarize(sets, clock.clone(), options.idle_after);
    let summaries = stream::once(summaries).map(|never| match never {});
    Some(stream::select(drifts, summaries).boxed())
}

/// Whether deletions of this Configurator's objects must be noticed although nobody watched.
#[must_use]
pub fn needs_ledger(configurator: &Configurator) -> bool {
    configurator.deletion.by == DeletionBy::Ledger && configurator.deletion.is_handled()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[tokio::test]
    async fn events_are_seen_while_runs_end_all_the_time() {
        let silent = tower::service_fn(async |_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        });
        let silent = Client::new(silent, "default");
        let mut awaited = Awaited::new(silent.clone(), 0);
        let options = WatchOptions {
            configurator: "uid".to_owned(),
            is_wide: true,
            max_watches: 1,
            interval: Duration::from_secs(1),
            clock: Arc::new(crate::clock::SystemClock),
            seed: 0,
        };
        let mut member_watches = MemberWatches::new(silent, options);
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
                awaited: Some(&mut awaited),
                member_watches: Some(&mut member_watches),
            };
            let news = next_news(&mut turns, &mut runs, Some(watches)).await;
            seen.push(match news {
                News::Ended(()) => "run",
                News::Object(_) => "object",
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
