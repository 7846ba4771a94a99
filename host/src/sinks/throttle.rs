//! A server that has asked to be left alone is sent nothing until that is over.
//!
//! Runs that are told wait, but others are under way already, or are told later. What goes out is held back here, where
//! all of them pass.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Until when a server is left alone, and why.
#[derive(Debug)]
pub struct Throttle {
    wish: Mutex<Option<Wish>>,
    max_wait: Duration,
}

#[derive(Debug)]
struct Wish {
    until: Instant,
    why: String,
}

impl Throttle {
    /// The server has not asked for anything. A wait of more than `max_wait` counts as that.
    #[must_use]
    pub const fn new(max_wait: Duration) -> Self {
        Self {
            wish: Mutex::new(None),
            max_wait,
        }
    }

    /// The server has answered with this status, and `Retry-After` where it has given one; `why` is what else it has
    /// said. The longest wish counts.
    pub fn note(&self, status: u16, retry_after: Option<Duration>, why: impl FnOnce() -> String) {
        // Of other statuses it is about the request alone.
        let (429 | 503, Some(wait)) = (status, retry_after) else {
            return;
        };
        let until = Instant::now() + wait.min(self.max_wait);
        let mut wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        if wish.as_ref().is_none_or(|wish| wish.until <= until) {
            *wish = Some(Wish { until, why: why() });
        }
    }

    /// How long the server is still to be left alone, and why.
    pub fn left(&self) -> Option<(Duration, String)> {
        let wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        let wish = wish.as_ref()?;
        let left = wish.until.saturating_duration_since(Instant::now());
        // Clocks of the host count milliseconds; none is to come back too early.
        (!left.is_zero()).then(|| (left + Duration::from_millis(1), wish.why.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_wish_counts_up_to_its_cap_and_ends() {
        let throttle = Throttle::new(Duration::from_secs(5));
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        throttle.note(429, None, || "no wish".into());
        throttle.note(500, seconds(9), || "of the request".into());
        assert_eq!(throttle.left(), None);
        throttle.note(429, seconds(u64::MAX), || "long".into());
        throttle.note(503, seconds(2), || "short".into());
        let left = Duration::from_millis(5001);
        assert_eq!(throttle.left(), Some((left, "long".into())));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(throttle.left(), None);
    }
}
