//! The corrections of one member, which are spaced out when others change it again and again.

use std::time::Duration;

use configurator_core::backoff::doubled;
use configurator_core::time::Timestamp;

/// So many corrections in a row are a fight.
const FIGHT: u32 = 5;
/// A correction this long after the one before begins a new row. Longer than any pause.
const QUIET: Duration = Duration::from_mins(15);
/// The pause before the next correction when a fight begins. Each further one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The corrections of one member in a row.
#[derive(Debug, Default)]
pub(super) struct Corrections {
    number: u32,
    last: Timestamp,
}

impl Corrections {
    /// Takes note of a correction. Returns whether a fight begins with it.
    pub(super) fn note(&mut self, now: Timestamp) -> bool {
        if now.since(self.last) > QUIET {
            self.number = 0;
        }
        self.number = self.number.saturating_add(1);
        self.last = now;
        self.number == FIGHT
    }

    /// The time of the next correction. `None`: at once.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let doublings = self.number.checked_sub(FIGHT)?;
        let pause = doubled(FIRST_PAUSE, doublings, LONGEST_PAUSE);
        Some(self.last.after(pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_in_a_row_are_spaced_out() {
        let mut corrections = Corrections::default();
        let mut now = Timestamp::from_millis(1_000_000_000);
        let mut pauses = Vec::new();
        for _ in 0..13 {
            corrections.note(now);
            let next = corrections.next().unwrap_or(now);
            pauses.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [0, 0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300, 300]);
        now = now.after(QUIET * 2);
        assert!(!corrections.note(now));
        assert_eq!(corrections.next(), None);
    }
}
