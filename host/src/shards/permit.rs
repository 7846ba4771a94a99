//! The right to work on objects while their shards are this host's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::{ConfiguratorClaim, Elsewhere, Shards, Standing};
use crate::sinks::Scope;
use crate::sinks::configstore::Fence;

/// The shards of some objects. It gives no right by itself: [`begin`](Self::begin) does.
#[derive(Clone)]
pub(crate) struct Claim {
    shards: Arc<Shards>,
    numbers: BTreeSet<u16>,
    /// The claim of the Configurator that the objects belong to. `None`: the claim is not for a Configurator.
    configurator: Option<ConfiguratorClaim>,
}

/// Something is under way. As long as there is a permit, a shard is not given back, only lost.
pub(crate) struct Permit {
    claim: Claim,
    lost: Vec<CancellationToken>,
    fences: Vec<Fence>,
}

impl Claim {
    pub(super) fn new(shards: Arc<Shards>, numbers: BTreeSet<u16>) -> Self {
        Self {
            shards,
            numbers,
            configurator: None,
        }
    }

    /// Limits the claim to the time in which the group of this host has claimed the objects' Configurator.
    pub(super) fn of_configurator(self, configurator: ConfiguratorClaim) -> Self {
        Self {
            configurator: Some(configurator),
            ..self
        }
    }

    /// Begins something, if there is a claim. Without other hosts there is none.
    ///
    /// # Errors
    /// When [`begin`](Self::begin) returns no permit.
    pub(super) fn permit(claim: Option<Self>) -> Result<Option<Permit>, Elsewhere> {
        let permit = claim.map(|claim| claim.begin().ok_or(Elsewhere));
        permit.transpose()
    }

    /// Begins something. Returns `None` if this host does not hold one of the shards, or its group has not claimed the Configurator.
    pub(crate) fn begin(&self) -> Option<Permit> {
        let mut shards = self.shards.shards();
        let configurator = self.configurator.as_ref();
        if !configurator.is_none_or(ConfiguratorClaim::is_held) {
            return None;
        }
        let is_held = |number: &u16| {
            let shard = shards.get(usize::from(*number));
            shard.is_some_and(|shard| shard.standing == Standing::Held)
        };
        if !self.numbers.iter().all(is_held) {
            return None;
        }
        let mut permit = Permit {
            claim: self.clone(),
            lost: Vec::with_capacity(self.numbers.len()),
            fences: Vec::with_capacity(self.numbers.len()),
        };
        for number in &self.numbers {
            if let Some(shard) = shards.get_mut(usize::from(*number)) {
                shard.under_way += 1;
                permit.lost.push(shard.lost.clone());
                permit.fences.push(shard.fence.clone());
            }
        }
        Some(permit)
    }
}

impl Permit {
    /// What it is a permit for.
    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Returns when a request that changes something may be sent, and gives it the limits under which it may.
    pub(crate) async fn admit(&self, scope: &mut Scope) {
        scope.timeout = Some(self.ready(scope.timeout).await);
        scope.fences.clone_from(&self.fences);
    }

    /// Returns when a request may be sent: not with less left of a lease than it may take. How long that is, at most
    /// half a lease, is the answer. Without a renewal it never returns; [`lost`](Self::lost) does.
    pub(crate) async fn ready(&self, timeout: Option<Duration>) -> Duration {
        let shards = &self.claim.shards;
        let most = shards.sharding.patience();
        let timeout = timeout.map_or(most, |timeout| timeout.min(most));
        let mut renewed = shards.renewed.subscribe();
        while !self.has_left(timeout) {
            // The sender lives as long as this.
            let _ = renewed.changed().await;
        }
        timeout
    }

    fn has_left(&self, timeout: Duration) -> bool {
        let Claim {
            shards, numbers, ..
        } = &self.claim;
        let known = shards.shards();
        numbers.iter().all(|number| {
            let shard = known.get(usize::from(*number));
            shard.is_some_and(|shard| shards.left(shard) >= timeout)
        })
    }

    /// Returns when one of the shards may be another's.
    pub(crate) async fn lost(&self) {
        let mut tokens: FuturesUnordered<_> =
            self.lost.iter().map(CancellationToken::cancelled).collect();
        if tokens.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the fences of a permit, if there is one.
    pub(crate) fn fences_of(permit: Option<&Self>) -> &[Fence] {
        permit.map_or(&[], Self::fences)
    }

    /// What shows the config store that the shards are this host's.
    pub(crate) fn fences(&self) -> &[Fence] {
        &self.fences
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Claim {
            shards, numbers, ..
        } = &self.claim;
        let mut is_quiet = false;
        let mut known = shards.shards();
        for number in numbers {
            if let Some(shard) = known.get_mut(usize::from(*number)) {
                shard.under_way = shard.under_way.saturating_sub(1);
                is_quiet |= shard.under_way == 0 && shard.standing != Standing::Held;
            }
        }
        drop(known);
        if is_quiet {
            shards.quiet.notify_one();
        }
    }
}
