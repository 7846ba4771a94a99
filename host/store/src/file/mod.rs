//! A store in a file: redb, one writer thread, group commit.

mod failure;
mod job;
mod snapshot;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;

use redb::{Database, ReadableDatabase, TableDefinition};
use tokio::sync::mpsc;

use self::failure::{Failure, guarded};
use self::job::{Call, Job};
use self::snapshot::{Located, Snapshot};
use self::writer::Writer;
use crate::{OpenError, Read, StoreError, StoreOptions, Transaction, WriteError};

const ENTRIES: TableDefinition<'static, &'static [u8], &'static [u8]> =
    TableDefinition::new("entries");
const COUNTERS: TableDefinition<'static, &'static str, u64> = TableDefinition::new("counters");
const REVISION: &str = "revision";

/// The caller's side: a queue to the writer thread, and the database for readers.
pub(crate) struct File {
    shared: Arc<Shared>,
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    writer: Option<JoinHandle<()>>,
}

impl File {
    pub(crate) fn open(path: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let file = path.to_owned();
        let cache_bytes = options.cache_bytes;
        let opener = move || {
            Database::builder()
                .set_cache_size(cache_bytes)
                .create(&file)
        };
        Self::start(path, options, Box::new(opener))
    }

    fn start(path: &Path, options: StoreOptions, opener: Box<Opener>) -> Result<Self, OpenError> {
        let (database, revision) =
            open_database(&*opener).map_err(|failure| failure.into_open_error(path))?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            opener,
            database: RwLock::new(Some(database)),
        });
        let (queue, jobs) = mpsc::channel(options.queue_length.max(1));
        let writer = Writer {
            shared: Arc::clone(&shared),
            jobs,
            revision,
            group_length: options.group_length.max(1),
        };
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::Io {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            shared,
            queue: Some(queue),
            writer: Some(writer),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&dyn Read) -> T) -> Result<T, StoreError> {
        self.shared.with_database(|database| {
            let snapshot = guarded(|| Snapshot::take(database))
                .map_err(|failure| failure.into_store_error(&self.shared.path))?;
            let snapshot = Located {
                path: &self.shared.path,
                inner: snapshot,
            };
            Ok(look(&snapshot))
        })
    }

    pub(crate) async fn write<T, E>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (call, answer) = Call::new(change, then);
        let queue = self
            .queue
            .as_ref()
            .ok_or(WriteError::Store(StoreError::Closed))?;
        queue
            .send(Box::new(call))
            .await
            .map_err(|_| WriteError::Store(StoreError::Closed))?;
        answer
            .await
            .unwrap_or(Err(WriteError::Store(StoreError::Closed)))
    }

    pub(crate) fn write_blocking<T, E>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (call, answer) = Call::new(change, |_: &T| ());
        let queue = self
            .queue
            .as_ref()
            .ok_or(WriteError::Store(StoreError::Closed))?;
        queue
            .blocking_send(Box::new(call))
            .map_err(|_| WriteError::Store(StoreError::Closed))?;
        answer
            .blocking_recv()
            .unwrap_or(Err(WriteError::Store(StoreError::Closed)))
    }
}

impl Drop for File {
    /// Waits for the writer, so that the file is free when the last handle has gone.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take()
            && writer.thread().id() != std::thread::current().id()
        {
            // The writer catches panics; nothing is lost if it ended by one all the same.
            let _ = writer.join();
        }
    }
}

type Opener = dyn Fn() -> Result<Database, redb::DatabaseError> + Send + Sync;

struct Shared {
    path: PathBuf,
    opener: Box<Opener>,
    /// Empty between a failure and the next successful opening. Readers hold it shared, so nobody closes it under them.
    database: RwLock<Option<Database>>,
}

impl Shared {
    fn with_database<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        {
            let slot = self.database.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(database) = slot.as_ref() {
                return work(database);
            }
        }
        self.reopen()?;
        let slot = self.database.read().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().ok_or(StoreError::Closed).and_then(work)
    }

    /// After an input or output error redb refuses to go on with the open database: it is opened anew.
    fn reopen(&self) -> Result<u64, StoreError> {
        let mut slot = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *slot = None;
        let (database, revision) =
            open_database(&*self.opener).map_err(|failure| failure.into_store_error(&self.path))?;
        *slot = Some(database);
        Ok(revision)
    }

    fn close(&self) {
        *self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Opens the database, makes sure that its tables are there and reads its revision.
fn open_database(opener: &Opener) -> Result<(Database, u64), Failure> {
    guarded(|| {
        let database = opener().map_err(redb::Error::from)?;
        let present = {
            let read = database.begin_read().map_err(redb::Error::from)?;
            match read.open_table(COUNTERS) {
                Ok(counters) => Some(
                    counters
                        .get(REVISION)
                        .map_err(redb::Error::from)?
                        .map_or(0, |value| value.value()),
                ),
                Err(redb::TableError::TableDoesNotExist(_)) => None,
                Err(error) => return Err(redb::Error::from(error)),
            }
        };
        if let Some(revision) = present {
            return Ok((database, revision));
        }
        let write = database.begin_write().map_err(redb::Error::from)?;
        write.open_table(ENTRIES).map_err(redb::Error::from)?;
        write
            .open_table(COUNTERS)
            .map_err(redb::Error::from)?
            .insert(REVISION, 0)
            .map_err(redb::Error::from)?;
        write.commit().map_err(redb::Error::from)?;
        Ok((database, 0))
    })
}

#[cfg(test)]
mod tests;
