//! How a change of one object gets into the store.
//!
//! The new object is worked out beside the store, from the object as it was read; the transaction only checks that nothing has changed
//! since, and writes. If something has, it all begins again, so writers of different objects do not wait for each other's work.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use configurator_store::{Read, StoreError, Transaction, WriteError};
use serde_json::Value;

use crate::history::{self, Change, ChangeKind};
use crate::object::{self, Encoded, Live, Traits};
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::{Result, Status};
use crate::{admission, garbage, keys};

/// The object that a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// Empty if the resource is cluster-scoped.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Target {
    pub(crate) fn key(&self) -> String {
        keys::object(&self.resource.storage, &self.namespace, &self.name)
    }
}

/// What shall become of an object.
#[derive(Debug)]
pub(crate) enum Next {
    /// It stays as it is; nothing is written.
    Keep,
    Put(Value),
    /// It goes; this is its last state.
    Remove(Value),
    /// It goes, by a change that took what held it. Watchers are shown what it was before, the client what came of it.
    Finish(Value),
}

/// What has become of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The stored form.
    pub(crate) object: Bytes,
    pub(crate) created: bool,
    pub(crate) removed: bool,
}

/// How often a write is worked out again because others were quicker.
const ATTEMPTS: usize = 64;

impl Inner {
    /// The object as it is now.
    pub(crate) fn live(&self, target: &Target) -> Result<Option<Live>> {
        self.store
            .get(target.key().as_bytes())?
            .map(Live::parse)
            .transpose()
    }

    /// Changes one object. `compute` may be called again, if others change the object at the same time.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        target: &Target,
        dry_run: bool,
        compute: impl Fn(Option<&Live>) -> Result<Next>,
    ) -> Result<Outcome> {
        for _ in 0..ATTEMPTS {
            let live = self.live(target)?;
            let mut answer = None;
            let (value, remove) = match compute(live.as_ref())? {
                Next::Keep => {
                    let live =
                        live.ok_or_else(|| Status::not_found(&target.resource, &target.name))?;
                    return Ok(Outcome {
                        object: live.bytes,
                        created: false,
                        removed: false,
                    });
                }
                Next::Put(value) => (value, false),
                Next::Remove(value) => (value, true),
                Next::Finish(value) => {
                    let Some(live) = &live else {
                        return Err(Status::not_found(&target.resource, &target.name));
                    };
                    let revision = object::stored_revision(&live.bytes)
                        .and_then(|revision| revision.parse().ok())
                        .unwrap_or_default();
                    answer = Some(
                        Encoded::new(&value, &target.resource.stored_api_version)?
                            .with_revision(revision),
                    );
                    (live.value.clone(), true)
                }
            };
            let created = live.is_none();
            let plan = self.plan(target, live, &value, remove)?;
            if dry_run {
                let object = self.store.read(|state| plan.rehearse(state))??;
                return Ok(Outcome {
                    object: answer.unwrap_or(object),
                    created,
                    removed: remove,
                });
            }
            let publisher = Publisher::new(self, target, value, remove);
            match self
                .store
                .write_then(
                    move |tx| plan.run(tx),
                    move |written| publisher.publish(written),
                )
                .await
            {
                Ok(written) => {
                    return Ok(Outcome {
                        object: answer.unwrap_or_else(|| written.change.object.clone()),
                        created,
                        removed: remove,
                    });
                }
                Err(WriteError::Refused(Refusal::Stale)) => {}
                Err(WriteError::Refused(Refusal::Status(status))) => return Err(*status),
                Err(WriteError::Store(error)) => return Err(error.into()),
            }
        }
        Err(Status::too_many_requests(
            "the object is being changed by too many clients at once; try again",
        ))
    }

    /// Everything that the transaction needs, worked out beforehand.
    fn plan(
        &self,
        target: &Target,
        live: Option<Live>,
        value: &Value,
        remove: bool,
    ) -> Result<Plan> {
        let resource = &target.resource;
        let key = target.key();
        let (old, expected) = match live {
            Some(live) => (Some(live.value), Some(live.bytes)),
            None => (None, None),
        };
        // Without conversion an object keeps no trace of the version it was written in.
        let encoded = Encoded::new(value, &resource.stored_api_version)?;
        let old_owners = old.as_ref().map(object::owners).unwrap_or_default();
        let new_owners = if remove {
            Vec::new()
        } else {
            object::owners(value)
        };
        let old_claims = old
            .as_ref()
            .map(|old| admission::claims(resource, old))
            .unwrap_or_default();
        let new_claims = if remove {
            Vec::new()
        } else {
            admission::claims(resource, value)
        };
        let is_new_owner =
            |owner: &object::OwnerReference| old_owners.iter().all(|old| old.uid != owner.uid);
        let registry = self.registry();
        let added_owners: Vec<_> = new_owners
            .iter()
            .filter(|owner| is_new_owner(owner))
            .cloned()
            .collect();
        let owner_keys = added_owners
            .iter()
            .map(|owner| {
                let resource = registry.by_kind(&owner.api_version, &owner.kind)?;
                let namespace = if resource.namespaced {
                    target.namespace.as_str()
                } else {
                    ""
                };
                Some((
                    keys::object(&resource.storage, namespace, &owner.name),
                    owner.uid.clone(),
                ))
            })
            .collect();
        let mut chores = Vec::new();
        if !remove {
            chores.extend(garbage::chores_of(resource, &key, value));
        }
        let traits = Traits::of(value, resource);
        let before = old.as_ref().map(|old| Traits::of(old, resource));
        let left = match (&old, &before) {
            (Some(old), Some(before)) if !remove && *before != traits => {
                Some(Encoded::new(old, &resource.stored_api_version)?)
            }
            _ => None,
        };
        Ok(Plan {
            before,
            left,
            traits,
            index_add: added_owners
                .iter()
                .map(|owner| keys::dependent(&owner.uid, &key))
                .collect(),
            index_remove: old_owners
                .iter()
                .filter(|old| new_owners.iter().all(|owner| owner.uid != old.uid))
                .map(|owner| keys::dependent(&owner.uid, &key))
                .collect(),
            claims_add: new_claims
                .iter()
                .filter(|claim| !old_claims.contains(claim))
                .cloned()
                .collect(),
            claims_remove: old_claims
                .into_iter()
                .filter(|claim| !new_claims.contains(claim))
                .collect(),
            owner_keys,
            waiting_owners: if remove {
                garbage::owner_keys(&registry, &target.namespace, &old_owners)
            } else {
                Vec::new()
            },
            uid: object::uid(value).to_owned(),
            target: target.clone(),
            key,
            expected,
            encoded,
            remove,
            chores,
        })
    }
}

/// A change that is in the store.
struct Written {
    change: Arc<Change>,
    has_chores: bool,
}

/// What follows a change once it is durable, in the order of the revisions.
struct Publisher {
    server: Arc<Inner>,
    /// A definition of custom resources, as it was written.
    definition: Option<Value>,
}

impl Publisher {
    fn new(server: &Arc<Inner>, target: &Target, value: Value, remove: bool) -> Self {
        let is_definition = &*target.resource.storage == crate::crd::STORAGE;
        Self {
            server: Arc::clone(server),
            definition: (is_definition && !remove).then_some(value),
        }
    }

    fn publish(self, written: &Written) {
        let change = &written.change;
        // Whoever sees the definition can use it.
        if &*change.storage == crate::crd::STORAGE {
            self.server
                .change_registry(|registry| match &self.definition {
                    Some(definition) => registry.with_definition(definition),
                    None => registry.without_definition(&change.name),
                });
        }
        let too_many_events = change.kind == ChangeKind::Added
            && &*change.storage == crate::event::STORAGE
            && self.server.events.add(&change.name, &change.namespace);
        self.server.history.publish(Arc::clone(change));
        if written.has_chores || too_many_events {
            self.server.collector.notify_one();
        }
    }
}

/// Why a transaction was not written.
#[derive(Debug)]
enum Refusal {
    /// The object has changed since it was read.
    Stale,
    Status(Box<Status>),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Status(Box::new(error.into()))
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// The transaction of one change, ready to run.
struct Plan {
    target: Target,
    key: String,
    expected: Option<Bytes>,
    encoded: Encoded,
    remove: bool,
    uid: String,
    traits: Traits,
    before: Option<Traits>,
    left: Option<Encoded>,
    index_add: Vec<String>,
    index_remove: Vec<String>,
    claims_add: Vec<admission::Claim>,
    claims_remove: Vec<admission::Claim>,
    /// Where the owners that were added should be, with their uids; none if their kind is not served.
    owner_keys: Vec<Option<(String, String)>>,
    /// Of a removed object: its owners, one of which may be waiting for it.
    waiting_owners: Vec<String>,
    chores: Vec<String>,
}

impl Plan {
    /// What the object would be, without writing it.
    fn rehearse(&self, state: &dyn Read) -> Result<Bytes> {
        self.check(state)?;
        Ok(match &self.expected {
            Some(live) => {
                let revision =
                    object::stored_revision(live).and_then(|revision| revision.parse().ok());
                self.encoded.with_revision(revision.unwrap_or(0))
            }
            None => self.encoded.without_revision(),
        })
    }

    /// What can be refused only against the state of the whole store.
    fn check(&self, state: &dyn Read) -> Result<()> {
        let resource = &self.target.resource;
        if self.expected.is_none() && resource.namespaced {
            let namespace =
                state.get(keys::object("/namespaces", "", &self.target.namespace).as_bytes())?;
            match namespace {
                None => return Err(Status::namespace_not_found(&self.target.namespace)),
                Some(bytes) if garbage::is_terminating(&bytes) => {
                    return Err(garbage::namespace_terminating(
                        resource,
                        &self.target.name,
                        &self.target.namespace,
                    ));
                }
                Some(_) => {}
            }
        }
        for claim in &self.claims_add {
            if let Some(holder) = state.get(claim.key.as_bytes())?
                && holder != self.key.as_bytes()
            {
                return Err(claim.refusal(resource, &self.target.name));
            }
        }
        Ok(())
    }

    fn run(self, tx: &mut Transaction<'_>) -> Result<Written, Refusal> {
        if tx.get(self.key.as_bytes())? != self.expected {
            return Err(Refusal::Stale);
        }
        self.check(tx)?;
        let chores = self.all_chores(tx)?;
        for key in self.index_remove {
            tx.delete(key);
        }
        for key in self.index_add {
            tx.put(key, Bytes::new());
        }
        for claim in self.claims_remove {
            tx.delete(claim.key);
        }
        for claim in self.claims_add {
            tx.put(claim.key, self.key.clone());
        }
        let has_chores = !chores.is_empty();
        for chore in chores {
            // The value tells this order of the chore from a later one.
            tx.put(
                format!("{}{chore}", keys::CHORES),
                tx.revision().to_string(),
            );
        }
        let kind = match (&self.expected, self.remove) {
            (_, true) => ChangeKind::Deleted,
            (Some(_), false) => ChangeKind::Modified,
            (None, false) => ChangeKind::Added,
        };
        let (line, object) =
            history::line_and_object(kind, &self.encoded.with_revision(tx.revision()));
        if self.remove {
            tx.delete(self.key);
        } else {
            tx.put(self.key, object.clone());
        }
        let change = Arc::new(Change {
            kind,
            storage: Arc::clone(&self.target.resource.storage),
            namespace: self.target.namespace,
            name: self.target.name,
            revision: tx.revision(),
            object,
            traits: self.traits,
            before: self.before,
            left: self.left.map(|left| left.with_revision(tx.revision())),
            line,
        });
        Ok(Written { change, has_chores })
    }

    /// What the garbage collector has to do after this change.
    fn all_chores(&self, tx: &Transaction<'_>) -> Result<Vec<String>, StoreError> {
        let mut chores = self.chores.clone();
        if !self.owner_keys.is_empty() {
            let mut any = false;
            for (key, uid) in self.owner_keys.iter().flatten() {
                any |= tx
                    .get(key.as_bytes())?
                    .is_some_and(|owner| garbage::has_uid(&owner, uid));
            }
            // An owner that is in no served kind may yet be served: only what is certain is collected.
            if !any && self.owner_keys.iter().all(Option::is_some) {
                chores.push(garbage::absent_owner_chore(&self.key));
            }
        }
        if !self.remove {
            return Ok(chores);
        }
        let mut has_dependents = false;
        tx.scan(
            keys::dependents_prefix(&self.uid).as_bytes(),
            None,
            &mut |_, _| {
                has_dependents = true;
                ControlFlow::Break(())
            },
        )?;
        if has_dependents {
            chores.push(garbage::dependents_chore(&self.uid));
        }
        for owner in &self.waiting_owners {
            if tx
                .get(owner.as_bytes())?
                .is_some_and(|owner| garbage::is_terminating(&owner))
            {
                chores.push(garbage::foreground_chore(owner));
            }
        }
        let resource = &self.target.resource;
        if resource.namespaced {
            let namespace = keys::object("/namespaces", "", &self.target.namespace);
            if tx
                .get(namespace.as_bytes())?
                .is_some_and(|namespace| garbage::is_terminating(&namespace))
            {
                chores.push(garbage::namespace_chore(&self.target.namespace));
            }
        }
        if resource.custom.is_some() {
            let name = resource.qualified();
            let definition = keys::object(crate::crd::STORAGE, "", &name);
            if tx
                .get(definition.as_bytes())?
                .is_some_and(|definition| garbage::is_terminating(&definition))
            {
                chores.push(garbage::definition_chore(&name));
            }
        }
        Ok(chores)
    }
}
