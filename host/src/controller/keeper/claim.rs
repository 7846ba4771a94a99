//! Claims the Configurator for the group of this host.

use futures::FutureExt as _;
use kube::ResourceExt as _;

use super::Keeper;
use crate::observer::Notice;
use crate::shards::{ClaimFault, ConfiguratorClaim};

impl Keeper {
    /// Starts an attempt to claim if one is due: at the start, and after the host gained shards while it had none.
    pub(super) fn look_at_claim(&mut self) {
        let is_due = self.claim.as_ref().is_some_and(ConfiguratorClaim::is_due);
        if is_due && self.claim_again.is_none() {
            self.try_claim();
        }
    }

    /// Starts an attempt to claim, unless one is under way.
    pub(super) fn try_claim(&mut self) {
        self.claim_again = None;
        let (Some(claim), Some(claims)) = (&self.claim, &self.shared.claims) else {
            return;
        };
        if self.claiming.is_some() {
            return;
        }
        let (claim, claims) = (claim.clone(), claims.clone());
        let resource = self.desired.borrow().clone();
        let claiming = async move {
            let uid = resource.uid().unwrap_or_default();
            claims.claim(&claim, &resource.key(), &uid).await
        };
        self.claiming = Some(claiming.boxed());
    }

    /// Handles the end of an attempt. After a failure, schedules the next one.
    pub(super) fn on_claimed(&mut self, claimed: Result<(), ClaimFault>) {
        let Err(fault) = claimed else {
            self.unclaimed = None;
            // The host may have lost and gained shards meanwhile.
            return self.look_at_claim();
        };
        if let Some(claims) = &self.shared.claims {
            self.claim_again = Some(self.shared.clock.now().after(claims.interval()));
        }
        let message = fault.to_string();
        if self.unclaimed.as_ref() == Some(&message) {
            return;
        }
        let key = self.desired.borrow().key();
        match fault {
            ClaimFault::Elsewhere(_) => {
                tracing::info!(configurator = %key, "{message}; this host waits until they release it");
            }
            ClaimFault::Api(_) | ClaimFault::Store(_) => {
                tracing::warn!(configurator = %key, "{message}; the host retries");
            }
        }
        let notice = Notice::Waiting {
            message: message.clone(),
        };
        self.shared.observer.noticed(&key, &notice);
        self.unclaimed = Some(message);
    }

    /// Ends the runs of a Configurator that has left the scope of this host, then releases the claim.
    pub(super) async fn leave(mut self: Box<Self>) {
        let resource = self.desired.borrow().clone();
        let key = resource.key();
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        self.voice.fall_silent().await;
        let uid = resource.uid().unwrap_or_default();
        self.release_claim(&uid).await;
        self.shared.observer.noticed(&key, &Notice::Stopped);
        tracing::info!(configurator = %key, "stopped: the Configurator is no longer in the scope of this host");
    }

    /// Removes this host from the claim. Retries until it succeeds or the host drains. When a host has drained, its Leases are gone, so other
    /// groups do not wait for it.
    pub(super) async fn release_claim(&mut self, uid: &str) {
        if let Some(claiming) = self.claiming.take() {
            // It must not add the host to the claim after the release.
            let _ = claiming.await;
        }
        let (Some(claim), Some(claims)) = (&self.claim, &self.shared.claims) else {
            return;
        };
        let drain = self.tasks.drain_token();
        while let Err(fault) = claims.release(claim, uid).await {
            let key = self.desired.borrow().key();
            tracing::warn!(configurator = %key, %fault, "the claim could not be released; the host retries");
            tokio::select! {
                () = drain.cancelled() => return,
                () = self.shared.clock.sleep(claims.interval()) => {}
            }
        }
    }
}
