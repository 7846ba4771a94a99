//! The claim of a Configurator, as far as this host knows it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::{Claim, Elsewhere, Permit, Shards};

/// The claim has not been read yet.
const UNKNOWN: u64 = 0;
/// This host has no shards, and no other group has claimed the Configurator.
const STANDBY: u64 = 1;
/// Another group has claimed the Configurator.
const ELSEWHERE: u64 = 2;
/// The first [tenure](Shards::tenure). This number or a larger one is the tenure in which this host added itself to the claim.
pub(super) const FIRST_TENURE: u64 = 3;

/// The shards of this host for one Configurator. It has none unless it has added itself to the claim in the current [tenure](Shards::tenure).
/// Clones share the state.
#[derive(Clone)]
pub(crate) struct ConfiguratorClaim {
    shards: Arc<Shards>,
    known: Arc<AtomicU64>,
}

impl ConfiguratorClaim {
    pub(super) fn new(shards: Arc<Shards>) -> Self {
        Self {
            shards,
            known: Arc::new(AtomicU64::new(UNKNOWN)),
        }
    }

    /// Returns whether this host may run the Configurator.
    pub(crate) fn is_held(&self) -> bool {
        self.known.load(Ordering::SeqCst) == self.shards.tenure()
    }

    /// Returns whether no other group has claimed the Configurator. `false` until the claim has been read.
    pub(crate) fn is_open(&self) -> bool {
        let known = self.known.load(Ordering::SeqCst);
        known != UNKNOWN && known != ELSEWHERE
    }

    /// Returns whether the claim must be read or made: it has not been read, or this host has gained shards.
    pub(crate) fn is_due(&self) -> bool {
        match self.known.load(Ordering::SeqCst) {
            UNKNOWN => true,
            ELSEWHERE => false,
            _ => !self.is_held() && self.shards.has_any(),
        }
    }

    /// Records that this host has added itself to the claim. It began to do so in this tenure.
    pub(super) fn enter(&self, tenure: u64) {
        self.set(tenure);
    }

    /// Records that no other group has claimed the Configurator, and that this host is not in the claim.
    pub(super) fn stand_by(&self) {
        self.set(STANDBY);
    }

    /// Records that another group has claimed the Configurator.
    pub(super) fn lose(&self) {
        self.set(ELSEWHERE);
    }

    fn set(&self, known: u64) {
        if self.known.swap(known, Ordering::SeqCst) != known {
            self.shards.changed.send_replace(());
        }
    }

    /// Returns the number of shards of the group.
    pub(crate) fn number(&self) -> u16 {
        self.shards.number()
    }

    /// Returns the shard of the object with this uid.
    pub(crate) fn of(&self, uid: &str) -> u16 {
        self.shards.of(uid)
    }

    /// Returns the shards in which runs of the Configurator can begin here.
    pub(crate) fn held(&self) -> BTreeSet<u16> {
        match self.is_held() {
            true => self.shards.held(),
            false => BTreeSet::new(),
        }
    }

    /// Returns whether this host speaks for the object or Configurator with this uid.
    pub(crate) fn speaks_for(&self, uid: &str) -> bool {
        self.is_held() && self.shards.speaks_for(uid)
    }

    /// Subscribes to changes of the shards and of claims.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shards.changes()
    }

    /// The right to work on these objects of the Configurator.
    pub(crate) fn claim<'a>(&self, uids: impl IntoIterator<Item = &'a str>) -> Claim {
        self.shards.claim(uids).of_configurator(self.clone())
    }

    /// A permit to write what belongs to this object of the Configurator. Without other hosts it takes none.
    ///
    /// # Errors
    /// When the object belongs to another host, or the Configurator to another group.
    pub(crate) fn permit(claim: Option<&Self>, uid: &str) -> Result<Option<Permit>, Elsewhere> {
        Claim::permit(claim.map(|claim| claim.claim([uid])))
    }
}
