//! Polls several sources fairly.

use std::task::{Context, Poll};

/// Polls one source. Where it has no item, it has the context woken when it gets one.
pub type Source<'a, T> = &'a mut (dyn FnMut(&mut Context<'_>) -> Poll<T> + Send);

/// Polls sources in turn, each time beginning after the one that was ready last. So a source that is always ready
/// delays every other one by at most one item of each, and the order depends on nothing but what is ready.
#[derive(Debug, Default)]
pub struct RoundRobin {
    first: usize,
}

impl RoundRobin {
    /// Returns the item of the first source that has one.
    pub fn poll<T, const N: usize>(
        &mut self,
        context: &mut Context<'_>,
        mut sources: [Source<'_, T>; N],
    ) -> Poll<T> {
        for step in 0..N {
            let at = (self.first + step) % N;
            if let Some(source) = sources.get_mut(at)
                && let Poll::Ready(item) = source(context)
            {
                self.first = (at + 1) % N;
                return Poll::Ready(item);
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// The items of `count` polls, where the sources named in `ready` are always ready.
    fn polled(ready: [bool; 3], count: usize) -> String {
        let mut turns = RoundRobin::default();
        let source = |at: usize, name: char| {
            move |_: &mut Context<'_>| match ready[at] {
                true => Poll::Ready(name),
                false => Poll::Pending,
            }
        };
        let items = (0..count).map(|_| {
            let mut context = Context::from_waker(Waker::noop());
            let sources: [Source<'_, char>; 3] = [
                &mut source(0, 'a'),
                &mut source(1, 'b'),
                &mut source(2, 'c'),
            ];
            match turns.poll(&mut context, sources) {
                Poll::Ready(name) => name,
                Poll::Pending => '-',
            }
        });
        items.collect()
    }

    #[test]
    fn sources_that_are_always_ready_alternate() {
        assert_eq!(polled([true, true, true], 7), "abcabca");
        assert_eq!(polled([true, false, true], 5), "acaca");
    }

    #[test]
    fn one_source_alone_is_polled_each_time() {
        assert_eq!(polled([false, true, false], 3), "bbb");
        assert_eq!(polled([false, false, false], 2), "--");
    }
}
