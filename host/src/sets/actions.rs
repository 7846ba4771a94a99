//! Carries out the actions of a plan at the API server.

use std::fmt::Display;
use std::sync::Arc;

use configurator_core::authorization::AuthorizedOperation;
use configurator_core::desired::DesiredEntry;
use configurator_core::desired::check::CheckedSet;
use configurator_core::desired::marks::{Marks, SetId};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::observation::{Found, MemberOwner, Present};
use configurator_core::graph::plan::Action;
use configurator_core::request::ObjectRef;
use configurator_core::result::Answer;
use configurator_core::run::Run;
use serde_json::Value;
use tracing::Instrument as _;

use super::kinds::{KindName, ServedKind, ServedKinds};
use super::live::LiveSet;
use super::requests::{MemberRequests, Target};
use super::seen::{ReadFor, generation};
use super::stores::{Stores, if_found};
use crate::answers::RunAnswers;
use crate::executor::scope_for;
use crate::metrics::Metrics;
use crate::objects::text;
use crate::shards::Permit;
use crate::sinks::Sinks;
use crate::sinks::configstore::Companion;
use crate::watched::without_managed_fields;

/// The words with which servers refuse an apply because of the fields of others.
pub(super) const FIELDS_OF_OTHERS: &str = "Apply failed with";

/// Carries out the actions of one run.
#[derive(Clone, Copy)]
pub(super) struct MemberActions<'a> {
    pub(super) run: &'a Run,
    pub(super) sinks: &'a Sinks,
    pub(super) kinds: &'a ServedKinds,
    pub(super) answers: &'a RunAnswers,
    pub(super) permit: Option<&'a Permit>,
    pub(super) metrics: &'a Metrics,
    pub(super) stores: &'a Stores,
}

/// An action with everything of the set that it needs.
pub(super) struct Prepared {
    pub(super) key: MemberKey,
    kind: Option<ServedKind>,
    /// The kind that the entry names, if the API did not serve it when it was asked last.
    name: Option<KindName>,
    version: Option<u64>,
    generation: Option<u64>,
    /// The nonce of a member whose uid the inventory does not have yet.
    pub(super) unconfirmed: Option<String>,
    pub(super) step: PreparedStep,
}

pub(super) enum PreparedStep {
    Observe,
    Create(Box<Entry>),
    Update {
        entry: Box<Entry>,
        uid: String,
        is_marked: bool,
        /// Whether it becomes a member by this.
        is_adopted: bool,
        /// Whether the entry is the one that was applied last, so that fields which differ were taken away since.
        is_drift: bool,
    },
    Mark(u64),
    Delete {
        uid: String,
        is_marked: bool,
    },
    Release,
}

/// An entry, and what is put on its object.
pub(super) struct Entry {
    wanted: Arc<CheckedSet>,
    index: usize,
    pub(super) nonce: String,
    pub(super) digest: String,
    pub(super) set: SetId,
    pub(super) object_set: ObjectRef,
}

/// The outcome of an action.
pub(super) enum Done {
    /// The member was read, or its absence.
    Seen(Option<Box<Value>>, ReadFor),
    /// A member that had drifted was corrected. The text has the server's words about who had its fields, if they were somebody's.
    Repaired(Box<Value>, Option<String>),
    /// The API does not serve the kind.
    NoKind,
    /// The server refused the action.
    Rejected(Fault),
}

impl Prepared {
    /// Prepares an action. `None`: the set does not have what it is about, so there is nothing to do.
    pub(super) fn new(action: &Action, live: &LiveSet) -> Option<Self> {
        let wanted = live.wanted.as_ref();
        let is_present = |key: &MemberKey, is_so: fn(&Present) -> bool| {
            let known = live.members.get(key).map(|known| &known.observation.found);
            matches!(known, Some(Found::Present(present)) if is_so(present))
        };
        let is_marked = |key: &MemberKey| is_present(key, |present| present.is_marked);
        let (key, step) = match action {
            Action::Observe(key) => (key, PreparedStep::Observe),
            Action::Apply { entry: index, uid } => {
                let wanted = wanted?;
                let key = &wanted.checked.graph.entries().get(*index)?.key;
                let (_, entry) = wanted.entry(*index)?;
                let member = live.members.get(key)?.member.as_ref();
                let prepared = Box::new(Entry {
                    wanted: wanted.checked.clone(),
                    index: *index,
                    nonce: member?.nonce.clone(),
                    digest: entry.digest.clone(),
                    set: live.id.clone(),
                    object_set: live.stored.object_set.clone(),
                });
                let step = match uid {
                    None => PreparedStep::Create(prepared),
                    Some(uid) => PreparedStep::Update {
                        entry: prepared,
                        uid: uid.clone(),
                        is_marked: is_marked(key),
                        is_adopted: is_present(key, |present| {
                            present.owner == MemberOwner::Unowned
                        }),
                        is_drift: live.is_applied(key, entry),
                    },
                };
                (key, step)
            }
            Action::Mark(key, _) => (key, PreparedStep::Mark(live.stored.version)),
            Action::Delete(key, uid) => {
                let step = PreparedStep::Delete {
                    uid: uid.clone(),
                    is_marked: is_marked(key),
                };
                (key, step)
            }
            Action::Release(key, _) => (key, PreparedStep::Release),
            Action::Record(..) | Action::Confirm(..) | Action::Remove(..) | Action::Forget(_) => {
                return None;
            }
        };
        let entry = wanted.and_then(|wanted| wanted.entry_of(key));
        let unserved = entry.filter(|(_, wanted)| wanted.kind.is_none());
        Some(Self {
            kind: entry.and_then(|(_, wanted)| wanted.kind.clone()),
            name: unserved.and_then(|(entry, _)| KindName::of(entry)),
            version: live.version_of(key),
            generation: live.generation_of(key),
            unconfirmed: live.members.get(key).and_then(|known| {
                let member = known.member.as_ref()?;
                member.uid.is_none().then(|| member.nonce.clone())
            }),
            key: key.clone(),
            step,
        })
    }

    /// Whether a write has changed anything of the object that was read last. Of one with generations, the status and the metadata do not
    /// count: others change these all the time.
    fn differs_from(&self, written: &Value) -> bool {
        match (self.generation, generation(written)) {
            (Some(before), Some(after)) => before != after,
            _ => self.version != text(written, "/metadata/resourceVersion").parse().ok(),
        }
    }
}

impl MemberActions<'_> {
    /// Carries out an action.
    ///
    /// # Errors
    /// When a server is unavailable: nothing can be done for other members either.
    pub(super) async fn perform(self, prepared: Prepared) -> Result<(MemberKey, Done), Fault> {
        let mut done = match prepared.key.partition() {
            None => self.attempt(&prepared).await,
            Some(_) => self.attempt_in_store(&prepared).await,
        };
        if let Err(fault) = &done
            && fault.kind == FaultKind::ResourceNotFound
            && self.has_lost(&prepared).await?
        {
            done = Ok(Done::NoKind);
        }
        let key = prepared.key;
        match done {
            Ok(done) => Ok((key, done)),
            Err(fault) if fault.kind.is_outage() => Err(fault),
            Err(fault) => Ok((key, Done::Rejected(fault))),
        }
    }

    /// Looks up again what was not found, and returns whether the API does not serve its kind any more.
    async fn has_lost(self, prepared: &Prepared) -> Result<bool, Fault> {
        let MemberKey::Kubernetes { group, kind, .. } = &prepared.key else {
            return Ok(false);
        };
        self.kinds.forget(group, kind);
        let Some(served) = &prepared.kind else {
            return Ok(false);
        };
        let name = KindName {
            group: group.clone(),
            kind: kind.clone(),
            version: Some(served.version.clone()),
        };
        match self.kinds.find(&name).await {
            Ok(found) => Ok(found.is_none()),
            Err(fault) if fault.kind.is_outage() => Err(fault),
            Err(_) => Ok(false),
        }
    }

    async fn attempt(self, prepared: &Prepared) -> Result<Done, Fault> {
        let key = &prepared.key;
        let kind = match (&prepared.kind, &prepared.name) {
            (Some(kind), _) => Some(kind.clone()),
            (None, Some(name)) => self.kinds.find(name).await?,
            (None, None) => self.kinds.preferred(key).await?,
        };
        let Some(kind) = kind else {
            return Ok(Done::NoKind);
        };
        let at = (key, &kind);
        let requests = MemberRequests { run: self.run };
        match &prepared.step {
            PreparedStep::Observe => self.look(at).await,
            PreparedStep::Create(entry) => {
                let operation = self.apply(at, entry, Target::Absent, false)?;
                match self.send(key, &operation).await {
                    // It exists. Servers may say so by its fields that others have.
                    Err(fault) if fault.kind == FaultKind::ResourceConflict => self.look(at).await,
                    answered => self.written(at, answered).await,
                }
            }
            PreparedStep::Update {
                entry,
                uid,
                is_marked,
                is_adopted,
                is_drift,
            } => {
                if *is_marked {
                    self.send(key, &requests.unmark(at, uid)?).await?;
                }
                let declared = entry.declared();
                let ignores = declared.is_some_and(|entry| !entry.ignored_paths.is_empty());
                let live = match ignores || *is_adopted {
                    true => self.read(at).await?,
                    false => None,
                };
                if *is_adopted
                    && let Some(live) = &live
                    && let Some(operation) = requests.hand_over(at, live)?
                {
                    match self.send(key, &operation).await {
                        Err(fault) if fault.kind == FaultKind::ResourceConflict => {
                            return self.look(at).await;
                        }
                        handed_over => drop(handed_over?),
                    }
                }
                let live = live.filter(|_| ignores);
                let target = Target::Present(uid, live.as_ref());
                let operation = self.apply(at, entry, target, false)?;
                match self.send(key, &operation).await {
                    Err(fault) if is_of_others(&fault) && *is_drift => {
                        let operation = self.apply(at, entry, target, true)?;
                        match self.write(at, &operation).await? {
                            Done::Seen(Some(object), ReadFor::Write) => {
                                Ok(Done::Repaired(object, Some(fault.message)))
                            }
                            done => Ok(done),
                        }
                    }
                    Ok(Some(object)) if *is_drift && prepared.differs_from(&object) => {
                        Ok(Done::Repaired(Box::new(object), None))
                    }
                    answered => self.written(at, answered).await,
                }
            }
            PreparedStep::Mark(set) => {
                let Some(live) = self.read(at).await? else {
                    return Ok(Done::Seen(None, ReadFor::Look));
                };
                self.write(at, &requests.mark(at, &live, *set)?).await?;
                self.look(at).await
            }
            PreparedStep::Delete { uid, is_marked } => {
                let version = prepared.version.filter(|_| *is_marked);
                let version = version.map(|version| version.to_string());
                let operation = requests.delete(at, uid, version.as_deref())?;
                match self.send(key, &operation).await {
                    Err(fault)
                        if !matches!(
                            fault.kind,
                            FaultKind::ResourceConflict | FaultKind::ResourceNotFound
                        ) =>
                    {
                        Err(fault)
                    }
                    _ => self.look(at).await,
                }
            }
            PreparedStep::Release => {
                let Some(live) = self.read(at).await? else {
                    return Ok(Done::Seen(None, ReadFor::Look));
                };
                for operation in requests.release(at, &live)? {
                    self.send(key, &operation).await?;
                }
                self.look(at).await
            }
        }
    }

    fn apply(
        self,
        at: (&MemberKey, &ServedKind),
        entry: &Entry,
        target: Target<'_>,
        force: bool,
    ) -> Result<AuthorizedOperation, Fault> {
        let marks = Marks {
            set: &entry.set,
            object_set: &entry.object_set,
            configurator: &self.run.configurator().uid,
            nonce: &entry.nonce,
            digest: &entry.digest,
        };
        let Some(declared) = entry.declared() else {
            return Err(Fault::new(
                FaultKind::ResourceGeneric,
                "the set has no such entry",
            ));
        };
        MemberRequests { run: self.run }.apply(at, declared, marks, target, force)
    }

    /// Sends a write. A member that is not as the write expects is read.
    async fn write(
        self,
        at: (&MemberKey, &ServedKind),
        operation: &AuthorizedOperation,
    ) -> Result<Done, Fault> {
        let answered = self.send(at.0, operation).await;
        self.written(at, answered).await
    }

    async fn written(
        self,
        at: (&MemberKey, &ServedKind),
        answered: Result<Option<Value>, Fault>,
    ) -> Result<Done, Fault> {
        match answered {
            Ok(Some(object)) => Ok(Done::Seen(Some(Box::new(object)), ReadFor::Write)),
            Ok(None) => self.look(at).await,
            Err(fault) if fault.kind == FaultKind::ResourceConflict && !is_of_others(&fault) => {
                self.look(at).await
            }
            Err(fault) => Err(fault),
        }
    }

    async fn look(self, at: (&MemberKey, &ServedKind)) -> Result<Done, Fault> {
        let operation = MemberRequests { run: self.run }.get(at.0, at.1)?;
        let object = if_found(self.send(at.0, &operation).await)?.flatten();
        Ok(Done::Seen(object.map(Box::new), ReadFor::Look))
    }

    /// Reads a member with its `managedFields`. `None`: it does not exist.
    pub(super) async fn read(self, at: (&MemberKey, &ServedKind)) -> Result<Option<Value>, Fault> {
        let operation = MemberRequests { run: self.run }.get(at.0, at.1)?;
        let object = if_found(self.object(at.0, &operation).await)?.flatten();
        Ok(object.map(|object| object.to_value()))
    }

    /// Sends a request, which this names in traces, and returns the object of its answer, but for `managedFields`. `None`: it has none.
    pub(super) async fn send(
        self,
        name: &(impl Display + ?Sized),
        operation: &AuthorizedOperation,
    ) -> Result<Option<Value>, Fault> {
        let object = self.object(name, operation).await?;
        let object = object.and_then(|object| without_managed_fields(object.as_str()).ok());
        // A server may answer a deletion with a status.
        Ok(object.filter(|object| !text(object, "/metadata/uid").is_empty()))
    }

    async fn object(
        self,
        name: &(impl Display + ?Sized),
        operation: &AuthorizedOperation,
    ) -> Result<Option<Document>, Fault> {
        let answer = self.answer(name, operation, Companion::default()).await?;
        Ok(answer.query_objects.into_iter().next())
    }

    /// Sends a request, which this names in traces.
    pub(super) async fn answer(
        self,
        name: &(impl Display + ?Sized),
        operation: &AuthorizedOperation,
        companion: Companion,
    ) -> Result<Answer, Fault> {
        let sink = operation.sink();
        let span = tracing::info_span!(
            "request",
            name = %name,
            sink = sink.name(),
            operation = %operation,
            fault = tracing::field::Empty,
        );
        let mut scope = scope_for(self.run, self.run.members().first(), &name.to_string());
        scope.companion = companion;
        let answered = async {
            scope.answer = self.answers.begin().await?;
            if let Some(permit) = self.permit
                && operation.is_mutating()
            {
                permit.admit(&mut scope).await;
            }
            self.sinks.get(sink).execute(operation, &scope).await
        };
        let answer = answered.instrument(span.clone()).await;
        if let Err(fault) = &answer {
            span.record("fault", fault.kind.name());
        }
        self.metrics
            .request(sink, answer.as_ref().err().map(|fault| fault.kind));
        answer
    }
}

impl Entry {
    pub(super) fn declared(&self) -> Option<&DesiredEntry> {
        self.wanted.set.entries.get(self.index)
    }
}

/// Whether a server refused an apply because others own its fields.
fn is_of_others(fault: &Fault) -> bool {
    fault.kind == FaultKind::ResourceConflict && fault.message.contains(FIELDS_OF_OTHERS)
}
