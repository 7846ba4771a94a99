//! Places of runs, which are lent to other runs while a handler computes for long or a large answer is read.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configurator_core::queue::Ticket;
use futures::FutureExt as _;
use futures::future::Shared;
use tokio::sync::oneshot;

use super::mailbox::Mailbox;
use crate::clock::SharedClock;

/// The time after which a call counts as long.
const LONG: Duration = Duration::from_millis(20);

/// The place of a run, or of a turn of a machine. A Configurator has as many as its `concurrency`. The entries of a machine share one, so it
/// is lent while all of them that are under way would lend it.
pub(crate) struct Place {
    is_suspect: bool,
    ticket: Ticket,
    lending: Arc<Lending>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Users that need the place now.
    active: usize,
    /// Users that do not: their handler computes, or they read a large answer.
    lenders: usize,
    held: Held,
}

#[derive(Default)]
enum Held {
    #[default]
    Yes,
    /// Others may have it.
    Lent,
    /// Users wait until this is granted.
    Reclaimed(Grant),
}

type Grant = Shared<oneshot::Receiver<()>>;

/// A run, or the entry of a machine, that uses a place. Dropping it ends the use.
pub(crate) struct PlaceUser(Arc<Place>);

/// News of places, for the worker.
pub(crate) type Lending = Mailbox<PlaceNews>;

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
    /// Creates the place of the run with this ticket. `is_suspect`: calls and requests of other runs of the Configurator go first.
    pub(crate) fn new(ticket: Ticket, is_suspect: bool, lending: Arc<Lending>) -> Arc<Self> {
        Arc::new(Self {
            is_suspect,
            ticket,
            lending,
            state: Mutex::default(),
        })
    }

    /// Begins to use the place. If it is lent, it is taken back.
    pub(crate) fn enter(self: &Arc<Self>) -> PlaceUser {
        let mut state = self.state();
        state.active = state.active.saturating_add(1);
        self.take_back(&mut state);
        PlaceUser(Arc::clone(self))
    }

    /// Notes that a user does not need the place for now.
    fn lend(&self) -> LentPlace<'_> {
        let mut state = self.state();
        state.active = state.active.saturating_sub(1);
        state.lenders = state.lenders.saturating_add(1);
        self.lend_if_unused(&mut state);
        LentPlace(self)
    }

    fn lend_if_unused(&self, state: &mut State) {
        let has_it = match &state.held {
            Held::Yes => true,
            Held::Lent => false,
            Held::Reclaimed(grant) => grant.peek().is_some(),
        };
        if has_it && state.active == 0 && state.lenders > 0 {
            state.held = Held::Lent;
            self.lending.post(PlaceNews::Lent(self.ticket));
        }
    }

    /// Users that wait for the place go on as well.
    fn take_back(&self, state: &mut State) {
        if !matches!(state.held, Held::Yes) {
            state.held = Held::Yes;
            self.lending.post(PlaceNews::TakenBack(self.ticket));
        }
    }

    /// Returns what a user waits for that needs the place again.
    fn reclaim(&self, state: &mut State) -> Option<Grant> {
        match &state.held {
            Held::Yes => None,
            Held::Reclaimed(grant) => Some(grant.clone()),
            Held::Lent => {
                let (grant, granted) = oneshot::channel();
                let granted = granted.shared();
                state.held = Held::Reclaimed(granted.clone());
                self.lending.post(PlaceNews::Reclaimed(self.ticket, grant));
                Some(granted)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lasts while a user does not need its place.
struct LentPlace<'a>(&'a Place);

impl LentPlace<'_> {
    /// Takes the place back at once.
    fn take_back(self) {
        let place = self.0;
        drop(self);
        place.take_back(&mut place.state());
    }

    /// Waits until the place is free.
    async fn reclaim(self) {
        let place = self.0;
        drop(self);
        let granted = place.reclaim(&mut place.state());
        if let Some(granted) = granted {
            // A worker that ends lets all its runs go on.
            let _ = granted.await;
            place.state().held = Held::Yes;
        }
    }
}

impl Drop for LentPlace<'_> {
    /// The user needs the place again, or ends.
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.active = state.active.saturating_add(1);
        state.lenders = state.lenders.saturating_sub(1);
    }
}

impl PlaceUser {
    /// Returns whether calls and requests of other runs of the Configurator go first.
    pub(crate) fn is_suspect(&self) -> bool {
        self.0.is_suspect
    }

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
        match lent {
            Some(lent) if has_reserve() => lent.take_back(),
            Some(lent) => lent.reclaim().await,
            None => {}
        }
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
        if let Some(lent) = lent {
            lent.take_back();
        }
        answered
    }

    /// Awaits `work`. If `slow` completes first, lends the place.
    async fn lend_if<T>(
        &self,
        slow: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> (T, Option<LentPlace<'_>>) {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return (done, None),
            () = slow => {}
        }
        let lent = self.0.lend();
        (work.await, Some(lent))
    }
}

impl Drop for PlaceUser {
    fn drop(&mut self) {
        let place = &self.0;
        let mut state = place.state();
        state.active = state.active.saturating_sub(1);
        place.lend_if_unused(&mut state);
        // The last user was stopped while it did not need the place. The turn of the machine goes on.
        if state.active == 0 && state.lenders == 0 {
            place.take_back(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::future::BoxFuture;
    use tokio::sync::Notify;

    use super::*;
    use crate::clock::SystemClock;

    fn place() -> (Arc<Place>, Arc<Lending>) {
        let lending = Arc::<Lending>::default();
        let place = Place::new(Ticket::default(), false, lending.clone());
        (place, lending)
    }

    /// Returns the names of the news, and what runs wait for. Dropping that lets them go on.
    fn news(lending: &Lending) -> (Vec<&'static str>, Vec<oneshot::Sender<()>>) {
        let mut grants = Vec::new();
        let mut names = Vec::new();
        for news in lending.take() {
            names.push(match news {
                PlaceNews::Lent(_) => "lent",
                PlaceNews::TakenBack(_) => {
                    // As the worker does.
                    grants.clear();
                    "taken back"
                }
                PlaceNews::Reclaimed(_, grant) => {
                    grants.push(grant);
                    "reclaimed"
                }
            });
        }
        (names, grants)
    }

    #[tokio::test]
    async fn requests_with_small_answers_keep_their_place() {
        let (place, lending) = place();
        place.enter().send(ready(()), pending()).await;
        assert_eq!(news(&lending).0, [""; 0]);
    }

    #[tokio::test]
    async fn requests_with_large_answers_lend_their_place_and_take_it_back() {
        let (place, lending) = place();
        let user = place.enter();
        let answered = Notify::new();
        let mut sending = Box::pin(user.send(answered.notified(), ready(())));
        assert!(sending.as_mut().now_or_never().is_none());
        assert_eq!(news(&lending).0, ["lent"]);
        answered.notify_one();
        sending.await;
        assert_eq!(news(&lending).0, ["taken back"]);
    }

    #[tokio::test]
    async fn a_long_call_waits_for_a_place_unless_its_run_has_the_reserve() {
        let clock: SharedClock = Arc::new(SystemClock);
        for has_reserve in [false, true] {
            let (place, lending) = place();
            let user = place.enter();
            let returns = Notify::new();
            let mut call = Box::pin(user.call(returns.notified(), &clock, || has_reserve));
            let lent = tokio::select! {
                lent = lending.next() => lent,
                () = &mut call => panic!("it has not returned"),
            };
            assert!(matches!(lent[..], [PlaceNews::Lent(_)]));
            returns.notify_one();
            let is_over = call.as_mut().now_or_never().is_some();
            assert_eq!(is_over, has_reserve);
            let expected = if has_reserve {
                "taken back"
            } else {
                "reclaimed"
            };
            let (names, grants) = news(&lending);
            assert_eq!(names, [expected]);
            drop(grants);
            assert!(has_reserve || call.now_or_never().is_some());
        }
    }

    /// What an entry of a machine does next.
    #[derive(Clone, Copy)]
    enum Do {
        Enter,
        Lend,
        /// Waits for the place.
        Reclaim,
        TakeBack,
        /// Ends, wherever it is.
        End,
    }

    /// Lets entries that share a place do these things, in order. Checks the news, and which entries wait for the place at the end.
    #[track_caller]
    fn check(acts: &[(usize, Do)], expected: &[&str], expected_waits: &[usize]) {
        let (place, lending) = place();
        let mut users: [Option<PlaceUser>; 3] = Default::default();
        let mut lent: [Option<LentPlace<'_>>; 3] = Default::default();
        let mut waits: [Option<BoxFuture<'_, ()>>; 3] = Default::default();
        for (entry, act) in acts {
            match act {
                Do::Enter => users[*entry] = Some(place.enter()),
                Do::Lend => lent[*entry] = Some(place.lend()),
                Do::TakeBack => lent[*entry].take().unwrap().take_back(),
                Do::Reclaim => {
                    let mut wait = lent[*entry].take().unwrap().reclaim().boxed();
                    if wait.as_mut().now_or_never().is_none() {
                        waits[*entry] = Some(wait);
                    }
                }
                Do::End => {
                    waits[*entry] = None;
                    lent[*entry] = None;
                    users[*entry] = None;
                }
            }
        }
        let (names, grants) = news(&lending);
        assert_eq!(names, expected);
        let waits = waits.into_iter().enumerate();
        let mut waiting: Vec<_> = waits
            .filter_map(|(entry, wait)| Some((entry, wait?)))
            .filter_map(|(entry, mut wait)| {
                wait.as_mut()
                    .now_or_never()
                    .is_none()
                    .then_some((entry, wait))
            })
            .collect();
        let entries: Vec<usize> = waiting.iter().map(|(entry, _)| *entry).collect();
        assert_eq!(entries, expected_waits);
        drop(grants);
        for (_, wait) in &mut waiting {
            assert!(wait.now_or_never().is_some());
        }
    }

    #[test]
    fn entries_lend_their_place_while_none_of_them_needs_it() {
        use Do::{End, Enter, Lend, Reclaim, TakeBack};
        let both = [(0, Enter), (1, Enter)];
        let with = |acts: &[(usize, Do)]| [&both, acts].concat();
        check(&with(&[(0, Lend)]), &[], &[]);
        check(&with(&[(0, Lend), (1, Lend)]), &["lent"], &[]);
        // The place is needed once, and granted to all that wait.
        let reclaimed = with(&[(0, Lend), (1, Lend), (0, Reclaim), (1, Reclaim)]);
        check(&reclaimed, &["lent", "reclaimed"], &[0, 1]);
        // One that must not wait lets the others go on.
        let taken = with(&[(0, Lend), (1, Lend), (0, Reclaim), (1, TakeBack)]);
        check(&taken, &["lent", "reclaimed", "taken back"], &[]);
        // One that begins needs it.
        let entered = with(&[(0, Lend), (1, Lend), (2, Enter)]);
        check(&entered, &["lent", "taken back"], &[]);
        // The last one that needed it has ended.
        check(&with(&[(0, Lend), (1, End)]), &["lent"], &[]);
        // All have ended, and the turn goes on.
        let ended = with(&[(0, Lend), (1, Lend), (0, End), (1, End)]);
        check(&ended, &["lent", "taken back"], &[]);
        // The one that waits is stopped. The other gets what was granted.
        let stopped = with(&[(0, Lend), (1, Lend), (0, Reclaim), (0, End), (1, Reclaim)]);
        check(&stopped, &["lent", "reclaimed"], &[1]);
    }
}
