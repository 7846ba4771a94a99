//! Whether a history of calls can be told as one call after another (Wing and Gong's search, with Lowe's memory of where it has been).

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// What a store does if it is asked one thing after another.
pub trait Model: Clone + Default + Eq + Hash {
    type Operation: Clone + Debug;
    type Answer: Clone + Debug;

    /// The state after an operation, if it may answer this. Without an answer nobody knows what it said, only that it was done.
    fn step(&self, operation: &Self::Operation, answer: Option<&Self::Answer>) -> Option<Self>;
}

/// A call, between two times. None can be at the same time as another's.
#[derive(Debug, Clone)]
pub struct Call<O, A> {
    pub operation: O,
    pub called: u64,
    pub ended: u64,
    /// Without an answer it may have been done in this time, or never.
    pub answer: Option<A>,
}

type CallOf<M> = Call<<M as Model>::Operation, <M as Model>::Answer>;

/// Whether there is an order of the calls that a model allows, in which each is between its two times.
pub fn is_linearizable<M: Model>(calls: &[CallOf<M>]) -> bool {
    assert!(calls.len() <= 128, "{} calls", calls.len());
    search(&M::default(), calls, 0, &mut HashSet::new())
}

fn search<M: Model>(
    state: &M,
    calls: &[CallOf<M>],
    done: u128,
    known: &mut HashSet<(u128, M)>,
) -> bool {
    let is_done = |at: usize| done & (1 << at) != 0;
    let left = || (0..calls.len()).filter(|at| !is_done(*at));
    // Whatever comes next was called before any other had to be done, and had not ended when the last one was called.
    let Some(first_end) = left()
        .filter(|at| calls[*at].answer.is_some())
        .map(|at| calls[at].ended)
        .min()
    else {
        return true;
    };
    if !known.insert((done, state.clone())) {
        return false;
    }
    let last_called = (0..calls.len())
        .filter(|at| is_done(*at))
        .map(|at| calls[at].called)
        .max()
        .unwrap_or_default();
    left().any(|at| {
        let call = &calls[at];
        call.called <= first_end
            && call.ended >= last_called
            && state
                .step(&call.operation, call.answer.as_ref())
                .is_some_and(|next| search(&next, calls, done | 1 << at, known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One number: `Some` writes it, `None` reads it.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
    struct Number(u8);

    impl Model for Number {
        type Operation = Option<u8>;
        type Answer = u8;

        fn step(&self, operation: &Option<u8>, answer: Option<&u8>) -> Option<Self> {
            let next = operation.unwrap_or(self.0);
            answer
                .is_none_or(|answer| *answer == next)
                .then_some(Self(next))
        }
    }

    fn check(calls: &[(Option<u8>, u64, u64, Option<u8>)], expected: bool) {
        let calls: Vec<_> = calls
            .iter()
            .map(|&(operation, called, ended, answer)| Call {
                operation,
                called,
                ended,
                answer,
            })
            .collect();
        assert_eq!(is_linearizable::<Number>(&calls), expected, "{calls:?}");
    }

    #[test]
    fn an_acknowledged_write_is_read_from_then_on() {
        check(&[(Some(1), 1, 2, Some(1)), (None, 3, 4, Some(1))], true);
        check(&[(Some(1), 1, 2, Some(1)), (None, 3, 4, Some(0))], false);
        // While it is under way, both are right, but not the old one after the new one.
        let write = (Some(1), 1, 6, Some(1));
        check(&[write, (None, 2, 3, Some(0)), (None, 4, 5, Some(1))], true);
        check(
            &[write, (None, 2, 3, Some(1)), (None, 4, 5, Some(0))],
            false,
        );
    }

    #[test]
    fn an_unknown_write_is_there_or_not_but_does_not_come_after_its_end() {
        let write = (Some(1), 1, 2, None);
        check(&[write, (None, 3, 4, Some(0))], true);
        check(&[write, (None, 3, 4, Some(1))], true);
        check(
            &[write, (None, 3, 4, Some(0)), (None, 5, 6, Some(1))],
            false,
        );
        let open = (Some(1), 1, u64::MAX, None);
        check(&[open, (None, 3, 4, Some(0)), (None, 5, 6, Some(1))], true);
        check(&[open, (None, 3, 4, Some(1)), (None, 5, 6, Some(0))], false);
    }
}
