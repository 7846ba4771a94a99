use std::ops::ControlFlow;

use bytes::Bytes;

use crate::StoreError;

/// What a scan calls with each key and value, until it says to stop.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A consistent state that can be looked at: a snapshot, or the state a transaction sees.
pub trait Read {
    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// Visits, in order, the entries whose key starts with `prefix` and, if `after` is given, is greater than `after`, until told to stop.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The revision of this state. In a transaction: the one it will have if it writes.
    fn revision(&self) -> u64;
}

/// Where a scan starts, and a test for where it ends.
pub(crate) fn lower_bound<'a>(
    prefix: &'a [u8],
    after: Option<&'a [u8]>,
) -> std::ops::Bound<&'a [u8]> {
    match after {
        Some(after) if after >= prefix => std::ops::Bound::Excluded(after),
        _ => std::ops::Bound::Included(prefix),
    }
}
