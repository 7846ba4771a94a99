//! A store in a file: redb, one writer thread, group commit.

mod compaction;
mod failure;
mod job;
mod snapshot;
mod storage;
mod writer;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use redb::{Database, ReadableDatabase, TableDefinition};
use tokio::sync::mpsc;

use self::failure::{Failure, guarded};
use self::job::{Call, Job, finish_all};
use self::snapshot::{Located, Snapshot};
pub(crate) use self::storage::Opener;
use self::storage::{Length, Storage, Unsynced, forget_cached, open_file};
use self::writer::{Failed, Writer};
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
        prepare(path, options.cache_bytes)?;
        let file = path.to_owned();
        Self::open_on(path, Box::new(move || open_file(&file)), options)
    }

    pub(crate) fn open_on(
        path: &Path,
        opener: Box<Opener>,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let unsynced = Unsynced::default();
        let length = Length::default();
        let (database, _) = open_database(&*opener, &unsynced, &length, options.cache_bytes)
            .map_err(|failure| failure.into_open_error(path))?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            opener,
            unsynced,
            length,
            cache_bytes: options.cache_bytes,
            free_percent: options.free_percent.min(100),
            database: RwLock::new(Some(database)),
            open_group: Mutex::new(None),
        });
        shared.compact_if_worth(u64::MAX);
        let (queue, jobs) = mpsc::channel(options.queue_length.max(1));
        let writer = Writer {
            shared: Arc::clone(&shared),
            jobs,
            group_length: options.group_length.max(1),
            compact_open_bytes: options.compact_open_bytes,
            removed: 0,
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

struct Shared {
    path: PathBuf,
    opener: Box<Opener>,
    unsynced: Unsynced,
    length: Length,
    cache_bytes: usize,
    free_percent: u8,
    /// Empty between a failure and the next successful opening. Readers hold it shared, so nobody closes it under them.
    database: RwLock<Option<Database>>,
    open_group: Mutex<Option<OpenGroup>>,
}

/// A group whose commit failed, until the file shows whether it was written.
struct OpenGroup {
    jobs: Vec<Box<dyn Job>>,
    /// The revision that the file has if it was written.
    revision: u64,
    error: StoreError,
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

    /// Opens the database where it is not open: after an input or output error redb refuses to go on. Nobody sees the file before the group
    /// whose commit failed has been finished, so callbacks keep the order and miss nothing.
    fn reopen(&self) -> Result<(), StoreError> {
        let mut slot = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if slot.is_some() {
            return Ok(());
        }
        let (database, revision) = open_database(
            &*self.opener,
            &self.unsynced,
            &self.length,
            self.cache_bytes,
        )
        .map_err(|failure| failure.into_store_error(&self.path))?;
        if let Some(group) = self.open_group().take() {
            let ended = if revision >= group.revision {
                Ok(())
            } else {
                Err(group.error)
            };
            finish_all(group.jobs, &ended);
        }
        *slot = Some(database);
        Ok(())
    }

    /// Finishes a group that failed: at once if it is certain how it ended, else when the file can be opened again.
    fn recover(&self, jobs: Vec<Box<dyn Job>>, failed: Failed) {
        let Failed { error, committing } = failed;
        tracing::error!(jobs = jobs.len(), "transactions failed: {error}");
        match committing {
            None => {
                self.close(None);
                finish_all(jobs, &Err(error));
            }
            Some(revision) => self.close(Some(OpenGroup {
                jobs,
                revision,
                error,
            })),
        }
        if let Err(error) = self.reopen() {
            tracing::error!("the store stays closed until the next call: {error}");
            if let Some(group) = self.open_group().as_mut() {
                for job in &mut group.jobs {
                    job.leave_open(group.error.clone().into_unknown());
                }
            }
        }
    }

    fn open_group(&self) -> MutexGuard<'_, Option<OpenGroup>> {
        self.open_group
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the database and leaves this group to be finished. The next caller that opens the database finishes it, also if it only reads.
    fn close(&self, group: Option<OpenGroup>) {
        let mut slot = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *slot = None;
        if group.is_some() {
            *self.open_group() = group;
        }
    }
}

/// Makes the file at `path` if there is none: under another name first, so that a crash never leaves half a file under its own. Of a file that
/// is there, the system forgets [what it has cached](forget_cached).
fn prepare(path: &Path, cache_bytes: usize) -> Result<(), OpenError> {
    let io = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    if path.try_exists().map_err(io)? {
        return forget_cached(path).map_err(io);
    }
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    // An earlier process may have left one.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
        Ok(()) | Err(_) => {}
    }
    let file = aside.clone();
    let opener = move || open_file(&file);
    let made = open_database(
        &opener,
        &Unsynced::default(),
        &Length::default(),
        cache_bytes,
    );
    drop(made.map_err(|failure| failure.into_open_error(path))?);
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside).map_err(io)?;
    match linked {
        // Another process was quicker.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(io(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens the database, makes sure that its tables are there and reads its revision.
fn open_database(
    opener: &Opener,
    unsynced: &Unsynced,
    length: &Length,
    cache_bytes: usize,
) -> Result<(Database, u64), Failure> {
    guarded(|| {
        let storage = Storage::open(opener, unsynced, length).map_err(redb::Error::Io)?;
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            .create_with_backend(storage)
            .map_err(redb::Error::from)?;
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
