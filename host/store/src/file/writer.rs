//! The thread that runs the transactions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::ReadableTable;
use tokio::sync::mpsc;

use super::failure::guarded;
use super::job::Job;
use super::snapshot::Located;
use super::{COUNTERS, ENTRIES, REVISION, Shared};
use crate::StoreError;

/// The thread that runs the transactions.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) jobs: mpsc::Receiver<Box<dyn Job>>,
    pub(super) revision: u64,
    pub(super) group_length: usize,
}

impl Writer {
    pub(super) fn run(mut self) {
        let mut group = Vec::new();
        while let Some(first) = self.jobs.blocking_recv() {
            group.push(first);
            while group.len() < self.group_length {
                let Ok(next) = self.jobs.try_recv() else {
                    break;
                };
                group.push(next);
            }
            match self.commit(&mut group) {
                Ok(revision) => {
                    self.revision = revision;
                    for job in group.drain(..) {
                        // A callback that panics harms only its own caller.
                        let _ = catch_unwind(AssertUnwindSafe(|| job.finish(Ok(()))));
                    }
                }
                Err(error) => {
                    tracing::error!(jobs = group.len(), "transactions failed: {error}");
                    for job in group.drain(..) {
                        let _ = catch_unwind(AssertUnwindSafe(|| job.finish(Err(error.clone()))));
                    }
                    match self.shared.reopen() {
                        Ok(revision) => self.revision = revision,
                        Err(error) => {
                            tracing::error!("the store stays closed until the next call: {error}")
                        }
                    }
                }
            }
        }
        self.shared.close();
    }

    /// Runs the group in one redb transaction. Returns the revision after it.
    fn commit(&mut self, group: &mut [Box<dyn Job>]) -> Result<u64, StoreError> {
        let path = self.shared.path.clone();
        let (before, mut revision) = (self.revision, self.revision);
        self.shared.with_database(|database| {
            guarded(|| {
                let write = database.begin_write()?;
                {
                    // After a failed opening the counter in memory may be of an older state.
                    let mut counters = write.open_table(COUNTERS)?;
                    let stored = counters.get(REVISION)?.map_or(0, |value| value.value());
                    revision = revision.max(stored);
                    let mut entries = write.open_table(ENTRIES)?;
                    for job in group.iter_mut() {
                        let changes = job.run(
                            &Located {
                                path: &path,
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
                    write.abort()?
                } else {
                    write.commit()?
                }
                Ok(revision)
            })
            .map_err(|failure| failure.into_store_error(&path))
        })
    }
}
