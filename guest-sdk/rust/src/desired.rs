//! Builders of desired sets.

use std::time::Duration;

use crate::bindings::configurator::handler::desired::{
    ConfigContent, Content, Orders, SecretContent, Termination,
};
use crate::error::milliseconds;
use crate::{
    DesiredEntry, DesiredSet, Json, OnConflict, OnDelete, OnExisting, OnImmutable, Readiness,
    Request, TerminationPolicy,
};

impl DesiredSet {
    /// A set without entries. It deletes all members, and needs [`allow_empty`](DesiredSet::allow_empty) for that.
    ///
    /// ```
    /// use configurator_sdk::secretstore::Secret;
    /// use configurator_sdk::{DesiredEntry, DesiredSet, OnDelete, Output};
    /// use serde_json::json;
    ///
    /// let database = json!({
    ///     "apiVersion": "apps/v1",
    ///     "kind": "StatefulSet",
    ///     "metadata": {"namespace": "shop", "name": "db"},
    /// });
    /// let password = DesiredEntry::new("password", Secret::new("shop-db").content());
    /// let set = DesiredSet::new()
    ///     .entry(password.on_delete(OnDelete::Retain))
    ///     .entry(DesiredEntry::new("database", database).depends_on("password"));
    /// let output = Output::new().desired(set);
    /// # assert_eq!(output.desired.unwrap().entries[1].depends_on, ["password"]);
    /// ```
    pub fn new() -> DesiredSet {
        DesiredSet {
            entries: Vec::new(),
            allow_empty: false,
            termination_policy: None,
            orders: None,
            pre_terminate: Vec::new(),
        }
    }

    /// Adds an entry.
    #[must_use]
    pub fn entry(mut self, entry: DesiredEntry) -> DesiredSet {
        self.push(entry);
        self
    }

    /// Adds entries.
    #[must_use]
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = DesiredEntry>) -> DesiredSet {
        self.entries.extend(entries);
        self
    }

    /// Adds an entry, inside a loop.
    pub fn push(&mut self, entry: DesiredEntry) {
        self.entries.push(entry);
    }

    /// Deletes all members if there are no entries. Without this, a set without entries is an error.
    #[must_use]
    pub fn allow_empty(mut self) -> DesiredSet {
        self.allow_empty = true;
        self
    }

    /// Sets what becomes of the members when the owner is deleted. Default: [`TerminationPolicy::Delete`].
    #[must_use]
    pub fn termination_policy(mut self, policy: TerminationPolicy) -> DesiredSet {
        self.termination_policy = Some(Termination::Policy(policy));
        self
    }

    /// Takes the termination policy from this path of the owner, such as `.spec.terminationPolicy`. The host reads it when the owner is
    /// deleted.
    #[must_use]
    pub fn termination_policy_at(mut self, path: impl Into<String>) -> DesiredSet {
        self.termination_policy = Some(Termination::Path(path.into()));
        self
    }

    /// Sets the order of creation: groups of names, each after the one before it. It replaces the dependencies between the entries that
    /// it names.
    #[must_use]
    pub fn provision(mut self, groups: &[&[&str]]) -> DesiredSet {
        self.orders().provision = owned(groups);
        self
    }

    /// Sets the order of updates, as [`provision`](DesiredSet::provision).
    #[must_use]
    pub fn update(mut self, groups: &[&[&str]]) -> DesiredSet {
        self.orders().update = owned(groups);
        self
    }

    /// Sets the order of deletion: the first group is deleted first.
    #[must_use]
    pub fn terminate(mut self, groups: &[&[&str]]) -> DesiredSet {
        self.orders().terminate = owned(groups);
        self
    }

    /// Adds a request that is executed when the owner is being deleted, before any member is. It waits for what it names in
    /// [`Request::depends_on`].
    #[must_use]
    pub fn pre_terminate(mut self, request: Request) -> DesiredSet {
        self.pre_terminate.push(request);
        self
    }

    fn orders(&mut self) -> &mut Orders {
        self.orders.get_or_insert_with(|| Orders {
            provision: Vec::new(),
            update: Vec::new(),
            terminate: Vec::new(),
        })
    }
}

impl Default for DesiredSet {
    fn default() -> DesiredSet {
        DesiredSet::new()
    }
}

impl DesiredEntry {
    /// An entry of this name, with the defaults of the contract for everything else. The content is a Kubernetes object,
    /// or made by `content` of a [`Secret`](crate::secretstore::Secret) or of a key of the [config store](crate::configstore).
    pub fn new(name: impl Into<String>, content: impl Into<Content>) -> DesiredEntry {
        DesiredEntry {
            name: name.into(),
            content: content.into(),
            depends_on: Vec::new(),
            ready_when: None,
            failed_when: None,
            timeout: None,
            on_existing: None,
            on_conflict: None,
            on_immutable: None,
            ignored_paths: Vec::new(),
            on_delete: None,
        }
    }

    /// The entry of this name must be ready first.
    #[must_use]
    pub fn depends_on(mut self, name: impl Into<String>) -> DesiredEntry {
        self.depends_on.push(name.into());
        self
    }

    /// Sets when the entry is ready. Default: healthy for a Kubernetes object, exists for all else.
    #[must_use]
    pub fn ready_when(mut self, readiness: Readiness) -> DesiredEntry {
        self.ready_when = Some(readiness);
        self
    }

    /// Sets a CEL expression over `object`. The entry has failed while it is true.
    #[must_use]
    pub fn failed_when(mut self, expression: impl Into<String>) -> DesiredEntry {
        self.failed_when = Some(expression.into());
        self
    }

    /// Sets how long the entry may take to be ready after it was written, or after it was ready last. Default: no limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> DesiredEntry {
        self.timeout = Some(milliseconds(timeout));
        self
    }

    /// Sets what happens if a member exists that belongs to no set. Default: [`OnExisting::Refuse`].
    #[must_use]
    pub fn on_existing(mut self, on_existing: OnExisting) -> DesiredEntry {
        self.on_existing = Some(on_existing);
        self
    }

    /// Sets what happens if another field manager has a field. Default: [`OnConflict::Fail`].
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> DesiredEntry {
        self.on_conflict = Some(on_conflict);
        self
    }

    /// Sets what happens if a field that changes is immutable. Default: [`OnImmutable::Fail`].
    #[must_use]
    pub fn on_immutable(mut self, on_immutable: OnImmutable) -> DesiredEntry {
        self.on_immutable = Some(on_immutable);
        self
    }

    /// Leaves a field alone once the object exists: `.spec.replicas`.
    #[must_use]
    pub fn ignore_path(mut self, path: impl Into<String>) -> DesiredEntry {
        self.ignored_paths.push(path.into());
        self
    }

    /// Sets what becomes of the member when the owner is deleted. Default: [`OnDelete::WithOwner`].
    #[must_use]
    pub fn on_delete(mut self, on_delete: OnDelete) -> DesiredEntry {
        self.on_delete = Some(on_delete);
        self
    }
}

impl ConfigContent {
    /// In the partition of this namespace. Default: the Configurator's own partition.
    #[must_use]
    pub fn partition(mut self, namespace: impl Into<String>) -> ConfigContent {
        self.partition = Some(namespace.into());
        self
    }
}

impl SecretContent {
    /// In the partition of this namespace. Default: the Configurator's own partition.
    #[must_use]
    pub fn partition(mut self, namespace: impl Into<String>) -> SecretContent {
        self.partition = Some(namespace.into());
        self
    }
}

/// A Kubernetes object.
impl From<Json> for Content {
    fn from(object: Json) -> Content {
        Content::Kubernetes(object.into_string())
    }
}

/// A Kubernetes object.
impl From<serde_json::Value> for Content {
    fn from(object: serde_json::Value) -> Content {
        Json::from(object).into()
    }
}

impl From<ConfigContent> for Content {
    fn from(content: ConfigContent) -> Content {
        Content::Config(content)
    }
}

impl From<SecretContent> for Content {
    fn from(content: SecretContent) -> Content {
        Content::Secret(content)
    }
}

fn owned(groups: &[&[&str]]) -> Vec<Vec<String>> {
    let owned = |group: &&[&str]| group.iter().map(|name| (*name).to_owned()).collect();
    groups.iter().map(owned).collect()
}
