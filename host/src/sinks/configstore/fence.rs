//! A key that says who may write.
//!
//! A host raises the fence before it writes: in one transaction, it replaces the value that it read *before* it gained the right to
//! write. So it never replaces a fence that was raised after it lost that right, and relies on no clock and no version of another server.
//! `docs/scale.md` has the argument.

use std::collections::BTreeMap;

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{Read, Write};

use super::{Condition, ConfigStore};

/// A key of the store whose value names whoever may write. The next one overwrites it, and from then on nothing of the
/// one before comes through, however late it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fence {
    key: String,
    /// The number of this fence among those of its key.
    number: u64,
    holder: String,
    /// How often the right to write had changed hands, as the holder knew.
    term: u32,
}

/// The fence that stands under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingFence {
    key: String,
    value: Option<String>,
}

impl StandingFence {
    /// Reads the fence of this name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(store: &dyn ConfigStore, name: &str) -> Result<Self, Fault> {
        let key = format!("fences/{name}");
        let value = store.get(&key).await?;
        Ok(Self { key, value })
    }

    /// The fence of the next holder, whose right to write has changed hands `term` times.
    #[must_use]
    pub fn next(&self, holder: &str, term: u32) -> Fence {
        let (number, _, _) = self.parts();
        Fence {
            key: self.key.clone(),
            number: number.saturating_add(1),
            holder: holder.to_owned(),
            term,
        }
    }

    /// Whether the right to write went back to a state from before the holder of this fence had it: another host holds this fence, and
    /// the right had changed hands as often for it as for the holder of `next`, or more often.
    #[must_use]
    pub fn is_ahead_of(&self, next: &Fence) -> bool {
        let (_, holder, term) = self.parts();
        holder.is_some_and(|holder| holder != next.holder)
            && term.is_some_and(|term| term >= next.term)
    }

    fn parts(&self) -> (u64, Option<&str>, Option<u32>) {
        let mut parts = self.value.as_deref().unwrap_or_default().split(' ');
        let number = parts.next().and_then(|number| number.parse().ok());
        let holder = parts.next();
        let term = parts.next().and_then(|term| term.parse().ok());
        (number.unwrap_or_default(), holder, term)
    }
}

impl Fence {
    /// Raises the fence in the place of the one that stood when it was read. `false`: another one stands by now, and nothing was
    /// changed.
    ///
    /// # Errors
    /// When the store cannot be written. Whether the fence is raised is then not known; to raise it again is safe.
    pub async fn raise(
        &self,
        store: &dyn ConfigStore,
        standing: &StandingFence,
    ) -> Result<bool, Fault> {
        let stands = match &standing.value {
            Some(value) => Condition::is(self.key.as_str(), value.as_str()),
            None => Condition::is_absent(self.key.as_str()),
        };
        let write = Write::Put(self.key.clone(), self.value());
        if store.write_if(vec![write], &[stands], &[]).await? {
            return Ok(true);
        }
        // An earlier attempt was carried out, and its answer lost.
        let name = self.key.strip_prefix("fences/").unwrap_or(&self.key);
        let found = StandingFence::read(store, name).await?;
        Ok(found.value == Some(self.value()))
    }

    /// The key that it is.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn value(&self) -> String {
        format!("{} {} {}", self.number, self.holder, self.term)
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
