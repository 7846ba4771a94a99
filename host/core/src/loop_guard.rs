//! Spaces out the runs of an object that keeps changing because of them.

use std::time::Duration;

use crate::backoff::doubled;
use crate::handler::WatchEvent;
use crate::time::Timestamp;

/// How many runs in a row may answer a change that followed the previous run's writes.
pub const FREE_ECHOES: u32 = 5;
/// How soon after a write a change counts as its echo.
pub const ECHO_WINDOW: Duration = Duration::from_secs(10);
/// The widest space between two runs.
pub const MAX_SPACE: Duration = Duration::from_secs(300);

/// Of one object. A run that wrote something, followed at once by a change of its own object, is an echo. From the
/// sixth in a row on, the next run waits: 1 s, 2 s, … up to [`MAX_SPACE`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopGuard {
    echoes: u32,
    wrote: Option<Timestamp>,
    is_spaced: bool,
}

impl LoopGuard {
    /// Whether runs are spaced out.
    #[must_use]
    pub fn is_looping(&self) -> bool {
        self.echoes > FREE_ECHOES
    }

    /// A run wrote something.
    pub fn on_write(&mut self, now: Timestamp) {
        self.wrote = Some(now);
    }

    /// A run begins.
    pub fn on_start(&mut self, _now: Timestamp) {
        self.is_spaced = false;
    }

    /// The object wants its turn because of `event`. Returns how long it has to wait, and whether the guard has
    /// just begun (`true`) or ended (`false`) to space its runs.
    pub fn on_turn(
        &mut self,
        event: Option<WatchEvent>,
        now: Timestamp,
    ) -> (Duration, Option<bool>) {
        if self.is_spaced {
            return (Duration::ZERO, None);
        }
        let before = self.is_looping();
        let window = ECHO_WINDOW.max(self.space() * 2);
        let is_echo = event == Some(WatchEvent::Modified)
            && self
                .wrote
                .take()
                .is_some_and(|wrote| now.since(wrote) <= window);
        self.echoes = if is_echo {
            self.echoes.saturating_add(1)
        } else {
            0
        };
        let space = self.space();
        self.is_spaced = !space.is_zero();
        (
            space,
            (before != self.is_looping()).then_some(self.is_looping()),
        )
    }

    fn space(&self) -> Duration {
        match self.echoes.checked_sub(FREE_ECHOES + 1) {
            None => Duration::ZERO,
            Some(steps) => doubled(Duration::from_secs(1), steps, MAX_SPACE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_are_spaced_wider_and_wider_until_it_is_quiet() {
        let mut guard = LoopGuard::default();
        let mut now = Timestamp::from_millis(0);
        let mut spaces = Vec::new();
        for _ in 0..9 {
            guard.on_write(now);
            let (space, changed) = guard.on_turn(Some(WatchEvent::Modified), now);
            spaces.push((space.as_secs(), changed));
            now = now.after(space);
            guard.on_start(now);
        }
        let quiet = (0, None);
        assert_eq!(
            spaces,
            [
                quiet,
                quiet,
                quiet,
                quiet,
                quiet,
                (1, Some(true)),
                (2, None),
                (4, None),
                (8, None)
            ]
        );
        let later = now.after(Duration::from_secs(3600));
        guard.on_write(now);
        assert_eq!(
            guard.on_turn(Some(WatchEvent::Modified), later),
            (Duration::ZERO, Some(false))
        );
    }

    #[test]
    fn changes_without_own_writes_are_no_echoes() {
        let mut guard = LoopGuard::default();
        for second in 0..100 {
            let (space, _) =
                guard.on_turn(Some(WatchEvent::Modified), Timestamp::from_millis(second));
            assert_eq!(space, Duration::ZERO);
        }
    }
}
