//! A key that says who may write.

use std::collections::BTreeMap;

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{self, ConfigPlan, Read};
use configurator_core::request::ConfigOperation;

/// A key of the store whose value names whoever may write. The next one overwrites it, and from then on nothing of the
/// one before comes through, however late it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fence {
    key: String,
    number: u64,
    holder: String,
}

impl Fence {
    /// The fence of this name, as whoever is called `holder` raises it. Of two, that with the higher number is the
    /// later one.
    #[must_use]
    pub fn new(name: &str, number: u64, holder: &str) -> Self {
        Self {
            key: format!("fences/{name}"),
            number,
            holder: holder.to_owned(),
        }
    }

    /// The key that it is.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn value(&self) -> String {
        format!("{} {}", self.number, self.holder)
    }

    /// What shows whether it stands.
    pub(super) fn read(&self) -> Read {
        Read::Key(self.key.clone())
    }

    /// Fails unless every fence stands in what was read.
    pub(super) fn check(fences: &[Self], stored: &BTreeMap<String, String>) -> Result<(), Fault> {
        let stands = |fence: &&Self| stored.get(&fence.key) != Some(&fence.value());
        match fences.iter().find(stands) {
            None => Ok(()),
            Some(fence) => Err(fence.fallen(stored)),
        }
    }

    /// Whether it is still to be raised.
    ///
    /// # Errors
    /// When a later one stands.
    pub(super) fn is_missing(&self, stored: &BTreeMap<String, String>) -> Result<bool, Fault> {
        let Some(found) = stored.get(&self.key) else {
            return Ok(true);
        };
        let number = found
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok());
        if number.is_some_and(|number: u64| number > self.number) {
            return Err(self.fallen(stored));
        }
        Ok(*found != self.value())
    }

    fn fallen(&self, stored: &BTreeMap<String, String>) -> Fault {
        let found = stored.get(&self.key).map_or("nobody", String::as_str);
        Fault::new(
            FaultKind::ConfigstoreUnavailable,
            format!(
                "the config store: nothing was written for {:?}, because {} names {found:?}: another host has taken over",
                self.value(),
                self.key
            ),
        )
    }
}

/// Operations, and the fences that must stand for them.
pub(super) struct Fenced<'a> {
    pub(super) operations: &'a [ConfigOperation],
    pub(super) default_namespace: &'a str,
    pub(super) fences: &'a [Fence],
}

impl Fenced<'_> {
    /// What [`plan`](Self::plan) needs to see.
    pub(super) fn reads(&self) -> Result<Vec<Read>, Fault> {
        let mut reads = layers::reads(self.operations, self.default_namespace)?;
        reads.extend(self.fences.iter().map(Fence::read));
        Ok(reads)
    }

    /// What the operations come to, where every fence stands.
    pub(super) fn plan(&self, stored: &BTreeMap<String, String>) -> Result<ConfigPlan, Fault> {
        Fence::check(self.fences, stored)?;
        layers::plan(self.operations, self.default_namespace, stored)
    }
}
