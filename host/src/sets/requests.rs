//! The requests that read and write members, authorized like those of handlers.

use std::collections::BTreeMap;

use configurator_core::authorization::AuthorizedOperation;
use configurator_core::desired::marks::{self, Marks, PRUNING};
use configurator_core::desired::{DesiredEntry, OnConflict, managed_fields};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::field_manager;
use configurator_core::glob;
use configurator_core::graph::member::MemberKey;
use configurator_core::request::{
    KubernetesRequest, KubernetesVerb, ObjectRef, Operation, Precondition, PropagationPolicy,
};
use configurator_core::run::Run;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::kinds::ServedKind;
use super::live::object_of;
use crate::objects::text;

/// A version that no object has. An apply that names it creates the object, or is a conflict if the object exists.
const NO_VERSION: &str = "18446744073709551615";

/// Makes the requests of one run.
#[derive(Clone, Copy)]
pub(super) struct MemberRequests<'a> {
    pub(super) run: &'a Run,
}

/// The object that an apply writes to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    /// It must not exist.
    Absent,
    /// It exists and has this uid. Where the entry has ignored paths, the object is there as it was read last.
    Present(&'a str, Option<&'a Value>),
}

impl<'a> MemberRequests<'a> {
    /// Reads a member.
    pub(super) fn get(
        self,
        key: &MemberKey,
        kind: &ServedKind,
    ) -> Result<AuthorizedOperation, Fault> {
        let request = request(KubernetesVerb::Get, key, kind);
        self.authorize(request, &field_manager::of_sets(self.configurator()))
    }

    /// Applies the object of an entry as the handler returned it. It is not sent.
    pub(super) fn apply_unmarked(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        entry: &DesiredEntry,
    ) -> Result<AuthorizedOperation, Fault> {
        let mut request = request(KubernetesVerb::Apply, key, kind);
        request.body = object_of(entry).cloned();
        self.authorize(request, &field_manager::of_sets(self.configurator()))
    }

    /// Applies an entry.
    pub(super) fn apply(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        entry: &DesiredEntry,
        marks: Marks<'_>,
        target: Target<'_>,
        force: bool,
    ) -> Result<AuthorizedOperation, Fault> {
        let object = object_of(entry).cloned().unwrap_or_else(Document::null);
        let mut request = request(KubernetesVerb::Apply, key, kind);
        let (object, version) = match target {
            Target::Absent => (object, Some(NO_VERSION)),
            Target::Present(uid, live) => {
                request.precondition = Some(precondition(uid, None));
                let object = match live {
                    Some(live) => {
                        let mut object = object.to_value();
                        super::ignored(entry).copy(live, &mut object);
                        document(&object)?
                    }
                    None => object,
                };
                (object, None)
            }
        };
        request.body = Some(marked(&object, marks, version)?);
        request.force = force || entry.on_conflict == OnConflict::Force;
        self.authorize(request, &field_manager::of_sets(self.configurator()))
    }

    /// Makes the fields of adopted managers those of the set, if the object still has the version that was read. `None`: they have none.
    pub(super) fn hand_over(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        live: &Value,
    ) -> Result<Option<AuthorizedOperation>, Fault> {
        let options = self.run.configurator().sets.as_ref();
        let adopted = options.map_or(&[][..], |options| &options.adopted_managers);
        let is_adopted = |manager: &str| adopted.iter().any(|of| glob::matches(of, manager));
        let own = field_manager::of_sets(self.configurator());
        let Some(fields) = managed_fields::handed_over(live, is_adopted, &own) else {
            return Ok(None);
        };
        let version = text(live, "/metadata/resourceVersion");
        let mut target = request(KubernetesVerb::Apply, key, kind);
        target.precondition = Some(precondition(text(live, "/metadata/uid"), Some(version)));
        let authorized = self.run.authorize_handover(&target, &fields, &own);
        Ok(Some(authorized.map_err(|denied| denied.into_fault())?))
    }

    /// Marks a member as about to be pruned by this version of the set, if it still has the version that was read.
    pub(super) fn mark(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        live: &Value,
        set: u64,
    ) -> Result<AuthorizedOperation, Fault> {
        let object = json!({"metadata": {"annotations": {PRUNING: set.to_string()}}});
        let version = text(live, "/metadata/resourceVersion");
        let precondition = precondition(text(live, "/metadata/uid"), Some(version));
        self.apply_mark((key, kind), &object, precondition)
    }

    /// Takes the mark away.
    pub(super) fn unmark(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        uid: &str,
    ) -> Result<AuthorizedOperation, Fault> {
        self.apply_mark((key, kind), &json!({}), precondition(uid, None))
    }

    fn apply_mark(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        object: &Value,
        precondition: Precondition,
    ) -> Result<AuthorizedOperation, Fault> {
        let mut request = request(KubernetesVerb::Apply, key, kind);
        request.body = Some(document(object)?);
        request.precondition = Some(precondition);
        request.force = true;
        self.authorize(request, &field_manager::of_marks(self.configurator()))
    }

    /// Deletes a member after what it owns, if it still has the version that is given.
    pub(super) fn delete(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        uid: &str,
        version: Option<&str>,
    ) -> Result<AuthorizedOperation, Fault> {
        let mut request = request(KubernetesVerb::Delete, key, kind);
        request.propagation_policy = PropagationPolicy::Foreground;
        request.precondition = Some(precondition(uid, version));
        self.authorize(request, &field_manager::of_sets(self.configurator()))
    }

    /// Hands the fields of a member over to the field manager of released members, and then takes the marks away: two requests.
    pub(super) fn release(
        self,
        (key, kind): (&MemberKey, &ServedKind),
        live: &Value,
    ) -> Result<[AuthorizedOperation; 2], Fault> {
        let own = field_manager::of_sets(self.configurator());
        let uid = text(live, "/metadata/uid");
        let mut owned = managed_fields::owned_by(&own, live);
        marks::remove(&mut owned);
        let mut keep = request(KubernetesVerb::Apply, key, kind);
        keep.body = Some(document(&owned)?);
        keep.precondition = Some(precondition(uid, None));
        keep.force = true;
        let mut leave = request(KubernetesVerb::Apply, key, kind);
        leave.body = Some(document(&json!({}))?);
        leave.precondition = Some(precondition(uid, None));
        let released = field_manager::of_released(self.configurator());
        Ok([
            self.authorize(keep, &released)?,
            self.authorize(leave, &own)?,
        ])
    }

    fn configurator(self) -> &'a ObjectRef {
        &self.run.configurator().key
    }

    fn authorize(
        self,
        request: KubernetesRequest,
        manager: &str,
    ) -> Result<AuthorizedOperation, Fault> {
        let operation = Operation::Kubernetes(request);
        let authorized = self.run.authorize_member(&operation, manager);
        authorized.map_err(|denied| denied.into_fault())
    }
}

fn request(verb: KubernetesVerb, key: &MemberKey, kind: &ServedKind) -> KubernetesRequest {
    let (namespace, name) = match key {
        MemberKey::Kubernetes {
            namespace, name, ..
        } => (namespace.as_str(), name.as_str()),
        MemberKey::Config { .. } | MemberKey::Secret { .. } => ("", ""),
    };
    KubernetesRequest {
        kind: kind.kind.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..KubernetesRequest::new(verb, &kind.group, &kind.version, &kind.plural)
    }
}

fn precondition(uid: &str, version: Option<&str>) -> Precondition {
    Precondition {
        uid: Some(uid.to_owned()),
        resource_version: version.map(str::to_owned),
    }
}

/// Puts the marks, and a version if one is given, on an object. All fields but `metadata` stay as they were written.
fn marked(object: &Document, marks: Marks<'_>, version: Option<&str>) -> Result<Document, Fault> {
    let unreadable = |error: serde_json::Error| {
        let message = format!("the object of an entry cannot be read: {error}");
        Fault::new(FaultKind::ResourceGeneric, message)
    };
    let mut fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(object.as_str()).map_err(unreadable)?;
    let metadata: Value = match fields.get("metadata") {
        Some(text) => serde_json::from_str(text.get()).map_err(unreadable)?,
        None => Value::Null,
    };
    let mut marked = json!({"metadata": metadata});
    marks.put_on(&mut marked);
    let metadata = marked.get_mut("metadata").map(Value::take);
    let mut metadata = metadata.unwrap_or_default();
    if let (Some(version), Value::Object(metadata)) = (version, &mut metadata) {
        metadata.insert("resourceVersion".to_owned(), json!(version));
    }
    let metadata = to_raw_value(&metadata).map_err(unreadable)?;
    fields.insert("metadata".to_owned(), &metadata);
    document(&fields)
}

fn document(value: &impl Serialize) -> Result<Document, Fault> {
    Document::of(value).map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))
}
