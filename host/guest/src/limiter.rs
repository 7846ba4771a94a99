//! Holds the memory of one call under its limit, and all calls under the budget of the process.

use wasmtime::ResourceLimiter;

use crate::budget::Reservation;
use crate::engine::{TABLE_ELEMENTS, TABLES};

/// Size of an element of a table, in bytes.
const TABLE_ELEMENT: usize = size_of::<usize>();

/// The most that all tables of a call take, in bytes.
pub(crate) const TABLES_SIZE: u64 = TABLES as u64 * (TABLE_ELEMENTS * TABLE_ELEMENT) as u64;

/// Counts the memory of a call. Growth of linear memory past the limit traps. So does growth, also of tables, that the budget
/// of the process has no room for.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: u64,
    reservation: Reservation,
    /// Linear memory, in bytes.
    used: u64,
    /// The most that `used` was.
    peak: u64,
    last_growth: u64,
    /// Tables, in bytes. They are bounded by their number and their elements, not by the limit.
    tables: u64,
    lacked_room: bool,
}

/// The guest asked for more memory than it may have.
#[derive(Debug, thiserror::Error)]
#[error("it asked for {wanted} bytes of memory in all")]
pub(crate) struct MemoryExceeded {
    pub(crate) wanted: u64,
}

/// The memory that the guest asked for is in use by other calls.
#[derive(Debug, thiserror::Error)]
#[error("other calls have the memory that it asked for")]
struct LacksRoom;

impl MemoryLimiter {
    /// At most `limit` bytes, of which `reservation` is reserved already.
    pub(crate) const fn new(limit: u64, reservation: Reservation) -> Self {
        Self {
            limit,
            reservation,
            used: 0,
            peak: 0,
            last_growth: 0,
            tables: 0,
            lacked_room: false,
        }
    }

    /// Returns whether growth failed because the budget of the process had no room.
    pub(crate) const fn lacked_room(&self) -> bool {
        self.lacked_room
    }

    /// Returns reserved bytes that are not in use to the budget.
    pub(crate) fn return_unused(&mut self) {
        self.reservation
            .shrink_to(self.used.saturating_add(self.tables));
    }

    /// Reserves what is missing for this many bytes of linear memory and of tables.
    fn hold(&mut self, memory: u64, tables: u64) -> wasmtime::Result<()> {
        let wanted = memory.saturating_add(tables);
        let lacking = wanted.saturating_sub(self.reservation.bytes());
        if lacking == 0 || self.reservation.try_grow(lacking) {
            return Ok(());
        }
        if self.reservation.is_whole_budget() {
            return Err(wasmtime::Error::new(MemoryExceeded { wanted }));
        }
        self.lacked_room = true;
        Err(wasmtime::Error::new(LacksRoom))
    }

    /// The limit, in bytes.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The most linear memory that the call has had, in bytes.
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
        self.hold(wanted, self.tables)?;
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
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS {
            return Ok(false);
        }
        let elements = desired.saturating_sub(current);
        let more = elements.saturating_mul(TABLE_ELEMENT) as u64;
        let wanted = self.tables.saturating_add(more);
        self.hold(self.used, wanted)?;
        self.tables = wanted;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;

    fn limiter(limit: u64, budget: &MemoryBudget) -> MemoryLimiter {
        MemoryLimiter::new(limit, budget.try_reserve(0).unwrap())
    }

    #[test]
    fn all_memories_of_a_call_count_together() {
        let mut limiter = limiter(100, &MemoryBudget::new(1000));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        let error = limiter.memory_growing(40, 41, None).unwrap_err();
        assert_eq!(error.downcast_ref::<MemoryExceeded>().unwrap().wanted, 101);
        assert_eq!(limiter.peak(), 100);
    }

    #[test]
    fn tables_count_in_the_budget() {
        let budget = MemoryBudget::new(1000);
        let mut limiter = limiter(100, &budget);
        assert!(limiter.memory_growing(0, 100, None).unwrap());
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert_eq!((limiter.peak(), budget.reserved()), (100, 180));
        assert!(!limiter.table_growing(10, TABLE_ELEMENTS + 1, None).unwrap());
    }

    #[test]
    fn a_call_that_has_the_whole_budget_lacks_no_room() {
        let budget = MemoryBudget::new(100);
        let mut limiter = MemoryLimiter::new(100, budget.try_reserve(100).unwrap());
        assert!(limiter.memory_growing(0, 100, None).unwrap());
        let error = limiter.table_growing(0, 1, None).unwrap_err();
        assert_eq!(error.downcast_ref::<MemoryExceeded>().unwrap().wanted, 108);
        assert!(!limiter.lacked_room());
    }

    #[test]
    fn growth_that_fails_does_not_count() {
        let mut limiter = limiter(100, &MemoryBudget::new(1000));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no room"))
            .unwrap();
        assert!(limiter.memory_growing(0, 90, None).unwrap());
    }

    #[test]
    fn growth_takes_from_the_budget_what_is_not_reserved() {
        let budget = MemoryBudget::new(100);
        let mut one = MemoryLimiter::new(100, budget.try_reserve(50).unwrap());
        let mut other = limiter(100, &budget);
        assert!(one.memory_growing(0, 50, None).unwrap());
        assert_eq!(budget.reserved(), 50);
        assert!(one.memory_growing(50, 60, None).unwrap());
        assert_eq!(budget.reserved(), 60);
        assert!(other.memory_growing(0, 41, None).is_err());
        assert!(other.lacked_room() && !one.lacked_room());
        drop(one);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn what_is_not_used_is_returned() {
        let budget = MemoryBudget::new(100);
        let mut limiter = MemoryLimiter::new(100, budget.try_reserve(80).unwrap());
        assert!(limiter.memory_growing(0, 30, None).unwrap());
        limiter.return_unused();
        assert_eq!(budget.reserved(), 30);
    }
}
