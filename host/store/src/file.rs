//! A store in a file: redb, one writer thread, group commit.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;

use bytes::Bytes;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::{mpsc, oneshot};

use crate::error::panic_message;
use crate::read::lower_bound;
use crate::transaction::Changes;
use crate::{OpenError, Read, StoreError, StoreOptions, Transaction, Visit, WriteError};

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

/// What went wrong inside redb.
enum Failure {
    Error(redb::Error),
    /// redb asserts its invariants; a file with flipped bits makes it panic.
    Panic(Arc<str>),
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        Self::Error(error)
    }
}

/// Calls into redb. A panic there means a damaged file, which must not end the program.
fn guarded<T>(call: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Failure::Error),
        Err(payload) => Err(Failure::Panic(panic_message(&*payload))),
    }
}

impl Failure {
    fn into_open_error(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::Error(redb::Error::DatabaseAlreadyOpen) => {
                OpenError::HeldByAnotherProcess { path }
            }
            // redb reports a file that is too short or has a foreign header as invalid data.
            Self::Error(redb::Error::Io(source))
                if !matches!(
                    source.kind(),
                    std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
                ) =>
            {
                OpenError::Io { path, source }
            }
            Self::Error(error) => OpenError::Damaged {
                path,
                cause: error.to_string(),
            },
            Self::Panic(cause) => OpenError::Damaged {
                path,
                cause: cause.to_string(),
            },
        }
    }

    fn into_store_error(self, path: &Path) -> StoreError {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.to_owned();
        match self {
            Self::Error(redb::Error::Io(source)) => {
                let cause = Arc::from(source.to_string());
                if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
                    StoreError::Full { path, cause }
                } else {
                    StoreError::Io { path, cause }
                }
            }
            Self::Error(
                error @ (redb::Error::PreviousIo
                | redb::Error::DatabaseClosed
                | redb::Error::DatabaseAlreadyOpen),
            ) => StoreError::Io {
                path,
                cause: Arc::from(error.to_string()),
            },
            Self::Error(error) => StoreError::Damaged {
                path,
                cause: Arc::from(error.to_string()),
            },
            Self::Panic(cause) => StoreError::Damaged { path, cause },
        }
    }
}

/// One consistent state of the file.
struct Snapshot {
    entries: redb::ReadOnlyTable<&'static [u8], &'static [u8]>,
    revision: u64,
}

impl Snapshot {
    fn take(database: &Database) -> Result<Self, redb::Error> {
        let read = database.begin_read()?;
        let entries = read.open_table(ENTRIES)?;
        let revision = read
            .open_table(COUNTERS)?
            .get(REVISION)?
            .map_or(0, |value| value.value());
        Ok(Self { entries, revision })
    }
}

/// Something readable, with the path for its error messages.
struct Located<'a, T> {
    path: &'a Path,
    inner: T,
}

impl Read for Located<'_, Snapshot> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        get(self.path, &self.inner.entries, key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        scan(self.path, &self.inner.entries, prefix, after, visit)
    }

    fn revision(&self) -> u64 {
        self.inner.revision
    }
}

type WriteTable<'txn> = redb::Table<'txn, &'static [u8], &'static [u8]>;

impl Read for Located<'_, (&WriteTable<'_>, u64)> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        get(self.path, self.inner.0, key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        scan(self.path, self.inner.0, prefix, after, visit)
    }

    fn revision(&self) -> u64 {
        self.inner.1
    }
}

fn get(
    path: &Path,
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Bytes>, StoreError> {
    guarded(|| {
        Ok(table
            .get(key)?
            .map(|value| Bytes::copy_from_slice(value.value())))
    })
    .map_err(|failure| failure.into_store_error(path))
}

fn scan(
    path: &Path,
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    prefix: &[u8],
    after: Option<&[u8]>,
    visit: &mut Visit<'_>,
) -> Result<(), StoreError> {
    let range: (Bound<&[u8]>, Bound<&[u8]>) = (lower_bound(prefix, after), Bound::Unbounded);
    let mut entries = guarded(|| Ok(table.range::<&[u8]>(range)?))
        .map_err(|failure| failure.into_store_error(path))?;
    loop {
        // Only redb is guarded: a panic of the visitor is not the file's fault.
        let next = guarded(|| Ok(entries.next().transpose()?))
            .map_err(|failure| failure.into_store_error(path))?;
        let Some((key, value)) = next else {
            return Ok(());
        };
        if !key.value().starts_with(prefix) || visit(key.value(), value.value()).is_break() {
            return Ok(());
        }
    }
}

/// The thread that runs the transactions.
struct Writer {
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Box<dyn Job>>,
    revision: u64,
    group_length: usize,
}

impl Writer {
    fn run(mut self) {
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

/// A transaction on its way through the writer.
trait Job: Send {
    /// Runs the transaction's code. Empty changes: it wrote nothing or was refused.
    fn run(&mut self, base: &dyn Read, revision: u64) -> Changes;

    /// Tells the caller how it went.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<T, E, F, G> {
    change: Option<F>,
    then: G,
    result: Option<Result<T, WriteError<E>>>,
    answer: oneshot::Sender<Result<T, WriteError<E>>>,
}

impl<T, E, F, G> Call<T, E, F, G> {
    fn new(change: F, then: G) -> (Self, oneshot::Receiver<Result<T, WriteError<E>>>) {
        let (answer, receiver) = oneshot::channel();
        (
            Self {
                change: Some(change),
                then,
                result: None,
                answer,
            },
            receiver,
        )
    }
}

impl<T, E, F, G> Job for Call<T, E, F, G>
where
    T: Send,
    E: Send,
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send,
    G: FnOnce(&T) + Send,
{
    fn run(&mut self, base: &dyn Read, revision: u64) -> Changes {
        let Some(change) = self.change.take() else {
            return Changes::new();
        };
        let mut transaction = Transaction::new(base, revision);
        // One caller's panic must not take the others of its group along.
        match catch_unwind(AssertUnwindSafe(|| change(&mut transaction))) {
            Ok(Ok(value)) => {
                self.result = Some(Ok(value));
                transaction.into_changes()
            }
            Ok(Err(refusal)) => {
                self.result = Some(Err(WriteError::Refused(refusal)));
                Changes::new()
            }
            Err(payload) => {
                self.result = Some(Err(WriteError::Store(StoreError::Panicked {
                    cause: panic_message(&*payload),
                })));
                Changes::new()
            }
        }
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            // A refusal stands even if the group failed: it needed no write.
            (Some(Err(refusal)), _) => Err(refusal),
            (_, Err(error)) => Err(WriteError::Store(error)),
            (Some(Ok(value)), Ok(())) => {
                (self.then)(&value);
                Ok(value)
            }
            (None, Ok(())) => Err(WriteError::Store(StoreError::Closed)),
        };
        // The caller may have gone.
        let _ = self.answer.send(result);
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
