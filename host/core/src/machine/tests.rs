//! A machine is played by hand: what it asks for is written down, and a test says what came of it.

mod control;
mod flows;
mod model;
mod phase_machine;
mod trees;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use expect_test::Expect;

use super::action::{Action, Entry};
use super::apply::{apply, deadline};
use super::command::{APPROVED, Command, Requester, Verb};
use super::event::{End, Event, LeafFailure, LeafOutput};
use super::phase::{Check, Machine, Phase, PhaseKind, When};
use super::state::{NodeError, NodeState, State};
use super::tree::{Flow, Node, NodeKind, NodeRetry, RecoverFrom, WhenUnfinished};
use crate::handler::{Outcome, Wake};
use crate::time::Timestamp;

/// A machine under way.
struct Play {
    machine: Machine,
    state: State,
    now: Timestamp,
    /// Entries that have not ended, by path.
    running: BTreeMap<String, Entry>,
    /// Checks that were not answered.
    checks: Vec<(u64, usize)>,
    /// What it did since it was last looked at.
    log: String,
    /// How often the state was stored.
    stored: usize,
}

impl Play {
    fn new(machine: Machine) -> Self {
        Self {
            machine,
            state: State::default(),
            now: Timestamp::from_millis(0),
            running: BTreeMap::new(),
            checks: Vec::new(),
            log: String::new(),
            stored: 0,
        }
    }

    /// One that has been seen.
    fn begun(machine: Machine) -> Self {
        let mut play = Self::new(machine);
        play.observe();
        play
    }

    fn tell(&mut self, event: Event) {
        let state = std::mem::take(&mut self.state);
        let (state, actions) = apply(&self.machine, state, event, self.now);
        self.state = state;
        for action in actions {
            match action {
                Action::Abandon { token } => {
                    let is_it = |entry: &Entry| entry.token == token;
                    let path = self.running.iter().find(|(_, entry)| is_it(entry));
                    let path = path.expect("it is under way").0.clone();
                    self.running.remove(&path);
                    writeln!(self.log, "abandon {path}").unwrap();
                }
                Action::Persist => {
                    self.stored += 1;
                    writeln!(self.log, "persist").unwrap();
                }
                Action::Tell(notice) => writeln!(self.log, "{notice:?}").unwrap(),
                Action::Enter(entry) => {
                    let Entry {
                        path,
                        entry: number,
                        attempt,
                        cause,
                        ..
                    } = &*entry;
                    writeln!(self.log, "enter {path} {number}/{attempt} {cause:?}").unwrap();
                    let before = self.running.insert(path.clone(), *entry);
                    assert!(before.is_none(), "one entry at a time");
                }
                Action::Check { token, index } => {
                    writeln!(self.log, "check {index}").unwrap();
                    self.checks.push((token, index));
                }
            }
        }
    }

    fn observe(&mut self) {
        self.tell(Event::Observed {
            is_changed: false,
            is_cancelled: false,
        });
    }

    fn change(&mut self) {
        self.tell(Event::Observed {
            is_changed: true,
            is_cancelled: false,
        });
    }

    /// Lets the entry at this path end.
    #[track_caller]
    fn end(&mut self, path: &str, end: End) {
        let running = self.running.remove(path);
        let token = running
            .unwrap_or_else(|| panic!("{path} is not under way"))
            .token;
        self.tell(Event::Ended { token, end });
    }

    #[track_caller]
    fn done(&mut self, path: &str) {
        self.end(path, said(Outcome::Done));
    }

    #[track_caller]
    fn fail(&mut self, path: &str) {
        self.end(path, failed("oh no", false));
    }

    #[track_caller]
    fn fail_for_good(&mut self, path: &str) {
        self.end(path, failed("oh no", true));
    }

    /// Lets so many seconds go by, with a tick whenever one is due.
    fn pass(&mut self, seconds: u64) {
        let until = self.now.after(Duration::from_secs(seconds));
        while let Some(at) = deadline(&self.machine, &self.state).filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.tell(Event::Tick);
        }
        self.now = until;
    }

    fn command(&mut self, uid: &str, verb: Verb) {
        let requester = Requester {
            name: "ann".to_owned(),
            is_verified: true,
        };
        self.tell(Event::Command(Command {
            uid: uid.to_owned(),
            requester,
            verb,
        }));
    }

    /// The host has gone, with all that was under way, and another has the state.
    fn crash(&mut self) {
        self.running.clear();
        self.checks.clear();
        self.tell(Event::Recovered);
    }

    fn take_log(&mut self) -> String {
        std::mem::take(&mut self.log)
    }

    fn node(&self, path: &str) -> NodeState {
        self.state.node(path).cloned().unwrap_or_default()
    }
}

/// What it did since it was last looked at.
#[track_caller]
fn check(play: &mut Play, expected: Expect) {
    expected.assert_eq(&play.take_log());
}

fn skip(node: &str) -> Verb {
    Verb::Skip {
        node: node.into(),
        reason: "by hand".into(),
    }
}

fn said(outcome: Outcome) -> End {
    End::Output(Box::new(LeafOutput {
        outcome,
        ..LeafOutput::default()
    }))
}

fn failed(message: &str, is_fatal: bool) -> End {
    End::Failed(LeafFailure {
        error: NodeError::new(message),
        is_fatal,
        is_unknown: false,
        retry_after: None,
    })
}

fn again(seconds: u64) -> End {
    said(Outcome::Again(Some(Duration::from_secs(seconds))))
}

fn wait_for(signal: &str) -> End {
    said(Outcome::Wait(Wake {
        signals: vec![signal.to_owned()],
        ..Wake::default()
    }))
}

fn leaf(name: &str) -> Node {
    Node::leaf(name)
}

fn serial(name: &str, children: Vec<Node>) -> Node {
    Node::new(name, NodeKind::Serial(children))
}

fn parallel(name: &str, children: Vec<Node>) -> Node {
    Node::new(name, NodeKind::Parallel(children))
}

fn flow(name: &str, steps: Vec<Node>) -> Flow {
    Flow {
        name: name.to_owned(),
        recover_from: RecoverFrom::FailedStep,
        when_unfinished: WhenUnfinished::Finish,
        steps,
    }
}

fn flow_node(flow: Flow) -> Node {
    Node::new(flow.name.clone(), NodeKind::Flow(Arc::new(flow)))
}

/// An active phase with this tree, whose name the tree takes.
fn active(name: &str, tree: Option<Node>, on_done: &str, on_error: &str) -> Phase {
    let to = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Phase {
        name: name.to_owned(),
        kind: PhaseKind::Active {
            tree: tree.map(|tree| Node {
                name: name.to_owned(),
                ..tree
            }),
            on_done: to(on_done),
            on_error: to(on_error),
        },
        parameters: None,
        upkeep: None,
    }
}

fn stable(name: &str, checks: &[(&str, &str)]) -> Phase {
    let check = |(when, to): &(&str, &str)| Check {
        when: When::Expression((*when).to_owned()),
        to: (*to).to_owned(),
    };
    Phase {
        name: name.to_owned(),
        kind: PhaseKind::Stable(checks.iter().map(check).collect()),
        parameters: None,
        upkeep: None,
    }
}

fn terminal(name: &str) -> Phase {
    Phase {
        name: name.to_owned(),
        kind: PhaseKind::Terminal,
        parameters: None,
        upkeep: None,
    }
}

fn machine(phases: Vec<Phase>) -> Machine {
    let initial = phases.first().map(|phase| phase.name.clone());
    let requeue_after = Duration::from_secs(60);
    let error_codes = BTreeMap::new();
    Machine::new(
        initial.unwrap_or_default(),
        requeue_after,
        phases,
        error_codes,
    )
}

/// A machine with one phase that does something, `Work`, then `Done` or `Stopped`.
fn at_work(tree: Node) -> Machine {
    machine(vec![
        active("Work", Some(tree), "Done", "Stopped"),
        terminal("Done"),
        stable("Stopped", &[]),
    ])
}

fn with_retry(node: Node, threshold: Option<u32>, delay: Option<u64>) -> Node {
    let delay = delay.map(Duration::from_secs);
    Node {
        retry: NodeRetry { threshold, delay },
        ..node
    }
}
