//! Which object gets its run when: one queue for each Configurator.
//!
//! An object is never in two runs at once, and the newest version wins. What is decided comes back as
//! [`Action`]s; time is an argument of every call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::spread;
use crate::canary::Fraction;
use crate::configurator::Configurator;
use crate::content::ContentDigest;
use crate::document::Document;
use crate::handler::WatchEvent;
use crate::loop_guard::LoopGuard;
use crate::parking::{Server, Unavailable};
use crate::plan::Failure;
use crate::request::{ObjectRef, SinkName, api_version};
use crate::retry::Tries;
use crate::ring::shard_of;
use crate::run::{Chain, Member};
use crate::time::Timestamp;

use lines::{Lines, Running};
use pace::Pace;
use slot::{Gone, Live, Slot, Vain, Work};

mod lines;
mod outcomes;
pub mod pace;
mod slot;
mod starts;

/// How long an object waits for the watch to show the host's own last write to it.
pub const OWN_WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// Over which span the runs of a sink that has come back are spread.
pub const RELEASE_SPREAD: Duration = Duration::from_secs(1);
/// An object is a suspect, because it may delay others, if it had two runs in this time, or one that held its place for as long.
pub const BUSY: Duration = Duration::from_secs(3);
/// After a run of an object that is no suspect has begun, half of the places are reserved for such objects for this time.
pub const RESERVED: Duration = Duration::from_secs(10);

/// An object as the watch shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Names the object.
    pub key: ObjectRef,
    /// Its identity.
    pub uid: String,
    /// Its version, where the server's versions are numbers.
    pub version: Option<u64>,
    /// Of its content, without what the Configurator's own managers wrote.
    pub content: ContentDigest,
    /// Its parts that are kept.
    pub object: Document,
    /// Its deletionTimestamp, when it waits for this Configurator's finalizer.
    pub deleting_since: Option<Timestamp>,
    /// When it appeared. `None`: it may have existed and been selected before.
    pub appeared: Option<Timestamp>,
}

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

/// The objects that a canary handles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CanaryObjects {
    /// The number of objects.
    pub total: u32,
    /// How many of them have not finished a run of the canary yet.
    pub awaited: u32,
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
struct Unit {
    keys: Vec<ObjectRef>,
    chain: Chain,
}

#[derive(Debug)]
struct OpenBatch {
    keys: Vec<ObjectRef>,
    closes: TimerKey,
}

#[derive(Debug)]
struct PausedRun<R> {
    members: Vec<Member>,
    chain: Chain,
    run: R,
    /// The server that it waits for.
    server: Option<Server>,
    /// `None`: its own wait is over, but the server is unavailable.
    timer: Option<TimerKey>,
}

type TimerKey = (Timestamp, u64);

#[derive(Debug, Clone)]
enum Timer {
    Delay(ObjectRef),
    Resync(ObjectRef),
    OwnWrite(ObjectRef),
    Overdue(ObjectRef),
    Paused(Ticket),
    Close(Lane),
    /// A run may begin, if one waits.
    ReservedStart,
}

/// The objects that may share a batch are those with the same lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    chain: Chain,
    shard: u16,
    /// Whether the canary handles them.
    is_canary: bool,
    /// Whether their last runs failed.
    has_failed: bool,
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

    /// When [`tick`](Self::tick) is due, if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.keys().next().map(|(at, _)| *at)
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

    /// Whether nothing runs, is queued or waits to be tried again; a resync may still lie ahead.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_listed
            && self.slots.values().all(|slot| {
                slot.work == Work::Idle
                    && slot.live.as_ref().is_none_or(|live| live.pending.is_none())
            })
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

    /// A listing of a namespace begins, or of all when it is empty: what it does not name is gone.
    pub fn list(&mut self, namespace: &str) {
        self.listing.insert(namespace.to_owned(), BTreeSet::new());
    }

    /// The listing of a namespace is complete. `recorded` are objects in it that were handled once and may have gone
    /// meanwhile. `is_last`: every namespace has been listed.
    pub fn listed(
        &mut self,
        namespace: &str,
        recorded: Vec<(ObjectRef, String)>,
        is_last: bool,
        now: Timestamp,
    ) -> Vec<Action<R>> {
        let seen = self.listing.remove(namespace).unwrap_or_default();
        let in_scope = |key: &ObjectRef| namespace.is_empty() || key.namespace == namespace;
        let missing: Vec<(ObjectRef, String)> = self
            .slots
            .iter()
            .filter(|(key, _)| in_scope(key) && !seen.contains(*key))
            .filter_map(|(key, slot)| Some((key.clone(), slot.live.as_ref()?.uid.clone())))
            .collect();
        for (key, uid) in missing {
            self.remove(&key, &uid, now);
        }
        for (key, uid) in recorded {
            let slot = self.slots.entry(key.clone()).or_insert_with(Slot::empty);
            let is_known = slot.live.as_ref().is_some_and(|live| live.uid == uid)
                || slot.gone.iter().any(|gone| gone.uid == uid);
            if !is_known {
                self.mourn(&key, uid, None, now);
            }
        }
        if is_last && !self.is_listed {
            self.is_listed = true;
            self.unsettled = self
                .slots
                .iter()
                .filter(|(_, slot)| slot.work != Work::Idle)
                .map(|(key, _)| key.clone())
                .collect();
        }
        self.finish_call(now)
    }

    /// The object exists, so.
    pub fn observe(&mut self, observed: Observed, now: Timestamp) -> Vec<Action<R>> {
        for scope in ["", observed.key.namespace.as_str()] {
            if let Some(seen) = self.listing.get_mut(scope) {
                seen.insert(observed.key.clone());
            }
        }
        let key = observed.key.clone();
        let known = self
            .slots
            .get(&key)
            .and_then(|slot| slot.live.as_ref())
            .map(|live| live.uid.clone());
        if let Some(uid) = known
            && uid != observed.uid
        {
            self.remove(&key, &uid, now);
        }
        let deleting_since = observed.deleting_since;
        let event = self.update(observed);
        if let Some(since) = deleting_since
            && self
                .live_mut(&key)
                .is_some_and(|live| !std::mem::replace(&mut live.is_deleting, true))
        {
            let at = since.after(self.configurator.deletion.timeout);
            self.timer(at, Timer::Overdue(key.clone()));
        }
        let starts = self.configurator.watch.starts_run(event);
        if let Some(live) = self.live_mut(&key) {
            if live.is_deleting {
                live.pending = (!live.deletion_done).then_some(WatchEvent::Deleted);
            } else if !starts {
                live.completed.get_or_insert(live.content);
            } else if live.completed != Some(live.content) {
                let first = live.completed.is_none() && live.pending == Some(WatchEvent::Added);
                live.pending = Some(if first { WatchEvent::Added } else { event });
            }
        }
        self.wake(&key, now);
        self.finish_call(now)
    }

    /// The object is gone.
    pub fn gone(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) -> Vec<Action<R>> {
        self.remove(key, uid, now);
        self.finish_call(now)
    }

    /// Another object has this name, which is not this queue's business: the one that had it is gone.
    pub fn displaced(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) -> Vec<Action<R>> {
        let known = self.slots.get(key).and_then(|slot| slot.live.as_ref());
        match known.map(|live| live.uid.clone()) {
            Some(known) if known != uid => self.gone(key, &known, now),
            _ => Vec::new(),
        }
    }

    /// These objects, by uid, are another host's business from now on. Runs of them that are under way end without
    /// consequence; nothing is remembered of them.
    pub fn let_go(&mut self, is_let_go: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Action<R>> {
        let keys: Vec<ObjectRef> = self
            .slots
            .iter()
            .filter(|(_, slot)| {
                slot.live.as_ref().is_some_and(|live| is_let_go(&live.uid))
                    || slot.gone.iter().any(|gone| is_let_go(&gone.uid))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            let Some(slot) = self.slots.get_mut(&key) else {
                continue;
            };
            slot.gone.retain(|gone| !is_let_go(&gone.uid));
            let live = slot.live.take_if(|live| is_let_go(&live.uid));
            if live.is_some() && std::mem::take(&mut slot.is_given_up) {
                self.actions.push(Action::Recover { key: key.clone() });
            }
            if !matches!(slot.work, Work::Running(_)) {
                self.abandon(&key, now);
            }
            if let Some(live) = live {
                if live.guard.is_looping() {
                    self.actions.push(Action::Loop {
                        key: key.clone(),
                        is_looping: false,
                    });
                }
                if let Some(resync) = live.resync {
                    self.timers.remove(&resync);
                }
            }
            self.settle(&key, false);
            self.wake(&key, now);
        }
        self.finish_call(now)
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

    /// These servers are unavailable, and no others. Runs that wait for one are held until it is back, and so are all new ones
    /// once the server of a sink is down that has failed one of them.
    pub fn set_unavailable(
        &mut self,
        servers: BTreeMap<Server, Unavailable>,
        now: Timestamp,
    ) -> Vec<Action<R>> {
        let before = std::mem::replace(&mut self.unavailable, servers);
        let fell = self.unavailable.iter().any(|(server, why)| {
            *why == Unavailable::Down && before.get(server) != Some(&Unavailable::Down)
        });
        if fell {
            // It refused everybody, so the objects that it refused are like any other.
            for slot in self.slots.values_mut() {
                slot.was_refused = false;
            }
        }
        for server in before.keys() {
            if server.is_shared() && !self.unavailable.contains_key(server) {
                self.relied_on.remove(&server.sink);
            }
        }
        let released: Vec<Ticket> = self
            .paused
            .iter()
            .filter(|(_, paused)| paused.timer.is_none() && !self.is_waiting(paused))
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in released {
            let at = now.after(spread(RELEASE_SPREAD, self.seed ^ ticket.0));
            let timer = self.timer(at, Timer::Paused(ticket));
            if let Some(paused) = self.paused.get_mut(&ticket) {
                paused.timer = Some(timer);
            }
        }
        self.finish_call(now)
    }

    /// The servers that are unavailable, as far as is known.
    #[must_use]
    pub const fn unavailable(&self) -> &BTreeMap<Server, Unavailable> {
        &self.unavailable
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

    /// Whether the object is in a run that is under way.
    #[must_use]
    pub fn is_running(&self, key: &ObjectRef) -> bool {
        let work = self.slots.get(key).map(|slot| slot.work);
        matches!(work, Some(Work::Running(_)))
    }

    /// The identities of the objects that exist, and of those whose deletion is not dealt with.
    #[must_use]
    pub fn uids(&self) -> BTreeSet<&str> {
        let slots = self.slots.values();
        let uids = slots.flat_map(|slot| {
            let gone = slot.gone.iter().map(|gone| gone.uid.as_str());
            gone.chain(slot.live.as_ref().map(|live| live.uid.as_str()))
        });
        uids.collect()
    }

    /// The identity, and the digest of the content, of the object of this name; `None`: there is none.
    #[must_use]
    pub fn known(&self, key: &ObjectRef) -> Option<(&str, ContentDigest)> {
        let live = self.slots.get(key)?.live.as_ref()?;
        Some((&live.uid, live.content))
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

    /// Sets the objects that the canary handles; `None`: there is no canary. Their runs are of another module than those of the other objects, so
    /// the two do not share batches. Batches that wait are split. No object has finished a run of the canary yet.
    pub fn set_canary(&mut self, canary: Option<Fraction>, now: Timestamp) {
        self.canary = canary;
        for slot in self.slots.values_mut() {
            if let Some(live) = &mut slot.live {
                live.is_canary = canary.is_some_and(|canary| canary.contains(&live.uid));
                live.awaits_canary_run = live.is_canary;
            }
        }
        for Unit { keys, chain } in self.lines.take_units() {
            for unit in self.split_canary(keys, chain) {
                self.push(unit, now);
            }
        }
        for (Lane { chain, shard, .. }, open) in std::mem::take(&mut self.open) {
            self.timers.remove(&open.closes);
            let (closes, _) = open.closes;
            for key in open.keys {
                let lane = self.lane(chain, shard, &key);
                self.join(lane, key, closes, now);
            }
        }
    }

    /// Counts the objects that the canary handles. `None`: there is no canary, or not all objects are known yet.
    #[must_use]
    pub fn canary_objects(&self) -> Option<CanaryObjects> {
        self.canary.filter(|_| self.is_listed)?;
        let mut counts = CanaryObjects::default();
        for slot in self.slots.values() {
            let live = slot.live.as_ref();
            let Some(live) = live.filter(|live| live.is_canary && !live.is_deleting) else {
                continue;
            };
            counts.total = counts.total.saturating_add(1);
            let has_work = slot.work != Work::Idle || live.pending.is_some();
            if live.awaits_canary_run && has_work {
                counts.awaited = counts.awaited.saturating_add(1);
            }
        }
        Some(counts)
    }

    /// What is decided has changed for objects that do not change: each whose uid is one has one more run, those that were given up too.
    /// Runs that are under way or rest go on as they are, and the new ones follow them.
    pub fn renew(&mut self, is_one: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Action<R>> {
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

    /// Time has passed.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Action<R>> {
        while let Some((&at, _)) = self.timers.first_key_value() {
            if at.0 > now {
                break;
            }
            let Some((at, timer)) = self.timers.pop_first() else {
                break;
            };
            self.fire(at, timer, now);
        }
        self.finish_call(now)
    }

    fn fire(&mut self, at: TimerKey, timer: Timer, now: Timestamp) {
        match timer {
            Timer::Delay(key) => {
                if self
                    .slots
                    .get(&key)
                    .is_some_and(|slot| slot.work == Work::Delayed(at))
                {
                    self.idle(&key);
                    if let Some(chain) = self.next_chain(&key) {
                        self.enqueue_alone(&key, chain, now);
                    }
                }
            }
            Timer::Resync(key) => {
                let is_idle = self
                    .slots
                    .get(&key)
                    .is_some_and(|slot| slot.work == Work::Idle);
                if let Some(live) = self.live_mut(&key)
                    && live.resync == Some(at)
                {
                    live.resync = None;
                    if is_idle {
                        live.occasion = Some(at.0);
                        live.vain = Vain::default();
                        live.pending.get_or_insert(WatchEvent::Resync);
                        self.wake(&key, now);
                    }
                }
            }
            Timer::OwnWrite(key) => {
                if let Some(live) = self.live_mut(&key) {
                    live.awaited = None;
                }
                self.wake(&key, now);
            }
            Timer::Overdue(key) => {
                let overdue = self
                    .live_mut(&key)
                    .filter(|live| live.is_deleting && !live.deletion_done);
                if let Some(uid) = overdue.map(|live| {
                    live.deletion_done = true;
                    live.pending = None;
                    live.uid.clone()
                }) {
                    self.actions.push(Action::Release { key, uid });
                }
            }
            Timer::Paused(ticket) => {
                let paused = self.paused.get(&ticket);
                let is_due = paused.filter(|paused| paused.timer == Some(at));
                match is_due.map(|paused| self.is_waiting(paused)) {
                    None => {}
                    Some(false) => {
                        let is_suspect = paused.is_some_and(|paused| {
                            let members = paused.members.iter();
                            self.is_suspect(members.map(|member| &member.key), now)
                        });
                        self.lines.push_ready(ticket, is_suspect);
                    }
                    Some(true) => {
                        if let Some(paused) = self.paused.get_mut(&ticket) {
                            paused.timer = None;
                        }
                    }
                }
            }
            // Every call ends with the start of runs.
            Timer::ReservedStart => {}
            Timer::Close(lane) => {
                if self.open.get(&lane).is_some_and(|open| open.closes == at) {
                    self.close(lane, now);
                }
            }
        }
    }

    /// Takes over what was seen and says what kind of event it is.
    fn update(&mut self, observed: Observed) -> WatchEvent {
        let canary = self.canary;
        let slot = self.slots.entry(observed.key).or_insert_with(Slot::empty);
        match &mut slot.live {
            Some(live) => {
                if live.content != observed.content {
                    live.vain = Vain::default();
                }
                if live
                    .awaited
                    .is_some_and(|awaited| observed.version.is_none_or(|seen| seen >= awaited))
                {
                    live.awaited = None;
                }
                live.version = observed.version;
                live.content = observed.content;
                live.object = observed.object;
                WatchEvent::Modified
            }
            none => {
                let is_canary = canary.is_some_and(|canary| canary.contains(&observed.uid));
                *none = Some(Live {
                    is_canary,
                    awaits_canary_run: is_canary,
                    uid: observed.uid,
                    version: observed.version,
                    content: observed.content,
                    object: observed.object,
                    is_deleting: false,
                    pending: Some(WatchEvent::Added),
                    completed: None,
                    vain: Vain::default(),
                    awaited: None,
                    guard: LoopGuard::default(),
                    resync: None,
                    occasion: observed.appeared,
                    deletion_done: false,
                    renews: false,
                });
                if !self.configurator.watch.starts_run(WatchEvent::Added)
                    && let Some(live) = none
                {
                    live.pending = None;
                }
                WatchEvent::Added
            }
        }
    }

    fn remove(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let Some(live) = slot.live.take_if(|live| live.uid == uid) else {
            return;
        };
        if std::mem::take(&mut slot.is_given_up) {
            self.actions.push(Action::Recover { key: key.clone() });
        }
        if let Some(resync) = live.resync {
            self.timers.remove(&resync);
        }
        let was_running = matches!(slot.work, Work::Running(_));
        if !was_running {
            self.abandon(key, now);
        }
        if live.deletion_done {
            self.actions.push(Action::Forget {
                key: key.clone(),
                uid: live.uid,
            });
        } else {
            self.mourn(key, live.uid, Some((live.object, live.content)), now);
        }
        self.settle(key, false);
    }

    /// Remembers that an object is gone until that has been dealt with.
    fn mourn(
        &mut self,
        key: &ObjectRef,
        uid: String,
        last: Option<(Document, ContentDigest)>,
        now: Timestamp,
    ) {
        if self.deletion_chain().is_none() {
            self.actions.push(Action::Forget {
                key: key.clone(),
                uid,
            });
            return;
        }
        let (object, content) =
            last.unwrap_or_else(|| (self.identity_of(key, &uid), ContentDigest::default()));
        let slot = self.slots.entry(key.clone()).or_insert_with(Slot::empty);
        slot.gone.push_back(Gone {
            uid,
            object,
            content,
            vain: Vain::default(),
        });
        self.wake(key, now);
    }

    /// All that is left of an object that went while nobody watched.
    fn identity_of(&self, key: &ObjectRef, uid: &str) -> Document {
        let watch = &self.configurator.watch;
        let api_version = api_version(&watch.group, &watch.version);
        let mut metadata = serde_json::json!({"name": key.name, "uid": uid});
        if let (false, Some(metadata)) = (key.namespace.is_empty(), metadata.as_object_mut()) {
            metadata.insert("namespace".into(), key.namespace.clone().into());
        }
        let object = serde_json::json!({"apiVersion": api_version, "kind": watch.kind, "metadata": metadata});
        Document::of(&object).unwrap_or_else(|_| Document::empty_object())
    }

    /// The chain that an object which is gone goes through, if any.
    fn deletion_chain(&self) -> Option<Chain> {
        if self.configurator.deletion.is_handled() {
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

    fn enqueue(&mut self, key: &ObjectRef, now: Timestamp) {
        let Some(chain) = self.next_chain(key) else {
            return self.forget_empty(key);
        };
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if slot.work != Work::Idle {
            return;
        }
        if let Some(until) = slot.quiet_until.filter(|until| *until > now) {
            return self.delay(key, until);
        }
        if let (Some(live), true) = (&mut slot.live, slot.gone.is_empty()) {
            if live.awaited.is_some() {
                return;
            }
            let (space, changed) = live.guard.on_turn(live.pending, now);
            if let Some(is_looping) = changed {
                self.actions.push(Action::Loop {
                    key: key.clone(),
                    is_looping,
                });
            }
            if !space.is_zero() {
                self.delay(key, now.after(space));
                return;
            }
        }
        let Some(batch) = self.configurator.batch else {
            return self.enqueue_alone(key, chain, now);
        };
        self.queued(key, chain);
        let uid = self.next_uid(key);
        let shard = uid.map_or(0, |uid| shard_of(uid, self.shards));
        let lane = self.lane(chain, shard, key);
        self.join(lane, key.clone(), now.after(batch.max_delay), now);
    }

    /// Puts an object that is queued in the open batch of a lane; where there is none, in one that closes at this time.
    fn join(&mut self, lane: Lane, key: ObjectRef, closes: Timestamp, now: Timestamp) {
        if !self.open.contains_key(&lane) {
            let closes = self.timer(closes, Timer::Close(lane));
            self.open.insert(
                lane,
                OpenBatch {
                    keys: Vec::new(),
                    closes,
                },
            );
        }
        let most = self.configurator.batch.map_or(1, |batch| batch.max_size);
        let is_full = self.open.get_mut(&lane).is_some_and(|open| {
            open.keys.push(key);
            open.keys.len() >= most
        });
        if is_full {
            self.close(lane, now);
        }
    }

    /// Returns whether the canary handles the object whose run is next.
    fn is_canary(&self, key: &ObjectRef) -> bool {
        let uid = self.next_uid(key).zip(self.canary);
        uid.is_some_and(|(uid, canary)| canary.contains(uid))
    }

    /// Separates the objects that the canary handles from the others.
    fn split_canary(
        &self,
        keys: Vec<ObjectRef>,
        chain: Chain,
    ) -> impl Iterator<Item = Unit> + use<R> {
        let (canary, others): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| self.is_canary(key));
        let parts = [canary, others].into_iter();
        let parts = parts.filter(|keys| !keys.is_empty());
        parts.map(move |keys| Unit { keys, chain })
    }

    /// The uid of whose turn is next: the dead come before the living.
    fn next_uid(&self, key: &ObjectRef) -> Option<&str> {
        let slot = self.slots.get(key)?;
        let gone = slot.gone.front().map(|gone| &gone.uid);
        let live = slot.live.as_ref().map(|live| &live.uid);
        gone.or(live).map(String::as_str)
    }

    /// Queues a run of this object alone. It waits for no batch.
    fn enqueue_alone(&mut self, key: &ObjectRef, chain: Chain, now: Timestamp) {
        let keys = vec![key.clone()];
        self.push(Unit { keys, chain }, now);
        self.queued(key, chain);
    }

    fn push(&mut self, unit: Unit, now: Timestamp) {
        let is_suspect = self.is_suspect(&unit.keys, now);
        self.lines.push(unit, is_suspect);
    }

    fn queued(&mut self, key: &ObjectRef, chain: Chain) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.work = Work::Queued(chain);
        }
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

    fn close(&mut self, lane: Lane, now: Timestamp) {
        if let Some(open) = self.open.remove(&lane) {
            self.timers.remove(&open.closes);
            if !open.keys.is_empty() {
                let (keys, chain) = (open.keys, lane.chain);
                self.push(Unit { keys, chain }, now);
            }
        }
    }

    fn timer(&mut self, at: Timestamp, timer: Timer) -> TimerKey {
        self.sequence += 1;
        let key = (at, self.sequence);
        self.timers.insert(key, timer);
        key
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

    fn lane(&self, chain: Chain, shard: u16, key: &ObjectRef) -> Lane {
        let slot = self.slots.get(key);
        Lane {
            chain,
            shard,
            is_canary: self.is_canary(key),
            has_failed: slot.is_some_and(|slot| slot.has_failed),
        }
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
