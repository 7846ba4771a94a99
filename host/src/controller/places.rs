//! Places of runs, which are lent to other runs while a handler computes for long or a large answer is read.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configurator_core::queue::Ticket;
use tokio::sync::{Notify, oneshot};

use crate::clock::SharedClock;

/// The time after which a call counts as long.
const LONG: Duration = Duration::from_millis(20);

/// The place of a run. A Configurator has as many as its `concurrency`.
#[derive(Clone)]
pub(crate) struct Place {
    /// Whether calls and requests of other runs of the Configurator go first.
    pub(crate) is_suspect: bool,
    /// `None`: the place is never lent.
    pub(crate) lending: Option<(Ticket, Arc<Lending>)>,
}

/// News of places, for the worker.
#[derive(Default)]
pub(crate) struct Lending {
    news: Mutex<Vec<PlaceNews>>,
    changed: Notify,
}

/// What happens to the place of a run.
pub(crate) enum PlaceNews {
    /// Others may have it.
    Lent(Ticket),
    /// The run needs a place again, and goes on when this is sent, or dropped.
    Reclaimed(Ticket, oneshot::Sender<()>),
    /// The run has gone on, whether or not a place was free.
    TakenBack(Ticket),
}

impl Place {
    /// Makes a call. If it takes longer than 20 ms, the place is lent until it returns. The run then waits for a free place, unless `has_reserve`
    /// returns true: a run with the reserve of [answers](crate::answers) must not wait for the runs that wait for the reserve.
    pub(crate) async fn call<T>(
        &self,
        call: impl Future<Output = T>,
        clock: &SharedClock,
        has_reserve: impl FnOnce() -> bool,
    ) -> T {
        let is_long = async { clock.sleep(LONG).await };
        let (returned, lent) = self.lend_if(is_long, call).await;
        let Some((ticket, lending)) = lent else {
            return returned;
        };
        if has_reserve() {
            lending.tell(PlaceNews::TakenBack(*ticket));
            return returned;
        }
        let (grant, granted) = oneshot::channel();
        lending.tell(PlaceNews::Reclaimed(*ticket, grant));
        // A worker that ends lets all its runs go on.
        let _ = granted.await;
        returned
    }

    /// Sends requests. If `slow` completes before they are answered, the place is lent until they are. The run then takes it back without
    /// waiting, because others may wait for the room that its answers hold.
    pub(crate) async fn send<T>(
        &self,
        sending: impl Future<Output = T>,
        slow: impl Future<Output = ()>,
    ) -> T {
        let (answered, lent) = self.lend_if(slow, sending).await;
        if let Some((ticket, lending)) = lent {
            lending.tell(PlaceNews::TakenBack(*ticket));
        }
        answered
    }

    /// Awaits `work`. If `slow` completes first, lends the place, and also returns the run's ticket and where to reclaim the place.
    async fn lend_if<T>(
        &self,
        slow: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> (T, Option<&(Ticket, Arc<Lending>)>) {
        let Some(lending) = &self.lending else {
            return (work.await, None);
        };
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return (done, None),
            () = slow => {}
        }
        lending.1.tell(PlaceNews::Lent(lending.0));
        (work.await, Some(lending))
    }
}

impl Lending {
    fn tell(&self, news: PlaceNews) {
        self.news().push(news);
        self.changed.notify_one();
    }

    fn news(&self) -> MutexGuard<'_, Vec<PlaceNews>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for news. Dropping the future loses none.
    pub(crate) async fn next(&self) -> Vec<PlaceNews> {
        loop {
            let news = std::mem::take(&mut *self.news());
            if !news.is_empty() {
                return news;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt as _;
    use tokio::sync::Notify;

    use super::*;
    use crate::clock::SystemClock;

    fn place() -> (Place, Arc<Lending>) {
        let lending = Arc::<Lending>::default();
        let place = Place {
            is_suspect: false,
            lending: Some((Ticket::default(), lending.clone())),
        };
        (place, lending)
    }

    #[tokio::test]
    async fn requests_with_small_answers_keep_their_place() {
        let (place, lending) = place();
        place.send(ready(()), pending()).await;
        assert!(lending.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn requests_with_large_answers_lend_their_place_and_take_it_back() {
        let (place, lending) = place();
        let answered = Notify::new();
        let mut sending = Box::pin(place.send(answered.notified(), ready(())));
        assert!(sending.as_mut().now_or_never().is_none());
        assert!(matches!(lending.next().await[..], [PlaceNews::Lent(_)]));
        answered.notify_one();
        sending.await;
        assert!(matches!(
            lending.next().await[..],
            [PlaceNews::TakenBack(_)]
        ));
    }

    #[tokio::test]
    async fn a_long_call_waits_for_a_place_unless_its_run_has_the_reserve() {
        let clock: SharedClock = Arc::new(SystemClock);
        for has_reserve in [false, true] {
            let (place, lending) = place();
            let returns = Notify::new();
            let mut call = Box::pin(place.call(returns.notified(), &clock, || has_reserve));
            let lent = tokio::select! {
                lent = lending.next() => lent,
                () = &mut call => panic!("it has not returned"),
            };
            assert!(matches!(lent[..], [PlaceNews::Lent(_)]));
            returns.notify_one();
            let is_over = call.as_mut().now_or_never().is_some();
            assert_eq!(is_over, has_reserve);
            let news = lending.next().await;
            let waits = matches!(news[..], [PlaceNews::Reclaimed(..)]);
            assert_eq!(waits, !has_reserve);
        }
    }
}
