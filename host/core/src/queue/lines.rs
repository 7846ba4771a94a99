//! Which run begins, or goes on, when a place is free.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Ticket;
use super::batches::Unit;
use crate::run::Chain;
use crate::time::Timestamp;

/// The number of runs, as a multiple of the places, that may lend their places at a time.
const LENT: usize = 4;

/// Work that waits for a place, in two lines: suspects, which may delay others, wait in a line of their own. While both lines have work,
/// they take turns, so neither keeps the other waiting.
#[derive(Debug, Default)]
pub(super) struct Lines {
    regular: Line,
    suspects: Line,
    was_suspect: bool,
}

/// Runs that go on come first, since others may wait for what they hold. Then come deletions: they are few, and objects that are gone
/// should not be seen for long.
#[derive(Debug, Default)]
struct Line {
    ready: VecDeque<Ticket>,
    deletions: VecDeque<Unit>,
    units: VecDeque<Unit>,
}

/// The kinds of work that may begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Permitted {
    pub(super) suspects: bool,
    pub(super) deletions: bool,
    pub(super) phases: bool,
}

/// Work whose turn has come.
#[derive(Debug)]
pub(super) enum Next {
    /// A run that goes on.
    Ready(Ticket),
    /// A run that begins.
    Unit(Unit),
}

impl Lines {
    pub(super) fn push(&mut self, unit: Unit, is_suspect: bool) {
        self.line(is_suspect).of(unit.chain).push_back(unit);
    }

    pub(super) fn push_front(&mut self, unit: Unit, is_suspect: bool) {
        self.line(is_suspect).of(unit.chain).push_front(unit);
    }

    pub(super) fn push_ready(&mut self, ticket: Ticket, is_suspect: bool) {
        self.line(is_suspect).ready.push_back(ticket);
    }

    /// Takes a run that was to go on out of its line.
    pub(super) fn remove_ready(&mut self, ticket: Ticket) {
        for line in [&mut self.regular, &mut self.suspects] {
            line.ready.retain(|ready| *ready != ticket);
        }
    }

    /// Takes out all runs that are to begin, in order: deletions, then others.
    pub(super) fn take_units(&mut self) -> Vec<Unit> {
        let lines = [&mut self.regular, &mut self.suspects];
        let lines = lines.map(|line| (line.deletions.split_off(0), line.units.split_off(0)));
        let (deletions, units): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        deletions.into_iter().chain(units).flatten().collect()
    }

    /// Whether work waits that is of no suspect.
    pub(super) fn has_regular(&self) -> bool {
        let Line {
            ready,
            deletions,
            units,
        } = &self.regular;
        !(ready.is_empty() && deletions.is_empty() && units.is_empty())
    }

    pub(super) fn next(&mut self, permitted: Permitted) -> Option<Next> {
        let order = match self.was_suspect {
            true => [false, true],
            false => [true, false],
        };
        let mut order = order
            .into_iter()
            .filter(|is_suspect| permitted.suspects || !is_suspect);
        order.find_map(|is_suspect| {
            let next = self.line(is_suspect).next(permitted)?;
            self.was_suspect = is_suspect;
            Some(next)
        })
    }

    fn line(&mut self, is_suspect: bool) -> &mut Line {
        match is_suspect {
            true => &mut self.suspects,
            false => &mut self.regular,
        }
    }
}

impl Line {
    fn of(&mut self, chain: Chain) -> &mut VecDeque<Unit> {
        match chain {
            Chain::Phases => &mut self.units,
            Chain::Deletion => &mut self.deletions,
        }
    }

    fn next(&mut self, permitted: Permitted) -> Option<Next> {
        if let Some(ticket) = self.ready.pop_front() {
            return Some(Next::Ready(ticket));
        }
        let deletion = permitted.deletions.then(|| self.deletions.pop_front());
        let unit = deletion.flatten().or_else(|| {
            let unit = permitted.phases.then(|| self.units.pop_front());
            unit.flatten()
        });
        unit.map(Next::Unit)
    }
}

/// The runs under way.
#[derive(Debug, Default)]
pub(super) struct Running {
    runs: BTreeMap<Ticket, Place>,
}

/// The place of a run.
#[derive(Debug, Clone, Copy)]
struct Place {
    chain: Chain,
    is_suspect: bool,
    is_lent: bool,
    /// When the run began, or took its place back last.
    since: Timestamp,
    /// How long the run held its place before it lent it last.
    held_before: Duration,
}

impl Running {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn insert(
        &mut self,
        ticket: Ticket,
        chain: Chain,
        is_suspect: bool,
        now: Timestamp,
    ) {
        let place = Place {
            chain,
            is_suspect,
            is_lent: false,
            since: now,
            held_before: Duration::ZERO,
        };
        self.runs.insert(ticket, place);
    }

    /// Returns the chain of the run, and how long it held a place.
    pub(super) fn remove(&mut self, ticket: Ticket, now: Timestamp) -> Option<(Chain, Duration)> {
        let place = self.runs.remove(&ticket)?;
        Some((place.chain, place.held(now)))
    }

    /// Returns whether suspects may take a place, or `None` if none is free.
    pub(super) fn free(&self, places: usize, for_suspects: usize) -> Option<bool> {
        let taken = || self.runs.values().filter(|place| !place.is_lent);
        let of_suspects = taken().filter(|place| place.is_suspect).count();
        (taken().count() < places).then_some(of_suspects < for_suspects)
    }

    /// Lends the place of a run to others, unless too many are lent.
    pub(super) fn lend(&mut self, ticket: Ticket, places: usize, now: Timestamp) {
        let lent = self.runs.values().filter(|place| place.is_lent).count();
        if lent < places.saturating_mul(LENT)
            && let Some(place) = self.runs.get_mut(&ticket)
        {
            place.held_before = place.held(now);
            place.is_lent = true;
        }
    }

    /// Returns whether the run has lent its place, and whether it is of a suspect.
    pub(super) fn lent(&self, ticket: Ticket) -> Option<bool> {
        let place = self.runs.get(&ticket).filter(|place| place.is_lent);
        place.map(|place| place.is_suspect)
    }

    /// Gives a run that has lent its place another one. Returns whether it still runs.
    pub(super) fn give_back(&mut self, ticket: Ticket, now: Timestamp) -> bool {
        let Some(place) = self.runs.get_mut(&ticket) else {
            return false;
        };
        if std::mem::take(&mut place.is_lent) {
            place.since = now;
        }
        true
    }
}

impl Place {
    /// Returns how long the run has held a place.
    fn held(&self, now: Timestamp) -> Duration {
        match self.is_lent {
            true => self.held_before,
            false => self.held_before.saturating_add(now.since(self.since)),
        }
    }
}
