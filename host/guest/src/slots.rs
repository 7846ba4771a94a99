//! Room for the instances of callers that block.

use std::sync::{Condvar, Mutex, PoisonError};

/// Counts instances, so that the engine's pool is never exhausted.
pub(crate) struct Slots {
    free: Mutex<u32>,
    freed: Condvar,
}

/// One instance may be made while this lives.
pub(crate) struct Slot<'a>(&'a Slots);

impl Slots {
    /// Room for `count` instances.
    pub(crate) const fn new(count: u32) -> Self {
        Self {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    /// Takes a slot; blocks until one is free.
    pub(crate) fn take(&self) -> Slot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .freed
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
