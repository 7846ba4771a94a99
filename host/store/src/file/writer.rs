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
                Ok(()) => finish_all(group, &Ok(())),
                Err(failed) => self.shared.recover(group, failed),
            }
        }
        self.shared.close();
    }

    /// Runs the group in one redb transaction.
    fn commit(&self, group: &mut [Box<dyn Job>]) -> Result<(), Failed> {
        let path = &self.shared.path;
        let mut committing = None;
        let committed = self.shared.with_database(|database| {
            guarded(|| {
                let write = database.begin_write()?;
                let before;
                let mut revision;
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
                            match change {
                                Some(value) => entries.insert(key.as_ref(), value.as_ref())?,
                                None => entries.remove(key.as_ref())?,
                            };
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
                Ok(())
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
