//! Giving space back that is free in the file.

use std::sync::{RwLockWriteGuard, TryLockError};

use redb::Database;

use super::Shared;
use super::failure::{Failure, guarded};

/// A file that is shorter is left as it is.
const SHORTEST: u64 = 4 << 20;

impl Shared {
    /// Whether so much was removed that looking how much is free is worth a walk through the file.
    pub(super) fn may_be_worth_compacting(&self, removed: u64) -> bool {
        let length = self.length.get();
        self.free_percent < 100 && length >= SHORTEST && removed >= length / 4
    }

    /// Compacts the file if more than the allowed part of it is free, and no more than `most_used` bytes are in use. Readers and writers wait
    /// meanwhile. False if a reader is there: nobody waits for it.
    ///
    /// A failure is logged, and leaves the file to be opened again: nothing that was written is touched by it.
    pub(super) fn compact_if_worth(&self, most_used: u64) -> bool {
        let mut slot = match self.database.try_write() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if let Err(failure) = self.compact(&mut slot, most_used) {
            let error = failure.into_store_error(&self.path);
            tracing::warn!("the file could not be compacted: {error}");
            *slot = None;
        }
        true
    }

    fn compact(
        &self,
        slot: &mut RwLockWriteGuard<'_, Option<Database>>,
        most_used: u64,
    ) -> Result<(), Failure> {
        let before = self.length.get();
        let Some(database) = slot.as_mut() else {
            return Ok(());
        };
        if !self.may_be_worth_compacting(u64::MAX) {
            return Ok(());
        }
        let used = guarded(|| {
            let write = database.begin_write()?;
            let stats = write.stats()?;
            write.abort()?;
            // Pages that the last transactions have freed still count as allocated: what is in use is what the trees hold.
            let allocated = stats
                .allocated_pages()
                .saturating_mul(stats.page_size() as u64);
            let inside_pages = stats
                .fragmented_bytes()
                .saturating_sub(before.saturating_sub(allocated));
            Ok(stats.stored_bytes() + stats.metadata_bytes() + inside_pages)
        })?;
        let free = before.saturating_sub(used);
        let allowed = before / 100 * u64::from(self.free_percent);
        if free > allowed && used <= most_used {
            guarded(|| Ok(database.compact()?))?;
            tracing::info!(before, after = self.length.get(), "the file was compacted");
        }
        Ok(())
    }
}
