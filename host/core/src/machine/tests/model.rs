//! The engine against a specification that is plain and slow: it knows leaves by their path, and finds out everything
//! else anew whenever it is asked.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use serde_json::json;

use super::*;
use crate::document::Document;
use crate::handler::{Cause, Signal};
use crate::machine::memento::Memento;
use crate::machine::phase::{ErrorCode, Remedy};
use crate::machine::state::Seen;
use crate::request::ObjectKey;

/// Machines and histories that are compared.
const CASES: u32 = 100_000;
/// The same in every run; the last byte tells the halves apart.
const SEED: &[u8; 32] = b"phases, trees, flows and orders.";

/// How the specification names the signal of an approval, which has data.
const APPROVAL: &str = "approval";

// ---- The specification ----

#[derive(Clone, Default)]
struct Leaf {
    done: bool,
    failed: bool,
    fatal: bool,
    skipped: bool,
    entry: u32,
    failures: u32,
    began: Option<Timestamp>,
    turn: Does,
    is_sent: bool,
    signal: Option<String>,
    /// The version of the object that it was last told of.
    seen: Option<u8>,
    /// The code that is being remedied.
    remedy: Option<&'static str>,
    /// How often its remedy has run.
    remedies: u32,
    /// The number of the remedy's entry.
    remedy_entry: u32,
}

#[derive(Clone, Default, PartialEq, Debug)]
enum Does {
    #[default]
    Nothing,
    Next(&'static str),
    Runs,
    Due(Timestamp, &'static str),
    Waits(Option<Timestamp>, Vec<String>, bool),
}

/// What a composite has beside its leaves.
#[derive(Clone, Default)]
struct Group {
    began: Option<Timestamp>,
    is_broken: bool,
    is_skipped: bool,
}

#[derive(Clone, Default)]
struct Spec {
    phase: String,
    leaves: BTreeMap<String, Leaf>,
    groups: BTreeMap<String, Group>,
    unfinished: Option<String>,
    then: Option<String>,
    halted: bool,
    interrupted: bool,
    next: Option<String>,
    marked: bool,
    signals: Vec<String>,
    orders: Vec<String>,
    checking: Option<usize>,
    /// What was entered by the last event: path, entry, attempt, cause.
    entered: Vec<(String, u32, u32, String)>,
    moves: usize,
}

impl Spec {
    fn leaf(&self, path: &str) -> Leaf {
        self.leaves.get(path).cloned().unwrap_or_default()
    }

    fn group(&self, path: &str) -> Group {
        self.groups.get(path).cloned().unwrap_or_default()
    }

    fn done(&self, node: &Node, path: &str) -> bool {
        if node.is_leaf() {
            return self.leaf(path).done;
        }
        let group = self.group(path);
        let each = |child: &Node| self.done(child, &format!("{path}/{}", child.name));
        group.is_broken
            || group.is_skipped
            || (group.began.is_some() && node.children().iter().all(each))
    }

    fn any(&self, node: &Node, path: &str, of_leaf: fn(&Leaf) -> bool) -> bool {
        if node.is_leaf() {
            return of_leaf(&self.leaf(path));
        }
        let group = self.group(path);
        let any = |child: &Node| self.any(child, &format!("{path}/{}", child.name), of_leaf);
        group.is_broken || (!group.is_skipped && node.children().iter().any(any))
    }

    fn failed(&self, node: &Node, path: &str) -> bool {
        self.any(node, path, |leaf| leaf.failed)
    }

    fn fatal(&self, node: &Node, path: &str) -> bool {
        self.any(node, path, |leaf| leaf.fatal)
    }

    fn over(&self, node: &Node, path: &str) -> bool {
        self.done(node, path) || self.fatal(node, path)
    }

    fn well(&self, node: &Node, path: &str) -> bool {
        self.done(node, path) && !self.failed(node, path)
    }

    /// Paths of all nodes, with the nodes, from the top down.
    fn nodes<'m>(node: &'m Node, path: &str, all: &mut Vec<(String, &'m Node)>) {
        all.push((path.to_owned(), node));
        for child in node.children() {
            Self::nodes(child, &format!("{path}/{}", child.name), all);
        }
    }

    fn all<'m>(machine: &'m Machine, phase: &str) -> Vec<(String, &'m Node)> {
        let mut all = Vec::new();
        if let Some(tree) = machine.tree(phase) {
            Self::nodes(tree, phase, &mut all);
        }
        all
    }

    fn leaves_of(machine: &Machine, phase: &str) -> Vec<String> {
        let all = Self::all(machine, phase).into_iter();
        all.filter(|(_, node)| node.is_leaf())
            .map(|(path, _)| path)
            .collect()
    }

    fn forget(&mut self, below: &str) {
        let prefix = format!("{below}/");
        self.leaves
            .retain(|path, _| path != below && !path.starts_with(&prefix));
        self.groups
            .retain(|path, _| path != below && !path.starts_with(&prefix));
    }

    /// What goes on in these leaves is called off, until then or for good.
    fn call_off(&mut self, paths: &[String], until: Option<Timestamp>) {
        for path in paths {
            let Some(leaf) = self.leaves.get_mut(path) else {
                continue;
            };
            let cause = match &leaf.turn {
                Does::Nothing => continue,
                Does::Runs if leaf.is_sent => continue,
                Does::Next(cause) | Does::Due(_, cause) => cause,
                Does::Runs | Does::Waits(..) => "retry",
            };
            leaf.turn = match until {
                Some(at) => Does::Due(at, cause),
                None => Does::Nothing,
            };
        }
    }

    fn is_sent(&self, paths: &[String]) -> bool {
        let mut leaves = paths.iter().map(|path| self.leaf(path));
        leaves.any(|leaf| leaf.turn == Does::Runs && leaf.is_sent)
    }

    fn turn_well(leaf: &mut Leaf) {
        leaf.failed = false;
        leaf.fatal = false;
        leaf.failures = 0;
        leaf.signal = None;
    }

    fn turn_bad(leaf: &mut Leaf) {
        leaf.done = true;
        leaf.failed = true;
        leaf.fatal = true;
        leaf.turn = Does::Nothing;
    }

    fn go_on(&mut self, machine: &Machine, now: Timestamp) {
        loop {
            let Some(phase) = machine.phase(&self.phase) else {
                return;
            };
            let PhaseKind::Active {
                tree,
                on_done,
                on_error,
            } = &phase.kind
            else {
                return;
            };
            if self.halted {
                return;
            }
            let path = self.phase.clone();
            let fatal = tree.as_ref().is_none_or(|tree| self.fatal(tree, &path));
            let well = tree.as_ref().is_some_and(|tree| self.well(tree, &path));
            if self.next.is_some() || self.interrupted || fatal {
                let leaves = Self::leaves_of(machine, &path);
                self.call_off(&leaves, None);
                if leaves.iter().any(|path| self.leaf(path).turn == Does::Runs) {
                    return;
                }
                let is_named = self.next.is_some();
                let to = match self.next.take() {
                    Some(next) => Some(next),
                    None => on_error.clone(),
                };
                self.interrupted = false;
                if is_named {
                    if self.unfinished.as_ref() == Some(&path) {
                        self.unfinished = None;
                    }
                    self.idle(machine, &path);
                } else {
                    let before = self.unfinished.replace(path.clone());
                    if let Some(before) = before.filter(|before| *before != path) {
                        self.idle(machine, &before);
                    }
                }
                if !self.follow(machine, to, now) {
                    return;
                }
            } else if well {
                if self.unfinished.as_ref() == Some(&path) {
                    self.unfinished = None;
                }
                self.idle(machine, &path);
                let to = self.then.take().or_else(|| on_done.clone());
                if !self.follow(machine, to, now) {
                    return;
                }
            } else {
                let tree = tree.as_ref().unwrap();
                if !self.give_turns(tree, &path, now) {
                    return;
                }
            }
        }
    }

    fn idle(&mut self, machine: &Machine, phase: &str) {
        for path in Self::leaves_of(machine, phase) {
            if let Some(leaf) = self.leaves.get_mut(&path) {
                leaf.turn = Does::Nothing;
                leaf.remedy = None;
            }
        }
    }

    /// Whether an empty composite was met.
    fn give_turns(&mut self, node: &Node, path: &str, now: Timestamp) -> bool {
        if self.over(node, path) {
            return false;
        }
        if node.is_leaf() {
            let leaf = self.leaves.entry(path.to_owned()).or_default();
            let cause = match &leaf.turn {
                Does::Nothing if leaf.began.is_some() => "retry",
                Does::Nothing => "entered",
                Does::Next(cause) => cause,
                _ => return false,
            };
            let cause = match &leaf.signal {
                Some(signal) if leaf.remedy.is_none() => format!("signal {signal}"),
                _ => cause.to_owned(),
            };
            leaf.began.get_or_insert(now);
            leaf.entry = leaf.entry.max(1);
            leaf.turn = Does::Runs;
            leaf.is_sent = false;
            let entry = match leaf.remedy {
                Some(_) => leaf.remedy_entry,
                None => leaf.entry,
            };
            let entered = (path.to_owned(), entry, leaf.failures + 1, cause);
            self.entered.push(entered);
            return false;
        }
        let group = self.groups.entry(path.to_owned()).or_default();
        group.began.get_or_insert(now);
        if node.children().is_empty() {
            group.is_broken = true;
            return true;
        }
        for child in node.children() {
            let path = format!("{path}/{}", child.name);
            if self.give_turns(child, &path, now) {
                return true;
            }
            if !node.is_parallel() && !self.well(child, &path) {
                return false;
            }
        }
        false
    }

    fn follow(&mut self, machine: &Machine, to: Option<String>, now: Timestamp) -> bool {
        match to {
            Some(to) => self.enter(machine, &to, now),
            None => {
                self.halted = true;
                false
            }
        }
    }

    fn enter(&mut self, machine: &Machine, to: &str, now: Timestamp) -> bool {
        let flow = |phase: &str| machine.tree(phase).and_then(Node::flow);
        let other = self.unfinished.clone().filter(|phase| phase != to);
        if let (Some(new), Some(phase)) = (flow(to), other)
            && flow(&phase).is_some()
        {
            match new.when_unfinished {
                WhenUnfinished::Finish => {
                    self.then = Some(to.to_owned());
                    self.reopen(machine, &phase, None, now);
                    return self.be_in(machine, &phase);
                }
                WhenUnfinished::Cancel => {
                    self.idle(machine, &phase);
                    self.unfinished = None;
                }
                WhenUnfinished::Refuse => {
                    self.halted = machine.tree(&self.phase).is_some();
                    return false;
                }
            }
        }
        self.forget(to);
        if self.unfinished.as_deref() == Some(to) {
            self.unfinished = None;
        }
        self.be_in(machine, to)
    }

    fn be_in(&mut self, machine: &Machine, to: &str) -> bool {
        self.phase = to.to_owned();
        self.halted = false;
        self.interrupted = false;
        self.next = None;
        self.checking = None;
        self.moves += 1;
        if self.moves > machine.phases.len() + 1 {
            self.halted = true;
            return false;
        }
        match &machine.phase(to).unwrap().kind {
            PhaseKind::Active { .. } => true,
            PhaseKind::Stable(checks) => {
                self.checking = (!checks.is_empty()).then_some(0);
                false
            }
            PhaseKind::Terminal => {
                if let Some(phase) = self.unfinished.take() {
                    self.idle(machine, &phase);
                }
                self.then = None;
                self.signals.clear();
                false
            }
        }
    }

    fn reopen(
        &mut self,
        machine: &Machine,
        phase: &str,
        from: Option<RecoverFrom>,
        now: Timestamp,
    ) {
        let Some(tree) = machine.tree(phase) else {
            return;
        };
        if from == Some(RecoverFrom::FirstStep) && tree.flow().is_none() {
            self.forget(phase);
        }
        for (path, node) in Self::all(machine, phase) {
            if self.well(node, &path) {
                continue;
            }
            // What is below something that is well stays as it is.
            let above: Vec<(String, &Node)> = Self::all(machine, phase)
                .into_iter()
                .filter(|(above, _)| path.starts_with(&format!("{above}/")))
                .collect();
            if above.iter().any(|(above, node)| self.well(node, above)) {
                continue;
            }
            if let Some(leaf) = self.leaves.get_mut(&path)
                && leaf.began.is_some()
            {
                Self::turn_well(leaf);
                leaf.done = false;
                leaf.began = Some(now);
                leaf.turn = Does::Nothing;
                leaf.remedy = None;
                leaf.remedies = 0;
            }
            if let Some(group) = self.groups.get_mut(&path)
                && group.began.is_some()
            {
                group.began = Some(now);
                group.is_broken = false;
                if let NodeKind::Flow(flow) = &node.kind
                    && from.unwrap_or(flow.recover_from) == RecoverFrom::FirstStep
                {
                    let group = self.groups.remove(&path).unwrap();
                    self.forget(&path);
                    self.groups.insert(path, group);
                }
            }
        }
    }

    fn is_active(&self, machine: &Machine) -> bool {
        let kind = machine.phase(&self.phase).map(|phase| &phase.kind);
        matches!(kind, Some(PhaseKind::Active { .. }))
    }

    fn restart_checks(&mut self, machine: &Machine) {
        if let Some(phase) = machine.phase(&self.phase)
            && let PhaseKind::Stable(checks) = &phase.kind
        {
            self.checking = (!checks.is_empty()).then_some(0);
        }
    }

    fn observed(&mut self, machine: &Machine, is_changed: bool, is_marked: bool, now: Timestamp) {
        let is_new = is_marked && !self.marked;
        self.marked = is_marked;
        if self.phase.is_empty() {
            self.be_in(machine, &machine.initial);
        }
        self.restart_checks(machine);
        if !self.is_active(machine) {
            return;
        }
        self.interrupted |= is_new && !self.halted;
        if is_changed {
            for path in Self::leaves_of(machine, &self.phase.clone()) {
                if let Some(leaf) = self.leaves.get_mut(&path) {
                    leaf.turn = match std::mem::take(&mut leaf.turn) {
                        Does::Due(_, cause) => Does::Next(cause),
                        Does::Waits(None, signals, false) if signals.is_empty() => {
                            Does::Next("again")
                        }
                        other => other,
                    };
                }
            }
        }
        self.go_on(machine, now);
    }

    fn recovered(&mut self, machine: &Machine, now: Timestamp) {
        for path in Self::leaves_of(machine, &self.phase.clone()) {
            if let Some(leaf) = self.leaves.get_mut(&path)
                && leaf.turn == Does::Runs
            {
                leaf.turn = Does::Next("recovered");
                if leaf.is_sent {
                    Self::turn_bad(leaf);
                }
            }
        }
        if self.checking.is_some() {
            return self.restart_checks(machine);
        }
        self.go_on(machine, now);
    }

    /// Returns whether the leaf is entered again.
    fn renewed(&mut self, machine: &Machine, path: &str, now: Timestamp) -> bool {
        let leaf = self.leaves.get_mut(path).unwrap();
        let is_dropped = !leaf.is_sent;
        if is_dropped {
            leaf.turn = Does::Next("recovered");
        }
        self.go_on(machine, now);
        is_dropped
    }

    fn tick(&mut self, machine: &Machine, now: Timestamp) {
        if self.halted {
            return;
        }
        let phase = self.phase.clone();
        let all = Self::all(machine, &phase);
        // Everything that is late is so at the same time.
        let before = self.clone();
        for (path, node) in &all {
            let is_below = |above: &String| path.starts_with(&format!("{above}/"));
            let is_void = all.iter().any(|(above, node)| {
                is_below(above) && (before.over(node, above) || self.group(above).is_broken)
            });
            if is_void || before.over(node, path) {
                continue;
            }
            let began = match node.is_leaf() {
                true => self.leaf(path).began,
                false => self.group(path).began,
            };
            if let (Some(began), Some(timeout)) = (began, node.timeout)
                && began.after(timeout) <= now
            {
                if node.is_leaf() {
                    Self::turn_bad(self.leaves.get_mut(path).unwrap());
                } else {
                    let below: Vec<String> = all
                        .iter()
                        .map(|(other, _)| other.clone())
                        .filter(|other| other.starts_with(&format!("{path}/")))
                        .collect();
                    self.call_off(&below, None);
                    self.groups.get_mut(path).unwrap().is_broken = true;
                }
                continue;
            }
            if let Some(leaf) = self.leaves.get_mut(path) {
                leaf.turn = match std::mem::take(&mut leaf.turn) {
                    Does::Due(at, cause) if at <= now => Does::Next(cause),
                    Does::Waits(Some(until), ..) if until <= now => Does::Next("timer"),
                    other => other,
                };
            }
        }
        self.go_on(machine, now);
    }

    fn wake(
        &mut self,
        machine: &Machine,
        is_it: impl Fn(&Does) -> bool,
        cause: &'static str,
        signal: Option<&str>,
    ) -> bool {
        let mut is_heard = false;
        for path in Self::leaves_of(machine, &self.phase.clone()) {
            if let Some(leaf) = self.leaves.get_mut(&path)
                && is_it(&leaf.turn)
            {
                leaf.turn = Does::Next(cause);
                if signal.is_some() {
                    leaf.signal = signal.map(str::to_owned);
                }
                is_heard = true;
            }
        }
        is_heard
    }

    fn changed(&mut self, machine: &Machine, version: u8) {
        for path in Self::leaves_of(machine, &self.phase.clone()) {
            if let Some(leaf) = self.leaves.get_mut(&path)
                && matches!(leaf.turn, Does::Waits(_, _, true))
                && leaf.seen != Some(version)
            {
                leaf.seen = Some(version);
                leaf.turn = Does::Next("changed");
            }
        }
    }

    fn ended(&mut self, machine: &Machine, path: &str, end: &Ending, now: Timestamp) {
        let Some(leaf) = self.leaves.get(path).filter(|leaf| leaf.turn == Does::Runs) else {
            return;
        };
        let is_sent = leaf.is_sent;
        // What holds for the leaf is said at the nearest node.
        let mut retry = NodeRetry::default();
        let mut is_once = false;
        for (above, node) in Self::all(machine, &self.phase) {
            if path == above || path.starts_with(&format!("{above}/")) {
                retry.threshold = node.retry.threshold.or(retry.threshold);
                retry.delay = node.retry.delay.or(retry.delay);
                is_once = matches!(node.kind, NodeKind::Leaf { once: true, .. });
            }
        }
        let leaf = self.leaves.get_mut(path).unwrap();
        match end {
            Ending::Done(next) if leaf.remedy.is_some() => {
                leaf.remedy = None;
                leaf.failures = 0;
                leaf.turn = Does::Next("retry");
                self.next = self.next.take().or(next.clone());
            }
            Ending::Done(next) => {
                Self::turn_well(leaf);
                leaf.done = true;
                leaf.seen = None;
                leaf.turn = Does::Nothing;
                self.next = self.next.take().or(next.clone());
            }
            Ending::Again(after) => {
                if leaf.remedy.is_some() {
                    leaf.remedy_entry += 1;
                } else {
                    Self::turn_well(leaf);
                    leaf.entry += 1;
                }
                leaf.turn = match after {
                    0 => Does::Next("again"),
                    after => Does::Due(now.after(Duration::from_secs(*after)), "again"),
                };
            }
            Ending::Wait(after, signal, is_for_object) => {
                if leaf.remedy.is_some() {
                    leaf.remedy_entry += 1;
                } else {
                    Self::turn_well(leaf);
                    leaf.entry += 1;
                }
                leaf.seen = leaf.seen.filter(|_| *is_for_object);
                let early = self
                    .signals
                    .iter()
                    .position(|known| Some(known) == signal.as_ref());
                leaf.turn = match early {
                    Some(at) => {
                        leaf.signal = Some(self.signals.remove(at));
                        Does::Next("again")
                    }
                    None => Does::Waits(
                        after.map(|after| now.after(Duration::from_secs(after))),
                        signal.iter().cloned().collect(),
                        *is_for_object,
                    ),
                };
            }
            Ending::Failed {
                is_unknown: true, ..
            } => Self::turn_bad(leaf),
            Ending::Failed { is_fatal, code, .. } => {
                let delay = retry.delay.unwrap_or(machine.requeue_after);
                let later = Does::Due(now.after(delay), "retry");
                let remedied = leaf.remedy.take();
                let is_lost = is_once && is_sent;
                leaf.failed = true;
                leaf.turn = Does::Nothing;
                leaf.failures += u32::from(remedied.is_none());
                let is_spent = retry.threshold.is_some_and(|most| leaf.failures >= most);
                match remedied.or(*code) {
                    Some("fixable") if leaf.remedies < 2 && !is_lost => {
                        leaf.remedy = Some("fixable");
                        leaf.remedies += 1;
                        leaf.remedy_entry = 1;
                        leaf.turn = match remedied {
                            None => Does::Next("retry"),
                            Some(_) => later,
                        };
                    }
                    Some(_) => Self::turn_bad(leaf),
                    None if *is_fatal || is_spent || is_lost => Self::turn_bad(leaf),
                    None => {
                        let leaves = Self::leaves_of(machine, &self.phase);
                        self.call_off(&leaves, Some(now.after(delay)));
                        self.leaves.get_mut(path).unwrap().turn = later;
                    }
                }
            }
        }
        self.go_on(machine, now);
    }

    fn order(&mut self, machine: &Machine, uid: &str, verb: &Verb, now: Timestamp) {
        if self.orders.iter().any(|known| known == uid) {
            return;
        }
        self.orders.push(uid.to_owned());
        let phase = self.phase.clone();
        let is_under_way = self.is_active(machine) && !self.halted;
        match verb {
            Verb::Cancel if is_under_way => {
                self.interrupted = true;
                self.go_on(machine, now);
            }
            Verb::Resume(from) if !is_under_way => {
                if let Some(unfinished) = self.unfinished.clone() {
                    self.reopen(machine, &unfinished, *from, now);
                    self.unfinished = None;
                    if self.be_in(machine, &unfinished) {
                        self.go_on(machine, now);
                    }
                }
            }
            Verb::Cancel | Verb::Resume(_) => {}
            Verb::Restart => {
                let anew = match machine.phase(&phase).map(|phase| &phase.kind) {
                    Some(PhaseKind::Active { .. }) => Some(phase.clone()),
                    Some(PhaseKind::Terminal) => Some(machine.initial.clone()),
                    None if phase.is_empty() => Some(machine.initial.clone()),
                    _ => self.unfinished.clone(),
                };
                let Some(anew) = anew else { return };
                let leaves = Self::leaves_of(machine, &phase);
                if self.is_sent(&leaves) {
                    return;
                }
                self.call_off(&leaves, None);
                self.forget(&anew);
                if self.unfinished.as_ref() == Some(&anew) {
                    self.unfinished = None;
                }
                if self.be_in(machine, &anew) {
                    self.go_on(machine, now);
                }
            }
            Verb::Approve => {
                let is_it = |turn: &Does| matches!(turn, Does::Waits(_, signals, _) if signals.iter().any(|name| name == APPROVED));
                if self.wake(machine, is_it, "again", Some(APPROVAL)) {
                    self.go_on(machine, now);
                }
            }
            Verb::Signal(signal) => {
                let name = &signal.name;
                let is_it = |turn: &Does| matches!(turn, Does::Waits(_, signals, _) if signals.contains(name));
                if !self.wake(machine, is_it, "again", Some(name)) {
                    self.signals.push(name.clone());
                }
                self.go_on(machine, now);
            }
            Verb::Skip { node: path, .. } => self.skip(machine, path, now),
        }
    }

    fn skip(&mut self, machine: &Machine, path: &str, now: Timestamp) {
        let phase = path.split('/').next().unwrap();
        let is_current = phase == self.phase;
        if !is_current && self.unfinished.as_deref() != Some(phase) {
            return;
        }
        let all = Self::all(machine, phase);
        let Some((_, node)) = all.iter().find(|(other, _)| other == path) else {
            return;
        };
        for (above, _) in &all {
            if path.starts_with(&format!("{above}/")) {
                let group = self.groups.entry(above.clone()).or_default();
                group.began.get_or_insert(now);
            }
        }
        if self.well(node, path) {
            return;
        }
        let below: Vec<String> = all
            .iter()
            .map(|(other, _)| other.clone())
            .filter(|other| other == path || other.starts_with(&format!("{path}/")))
            .collect();
        if self.is_sent(&below) {
            return;
        }
        self.call_off(&below, None);
        if node.is_leaf() {
            let leaf = self.leaves.entry(path.to_owned()).or_default();
            Self::turn_well(leaf);
            leaf.done = true;
            leaf.skipped = true;
        } else {
            let group = self.groups.entry(path.to_owned()).or_default();
            group.is_skipped = true;
            group.is_broken = false;
        }
        if is_current {
            self.go_on(machine, now);
        }
    }
}

// ---- Both of them ----

#[derive(Debug, Clone)]
enum Ending {
    Done(Option<String>),
    Again(u64),
    Wait(Option<u64>, Option<String>, bool),
    Failed {
        is_fatal: bool,
        is_unknown: bool,
        code: Option<&'static str>,
    },
}

impl Ending {
    fn told(&self) -> End {
        match self {
            Self::Done(next) => End::Output(Box::new(LeafOutput {
                next: next.clone(),
                ..LeafOutput::default()
            })),
            Self::Again(after) => again(*after),
            Self::Wait(after, signal, is_for_object) => said(Outcome::Wait(Wake {
                after: after.map(Duration::from_secs),
                signals: signal.iter().cloned().collect(),
                objects: is_for_object.then(object).into_iter().collect(),
            })),
            Self::Failed {
                is_fatal,
                is_unknown,
                code,
            } => End::Failed(LeafFailure {
                error: NodeError {
                    message: "no".into(),
                    code: code.map(str::to_owned),
                },
                is_fatal: *is_fatal,
                is_unknown: *is_unknown,
                retry_after: None,
            }),
        }
    }
}

fn object() -> ObjectKey {
    ObjectKey {
        group: String::new(),
        version: "v1".into(),
        plural: "pods".into(),
        namespace: "shop".into(),
        name: "web".into(),
    }
}

const PHASES: [&str; 3] = ["P0", "P1", "P2"];

/// Bytes that say what is made; where they end, the simplest is.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self, below: u8) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first % below
    }

    fn node(&mut self, name: String, depth: u8) -> Node {
        let kind = match self.next(if depth == 0 { 3 } else { 9 }) {
            0 | 1 => NodeKind::Leaf {
                handler: name.clone(),
                once: false,
            },
            2 => NodeKind::Leaf {
                handler: name.clone(),
                once: true,
            },
            kind => {
                let count = match self.next(12) {
                    0 => 0,
                    count => 1 + count % 3,
                };
                let children = (0..count)
                    .map(|number| self.node(format!("n{number}"), depth - 1))
                    .collect();
                match kind {
                    3 | 4 => NodeKind::Serial(children),
                    5..=7 => NodeKind::Parallel(children),
                    _ => NodeKind::Flow(Arc::new(Flow {
                        name: format!("flow-{name}"),
                        recover_from: match self.next(2) {
                            0 => RecoverFrom::FailedStep,
                            _ => RecoverFrom::FirstStep,
                        },
                        when_unfinished: match self.next(3) {
                            0 => WhenUnfinished::Finish,
                            1 => WhenUnfinished::Cancel,
                            _ => WhenUnfinished::Refuse,
                        },
                        steps: children,
                    })),
                }
            }
        };
        let threshold = Some(u32::from(self.next(6))).filter(|most| (1..=3).contains(most));
        let delay = Some(u64::from(self.next(8))).filter(|delay| (1..=3).contains(delay));
        let timeout = Some(u64::from(self.next(16))).filter(|span| (1..=3).contains(span));
        Node {
            timeout: timeout.map(|span| Duration::from_secs(10 * span)),
            ..with_retry(Node::new(name, kind), threshold, delay)
        }
    }

    fn machine(&mut self) -> Machine {
        let to = |bytes: &mut Self| match bytes.next(7) {
            0 => "",
            1 => "P0",
            2 => "P1",
            3 => "P2",
            4 => "End",
            _ => "Rest",
        };
        let mut phases = Vec::new();
        for name in PHASES {
            let tree = match self.next(20) {
                1 => None,
                _ => Some(self.node(name.to_owned(), 3)),
            };
            let (on_done, on_error) = (to(self), to(self));
            phases.push(active(name, tree, on_done, on_error));
        }
        phases.push(stable("Rest", &[("0", "P1"), ("1", "P2")]));
        phases.push(terminal("End"));
        let code = |name: &str, remedy| {
            let guidance = String::new();
            (name.to_owned(), ErrorCode { guidance, remedy })
        };
        let fix = Remedy::Handler {
            handler: "fix".into(),
            attempts: 2,
        };
        let mut machine = machine(phases);
        machine.requeue_after = Duration::from_secs(7);
        machine.error_codes = [code("by hand", Remedy::Manual), code("fixable", fix)].into();
        machine
    }
}

/// The engine, the specification, and both as they were when the state was last stored.
struct Both {
    machine: Machine,
    play: Play,
    spec: Spec,
    stored: (State, Spec),
    orders: usize,
}

impl Both {
    fn new(machine: Machine) -> Self {
        Self {
            play: Play::new(machine.clone()),
            machine,
            spec: Spec::default(),
            stored: (State::default(), Spec::default()),
            orders: 0,
        }
    }

    /// Something happens; the three bytes say what.
    fn happens(&mut self, [what, which, how]: [u8; 3]) {
        let machine = self.machine.clone();
        let before = self.play.stored;
        let running: Vec<String> = self.play.running.keys().cloned().collect();
        let some_running = running
            .get(usize::from(which) % running.len().max(1))
            .cloned();
        self.spec.entered.clear();
        self.spec.moves = 0;
        self.play.log.clear();
        let name = ["s0", "s1", APPROVED][usize::from(which % 3)].to_owned();
        let now = self.play.now;
        match what % 16 {
            0..=6 if some_running.is_some() => {
                let path = some_running.unwrap();
                let ending = match how % 16 {
                    0..=5 => Ending::Done(None),
                    6 => Ending::Done(Some("P2".into())),
                    7 => Ending::Again(0),
                    8 => Ending::Again(5),
                    9 => Ending::Wait(None, Some(name), false),
                    10 => Ending::Wait(Some(9), None, true),
                    11 => Ending::Wait(None, None, false),
                    12 => Ending::Failed {
                        is_fatal: how > 128,
                        is_unknown: false,
                        code: Some(if how > 192 { "by hand" } else { "fixable" }),
                    },
                    13 | 14 => Ending::Failed {
                        is_fatal: how > 208,
                        is_unknown: false,
                        code: None,
                    },
                    _ => Ending::Failed {
                        is_fatal: false,
                        is_unknown: how > 128,
                        code: None,
                    },
                };
                self.spec.ended(&machine, &path, &ending, now);
                self.play.end(&path, ending.told());
            }
            7 if how % 3 == 0 && some_running.is_some() => {
                let path = some_running.unwrap();
                let token = self.play.running[&path].token;
                if self.spec.renewed(&machine, &path, now) {
                    self.play.running.remove(&path);
                }
                self.play.tell(Event::Renewed { token });
            }
            7 if some_running.is_some() => {
                let path = some_running.unwrap();
                let token = self.play.running[&path].token;
                self.spec.leaves.get_mut(&path).unwrap().is_sent = true;
                self.play.tell(Event::Sending { token });
            }
            8 | 9 => {
                self.play.now = now.after(Duration::from_secs(u64::from(how % 16)));
                self.spec.tick(&machine, self.play.now);
                self.play.tell(Event::Tick);
            }
            10 => {
                // The bookkeeping of both is that of the last time it was stored.
                let (stored, spec) = self.stored.clone();
                self.spec = spec;
                let (memento, _) = Memento::of(&machine, &stored).unwrap();
                self.play.state = memento.into_state().unwrap();
                assert_eq!(self.play.state, stored);
                self.spec.entered.clear();
                self.spec.moves = 0;
                self.play.running.clear();
                self.play.checks.clear();
                self.spec.recovered(&machine, now);
                self.play.tell(Event::Recovered);
            }
            11 => {
                let version = how % 3;
                self.spec.changed(&machine, version);
                self.spec.go_on(&machine, now);
                let version = version.to_string();
                let object = object();
                self.play.tell(Event::Changed(Seen { object, version }));
            }
            12 => {
                let (token, index) = match self.play.checks.last() {
                    Some(check) => *check,
                    None => return,
                };
                if self.spec.checking == Some(index) {
                    self.check(&machine, how % 3 == 0, now);
                }
                self.play.checks.clear();
                let is_so = how % 3 == 0;
                self.play.tell(Event::Checked { token, is_so });
            }
            13 | 14 => {
                self.orders += usize::from(which != 7);
                let uid = format!("c{}", self.orders);
                let verb = match how % 9 {
                    0 => Verb::Cancel,
                    1 | 2 => Verb::Resume(None),
                    3 => Verb::Resume(Some(RecoverFrom::FirstStep)),
                    4 => Verb::Restart,
                    5 => Verb::Signal(Signal { name, data: None }),
                    6 => Verb::Approve,
                    _ => {
                        let phase = match which % 4 {
                            0 => self.spec.unfinished.clone().unwrap_or_default(),
                            _ => self.spec.phase.clone(),
                        };
                        let all = Spec::all(&machine, &phase);
                        let node = all.get(usize::from(which) % all.len().max(1));
                        let node = node.map_or("P0/nothing", |(path, _)| path).to_owned();
                        Verb::Skip {
                            node,
                            reason: "so".into(),
                        }
                    }
                };
                self.spec.order(&machine, &uid, &verb, now);
                self.play.command(&uid, verb);
            }
            _ => {
                let (is_changed, is_cancelled) = (how % 2 == 0, how % 16 == 5);
                self.spec.observed(&machine, is_changed, is_cancelled, now);
                self.play.tell(Event::Observed {
                    is_changed,
                    is_cancelled,
                });
            }
        }
        if self.play.stored > before {
            self.stored = (self.play.state.clone(), self.spec.clone());
        }
    }

    fn check(&mut self, machine: &Machine, is_so: bool, now: Timestamp) {
        let index = self.spec.checking.take().unwrap();
        let PhaseKind::Stable(checks) = &machine.phase(&self.spec.phase).unwrap().kind else {
            panic!("only stable phases are checked");
        };
        if !is_so {
            self.spec.checking = Some(index + 1).filter(|next| *next < checks.len());
        } else if self.spec.enter(machine, &checks[index].to, now) {
            self.spec.go_on(machine, now);
        }
    }

    /// The machine, a line for each node.
    fn shape(&self) -> String {
        let mut text = String::new();
        for phase in &self.machine.phases {
            if let PhaseKind::Active {
                on_done, on_error, ..
            } = &phase.kind
            {
                writeln!(text, "{} {on_done:?} {on_error:?}", phase.name).unwrap();
            }
            for (path, node) in Spec::all(&self.machine, &phase.name) {
                let kind = match &node.kind {
                    NodeKind::Leaf { once, .. } => format!("leaf, once {once}"),
                    NodeKind::Serial(_) => "serial".to_owned(),
                    NodeKind::Parallel(_) => "parallel".to_owned(),
                    NodeKind::Flow(flow) => {
                        format!("flow {:?} {:?}", flow.recover_from, flow.when_unfinished)
                    }
                };
                writeln!(text, "  {path}: {kind} {:?} {:?}", node.retry, node.timeout).unwrap();
            }
        }
        text
    }

    /// What can be seen of the engine, and what must be.
    fn seen(&self) -> (String, String) {
        let state = &self.play.state;
        let spec = &self.spec;
        let mut engine = format!(
            "phase {} halted {} unfinished {:?} then {:?} signals {:?} checking {:?}\n",
            state.phase,
            state.is_halted,
            state.unfinished,
            state.then,
            state
                .signals
                .iter()
                .map(|signal| &signal.name)
                .collect::<Vec<_>>(),
            state.checking.map(|(_, index)| index),
        );
        let mut expected = format!(
            "phase {} halted {} unfinished {:?} then {:?} signals {:?} checking {:?}\n",
            spec.phase, spec.halted, spec.unfinished, spec.then, spec.signals, spec.checking,
        );
        for phase in PHASES {
            for (path, node) in Spec::all(&self.machine, phase) {
                let found = state.node(&path).cloned().unwrap_or_default();
                // What is below one that was broken off or skipped says nothing any more.
                let line = |done, failed, fatal| format!("{path} {done} {failed} {fatal}");
                engine += &line(found.done, found.failed, found.fatal);
                expected += &line(
                    spec.done(node, &path),
                    spec.failed(node, &path),
                    spec.fatal(node, &path),
                );
                if node.is_leaf() {
                    let leaf = spec.leaf(&path);
                    engine += &format!(
                        " {} {} {}",
                        found.leaf.entry,
                        found.leaf.failures,
                        shown(&found)
                    );
                    expected += &format!(" {} {} {:?}", leaf.entry, leaf.failures, leaf.turn);
                }
                engine.push('\n');
                expected.push('\n');
            }
        }
        for (path, entry) in &self.play.running {
            if entry.handler == "fix" {
                engine += &format!("{path} is being remedied\n");
            }
        }
        for (path, leaf) in &spec.leaves {
            if leaf.turn == Does::Runs && leaf.remedy.is_some() {
                expected += &format!("{path} is being remedied\n");
            }
        }
        let entered = |line: &&str| line.starts_with("enter ");
        for line in self.play.log.lines().filter(entered) {
            engine += line;
            engine.push('\n');
        }
        for (at, (path, entry, attempt, cause)) in spec.entered.iter().enumerate() {
            // What was called off by the same event was not even begun.
            let is_last = spec
                .entered
                .iter()
                .skip(at + 1)
                .all(|other| other.0 != *path);
            if !is_last || spec.leaf(path).turn != Does::Runs {
                continue;
            }
            expected += &format!("enter {path} {entry}/{attempt} {}\n", told(cause));
        }
        (engine, expected)
    }
}

/// Lines that only one of them has.
fn difference(engine: &str, expected: &str) -> String {
    let only = |one: &str, other: &str, whose: &str| {
        let lines = one
            .lines()
            .filter(|line| !other.lines().any(|known| known == *line));
        lines
            .map(|line| format!("{whose}: {line}\n"))
            .collect::<String>()
    };
    only(engine, expected, "the engine") + &only(expected, engine, "the specification")
}

fn shown(node: &NodeState) -> String {
    use crate::machine::state::Turn;
    let turn = match node.leaf.turn.clone() {
        Turn::Idle => Does::Nothing,
        Turn::Ready(cause) => Does::Next(word(&cause)),
        Turn::Running { .. } => Does::Runs,
        Turn::Due { at, cause } => Does::Due(at, word(&cause)),
        Turn::Waiting {
            until,
            signals,
            objects,
        } => Does::Waits(until, signals, !objects.is_empty()),
    };
    format!("{turn:?}")
}

fn word(cause: &Cause) -> &'static str {
    match cause {
        Cause::Entered => "entered",
        Cause::Retry => "retry",
        Cause::Again => "again",
        Cause::Timer => "timer",
        Cause::Signal(_) => "signal",
        Cause::Changed(_) => "changed",
        Cause::Recovered => "recovered",
    }
}

fn told(cause: &str) -> String {
    let cause = match cause {
        "entered" => Cause::Entered,
        "retry" => Cause::Retry,
        "again" => Cause::Again,
        "timer" => Cause::Timer,
        "changed" => Cause::Changed(object()),
        "recovered" => Cause::Recovered,
        signal if signal.ends_with(APPROVAL) => Cause::Signal(Signal {
            name: APPROVED.into(),
            data: Some(Document::of(&json!({"by": "ann", "verified": true})).unwrap()),
        }),
        signal => Cause::Signal(Signal {
            name: signal.trim_start_matches("signal ").into(),
            data: None,
        }),
    };
    format!("{cause:?}")
}

#[test]
fn the_engine_does_as_the_specification_says() {
    std::thread::scope(|scope| {
        for half in [b'0', b'1'] {
            scope.spawn(move || compare(half));
        }
    });
}

fn compare(half: u8) {
    let config = Config {
        cases: CASES / 2,
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = *SEED;
    seed[31] = half;
    eprintln!(
        "{} cases from the seed {:?}",
        config.cases,
        String::from_utf8_lossy(&seed)
    );
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let shape = prop::collection::vec(any::<u8>(), 0..80);
    let events = prop::collection::vec(any::<[u8; 3]>(), 0..40);
    TestRunner::new_with_rng(config, rng)
        .run(&(shape, events), |(shape, events)| {
            let mut both = Both::new(Bytes(&shape).machine());
            both.happens([15, 0, 0]);
            for event in events {
                both.happens(event);
                let (engine, expected) = both.seen();
                prop_assert!(
                    engine == expected,
                    "after {event:?} of\n{}{}",
                    both.shape(),
                    difference(&engine, &expected)
                );
            }
            Ok(())
        })
        .unwrap();
}

/// A declaration may change while objects are on their way.
#[test]
fn a_state_of_another_machine_does_no_harm() {
    let config = Config {
        cases: CASES / 10,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, SEED);
    let shape = || prop::collection::vec(any::<u8>(), 0..80);
    let events = || prop::collection::vec(any::<[u8; 3]>(), 0..40);
    TestRunner::new_with_rng(config, rng)
        .run(
            &(shape(), events(), shape(), events()),
            |(before, events, after, later)| {
                let mut both = Both::new(Bytes(&before).machine());
                for event in events {
                    both.happens(event);
                }
                let Both { mut play, .. } = both;
                play.machine = Bytes(&after).machine();
                play.crash();
                for [what, which, how] in later {
                    let path = play.running.keys().nth(usize::from(which) % 4).cloned();
                    match (what % 4, path) {
                        (0 | 1, Some(path)) if how % 3 == 0 => play.fail(&path),
                        (0 | 1, Some(path)) => play.done(&path),
                        (2, _) => play.pass(u64::from(how)),
                        _ => play.change(),
                    }
                }
                let (memento, _) = Memento::of(&play.machine, &play.state).unwrap();
                let restored = memento.into_state();
                prop_assert_eq!(restored.unwrap(), play.state);
                Ok(())
            },
        )
        .unwrap();
}
