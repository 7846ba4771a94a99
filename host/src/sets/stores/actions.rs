//! Carries out the actions of members that are in a store.

use std::fmt::Display;

use configurator_core::authorization::AuthorizedOperation;
use configurator_core::desired::Content;
use configurator_core::desired::store_mark::StoreMark;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::request::{ConfigOperation, ConfigVerb};
use serde_json::{Value, json};

use super::{StoreRequests, StoredMark, if_found};
use crate::sets::actions::{Done, Entry, MemberActions, Prepared, PreparedStep};
use crate::sets::seen::ReadFor;
use crate::shards::Permit;
use crate::sinks::configstore::Companion;

/// A member that was written.
struct Written {
    /// What its store answered.
    value: Value,
    is_changed: bool,
}

impl MemberActions<'_> {
    /// Carries out an action for a member of a store. Reads the member instead if it has changed since it was read last.
    pub(in crate::sets) async fn attempt_in_store(
        self,
        prepared: &Prepared,
    ) -> Result<Done, Fault> {
        let Some(mut stored) = self.stores.mark(&prepared.key).await? else {
            return without_partition(prepared);
        };
        let done = match &prepared.step {
            PreparedStep::Observe => Ok(None),
            PreparedStep::Create(entry) => self.create(prepared, entry, &mut stored).await,
            PreparedStep::Update { uid, .. } | PreparedStep::Delete { uid, .. }
                if stored.get().map_or("", |mark| &mark.nonce) != uid =>
            {
                Ok(None)
            }
            PreparedStep::Update {
                entry, is_drift, ..
            } => {
                self.update(&prepared.key, entry, *is_drift, &mut stored)
                    .await
            }
            PreparedStep::Delete { is_marked, .. } => {
                let is_pruning = stored.get().is_some_and(|mark| mark.pruning.is_some());
                match *is_marked == is_pruning {
                    true => self.delete(&prepared.key, &mut stored).await,
                    false => Ok(None),
                }
            }
            PreparedStep::Mark(version) => {
                let mark = stored.get().map(|mark| StoreMark {
                    pruning: Some(*version),
                    ..mark.clone()
                });
                self.replace_mark(&mut stored, mark).await
            }
            PreparedStep::Release => self.replace_mark(&mut stored, None).await,
        };
        match done {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            // Others have changed the member meanwhile.
            Err(fault) if fault.kind == FaultKind::ResourceConflict => {
                match self.stores.mark(&prepared.key).await? {
                    Some(found) => stored = found,
                    None => return without_partition(prepared),
                }
            }
            Err(fault) => return Err(fault),
        }
        self.look_in_store(prepared, stored).await
    }

    /// Reads a member whose mark was read.
    async fn look_in_store(
        self,
        prepared: &Prepared,
        mut stored: StoredMark,
    ) -> Result<Done, Fault> {
        let key = &prepared.key;
        let value = self.value(key).await?;
        if let (MemberKey::Secret { .. }, Some(value), Some(mark)) = (key, &value, stored.get())
            && prepared.unconfirmed.as_ref() == Some(&mark.nonce)
            && self.stores.digest(&stored, value).await? != mark.value
        {
            // Somebody else created the secret after this host had written the mark, and before it could create the secret.
            self.put_mark(&mut stored, None).await?;
        }
        let object = self.stores.object(key, &stored, value).await?;
        Ok(Done::Seen(object.map(Box::new), ReadFor::Look))
    }

    /// Reads the value of a member, in the form of the store's answer. `None`: it has no value.
    pub(in crate::sets) async fn value(self, key: &MemberKey) -> Result<Option<Value>, Fault> {
        let operation = StoreRequests { run: self.run }.get(key)?;
        let answer = if_found(self.answer(key, &operation, Companion::default()).await)?;
        let document = answer.and_then(|answer| answer.query_objects.into_iter().next());
        Ok(document.map(|document| document.to_value()))
    }

    /// Creates a member. `None`: it exists.
    async fn create(
        self,
        prepared: &Prepared,
        entry: &Entry,
        stored: &mut StoredMark,
    ) -> Result<Option<Done>, Fault> {
        let key = &prepared.key;
        if stored.get().is_some() || self.value(key).await?.is_some() {
            return Ok(None);
        }
        let written = self.write_member(key, entry, stored, None).await?;
        self.shown(key, stored, written.value).await.map(Some)
    }

    async fn update(
        self,
        key: &MemberKey,
        entry: &Entry,
        is_drift: bool,
        stored: &mut StoredMark,
    ) -> Result<Option<Done>, Fault> {
        let before = self.value(key).await?;
        let written = self.write_member(key, entry, stored, before).await?;
        let done = self.shown(key, stored, written.value).await?;
        Ok(Some(match done {
            Done::Seen(Some(object), _) if is_drift && written.is_changed => {
                Done::Repaired(object, None)
            }
            done => done,
        }))
    }

    async fn shown(
        self,
        key: &MemberKey,
        stored: &StoredMark,
        value: Value,
    ) -> Result<Done, Fault> {
        let object = self.stores.object(key, stored, Some(value)).await?;
        Ok(Done::Seen(object.map(Box::new), ReadFor::Write))
    }

    /// Writes a member and its mark. `before` is what the store has.
    async fn write_member(
        self,
        key: &MemberKey,
        entry: &Entry,
        stored: &mut StoredMark,
        before: Option<Value>,
    ) -> Result<Written, Fault> {
        match entry.declared().map(|declared| &declared.content) {
            Some(Content::Config(content)) => {
                self.write_config((key, &content.write), entry, stored, before)
                    .await
            }
            Some(Content::Secret(content)) => {
                let value = content.value.clone();
                self.write_secret((key, value), entry, stored, before).await
            }
            Some(Content::Kubernetes(_)) | None => {
                let message = format!("{key}: the set has no such entry");
                Err(Fault::new(FaultKind::ResourceGeneric, message))
            }
        }
    }

    fn mark_of(self, entry: &Entry, value: String) -> StoreMark {
        StoreMark {
            set: entry.set.to_string(),
            object_set: entry.object_set.to_string(),
            nonce: entry.nonce.clone(),
            digest: entry.digest.clone(),
            value,
            pruning: None,
        }
    }

    async fn write_config(
        self,
        (key, write): (&MemberKey, &ConfigOperation),
        entry: &Entry,
        stored: &mut StoredMark,
        before: Option<Value>,
    ) -> Result<Written, Fault> {
        let uid = match write {
            ConfigOperation::Resource(resource) => resource.uid.clone().map(Value::String),
            _ => None,
        };
        let uid = uid.or_else(|| before.as_ref()?.get("uid").cloned());
        let value = json!({"uid": uid, "value": write.value()});
        let mark = self.mark_of(entry, self.stores.digest(stored, &value).await?);
        let is_new = stored.get().is_none() && before.is_none();
        let verb = match is_new {
            true => ConfigVerb::Create,
            false => ConfigVerb::Update,
        };
        let requests = StoreRequests { run: self.run };
        let operation = requests.write_config(key, write.clone(), verb)?;
        let companion = Companion {
            conditions: vec![stored.is_unchanged()],
            writes: vec![stored.write(Some(&mark))],
            needs_change: is_new,
        };
        let written = self.write_value(key, &operation, companion).await?;
        stored.set(Some(mark));
        Ok(written)
    }

    async fn write_secret(
        self,
        (key, declared): (&MemberKey, Option<Document>),
        entry: &Entry,
        stored: &mut StoredMark,
        before: Option<Value>,
    ) -> Result<Written, Fault> {
        let requests = StoreRequests { run: self.run };
        let current = before.as_ref().and_then(|before| before.get("value"));
        let value = match (declared, current) {
            (Some(declared), _) => declared,
            (None, Some(current)) => document(current)?,
            (None, None) => self.stores.generator.generate(key.name())?,
        };
        let digest = self.stores.digest(stored, &json!({"value": value})).await?;
        let mark = self.mark_of(entry, digest);
        let is_claimed = stored.get().is_some();
        // A mark that is written before the value announces it, for a host that continues after a crash.
        let is_first = !is_claimed || before.is_none();
        if is_first {
            self.put_mark(stored, Some(mark.clone())).await?;
        }
        let written = match before {
            Some(before) if before.get("value") == Some(&value.to_value()) => Written {
                value: before,
                is_changed: false,
            },
            Some(before) => {
                let version = before.get("version").and_then(Value::as_u64);
                let version = version.unwrap_or_default();
                let operation = requests.update_secret(key, value, version)?;
                self.write_value(key, &operation, Companion::default())
                    .await?
            }
            None => {
                let operation = requests.create_secret(key, value)?;
                let written = self
                    .write_value(key, &operation, Companion::default())
                    .await?;
                let digest = self.stores.digest(stored, &written.value).await?;
                if !written.is_changed && digest != mark.value {
                    if !is_claimed {
                        self.put_mark(stored, None).await?;
                    }
                    return Err(overtaken(key));
                }
                written
            }
        };
        if !is_first {
            self.put_mark(stored, Some(mark)).await?;
        }
        Ok(written)
    }

    async fn write_value(
        self,
        key: &MemberKey,
        operation: &AuthorizedOperation,
        companion: Companion,
    ) -> Result<Written, Fault> {
        let answer = self.answer(key, operation, companion).await?;
        let value = answer.query_objects.into_iter().next();
        Ok(Written {
            value: value.map(|value| value.to_value()).unwrap_or_default(),
            is_changed: answer.changed,
        })
    }

    async fn delete(self, key: &MemberKey, stored: &mut StoredMark) -> Result<Option<Done>, Fault> {
        let operation = StoreRequests { run: self.run }.delete(key)?;
        match key {
            MemberKey::Config { .. } => {
                let companion = Companion {
                    conditions: vec![stored.is_unchanged()],
                    writes: vec![stored.write(None)],
                    needs_change: false,
                };
                self.answer(key, &operation, companion).await?;
                stored.set(None);
            }
            MemberKey::Secret { .. } | MemberKey::Kubernetes { .. } => {
                self.answer(key, &operation, Companion::default()).await?;
                self.put_mark(stored, None).await?;
            }
        }
        Ok(None)
    }

    /// Writes or deletes the mark of a member that has one.
    async fn replace_mark(
        self,
        stored: &mut StoredMark,
        mark: Option<StoreMark>,
    ) -> Result<Option<Done>, Fault> {
        if stored.get().is_some() {
            self.put_mark(stored, mark).await?;
        }
        Ok(None)
    }

    /// Writes or deletes a mark.
    ///
    /// # Errors
    /// [`FaultKind::ResourceConflict`] if it is not as it was read.
    async fn put_mark(self, stored: &mut StoredMark, mark: Option<StoreMark>) -> Result<(), Fault> {
        if let Some(permit) = self.permit {
            permit.ready(None).await;
        }
        let write = stored.write(mark.as_ref());
        let conditions = [stored.is_unchanged()];
        let fences = Permit::fences_of(self.permit);
        let config = &self.stores.config;
        if !config.write_if(vec![write], &conditions, fences).await? {
            return Err(overtaken(&stored.key));
        }
        stored.set(mark);
        Ok(())
    }
}

/// The outcome of an action for a member in the partition of a namespace that does not exist.
fn without_partition(prepared: &Prepared) -> Result<Done, Fault> {
    match &prepared.step {
        PreparedStep::Create(_) | PreparedStep::Update { .. } => Err(Fault::new(
            FaultKind::ResourceNotFound,
            format!("{}: there is no such namespace", prepared.key),
        )),
        _ => Ok(Done::Seen(None, ReadFor::Look)),
    }
}

fn overtaken(what: &(impl Display + ?Sized)) -> Fault {
    Fault::new(
        FaultKind::ResourceConflict,
        format!("{what} was changed by others meanwhile"),
    )
}

fn document(value: &Value) -> Result<Document, Fault> {
    Document::of(value).map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))
}
