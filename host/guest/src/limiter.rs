//! Holds the memory of one call under its limit.

use wasmtime::ResourceLimiter;

use crate::engine::TABLE_ELEMENTS;

/// Counts the linear memory of a call; growth past the limit traps.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: u64,
    used: u64,
    peak: u64,
    last_growth: u64,
}

/// The guest asked for more memory than it may have.
#[derive(Debug, thiserror::Error)]
#[error("it asked for {wanted} bytes of memory in all")]
pub(crate) struct MemoryExceeded {
    pub(crate) wanted: u64,
}

impl MemoryLimiter {
    /// At most `limit` bytes.
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            peak: 0,
            last_growth: 0,
        }
    }

    /// The limit, in bytes.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The most that the call has had, in bytes.
    pub(crate) const fn peak(&self) -> u64 {
        self.peak
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.last_growth = desired.saturating_sub(current) as u64;
        let wanted = self.used.saturating_add(self.last_growth);
        if wanted > self.limit {
            return Err(wasmtime::Error::new(MemoryExceeded { wanted }));
        }
        self.used = wanted;
        self.peak = self.peak.max(wanted);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.used = self.used.saturating_sub(self.last_growth);
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_of_a_call_count_together() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        let error = limiter.memory_growing(40, 41, None).unwrap_err();
        assert_eq!(error.downcast_ref::<MemoryExceeded>().unwrap().wanted, 101);
        assert_eq!(limiter.peak(), 100);
    }

    #[test]
    fn growth_that_fails_does_not_count() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no room"))
            .unwrap();
        assert!(limiter.memory_growing(0, 90, None).unwrap());
    }
}
