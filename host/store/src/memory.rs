use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError, RwLock};

use bytes::Bytes;

use crate::read::lower_bound;
use crate::{Read, StoreError, Transaction, Visit, WriteError};

/// A store in memory. Everything runs on the caller's thread.
#[derive(Default)]
pub(crate) struct Memory {
    /// Held from the start of a transaction to the end of its callback, so that callbacks keep the order.
    order: Mutex<()>,
    state: RwLock<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<Bytes, Bytes>,
    pub(crate) revision: u64,
}

impl Memory {
    pub(crate) fn read<T>(&self, look: impl FnOnce(&dyn Read) -> T) -> T {
        // A poisoned lock is harmless: the state changes only by `apply`, which cannot panic half-way.
        look(&*self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn write<T, E>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
        then: impl FnOnce(&T),
    ) -> Result<T, WriteError<E>> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let (result, changes) = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let mut transaction = Transaction::new(&*state, state.revision + 1);
            let result = change(&mut transaction).map_err(WriteError::Refused)?;
            (result, transaction.into_changes())
        };
        if !changes.is_empty() {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            state.revision += 1;
            for (key, change) in changes {
                match change {
                    Some(value) => state.entries.insert(key, value),
                    None => state.entries.remove(&key),
                };
            }
        }
        then(&result);
        Ok(result)
    }
}

impl Read for State {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.entries.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        for (key, value) in self
            .entries
            .range::<[u8], _>((lower_bound(prefix, after), Bound::Unbounded))
        {
            if !key.starts_with(prefix) || visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn revision(&self) -> u64 {
        self.revision
    }
}
