//! When each request of a plan with the strategy `graph` may be sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::order::Order;

/// What is known of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// It was not sent.
    Unsent,
    /// It has succeeded, and what depends on it may be sent.
    Ready,
    /// It has succeeded, or waits for its object to exist, and what depends on it may not be sent yet.
    Unready,
    /// It has failed.
    Failed,
    /// It cannot be sent, because the step of this index has failed.
    Behind(usize),
}

/// Says which steps may be sent, as others end. Steps are named by their indexes. Of several that may be sent, the first comes first.
#[derive(Debug)]
pub struct Dispatch<'a> {
    order: &'a Order,
    states: Vec<StepState>,
    /// How many steps that each depends on are not ready.
    missing: Vec<usize>,
    free: BinaryHeap<Reverse<usize>>,
}

impl<'a> Dispatch<'a> {
    /// No step has been sent.
    #[must_use]
    pub fn new(order: &'a Order) -> Self {
        let number = order.sorted().len();
        let missing: Vec<usize> = (0..number)
            .map(|index| order.dependencies(index).len())
            .collect();
        let free = missing.iter().enumerate();
        let free = free.filter(|(_, missing)| **missing == 0);
        Self {
            order,
            states: vec![StepState::Unsent; number],
            free: free.map(|(index, _)| Reverse(index)).collect(),
            missing,
        }
    }

    /// Returns a step that may be sent, each once. `None`: none may be until another has ended.
    pub fn next_index(&mut self) -> Option<usize> {
        self.free.pop().map(|Reverse(index)| index)
    }

    /// A step has ended. What depends on one that has failed is not sent, however far behind it is.
    pub fn end(&mut self, index: usize, state: StepState) {
        if let Some(known) = self.states.get_mut(index) {
            *known = state;
        }
        match state {
            StepState::Ready => {
                for dependent in self.order.dependents(index) {
                    let Some(missing) = self.missing.get_mut(*dependent) else {
                        continue;
                    };
                    *missing -= 1;
                    if *missing == 0 {
                        self.free.push(Reverse(*dependent));
                    }
                }
            }
            StepState::Failed => self.cut_off(index),
            StepState::Unsent | StepState::Unready | StepState::Behind(_) => {}
        }
    }

    fn cut_off(&mut self, culprit: usize) {
        let mut behind = vec![culprit];
        while let Some(index) = behind.pop() {
            for dependent in self.order.dependents(index) {
                let Some(state) = self.states.get_mut(*dependent) else {
                    continue;
                };
                if *state == StepState::Unsent {
                    *state = StepState::Behind(culprit);
                    behind.push(*dependent);
                }
            }
        }
    }

    /// What is known of each step.
    #[must_use]
    pub fn states(&self) -> &[StepState] {
        &self.states
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::graph::order::Node;

    /// Plays a graph, given as `a>b` for "b depends on a", where the named steps end otherwise than ready. Each line has what was sent at a time.
    #[track_caller]
    fn check(names: &str, edges: &str, ends: &[(&str, StepState)], expected: Expect) {
        let names: Vec<&str> = names.split(' ').collect();
        let depends_on: Vec<Vec<String>> = names
            .iter()
            .map(|name| {
                let edges = edges.split(' ').filter_map(|edge| edge.split_once('>'));
                let own = edges.filter(|(_, to)| to == name);
                own.map(|(from, _)| from.to_owned()).collect()
            })
            .collect();
        let nodes = names.iter().zip(&depends_on);
        let order = Order::of(nodes.map(|(name, depends_on)| Node { name, depends_on })).unwrap();
        let mut dispatch = Dispatch::new(&order);
        let mut text = String::new();
        loop {
            let sent: Vec<usize> = std::iter::from_fn(|| dispatch.next_index()).collect();
            if sent.is_empty() {
                break;
            }
            let line: Vec<&str> = sent.iter().map(|index| names[*index]).collect();
            text.push_str(&format!("{}\n", line.join(" ")));
            for index in sent {
                let end = ends.iter().find(|(name, _)| *name == names[index]);
                dispatch.end(index, end.map_or(StepState::Ready, |(_, state)| *state));
            }
        }
        for (name, state) in names.iter().zip(dispatch.states()) {
            match state {
                StepState::Behind(culprit) => {
                    text.push_str(&format!("{name} is behind {}\n", names[*culprit]));
                }
                StepState::Ready => {}
                state => text.push_str(&format!("{name}: {state:?}\n")),
            }
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn each_is_sent_once_after_all_that_it_depends_on() {
        check(
            "d b c a e",
            "a>b a>c b>d c>d",
            &[],
            expect![[r#"
                a e
                b c
                d
            "#]],
        );
    }

    #[test]
    fn what_depends_on_one_that_is_not_ready_waits() {
        check(
            "a b c d",
            "a>b b>c",
            &[("b", StepState::Unready)],
            expect![[r#"
                a d
                b
                b: Unready
                c: Unsent
            "#]],
        );
    }

    #[test]
    fn what_is_behind_a_failure_is_not_sent_and_everything_else_is() {
        check(
            "a b c d e f",
            "a>b b>c d>c a>e",
            &[("b", StepState::Failed)],
            expect![[r#"
                a d f
                b e
                b: Failed
                c is behind b
            "#]],
        );
    }

    #[test]
    fn a_step_behind_two_failures_names_the_first() {
        check(
            "a b c",
            "a>c b>c",
            &[("a", StepState::Failed), ("b", StepState::Failed)],
            expect![[r#"
                a b
                a: Failed
                b: Failed
                c is behind a
            "#]],
        );
    }
}
