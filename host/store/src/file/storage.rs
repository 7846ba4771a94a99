//! The storage under redb, and what of it may not be durable.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// Opens the storage, each time that the database is opened.
pub(crate) type Opener = dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync;

/// Opens the file at `path`, creating it if there is none. Its name is durable afterwards.
pub(super) fn open_file(path: &Path) -> io::Result<Box<dyn StorageBackend>> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    // Without this a power loss takes a new file away, whatever was synced in it.
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    let backend = FileBackend::new(file).map_err(io::Error::other)?;
    Ok(Box::new(backend))
}

/// From here on, what is read of the file at `path` is what is on the disk. On systems other than Linux, it is what the system has cached.
///
/// An earlier process may have met a failed sync, and may have ended before it wrote again what was [not durable](Unsynced). Such pages can be
/// read, but nothing makes them durable. A store that builds upon them is lost with the next power loss. What the disk has instead is what
/// every crash leaves.
pub(super) fn forget_cached(path: &Path) -> io::Result<()> {
    let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    // Only pages that are clean can be forgotten.
    file.sync_data()?;
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

/// The parts of the storage that were written since the last sync that succeeded: offset and length.
///
/// After a failed sync, most file systems count what was written as clean. It can still be read, but no later sync makes it durable. What is
/// in here is therefore written again before anything is read. What an earlier process left is [forgotten](forget_cached) instead.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsynced(Arc<Mutex<BTreeMap<u64, usize>>>);

/// The length of the storage, as it was last known.
#[derive(Debug, Clone, Default)]
pub(super) struct Length(Arc<AtomicU64>);

impl Length {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, length: u64) {
        self.0.store(length, Ordering::Relaxed);
    }
}

impl Unsynced {
    fn parts(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, offset: u64, length: usize) {
        let mut parts = self.parts();
        let longest = parts.entry(offset).or_default();
        *longest = length.max(*longest);
    }

    /// Makes durable what can be read.
    fn write_again(&self, backend: &dyn StorageBackend) -> io::Result<()> {
        let mut parts = self.parts();
        let end = backend.len()?;
        for (&offset, &length) in parts.iter() {
            let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut bytes = vec![0; length.min(left)];
            backend.read(offset, &mut bytes)?;
            backend.write(offset, &bytes)?;
        }
        backend.sync_data()?;
        parts.clear();
        Ok(())
    }
}

/// A storage that keeps account of what may not be durable.
#[derive(Debug)]
pub(super) struct Storage {
    backend: Box<dyn StorageBackend>,
    unsynced: Unsynced,
    length: Length,
}

impl Storage {
    /// Opens the storage. Whatever can be read in it is durable.
    pub(super) fn open(opener: &Opener, unsynced: &Unsynced, length: &Length) -> io::Result<Self> {
        let backend = opener()?;
        unsynced.write_again(&*backend)?;
        Ok(Self {
            backend,
            unsynced: unsynced.clone(),
            length: length.clone(),
        })
    }
}

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        let length = self.backend.len()?;
        self.length.set(length);
        Ok(length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.backend.set_len(length)?;
        self.length.set(length);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut parts = self.unsynced.parts();
        self.backend.sync_data()?;
        parts.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.unsynced.add(offset, data.len());
        self.backend.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.backend.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.backend.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.backend.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.backend.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.backend.query_lock_range(start, end)
    }
}
