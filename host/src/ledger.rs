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
    use std::sync::atomic::{AtomicBool, Ordering};

    use async_trait::async_trait;
    use configurator_core::fault::FaultKind;
    use configurator_core::request::ConfigOperation;

    use super::*;
    use crate::sinks::configstore::Transacted;

    /// Notes what is written, unless it is away.
    #[derive(Default)]
    struct Noting {
        is_away: AtomicBool,
        written: Mutex<Vec<Write>>,
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

        async fn write(&self, writes: Vec<Write>, _: &[Fence]) -> Result<(), Fault> {
            if self.is_away.load(Ordering::Relaxed) {
                return Err(Fault::new(FaultKind::ConfigstoreUnavailable, "away"));
            }
            self.written.lock().unwrap().extend(writes);
            Ok(())
        }

        async fn raise(&self, _: &Fence) -> Result<(), Fault> {
            Ok(())
        }

        async fn probe(&self) -> Result<(), Fault> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_was_written_is_not_written_again() {
        let store = Arc::new(Noting::default());
        let ledger = Ledger::new(store.clone(), "c");
        let key = ObjectRef {
            namespace: "shop".into(),
            name: "web".into(),
        };
        let objects = [(key, "uid".to_owned())];
        store.is_away.store(true, Ordering::Relaxed);
        ledger.record(&objects, &[]).await.unwrap_err();
        store.is_away.store(false, Ordering::Relaxed);
        ledger.record(&objects, &[]).await.unwrap();
        ledger.record(&objects, &[]).await.unwrap();
        let written = store.written.lock().unwrap().clone();
        let record = r#"{"namespace":"shop","name":"web"}"#;
        assert_eq!(written, [Write::Put("ledger/c/uid".into(), record.into())]);
    }
}
