//! What guests log.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::options::LogLimits;

/// Where the lines of a call go. It is called on the thread that runs the guest, so it must be quick.
///
/// It is made by the host for each call and knows whose call it is; the guest does not.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// A sink that drops every line.
#[must_use]
pub fn no_log() -> LogSink {
    Arc::new(drop)
}

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Every detail.
    Trace,
    /// For whoever looks for a mistake.
    Debug,
    /// What happens.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// The name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// One line of a guest's log, cut to [`LogLimits`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How important it is.
    pub level: LogLevel,
    /// What the guest says.
    pub message: String,
    /// Names and values.
    pub fields: Vec<(String, String)>,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.level.name(), self.message)?;
        self.fields
            .iter()
            .try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// The log of one call: delivers lines while the limits allow, and keeps the end of everything for a fault's message.
pub(crate) struct CallLog {
    limits: LogLimits,
    sink: LogSink,
    lines: u32,
    bytes: usize,
    dropped: u64,
    /// Ends with what the tail has: at most twice as long, so that little is moved for each line.
    tail: Vec<u8>,
}

impl CallLog {
    /// An empty log.
    pub(crate) fn new(limits: LogLimits, sink: LogSink) -> Self {
        Self {
            limits,
            sink,
            lines: 0,
            bytes: 0,
            dropped: 0,
            tail: Vec::new(),
        }
    }

    /// The guest logs a line.
    pub(crate) fn line(&mut self, mut line: LogLine) {
        let bytes = line.cut(self.limits.line_bytes);
        // Writing to memory does not fail.
        let _ = writeln!(self.tail, "{line}");
        self.trim_tail();
        if self.lines >= self.limits.lines || self.bytes.saturating_add(bytes) > self.limits.bytes {
            self.dropped += 1;
            return;
        }
        self.lines += 1;
        self.bytes += bytes;
        (self.sink)(line);
    }

    /// The guest writes to stdout or stderr: only the tail keeps it.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        let excess = bytes.len().saturating_sub(self.limits.tail);
        self.tail
            .extend_from_slice(bytes.get(excess..).unwrap_or_default());
        self.trim_tail();
    }

    /// Lines delivered.
    pub(crate) const fn lines(&self) -> u32 {
        self.lines
    }

    /// Lines dropped because of the limits.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The end of what the guest logged and wrote.
    pub(crate) fn tail(&self) -> String {
        let excess = self.tail.len().saturating_sub(self.limits.tail);
        let bytes = self.tail.get(excess..).unwrap_or_default();
        // The beginning may be cut inside of a character.
        let whole = bytes
            .iter()
            .position(|byte| byte & 0xC0 != 0x80)
            .unwrap_or(bytes.len());
        String::from_utf8_lossy(bytes.get(whole..).unwrap_or_default())
            .trim_end()
            .to_owned()
    }

    fn trim_tail(&mut self) {
        let excess = self.tail.len().saturating_sub(self.limits.tail);
        if excess > self.limits.tail {
            self.tail.drain(..excess);
        }
    }
}

/// Returns sinks for successive attempts at one call. A line that several attempts log is delivered once.
pub(crate) fn without_repetition(sink: LogSink) -> impl Fn() -> LogSink {
    let delivered = Arc::new(AtomicUsize::new(0));
    move || {
        let (sink, delivered) = (sink.clone(), delivered.clone());
        let lines = AtomicUsize::new(0);
        Arc::new(move |line| {
            let number = lines.fetch_add(1, Ordering::Relaxed) + 1;
            if delivered.fetch_max(number, Ordering::Relaxed) < number {
                sink(line);
            }
        })
    }
}

impl LogLine {
    /// Cuts the line to `limit` bytes and returns its length. Fields that do not fit are dropped.
    fn cut(&mut self, limit: usize) -> usize {
        if self.message.len() > limit {
            let end = self.message.floor_char_boundary(limit.saturating_sub(3));
            self.message.truncate(end);
            self.message.push('…');
        }
        let mut bytes = self.message.len();
        let mut fitting = 0;
        for (name, value) in &self.fields {
            let more = bytes + name.len() + value.len();
            if more > limit {
                break;
            }
            bytes = more;
            fitting += 1;
        }
        self.fields.truncate(fitting);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn log(limits: LogLimits) -> (CallLog, Arc<Mutex<Vec<String>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let of_sink = Arc::clone(&seen);
        let sink: LogSink = Arc::new(move |line| of_sink.lock().unwrap().push(line.to_string()));
        (CallLog::new(limits, sink), seen)
    }

    fn line(message: &str) -> LogLine {
        LogLine {
            level: LogLevel::Info,
            message: message.into(),
            fields: Vec::new(),
        }
    }

    #[test]
    fn lines_past_the_limit_are_counted_and_still_end_up_in_the_tail() {
        let (mut log, seen) = log(LogLimits {
            lines: 2,
            ..LogLimits::default()
        });
        for message in ["a", "b", "c", "d"] {
            log.line(line(message));
        }
        assert_eq!(*seen.lock().unwrap(), ["info: a", "info: b"]);
        assert_eq!((log.lines(), log.dropped()), (2, 2));
        assert_eq!(log.tail(), "info: a\ninfo: b\ninfo: c\ninfo: d");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        let (mut log, seen) = log(LogLimits {
            line_bytes: 10,
            ..LogLimits::default()
        });
        log.line(line(&"ä".repeat(20)));
        assert_eq!(*seen.lock().unwrap(), ["info: äää…"]);
    }

    #[test]
    fn fields_that_do_not_fit_are_dropped() {
        let (mut log, seen) = log(LogLimits {
            line_bytes: 10,
            ..LogLimits::default()
        });
        log.line(LogLine {
            fields: vec![("a".into(), "1".into()), ("b".into(), "long value".into())],
            ..line("12345")
        });
        assert_eq!(*seen.lock().unwrap(), ["info: 12345 a=1"]);
    }

    #[test]
    fn the_tail_keeps_the_end() {
        let (mut log, _) = log(LogLimits {
            tail: 5,
            ..LogLimits::default()
        });
        log.output("0123ü".as_bytes());
        assert_eq!(log.tail(), "123ü");
        log.output(b"45");
        assert_eq!(log.tail(), "3ü45");
        log.output(b"6");
        assert_eq!(log.tail(), "ü456");
        log.output(b"7");
        assert_eq!(log.tail(), "4567", "half a character is left out");
        log.output(&[b'x'; 100]);
        assert_eq!(log.tail(), "xxxxx");
    }
}
