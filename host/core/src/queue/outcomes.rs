//! What becomes of objects after a run: they rest, are tried again, or are given up.

use std::time::Duration;

use super::slot::{Refused, Vain, Work};
use super::timers::Timer;
use super::{Action, AwaitedObjects, BUSY, OWN_WRITE_PATIENCE, PausedRun, Queue, Ticket};
use crate::backoff::{jittered, mix};
use crate::fault::Reaction;
use crate::handler::WatchEvent;
use crate::parking::Unavailable;
use crate::plan::Failure;
use crate::request::ObjectRef;
use crate::retry::{self, Decision, Tries, Verdict};
use crate::run::{Chain, Departed, Finish, LONGEST_WAIT, Member, Pause, RunEnd, RunOutcome};
use crate::time::Timestamp;

impl<R> Queue<R> {
    /// A run is over, or rests until [`Action::Resume`].
    pub fn end(
        &mut self,
        ticket: Ticket,
        outcome: RunOutcome<R>,
        now: Timestamp,
    ) -> Vec<Action<R>> {
        let keys = outcome.members.iter().map(|member| &member.key);
        let Some(chain) = self.leave(ticket, keys, now) else {
            return self.finish_call(now);
        };
        self.note_writes(&outcome, now);
        let RunOutcome {
            end,
            run,
            members,
            departed,
            holds_readiness,
            ..
        } = outcome;
        self.depart(chain, departed, now);
        let may_settle = !holds_readiness;
        match end {
            RunEnd::Finished(finish) => self.finish(chain, members, finish, may_settle, now),
            RunEnd::Paused(pause) => {
                if may_settle {
                    for member in &members {
                        self.settle(&member.key, false);
                    }
                }
                let rests = PausedRun {
                    members,
                    chain,
                    run,
                    server: None,
                    timer: None,
                    awaits: AwaitedObjects::None,
                };
                self.rest(ticket, rests, pause, now);
            }
        }
        self.finish_call(now)
    }

    fn finish(
        &mut self,
        chain: Chain,
        members: Vec<Member>,
        finish: Finish,
        may_settle: bool,
        now: Timestamp,
    ) {
        match finish {
            Finish::Succeeded => {
                for member in members {
                    self.succeed(chain, &member, None, now);
                }
            }
            Finish::Rest { after } => {
                for member in members {
                    self.succeed(chain, &member, after, now);
                }
            }
            Finish::Restart {
                after,
                failure,
                tries,
            } => {
                for member in members {
                    if may_settle {
                        self.settle(&member.key, false);
                    }
                    self.retry(chain, &member, tries, &failure, after, now);
                }
            }
            Finish::Failed { failure, failures } => {
                for member in members {
                    self.give_up(chain, &member, failure.clone(), failures, now);
                }
            }
            Finish::Split { .. } => self.split(chain, &members, now),
        }
    }

    /// Keeps a run until its pause is over, unless one of its objects has changed meanwhile: then each has its turn anew.
    fn rest(&mut self, ticket: Ticket, mut paused: PausedRun<R>, pause: Pause, now: Timestamp) {
        if let Pause::Park { after, failure, .. } = &pause {
            for member in &paused.members {
                self.note_wish(&member.key, failure, *after, now);
            }
        }
        let has_changed = |member: &Member| self.has_changed(paused.chain, member);
        let awaits_objects = matches!(pause, Pause::Members { .. } | Pause::Unready { .. });
        let is_renewed = |member: &Member| {
            let live = self
                .slots
                .get(&member.key)
                .and_then(|slot| slot.live.as_ref());
            awaits_objects && live.is_some_and(|live| live.renews)
        };
        let begins_anew = |member: &Member| has_changed(member) || is_renewed(member);
        if paused.members.iter().any(begins_anew) {
            for member in &paused.members {
                self.idle(&member.key);
                if let Some(live) = self.live_mut(&member.key)
                    && std::mem::take(&mut live.renews)
                {
                    live.pending.get_or_insert(WatchEvent::Resync);
                }
                self.wake(&member.key, now);
            }
            return;
        }
        let after = match pause {
            Pause::Members { after } => {
                paused.awaits = AwaitedObjects::Members;
                after
            }
            Pause::Unready { after, .. } => {
                let in_vain = after >= LONGEST_WAIT;
                paused.awaits = AwaitedObjects::Polled { in_vain };
                Some(after)
            }
            Pause::Resend { after, .. } => Some(after),
            Pause::Park {
                after,
                failure,
                tries,
            } => {
                for member in &paused.members {
                    self.note_refusal(member, tries, &failure, now);
                }
                paused.server = failure.server.map(|server| *server);
                Some(after)
            }
        };
        paused.timer = after.map(|after| self.timer(now.after(after), Timer::Paused(ticket)));
        for member in &paused.members {
            if let Some(slot) = self.slots.get_mut(&member.key) {
                slot.work = Work::Paused(ticket);
            }
        }
        self.paused.insert(ticket, paused);
    }

    /// Takes the place of a run of these objects, and notes whether it held it for long. Returns the run's chain.
    pub(super) fn leave<'a>(
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

    /// Honors the wait that a server asked for when it refused the object for now.
    pub(super) fn note_wish(
        &mut self,
        key: &ObjectRef,
        failure: &Failure,
        after: Duration,
        now: Timestamp,
    ) {
        let has_asked = failure.reaction == Reaction::Park && failure.fault.retry_after.is_some();
        if let (true, Some(slot)) = (has_asked, self.slots.get_mut(key)) {
            slot.quiet_until = Some(now.after(after));
        }
    }

    /// A server has refused an object for now.
    pub(super) fn note_refusal(
        &mut self,
        member: &Member,
        tries: Tries,
        failure: &Failure,
        now: Timestamp,
    ) {
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
    pub(super) fn has_changed(&self, chain: Chain, member: &Member) -> bool {
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

    pub(super) fn note_writes(&mut self, outcome: &RunOutcome<R>, now: Timestamp) {
        for (key, version) in &outcome.own_writes {
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
        if outcome.has_written {
            for member in &outcome.members {
                if let Some(live) = self.live_mut(&member.key) {
                    live.guard.on_write(now);
                }
            }
        }
    }

    pub(super) fn depart(&mut self, chain: Chain, departed: Vec<Departed>, now: Timestamp) {
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
    pub(super) fn succeed(
        &mut self,
        chain: Chain,
        member: &Member,
        after: Option<Duration>,
        now: Timestamp,
    ) {
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

    pub(super) fn resync(&mut self, key: &ObjectRef, period: Duration, now: Timestamp) {
        self.sequence += 1;
        let at = now.after(jittered(period, mix(self.seed ^ self.sequence)));
        self.turn_at(key, at);
    }

    /// An object that is idle has a turn then.
    pub(super) fn turn_at(&mut self, key: &ObjectRef, at: Timestamp) {
        let timer = self.timer(at, Timer::Resync(key.clone()));
        let previous = self
            .live_mut(key)
            .and_then(|live| live.resync.replace(timer));
        if let Some(previous) = previous {
            self.timers.remove(&previous);
        }
    }

    pub(super) fn retry(
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

    pub(super) fn give_up(
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

    pub(super) fn split(&mut self, chain: Chain, members: &[Member], now: Timestamp) {
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
}

fn first_half(bytes: [u8; 16]) -> [u8; 8] {
    let mut half = [0; 8];
    for (to, from) in half.iter_mut().zip(bytes) {
        *to = from;
    }
    half
}
