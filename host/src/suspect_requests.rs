//! The limit on the requests that suspects of a Configurator have under way together.
//!
//! A server answers requests in about the order in which they arrive, so a request of another run waits behind those of suspects. The limit
//! keeps these few, however many suspects run and however many requests each of them makes. A few requests that follow each other at once
//! can still keep a fast server busy, so each is followed by a rest.

use std::time::Duration;

use configurator_core::request::SinkName;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::answers::RunAnswers;
use crate::clock::Clock;

/// How many requests at the start of each plan do not count. An object can be a suspect only because its last run failed. A run of it that makes
/// few requests does not wait for a run that makes very many.
const UNLIMITED: usize = 16;
/// The length of the rest after a request, as a multiple of the time that the request took. With a fast server, the requests of suspects are under
/// way for a quarter of the time. As long a rest as the request was too short: the writer of an embedded store stayed busy half of the time.
const REST: u32 = 3;
/// The longest rest after a request. A server that takes longer to answer is not kept busy by a few requests at a time.
const MAX_REST: Duration = Duration::from_millis(30);

/// Limits the requests that suspects of a Configurator have under way together: for each sink, an eighth of the Configurator's `concurrency`,
/// and at least two. After its answer a request counts for three times as long as it took, but for no more than 30 ms. The first 16 requests of
/// each plan do not count.
pub struct SuspectRequests {
    width: usize,
    kubernetes: Semaphore,
    configstore: Semaphore,
    secretstore: Semaphore,
    http: Semaphore,
    extension: Semaphore,
}

impl SuspectRequests {
    /// Creates the limit for a Configurator with this `concurrency`.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        let width = (concurrency / 8).max(2).min(concurrency.max(1));
        let semaphore = || Semaphore::new(width);
        Self {
            width,
            kubernetes: semaphore(),
            configstore: semaphore(),
            secretstore: semaphore(),
            http: semaphore(),
            extension: semaphore(),
        }
    }

    /// Returns how many requests one run of a suspect has under way at a time.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// Waits until the request with this index in its plan may be sent to the sink. It counts until the result is dropped, which is to be after
    /// a [`rest`].
    ///
    /// A run that has the reserve of `answers`, or gets it meanwhile, does not wait: requests that count may wait for the reserve. For the
    /// same reason a request must not hold room for its answer while it waits here.
    pub(crate) async fn begin(
        &self,
        index: usize,
        sink: SinkName,
        answers: &RunAnswers,
    ) -> Option<SemaphorePermit<'_>> {
        if index < UNLIMITED {
            return None;
        }
        tokio::select! {
            biased;
            () = answers.obtained_reserve() => None,
            // It is never closed.
            permit = self.semaphore(sink).acquire() => permit.ok(),
        }
    }

    const fn semaphore(&self, sink: SinkName) -> &Semaphore {
        match sink {
            SinkName::Kubernetes => &self.kubernetes,
            SinkName::Configstore => &self.configstore,
            SinkName::Secretstore => &self.secretstore,
            SinkName::Http => &self.http,
            SinkName::Extension => &self.extension,
        }
    }
}

/// Rests after a request that counts and took this long. Clocks count milliseconds, so the rests after requests that take less have the right
/// length on average.
pub(crate) async fn rest(clock: &dyn Clock, took: Duration) {
    if !took.is_zero() {
        clock.sleep(took.saturating_mul(REST).min(MAX_REST)).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::answers::{AnswerBudget, LEAST_ANSWER_MEMORY};

    const MIB: u64 = 1 << 20;
    const SINK: SinkName = SinkName::Configstore;

    #[test]
    fn the_limit_is_an_eighth_of_the_concurrency_and_at_least_two() {
        let width = |concurrency| SuspectRequests::new(concurrency).width();
        assert_eq!([1, 2, 4, 32, 1024].map(width), [1, 2, 2, 4, 128]);
    }

    #[tokio::test]
    async fn suspects_share_a_few_requests_of_each_sink_beyond_the_first_of_each_plan() {
        let limit = SuspectRequests::new(16);
        let answers = AnswerBudget::new(0).run();
        let begin = |index, sink| limit.begin(index, sink, &answers).now_or_never();
        let first = begin(16, SINK).unwrap();
        let second = begin(17, SINK).unwrap();
        assert!(begin(18, SINK).is_none());
        assert!(begin(15, SINK).unwrap().is_none());
        assert!(begin(18, SinkName::Http).unwrap().is_some());
        drop(first);
        assert!(begin(18, SINK).unwrap().is_some());
        drop(second);
    }

    #[tokio::test]
    async fn a_run_that_gets_the_reserve_of_answers_no_longer_waits() {
        let limit = SuspectRequests::new(16);
        let budget = AnswerBudget::new(LEAST_ANSWER_MEMORY);
        let (other, run) = (budget.run(), budget.run());
        let held = [
            limit.begin(16, SINK, &other).await,
            limit.begin(17, SINK, &other).await,
        ];
        let full = other.begin().await.unwrap();
        full.fit(16 * MIB).await.unwrap();
        let mut waits = Box::pin(limit.begin(16, SINK, &run));
        assert!(waits.as_mut().now_or_never().is_none());
        let room = run.begin().await.unwrap();
        assert!(run.has_reserve());
        assert!(waits.now_or_never().unwrap().is_none());
        drop((room, held));
    }
}
