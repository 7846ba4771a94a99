//! Which objects have been handled, so that a deletion is noticed although nobody watched.
//!
//! One key for each object in the config store: `ledger/{uid of the configurator}/{uid}` with `{"namespace", "name", "life"}`. It is
//! written before the first effect for the object, and removed when the deletion phases are done.
//!
//! An object can come back under its uid while its record is being removed, because a label selects it again. So each time that it is
//! recorded begins a life, a random number, and the removal is carried out only on the life that ended.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::request::ObjectRef;
use serde::{Deserialize, Serialize};

use crate::seal::random;
use crate::sinks::configstore::{Condition, ConfigStore, Fence, segments_below};

/// The prefix of records in the config store.
const PREFIX: &str = "ledger/";

/// The record of one Configurator.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn ConfigStore>,
    prefix: String,
    /// The life of each object that is recorded, by uid.
    recorded: Arc<Mutex<HashMap<String, u64>>>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    /// Zero in records of earlier versions, which had no such field.
    #[serde(default, skip_serializing_if = "is_zero")]
    life: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(life: &u64) -> bool {
    *life == 0
}

/// A record that is to be removed. A later record of the same object has another life and stays.
#[derive(Debug)]
pub struct EndedRecord {
    key: String,
    text: String,
}

impl Ledger {
    /// The record of the Configurator with this uid.
    #[must_use]
    pub fn new(store: Arc<dyn ConfigStore>, configurator_uid: &str) -> Self {
        Self {
            store,
            prefix: format!("{PREFIX}{configurator_uid}/"),
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
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in entries {
            let uid = key
                .strip_prefix(&self.prefix)
                .unwrap_or_default()
                .to_owned();
            match serde_json::from_str::<Record>(&value) {
                Ok(record) => {
                    recorded.insert(uid.clone(), record.life);
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
                .filter(|(_, uid)| !recorded.contains_key(uid))
                .collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        let life = u64::from_be_bytes(random()?);
        let writes = new
            .iter()
            .map(|(key, uid)| Write::Put(self.key(uid), text(key, life)))
            .collect();
        self.store.write(writes, fences).await?;
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.extend(new.into_iter().map(|(_, uid)| (uid.clone(), life)));
        Ok(())
    }

    /// Removes the whole record, when the Configurator is gone.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn close(self, fences: &[Fence]) -> Result<(), Fault> {
        self.store
            .write(vec![Write::DeletePrefix(self.prefix)], fences)
            .await
    }

    /// Returns the uids of the Configurators that there are records for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn owners(store: &dyn ConfigStore) -> Result<BTreeSet<String>, Fault> {
        segments_below(store, PREFIX).await
    }

    /// Another host records these objects from now on.
    pub fn let_go(&self, is_let_go: impl Fn(&str) -> bool) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.retain(|uid, _| !is_let_go(uid));
    }

    /// Ends the life of an object in the ledger, and returns the record to [remove](Self::remove). From now on the object is recorded
    /// again before it is handled.
    #[must_use]
    pub fn end(&self, key: &ObjectRef, uid: &str) -> Option<EndedRecord> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let life = recorded.remove(uid)?;
        Some(EndedRecord {
            key: self.key(uid),
            text: text(key, life),
        })
    }

    /// Removes a record, unless the object was recorded again meanwhile.
    ///
    /// # Errors
    /// When the store cannot be written; the object will be found missing once more.
    pub async fn remove(&self, ended: EndedRecord, fences: &[Fence]) -> Result<(), Fault> {
        let EndedRecord { key, text } = ended;
        let is_it = [Condition::is(key.as_str(), text)];
        let removal = vec![Write::Delete(key)];
        self.store.write_if(removal, &is_it, fences).await.map(drop)
    }

    fn key(&self, uid: &str) -> String {
        format!("{}{uid}", self.prefix)
    }
}

fn text(key: &ObjectRef, life: u64) -> String {
    let record = Record {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        life,
    };
    // A record of texts and a number is always JSON.
    serde_json::to_string(&record).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::sinks::configstore::{ConfigTransaction, EmbeddedConfigStore, Transacted};
    use async_trait::async_trait;
    use configurator_core::fault::FaultKind;

    /// Notes what is written, unless it is away.
    #[derive(Default)]
    struct Noting {
        is_away: AtomicBool,
        written: Mutex<Vec<Write>>,
    }

    #[async_trait]
    impl ConfigStore for Noting {
        async fn transact(&self, _: ConfigTransaction) -> Result<Transacted, Fault> {
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

        async fn write_if(
            &self,
            writes: Vec<Write>,
            _: &[Condition],
            _: &[Fence],
        ) -> Result<bool, Fault> {
            self.write(writes, &[]).await.map(|()| true)
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
        let [Write::Put(key, record)] = written.as_slice() else {
            panic!("{written:?}");
        };
        assert_eq!(key, "ledger/c/uid");
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        assert_eq!(
            (&record["namespace"], &record["name"]),
            (&"shop".into(), &"web".into())
        );
    }

    #[tokio::test]
    async fn a_record_that_was_made_again_is_not_removed() {
        let store = Arc::new(EmbeddedConfigStore::memory());
        let ledger = Ledger::new(store.clone(), "c");
        let key = ObjectRef {
            namespace: "shop".into(),
            name: "web".into(),
        };
        let objects = [(key.clone(), "uid".to_owned())];
        ledger.record(&objects, &[]).await.unwrap();
        let first = ledger.end(&key, "uid").unwrap();
        ledger.record(&objects, &[]).await.unwrap();
        ledger.remove(first, &[]).await.unwrap();
        assert_eq!(store.scan("ledger/").await.unwrap().len(), 1);
        // Another host finds it, and removes it.
        let other = Ledger::new(store.clone(), "c");
        assert_eq!(other.read().await.unwrap(), objects);
        let second = other.end(&key, "uid").unwrap();
        other.remove(second, &[]).await.unwrap();
        assert_eq!(store.scan("ledger/").await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_record_without_a_life_is_removed() {
        let store = Arc::new(EmbeddedConfigStore::memory());
        let record = r#"{"namespace":"shop","name":"web"}"#;
        let write = Write::Put("ledger/c/uid".into(), record.into());
        store.write(vec![write], &[]).await.unwrap();
        let ledger = Ledger::new(store.clone(), "c");
        let (key, uid) = ledger.read().await.unwrap().pop().unwrap();
        let ended = ledger.end(&key, &uid).unwrap();
        ledger.remove(ended, &[]).await.unwrap();
        assert_eq!(store.scan("ledger/").await.unwrap(), []);
    }
}
