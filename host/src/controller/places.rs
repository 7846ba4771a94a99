//! Places of runs, which are lent to others while a handler computes for long.

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
}

impl Place {
    /// Makes a call. If it is long, others may have the place meanwhile.
    pub(crate) async fn call<T>(&self, call: impl Future<Output = T>, clock: &SharedClock) -> T {
        let Some((ticket, lending)) = &self.lending else {
            return call.await;
        };
        let mut call = std::pin::pin!(call);
        tokio::select! {
            biased;
            returned = &mut call => return returned,
            () = clock.sleep(LONG) => {}
        }
        lending.tell(PlaceNews::Lent(*ticket));
        let returned = call.await;
        let (grant, granted) = oneshot::channel();
        lending.tell(PlaceNews::Reclaimed(*ticket, grant));
        // A worker that ends lets all its runs go on.
        let _ = granted.await;
        returned
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
