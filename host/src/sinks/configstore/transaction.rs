//! The operations of a request, as one transaction.

use std::collections::BTreeMap;

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{self, ConfigPlan, Read, Write};
use configurator_core::partition::Partition;
use configurator_core::request::ConfigOperation;

use super::{Condition, Fence};

/// Operations in a partition, and the fences that must stand for them.
#[derive(Debug, Clone)]
pub struct ConfigTransaction {
    operations: Vec<ConfigOperation>,
    default_namespace: String,
    partition: Partition,
    fences: Vec<Fence>,
    companion: Companion,
}

/// Keys outside the layout of requests, written in the same transaction as the operations of a request. Their names contain the prefix of the
/// partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Companion {
    /// Conditions for the whole transaction.
    pub conditions: Vec<Condition>,
    /// The keys.
    pub writes: Vec<Write>,
    /// Whether it is a conflict if the operations change nothing, as if a condition did not hold.
    pub needs_change: bool,
}

impl Companion {
    fn check(&self, stored: &BTreeMap<String, String>, is_changed: bool) -> Result<(), Fault> {
        let broken = self
            .conditions
            .iter()
            .find(|condition| !condition.holds(stored));
        let why = match broken {
            Some(condition) => format!("{} was changed by others meanwhile", condition.key()),
            None if self.needs_change && !is_changed => "it is there already".to_owned(),
            None => return Ok(()),
        };
        Err(Fault::new(
            FaultKind::ResourceConflict,
            format!("the config store: nothing was written, because {why}"),
        ))
    }

    /// The writes that change what is stored.
    fn changes<'c>(
        &'c self,
        stored: &'c BTreeMap<String, String>,
    ) -> impl Iterator<Item = Write> + 'c {
        let is_there = |write: &&Write| match write {
            Write::Put(key, value) => stored.get(key) == Some(value),
            Write::Delete(_) | Write::DeletePrefix(_) => false,
        };
        self.writes
            .iter()
            .filter(move |write| !is_there(write))
            .cloned()
    }
}

impl ConfigTransaction {
    /// These operations, in the partition of the ClusterConfigurators, without fences. `default_namespace` is that of the object being handled.
    #[must_use]
    pub fn new(operations: &[ConfigOperation], default_namespace: &str) -> Self {
        Self {
            operations: operations.to_vec(),
            default_namespace: default_namespace.to_owned(),
            partition: Partition::default(),
            fences: Vec::new(),
            companion: Companion::default(),
        }
    }

    /// In this partition.
    #[must_use]
    pub fn partition(self, partition: Partition) -> Self {
        Self { partition, ..self }
    }

    /// Only if these stand.
    #[must_use]
    pub fn fences(self, fences: &[Fence]) -> Self {
        Self {
            fences: fences.to_vec(),
            ..self
        }
    }

    /// With these keys in the same transaction.
    #[must_use]
    pub fn companion(self, companion: &Companion) -> Self {
        Self {
            companion: companion.clone(),
            ..self
        }
    }

    /// The operations.
    #[must_use]
    pub fn operations(&self) -> &[ConfigOperation] {
        &self.operations
    }

    /// The namespace of the object being handled.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// The fences that must stand.
    #[must_use]
    pub fn standing(&self) -> &[Fence] {
        &self.fences
    }

    /// What the store has before each key of the operations.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.partition.prefix()
    }

    /// What [`plan`](Self::plan) needs to see.
    ///
    /// # Errors
    /// When an operation has no key.
    pub fn reads(&self) -> Result<Vec<Read>, Fault> {
        let reads = layers::reads(&self.operations, &self.default_namespace)?;
        let reads = reads.into_iter().map(|read| self.partition.read(read));
        let conditions = self.companion.conditions.iter().map(Condition::read);
        let fences = self.fences.iter().map(Fence::read);
        Ok(reads.chain(conditions).chain(fences).collect())
    }

    /// What the operations come to, where every fence stands. `stored` has what the [`reads`](Self::reads) found, by key.
    ///
    /// # Errors
    /// When a fence does not stand, and as the operations fail. [`FaultKind::ResourceConflict`] when a condition does not hold.
    pub fn plan(&self, stored: &BTreeMap<String, String>) -> Result<ConfigPlan, Fault> {
        Fence::check(&self.fences, stored)?;
        let own = self.partition.stored(stored);
        let plan = layers::plan(&self.operations, &self.default_namespace, &own)?;
        self.companion.check(stored, !plan.writes.is_empty())?;
        let writes = plan.writes.into_iter();
        let writes = writes.map(|write| self.partition.write(write));
        Ok(ConfigPlan {
            writes: writes.chain(self.companion.changes(stored)).collect(),
            ..plan
        })
    }
}
