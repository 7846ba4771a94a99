//! Giving space back that is free in the file.

use std::sync::{PoisonError, TryLockError};

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

    /// Compacts the file if more than the allowed part of it is free, and no more than `most_used` bytes are in use. Writers wait meanwhile, and
    /// so do readers if it is compacted. False if it should be compacted but a reader is there: nobody waits for it.
    ///
    /// A failure is logged, and leaves the file to be opened again: nothing that was written is touched by it.
    pub(super) fn compact_if_worth(&self, most_used: u64) -> bool {
        // In most cases this spares the walk through the file.
        if matches!(self.database.try_write(), Err(TryLockError::WouldBlock)) {
            return false;
        }
        let compacted = match self.is_worth_compacting(most_used) {
            Ok(false) => return true,
            Ok(true) => self.compact(),
            Err(failure) => Err(failure),
        };
        compacted.unwrap_or_else(|failure| {
            let error = failure.into_store_error(&self.path);
            tracing::warn!("the file could not be compacted: {error}");
            self.close(None);
            true
        })
    }

    /// Walks through the file. Readers do not wait.
    fn is_worth_compacting(&self, most_used: u64) -> Result<bool, Failure> {
        let slot = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = slot.as_ref() else {
            return Ok(false);
        };
        if !self.may_be_worth_compacting(u64::MAX) {
            return Ok(false);
        }
        let length = self.length.get();
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
                .saturating_sub(length.saturating_sub(allocated));
            Ok(stats.stored_bytes() + stats.metadata_bytes() + inside_pages)
        })?;
        let free = length.saturating_sub(used);
        let allowed = length / 100 * u64::from(self.free_percent);
        Ok(free > allowed && used <= most_used)
    }

    /// Compacts the file. False if a reader is there.
    fn compact(&self) -> Result<bool, Failure> {
        let mut slot = match self.database.try_write() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        if let Some(database) = slot.as_mut() {
            let before = self.length.get();
            guarded(|| Ok(database.compact()?))?;
            tracing::info!(before, after = self.length.get(), "the file was compacted");
        }
        Ok(true)
    }
}
