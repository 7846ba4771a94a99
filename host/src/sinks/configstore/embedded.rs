//! The config store in one file, or in memory.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{self, Write};
use configurator_store::{
    OpenError, Read as _, Store, StoreError, StoreOptions, Transaction, WriteError,
};

use super::{Condition, ConfigStore, ConfigTransaction, Fence, Transacted};

/// A config store in one file, or in memory.
#[derive(Clone)]
pub struct EmbeddedConfigStore {
    store: Store,
}

impl EmbeddedConfigStore {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// When the file is damaged, held by another process or cannot be read.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self::on(Store::open(path, StoreOptions::default())?))
    }

    /// A store that is gone with its last clone.
    #[must_use]
    pub fn memory() -> Self {
        Self::on(Store::memory())
    }

    /// A config store on a store that is open, and has nothing else in it.
    #[must_use]
    pub fn on(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl ConfigStore for EmbeddedConfigStore {
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault> {
        let reads = transaction.reads()?;
        // Most runs find everything as it should be: that is seen without a place in the writers' queue.
        let stored = self
            .store
            .read(|view| look_up(view, &reads))
            .and_then(|stored| stored)
            .map_err(|error| unavailable(&error))?;
        let plan = transaction.plan(&stored)?;
        if plan.writes.is_empty() {
            return Ok(Transacted {
                answers: plan.answers,
                changed: false,
            });
        }
        let write = move |stored: &mut Transaction<'_>| {
            let found = look_up(stored, &reads).map_err(|error| unavailable(&error))?;
            let plan = transaction.plan(&found)?;
            let changed = !plan.writes.is_empty();
            carry_out(stored, plan.writes).map_err(|error| unavailable(&error))?;
            Ok(Transacted {
                answers: plan.answers,
                changed,
            })
        };
        self.store.write(write).await.map_err(fault_of)
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        let found = self
            .store
            .range(prefix.as_bytes(), usize::MAX)
            .map_err(|error| unavailable(&error))?;
        found
            .into_iter()
            .map(|(key, value)| Ok((text(&key)?, text(&value)?)))
            .collect::<Result<_, StoreError>>()
            .map_err(|error| unavailable(&error))
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Fault> {
        let found = self.store.get(key.as_bytes());
        let value = found.and_then(|value| value.map(|value| text(&value)).transpose());
        value.map_err(|error| unavailable(&error))
    }

    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        self.write_if(writes, &[], fences).await.map(drop)
    }

    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        let fences = fences.to_vec();
        let conditions = conditions.to_vec();
        let transaction = move |transaction: &mut Transaction<'_>| {
            let reads = fences.iter().map(Fence::read);
            let reads: Vec<layers::Read> = reads
                .chain(conditions.iter().map(Condition::read))
                .collect();
            let stored = look_up(transaction, &reads).map_err(|error| unavailable(&error))?;
            Fence::check(&fences, &stored)?;
            let is_right = conditions.iter().all(|condition| condition.holds(&stored));
            if is_right {
                carry_out(transaction, writes).map_err(|error| unavailable(&error))?;
            }
            Ok(is_right)
        };
        self.store.write(transaction).await.map_err(fault_of)
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.store
            .get(b"")
            .map(drop)
            .map_err(|error| unavailable(&error))
    }
}

fn look_up(
    view: &dyn configurator_store::Read,
    reads: &[layers::Read],
) -> Result<BTreeMap<String, String>, StoreError> {
    let mut stored = BTreeMap::new();
    for read in reads {
        match read {
            layers::Read::Key(key) => {
                if let Some(value) = view.get(key.as_bytes())? {
                    stored.insert(key.clone(), text(&value)?);
                }
            }
            layers::Read::First { prefix, limit } => {
                let mut found = Vec::new();
                view.scan(prefix.as_bytes(), None, &mut |key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                    if found.len() < *limit {
                        std::ops::ControlFlow::Continue(())
                    } else {
                        std::ops::ControlFlow::Break(())
                    }
                })?;
                for (key, value) in found {
                    stored.insert(text(&key)?, text(&value)?);
                }
            }
        }
    }
    Ok(stored)
}

fn carry_out(transaction: &mut Transaction<'_>, writes: Vec<Write>) -> Result<(), StoreError> {
    for write in writes {
        match write {
            Write::Put(key, value) => transaction.put(key, value),
            Write::Delete(key) => transaction.delete(key),
            Write::DeletePrefix(prefix) => {
                let mut keys = Vec::new();
                transaction.scan(prefix.as_bytes(), None, &mut |key, _| {
                    keys.push(key.to_vec());
                    std::ops::ControlFlow::Continue(())
                })?;
                for key in keys {
                    transaction.delete(key);
                }
            }
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, StoreError> {
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn unavailable(error: &StoreError) -> Fault {
    Fault::new(
        FaultKind::ConfigstoreUnavailable,
        format!("the config store: {error}"),
    )
}

fn fault_of(error: WriteError<Fault>) -> Fault {
    match error {
        WriteError::Refused(fault) => fault,
        WriteError::Store(error) => unavailable(&error),
    }
}
