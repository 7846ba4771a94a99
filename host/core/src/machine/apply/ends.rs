//! The end of an entry.

use std::time::Duration;

use super::Engine;
use super::turns::Place;
use crate::handler::{Cause, Outcome, Signal, Wake};
use crate::machine::action::Notice;
use crate::machine::event::{End, LeafFailure, LeafOutput};
use crate::machine::phase::Remedy;
use crate::machine::state::{NodeError, NodeState, RemedyState, State, Turn};
use crate::machine::tree::{Node, NodeKind, NodeRetry};
use crate::time::Timestamp;

/// A leaf whose entry is under way.
pub(super) struct Running {
    pub(super) path: String,
    retry: NodeRetry,
    is_once: bool,
}

impl<'m> Engine<'m> {
    /// The leaf whose entry has this token.
    pub(super) fn running(&self, token: u64) -> Option<Running> {
        fn find(node: &Node, state: &NodeState, place: &Place, token: u64) -> Option<Running> {
            let below = place.below(node, state);
            if let NodeKind::Leaf { once, .. } = node.kind {
                let is_it =
                    matches!(state.leaf.turn, Turn::Running { token: of, .. } if of == token);
                return is_it.then_some(Running {
                    path: below.path,
                    retry: below.retry,
                    is_once: once,
                });
            }
            node.children().iter().find_map(|child| {
                let state = state.children.get(&child.name)?;
                find(child, state, &below.child(child), token)
            })
        }
        let tree = self.tree(&self.state.phase)?;
        let root = self.state.root()?;
        find(tree, root, &Place::root(tree, root.visit), token)
    }

    pub(super) fn ended(&mut self, token: u64, end: End) {
        let Some(running) = self.running(token) else {
            return;
        };
        self.is_dirty = true;
        let mut next = None;
        match end {
            End::Failed(failure) => self.failed(&running, failure),
            End::Output(output) => next = self.answered(&running, *output),
        }
        if self.state.next.is_none() {
            self.state.next = next;
        }
        self.settle();
    }

    /// The phase that the handler names.
    fn answered(&mut self, running: &Running, output: LeafOutput) -> Option<String> {
        let fatal = |message: String| LeafFailure {
            error: NodeError::new(message),
            is_fatal: true,
            is_unknown: false,
            retry_after: None,
        };
        let LeafOutput {
            outcome,
            next,
            data,
            progress,
            output,
            details,
            args,
        } = output;
        if let Some(next) = &next
            && self.machine.phase(next).is_none()
        {
            let message = format!("`next` names {next:?}, which is none of the phases");
            self.failed(running, fatal(message));
            return None;
        }
        let now = self.now;
        let leaf = State::node_mut(&mut self.state.nodes, &running.path)?;
        let goes_on = matches!(outcome, Outcome::Again(_) | Outcome::Wait(_));
        let is_remedy = leaf.leaf.remedy.is_some();
        if let Some(remedy) = &mut leaf.leaf.remedy {
            remedy.data = data.or(remedy.data.take());
            remedy.again = remedy.again.saturating_add(u32::from(goes_on));
        } else {
            // What it does not speak of stays.
            let state = &mut leaf.leaf;
            state.data = data.or(state.data.take());
            state.progress = progress.or(state.progress.take());
            state.output = output.or(state.output.take());
            state.details = details.or(state.details.take());
            state.args = args;
        }
        if !is_remedy && goes_on {
            leaf.mend();
            leaf.leaf.entry = leaf.leaf.entry.saturating_add(1);
        }
        match outcome {
            Outcome::Failed(error) => {
                let failure = LeafFailure {
                    error: NodeError::from(&error),
                    is_fatal: error.fatal,
                    is_unknown: false,
                    retry_after: error.retry_after,
                };
                self.failed(running, failure);
            }
            Outcome::Stop => {
                let message = "the outcome `stop` is not valid outside a pipeline";
                self.failed(running, fatal(message.to_owned()));
                return None;
            }
            Outcome::Done if is_remedy => {
                leaf.leaf.remedy = None;
                leaf.leaf.failures = 0;
                leaf.leaf.turn = Turn::Ready(Cause::Retry);
            }
            Outcome::Done => {
                leaf.mend();
                leaf.done = true;
                leaf.end_time = Some(now);
                leaf.leaf.turn = Turn::Idle;
                leaf.leaf.seen.clear();
                let start = leaf.start_time;
                self.step_ended(&running.path, start, None);
            }
            Outcome::Again(after) => {
                let at = now.after(after.unwrap_or_default());
                let cause = Cause::Again;
                leaf.leaf.turn = match at <= now {
                    true => Turn::Ready(cause),
                    false => Turn::Due { at, cause },
                };
            }
            Outcome::Wait(wake) => {
                let seen = &mut leaf.leaf.seen;
                seen.retain(|seen| wake.objects.contains(&seen.object));
                let is_awaited = |signal: &Signal| wake.signals.contains(&signal.name);
                let early = self.state.signals.iter().position(is_awaited);
                leaf.leaf.turn = match early {
                    Some(at) => {
                        leaf.leaf.signal = Some(self.state.signals.remove(at));
                        Turn::Ready(Cause::Again)
                    }
                    None => waiting(wake, now),
                };
            }
        }
        next
    }

    fn failed(&mut self, running: &Running, failure: LeafFailure) {
        let machine = self.machine;
        let now = self.now;
        let path = &running.path;
        let again_at = now.after(self.wait(running.retry, failure.retry_after));
        let Some(leaf) = State::node_mut(&mut self.state.nodes, path) else {
            return;
        };
        let is_sent = matches!(leaf.leaf.turn, Turn::Running { is_sent: true, .. });
        // It is never sent a second time, whatever went wrong.
        let is_spent_once = running.is_once && is_sent;
        leaf.leaf.turn = Turn::Idle;
        leaf.failed = true;
        let LeafFailure {
            mut error,
            is_fatal,
            is_unknown,
            retry_after: _,
        } = failure;
        if is_unknown {
            leaf.lose(now);
            let path = path.clone();
            return self.notices.push(Notice::OutcomeUnknown { path });
        }
        let remedied = leaf.leaf.remedy.take();
        if remedied.is_none() {
            leaf.leaf.failures = leaf.leaf.failures.saturating_add(1);
        } else {
            let first = leaf.error().unwrap_or_default();
            error.message = format!("{first}; the remedy failed: {}", error.message);
            error.code = remedied.as_ref().map(|remedy| remedy.code.clone());
        }
        let rule = error
            .code
            .as_ref()
            .and_then(|code| Some((code, machine.error_codes.get(code)?)));
        leaf.errors = vec![error.clone()];
        let failures = leaf.leaf.failures;
        if let Some((code, rule)) = rule {
            let used = leaf.leaf.remedies.get(code).copied().unwrap_or_default();
            match rule.remedy {
                Remedy::Handler { attempts, .. } if used < attempts && !is_spent_once => {
                    leaf.leaf.remedies.insert(code.clone(), used + 1);
                    leaf.leaf.remedy = Some(RemedyState {
                        code: code.clone(),
                        ..RemedyState::default()
                    });
                    let cause = Cause::Retry;
                    leaf.leaf.turn = match remedied {
                        None => Turn::Ready(cause),
                        // One that has failed waits like any other.
                        Some(_) => Turn::Due {
                            at: again_at,
                            cause,
                        },
                    };
                    return self.step_failed(path, &error, failures);
                }
                Remedy::Handler { .. } | Remedy::Manual => {
                    let notice = Notice::ActionNeeded {
                        path: path.clone(),
                        code: code.clone(),
                        guidance: rule.guidance.clone(),
                    };
                    self.notices.push(notice);
                    return self.fail_for_good(path, error);
                }
            }
        }
        let is_spent = running
            .retry
            .threshold
            .is_some_and(|threshold| failures >= threshold);
        if is_fatal || is_spent_once {
            return self.fail_for_good(path, error);
        }
        if is_spent {
            error.message = format!("still failing after {failures} attempts: {}", error.message);
            return self.fail_for_good(path, error);
        }
        self.in_tree(|engine, _, root| engine.call_off(root, Some(again_at)));
        if let Some(leaf) = State::node_mut(&mut self.state.nodes, path) {
            leaf.leaf.turn = Turn::Due {
                at: again_at,
                cause: Cause::Retry,
            };
        }
        self.step_failed(path, &error, failures);
    }

    fn wait(&self, retry: NodeRetry, asked: Option<Duration>) -> Duration {
        asked.or(retry.delay).unwrap_or(self.machine.requeue_after)
    }

    fn fail_for_good(&mut self, path: &str, error: NodeError) {
        let now = self.now;
        let Some(leaf) = State::node_mut(&mut self.state.nodes, path) else {
            return;
        };
        let (start, message) = (leaf.start_time, error.message.clone());
        leaf.break_off(error, now);
        self.step_ended(path, start, Some(message));
    }

    fn step_failed(&mut self, path: &str, error: &NodeError, failures: u32) {
        self.notices.push(Notice::StepFailed {
            path: path.to_owned(),
            error: error.message.clone(),
            failures,
        });
    }

    pub(super) fn step_ended(
        &mut self,
        path: &str,
        start: Option<Timestamp>,
        error: Option<String>,
    ) {
        self.notices.push(Notice::StepEnded {
            path: path.to_owned(),
            error,
            took: start.map(|start| self.now.since(start)).unwrap_or_default(),
        });
    }
}

fn waiting(wake: Wake, now: Timestamp) -> Turn {
    Turn::Waiting {
        until: wake.after.map(|after| now.after(after)),
        signals: wake.signals,
        objects: wake.objects,
    }
}
