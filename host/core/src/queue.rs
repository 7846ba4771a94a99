//! Which object gets its run when: one queue for each Configurator.
//!
//! An object is never in two runs at once, and the newest version wins. What is decided comes back as
//! [`Action`]s; time is an argument of every call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::canary::Fraction;
use crate::configurator::Configurator;
use crate::handler::WatchEvent;
use crate::parking::{Server, Unavailable};
use crate::plan::Failure;
use crate::request::{ObjectRef, SinkName};
use crate::retry::Tries;
use crate::run::{Chain, Member};
use crate::time::Timestamp;

pub use canary::CanaryObjects;
pub use objects::Observed;

use batches::{Lane, OpenBatch};
use lines::{Lines, Running};
use pace::Pace;
use slot::{Live, Slot, Vain, Work};
use timers::{Timer, TimerKey};

mod batches;
mod canary;
mod lines;
mod objects;
mod outcomes;
pub mod pace;
mod servers;
mod slot;
mod starts;
mod timers;

/// How long an object waits for the watch to show the host's own last write to it.
pub const OWN_WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// The time from the beginning of a run to that of the next one which only changed members of the object's set call for.
pub const MEMBERS_PAUSE: Duration = Duration::from_secs(1);
/// Over which span the runs of a sink that has come back are spread.
pub const RELEASE_SPREAD: Duration = Duration::from_secs(1);
/// An object is a suspect, because it may delay others, if it had two runs in this time, or one that held its place for as long.
pub const BUSY: Duration = Duration::from_secs(3);
/// After a run of an object that is no suspect has begun, half of the places are reserved for such objects for this time.
pub const RESERVED: Duration = Duration::from_secs(10);

/// Identifies a run under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What is to be done. `R` is what is needed to go on with a run that rested.
#[derive(Debug)]
pub enum Action<R> {
    /// Begin a run.
    Start {
        /// Identifies it.
        ticket: Ticket,
        /// The objects.
        members: Vec<Member>,
        /// The chain.
        chain: Chain,
        /// How often these objects were tried in vain since they last changed.
        tries: Tries,
        /// Whether one of these objects may delay others, so that calls of others go first.
        is_suspect: bool,
    },
    /// Go on with a run that rested.
    Resume {
        /// Identifies it.
        ticket: Ticket,
        /// The objects.
        members: Vec<Member>,
        /// What is needed to go on with it.
        run: R,
        /// Whether one of its objects may delay others, so that calls of others go first.
        is_suspect: bool,
    },
    /// Go on with a run that has lent its place.
    Continue {
        /// Identifies it.
        ticket: Ticket,
    },
    /// The deletion of this object has been dealt with: nothing needs to be remembered of it.
    Forget {
        /// Names the object.
        key: ObjectRef,
        /// Its identity.
        uid: String,
    },
    /// The object has waited for this Configurator's finalizer longer than `deletion.timeout`: let it go.
    Release {
        /// Names the object.
        key: ObjectRef,
        /// Its identity.
        uid: String,
    },
    /// Nothing more is tried for this object until it changes.
    GiveUp {
        /// Names the object.
        key: ObjectRef,
        /// Its identity.
        uid: String,
        /// What failed.
        failure: Failure,
        /// Attempts that have failed.
        failures: u32,
    },
    /// An object that was given up has gone through, or has gone.
    Recover {
        /// Names the object.
        key: ObjectRef,
    },
    /// An object keeps changing because of its own runs; they are spaced out. Or no longer.
    Loop {
        /// Names the object.
        key: ObjectRef,
        /// Whether it goes on.
        is_looping: bool,
    },
    /// Every object that existed at start has settled.
    Bootstrapped {
        /// How many of them were given up.
        given_up: usize,
    },
}

/// Numbers for people and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that exist.
    pub objects: usize,
    /// Objects in a run.
    pub running: usize,
    /// Objects whose turn has come.
    pub queued: usize,
    /// Objects that wait to be tried again.
    pub waiting: usize,
    /// Objects that were given up.
    pub failed: usize,
    /// Objects that a server has refused for now. They wait, or are being tried again.
    pub delayed: usize,
}

/// An object that a server has refused for now.
#[derive(Debug, Clone, PartialEq)]
pub struct Delayed<'a> {
    /// Names the object.
    pub key: &'a ObjectRef,
    /// Its identity.
    pub uid: &'a str,
    /// The last refusal.
    pub failure: &'a Failure,
    /// How often in a row it was refused. No attempt is charged for it.
    pub refusals: u32,
    /// When it was refused last.
    pub at: Timestamp,
}

#[derive(Debug)]
struct PausedRun<R> {
    members: Vec<Member>,
    chain: Chain,
    run: R,
    /// The server that it waits for.
    server: Option<Server>,
    /// `None`: its own wait is over, but the server is unavailable; or it waits for members without a time.
    timer: Option<TimerKey>,
    /// The objects that it waits for.
    awaits: AwaitedObjects,
}

/// The objects that a paused run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwaitedObjects {
    None,
    /// Members of its set. It goes on with [`Queue::on_members`].
    Members,
    /// Objects that it reads from time to time. `in_vain`: it has read them in vain for a while.
    Polled {
        in_vain: bool,
    },
}

impl<R> PausedRun<R> {
    /// Whether only somebody else can let it go on.
    fn is_settled(&self) -> bool {
        self.reads_in_vain() || self.awaits == AwaitedObjects::Members && self.timer.is_none()
    }

    const fn reads_in_vain(&self) -> bool {
        matches!(self.awaits, AwaitedObjects::Polled { in_vain: true })
    }
}

/// Which object gets its run when. `R` is what is needed to go on with a run that rests; the queue keeps it meanwhile.
#[derive(Debug)]
pub struct Queue<R> {
    configurator: Arc<Configurator>,
    seed: u64,
    shards: u16,
    /// The objects that the canary handles, if there is one.
    canary: Option<Fraction>,
    slots: BTreeMap<ObjectRef, Slot>,
    open: BTreeMap<Lane, OpenBatch>,
    lines: Lines,
    running: Running,
    /// When the last run without suspects began.
    regular_began: Option<Timestamp>,
    paused: BTreeMap<Ticket, PausedRun<R>>,
    /// Servers that are unavailable, as far as is known.
    unavailable: BTreeMap<Server, Unavailable>,
    /// Sinks whose server has refused a run for now, or not answered it, since it was last unavailable.
    relied_on: BTreeSet<SinkName>,
    timers: BTreeMap<TimerKey, Timer>,
    sequence: u64,
    /// What each listing under way has shown, by namespace; empty for all.
    listing: BTreeMap<String, BTreeSet<ObjectRef>>,
    is_listed: bool,
    unsettled: BTreeSet<ObjectRef>,
    is_bootstrapped: bool,
    bootstrap_given_up: usize,
    is_draining: bool,
    pace: Option<Arc<dyn Pace>>,
    /// When the next run may begin, if that has been reserved.
    reserved_start: Option<Timestamp>,
    actions: Vec<Action<R>>,
}

impl<R> Queue<R> {
    /// An empty queue. `seed` decides the jitter.
    #[must_use]
    pub fn new(configurator: Arc<Configurator>, seed: u64) -> Self {
        Self {
            configurator,
            seed,
            shards: 1,
            canary: None,
            slots: BTreeMap::new(),
            open: BTreeMap::new(),
            lines: Lines::default(),
            running: Running::default(),
            regular_began: None,
            paused: BTreeMap::new(),
            unavailable: BTreeMap::new(),
            relied_on: BTreeSet::new(),
            timers: BTreeMap::new(),
            sequence: 0,
            listing: BTreeMap::new(),
            is_listed: false,
            unsettled: BTreeSet::new(),
            is_bootstrapped: false,
            bootstrap_given_up: 0,
            is_draining: false,
            pace: None,
            reserved_start: None,
            actions: Vec::new(),
        }
    }

    /// Objects of different shards do not share a batch: they may part ways.
    #[must_use]
    pub fn sharded(self, shards: u16) -> Self {
        Self { shards, ..self }
    }

    /// Numbers for people and metrics.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for slot in self.slots.values() {
            counts.objects += usize::from(slot.live.is_some());
            counts.failed += usize::from(slot.is_given_up);
            counts.delayed += usize::from(slot.refused().is_some());
            match slot.work {
                Work::Idle => {}
                Work::Queued(_) => counts.queued += 1,
                Work::Running(_) => counts.running += 1,
                Work::Delayed(_) | Work::Paused(_) => counts.waiting += 1,
            }
        }
        counts
    }

    /// Objects that a server has refused for now, those that were refused last at the end; so many at most.
    #[must_use]
    pub fn delayed(&self, most: usize) -> Vec<Delayed<'_>> {
        let slots = self.slots.iter();
        let mut delayed: Vec<Delayed<'_>> = slots
            .filter_map(|(key, slot)| {
                let (uid, refused) = slot.refused()?;
                Some(Delayed {
                    key,
                    uid,
                    failure: &refused.failure,
                    refusals: refused.refusals,
                    at: refused.at,
                })
            })
            .collect();
        delayed.sort_by_key(|delayed| delayed.at);
        delayed.drain(..delayed.len().saturating_sub(most));
        delayed
    }

    /// Whether nothing runs, is queued or waits to be tried again; a resync may still lie ahead. A run that waits for members of its set
    /// without a time has settled, and so has one that [has read objects in vain](Self::reads_in_vain): only somebody else can let it go on.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_listed
            && self.slots.values().all(|slot| match slot.work {
                Work::Idle => slot.live.as_ref().is_none_or(|live| live.pending.is_none()),
                Work::Paused(ticket) => self.paused.get(&ticket).is_some_and(PausedRun::is_settled),
                Work::Queued(_) | Work::Running(_) | Work::Delayed(_) => false,
            })
    }

    /// Whether runs wait for objects that have been read so often in vain that the longest wait follows.
    #[must_use]
    pub fn reads_in_vain(&self) -> bool {
        self.paused.values().any(PausedRun::reads_in_vain)
    }

    /// Whether no run is under way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.running.is_empty()
    }

    /// No new runs begin from now on.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Lends the place of a run to another run, until [`reclaim`](Self::reclaim) or [`take_back`](Self::take_back).
    pub fn lend(&mut self, ticket: Ticket, now: Timestamp) -> Vec<Action<R>> {
        let places = self.configurator.concurrency;
        self.running.lend(ticket, places, now);
        self.finish_call(now)
    }

    /// Wants a place again for a run whose handler has returned. It goes on with [`Action::Continue`], as soon as a place is free.
    pub fn reclaim(&mut self, ticket: Ticket, now: Timestamp) -> Vec<Action<R>> {
        match self.running.lent(ticket) {
            Some(is_suspect) => self.lines.push_ready(ticket, is_suspect),
            None => self.actions.push(Action::Continue { ticket }),
        }
        self.finish_call(now)
    }

    /// Gives a run its place again, although none may be free: fewer runs begin until there are no more than `concurrency`.
    pub fn take_back(&mut self, ticket: Ticket, now: Timestamp) -> Vec<Action<R>> {
        self.lines.remove_ready(ticket);
        self.running.give_back(ticket, now);
        self.finish_call(now)
    }

    /// There is news for the object: it has a turn as soon as it can. One that is in a run has none for this: whoever has news
    /// for it must ask again when the run has ended.
    pub fn nudge(&mut self, key: &ObjectRef, now: Timestamp) -> Vec<Action<R>> {
        let work = self.slots.get(key).map(|slot| slot.work);
        if let Some(Work::Idle | Work::Delayed(_) | Work::Paused(_)) = work
            && let Some(live) = self.live_mut(key)
            && !live.is_deleting
        {
            live.pending.get_or_insert(WatchEvent::Resync);
            if work != Some(Work::Idle) {
                self.abandon(key, now);
            }
            self.wake(key, now);
        }
        self.finish_call(now)
    }

    /// Members of the object's set have changed. A run that waits for them goes on, and an object that is in no run gets one: at the earliest
    /// [`MEMBERS_PAUSE`] after the last one began, so that members that change all the time do not call the handler all the time. For an object
    /// in a run that is under way nothing happens: the caller calls this again when the run has ended.
    pub fn on_members(&mut self, key: &ObjectRef, now: Timestamp) -> Vec<Action<R>> {
        match self.slots.get(key).map(|slot| slot.work) {
            None | Some(Work::Running(_)) => {}
            Some(Work::Paused(ticket)) => self.resume_awaiting(ticket, now),
            Some(work @ (Work::Idle | Work::Queued(_) | Work::Delayed(_))) => {
                let mut is_deleting = true;
                if let Some(live) = self.live_mut(key) {
                    is_deleting = live.is_deleting;
                    let event = match is_deleting {
                        true => WatchEvent::Deleted,
                        false => WatchEvent::Resync,
                    };
                    if !live.deletion_done {
                        live.pending.get_or_insert(event);
                    }
                }
                match (work, self.members_due(key, now)) {
                    (Work::Idle, Some(due)) if !is_deleting => self.delay(key, due),
                    (Work::Delayed(_), Some(_)) if !is_deleting => {}
                    _ => self.wake(key, now),
                }
            }
        }
        self.finish_call(now)
    }

    /// Returns when the next run may begin that only changes of members call for. `None`: at once.
    fn members_due(&self, key: &ObjectRef, now: Timestamp) -> Option<Timestamp> {
        let slot = self.slots.get(key)?;
        let [last, _] = slot.began;
        let due = last?.after(MEMBERS_PAUSE);
        (due > now).then_some(due)
    }

    /// Lets a run go on that waits for members. One that waits for something else is left alone.
    fn resume_awaiting(&mut self, ticket: Ticket, now: Timestamp) {
        let Some(paused) = self.paused.get_mut(&ticket) else {
            return;
        };
        if paused.awaits != AwaitedObjects::Members {
            return;
        }
        paused.awaits = AwaitedObjects::None;
        if let Some(timer) = paused.timer.take() {
            self.timers.remove(&timer);
        }
        let keys: Vec<ObjectRef> = paused.members.iter().map(|one| one.key.clone()).collect();
        let is_suspect = self.is_suspect(&keys, now);
        self.lines.push_ready(ticket, is_suspect);
    }

    /// Whether the object is in a run that is under way.
    #[must_use]
    pub fn is_running(&self, key: &ObjectRef) -> bool {
        let work = self.slots.get(key).map(|slot| slot.work);
        matches!(work, Some(Work::Running(_)))
    }

    /// A person wants every object that was given up tried again at once.
    pub fn retry_given_up(&mut self, now: Timestamp) -> Vec<Action<R>> {
        let given_up: Vec<ObjectRef> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.is_given_up)
            .map(|(key, _)| key.clone())
            .collect();
        let again = given_up.iter().flat_map(|key| self.retry_now(key, now));
        again.collect()
    }

    /// What is decided has changed for objects that do not change: each whose uid is one has one more run, those that were given up too.
    /// Runs that are under way or rest go on as they are, and the new ones follow them. A run that waits for objects is given up: they may
    /// never become ready.
    pub fn renew(&mut self, is_one: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Action<R>> {
        self.begin_waiting_anew(&is_one, now);
        let all = self.slots.iter();
        let all: Vec<(ObjectRef, Work)> = all.map(|(key, slot)| (key.clone(), slot.work)).collect();
        for (key, work) in all {
            if let Some(live) = self.live_mut(&key)
                && !live.is_deleting
                && is_one(&live.uid)
            {
                match work {
                    Work::Running(_) | Work::Paused(_) => live.renews = true,
                    Work::Idle | Work::Queued(_) | Work::Delayed(_) => {
                        live.vain = Vain::default();
                        live.pending.get_or_insert(WatchEvent::Resync);
                        self.wake(&key, now);
                    }
                }
            }
        }
        self.finish_call(now)
    }

    /// Gives up the runs of these objects that wait for others, and begins them anew. Returns what follows.
    pub fn renew_waiting(
        &mut self,
        is_one: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Vec<Action<R>> {
        self.begin_waiting_anew(&is_one, now);
        self.finish_call(now)
    }

    fn begin_waiting_anew(&mut self, is_one: &impl Fn(&str) -> bool, now: Timestamp) {
        let paused = self.paused.values();
        let waiting = paused.filter(|paused| paused.awaits != AwaitedObjects::None);
        let members = waiting.flat_map(|paused| &paused.members);
        let its = members.filter(|member| is_one(&member.uid));
        let keys: Vec<ObjectRef> = its.map(|member| member.key.clone()).collect();
        for key in keys {
            if let Some(live) = self.live_mut(&key).filter(|live| !live.is_deleting) {
                live.pending.get_or_insert(WatchEvent::Resync);
                self.abandon(&key, now);
                self.wake(&key, now);
            }
        }
    }

    /// A person wants this object tried again at once.
    fn retry_now(&mut self, key: &ObjectRef, now: Timestamp) -> Vec<Action<R>> {
        if let Some(live) = self.live_mut(key) {
            live.vain = Vain::default();
            live.completed = None;
            live.pending = Some(WatchEvent::Resync);
        }
        if let Some(slot) = self.slots.get_mut(key) {
            slot.quiet_until = None;
        }
        if self
            .slots
            .get(key)
            .is_some_and(|slot| matches!(slot.work, Work::Delayed(_) | Work::Paused(_)))
        {
            self.abandon(key, now);
        }
        self.wake(key, now);
        self.finish_call(now)
    }

    /// The chain that an object which is gone goes through, if any.
    fn deletion_chain(&self) -> Option<Chain> {
        if self.configurator.handles_deletion() {
            Some(Chain::Deletion)
        } else {
            self.configurator
                .watch
                .events
                .contains(&WatchEvent::Deleted)
                .then_some(Chain::Phases)
        }
    }

    fn live_mut(&mut self, key: &ObjectRef) -> Option<&mut Live> {
        self.slots.get_mut(key).and_then(|slot| slot.live.as_mut())
    }

    fn idle(&mut self, key: &ObjectRef) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.work = Work::Idle;
        }
    }

    /// Takes an object, and the batch it rests in, out of whatever it waits for.
    fn abandon(&mut self, key: &ObjectRef, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        match slot.work {
            Work::Idle | Work::Running(_) => {}
            // Its unit skips it when its turn comes.
            Work::Queued(_) => slot.work = Work::Idle,
            Work::Delayed(timer) => {
                slot.work = Work::Idle;
                self.timers.remove(&timer);
            }
            Work::Paused(ticket) => {
                if let Some(paused) = self.paused.remove(&ticket) {
                    if let Some(timer) = paused.timer {
                        self.timers.remove(&timer);
                    }
                    self.lines.remove_ready(ticket);
                    for member in &paused.members {
                        self.idle(&member.key);
                    }
                    let keys = paused.members.into_iter().map(|member| member.key);
                    for other in keys.filter(|other| other != key) {
                        if let Some(live) = self.live_mut(&other) {
                            live.pending.get_or_insert(WatchEvent::Modified);
                        }
                        self.enqueue(&other, now);
                    }
                }
            }
        }
    }

    /// Gives the object its turn if it needs one and nothing speaks against it.
    fn wake(&mut self, key: &ObjectRef, now: Timestamp) {
        let Some(slot) = self.slots.get(key) else {
            return;
        };
        match slot.work {
            Work::Running(_) => return,
            Work::Idle => {}
            Work::Queued(_) => {
                // The unit takes the newest version when its turn comes; only a deletion changes the chain.
                let Some(needed) = self.next_chain(key) else {
                    return self.abandon(key, now);
                };
                if slot.work == Work::Queued(needed) {
                    return;
                }
                self.abandon(key, now);
            }
            Work::Delayed(_) => {
                let is_retried = slot.live.as_ref().is_some_and(|live| !live.vain.is_empty());
                let is_spaced = slot
                    .live
                    .as_ref()
                    .is_some_and(|live| live.guard.is_looping());
                if slot.gone.is_empty() && (is_retried || is_spaced) {
                    return;
                }
                self.abandon(key, now);
            }
            Work::Paused(ticket) => {
                let is_stale = self.paused.get(&ticket).is_some_and(|paused| {
                    let mut members = paused.members.iter();
                    members.any(|member| self.has_changed(paused.chain, member))
                });
                if !is_stale {
                    return;
                }
                self.abandon(key, now);
            }
        }
        self.enqueue(key, now);
    }

    fn delay(&mut self, key: &ObjectRef, until: Timestamp) {
        let timer = self.timer(until, Timer::Delay(key.clone()));
        if let Some(slot) = self.slots.get_mut(key) {
            slot.work = Work::Delayed(timer);
        }
    }

    /// The chain of the object's next turn; `None` when it needs none. The dead come before the living.
    fn next_chain(&self, key: &ObjectRef) -> Option<Chain> {
        let slot = self.slots.get(key)?;
        if !slot.gone.is_empty() {
            return self.deletion_chain();
        }
        let live = slot.live.as_ref()?;
        match live.pending? {
            WatchEvent::Deleted => Some(Chain::Deletion),
            WatchEvent::Added | WatchEvent::Modified | WatchEvent::Resync => Some(Chain::Phases),
        }
    }

    fn finish_call(&mut self, now: Timestamp) -> Vec<Action<R>> {
        self.start_runs(now);
        if self.is_listed && !self.is_bootstrapped && self.unsettled.is_empty() {
            self.is_bootstrapped = true;
            self.actions.push(Action::Bootstrapped {
                given_up: self.bootstrap_given_up,
            });
        }
        std::mem::take(&mut self.actions)
    }

    fn settle(&mut self, key: &ObjectRef, given_up: bool) {
        if self.unsettled.remove(key) && given_up {
            self.bootstrap_given_up += 1;
        }
    }

    fn forget_empty(&mut self, key: &ObjectRef) {
        if self.slots.get(key).is_some_and(|slot| {
            slot.live.is_none()
                && slot.gone.is_empty()
                && slot.work == Work::Idle
                && !slot.is_given_up
        }) {
            self.slots.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
