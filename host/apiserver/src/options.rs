use std::sync::Arc;
use std::time::Duration;

use configurator_background::work::Background;
use jiff::Timestamp;

/// Where the server takes the time from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Where the server takes chance from: fills the buffer.
pub(crate) type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Time, chance and limits of a server.
#[derive(Clone)]
pub struct ApiServerOptions {
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// Bytes of a request's body at most. Default 3 MiB.
    pub body_bytes: usize,
    /// Levels of nesting of a document at most. Default 100.
    pub document_depth: usize,
    /// Bytes of a request's path and query at most. Default 16 KiB.
    pub uri_bytes: usize,
    /// Watches that may be open at a time; one more is answered with 429. Default 1,000.
    pub watches: usize,
    /// Changes of one resource that can be resumed from. A watcher that falls further behind has to list anew. Default 16,384.
    pub history_events: usize,
    /// Bytes of the objects in those changes, for one resource. Default 8 MiB.
    pub history_bytes: usize,
    /// How often a watcher that asked for bookmarks gets one. Default one minute.
    pub bookmark_interval: Duration,
    /// How long a watch lasts that names no time of its own. Default 30 minutes.
    pub watch_timeout: Duration,
    /// Event objects that are kept; the oldest go first. Default 10,000.
    pub events: usize,
    /// Encodes large lists, unless the store is in memory. Default: [`Background::default`], which hosts of this process share.
    pub background: Background,
}

impl ApiServerOptions {
    /// The defaults, with the time from `clock` and chance from the operating system.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            random: Arc::new(|buffer| {
                // The operating system's source does not fail on any supported platform; zeros would only repeat a name, which is refused.
                let _ = getrandom::fill(buffer);
            }),
            body_bytes: 3 << 20,
            document_depth: 100,
            uri_bytes: 16 << 10,
            watches: 1_000,
            history_events: 16_384,
            history_bytes: 8 << 20,
            bookmark_interval: Duration::from_secs(60),
            watch_timeout: Duration::from_secs(30 * 60),
            events: 10_000,
            background: Background::default(),
        }
    }

    /// Takes uids and generated names from `random`, which fills the buffer; for runs that can be repeated.
    pub fn with_random(mut self, random: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        self.random = Arc::new(random);
        self
    }
}

impl std::fmt::Debug for ApiServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServerOptions")
            .field("watches", &self.watches)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}
