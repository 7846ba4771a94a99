//! Answers that a scenario gives in the place of servers.

use std::sync::{Arc, Mutex};

use super::faults::lock;
use super::scenario::{ExtensionAnswer, HttpAnswer};

/// An answer that is given a number of times, or always.
pub(super) trait Limited: Clone {
    /// How often it is still given. `None`: always.
    fn left(&mut self) -> &mut Option<u32>;
}

impl Limited for HttpAnswer {
    fn left(&mut self) -> &mut Option<u32> {
        &mut self.times
    }
}

impl Limited for ExtensionAnswer {
    fn left(&mut self) -> &mut Option<u32> {
        &mut self.times
    }
}

/// The answers that are still to come, in the order of the scenario.
#[derive(Clone)]
pub(super) struct Answers<A>(Arc<Mutex<Vec<A>>>);

impl<A: Limited> Answers<A> {
    pub(super) fn new(answers: &[A]) -> Self {
        Self(Arc::new(Mutex::new(answers.to_vec())))
    }

    /// Returns the first answer that fits and was not given often enough.
    pub(super) fn next(&self, fits: impl Fn(&A) -> bool) -> Option<A> {
        lock(&self.0).iter_mut().find_map(|answer| {
            let is_next = *answer.left() != Some(0) && fits(answer);
            is_next.then(|| {
                if let Some(left) = answer.left() {
                    *left -= 1;
                }
                answer.clone()
            })
        })
    }
}
