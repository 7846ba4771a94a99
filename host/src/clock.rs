//! The one place that knows what time it is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::time::Timestamp;

/// What time it is, and how to wait. An embedder may bring its own.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Now. Never runs backwards by more than the system's clock does.
    fn now(&self) -> Timestamp;

    /// Returns when `span` has passed.
    async fn sleep(&self, span: Duration);
}

/// The system's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// A clock that starts at a given point and follows tokio's own: with a paused runtime, virtual time.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    start: Timestamp,
    since: tokio::time::Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            since: tokio::time::Instant::now(),
        }
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start.after(self.since.elapsed())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// A clock that is shared.
pub type SharedClock = Arc<dyn Clock>;

/// Returns at this time, or never without one.
pub(crate) async fn until(clock: SharedClock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep(at.since(clock.now())).await,
        None => std::future::pending().await,
    }
}
