//! One state of the file, as readers and transactions see it.

use std::ops::Bound;
use std::path::Path;

use bytes::Bytes;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::failure::guarded;
use super::{COUNTERS, ENTRIES, REVISION};
use crate::read::lower_bound;
use crate::{Read, StoreError, Visit};

/// One consistent state of the file.
pub(super) struct Snapshot {
    entries: redb::ReadOnlyTable<&'static [u8], &'static [u8]>,
    revision: u64,
}

impl Snapshot {
    pub(super) fn take(database: &Database) -> Result<Self, redb::Error> {
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
pub(super) struct Located<'a, T> {
    pub(super) path: &'a Path,
    pub(super) inner: T,
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
