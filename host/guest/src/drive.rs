//! On which threads a call runs.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use configurator_core::handler::CallFault;

/// A call on a stack of its own. It waits for nothing: when it is pending it has stepped aside at a tick, and goes on
/// when it is polled, on whichever thread.
pub(crate) type Fiber<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    /// The caller's runtime is being dropped.
    #[error("the host is shutting down")]
    Closed,
    /// The system could not start a thread for a call that lasts longer than a tick.
    #[error("no thread can be started for a call that lasts longer than a tick: {0}")]
    Thread(std::io::Error),
    /// The call panicked.
    #[error("a guest's call panicked: {0}")]
    Panicked(String),
}

impl From<DriveError> for CallFault {
    fn from(error: DriveError) -> Self {
        Self::Host {
            message: error.to_string(),
        }
    }
}

/// The progress of a call until it steps aside, or ends before.
pub(crate) enum Begun<'a, T> {
    /// It has ended.
    Ended(T),
    /// It lasts longer.
    Lasts(Fiber<'a, T>),
}

/// Runs a call on this thread until it steps aside.
///
/// Most calls take less than it costs to wake another thread. A call steps aside at the first tick at which it has used a tick of CPU time,
/// so none holds a thread of the caller's runtime for more than two.
pub(crate) fn begin<T>(mut call: Fiber<'_, T>) -> Result<Begun<'_, T>, DriveError> {
    Ok(match step(&mut call)? {
        Poll::Ready(result) => Begun::Ended(result),
        Poll::Pending => Begun::Lasts(call),
    })
}

thread_local! {
    static STEPS_OFTEN: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a call on this thread steps aside at every tick, even if it has used less than a tick of CPU time.
pub(crate) fn steps_often() -> bool {
    STEPS_OFTEN.get()
}

/// Runs a call on this thread to its end, or until `goes_on` returns false at a tick.
pub(crate) fn drive_while<T>(
    mut call: Fiber<'_, T>,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Begun<'_, T>, DriveError> {
    STEPS_OFTEN.set(true);
    loop {
        if let Poll::Ready(result) = step(&mut call)? {
            return Ok(Begun::Ended(result));
        }
        if !goes_on() {
            return Ok(Begun::Lasts(call));
        }
    }
}

/// Runs a call to its end on this thread.
pub(crate) fn drive_blocking<T>(mut call: Fiber<'_, T>) -> Result<T, DriveError> {
    loop {
        if let Poll::Ready(result) = step(&mut call)? {
            return Ok(result);
        }
    }
}

/// Gives the thread back to who polls the call, once. Nobody is woken.
pub(crate) async fn step_aside() {
    let mut stepped = false;
    poll_fn(|_| {
        if std::mem::replace(&mut stepped, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

fn step<T>(call: &mut Fiber<'_, T>) -> Result<Poll<T>, DriveError> {
    catch_unwind(AssertUnwindSafe(|| {
        call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }))
    .map_err(|panic| DriveError::Panicked(panic_text(&*panic)))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".into()
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use super::*;

    /// A call that steps aside so many times, and gives the threads that it ran on.
    fn call(ticks: u32) -> Fiber<'static, Vec<ThreadId>> {
        Box::pin(async move {
            let mut threads = vec![current().id()];
            for _ in 0..ticks {
                step_aside().await;
                threads.push(current().id());
            }
            threads.dedup();
            threads
        })
    }

    #[test]
    fn a_call_runs_on_its_caller_s_thread_until_the_first_tick() {
        let Ok(Begun::Ended(threads)) = begin(call(0)) else {
            panic!("it is short");
        };
        assert_eq!(threads, [current().id()]);
        let Ok(Begun::Lasts(call)) = begin(call(3)) else {
            panic!("it lasts");
        };
        let other = std::thread::spawn(move || drive_blocking(call).unwrap());
        let threads = other.join().unwrap();
        assert_eq!(threads.len(), 2);
        assert_eq!(threads[0], current().id());
    }

    #[test]
    fn a_call_is_given_back_at_a_tick() {
        assert!(!steps_often());
        let on_thread = std::thread::spawn(|| {
            let mut ticks = 0;
            let begun = drive_while(call(3), || {
                ticks += 1;
                ticks < 2
            });
            assert!(steps_often());
            begun.unwrap()
        });
        let Begun::Lasts(rest) = on_thread.join().unwrap() else {
            panic!("it lasts");
        };
        let Begun::Ended(threads) = drive_while(rest, || true).unwrap() else {
            panic!("it ends");
        };
        assert_eq!(threads.last(), Some(&current().id()));
        assert_eq!(threads.len(), 2);
    }

    #[test]
    fn a_blocking_call_stays_on_its_caller_s_thread() {
        assert_eq!(drive_blocking(call(3)).unwrap(), [current().id()]);
    }

    #[test]
    fn a_panic_is_reported() {
        let error = drive_blocking::<()>(Box::pin(async { panic!("oh no") })).unwrap_err();
        assert_eq!(error.to_string(), "a guest's call panicked: oh no");
        let late = Box::pin(async {
            call(1).await;
            panic!("oh {}", "no")
        });
        let error = drive_blocking::<()>(late).unwrap_err();
        assert_eq!(error.to_string(), "a guest's call panicked: oh no");
    }
}
