//! The operations of a request, as one transaction.

use std::collections::BTreeMap;

use configurator_core::fault::Fault;
use configurator_core::layers::{self, ConfigPlan, Read};
use configurator_core::partition::Partition;
use configurator_core::request::ConfigOperation;

use super::Fence;

/// Operations in a partition, and the fences that must stand for them.
#[derive(Debug, Clone)]
pub struct ConfigTransaction {
    operations: Vec<ConfigOperation>,
    default_namespace: String,
    partition: Partition,
    fences: Vec<Fence>,
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
        Ok(reads.chain(self.fences.iter().map(Fence::read)).collect())
    }

    /// What the operations come to, where every fence stands. `stored` has what the [`reads`](Self::reads) found, by key.
    ///
    /// # Errors
    /// When a fence does not stand, and as the operations fail.
    pub fn plan(&self, stored: &BTreeMap<String, String>) -> Result<ConfigPlan, Fault> {
        Fence::check(&self.fences, stored)?;
        let own = self.partition.stored(stored);
        let plan = layers::plan(&self.operations, &self.default_namespace, &own)?;
        let writes = plan.writes.into_iter();
        Ok(ConfigPlan {
            writes: writes.map(|write| self.partition.write(write)).collect(),
            ..plan
        })
    }
}
