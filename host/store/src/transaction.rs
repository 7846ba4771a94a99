use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use crate::read::lower_bound;
use crate::{Read, StoreError, Visit};

/// One read-modify-write, before it is written. It sees its own changes; nobody else does.
pub struct Transaction<'a> {
    base: &'a dyn Read,
    changes: Changes,
    revision: u64,
}

/// What a transaction wants: a value for each key, or its absence.
pub(crate) type Changes = BTreeMap<Bytes, Option<Bytes>>;

impl<'a> Transaction<'a> {
    pub(crate) fn new(base: &'a dyn Read, revision: u64) -> Self {
        Self {
            base,
            changes: Changes::new(),
            revision,
        }
    }

    /// The revision that this transaction will have if it writes.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.changes.insert(key.into(), Some(value.into()));
    }

    /// Removes `key`, if it is there.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.changes.insert(key.into(), None);
    }

    pub(crate) fn into_changes(self) -> Changes {
        self.changes
    }
}

impl Read for Transaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match self.changes.get(key) {
            Some(change) => Ok(change.clone()),
            None => self.base.get(key),
        }
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut changes = self
            .changes
            .range::<[u8], _>((lower_bound(prefix, after), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .peekable();
        let mut stopped = false;
        self.base.scan(prefix, after, &mut |key, value| {
            // The own changes up to this key come first; one of this very key replaces it.
            while let Some((changed, change)) =
                changes.next_if(|(changed, _)| changed.as_ref() <= key)
            {
                let visited = match change {
                    Some(change) => visit(changed, change),
                    None => ControlFlow::Continue(()),
                };
                if visited.is_break() {
                    stopped = true;
                    return ControlFlow::Break(());
                }
                if changed.as_ref() == key {
                    return ControlFlow::Continue(());
                }
            }
            let visited = visit(key, value);
            stopped = visited.is_break();
            visited
        })?;
        if !stopped {
            for (key, change) in changes {
                if let Some(value) = change
                    && visit(key, value).is_break()
                {
                    break;
                }
            }
        }
        Ok(())
    }

    fn revision(&self) -> u64 {
        self.revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::State;
    use proptest::prelude::*;

    fn all(
        read: &dyn Read,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Vec<(Bytes, Bytes)> {
        let mut entries = Vec::new();
        read.scan(prefix, after, &mut |key, value| {
            entries.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
            if entries.len() < limit {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .unwrap();
        entries
    }

    proptest! {
        /// A transaction reads exactly what the store would hold after it.
        #[test]
        fn a_transaction_reads_what_it_would_write(
            base in prop::collection::btree_map("[ab]{0,3}", "[xy]", 0..8),
            changes in prop::collection::btree_map("[ab]{0,3}", prop::option::of("[z]"), 0..8),
            prefix in "[ab]{0,2}",
            after in prop::option::of("[ab]{0,3}"),
            limit in 1usize..5,
        ) {
            let mut expected = State::default();
            for (key, value) in &base {
                expected.entries.insert(Bytes::from(key.clone()), Bytes::from(value.clone()));
            }
            let state = State { entries: expected.entries.clone(), revision: 0 };
            let mut transaction = Transaction::new(&state, 1);
            for (key, change) in &changes {
                match change {
                    Some(value) => {
                        transaction.put(key.clone(), value.clone());
                        expected.entries.insert(Bytes::from(key.clone()), Bytes::from(value.clone()));
                    }
                    None => {
                        transaction.delete(key.clone());
                        expected.entries.remove(key.as_bytes());
                    }
                }
            }
            let after = after.as_deref().map(str::as_bytes);
            prop_assert_eq!(
                all(&transaction, prefix.as_bytes(), after, limit),
                all(&expected, prefix.as_bytes(), after, limit)
            );
        }
    }
}
