//! The thread that runs the transactions.

use std::sync::Arc;

use redb::ReadableTable;
use tokio::sync::mpsc;

use super::failure::guarded;
use super::job::{Job, finish_all};
use super::snapshot::Located;
use super::{COUNTERS, ENTRIES, REVISION, Shared};
use crate::StoreError;

/// The thread that runs the transactions.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) jobs: mpsc::Receiver<Box<dyn Job>>,
    pub(super) group_length: usize,
    pub(super) compact_open_bytes: u64,
    /// Bytes that were replaced or removed since the last look at how much of the file is free.
    pub(super) removed: u64,
}

impl Writer {
    pub(super) fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut group = vec![first];
            while group.len() < self.group_length {
                let Ok(next) = self.jobs.try_recv() else {
                    break;
                };
                group.push(next);
            }
            match self.commit(&mut group) {
                Ok(removed) => {
                    self.removed += removed;
                    finish_all(group, &Ok(()));
                }
                Err(failed) => self.shared.recover(group, failed),
            }
            if self.jobs.is_empty()
                && self.shared.may_be_worth_compacting(self.removed)
                && self.shared.compact_if_worth(self.compact_open_bytes)
            {
                self.removed = 0;
            }
        }
        self.shared.close(None);
    }

    /// Runs the group in one redb transaction. Returns how many bytes it replaced or removed.
    fn commit(&self, group: &mut [Box<dyn Job>]) -> Result<u64, Failed> {
        let path = &self.shared.path;
        let mut committing = None;
        let committed = self.shared.with_database(|database| {
            guarded(|| {
                let write = database.begin_write()?;
                let before;
                let mut revision;
                let mut removed = 0;
                {
                    let mut counters = write.open_table(COUNTERS)?;
                    before = counters.get(REVISION)?.map_or(0, |value| value.value());
                    revision = before;
                    let mut entries = write.open_table(ENTRIES)?;
                    for job in group.iter_mut() {
                        let changes = job.run(
                            &Located {
                                path,
                                inner: (&entries, revision),
                            },
                            revision + 1,
                        );
                        if changes.is_empty() {
                            continue;
                        }
                        revision += 1;
                        for (key, change) in &changes {
                            let old = match change {
                                Some(value) => entries.insert(key.as_ref(), value.as_ref())?,
                                None => entries.remove(key.as_ref())?,
                            };
                            removed += old.map_or(0, |old| old.value().len() as u64);
                        }
                    }
                    if revision != before {
                        counters.insert(REVISION, revision)?;
                    }
                }
                if revision == before {
                    write.abort()?;
                } else {
                    committing = Some(revision);
                    write.commit()?;
                }
                Ok(removed)
            })
            .map_err(|failure| failure.into_store_error(path))
        });
        committed.map_err(|error| Failed { error, committing })
    }
}

/// A group was not written, as far as is known.
pub(super) struct Failed {
    pub(super) error: StoreError,
    /// The commit itself failed: if the file has this revision, the group was written all the same.
    pub(super) committing: Option<u64>,
}
