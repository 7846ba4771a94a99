//! Short rests of threads that use a processor for long.
//!
//! Threads of the kernel, which complete writes to disks for example, do not interrupt a thread of another control group at once, whatever its
//! policy and priority. They would wait for the next tick of the scheduler, about 4 ms.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// The duration of a rest.
pub const REST: Duration = Duration::from_micros(50);
/// How long a job works between two rests.
const WORK: Duration = Duration::from_millis(1);

thread_local! {
    /// When the job of this thread began, or rested last.
    static RESTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Marks that a job begins on this thread.
pub(crate) fn begin() {
    RESTED.set(Some(Instant::now()));
}

/// Lets a job in the [background](crate::work::Background) rest if it has worked for 1 ms. Does nothing on other threads. Jobs call it between
/// parts that take less than that.
pub fn rest_if_due() {
    let is_due = RESTED.get().is_some_and(|rested| rested.elapsed() >= WORK);
    if is_due {
        thread::sleep(REST);
        begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_rests_after_each_millisecond() {
        // Other threads do not rest.
        rest_if_due();
        assert!(RESTED.get().is_none());
        let job = thread::spawn(|| {
            begin();
            let began = RESTED.get();
            while RESTED.get() == began {
                rest_if_due();
            }
            RESTED
                .get()
                .zip(began)
                .map(|(rested, began)| rested - began)
        });
        let worked = job.join().unwrap().unwrap();
        assert!(worked >= WORK + REST, "{worked:?}");
    }
}
