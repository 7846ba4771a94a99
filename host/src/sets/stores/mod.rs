//! Members in the config store and the secret store.
//!
//! Each member has a mark: a key of the config store that names the set of the member ([`configurator_core::desired::store_mark`]). A member
//! exists while it has a value or a mark. The host writes a key of the config store in one transaction with its mark. It writes the mark of a secret
//! before the secret, and deletes it after: who writes to a name that has a mark changes a member.

mod actions;
mod poll;
mod requests;

use std::sync::Arc;

use configurator_core::desired::store_mark::{self, StoreMark};
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::layers::{self, Write};
use configurator_core::partition::Partition;
use configurator_core::request::ConfigVerb;
use serde_json::{Map, Value, json};

pub(crate) use self::poll::poll;
pub(super) use self::requests::StoreRequests;
use crate::seal::HostKey;
use crate::sinks::configstore::{Condition, ConfigStore, ConfigTransaction};
use crate::sinks::partitions::Partitions;
use crate::sinks::secretstore::{SecretGenerator, SecretStore};

/// The stores, as far as sets need them.
pub(crate) struct Stores {
    pub(crate) config: Arc<dyn ConfigStore>,
    pub(crate) secrets: Arc<dyn SecretStore>,
    pub(crate) generator: Arc<dyn SecretGenerator>,
    pub(crate) partitions: Arc<dyn Partitions>,
    pub(crate) key: Arc<HostKey>,
    /// The namespace of the Configurator. Empty for a ClusterConfigurator.
    pub(crate) namespace: String,
    /// The Configurator's own partition.
    pub(crate) partition: Partition,
}

/// The mark of a member, as it was read or written last.
struct StoredMark {
    /// The partition of the member.
    partition: Partition,
    /// The key of the mark.
    key: String,
    /// The mark and its text in the store. `None`: the member has no mark.
    mark: Option<(StoreMark, String)>,
}

impl StoredMark {
    fn get(&self) -> Option<&StoreMark> {
        self.mark.as_ref().map(|(mark, _)| mark)
    }

    /// Records that a write succeeded.
    fn set(&mut self, mark: Option<StoreMark>) {
        self.mark = mark.map(|mark| {
            let text = text_of(&mark);
            (mark, text)
        });
    }

    /// The condition that the mark is as it was read.
    fn is_unchanged(&self) -> Condition {
        match &self.mark {
            None => Condition::is_absent(self.key.as_str()),
            Some((_, text)) => Condition::is(self.key.as_str(), text.as_str()),
        }
    }

    /// The write that replaces the mark. `None` deletes it.
    fn write(&self, mark: Option<&StoreMark>) -> Write {
        match mark {
            None => Write::Delete(self.key.clone()),
            Some(mark) => Write::Put(self.key.clone(), text_of(mark)),
        }
    }
}

fn text_of(mark: &StoreMark) -> String {
    serde_json::to_string(mark).unwrap_or_default()
}

impl Stores {
    /// Reads a member to see what others have done to it. The handler does not see it.
    async fn poll(&self, key: &MemberKey) -> Result<Option<Value>, Fault> {
        let Some(mark) = self.mark(key).await? else {
            return Ok(None);
        };
        let value = match key {
            MemberKey::Config { key, .. } => {
                let operation = layers::operation_at(key, ConfigVerb::Get, None);
                let transaction = ConfigTransaction::new(operation.as_slice(), "");
                let transaction = transaction.partition(mark.partition.clone());
                let found = if_found(self.config.transact(transaction).await)?;
                let document = found.and_then(|found| found.answers.into_iter().next());
                document.map(|document| document.to_value())
            }
            MemberKey::Secret { name, .. } => {
                let secret = self.secrets.get(&mark.partition.secret(name)).await?;
                secret.map(|secret| {
                    json!({"name": name, "version": secret.version, "value": secret.value})
                })
            }
            MemberKey::Kubernetes { .. } => None,
        };
        self.object(key, &mark, value).await
    }

    /// Reads the mark of a member. `None`: the namespace whose partition the member is in does not exist, so it does not either.
    async fn mark(&self, key: &MemberKey) -> Result<Option<StoredMark>, Fault> {
        let (Some(partition), Some(mark_key)) = (key.partition(), store_mark::key_of(key)) else {
            return Ok(None);
        };
        let partition = match partition == self.namespace {
            true => self.partition.clone(),
            false => match if_found(self.partitions.of_namespace(partition).await)? {
                Some(partition) => partition,
                None => return Ok(None),
            },
        };
        let mark_key = format!("{}{mark_key}", partition.prefix());
        let stored = self.config.get(&mark_key).await?;
        let mark = stored.map(|text| {
            let mark: StoreMark = serde_json::from_str(&text).map_err(|error| {
                let message = format!("the mark of {key} in the config store cannot be read: {error}; delete the key {mark_key} if no set has it");
                Fault::new(FaultKind::ResourceGeneric, message)
            })?;
            Ok((mark, text))
        });
        Ok(Some(StoredMark {
            mark: mark.transpose()?,
            key: mark_key,
            partition,
        }))
    }

    /// Returns a member in the form of an object. `value` is what its store answers. `None`: it does not exist.
    async fn object(
        &self,
        key: &MemberKey,
        stored: &StoredMark,
        value: Option<Value>,
    ) -> Result<Option<Value>, Fault> {
        let mark = stored.get();
        if mark.is_none() && value.is_none() {
            return Ok(None);
        }
        let is_changed = match (&value, mark) {
            (Some(value), Some(mark)) => self.digest(stored, value).await? != mark.value,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let mut fields = match value {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        // Expressions see no value of a secret.
        if let MemberKey::Secret { .. } = key {
            fields.remove("value");
        }
        Ok(Some(store_mark::object_of(mark, fields, is_changed)))
    }

    /// The keyed digest of the value of a member, as its store answers it.
    async fn digest(&self, mark: &StoredMark, value: &Value) -> Result<String, Fault> {
        let text = json!([value.get("uid"), value.get("value")]).to_string();
        let parts: [&[u8]; 3] = [b"member", mark.key.as_bytes(), text.as_bytes()];
        Ok(self.key.get().await?.seal(&parts))
    }
}

/// Returns the answer of a server. `None`: the server has no such object, key or secret.
pub(super) fn if_found<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(fault) if fault.kind == FaultKind::ResourceNotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}
