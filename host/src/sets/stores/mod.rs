//! Members in the config store and the secret store.
//!
//! A member has a mark: a key of the config store which says what set it belongs to ([`configurator_core::desired::store_mark`]). A member exists
//! while it has a value or a mark. A key of the config store is written in one transaction with its mark. A secret gets its mark first, and loses it
//! last: whoever writes to a name that has a mark changes a member.

mod actions;
mod poll;
mod requests;

use std::sync::Arc;

use configurator_core::desired::store_mark::{self, StoreMark};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::layers::Write;
use configurator_core::partition::Partition;
use configurator_core::request::Operation;
use serde_json::{Map, Value, json};

pub(crate) use self::poll::poll;
pub(super) use self::requests::StoreRequests;
use self::requests::read_of;
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
    /// The Configurator's own partition, and the namespace that it belongs to.
    pub(crate) own: (String, Partition),
}

/// A mark that was read, or the place of one that does not exist.
struct Place {
    partition: Partition,
    /// The key of the mark.
    key: String,
    /// The mark, and its text as it is stored.
    mark: Option<(StoreMark, String)>,
}

impl Place {
    fn mark(&self) -> Option<&StoreMark> {
        self.mark.as_ref().map(|(mark, _)| mark)
    }

    /// Takes note of a write.
    fn set(&mut self, mark: Option<StoreMark>) {
        self.mark = mark.map(|mark| {
            let text = text_of(&mark);
            (mark, text)
        });
    }

    /// Holds while the mark is as it was read.
    fn is_unchanged(&self) -> Condition {
        match &self.mark {
            None => Condition::is_absent(self.key.as_str()),
            Some((_, text)) => Condition::is(self.key.as_str(), text.as_str()),
        }
    }

    /// The write after which the mark is this one. `None`: there is none.
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
    /// Reads a member for a look at what others have done to it. The handler does not see it.
    async fn look(&self, key: &MemberKey) -> Result<Option<Value>, Fault> {
        let Some(place) = self.place(key).await? else {
            return Ok(None);
        };
        let value = match read_of(key, None) {
            Operation::Config(request) => {
                let transaction = ConfigTransaction::new(&request.operations, "");
                let transaction = transaction.partition(place.partition.clone());
                found(self.config.transact(transaction).await)?
                    .and_then(|found| found.answers.into_iter().next())
                    .map(|document| document.to_value())
            }
            Operation::Secret(request) => {
                let name = place.partition.secret(&request.name);
                let secret = self.secrets.get(&name).await?;
                secret.map(|secret| {
                    json!({"name": request.name, "version": secret.version, "value": secret.value})
                })
            }
            Operation::Kubernetes(_) | Operation::Http(_) | Operation::Extension(_) => None,
        };
        self.object(key, &place, value).await
    }

    /// Reads the mark of a member. `None`: the namespace whose partition the member is in does not exist, so it does not either.
    async fn place(&self, key: &MemberKey) -> Result<Option<Place>, Fault> {
        let (MemberKey::Config { partition, .. } | MemberKey::Secret { partition, .. }) = key
        else {
            return Ok(None);
        };
        let partition = match *partition == self.own.0 {
            true => self.own.1.clone(),
            false => match found(self.partitions.of_namespace(partition).await)? {
                Some(partition) => partition,
                None => return Ok(None),
            },
        };
        let mark_key = store_mark::key_of(key).unwrap_or_default();
        let mark_key = format!("{}{mark_key}", partition.prefix());
        let mut stored = self.config.scan(&mark_key).await?.into_iter();
        let stored = stored.find(|(found, _)| *found == mark_key);
        let mark = stored.map(|(_, text)| {
            let mark: StoreMark = serde_json::from_str(&text).map_err(|error| {
                let message = format!("the mark of {key} in the config store cannot be read: {error}; delete the key {mark_key} if no set has it");
                Fault::new(FaultKind::ResourceGeneric, message)
            })?;
            Ok((mark, text))
        });
        Ok(Some(Place {
            mark: mark.transpose()?,
            key: mark_key,
            partition,
        }))
    }

    /// Returns a member in the form of an object. `value` is what its store answers. `None`: it does not exist.
    async fn object(
        &self,
        key: &MemberKey,
        place: &Place,
        value: Option<Value>,
    ) -> Result<Option<Value>, Fault> {
        let mark = place.mark();
        if mark.is_none() && value.is_none() {
            return Ok(None);
        }
        let is_changed = match (&value, mark) {
            (Some(value), Some(mark)) => self.digest(place, value).await? != mark.value,
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
    async fn digest(&self, place: &Place, value: &Value) -> Result<String, Fault> {
        let text = json!([value.get("uid"), value.get("value")]).to_string();
        let parts: [&[u8]; 3] = [b"member", place.key.as_bytes(), text.as_bytes()];
        Ok(self.key.get().await?.seal(&parts))
    }

    /// The keyed digest of the value of a secret.
    async fn digest_of_secret(&self, place: &Place, value: &Document) -> Result<String, Fault> {
        self.digest(place, &json!({"value": value})).await
    }
}

/// The answer of a server. `None`: it says that there is nothing.
fn found<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(fault) if fault.kind == FaultKind::ResourceNotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}
