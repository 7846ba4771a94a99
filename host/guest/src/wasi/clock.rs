//! `wasi:clocks`: time begins at the run's `now` and passes only while the guest sleeps.

use std::time::Duration;

use configurator_core::time::Timestamp;
use wasmtime::component::Resource;

use super::bindings::wasi::clocks::{monotonic_clock, wall_clock};
use super::io::Pollable;
use crate::state::CallState;

/// Where the monotonic clock begins, in nanoseconds. Not at zero, which some runtimes take for a broken clock.
const START: u64 = 1_000_000_000;

/// A clock that stands still unless it is moved.
pub(super) struct VirtualClock {
    now: Timestamp,
    /// What the monotonic clock showed at that time.
    start: u64,
    monotonic: u64,
}

impl VirtualClock {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self {
            now,
            start: START,
            monotonic: START,
        }
    }

    /// Another run begins: its time is this. The monotonic clock goes on, since a runtime that has seen it may not see it go back.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.now = now;
        self.start = self.monotonic;
    }

    /// Nanoseconds since an arbitrary point.
    pub(super) const fn monotonic(&self) -> u64 {
        self.monotonic
    }

    /// Sleeps until this point, which takes no time.
    pub(super) fn sleep_until(&mut self, instant: u64) {
        self.monotonic = self.monotonic.max(instant);
    }

    /// Time since the Unix epoch; zero before it.
    fn wall(&self) -> Duration {
        let start = Duration::from_millis(u64::try_from(self.now.as_millis()).unwrap_or(0));
        start.saturating_add(Duration::from_nanos(self.monotonic - self.start))
    }
}

impl monotonic_clock::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi.clock.monotonic())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<Pollable>> {
        self.wasi.push(Pollable::At(when))
    }

    fn subscribe_duration(&mut self, when: u64) -> wasmtime::Result<Resource<Pollable>> {
        let at = self.wasi.clock.monotonic().saturating_add(when);
        self.wasi.push(Pollable::At(at))
    }
}

impl wall_clock::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        let wall = self.wasi.clock.wall();
        Ok(wall_clock::Datetime {
            seconds: wall.as_secs(),
            nanoseconds: wall.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime {
            seconds: 0,
            nanoseconds: 1,
        })
    }
}
