//! Stores the inventories of sets: the record of each member is written before the member is created and removed after it is gone.
//!
//! The inventory is the `spec` of an `ObjectSet`. It is sealed, so that the host does not take for its own what somebody else wrote, and it has
//! a sequence number whose newest value is in the config store (`sets/<Configurator>/<uid of the owner>`), so that an older inventory which
//! was put back is noticed. A host that stops after it has written the inventory and before it has written the number leaves an inventory
//! that is one ahead; nothing else is.

use std::sync::Arc;

use configurator_core::configurator::Configurator;
use configurator_core::digest::digest_of;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::entry::OnDelete;
use configurator_core::graph::member::{Inventory, Member, MemberFacts, MemberKey};
use configurator_core::layers::Write;
use configurator_core::request::ObjectRef;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::kubernetes_faults::fault_of;
use crate::resource::object_set::{
    MemberSpec, ObjectSet, ObjectSetSpec, ObjectSetStatus, OnDeleteSpec, SetConfigurator, SetOwner,
};
use crate::resource::segment_of;
use crate::seal::HostKey;
use crate::sinks::configstore::{Condition, ConfigStore, Fence};

/// The most members of a set.
pub(crate) const MAX_MEMBERS: usize = 500;
/// The finalizer of an `ObjectSet`: it stays until the inventory is empty.
const FINALIZER: &str = "configurator.dev/object-set";
/// The tool that the specification of ApplySets asks for.
const TOOLING: &str = "configurator/v1";
/// The characters of the owner's name in the name of its `ObjectSet`.
const SHOWN: usize = 40;
/// The hexadecimal digits that make the name of an `ObjectSet` unique.
const DIGITS: usize = 16;
/// The namespace of the inventories of cluster-scoped owners, as of their Events and Commands.
const NAMESPACE_OF_CLUSTER: &str = "default";
/// The prefix of sequence numbers in the config store.
const PREFIX: &str = "sets/";

/// Reads and writes the inventories of one Configurator.
pub(crate) struct InventoryStore {
    client: Client,
    config: Arc<dyn ConfigStore>,
    key: Arc<HostKey>,
    configurator: SetConfigurator,
    prefix: String,
}

/// An inventory, without its members, as it is stored.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct Stored {
    /// The `ObjectSet`.
    pub(crate) object_set: ObjectRef,
    pub(crate) owner: SetOwner,
    /// The fate of the members: see [`ObjectSetSpec::termination_policy`].
    pub(crate) termination_policy: String,
    /// The version of the set.
    pub(crate) version: u64,
    sequence: u64,
    /// The sequence number that the config store has.
    booked: u64,
    /// `None`: it has not been created.
    resource_version: Option<String>,
    uid: String,
    /// The status that was written last.
    status: Option<ObjectSetStatus>,
}

impl Stored {
    /// The status that was written last.
    pub(crate) const fn status(&self) -> Option<&ObjectSetStatus> {
        self.status.as_ref()
    }
}

impl InventoryStore {
    pub(crate) fn new(
        client: Client,
        config: Arc<dyn ConfigStore>,
        key: Arc<HostKey>,
        configurator: &Configurator,
    ) -> Self {
        let Configurator { key: name, uid, .. } = configurator;
        Self {
            client,
            config,
            key,
            configurator: SetConfigurator {
                namespace: name.namespace.clone(),
                name: name.name.clone(),
                uid: uid.clone(),
            },
            prefix: format!("{PREFIX}{}/", segment_of(name)),
        }
    }

    /// The `ObjectSet` of an owner, whether it exists or not.
    pub(crate) fn name_of(&self, owner: &SetOwner) -> ObjectRef {
        let digest = digest_of([self.configurator.uid.as_bytes(), owner.uid.as_bytes()]);
        let digest = digest.get(..DIGITS).unwrap_or_default();
        // Names may end neither with `-` nor with `.`; here the digest follows.
        let shown: String = owner.name.chars().take(SHOWN).collect();
        // Some kinds allow more in names than others.
        let shown = shown.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        let shown = shown.to_ascii_lowercase();
        let namespace = match owner.namespace.as_str() {
            "" => NAMESPACE_OF_CLUSTER,
            namespace => namespace,
        };
        ObjectRef {
            namespace: namespace.to_owned(),
            name: format!("{}-{digest}", shown.trim_matches('-'))
                .trim_matches('-')
                .to_owned(),
        }
    }

    /// Reads the inventory of an owner. One that does not exist is empty.
    ///
    /// # Errors
    /// When a server cannot be asked. When the inventory is not as a host has left it: then nothing may be written or deleted.
    pub(crate) async fn load(&self, owner: &SetOwner) -> Result<(Stored, Inventory), Fault> {
        let object_set = self.name_of(owner);
        let booked = self.booked(&owner.uid).await?;
        let api = self.api(&object_set.namespace);
        let what = format!("the ObjectSet {object_set}");
        let found = api.get_opt(&object_set.name).await;
        let found = found.map_err(|error| fault_of(&what, false, &error))?;
        let damaged = |why: &str| {
            let message = format!(
                "{what} {why}, so its members can be neither written nor deleted; restore it as it was"
            );
            Fault::new(FaultKind::ResourceGeneric, message)
        };
        let Some(found) = found else {
            if booked > 0 {
                return Err(damaged("is missing"));
            }
            let stored = Stored {
                object_set,
                owner: owner.clone(),
                termination_policy: String::new(),
                version: 0,
                sequence: 0,
                booked,
                resource_version: None,
                uid: String::new(),
                status: None,
            };
            return Ok((stored, Inventory::new()));
        };
        let spec = &found.spec;
        if spec.owner.uid != owner.uid || spec.configurator.uid != self.configurator.uid {
            return Err(damaged("belongs to another owner or Configurator"));
        }
        let key = self.key.get().await?;
        let text = sealed_text(&object_set, spec);
        if !key.is_seal(&[b"inventory", text.as_bytes()], &spec.seal) {
            return Err(damaged("was changed by somebody else than a host"));
        }
        let is_newest = spec.sequence == booked || spec.sequence == booked + 1;
        // The number goes first when the inventory is deleted.
        let is_ending = booked == 0 && spec.members.is_empty();
        if !is_newest && !is_ending {
            return Err(damaged(&format!(
                "has the sequence number {}, and the newest one is {booked}: it is older than the newest",
                spec.sequence
            )));
        }
        let inventory = spec.members.iter().map(read_member).collect();
        let stored = Stored {
            owner: owner.clone(),
            termination_policy: spec.termination_policy.clone(),
            version: spec.version,
            sequence: spec.sequence,
            booked,
            resource_version: found.resource_version(),
            uid: found.uid().unwrap_or_default(),
            status: found.status,
            object_set,
        };
        Ok((stored, inventory))
    }

    /// Whether an owner has an inventory.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn exists(&self, owner: &SetOwner) -> Result<bool, Fault> {
        let object_set = self.name_of(owner);
        let found = self
            .api(&object_set.namespace)
            .get_metadata_opt(&object_set.name)
            .await;
        let found = found
            .map_err(|error| fault_of(&format!("the ObjectSet {object_set}"), false, &error))?;
        Ok(found.is_some())
    }

    /// Writes an inventory. On success, `stored` is what is stored now.
    ///
    /// # Errors
    /// When a server cannot be asked, or somebody else has written the inventory meanwhile: then it is to be read again.
    pub(crate) async fn save<'a>(
        &self,
        stored: &mut Stored,
        members: impl Iterator<Item = (&'a MemberKey, &'a Member)>,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let members: Result<Vec<MemberSpec>, Fault> = members
            .map(|(key, member)| member_spec(key, member))
            .collect();
        let mut members = members?;
        if members.len() > MAX_MEMBERS {
            let message = format!(
                "the set has {} members; {MAX_MEMBERS} are allowed",
                members.len()
            );
            return Err(Fault::new(FaultKind::ResourceGeneric, message));
        }
        let identity = |one: &MemberSpec| {
            let MemberSpec {
                group,
                kind,
                namespace,
                name,
                ..
            } = one;
            [group, kind, namespace, name].map(String::clone)
        };
        members.sort_by_cached_key(identity);
        // A host may have stopped before it wrote the number of the inventory that is stored.
        if stored.sequence > stored.booked {
            self.book(stored, fences).await?;
        }
        let key = self.key.get().await?;
        let mut spec = ObjectSetSpec {
            owner: stored.owner.clone(),
            configurator: self.configurator.clone(),
            termination_policy: stored.termination_policy.clone(),
            version: stored.version,
            members,
            sequence: stored.sequence + 1,
            seal: String::new(),
        };
        let text = sealed_text(&stored.object_set, &spec);
        spec.seal = key.seal(&[b"inventory", text.as_bytes()]);
        let sequence = spec.sequence;
        let mut object = ObjectSet::new(&stored.object_set.name, spec);
        object.metadata = self.metadata(stored, &object.spec);
        let api = self.api(&stored.object_set.namespace);
        let params = PostParams::default();
        let written = match &stored.resource_version {
            None => api.create(&params, &object).await,
            Some(_) => api.replace(&stored.object_set.name, &params, &object).await,
        };
        let what = format!("the ObjectSet {}", stored.object_set);
        let written = written.map_err(|error| fault_of(&what, true, &error))?;
        stored.resource_version = written.resource_version();
        stored.uid = written.uid().unwrap_or_default();
        stored.sequence = sequence;
        self.book(stored, fences).await
    }

    /// Deletes an empty inventory.
    ///
    /// # Errors
    /// When a server cannot be asked.
    pub(crate) async fn delete(&self, stored: &mut Stored, fences: &[Fence]) -> Result<(), Fault> {
        let key = self.sequence_key(&stored.owner.uid);
        self.config.write(vec![Write::Delete(key)], fences).await?;
        stored.booked = 0;
        if stored.resource_version.is_none() {
            return Ok(());
        }
        let api = self.api(&stored.object_set.namespace);
        let name = &stored.object_set.name;
        let what = format!("the ObjectSet {}", stored.object_set);
        let gone =
            |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
        let patch = json!({"metadata": {
            "uid": stored.uid,
            "resourceVersion": stored.resource_version,
            "finalizers": null,
        }});
        match api
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
        {
            Ok(_) => {}
            Err(error) if gone(&error) => return Ok(()),
            Err(error) => return Err(fault_of(&what, true, &error)),
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(stored.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match api.delete(name, &params).await {
            Ok(_) => {}
            Err(error) if gone(&error) => {}
            Err(error) => return Err(fault_of(&what, true, &error)),
        }
        stored.resource_version = None;
        stored.sequence = 0;
        Ok(())
    }

    /// Publishes the state of a set, unless it is published already.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn publish(
        &self,
        stored: &mut Stored,
        status: ObjectSetStatus,
    ) -> Result<(), Fault> {
        if stored.resource_version.is_none() || stored.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let api = self.api(&stored.object_set.namespace);
        let patch = json!({"metadata": {"uid": stored.uid}, "status": status});
        let patched = api
            .patch_status(
                &stored.object_set.name,
                &PatchParams::default(),
                &Patch::Merge(&patch),
            )
            .await;
        match patched {
            Ok(written) => {
                stored.resource_version = written.resource_version();
                stored.status = Some(status);
                Ok(())
            }
            Err(error) => Err(fault_of(
                &format!("the status of the ObjectSet {}", stored.object_set),
                true,
                &error,
            )),
        }
    }

    fn metadata(&self, stored: &Stored, spec: &ObjectSetSpec) -> ObjectMeta {
        use configurator_core::desired::marks::{CONFIGURATOR, SetId};
        let mut kinds: Vec<String> = spec
            .members
            .iter()
            .map(|member| match member.group.as_str() {
                "" => member.kind.clone(),
                group => format!("{}.{group}", member.kind),
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut namespaces: Vec<&str> = spec
            .members
            .iter()
            .map(|member| member.namespace.as_str())
            .filter(|namespace| !namespace.is_empty() && *namespace != stored.object_set.namespace)
            .collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let text = |name: &str, value: String| (format!("applyset.kubernetes.io/{name}"), value);
        ObjectMeta {
            name: Some(stored.object_set.name.clone()),
            namespace: Some(stored.object_set.namespace.clone()),
            uid: (!stored.uid.is_empty()).then(|| stored.uid.clone()),
            resource_version: stored.resource_version.clone(),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            labels: Some(
                [
                    text("id", SetId::of(&stored.object_set).to_string()),
                    (CONFIGURATOR.to_owned(), self.configurator.uid.clone()),
                ]
                .into(),
            ),
            annotations: Some(
                [
                    text("tooling", TOOLING.to_owned()),
                    text("contains-group-kinds", kinds.join(",")),
                    text("additional-namespaces", namespaces.join(",")),
                ]
                .into(),
            ),
            ..ObjectMeta::default()
        }
    }

    /// The sequence number that the config store has; 0 where it has none.
    async fn booked(&self, owner: &str) -> Result<u64, Fault> {
        let key = self.sequence_key(owner);
        let found = self.config.scan(&key).await?;
        let found = found.into_iter().find(|(found, _)| *found == key);
        Ok(found
            .and_then(|(_, number)| number.parse().ok())
            .unwrap_or(0))
    }

    /// Writes the sequence number of what is stored.
    async fn book(&self, stored: &mut Stored, fences: &[Fence]) -> Result<(), Fault> {
        let key = self.sequence_key(&stored.owner.uid);
        let condition = match stored.booked {
            0 => Condition::is_absent(key.as_str()),
            booked => Condition::is(key.as_str(), booked.to_string()),
        };
        let write = Write::Put(key, stored.sequence.to_string());
        if !self.config.write_if(vec![write], &[condition], fences).await?
            // An earlier attempt was carried out, and its answer lost.
            && self.booked(&stored.owner.uid).await? != stored.sequence
        {
            let message = format!(
                "another host has written the ObjectSet {} meanwhile; it is read again",
                stored.object_set
            );
            return Err(Fault::new(FaultKind::ResourceConflict, message));
        }
        stored.booked = stored.sequence;
        Ok(())
    }

    fn sequence_key(&self, owner: &str) -> String {
        format!("{}{owner}", self.prefix)
    }

    fn api(&self, namespace: &str) -> Api<ObjectSet> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// The text that is sealed: everything but the seal, and the name.
fn sealed_text(object_set: &ObjectRef, spec: &ObjectSetSpec) -> String {
    let spec = ObjectSetSpec {
        seal: String::new(),
        ..spec.clone()
    };
    json!([object_set.namespace, object_set.name, spec]).to_string()
}

fn member_spec(key: &MemberKey, member: &Member) -> Result<MemberSpec, Fault> {
    let MemberKey::Kubernetes {
        group,
        kind,
        namespace,
        name,
    } = key
    else {
        let message = format!("{key}: this host offers sets of Kubernetes objects only");
        return Err(Fault::new(FaultKind::UnsupportedResourceOperation, message));
    };
    Ok(MemberSpec {
        group: group.clone(),
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        entry: member.facts.entry.clone(),
        wave: member.facts.wave,
        on_delete: match member.facts.on_delete {
            OnDelete::WithOwner => OnDeleteSpec::WithOwner,
            OnDelete::Retain => OnDeleteSpec::Retain,
            OnDelete::OnlyUnderWipeOut => OnDeleteSpec::OnlyUnderWipeOut,
        },
        removed_in: member.removed_in,
        nonce: member.nonce.clone(),
        uid: member.uid.clone(),
    })
}

fn read_member(spec: &MemberSpec) -> (MemberKey, Member) {
    let key = MemberKey::Kubernetes {
        group: spec.group.clone(),
        kind: spec.kind.clone(),
        namespace: spec.namespace.clone(),
        name: spec.name.clone(),
    };
    let member = Member {
        facts: MemberFacts {
            entry: spec.entry.clone(),
            wave: spec.wave,
            on_delete: match spec.on_delete {
                OnDeleteSpec::WithOwner => OnDelete::WithOwner,
                OnDeleteSpec::Retain => OnDelete::Retain,
                OnDeleteSpec::OnlyUnderWipeOut => OnDelete::OnlyUnderWipeOut,
            },
        },
        removed_in: spec.removed_in,
        nonce: spec.nonce.clone(),
        uid: spec.uid.clone(),
    };
    (key, member)
}
