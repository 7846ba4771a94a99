//! Which object gets its run when: one queue for each Configurator.
//!
//! An object is never in two runs at once, and the newest version wins. What is decided comes back as
//! [`Action`]s; time is an argument of every call.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::{jittered, mix, spread};
use crate::canary::Fraction;
use crate::configurator::{Configurator, DeletionBy};
use crate::content::ContentDigest;
use crate::document::Document;
use crate::fault::Reaction;
use crate::handler::WatchEvent;
use crate::loop_guard::LoopGuard;
use crate::parking::{Server, Unavailable};
use crate::plan::Failure;
use crate::request::{ObjectRef, SinkName, api_version};
use crate::retry::{self, Decision, Tries, Verdict};
use crate::ring::shard_of;
use crate::run::{Chain, Departed, Finish, Member, Pause, Run};
use crate::time::Timestamp;

use lines::{Lines, Next, Permitted, Running};

mod lines;

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

/// What a run under way came to.
#[derive(Debug)]
pub struct Finished {
    /// How it ended for the members that stayed in it.
    pub finish: Finish,
    /// The members that stayed.
    pub members: Vec<Member>,
    /// The members that left, each with its failure.
    pub departed: Vec<Departed>,
    /// Versions of the host's own writes to members.
    pub own_writes: Vec<(ObjectRef, u64)>,
    /// Whether anything changed at any server.
    pub has_written: bool,
    /// Whether a `bootstrapDep` request of it has not succeeded.
    pub holds_readiness: bool,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
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
        /// The run.
        run: Box<Run>,
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
struct Slot {
    live: Option<Live>,
    gone: VecDeque<Gone>,
    work: Work,
    is_given_up: bool,
    /// A server has asked the host to send nothing for the object before this time, even if the object changes.
    quiet_until: Option<Timestamp>,
    /// Whether the last run failed, for this content or an earlier one. The object then shares batches only with others like it.
    has_failed: bool,
    /// Whether a server refused the last run, for this content or an earlier one, and is not down.
    was_refused: bool,
    /// Whether the last run held its place for [`BUSY`].
    was_slow: bool,
    /// When its last two runs began, the newest first.
    began: [Option<Timestamp>; 2],
}

#[derive(Debug)]
struct Live {
    uid: String,
    version: Option<u64>,
    content: ContentDigest,
    object: Document,
    is_deleting: bool,
    /// Why it should get a run; `None`: it needs none.
    pending: Option<WatchEvent>,
    completed: Option<ContentDigest>,
    /// Whether it gets one more run when that which is under way has ended, whatever comes of that.
    renews: bool,
    vain: Vain,
    /// It must be seen at this version before it is entered again.
    awaited: Option<u64>,
    /// Whether the canary handles it.
    is_canary: bool,
    /// Whether it has not finished a run of the canary yet.
    awaits_canary_run: bool,
    guard: LoopGuard,
    resync: Option<TimerKey>,
    /// See [`Member::occasion`].
    occasion: Option<Timestamp>,
    deletion_done: bool,
}

#[derive(Debug)]
struct Gone {
    uid: String,
    object: Document,
    content: ContentDigest,
    vain: Vain,
}

/// What was tried in vain since the object last changed or went through.
#[derive(Debug, Default)]
struct Vain {
    failures: u32,
    refused: Option<Box<Refused>>,
}

#[derive(Debug)]
struct Refused {
    refusals: u32,
    failure: Failure,
    at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    Idle,
    /// In a unit, or in the open batch of this chain.
    Queued(Chain),
    Running(Ticket),
    Delayed(TimerKey),
    Paused(Ticket),
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
struct PausedRun {
    run: Box<Run>,
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

/// Which object gets its run when.
#[derive(Debug)]
pub struct Queue {
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
    paused: BTreeMap<Ticket, PausedRun>,
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
    actions: Vec<Action>,
}

impl Queue {
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
    ) -> Vec<Action> {
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
    pub fn observe(&mut self, observed: Observed, now: Timestamp) -> Vec<Action> {
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
    pub fn gone(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) -> Vec<Action> {
        self.remove(key, uid, now);
        self.finish_call(now)
    }

    /// Another object has this name, which is not this queue's business: the one that had it is gone.
    pub fn displaced(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) -> Vec<Action> {
        let known = self.slots.get(key).and_then(|slot| slot.live.as_ref());
        match known.map(|live| live.uid.clone()) {
            Some(known) if known != uid => self.gone(key, &known, now),
            _ => Vec::new(),
        }
    }

    /// These objects, by uid, are another host's business from now on. Runs of them that are under way end without
    /// consequence; nothing is remembered of them.
    pub fn let_go(&mut self, is_let_go: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Action> {
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

    /// A run rests.
    pub fn pause(
        &mut self,
        ticket: Ticket,
        run: Box<Run>,
        pause: &Pause,
        finished: Finished,
        now: Timestamp,
    ) -> Vec<Action> {
        let chain = run.chain();
        let keys: Vec<ObjectRef> = run
            .members()
            .iter()
            .map(|member| member.key.clone())
            .collect();
        self.leave(ticket, &keys, now);
        self.note_writes(&finished, now);
        self.depart(chain, finished.departed, now);
        if !finished.holds_readiness {
            for key in &keys {
                self.settle(key, false);
            }
        }
        if let Pause::Park { after, failure } = pause {
            for key in &keys {
                self.note_wish(key, failure, *after, now);
            }
        }
        let is_stale = run
            .members()
            .iter()
            .any(|member| self.has_changed(chain, member));
        if is_stale {
            for key in &keys {
                self.idle(key);
                self.wake(key, now);
            }
            return self.finish_call(now);
        }
        let (server, after) = match pause {
            Pause::Resend { after, .. } => (None, *after),
            Pause::Park { after, failure } => {
                for member in run.members() {
                    self.note_refusal(member, run.tries(), failure, now);
                }
                (failure.server.as_deref().cloned(), *after)
            }
        };
        let timer = Some(self.timer(now.after(after), Timer::Paused(ticket)));
        for key in &keys {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.work = Work::Paused(ticket);
            }
        }
        let paused = PausedRun { run, server, timer };
        self.paused.insert(ticket, paused);
        self.finish_call(now)
    }

    /// Lends the place of a run to another run, until [`reclaim`](Self::reclaim) or [`take_back`](Self::take_back).
    pub fn lend(&mut self, ticket: Ticket, now: Timestamp) -> Vec<Action> {
        let places = self.configurator.concurrency;
        self.running.lend(ticket, places, now);
        self.finish_call(now)
    }

    /// Wants a place again for a run whose handler has returned. It goes on with [`Action::Continue`], as soon as a place is free.
    pub fn reclaim(&mut self, ticket: Ticket, now: Timestamp) -> Vec<Action> {
        match self.running.lent(ticket) {
            Some(is_suspect) => self.lines.push_ready(ticket, is_suspect),
            None => self.actions.push(Action::Continue { ticket }),
        }
        self.finish_call(now)
    }

    /// Gives a run its place again, although none may be free: fewer runs begin until there are no more than `concurrency`.
    pub fn take_back(&mut self, ticket: Ticket, now: Timestamp) -> Vec<Action> {
        self.lines.remove_ready(ticket);
        self.running.give_back(ticket, now);
        self.finish_call(now)
    }

    /// A run has ended.
    pub fn finish(&mut self, ticket: Ticket, finished: Finished, now: Timestamp) -> Vec<Action> {
        let keys = finished.members.iter().map(|member| &member.key);
        let Some(chain) = self.leave(ticket, keys, now) else {
            return self.finish_call(now);
        };
        self.note_writes(&finished, now);
        self.depart(chain, finished.departed, now);
        let holds = finished.holds_readiness;
        match finished.finish {
            Finish::Succeeded => {
                for member in finished.members {
                    self.succeed(chain, &member, None, now);
                }
            }
            Finish::Rest { after } => {
                for member in finished.members {
                    self.succeed(chain, &member, after, now);
                }
            }
            Finish::Restart {
                after,
                failure,
                tries,
            } => {
                for member in finished.members {
                    if !holds {
                        self.settle(&member.key, false);
                    }
                    self.retry(chain, &member, tries, &failure, after, now);
                }
            }
            Finish::Failed { failure, failures } => {
                for member in finished.members {
                    self.give_up(chain, &member, failure.clone(), failures, now);
                }
            }
            Finish::Split { .. } => self.split(chain, &finished.members, now),
        }
        self.finish_call(now)
    }

    /// These servers are unavailable, and no others. Runs that wait for one are held until it is back, and so are all new ones
    /// once the server of a sink is down that has failed one of them.
    pub fn set_unavailable(
        &mut self,
        servers: BTreeMap<Server, Unavailable>,
        now: Timestamp,
    ) -> Vec<Action> {
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
    pub fn nudge(&mut self, key: &ObjectRef, now: Timestamp) -> Vec<Action> {
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
    pub fn retry_given_up(&mut self, now: Timestamp) -> Vec<Action> {
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
    pub fn renew(&mut self, is_one: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Action> {
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
    fn retry_now(&mut self, key: &ObjectRef, now: Timestamp) -> Vec<Action> {
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
    pub fn tick(&mut self, now: Timestamp) -> Vec<Action> {
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
                            let members = paused.run.members().iter();
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
                    for member in paused.run.members() {
                        self.idle(&member.key);
                    }
                    let others: Vec<ObjectRef> = paused
                        .run
                        .members()
                        .iter()
                        .map(|member| member.key.clone())
                        .filter(|other| other != key)
                        .collect();
                    for other in others {
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
                    let chain = paused.run.chain();
                    paused
                        .run
                        .members()
                        .iter()
                        .any(|member| self.has_changed(chain, member))
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
    ) -> impl Iterator<Item = Unit> + use<> {
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

    fn finish_call(&mut self, now: Timestamp) -> Vec<Action> {
        self.start_runs(now);
        if self.is_listed && !self.is_bootstrapped && self.unsettled.is_empty() {
            self.is_bootstrapped = true;
            self.actions.push(Action::Bootstrapped {
                given_up: self.bootstrap_given_up,
            });
        }
        std::mem::take(&mut self.actions)
    }

    fn start_runs(&mut self, now: Timestamp) {
        if self.is_draining {
            return;
        }
        let is_suspended = self.configurator.suspend;
        let deletes_though_suspended = self.configurator.deletion.by == DeletionBy::Finalizer;
        while let Some(suspects) = self.free_place(now) {
            let is_held = self.is_held();
            let permitted = Permitted {
                suspects,
                deletions: !is_held && (!is_suspended || deletes_though_suspended),
                phases: !is_held && !is_suspended,
            };
            match self.lines.next(permitted) {
                Some(Next::Ready(ticket)) => self.go_on(ticket, now),
                Some(Next::Unit(unit)) => self.start(unit, now),
                None => break,
            }
        }
    }

    /// Returns whether suspects may take a place, or `None` if none is free.
    fn free_place(&self, now: Timestamp) -> Option<bool> {
        let places = self.configurator.concurrency;
        let is_recent = |began: Timestamp| now.since(began) < RESERVED;
        let is_reserved = self.lines.has_regular() || self.regular_began.is_some_and(is_recent);
        let for_suspects = match is_reserved {
            true => places / 2,
            // One place stays free for the next regular run.
            false => places.saturating_sub(1),
        };
        let for_suspects = for_suspects.max(1);
        self.running.free(places, for_suspects)
    }

    /// Goes on with a run that rested, or that has lent its place.
    fn go_on(&mut self, ticket: Ticket, now: Timestamp) {
        let Some(paused) = self.paused.remove(&ticket) else {
            if self.running.give_back(ticket, now) {
                self.actions.push(Action::Continue { ticket });
            }
            return;
        };
        let members = paused.run.members();
        let is_suspect = self.is_suspect(members.iter().map(|member| &member.key), now);
        for member in members {
            if let Some(slot) = self.slots.get_mut(&member.key) {
                slot.work = Work::Running(ticket);
            }
        }
        let chain = paused.run.chain();
        self.running.insert(ticket, chain, is_suspect, now);
        self.actions.push(Action::Resume {
            ticket,
            run: paused.run,
            is_suspect,
        });
    }

    fn start(&mut self, unit: Unit, now: Timestamp) {
        let is_queued = |key: &&ObjectRef| {
            self.slots
                .get(*key)
                .is_some_and(|slot| slot.work == Work::Queued(unit.chain))
        };
        // An object that was taken out of its unit and put back is in it twice.
        let keys: BTreeSet<&ObjectRef> = unit.keys.iter().collect();
        let members: Vec<Member> = keys
            .into_iter()
            .filter(is_queued)
            .filter_map(|key| self.member(unit.chain, key))
            .collect();
        if members.is_empty() {
            return;
        }
        let tries = members
            .iter()
            .map(|member| self.tries(unit.chain, member))
            .fold(Tries::default(), |most, tries| Tries {
                failures: most.failures.max(tries.failures),
                refusals: most.refusals.max(tries.refusals),
            });
        let is_suspect = self.is_suspect(members.iter().map(|member| &member.key), now);
        if !is_suspect {
            self.regular_began = Some(now);
        }
        self.sequence += 1;
        let ticket = Ticket(self.sequence);
        for member in &members {
            if let Some(slot) = self.slots.get_mut(&member.key) {
                slot.work = Work::Running(ticket);
                let [last, _] = slot.began;
                slot.began = [Some(now), last];
                if let Some(live) = slot.live.as_mut().filter(|live| live.uid == member.uid) {
                    live.pending = None;
                    live.renews = false;
                    // What other content has come to does not hold any more, should the object go back to it.
                    live.completed = live.completed.filter(|done| *done == member.content);
                    live.guard.on_start(now);
                }
            }
        }
        self.running.insert(ticket, unit.chain, is_suspect, now);
        self.actions.push(Action::Start {
            ticket,
            members,
            chain: unit.chain,
            tries,
            is_suspect,
        });
    }

    fn member(&self, chain: Chain, key: &ObjectRef) -> Option<Member> {
        let slot = self.slots.get(key)?;
        if let Some(gone) = slot.gone.front() {
            return (Some(chain) == self.deletion_chain()).then(|| Member {
                key: key.clone(),
                uid: gone.uid.clone(),
                object: gone.object.clone(),
                event: WatchEvent::Deleted,
                content: gone.content,
                occasion: None,
            });
        }
        let live = slot.live.as_ref()?;
        Some(Member {
            key: key.clone(),
            uid: live.uid.clone(),
            object: live.object.clone(),
            event: live.pending?,
            content: live.content,
            occasion: live.occasion,
        })
    }

    fn tries(&self, chain: Chain, member: &Member) -> Tries {
        let Some(slot) = self.slots.get(&member.key) else {
            return Tries::default();
        };
        if Some(chain) == self.deletion_chain()
            && let Some(gone) = slot.gone.front()
            && gone.uid == member.uid
        {
            return gone.vain.tries();
        }
        let live = slot.live.as_ref();
        live.map_or(Tries::default(), |live| live.vain.tries())
    }

    /// Whether no new run begins, because it would meet a server that is down.
    fn is_held(&self) -> bool {
        let mut servers = self.unavailable.iter();
        servers.any(|(server, why)| {
            *why == Unavailable::Down && server.is_shared() && self.relied_on.contains(&server.sink)
        })
    }

    /// Whether a run waits for a server that is unavailable.
    fn is_waiting(&self, paused: &PausedRun) -> bool {
        let is_unavailable = |server: &Server| {
            let behind = Server::behind(server.sink);
            self.unavailable.contains_key(server) || self.unavailable.contains_key(&behind)
        };
        paused.server.as_ref().is_some_and(is_unavailable)
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

    /// Takes the place of a run of these objects, and notes whether it held it for long. Returns the run's chain.
    fn leave<'a>(
        &mut self,
        ticket: Ticket,
        keys: impl IntoIterator<Item = &'a ObjectRef>,
        now: Timestamp,
    ) -> Option<Chain> {
        let (chain, held) = self.running.remove(ticket, now)?;
        for key in keys {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.was_slow = held >= BUSY;
            }
        }
        Some(chain)
    }

    /// Whether one of these objects may delay others.
    fn is_suspect<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a ObjectRef>,
        now: Timestamp,
    ) -> bool {
        keys.into_iter().any(|key| {
            let slot = self.slots.get(key);
            slot.is_some_and(|slot| slot.is_suspect(now))
        })
    }

    /// Honors the wait that a server asked for when it refused the object for now.
    fn note_wish(&mut self, key: &ObjectRef, failure: &Failure, after: Duration, now: Timestamp) {
        let has_asked = failure.reaction == Reaction::Park && failure.fault.retry_after.is_some();
        if let (true, Some(slot)) = (has_asked, self.slots.get_mut(key)) {
            slot.quiet_until = Some(now.after(after));
        }
    }

    /// A server has refused an object for now.
    fn note_refusal(&mut self, member: &Member, tries: Tries, failure: &Failure, now: Timestamp) {
        if let Some(server) = &failure.server {
            self.relied_on.insert(server.sink);
        }
        let is_down = failure
            .server
            .as_ref()
            .is_some_and(|server| self.unavailable.get(server) == Some(&Unavailable::Down));
        if let Some(slot) = self.slots.get_mut(&member.key) {
            slot.was_refused = !is_down;
        }
        if let Some(vain) = self.vain_mut(member) {
            vain.refused = Some(Box::new(Refused {
                refusals: tries.refusals,
                failure: failure.clone(),
                at: now,
            }));
        }
    }

    fn vain_mut(&mut self, member: &Member) -> Option<&mut Vain> {
        let slot = self.slots.get_mut(&member.key)?;
        if let Some(gone) = slot.gone.front_mut() {
            return Some(&mut gone.vain);
        }
        slot.live.as_mut().map(|live| &mut live.vain)
    }

    /// Whether the object of a run is no longer what the run saw, and has another run for that. A change that starts none is seen by the
    /// next attempt.
    fn has_changed(&self, chain: Chain, member: &Member) -> bool {
        let Some(slot) = self.slots.get(&member.key) else {
            return true;
        };
        if slot.gone.front().is_some_and(|gone| gone.uid == member.uid) {
            return Some(chain) != self.deletion_chain() || member.event != WatchEvent::Deleted;
        }
        match &slot.live {
            Some(live) if live.uid == member.uid => {
                live.content != member.content && live.pending.is_some()
                    || (live.pending == Some(WatchEvent::Deleted))
                        && member.event != WatchEvent::Deleted
            }
            _ => true,
        }
    }

    fn note_writes(&mut self, finished: &Finished, now: Timestamp) {
        for (key, version) in &finished.own_writes {
            let is_ahead = self.live_mut(key).is_some_and(|live| {
                let is_ahead = live.version.is_some_and(|seen| seen < *version);
                if is_ahead {
                    live.awaited = Some(*version);
                }
                is_ahead
            });
            if is_ahead {
                self.timer(now.after(OWN_WRITE_PATIENCE), Timer::OwnWrite(key.clone()));
            }
        }
        if finished.has_written {
            for member in &finished.members {
                if let Some(live) = self.live_mut(&member.key) {
                    live.guard.on_write(now);
                }
            }
        }
    }

    fn depart(&mut self, chain: Chain, departed: Vec<Departed>, now: Timestamp) {
        for Departed { member, failure } in departed {
            let jitter = self.seed ^ u64::from_be_bytes(first_half(member.content.bytes()));
            let before = self.tries(chain, &member);
            let Verdict {
                decision,
                failure,
                tries,
            } = retry::decide(failure, before, &self.configurator.retry, jitter);
            match decision {
                Decision::Resend { after }
                | Decision::Restart { after }
                | Decision::Park { after } => {
                    self.retry(chain, &member, tries, &failure, after, now);
                }
                Decision::Fail => self.give_up(chain, &member, failure, tries.failures, now),
            }
        }
    }

    /// `after` is when the object wants another turn, if that is before its resync.
    fn succeed(&mut self, chain: Chain, member: &Member, after: Option<Duration>, now: Timestamp) {
        let period = self.configurator.watch.resync_period;
        self.idle(&member.key);
        let Some(slot) = self.slots.get_mut(&member.key) else {
            return;
        };
        slot.has_failed = false;
        slot.was_refused = false;
        if slot
            .gone
            .front()
            .is_some_and(|gone| gone.uid == member.uid && member.event == WatchEvent::Deleted)
        {
            slot.gone.pop_front();
            self.actions.push(Action::Forget {
                key: member.key.clone(),
                uid: member.uid.clone(),
            });
        }
        if slot.live.as_ref().is_none_or(|live| live.uid == member.uid)
            && std::mem::take(&mut slot.is_given_up)
        {
            self.actions.push(Action::Recover {
                key: member.key.clone(),
            });
        }
        let mut resync = false;
        if let Some(live) = slot.live.as_mut().filter(|live| live.uid == member.uid) {
            live.vain = Vain::default();
            if chain == Chain::Deletion {
                live.deletion_done = true;
                live.pending = None;
                self.actions.push(Action::Forget {
                    key: member.key.clone(),
                    uid: member.uid.clone(),
                });
            } else {
                live.completed = Some(member.content);
                if live.content == member.content && live.pending != Some(WatchEvent::Deleted) {
                    live.pending = None;
                }
                live.end_run();
                resync = true;
            }
        }
        match (after, period) {
            _ if !resync => {}
            (Some(after), period) if period.is_none_or(|period| after < period) => {
                self.turn_at(&member.key, now.after(after));
            }
            (_, Some(period)) => self.resync(&member.key, period, now),
            (_, None) => {}
        }
        self.settle(&member.key, false);
        self.wake(&member.key, now);
    }

    fn resync(&mut self, key: &ObjectRef, period: Duration, now: Timestamp) {
        self.sequence += 1;
        let at = now.after(jittered(period, mix(self.seed ^ self.sequence)));
        self.turn_at(key, at);
    }

    /// An object that is idle has a turn then.
    fn turn_at(&mut self, key: &ObjectRef, at: Timestamp) {
        let timer = self.timer(at, Timer::Resync(key.clone()));
        let previous = self
            .live_mut(key)
            .and_then(|live| live.resync.replace(timer));
        if let Some(previous) = previous {
            self.timers.remove(&previous);
        }
    }

    fn retry(
        &mut self,
        chain: Chain,
        member: &Member,
        tries: Tries,
        failure: &Failure,
        after: Duration,
        now: Timestamp,
    ) {
        self.idle(&member.key);
        self.note_wish(&member.key, failure, after, now);
        if self.has_changed(chain, member) {
            self.wake(&member.key, now);
            return;
        }
        if failure.reaction == Reaction::Park {
            self.note_refusal(member, tries, failure, now);
        } else if let Some(slot) = self.slots.get_mut(&member.key) {
            slot.has_failed = true;
        }
        if let Some(vain) = self.vain_mut(member) {
            vain.failures = tries.failures;
        }
        if let Some(slot) = self.slots.get_mut(&member.key)
            && let (true, Some(live)) = (slot.gone.is_empty(), &mut slot.live)
        {
            live.pending.get_or_insert(member.event);
        }
        self.delay(&member.key, now.after(after));
    }

    fn give_up(
        &mut self,
        chain: Chain,
        member: &Member,
        failure: Failure,
        failures: u32,
        now: Timestamp,
    ) {
        self.idle(&member.key);
        if self.has_changed(chain, member) {
            self.wake(&member.key, now);
            return;
        }
        let period = self.configurator.watch.resync_period;
        let Some(slot) = self.slots.get_mut(&member.key) else {
            return;
        };
        slot.is_given_up = true;
        slot.has_failed = true;
        let mut resync = false;
        if slot.gone.front().is_some_and(|gone| gone.uid == member.uid) {
            // What is remembered of it elsewhere stays, so a new listing finds it again.
            slot.gone.pop_front();
        } else if let Some(live) = &mut slot.live {
            live.completed = Some(member.content);
            live.pending = None;
            live.end_run();
            live.vain = Vain::default();
            resync = true;
        }
        self.actions.push(Action::GiveUp {
            key: member.key.clone(),
            uid: member.uid.clone(),
            failure,
            failures,
        });
        if resync && let Some(period) = period {
            self.resync(&member.key, period, now);
        }
        self.settle(&member.key, true);
        self.wake(&member.key, now);
    }

    fn split(&mut self, chain: Chain, members: &[Member], now: Timestamp) {
        let (left, right) = members.split_at(members.len() / 2);
        for half in [right, left] {
            let mut keys = Vec::new();
            for member in half {
                self.idle(&member.key);
                if let Some(slot) = self.slots.get_mut(&member.key) {
                    // The runs of its halves are parts of this one.
                    let [_, before] = slot.began;
                    slot.began = [before, None];
                }
                if let Some(live) = self.live_mut(&member.key)
                    && live.uid == member.uid
                {
                    live.pending.get_or_insert(member.event);
                }
                if self.next_chain(&member.key) == Some(chain) {
                    self.queued(&member.key, chain);
                    keys.push(member.key.clone());
                } else {
                    self.wake(&member.key, now);
                }
            }
            // The canary may have changed since the run began.
            for unit in self.split_canary(keys, chain) {
                let is_suspect = self.is_suspect(&unit.keys, now);
                self.lines.push_front(unit, is_suspect);
            }
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

impl Live {
    /// A run of it has ended for good. One that was asked for meanwhile follows; without, it was of the module that is the object's now.
    fn end_run(&mut self) {
        if std::mem::take(&mut self.renews) {
            self.pending.get_or_insert(WatchEvent::Resync);
        } else {
            self.awaits_canary_run = false;
        }
    }
}

impl Vain {
    fn tries(&self) -> Tries {
        Tries {
            failures: self.failures,
            refusals: self.refused.as_ref().map_or(0, |refused| refused.refusals),
        }
    }

    fn is_empty(&self) -> bool {
        self.failures == 0 && self.refused.is_none()
    }
}

impl Slot {
    /// Whether the last run failed, was refused or held its place for long, or the object keeps changing because of its own runs, or has many.
    fn is_suspect(&self, now: Timestamp) -> bool {
        let is_looping = |live: &Live| live.guard.is_looping();
        let [_, second] = self.began;
        self.has_failed
            || self.was_refused
            || self.was_slow
            || second.is_some_and(|began| now.since(began) < BUSY)
            || self.live.as_ref().is_some_and(is_looping)
    }

    /// What its object was refused last, with the uid of that object: the dead come before the living.
    fn refused(&self) -> Option<(&str, &Refused)> {
        let gone = self.gone.front().map(|gone| (&gone.uid, &gone.vain));
        let live = self.live.as_ref().map(|live| (&live.uid, &live.vain));
        let (uid, vain) = gone.or(live)?;
        Some((uid, vain.refused.as_deref()?))
    }

    fn empty() -> Self {
        Self {
            live: None,
            gone: VecDeque::new(),
            work: Work::Idle,
            is_given_up: false,
            quiet_until: None,
            has_failed: false,
            was_refused: false,
            was_slow: false,
            began: [None; 2],
        }
    }
}

fn first_half(bytes: [u8; 16]) -> [u8; 8] {
    let mut half = [0; 8];
    for (to, from) in half.iter_mut().zip(bytes) {
        *to = from;
    }
    half
}

#[cfg(test)]
mod tests;
