//! A server that has asked to be left alone is sent nothing until that is over.
//!
//! Runs that are told wait, but others are under way already, or are told later. What goes out is held back here, where
//! all of them pass.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The longest wait that a server may ask for.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Until when a server is left alone.
#[derive(Debug, Default)]
pub struct Throttle {
    until: Mutex<Option<Instant>>,
}

impl Throttle {
    /// The server has answered with this status, and `Retry-After` where it has given one. The longest wish counts.
    pub fn note(&self, status: u16, retry_after: Option<Duration>) {
        // Of other statuses it is about the request alone.
        let (429 | 503, Some(wait)) = (status, retry_after) else {
            return;
        };
        let wished = Instant::now() + wait.min(MAX_WAIT);
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = Some(until.map_or(wished, |until| until.max(wished)));
    }

    /// How long the server is still to be left alone.
    pub fn left(&self) -> Option<Duration> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until?.saturating_duration_since(Instant::now());
        // Clocks of the host count milliseconds; none is to come back too early.
        (!left.is_zero()).then(|| left + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_wish_counts_and_ends() {
        let throttle = Throttle::default();
        throttle.note(429, None);
        throttle.note(500, Some(Duration::from_secs(9)));
        assert_eq!(throttle.left(), None);
        throttle.note(429, Some(Duration::from_secs(5)));
        throttle.note(503, Some(Duration::from_secs(2)));
        assert_eq!(throttle.left(), Some(Duration::from_millis(5001)));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(throttle.left(), None);
    }
}
