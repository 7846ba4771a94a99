//! One crash-safe file, or memory, under the embedded stores.
//!
//! A [`Store`] is an ordered map from bytes to bytes with serialisable transactions and one revision that counts them.
//!
//! # Guarantees
//! - Transactions run one after another. One that is refused leaves no trace.
//! - A transaction that was reported as written survives a crash of the process or the machine (file), or nothing does (memory).
//! - A transaction that failed was not written, unless the error is [`StoreError::Unknown`].
//! - What can be read is durable (file).
//! - Readers see one consistent state and never wait for a writer (file).
//! - Callbacks given to [`Store::write_then`] run in the order of the revisions, after the transaction is durable. None is left
//!   out, also where the caller was told that the outcome is unknown.
//!
//! # Examples
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use configurator_store::{Read, Store};
//! let store = Store::memory();
//! let revision = store
//!     .write(|tx| {
//!         tx.put("greeting", "hello");
//!         Ok::<_, std::convert::Infallible>(tx.revision())
//!     })
//!     .await
//!     .unwrap();
//! assert_eq!(revision, 1);
//! assert_eq!(store.get(b"greeting").unwrap().as_deref(), Some(&b"hello"[..]));
//! # });
//! ```

mod error;
mod file;
mod memory;
mod options;
mod read;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transaction;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

pub use error::{OpenError, StoreError, WriteError};
pub use options::StoreOptions;
pub use read::{Read, Visit};
pub use redb::StorageBackend;
pub use transaction::Transaction;

/// A handle to a store; clones share it. The file is released when the last clone is dropped.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
}

#[derive(Clone)]
enum Engine {
    Memory(Arc<memory::Memory>),
    File(Arc<file::File>),
}

impl Store {
    /// Opens the file at `path`, creating it if there is none. Its folder must exist.
    ///
    /// # Errors
    /// Each [`OpenError`] says what to do: the file is damaged, held by another process, or cannot be read or written.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let file = file::File::open(path, options)?;
        Ok(Self {
            engine: Engine::File(Arc::new(file)),
        })
    }

    /// Opens a store on storage that is not a file of the operating system. `name` takes the place of the path in messages.
    ///
    /// `open` is called at once, and again each time that the store has to open its storage after a failure. The storage that it returned
    /// before has been closed by then.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_on(
        name: &Path,
        open: impl Fn() -> std::io::Result<Box<dyn StorageBackend>> + Send + Sync + 'static,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let file = file::File::open_on(name, Box::new(open), options)?;
        Ok(Self {
            engine: Engine::File(Arc::new(file)),
        })
    }

    /// A store that lives in memory and ends with its last clone. It uses no thread: everything runs on the caller's.
    pub fn memory() -> Self {
        Self {
            engine: Engine::Memory(Arc::default()),
        }
    }

    /// Returns whether the store is in memory. Such a store runs everything on the caller's thread.
    #[must_use]
    pub const fn is_in_memory(&self) -> bool {
        matches!(self.engine, Engine::Memory(_))
    }

    /// Calls `look` with one consistent state of the whole store.
    ///
    /// In a file, the state stays as it was when the call began while writers go on. In memory, writers wait, so `look` should be quick.
    ///
    /// # Errors
    /// Those of reading the file; `look` itself is not called then.
    pub fn read<T>(&self, look: impl FnOnce(&dyn Read) -> T) -> Result<T, StoreError> {
        match &self.engine {
            Engine::Memory(memory) => Ok(memory.read(look)),
            Engine::File(file) => file.read(look),
        }
    }

    /// The value of one key in the newest state.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.read(|state| state.get(key))?
    }

    /// The first `limit` entries whose key starts with `prefix`, in the newest state.
    pub fn range(&self, prefix: &[u8], limit: usize) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        self.read(|state| {
            let mut entries = Vec::new();
            if limit == 0 {
                return Ok(entries);
            }
            state.scan(prefix, None, &mut |key, value| {
                entries.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                if entries.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
            Ok(entries)
        })?
    }

    /// The revision of the newest state: how many transactions have written so far.
    pub fn revision(&self) -> Result<u64, StoreError> {
        self.read(|state| state.revision())
    }

    /// Runs `change` as one transaction and waits until it is durable. See [`Store::write_then`].
    pub async fn write<T, E>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.write_then(change, |_| ()).await
    }

    /// Runs `change` as one transaction, then, once it is durable, `then`, and only then returns.
    ///
    /// `change` sees all earlier transactions. What it puts and deletes takes effect only if it returns `Ok`. In a file it runs on the
    /// store's own thread, and many changes share one flush to the disk; the wait for a place in the bounded queue is the backpressure.
    /// `then` calls run one after another in the order of the transactions, and must not call the store.
    ///
    /// Dropping the future before it has a place in the queue means that nothing happens; later, that the result is not known.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with what `change` returned, or [`WriteError::Store`] if the store failed. Nothing was written, unless the
    /// error is [`StoreError::Unknown`]: if the transaction turns out to be written, `then` runs when the file opens again.
    pub async fn write_then<T, E>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        match &self.engine {
            Engine::Memory(memory) => memory.write(change, then),
            Engine::File(file) => file.write(change, then).await,
        }
    }

    /// Runs `change` as one transaction and blocks the thread until it is durable. For programs' start, before there is a runtime.
    ///
    /// # Panics
    /// In a file, when it is called on a thread of an asynchronous runtime.
    pub fn write_blocking<T, E>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        match &self.engine {
            Engine::Memory(memory) => memory.write(change, |_| ()),
            Engine::File(file) => file.write_blocking(change),
        }
    }
}

/// The path of the file.
impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.engine {
            Engine::Memory(_) => f.write_str("the store in memory"),
            Engine::File(file) => write!(f, "{}", file.path().display()),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.engine {
            Engine::Memory(_) => f.write_str("Store(memory)"),
            Engine::File(file) => write!(f, "Store({})", file.path().display()),
        }
    }
}
