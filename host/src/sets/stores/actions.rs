//! Carries out the actions of members that are in a store.

use std::fmt::Display;

use configurator_core::authorization::AuthorizedOperation;
use configurator_core::desired::store_mark::StoreMark;
use configurator_core::desired::{Content, DesiredEntry};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::request::{ConfigOperation, ConfigVerb};
use serde_json::{Value, json};

use super::super::actions::{Done, Entry, MemberActions, Prepared, PreparedStep};
use super::super::live::ReadFor;
use super::{Place, StoreRequests, found};
use crate::shards::Permit;
use crate::sinks::configstore::Companion;

/// A member that was written.
struct Written {
    /// What its store answered.
    value: Value,
    is_changed: bool,
}

impl MemberActions<'_> {
    /// Carries out an action for a member of a store. A member that is not as it was read before is read again.
    pub(in super::super) async fn attempt_in_store(
        self,
        prepared: &Prepared,
    ) -> Result<Done, Fault> {
        let Some(mut place) = self.stores.place(&prepared.key).await? else {
            return without_partition(prepared);
        };
        let done = match &prepared.step {
            PreparedStep::Observe => Ok(None),
            PreparedStep::Create(entry) => self.create(prepared, entry, &mut place).await,
            PreparedStep::Update { uid, .. } | PreparedStep::Delete { uid, .. }
                if place.mark().map_or("", |mark| &mark.nonce) != uid =>
            {
                Ok(None)
            }
            PreparedStep::Update {
                entry, is_drift, ..
            } => {
                self.update(&prepared.key, entry, *is_drift, &mut place)
                    .await
            }
            PreparedStep::Delete { is_marked, .. } => {
                let is_pruning = place.mark().is_some_and(|mark| mark.pruning.is_some());
                match *is_marked == is_pruning {
                    true => self.delete(&prepared.key, &mut place).await,
                    false => Ok(None),
                }
            }
            PreparedStep::Mark(version) => {
                let mark = place.mark().map(|mark| StoreMark {
                    pruning: Some(*version),
                    ..mark.clone()
                });
                self.replace_mark(&mut place, mark).await
            }
            PreparedStep::Release => self.replace_mark(&mut place, None).await,
        };
        match done {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            // Somebody else was first.
            Err(fault) if fault.kind == FaultKind::ResourceConflict => {
                match self.stores.place(&prepared.key).await? {
                    Some(found) => place = found,
                    None => return without_partition(prepared),
                }
            }
            Err(fault) => return Err(fault),
        }
        self.look_in_store(prepared, place).await
    }

    /// Reads a member whose mark was read.
    async fn look_in_store(self, prepared: &Prepared, mut place: Place) -> Result<Done, Fault> {
        let key = &prepared.key;
        let value = self.value(key).await?;
        if let (MemberKey::Secret { .. }, Some(value), Some(mark)) = (key, &value, place.mark())
            && prepared.unconfirmed.as_ref() == Some(&mark.nonce)
            && self.stores.digest(&place, value).await? != mark.value
        {
            // Somebody else created the secret after this host had written the mark, and before it could create the secret.
            self.put_mark(&mut place, None).await?;
        }
        let object = self.stores.object(key, &place, value).await?;
        Ok(Done::Seen(object.map(Box::new), ReadFor::Look))
    }

    /// Reads what a member has, as its store answers. `None`: it has nothing.
    pub(in super::super) async fn value(self, key: &MemberKey) -> Result<Option<Value>, Fault> {
        let operation = StoreRequests { run: self.run }.get(key)?;
        let answer = found(self.answer(key, &operation, Companion::default()).await)?;
        let document = answer.and_then(|answer| answer.query_objects.into_iter().next());
        Ok(document.map(|document| document.to_value()))
    }

    /// Creates a member. `None`: it exists.
    async fn create(
        self,
        prepared: &Prepared,
        entry: &Entry,
        place: &mut Place,
    ) -> Result<Option<Done>, Fault> {
        let key = &prepared.key;
        if place.mark().is_some() || self.value(key).await?.is_some() {
            return Ok(None);
        }
        let written = self.write_member(key, entry, place, None).await?;
        self.shown(key, place, written.value).await.map(Some)
    }

    async fn update(
        self,
        key: &MemberKey,
        entry: &Entry,
        is_drift: bool,
        place: &mut Place,
    ) -> Result<Option<Done>, Fault> {
        let before = self.value(key).await?;
        let written = self.write_member(key, entry, place, before).await?;
        let done = self.shown(key, place, written.value).await?;
        Ok(Some(match done {
            Done::Seen(Some(object), _) if is_drift && written.is_changed => {
                Done::Repaired(object, None)
            }
            done => done,
        }))
    }

    async fn shown(self, key: &MemberKey, place: &Place, value: Value) -> Result<Done, Fault> {
        let object = self.stores.object(key, place, Some(value)).await?;
        Ok(Done::Seen(object.map(Box::new), ReadFor::Write))
    }

    /// Writes a member and its mark. `before` is what the store has.
    async fn write_member(
        self,
        key: &MemberKey,
        entry: &Entry,
        place: &mut Place,
        before: Option<Value>,
    ) -> Result<Written, Fault> {
        let declared = entry
            .declared()
            .map(|declared| (declared, &declared.content));
        match declared {
            Some((declared, Content::Config(content))) => {
                let uid = match &content.write {
                    ConfigOperation::Resource(resource) => resource.uid.clone().map(Value::String),
                    _ => None,
                };
                let uid = uid.or_else(|| before.as_ref()?.get("uid").cloned());
                let value = json!({"uid": uid, "value": content.write.value()});
                let mark = self.mark_of(entry, self.stores.digest(place, &value).await?);
                let is_new = place.mark().is_none() && before.is_none();
                self.write_config((key, declared), place, mark, is_new)
                    .await
            }
            Some((_, Content::Secret(content))) => {
                let value = content.value.clone();
                self.write_secret((key, value), entry, place, before).await
            }
            _ => {
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
        (key, declared): (&MemberKey, &DesiredEntry),
        place: &mut Place,
        mark: StoreMark,
        is_new: bool,
    ) -> Result<Written, Fault> {
        let requests = StoreRequests { run: self.run };
        let verb = match is_new {
            true => ConfigVerb::Create,
            false => ConfigVerb::Update,
        };
        let operation = requests.write_config(key, declared, verb)?;
        let companion = Companion {
            conditions: vec![place.is_unchanged()],
            writes: vec![place.write(Some(&mark))],
            needs_change: is_new,
        };
        let answer = self.answer(key, &operation, companion).await?;
        place.set(Some(mark));
        let value = answer.query_objects.into_iter().next();
        Ok(Written {
            value: value.map(|value| value.to_value()).unwrap_or_default(),
            is_changed: answer.changed,
        })
    }

    async fn write_secret(
        self,
        (key, declared): (&MemberKey, Option<Document>),
        entry: &Entry,
        place: &mut Place,
        before: Option<Value>,
    ) -> Result<Written, Fault> {
        let requests = StoreRequests { run: self.run };
        let stored = before.as_ref().and_then(|before| before.get("value"));
        let value = match (declared, stored) {
            (Some(declared), _) => declared,
            (None, Some(stored)) => document(stored)?,
            (None, None) => self.stores.generator.generate(name_of(key))?,
        };
        let digest = self.stores.digest_of_secret(place, &value).await?;
        let mark = self.mark_of(entry, digest);
        let is_claimed = place.mark().is_some();
        // While a member has no value, or no mark yet, the mark goes first: it says what the host is about to write.
        let is_first = !is_claimed || before.is_none();
        if is_first {
            self.put_mark(place, Some(mark.clone())).await?;
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
                self.write_value(key, &operation).await?
            }
            None => {
                let operation = requests.create_secret(key, value)?;
                let written = self.write_value(key, &operation).await?;
                let digest = self.stores.digest(place, &written.value).await?;
                if !written.is_changed && digest != mark.value {
                    if !is_claimed {
                        self.put_mark(place, None).await?;
                    }
                    return Err(overtaken(key));
                }
                written
            }
        };
        if !is_first {
            self.put_mark(place, Some(mark)).await?;
        }
        Ok(written)
    }

    async fn write_value(
        self,
        key: &MemberKey,
        operation: &AuthorizedOperation,
    ) -> Result<Written, Fault> {
        let answer = self.answer(key, operation, Companion::default()).await?;
        let value = answer.query_objects.into_iter().next();
        Ok(Written {
            value: value.map(|value| value.to_value()).unwrap_or_default(),
            is_changed: answer.changed,
        })
    }

    async fn delete(self, key: &MemberKey, place: &mut Place) -> Result<Option<Done>, Fault> {
        let operation = StoreRequests { run: self.run }.delete(key)?;
        match key {
            MemberKey::Config { .. } => {
                let companion = Companion {
                    conditions: vec![place.is_unchanged()],
                    writes: vec![place.write(None)],
                    needs_change: false,
                };
                self.answer(key, &operation, companion).await?;
                place.set(None);
            }
            MemberKey::Secret { .. } | MemberKey::Kubernetes { .. } => {
                self.answer(key, &operation, Companion::default()).await?;
                self.put_mark(place, None).await?;
            }
        }
        Ok(None)
    }

    /// Writes or deletes the mark of a member that has one.
    async fn replace_mark(
        self,
        place: &mut Place,
        mark: Option<StoreMark>,
    ) -> Result<Option<Done>, Fault> {
        if place.mark().is_some() {
            self.put_mark(place, mark).await?;
        }
        Ok(None)
    }

    /// Writes or deletes a mark.
    ///
    /// # Errors
    /// [`FaultKind::ResourceConflict`] if it is not as it was read.
    async fn put_mark(self, place: &mut Place, mark: Option<StoreMark>) -> Result<(), Fault> {
        if let Some(permit) = self.permit {
            permit.ready(None).await;
        }
        let write = place.write(mark.as_ref());
        let conditions = [place.is_unchanged()];
        let fences = Permit::fences_of(self.permit);
        let config = &self.stores.config;
        if !config.write_if(vec![write], &conditions, fences).await? {
            return Err(overtaken(&place.key));
        }
        place.set(mark);
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

fn name_of(key: &MemberKey) -> &str {
    match key {
        MemberKey::Secret { name, .. } | MemberKey::Kubernetes { name, .. } => name,
        MemberKey::Config { key, .. } => key,
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
