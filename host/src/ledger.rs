//! Which objects have been handled, so that a deletion is noticed although nobody watched.
//!
//! One key for each object in the config store: `ledger/{uid of the configurator}/{uid}` with `{"namespace", "name"}`. It is
//! written before the first effect for the object, and removed when the deletion phases are done.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::request::ObjectRef;
use serde::{Deserialize, Serialize};

use crate::sinks::configstore::{ConfigStore, Fence};

/// The record of one Configurator.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn ConfigStore>,
    prefix: String,
    recorded: Arc<Mutex<HashSet<String>>>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
}

impl Ledger {
    /// The record of the Configurator with this uid.
    #[must_use]
    pub fn new(store: Arc<dyn ConfigStore>, configurator_uid: &str) -> Self {
        Self {
            store,
            prefix: format!("ledger/{configurator_uid}/"),
            recorded: Arc::default(),
        }
    }

    /// Everything that is recorded.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(&self) -> Result<Vec<(ObjectRef, String)>, Fault> {
        let entries = self.store.scan(&self.prefix).await?;
        let mut found = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let uid = key
                .strip_prefix(&self.prefix)
                .unwrap_or_default()
                .to_owned();
            match serde_json::from_str::<Record>(&value) {
                Ok(record) => {
                    found.push((
                        ObjectRef {
                            namespace: record.namespace,
                            name: record.name,
                        },
                        uid,
                    ));
                }
                Err(error) => {
                    tracing::warn!(key, %error, "a record of the ledger cannot be read and is left alone")
                }
            }
        }
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.extend(found.iter().map(|(_, uid)| uid.clone()));
        Ok(found)
    }

    /// Records the objects that are not recorded yet, all in one transaction, which holds only while the fences stand.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing may be done for the objects.
    pub async fn record(
        &self,
        objects: &[(ObjectRef, String)],
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let new: Vec<&(ObjectRef, String)> = {
            let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            objects
                .iter()
                .filter(|(_, uid)| !recorded.contains(uid))
                .collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        let writes = new
            .iter()
            .filter_map(|(key, uid)| {
                let record = Record {
                    namespace: key.namespace.clone(),
                    name: key.name.clone(),
                };
                let text = serde_json::to_string(&record).ok()?;
                Some(Write::Put(format!("{}{uid}", self.prefix), text))
            })
            .collect();
        self.store.write(writes, fences).await?;
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.extend(new.into_iter().map(|(_, uid)| uid.clone()));
        Ok(())
    }

    /// Removes the whole record, when the Configurator is gone.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn close(self) -> Result<(), Fault> {
        self.store
            .write(vec![Write::DeletePrefix(self.prefix)], &[])
            .await
    }

    /// Of which Configurators, by uid, there are records.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn recorded_for(store: &dyn ConfigStore) -> Result<HashSet<String>, Fault> {
        let keys = store.scan("ledger/").await?.into_iter();
        Ok(keys
            .filter_map(|(key, _)| Some(key.split('/').nth(1)?.to_owned()))
            .collect())
    }

    /// Another host records these objects from now on.
    pub fn let_go(&self, is_let_go: impl Fn(&str) -> bool) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.retain(|uid| !is_let_go(uid));
    }

    /// Forgets an object.
    ///
    /// # Errors
    /// When the store cannot be written; the object will be found missing once more.
    pub async fn forget(&self, uid: &str) -> Result<(), Fault> {
        let is_recorded = {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.remove(uid)
        };
        if is_recorded {
            self.store
                .write(vec![Write::Delete(format!("{}{uid}", self.prefix))], &[])
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use configurator_core::fault::FaultKind;
    use configurator_core::request::ConfigOperation;
    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::sinks::configstore::Transacted;

    /// Notes what is written, when it is let through.
    struct Noting {
        gate: Semaphore,
        written: Mutex<Vec<(usize, usize)>>,
    }

    #[async_trait]
    impl ConfigStore for Noting {
        async fn transact(
            &self,
            _: &[ConfigOperation],
            _: &str,
            _: &[Fence],
        ) -> Result<Transacted, Fault> {
            Ok(Transacted::default())
        }

        async fn scan(&self, _: &str) -> Result<Vec<(String, String)>, Fault> {
            Ok(Vec::new())
        }

        async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
            let permit = self.gate.acquire().await;
            let permit =
                permit.map_err(|_| Fault::new(FaultKind::ConfigstoreUnavailable, "away"))?;
            permit.forget();
            let mut written = self.written.lock().unwrap();
            written.push((writes.len(), fences.len()));
            Ok(())
        }

        async fn raise(&self, _: &Fence) -> Result<(), Fault> {
            Ok(())
        }

        async fn probe(&self) -> Result<(), Fault> {
            Ok(())
        }
    }

    fn store(permits: usize) -> Arc<Noting> {
        Arc::new(Noting {
            gate: Semaphore::new(permits),
            written: Mutex::default(),
        })
    }

    fn object(number: usize) -> [(ObjectRef, String); 1] {
        let key = ObjectRef {
            namespace: "shop".into(),
            name: format!("web-{number}"),
        };
        [(key, format!("uid-{number}"))]
    }

    #[tokio::test]
    async fn what_is_recorded_at_the_same_time_shares_transactions() {
        let store = store(0);
        let ledger = Ledger::new(store.clone(), "c");
        let objects: Vec<_> = (0..250).map(object).collect();
        let mut recording = join_all(objects.iter().map(|object| ledger.record(object, &[])));
        assert!(futures::poll!(&mut recording).is_pending());
        store.gate.add_permits(250);
        assert!(recording.await.iter().all(Result::is_ok));
        // The first had begun when the others came.
        let mut written = store.written.lock().unwrap().clone();
        written.sort_unstable();
        assert_eq!(written, [(1, 0), (49, 0), (100, 0), (100, 0)]);
    }

    #[tokio::test]
    async fn under_other_fences_there_is_another_transaction() {
        let store = store(usize::MAX >> 4);
        let ledger = Ledger::new(store.clone(), "c");
        let objects: Vec<_> = (0..20).map(object).collect();
        let fences = [Fence::new("a", 1, "h"), Fence::new("b", 1, "h")];
        let recording = objects.iter().enumerate().map(|(number, object)| {
            let fences = fences.get(..number % 2 + 1).unwrap_or_default();
            ledger.record(object, fences)
        });
        assert!(join_all(recording).await.iter().all(Result::is_ok));
        let written = store.written.lock().unwrap().clone();
        let under = |fences: usize| -> usize {
            let of = written.iter().filter(|(_, found)| *found == fences);
            of.map(|(writes, _)| writes).sum()
        };
        assert_eq!((under(1), under(2)), (10, 10), "{written:?}");
    }

    #[tokio::test]
    async fn all_of_a_transaction_hear_why_it_failed() {
        let store = store(0);
        let ledger = Ledger::new(store.clone(), "c");
        let objects: Vec<_> = (0..3).map(object).collect();
        store.gate.close();
        let recording = objects.iter().map(|object| ledger.record(object, &[]));
        assert!(join_all(recording).await.iter().all(Result::is_err));
    }
}
