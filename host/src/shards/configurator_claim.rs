//! Whether this host may run a Configurator: its group of hosts must have claimed it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::{Claim, Elsewhere, Permit, Shards};

/// What is known before the claim has been looked at.
const UNKNOWN: u64 = 0;
/// This host has no shards, and no other group has the claim.
const STANDBY: u64 = 1;
/// Another group has the claim.
const ELSEWHERE: u64 = 2;
/// The first [tenure](Shards::tenure). A larger number says in which tenure this host has entered itself in the claim.
pub(super) const FIRST_TENURE: u64 = 3;

/// The shards of this host for one Configurator: none, unless it has entered itself in the claim since it last gained a shard while it had none.
/// Clones share what is known of the claim.
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

    /// Returns whether it is known that no other group has the claim.
    pub(crate) fn is_open(&self) -> bool {
        let known = self.known.load(Ordering::SeqCst);
        known != UNKNOWN && known != ELSEWHERE
    }

    /// Returns whether the claim has to be looked at: nothing is known of it, or this host has gained shards.
    pub(crate) fn is_due(&self) -> bool {
        match self.known.load(Ordering::SeqCst) {
            UNKNOWN => true,
            ELSEWHERE => false,
            _ => !self.is_held() && self.shards.has_any(),
        }
    }

    /// Records that this host has entered itself in the claim, which it began to do in this tenure.
    pub(super) fn enter(&self, tenure: u64) {
        self.set(tenure);
    }

    /// Records that no other group has the claim, while this host has no shards.
    pub(super) fn stand_by(&self) {
        self.set(STANDBY);
    }

    /// Records that another group has the claim.
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

    /// Subscribes to changes of the shards and of what is known of claims.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shards.changes()
    }

    /// The right to work on these objects of the Configurator.
    pub(crate) fn claim<'a>(&self, uids: impl IntoIterator<Item = &'a str>) -> Claim {
        let numbers = uids.into_iter().map(|uid| self.of(uid)).collect();
        Claim::new(self.shards.clone(), numbers, Some(self.clone()))
    }

    /// A permit to write what belongs to this object of the Configurator. Without other hosts it takes none.
    ///
    /// # Errors
    /// When the object belongs to another host, or the Configurator to another group.
    pub(crate) fn permit(claim: Option<&Self>, uid: &str) -> Result<Option<Permit>, Elsewhere> {
        let Some(claim) = claim else {
            return Ok(None);
        };
        let permit = claim.claim([uid]).begin();
        permit.map(Some).ok_or(Elsewhere)
    }
}
