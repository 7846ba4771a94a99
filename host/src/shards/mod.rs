//! Sharing the objects with other hosts.
//!
//! Hosts with the same name are a group. Several groups can share a cluster: `ClaimClient` claims each Configurator for one of them.
//!
//! The decisions are those of [`configurator_core::ring`]; `Election` carries them out on Leases, and `Shards` is what the
//! rest of the host asks: which objects are its own, and whether a request may still be sent.

mod claim_client;
mod configurator_claim;
mod election;
mod leases;
mod permit;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configurator_core::ring::{MAX_SHARDS, RingOptions, shard_of};
use configurator_core::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::claim_client::{ClaimClient, ClaimFault};
pub(crate) use self::configurator_claim::ConfiguratorClaim;
use self::configurator_claim::FIRST_TENURE;
pub(crate) use self::election::Election;
pub(crate) use self::permit::{Claim, Permit};
use crate::clock::SharedClock;
use crate::sinks::configstore::Fence;

/// How the hosts of a group share the objects of their Configurators. All of them say the same, except for `host`.
///
/// With one shard, one host does all the work and the others stand by: leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    /// Into how many parts the objects fall: 1 to 256. A few for each host that there will ever be. It is changed only
    /// while no host runs.
    pub shards: u16,
    /// The name of the group of hosts; the names of its Leases begin with it.
    pub name: String,
    /// The namespace of the Leases. Groups must have it in common.
    pub namespace: String,
    /// What this host is called; a random ending makes it unique.
    pub host: String,
    /// How long a Lease lasts after each renewal: whole seconds, at least two. A host that dies is replaced after this
    /// and half as much.
    pub lease: Duration,
}

impl Sharding {
    /// 16 shards under Leases of 15 s in this namespace, whose names begin with `configurator`.
    #[must_use]
    pub fn new(namespace: &str, host: &str) -> Self {
        Self {
            shards: 16,
            name: "configurator".into(),
            namespace: namespace.to_owned(),
            host: host.to_owned(),
            lease: Duration::from_secs(15),
        }
    }

    /// How long a request may be on its way; no other is sent. What is left of a lease right before it is renewed is
    /// longer, also when a renewal is late.
    fn patience(&self) -> Duration {
        self.lease / 2
    }

    /// What is wrong with it.
    fn check(&self) -> Result<(), ShardingError> {
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            return Err(ShardingError::Shards(self.shards));
        }
        if self.lease < Duration::from_secs(2) || self.lease.subsec_nanos() != 0 {
            return Err(ShardingError::Lease(self.lease));
        }
        for (what, name) in [
            ("name", &self.name),
            ("namespace", &self.namespace),
            ("host", &self.host),
        ] {
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let is_label = name.len() <= 63
                && name.bytes().all(|byte| is_plain(byte) || byte == b'-')
                && name.bytes().next().is_some_and(is_plain)
                && name.bytes().last().is_some_and(is_plain);
            if !is_label {
                return Err(ShardingError::Name {
                    what,
                    name: name.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Why hosts cannot share objects like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardingError {
    /// Too few or too many.
    #[error("{0} shards: there can be 1 to {MAX_SHARDS}")]
    Shards(u16),
    /// A Lease counts in seconds.
    #[error("a lease of {0:?}: it must last whole seconds, at least two")]
    Lease(Duration),
    /// Leases are named after it.
    #[error(
        "the {what} {name:?} must have at most 63 lower-case letters, digits and dashes, with no dash at either end"
    )]
    Name {
        /// Which.
        what: &'static str,
        /// As it was given.
        name: String,
    },
}

/// Who has a shard, as far as this host is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Elsewhere,
    Held,
    /// What is under way here may end; nothing new begins.
    Draining,
}

/// The shard is another host's, or is being given back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elsewhere;

#[derive(Debug)]
struct Shard {
    standing: Standing,
    /// When the renewal was sent that went through last, by two clocks: one of them stands still while a machine sleeps.
    renewed: (Instant, Timestamp),
    fence: Fence,
    under_way: usize,
    lost: CancellationToken,
}

/// Which shards this host has.
pub(crate) struct Shards {
    sharding: Sharding,
    identity: String,
    clock: SharedClock,
    shards: Mutex<Vec<Shard>>,
    /// The hosts that live, as far as this one knows.
    members: Mutex<BTreeSet<String>>,
    /// The number of times that this host gained a shard while it had none. Before each, another group may have considered this host dead and
    /// claimed its Configurators. Changes only while `shards` is locked.
    tenure: AtomicU64,
    /// A shard was gained or lost, or a host came or went.
    changed: watch::Sender<()>,
    /// A lease was renewed.
    renewed: watch::Sender<()>,
    /// Nothing is under way any more in some shard.
    quiet: Notify,
}

impl Shards {
    /// A host that has none yet. `chance` makes its name unique.
    pub(crate) fn new(
        sharding: Sharding,
        clock: SharedClock,
        chance: u64,
    ) -> Result<Arc<Self>, ShardingError> {
        sharding.check()?;
        let identity = format!("{}-{:08x}", sharding.host, chance >> 32);
        let now = (Instant::now(), clock.now());
        let shard = |_| Shard {
            standing: Standing::Elsewhere,
            renewed: now,
            fence: Fence::default(),
            under_way: 0,
            lost: CancellationToken::new(),
        };
        let shards = (0..sharding.shards).map(shard).collect();
        Ok(Arc::new(Self {
            sharding,
            identity,
            clock,
            shards: Mutex::new(shards),
            members: Mutex::default(),
            tenure: AtomicU64::new(FIRST_TENURE),
            changed: watch::Sender::default(),
            renewed: watch::Sender::default(),
            quiet: Notify::new(),
        }))
    }

    /// How this host is called in Leases.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the number of shards.
    pub(crate) fn number(&self) -> u16 {
        self.sharding.shards
    }

    /// The shard of the object with this uid.
    pub(crate) fn of(&self, uid: &str) -> u16 {
        shard_of(uid, self.sharding.shards)
    }

    /// The shards in which runs may begin here.
    pub(crate) fn held(&self) -> BTreeSet<u16> {
        (0..)
            .zip(self.shards().iter())
            .filter(|(_, shard)| shard.standing == Standing::Held)
            .map(|(number, _)| number)
            .collect()
    }

    /// Whether this host speaks for whatever has this uid.
    pub(crate) fn speaks_for(&self, uid: &str) -> bool {
        let number = usize::from(self.of(uid));
        let shards = self.shards();
        shards
            .get(number)
            .is_some_and(|shard| shard.standing == Standing::Held)
    }

    /// The hosts that live, as far as this one knows.
    pub(crate) fn members(&self) -> BTreeSet<String> {
        let members = self.members.lock();
        members.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_members(&self, members: &BTreeSet<&str>) {
        let mut known = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().map(String::as_str).eq(members.iter().copied()) {
            *known = members.iter().map(|&member| member.to_owned()).collect();
            drop(known);
            self.changed.send_replace(());
        }
    }

    /// Tells when a shard was gained or lost, or a host came or went.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The right to work on these objects.
    pub(crate) fn claim<'a>(self: &Arc<Self>, uids: impl IntoIterator<Item = &'a str>) -> Claim {
        let numbers: BTreeSet<u16> = uids.into_iter().map(|uid| self.of(uid)).collect();
        Claim::new(self.clone(), numbers)
    }

    /// Returns the claim of a Configurator, of which nothing is known yet.
    pub(crate) fn configurator_claim(self: &Arc<Self>) -> ConfiguratorClaim {
        ConfiguratorClaim::new(self.clone())
    }

    /// Returns the number of the tenure.
    fn tenure(&self) -> u64 {
        self.tenure.load(Ordering::SeqCst)
    }

    /// Returns whether runs can begin in any shard.
    fn has_any(&self) -> bool {
        let shards = self.shards();
        shards.iter().any(|shard| shard.standing == Standing::Held)
    }

    /// Begins another tenure, so that the claims of all Configurators are looked at again.
    fn renew_tenure(&self) {
        let shards = self.shards();
        self.tenure.fetch_add(1, Ordering::SeqCst);
        drop(shards);
        self.changed.send_replace(());
    }

    /// A permit to write what belongs to this uid. Without other hosts it takes none.
    ///
    /// # Errors
    /// When it belongs to another host.
    pub(crate) fn permit(
        shards: Option<&Arc<Self>>,
        uid: &str,
    ) -> Result<Option<Permit>, Elsewhere> {
        Claim::permit(shards.map(|shards| shards.claim([uid])))
    }

    fn ring_options(&self) -> RingOptions {
        RingOptions {
            host: self.identity.clone(),
            shards: self.sharding.shards,
            lease: self.sharding.lease,
            patience: self.sharding.patience(),
        }
    }

    fn shards(&self) -> MutexGuard<'_, Vec<Shard>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, number: u16, change: impl FnOnce(&mut Shard)) {
        if let Some(shard) = self.shards().get_mut(usize::from(number)) {
            change(shard);
        }
    }

    /// A renewal that was sent then went through.
    fn note_renewal(&self, number: u16, sent: (Instant, Timestamp)) {
        self.change(number, |shard| shard.renewed = sent);
        self.renewed.send_replace(());
    }

    /// Returns when a renewal of the shard's Lease has gone through that was sent after this.
    async fn renewed_after(&self, number: u16, asked: Instant) {
        let mut renewed = self.renewed.subscribe();
        let is_renewed = || {
            let shards = self.shards();
            let shard = shards.get(usize::from(number));
            shard.is_some_and(|shard| shard.renewed.0 > asked)
        };
        while !is_renewed() {
            // The sender lives as long as this.
            let _ = renewed.changed().await;
        }
    }

    /// Runs may begin.
    fn begin(&self, number: u16, fence: Fence) {
        let mut shards = self.shards();
        // A draining shard does not count: it may have been released, and its Lease claimed again by now.
        let is_here =
            |shard: &Shard| shard.standing == Standing::Held && !self.left(shard).is_zero();
        if !shards.iter().any(is_here) {
            self.tenure.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(shard) = shards.get_mut(usize::from(number)) {
            shard.standing = Standing::Held;
            shard.fence = fence;
            shard.lost = CancellationToken::new();
        }
        drop(shards);
        self.changed.send_replace(());
    }

    /// No new runs begin.
    fn drain(&self, number: u16) {
        self.change(number, |shard| {
            if shard.standing == Standing::Held {
                shard.standing = Standing::Draining;
            }
        });
        self.changed.send_replace(());
        self.quiet.notify_one();
    }

    /// What is under way breaks off.
    fn lose(&self, number: u16) {
        self.change(number, |shard| {
            shard.standing = Standing::Elsewhere;
            shard.lost.cancel();
        });
        self.changed.send_replace(());
        self.quiet.notify_one();
    }

    /// Whether nothing is under way in the shard, and nothing new can begin.
    fn is_quiet(&self, number: u16) -> bool {
        let shards = self.shards();
        shards
            .get(usize::from(number))
            .is_none_or(|shard| shard.standing != Standing::Held && shard.under_way == 0)
    }

    /// How much is left of the lease.
    fn left(&self, shard: &Shard) -> Duration {
        let (instant, time) = shard.renewed;
        let passed = instant.elapsed().max(self.clock.now().since(time));
        self.sharding.lease.saturating_sub(passed)
    }
}

/// Returns when shards were gained or lost, or hosts came or went; never where hosts do not share.
pub(crate) async fn changed(changes: Option<&mut watch::Receiver<()>>) {
    if let Some(changes) = changes
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = Sharding::new("configurator", "pod-7");
        assert_eq!(good.check(), Ok(()));
        type Change = fn(&mut Sharding);
        let changes: [(Change, &str); 5] = [
            (|it| it.shards = 0, "0 shards: there can be 1 to 256"),
            (|it| it.shards = 257, "257 shards: there can be 1 to 256"),
            (
                |it| it.lease = Duration::from_millis(2500),
                "a lease of 2.5s: it must last whole seconds, at least two",
            ),
            (
                |it| it.host = "Pod_7".into(),
                "the host \"Pod_7\" must have at most 63 lower-case letters, digits and dashes, with no dash at either end",
            ),
            (
                |it| it.namespace.clear(),
                "the namespace \"\" must have at most 63 lower-case letters, digits and dashes, with no dash at either end",
            ),
        ];
        for (change, expected) in changes {
            let mut sharding = good.clone();
            change(&mut sharding);
            assert_eq!(sharding.check().unwrap_err().to_string(), expected);
        }
    }
}
