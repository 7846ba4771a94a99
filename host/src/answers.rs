//! Memory of answers: everything that servers have answered to runs that are under way counts in one budget.
//!
//! An answer takes room as it is read, and its run keeps that room until it ends, because the next phase is called with
//! the answer. So a run may hold room while it waits for more. That cannot lock runs against each other:
//!
//! - The budget has a part that all runs share, and one *reserve* that belongs to one run at a time.
//! - An answer that finds no room in the shared part waits, in order, for room there or for the reserve, whichever comes first.
//! - The run that has the reserve never waits for room: what does not fit into the shared part takes the reserve, and what does
//!   not fit there either is refused. So it ends or rests, and gives the reserve to the next run that waits.
//! - Runs that rest keep room for what they keep of their answers, in at most half of the shared part. One that finds no room does not rest, but
//!   ends, and begins again later.
//! - Nothing else that a run waits for is held by a run that waits for room: requests are sent while no call of a handler runs, so
//!   such a run has neither memory of guests nor a turn. It lends its place to other runs. A run that has the reserve never waits for a
//!   place, nor for other [suspects](crate::suspect_requests).

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use configurator_background::work::LARGE;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::result::Answer;
use configurator_guest::budget::{MemoryBudget, Reservation};
use configurator_guest::memory::Share;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::sinks::kubernetes::MAX_ANSWER;

/// Room of the reserve, in bytes: the largest answer fits.
const RESERVE: u64 = MAX_ANSWER as u64;
/// The least memory of answers, in bytes.
pub const LEAST_ANSWER_MEMORY: u64 = RESERVE + (16 << 20);
/// Memory of answers by default: an eighth of the memory that the process may have.
pub const ANSWER_MEMORY: Share = Share::new(8, LEAST_ANSWER_MEMORY);
/// Room that an answer takes before its size is known, in bytes.
const FIRST: u64 = 64 << 10;

/// The budget of answers. A clone is the same.
#[derive(Debug, Clone)]
pub struct AnswerBudget {
    shared: MemoryBudget,
    /// One unit. The run that holds it has the reserve.
    reserve: MemoryBudget,
    /// What runs that rest may have of the shared part.
    resting: MemoryBudget,
}

/// Room for the answers of a run that rests. Dropping it returns the room.
#[derive(Debug, Default)]
pub(crate) struct RestingAnswers {
    shared: Option<Reservation>,
    /// Of the part for runs that rest.
    _resting: Option<Reservation>,
}

impl AnswerBudget {
    /// A budget of so many bytes, and at least [`LEAST_ANSWER_MEMORY`].
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let shared = bytes.max(LEAST_ANSWER_MEMORY).saturating_sub(RESERVE);
        Self {
            shared: MemoryBudget::new(shared),
            reserve: MemoryBudget::new(1),
            resting: MemoryBudget::new(shared / 2),
        }
    }

    /// The room of a run, which is empty.
    #[must_use]
    pub(crate) fn run(&self) -> RunAnswers {
        self.resume(RestingAnswers::default())
    }

    /// The room of a run that rested, with what it kept.
    #[must_use]
    pub(crate) fn resume(&self, kept: RestingAnswers) -> RunAnswers {
        let held = Held {
            shared: kept.shared,
            ..Held::default()
        };
        RunAnswers(Arc::new(Run {
            budget: self.clone(),
            held: Mutex::new(held),
            changed: Notify::new(),
            slow: Notify::new(),
        }))
    }

    /// The bytes of the whole budget.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.shared.limit().saturating_add(RESERVE)
    }

    /// The bytes that answers hold in the shared part.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.reserved()
    }
}

/// The answers of a run, from when it begins until it ends or rests. A clone is the same; dropping the last returns the room.
#[derive(Debug, Clone)]
pub(crate) struct RunAnswers(Arc<Run>);

#[derive(Debug)]
struct Run {
    budget: AnswerBudget,
    held: Mutex<Held>,
    /// Signals that the run got the reserve.
    changed: Notify,
    /// Signals that an answer is large, or waits for room.
    slow: Notify,
}

#[derive(Debug, Default)]
struct Held {
    shared: Option<Reservation>,
    /// There while the run has the reserve.
    reserve: Option<Reservation>,
    in_reserve: u64,
}

impl RunAnswers {
    /// Waits for room for the first bytes of an answer.
    ///
    /// # Errors
    /// When the run has the reserve and that is full.
    pub(crate) async fn begin(&self) -> Result<AnswerRoom, Fault> {
        let room = AnswerRoom(Some(Arc::new(Room {
            run: self.0.clone(),
            bytes: Mutex::new(0),
        })));
        room.fit(FIRST).await?;
        Ok(room)
    }

    /// Completes when an answer takes long to read, because it is [large](LARGE) or has to wait for room. An earlier answer does not count. One
    /// after this call does, even if the future has not been polled.
    pub(crate) fn slow(&self) -> Notified<'_> {
        self.0.slow.notified()
    }

    /// Completes when the run has the reserve.
    pub(crate) async fn obtained_reserve(&self) {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.has_reserve() {
                return;
            }
            changed.await;
        }
    }

    /// Keeps room for so many bytes of answers until the run goes on, and returns what the run has beyond that. None if there is no room: all
    /// runs that rest together have at most half of the shared part. A run that keeps nothing can always rest.
    pub(crate) fn rest(&self, bytes: u64) -> Option<RestingAnswers> {
        if bytes == 0 {
            return Some(RestingAnswers::default());
        }
        let Run { budget, .. } = &*self.0;
        let resting = budget.resting.try_reserve(bytes)?;
        let mut held = self.0.held();
        let shared = match held.shared.take() {
            Some(mut shared) => {
                let more = bytes.saturating_sub(shared.bytes());
                if !shared.try_grow(more) {
                    held.shared = Some(shared);
                    return None;
                }
                shared.shrink_to(bytes);
                shared
            }
            None => budget.shared.try_reserve(bytes)?,
        };
        Some(RestingAnswers {
            shared: Some(shared),
            _resting: Some(resting),
        })
    }

    /// Returns whether the run has the reserve, for which others may wait.
    pub(crate) fn has_reserve(&self) -> bool {
        self.0.held().reserve.is_some()
    }
}

impl Run {
    /// Waits until the run has room for so many more bytes.
    async fn take(&self, more: u64) -> Result<(), Fault> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.try_take(more)? {
                return Ok(());
            }
            self.slow.notify_waiters();
            let Ok(reserve) = self.budget.reserve.reserve(1) else {
                return Err(refused(more));
            };
            let shared = async {
                match self.budget.shared.reserve(more) {
                    Ok(shared) => shared.await,
                    // It fits into the reserve alone.
                    Err(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                shared = shared => {
                    self.held().add(shared);
                    return Ok(());
                }
                reserve = reserve => {
                    self.held().reserve.get_or_insert(reserve);
                    self.changed.notify_waiters();
                }
                () = changed => {}
            }
        }
    }

    fn try_take(&self, more: u64) -> Result<bool, Fault> {
        let mut held = self.held();
        if let Some(shared) = self.budget.shared.try_reserve(more) {
            held.add(shared);
            return Ok(true);
        }
        if held.reserve.is_none() {
            return Ok(false);
        }
        let wanted = held.in_reserve.saturating_add(more);
        if wanted > RESERVE {
            return Err(refused(wanted));
        }
        held.in_reserve = wanted;
        Ok(true)
    }

    /// Returns room: that of the reserve first, because others wait for it.
    fn release(&self, bytes: u64) {
        let mut held = self.held();
        let from_reserve = bytes.min(held.in_reserve);
        held.in_reserve = held.in_reserve.saturating_sub(from_reserve);
        if held.in_reserve == 0 {
            held.reserve = None;
        }
        if let Some(shared) = &mut held.shared {
            let rest = bytes.saturating_sub(from_reserve);
            shared.shrink_to(shared.bytes().saturating_sub(rest));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn add(&mut self, more: Reservation) {
        match &mut self.shared {
            Some(shared) => shared.absorb(more),
            none => *none = Some(more),
        }
    }
}

/// The room of one answer. A sink asks for it before it reads; a sink of tests, or a probe, has one without a budget.
#[derive(Clone, Default)]
pub struct AnswerRoom(Option<Arc<Room>>);

struct Room {
    run: Arc<Run>,
    bytes: Mutex<u64>,
}

impl AnswerRoom {
    /// Waits until the answer has room for so many bytes in all. It takes twice what it has where that is more, so that it seldom
    /// waits.
    ///
    /// # Errors
    /// When the answers of the run are more than it may ever have.
    pub async fn fit(&self, bytes: u64) -> Result<(), Fault> {
        let Some(room) = &self.0 else {
            return Ok(());
        };
        if bytes > LARGE as u64 {
            room.run.slow.notify_waiters();
        }
        let has = room.bytes();
        if bytes > has {
            let wanted = bytes.max(has.saturating_mul(2)).min(RESERVE.max(bytes));
            let more = wanted.saturating_sub(has);
            room.run.take(more).await?;
            room.set(wanted);
        }
        Ok(())
    }

    /// Keeps room for this answer, until its run ends or rests, and returns the rest. An answer that was read without asking, by a
    /// store, waits here.
    pub(crate) async fn keep(&self, answer: &Answer) -> Result<(), Fault> {
        let Some(room) = &self.0 else {
            return Ok(());
        };
        let size = answer.size();
        self.fit(size).await?;
        let surplus = room.bytes().saturating_sub(size);
        room.set(0);
        room.run.release(surplus);
        Ok(())
    }
}

impl Room {
    fn bytes(&self) -> u64 {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, bytes: u64) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.run.release(self.bytes());
    }
}

impl fmt::Debug for AnswerRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_ref().map(|room| room.bytes());
        f.debug_tuple("AnswerRoom").field(&bytes).finish()
    }
}

fn refused(wanted: u64) -> Fault {
    Fault::new(
        FaultKind::ResourceGeneric,
        format!(
            "the answers to this run need {wanted} bytes beside those of other runs, and at most {RESERVE} are free for it; ask for less at a time, or raise the setting answer_memory of the host"
        ),
    )
}

#[cfg(test)]
mod tests {
    use configurator_core::document::Document;
    use futures::FutureExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn budget(shared: u64) -> AnswerBudget {
        AnswerBudget::new(RESERVE + shared.max(16 * MIB))
    }

    fn answer(bytes: usize) -> Answer {
        let text = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)));
        Answer {
            query_objects: vec![Document::parse(text).unwrap()],
            ..Answer::default()
        }
    }

    async fn read(run: &RunAnswers, bytes: u64) -> Result<(), Fault> {
        let room = run.begin().await?;
        room.fit(bytes).await?;
        room.keep(&answer(usize::try_from(bytes).unwrap())).await
    }

    #[tokio::test]
    async fn an_answer_keeps_its_size_until_its_run_ends() {
        let budget = budget(16 * MIB);
        let run = budget.run();
        let room = run.begin().await.unwrap();
        assert_eq!(budget.held(), FIRST);
        room.fit(FIRST + 1).await.unwrap();
        assert_eq!(budget.held(), 2 * FIRST);
        room.keep(&answer(100)).await.unwrap();
        assert_eq!(budget.held(), 100);
        drop(room);
        assert_eq!(budget.held(), 100);
        let failed = run.begin().await.unwrap();
        failed.fit(MIB).await.unwrap();
        drop(failed);
        assert_eq!(budget.held(), 100);
        drop(run);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn runs_that_hold_answers_and_wait_for_more_all_end() {
        const RUNS: usize = 40;
        let budget = budget(16 * MIB);
        let all_hold = Arc::new(tokio::sync::Barrier::new(4));
        let runs = (0..RUNS).map(|index| {
            let (run, all_hold) = (budget.run(), all_hold.clone());
            tokio::spawn(async move {
                // The first four have the whole shared part before any of them asks again.
                read(&run, 4 * MIB).await?;
                if index < 4 {
                    all_hold.wait().await;
                }
                for _ in 0..3 {
                    let (one, other) = tokio::join!(read(&run, 5 * MIB), read(&run, 6 * MIB));
                    one.and(other)?;
                }
                Ok::<(), Fault>(())
            })
        });
        for run in runs.collect::<Vec<_>>() {
            run.await.unwrap().unwrap();
        }
        assert_eq!(budget.held(), 0);
        assert_eq!(budget.reserve.reserved(), 0);
    }

    #[tokio::test]
    async fn only_one_run_has_the_reserve_and_the_next_gets_it() {
        let budget = budget(16 * MIB);
        let (one, other, third) = (budget.run(), budget.run(), budget.run());
        read(&one, 60 * MIB).await.unwrap();
        let mut waits = pin!(read(&other, 60 * MIB));
        assert!(waits.as_mut().now_or_never().is_none());
        // Small answers go on.
        read(&third, MIB).await.unwrap();
        drop(one);
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn runs_that_rest_keep_their_answers_in_half_of_the_shared_part() {
        let budget = budget(16 * MIB);
        let rest = async |bytes| {
            let run = budget.run();
            read(&run, 5 * MIB).await.unwrap();
            run.rest(bytes)
        };
        let first = rest(4 * MIB).await.unwrap();
        assert_eq!(budget.held(), 4 * MIB);
        let second = rest(4 * MIB).await.unwrap();
        assert!(rest(1).await.is_none());
        assert_eq!(budget.held(), 8 * MIB);
        let nothing = rest(0).await.unwrap();
        drop(second);
        // A run that goes on has what it kept, and no longer rests.
        let goes_on = budget.resume(first);
        let others = [rest(4 * MIB).await, rest(4 * MIB).await];
        assert!(others.iter().all(Option::is_some));
        assert_eq!(budget.held(), 12 * MIB);
        assert!(goes_on.rest(4 * MIB).is_none());
        drop(others);
        let again = goes_on.rest(4 * MIB).unwrap();
        drop((goes_on, nothing));
        assert_eq!(budget.held(), 4 * MIB);
        drop(again);
        assert_eq!((budget.held(), budget.resting.reserved()), (0, 0));
    }

    #[tokio::test]
    async fn a_run_that_rests_returns_the_reserve() {
        let budget = budget(16 * MIB);
        let run = budget.run();
        read(&run, 60 * MIB).await.unwrap();
        assert!(run.has_reserve());
        let kept = run.rest(MIB).unwrap();
        drop(run);
        assert_eq!((budget.held(), budget.reserve.reserved()), (MIB, 0));
        drop(kept);
    }

    #[tokio::test]
    async fn an_answer_is_slow_if_it_is_large_or_waits_for_room() {
        let budget = budget(16 * MIB);
        let (one, other) = (budget.run(), budget.run());
        let room = one.begin().await.unwrap();
        let mut slow = pin!(one.slow());
        room.fit(LARGE as u64).await.unwrap();
        assert!(slow.as_mut().now_or_never().is_none());
        room.fit(LARGE as u64 + 1).await.unwrap();
        assert!(slow.now_or_never().is_some());
        // What came before does not count.
        assert!(one.slow().now_or_never().is_none());
        drop(room);
        read(&one, 60 * MIB).await.unwrap();
        assert_eq!((one.has_reserve(), other.has_reserve()), (true, false));
        let small = other.begin().await.unwrap();
        read(&one, budget.shared.limit() - 2 * FIRST).await.unwrap();
        let slow = other.slow();
        assert!(small.fit(2 * FIRST).now_or_never().is_none());
        assert!(slow.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_wait_that_is_dropped_returns_everything() {
        let budget = budget(16 * MIB);
        let (one, other) = (budget.run(), budget.run());
        read(&one, 60 * MIB).await.unwrap();
        assert!(read(&other, 60 * MIB).now_or_never().is_none());
        drop(one);
        assert_eq!((budget.held(), budget.reserve.reserved()), (0, 0));
    }

    #[tokio::test]
    async fn a_run_whose_answers_never_fit_is_refused_with_both_numbers() {
        let budget = budget(16 * MIB);
        let (one, other) = (budget.run(), budget.run());
        read(&other, 16 * MIB).await.unwrap();
        read(&one, 60 * MIB).await.unwrap();
        let fault = read(&one, 5 * MIB).await.unwrap_err();
        assert_eq!(
            fault.message,
            "the answers to this run need 68157440 bytes beside those of other runs, and at most 67108864 are free for it; ask for less at a time, or raise the setting answer_memory of the host"
        );
    }
}
