//! Which runs begin: those that wait get free places, in the order of their lines.

use std::collections::BTreeSet;

use super::batches::Unit;
use super::lines::{Next, Permitted};
use super::slot::Work;
use super::{Action, PausedRun, Queue, RESERVED, Ticket};
use crate::configurator::DeletionBy;
use crate::handler::WatchEvent;
use crate::parking::{Server, Unavailable};
use crate::request::ObjectRef;
use crate::retry::Tries;
use crate::run::{Chain, Member};
use crate::time::Timestamp;

impl<R> Queue<R> {
    pub(super) fn start_runs(&mut self, now: Timestamp) {
        if self.is_draining {
            return;
        }
        let is_suspended = self.configurator.suspend;
        let deletes_though_suspended = self.configurator.deletion.by == DeletionBy::Finalizer;
        while let Some(suspects) = self.free_place(now) {
            let is_held = self.is_held() || !self.may_begin(now);
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
        let PausedRun {
            members,
            chain,
            run,
            ..
        } = paused;
        let is_suspect = self.is_suspect(members.iter().map(|member| &member.key), now);
        for member in &members {
            if let Some(slot) = self.slots.get_mut(&member.key) {
                slot.work = Work::Running(ticket);
            }
        }
        self.running.insert(ticket, chain, is_suspect, now);
        self.actions.push(Action::Resume {
            ticket,
            members,
            run,
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
        self.reserved_start = None;
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

    pub(super) fn tries(&self, chain: Chain, member: &Member) -> Tries {
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
    pub(super) fn is_waiting(&self, paused: &PausedRun<R>) -> bool {
        let is_unavailable = |server: &Server| {
            let behind = Server::behind(server.sink);
            self.unavailable.contains_key(server) || self.unavailable.contains_key(&behind)
        };
        paused.server.as_ref().is_some_and(is_unavailable)
    }

    /// Whether one of these objects may delay others.
    pub(super) fn is_suspect<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a ObjectRef>,
        now: Timestamp,
    ) -> bool {
        keys.into_iter().any(|key| {
            let slot = self.slots.get(key);
            slot.is_some_and(|slot| slot.is_suspect(now))
        })
    }
}
