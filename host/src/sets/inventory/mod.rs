//! Stores the inventories of sets: the record of each member is written before the member is created and removed after it is gone.
//!
//! An inventory is the `spec` of an `ObjectSet`, and of further ones if it has more members than one may have: its pages. Each page is sealed,
//! so that the host does not take for its own what somebody else wrote, and has a sequence number whose newest value is in the config store
//! (`sets/<Configurator>/<uid of the owner>`), so that an older page which was put back is noticed. A host that stops after it has written a
//! page and before it has written the number leaves a page that is one ahead; nothing else is. A member is on one page, and no fact of the
//! inventory needs two pages to agree. The first page names the number of pages before another one is created, and goes last.

mod member;
mod page;
mod pages;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use configurator_core::configurator::Configurator;
use configurator_core::desired::marks::{CONFIGURATOR, SetId};
use configurator_core::digest::digest_of;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::{Inventory, Member, MemberKey};
use configurator_core::request::ObjectRef;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{ObjectMeta, Request};
use serde_json::json;

use self::member::{member_spec, read_member};
use self::page::Page;
use self::pages::{PAGE, Pages};
use super::pre_terminate::PreTerminate;
use crate::kubernetes_faults::fault_of;
use crate::objects::Written;
use crate::resource::object_set::{
    MemberSpec, ObjectSet, ObjectSetSpec, ObjectSetStatus, SetConfigurator, SetOwner,
};
use crate::resource::segment_of;
use crate::seal::HostKey;
use crate::sinks::configstore::{ConfigStore, Fence};

/// The most members of an inventory: of two sets of the largest size, since the members of a set are pruned after those of the next are created.
const MAX_MEMBERS: usize = 40_000;
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
    /// The `ObjectSet`: the first page.
    pub(crate) object_set: ObjectRef,
    pub(crate) owner: SetOwner,
    /// The fate of the members: see [`ObjectSetSpec::termination_policy`].
    pub(crate) termination_policy: String,
    /// The version of the set.
    pub(crate) version: u64,
    pub(crate) pre_terminate: PreTerminate,
    /// At least one.
    pages: Vec<Page>,
    distribution: Pages,
    /// The status that was written last.
    status: Option<ObjectSetStatus>,
}

impl Stored {
    /// Whether there is an inventory.
    pub(crate) fn exists(&self) -> bool {
        let head = self.pages.first();
        head.is_some_and(|head| head.resource_version.is_some())
    }

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

    /// Reads the inventory of an owner. One that does not exist is empty. That of a new owner is not read if the config store does not know
    /// it: if it exists all the same, the API refuses to create it.
    ///
    /// # Errors
    /// When a server cannot be asked. When the inventory is not as a host has left it: then nothing may be written or deleted.
    pub(crate) async fn load(
        &self,
        owner: &SetOwner,
        is_new: bool,
    ) -> Result<(Stored, Inventory), Fault> {
        let object_set = self.name_of(owner);
        let numbers = self.config.scan(&self.sequence_key(owner, 0)).await?;
        let numbers: HashMap<String, u64> = numbers
            .into_iter()
            .filter_map(|(key, number)| Some((key, number.parse().ok()?)))
            .collect();
        let page = |index: usize| {
            let mut page = self.page(&object_set, owner, index);
            page.booked = numbers.get(&page.sequence_key).copied().unwrap_or(0);
            page
        };
        let mut stored = Stored {
            object_set: object_set.clone(),
            owner: owner.clone(),
            termination_policy: String::new(),
            version: 0,
            pre_terminate: PreTerminate::default(),
            pages: Vec::new(),
            distribution: Pages::default(),
            status: None,
        };
        let mut inventory = Inventory::new();
        let mut head = page(0);
        let found = match is_new && numbers.is_empty() {
            true => None,
            false => self.read_page(&mut head).await?,
        };
        let Some(found) = found else {
            if !numbers.is_empty() {
                return Err(head.damaged("is missing"));
            }
            stored.pages.push(head);
            return Ok((stored, inventory));
        };
        let spec = found.spec;
        if spec.owner.uid != owner.uid || spec.configurator.uid != self.configurator.uid {
            return Err(head.damaged("belongs to another owner or Configurator"));
        }
        stored.termination_policy = spec.termination_policy;
        stored.version = spec.version;
        let key = self.key.get().await?;
        let pre_terminate = PreTerminate::open(key, &owner.uid, spec.pre_terminate, spec.sent);
        stored.pre_terminate = pre_terminate.ok_or_else(|| head.damaged("cannot be read"))?;
        stored.status = found.status;
        stored.pages.push(head);
        inventory.extend(spec.members.iter().map(read_member));
        if spec.pages > 1 {
            stored.distribution.keep(0, inventory.keys());
        }
        for index in 1..usize::try_from(spec.pages).unwrap_or(1) {
            let mut page = page(index);
            let found = self.read_page(&mut page).await?;
            stored.pages.push(page);
            let members = found.map(|found| found.spec.members).unwrap_or_default();
            let members: Vec<(MemberKey, Member)> = members.iter().map(read_member).collect();
            let keys = members.iter().map(|(key, _)| key);
            stored.distribution.keep(index, keys);
            inventory.extend(members);
        }
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

    /// Writes the pages of an inventory that have changed. On success, `stored` is what is stored now.
    ///
    /// # Errors
    /// When a server cannot be asked, or somebody else has written the inventory meanwhile: then it is to be read again.
    pub(crate) async fn save<'a>(
        &self,
        stored: &mut Stored,
        members: impl Iterator<Item = (&'a MemberKey, &'a Member)>,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let mut members: Vec<(&MemberKey, &Member)> = members.collect();
        if members.len() > MAX_MEMBERS {
            let message = format!(
                "the set would have {} members, with those that are yet to be pruned; {MAX_MEMBERS} are allowed",
                members.len()
            );
            return Err(Fault::new(FaultKind::ResourceGeneric, message));
        }
        members.sort_unstable_by_key(|(key, _)| *key);
        if members.len() > PAGE && !stored.distribution.are_kept() {
            self.keep_first_page(stored).await?;
        }
        let kinds = kinds_of(&members);
        let namespaces = namespaces_of(&members, &stored.object_set.namespace);
        let pages = stored.pages.len();
        let distributed = stored.distribution.distribute(members, pages);
        for index in pages..distributed.len() {
            let page = self.page(&stored.object_set, &stored.owner, index);
            stored.pages.push(page);
        }
        let number = u32::try_from(stored.pages.len()).unwrap_or(u32::MAX);
        for (index, (page, members)) in stored.pages.iter_mut().zip(distributed).enumerate() {
            let members = members.into_iter();
            let members: Vec<MemberSpec> = members
                .map(|(key, member)| member_spec(key, member))
                .collect();
            let is_first = index == 0;
            let (pre_terminate, sent) = match is_first {
                true => stored.pre_terminate.stored(),
                false => (String::new(), Vec::new()),
            };
            let spec = ObjectSetSpec {
                owner: stored.owner.clone(),
                configurator: self.configurator.clone(),
                termination_policy: stored.termination_policy.clone(),
                version: if is_first { stored.version } else { 0 },
                pages: if is_first { number } else { 0 },
                members,
                pre_terminate,
                sent,
                sequence: 0,
                seal: String::new(),
            };
            let set = is_first.then(|| SetId::of(&stored.object_set));
            let metadata = self.metadata(set.as_ref(), &kinds, &namespaces);
            self.write_page(page, spec, metadata, fences).await?;
        }
        Ok(())
    }

    /// Reads which members are on the first page, before there is another one.
    async fn keep_first_page(&self, stored: &mut Stored) -> Result<(), Fault> {
        let [head] = stored.pages.as_slice() else {
            return Ok(());
        };
        if head.resource_version.is_none() {
            return Ok(());
        }
        let mut read = head.clone();
        let found = self.read_page(&mut read).await?;
        if read.resource_version != head.resource_version {
            return Err(head.overtaken());
        }
        let members = found.map(|found| found.spec.members).unwrap_or_default();
        let members: Vec<(MemberKey, Member)> = members.iter().map(read_member).collect();
        let keys = members.iter().map(|(key, _)| key);
        stored.distribution.keep(0, keys);
        Ok(())
    }

    /// Deletes an empty inventory.
    ///
    /// # Errors
    /// When a server cannot be asked.
    pub(crate) async fn delete(&self, stored: &mut Stored, fences: &[Fence]) -> Result<(), Fault> {
        for page in stored.pages.iter_mut().rev() {
            self.delete_page(page, fences).await?;
        }
        Ok(())
    }

    /// Deletes the inventory of an owner, whatever it says.
    ///
    /// # Errors
    /// When a server cannot be asked.
    pub(crate) async fn discard(&self, owner: &SetOwner, fences: &[Fence]) -> Result<(), Fault> {
        let object_set = self.name_of(owner);
        let numbers = self.config.scan(&self.sequence_key(owner, 0)).await?;
        let mut pages = Vec::new();
        loop {
            let mut page = self.page(&object_set, owner, pages.len());
            let name = &page.object_set;
            let found = self.api(&name.namespace).get_metadata_opt(&name.name).await;
            let what = format!("the ObjectSet {name}");
            let found = found.map_err(|error| fault_of(&what, false, &error))?;
            if found.is_none() && pages.len() >= numbers.len() {
                break;
            }
            if let Some(found) = found {
                page.resource_version = found.metadata.resource_version;
                page.uid = found.metadata.uid.unwrap_or_default();
            }
            pages.push(page);
        }
        for page in pages.iter_mut().rev() {
            self.delete_page(page, fences).await?;
        }
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
        let Some(head) = stored.pages.first_mut() else {
            return Ok(());
        };
        if head.resource_version.is_none() || stored.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let patch = json!({"metadata": {"uid": head.uid}, "status": status});
        let requests = Request::new(self.api(&head.object_set.namespace).resource_url());
        let request = requests.patch_subresource(
            "status",
            &head.object_set.name,
            &PatchParams::default(),
            &Patch::Merge(&patch),
        );
        let written = Written::by(&self.client, request).await;
        let what = format!("the status of the ObjectSet {}", head.object_set);
        let written = written.map_err(|error| fault_of(&what, true, &error))?;
        head.resource_version = written.resource_version;
        stored.status = Some(status);
        Ok(())
    }

    /// The metadata of a page. The first one is the parent of an ApplySet.
    fn metadata(&self, set: Option<&SetId>, kinds: &str, namespaces: &str) -> ObjectMeta {
        let text = |name: &str, value: &str| {
            let name = format!("applyset.kubernetes.io/{name}");
            (name, value.to_owned())
        };
        let configurator = (CONFIGURATOR.to_owned(), self.configurator.uid.clone());
        let id = set.map(|set| text("id", set.as_str()));
        let annotations = set.map(|_| {
            [
                text("tooling", TOOLING),
                text("contains-group-kinds", kinds),
                text("additional-namespaces", namespaces),
            ]
            .into()
        });
        ObjectMeta {
            finalizers: Some(vec![FINALIZER.to_owned()]),
            labels: Some(id.into_iter().chain([configurator]).collect()),
            annotations,
            ..ObjectMeta::default()
        }
    }

    /// A page that has not been read.
    fn page(&self, object_set: &ObjectRef, owner: &SetOwner, index: usize) -> Page {
        let object_set = match index {
            0 => object_set.clone(),
            _ => ObjectRef {
                name: format!("{}-{index}", object_set.name),
                ..object_set.clone()
            },
        };
        Page::new(object_set, self.sequence_key(owner, index))
    }

    fn sequence_key(&self, owner: &SetOwner, index: usize) -> String {
        match index {
            0 => format!("{}{}", self.prefix, owner.uid),
            _ => format!("{}{}/{index}", self.prefix, owner.uid),
        }
    }

    fn api(&self, namespace: &str) -> Api<ObjectSet> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// The kinds of members, as an ApplySet names them.
fn kinds_of(members: &[(&MemberKey, &Member)]) -> String {
    let mut kinds = BTreeSet::new();
    for (key, _) in members {
        if let MemberKey::Kubernetes { group, kind, .. } = key {
            kinds.insert(match group.as_str() {
                "" => kind.clone(),
                group => format!("{kind}.{group}"),
            });
        }
    }
    kinds.into_iter().collect::<Vec<String>>().join(",")
}

/// The namespaces of members other than that of the `ObjectSet`, as an ApplySet names them.
fn namespaces_of(members: &[(&MemberKey, &Member)], own: &str) -> String {
    let mut namespaces = BTreeSet::new();
    for (key, _) in members {
        if let MemberKey::Kubernetes { namespace, .. } = key
            && !namespace.is_empty()
            && namespace != own
        {
            namespaces.insert(namespace.as_str());
        }
    }
    namespaces.into_iter().collect::<Vec<&str>>().join(",")
}
