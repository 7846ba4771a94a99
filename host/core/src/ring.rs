//! How several hosts share the objects: a fixed number of shards, each under a lease, spread over the hosts that live.
//!
//! Every object belongs to one shard, for ever, by its uid. Who is to have a shard follows from who lives
//! ([`assign`]: consistent hashing with bounded loads); who has it is what its lease says. [`Ring`] is one host's part: it
//! gets what the leases say and a time, and says what to write.
//!
//! Nobody's clock is compared with anybody else's. A host knows when it sent its own renewal; that of another has run
//! out when it has not changed for its duration, as seen from here (as Kubernetes' own leader election does it). The time
//! must be monotonic: milliseconds since some point of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::time::Timestamp;

/// The most shards.
pub const MAX_SHARDS: u16 = 256;
/// A lease is renewed this often while it lasts.
const RENEWALS: u32 = 5;
/// The lease of a host that is gone is removed after so many durations.
const FORGOTTEN_AFTER: u32 = 10;

/// The shard of the object with this uid. It depends on nothing else.
#[must_use]
pub fn shard_of(uid: &str, shards: u16) -> u16 {
    let number = weight(uid, "") % u64::from(shards.max(1));
    u16::try_from(number).unwrap_or_default()
}

/// Who is to have each shard: as even as can be, and when a member comes or goes, few shards change hands.
///
/// Each shard goes to the member that ranks highest for it (rendezvous hashing) and has not its full share yet.
/// Nobody has anything without members.
#[must_use]
pub fn assign<'a>(members: &BTreeSet<&'a str>, shards: u16) -> Vec<&'a str> {
    if members.is_empty() {
        return Vec::new();
    }
    let share = usize::from(shards) / members.len();
    let mut remainder = usize::from(shards) % members.len();
    let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
    (0..shards)
        .filter_map(|shard| {
            let shard = shard.to_string();
            // Of those that cannot be divided, nobody gets more than one.
            let most = share + usize::from(remainder > 0);
            let load = |member: &str| loads.get(member).copied().unwrap_or_default();
            let member = members
                .iter()
                .filter(|member| load(member) < most)
                .max_by_key(|member| weight(member, &shard))?;
            let load = loads.entry(member).or_default();
            *load += 1;
            remainder -= usize::from(*load > share);
            Some(*member)
        })
        .collect()
}

fn weight(one: &str, other: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(one);
    hash.update([0]);
    hash.update(other);
    let first = hash.finalize().into_iter().take(8);
    first.fold(0, |number, byte| number << 8 | u64::from(byte))
}

/// What a lease is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseId {
    /// Says that this host lives.
    Host(String),
    /// Says who has this shard.
    Shard(u16),
}

/// A lease as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who has it; `None`: nobody, so that it may be taken at once.
    pub holder: Option<String>,
    /// Its resourceVersion.
    pub version: String,
    /// How long it lasts after each renewal.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: u32,
}

/// What a host is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingAction {
    /// Write this host's name into a lease, unless it changed since `version`; `None`: it does not exist yet.
    Claim {
        /// Which.
        lease: LeaseId,
        /// As it was seen.
        version: Option<String>,
        /// How often it will have changed hands.
        transitions: u32,
    },
    /// Write that nobody has the lease, unless it changed since `version`.
    Release {
        /// Which.
        lease: LeaseId,
        /// As it was seen.
        version: String,
    },
    /// Remove a lease that nobody needs, unless it changed since `version`.
    Remove {
        /// Which.
        lease: LeaseId,
        /// As it was seen.
        version: String,
    },
    /// The shard is this host's: its objects may have runs.
    Begin {
        /// Which.
        shard: u16,
        /// How often its Lease had changed hands. The number is higher for a later owner.
        transitions: u32,
    },
    /// No new runs begin in the shard; say [`Ring::quiet`] when those under way have ended.
    Drain(u16),
    /// The shard is another's, or may be: whatever is under way breaks off; say [`Ring::quiet`] when it has.
    Lose(u16),
}

/// What a ring is made of.
#[derive(Debug, Clone)]
pub struct RingOptions {
    /// This host's name; no other process has it, nor ever had.
    pub host: String,
    /// How many shards there are; the same on every host.
    pub shards: u16,
    /// How long a lease lasts after a renewal.
    pub lease: Duration,
    /// How long a request may be on its way: so long after its end another's lease is respected.
    pub patience: Duration,
}

#[derive(Debug)]
struct Known {
    lease: Lease,
    /// When it was first seen so.
    since: Timestamp,
    /// Its position in the order in which the ring learned of Leases.
    learned: u64,
}

#[derive(Debug)]
struct Held {
    /// When the renewal was sent that went through last.
    renewed: Timestamp,
    is_draining: bool,
    /// The server went back to an older state of its Lease.
    is_void: bool,
}

/// The state of the ring when it asked the server a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked(u64);

/// One host's part in sharing the objects.
#[derive(Debug)]
pub struct Ring {
    options: RingOptions,
    known: BTreeMap<LeaseId, Known>,
    held: BTreeMap<u16, Held>,
    /// When this host's own lease was renewed.
    alive: Option<Timestamp>,
    /// Leases that are being written.
    writing: BTreeSet<LeaseId>,
    /// Shards in which something is still under way here.
    busy: BTreeSet<u16>,
    /// A write that failed is not repeated before.
    again: BTreeMap<LeaseId, Timestamp>,
    /// Shards that were claimed since the last [`act`](Self::act).
    begun: Vec<u16>,
    /// Counts what the ring has learned so far.
    learned: u64,
    /// Leases that the server took back to an older state.
    rolled_back: Vec<LeaseId>,
    is_listed: bool,
    is_leaving: bool,
}

impl Ring {
    /// A host that knows nothing yet.
    #[must_use]
    pub fn new(options: RingOptions) -> Self {
        Self {
            options,
            known: BTreeMap::new(),
            held: BTreeMap::new(),
            alive: None,
            writing: BTreeSet::new(),
            busy: BTreeSet::new(),
            again: BTreeMap::new(),
            begun: Vec::new(),
            learned: 0,
            rolled_back: Vec::new(),
            is_listed: false,
            is_leaving: false,
        }
    }

    /// Marks that a question about Leases is asked now. Its answer is newer than everything the ring knows, whatever its versions say.
    #[must_use]
    pub const fn asked(&self) -> Asked {
        Asked(self.learned)
    }

    /// Takes in the server's answer to a listing of all Leases.
    pub fn listed(&mut self, leases: Vec<(LeaseId, Lease)>, asked: Asked, now: Timestamp) {
        let there: BTreeSet<LeaseId> = leases.iter().map(|(id, _)| id.clone()).collect();
        self.known
            .retain(|id, known| there.contains(id) || known.learned > asked.0);
        for (id, lease) in leases {
            // It may have been renewed before the server was restored, and the ring did not hear of it.
            if let Some(known) = self.known.get_mut(&id)
                && matches!(id, LeaseId::Shard(_))
                && known.lease.version == lease.version
            {
                known.since = now;
            }
            self.found(id, lease, asked, now);
        }
        self.is_listed = true;
    }

    /// Takes in the server's answer about one Lease.
    ///
    /// Versions of one server only grow. One that answers with an older version than it had before the question was restored from a
    /// backup: what it says counts, and a shard that was held under the lease is lost, since others may rely on what it says now.
    pub fn found(&mut self, id: LeaseId, lease: Lease, asked: Asked, now: Timestamp) {
        let is_rolled_back = self.known.get(&id).is_some_and(|known| {
            known.learned <= asked.0 && is_older(&lease.version, &known.lease.version)
        });
        if !is_rolled_back {
            return self.observe(id, lease, now);
        }
        if let LeaseId::Shard(shard) = &id
            && let Some(held) = self.held.get_mut(shard)
        {
            held.is_void = true;
        }
        self.rolled_back.push(id.clone());
        self.learn(id, lease, now);
    }

    /// Takes in a change of a Lease that a watch has shown. An older version than the known one is ignored: it was delayed.
    pub fn observe(&mut self, id: LeaseId, lease: Lease, now: Timestamp) {
        if let Some(known) = self.known.get(&id)
            && !is_newer(&lease.version, &known.lease.version)
        {
            return;
        }
        self.learn(id, lease, now);
    }

    fn learn(&mut self, id: LeaseId, lease: Lease, now: Timestamp) {
        self.learned += 1;
        let known = Known {
            lease,
            since: now,
            learned: self.learned,
        };
        self.known.insert(id, known);
    }

    /// Takes the Leases that the server was found to have taken back to an older state since the last call.
    pub fn take_rolled_back(&mut self) -> Vec<LeaseId> {
        std::mem::take(&mut self.rolled_back)
    }

    /// A lease is gone.
    pub fn gone(&mut self, id: &LeaseId) {
        self.known.remove(id);
    }

    /// What was sent at this time was written; the lease is now so, or gone.
    pub fn wrote(&mut self, id: &LeaseId, lease: Option<Lease>, sent: Timestamp, now: Timestamp) {
        self.writing.remove(id);
        self.again.remove(id);
        let is_mine = lease
            .as_ref()
            .is_some_and(|lease| lease.holder.as_deref() == Some(&self.options.host));
        match lease {
            Some(lease) => self.observe(id.clone(), lease, now),
            None => self.gone(id),
        }
        match id {
            LeaseId::Host(_) if is_mine => self.alive = Some(sent),
            LeaseId::Host(_) => {}
            LeaseId::Shard(shard) if is_mine => {
                if let Some(held) = self.held.get_mut(shard) {
                    held.renewed = sent;
                } else if now < sent.after(self.options.lease) && self.is_mine(id) {
                    let is_draining = false;
                    let renewed = sent;
                    let held = Held {
                        renewed,
                        is_draining,
                        is_void: false,
                    };
                    self.held.insert(*shard, held);
                    self.busy.insert(*shard);
                    self.begun.push(*shard);
                } else {
                    // The server has answered with a version that is not newer than the known one. An immediate retry would repeat this forever.
                    self.again.insert(id.clone(), now.after(self.tick()));
                }
            }
            LeaseId::Shard(shard) => {
                self.held.remove(shard);
            }
        }
    }

    /// What was to be written was refused, or may not have been written.
    pub fn failed(&mut self, id: &LeaseId, now: Timestamp) {
        self.writing.remove(id);
        self.again.insert(id.clone(), now.after(self.tick()));
    }

    /// Nothing is under way in the shard any more.
    pub fn quiet(&mut self, shard: u16) {
        self.busy.remove(&shard);
    }

    /// The host goes: it takes nothing more, and gives back what it has.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether nothing is left to give back, or nothing that others would still respect.
    #[must_use]
    pub fn is_gone(&self, now: Timestamp) -> bool {
        let own = LeaseId::Host(self.options.host.clone());
        let has_run_out = |alive: Timestamp| now >= alive.after(self.options.lease);
        self.is_leaving
            && self.held.is_empty()
            && self.writing.is_empty()
            && (!self.known.contains_key(&own) || self.alive.is_none_or(has_run_out))
    }

    /// How often [`act`](Self::act) is to be asked at least.
    #[must_use]
    pub fn tick(&self) -> Duration {
        self.options.lease / (2 * RENEWALS)
    }

    /// When the right to a shard ends unless it is renewed.
    #[must_use]
    pub fn ends(&self, shard: u16) -> Option<Timestamp> {
        let held = self.held.get(&shard)?;
        Some(held.renewed.after(self.options.lease))
    }

    /// What to do now.
    pub fn act(&mut self, now: Timestamp) -> Vec<RingAction> {
        let mut actions = Vec::new();
        if !self.is_listed {
            return actions;
        }
        for shard in std::mem::take(&mut self.begun) {
            let known = self.known.get(&LeaseId::Shard(shard));
            let transitions = known.map_or(0, |known| known.lease.transitions);
            actions.push(RingAction::Begin { shard, transitions });
        }
        self.lose(now, &mut actions);
        let wanted = self.wanted(now);
        for shard in 0..self.options.shards {
            let is_wanted = wanted.contains(&shard);
            self.act_on(shard, is_wanted, now, &mut actions);
        }
        self.act_on_hosts(now, &mut actions);
        actions
    }

    fn lose(&mut self, now: Timestamp, actions: &mut Vec<RingAction>) {
        let lost: Vec<u16> = self
            .held
            .iter()
            .filter(|(shard, held)| {
                held.is_void
                    || !self.is_mine(&LeaseId::Shard(**shard))
                    || now >= held.renewed.after(self.options.lease)
            })
            .map(|(shard, _)| *shard)
            .collect();
        for shard in lost {
            let is_given_back = !self.busy.contains(&shard);
            self.held.remove(&shard);
            // What is seen of its new owner may come before the answer to giving it back.
            if !is_given_back {
                actions.push(RingAction::Lose(shard));
            }
        }
    }

    /// The shards that this host is to have.
    fn wanted(&self, now: Timestamp) -> BTreeSet<u16> {
        if self.is_leaving || !self.is_alive(&self.options.host, now) {
            return BTreeSet::new();
        }
        (0..)
            .zip(assign(&self.members(now), self.options.shards))
            .filter(|(_, member)| *member == self.options.host)
            .map(|(shard, _)| shard)
            .collect()
    }

    /// The hosts that live.
    #[must_use]
    pub fn members(&self, now: Timestamp) -> BTreeSet<&str> {
        self.known
            .keys()
            .filter_map(|id| match id {
                LeaseId::Host(host) if self.is_alive(host, now) => Some(host.as_str()),
                LeaseId::Host(_) | LeaseId::Shard(_) => None,
            })
            .collect()
    }

    fn is_alive(&self, host: &str, now: Timestamp) -> bool {
        let known = self.known.get(&LeaseId::Host(host.to_owned()));
        known.is_some_and(|known| now < known.since.after(known.lease.duration))
    }

    fn act_on(
        &mut self,
        shard: u16,
        is_wanted: bool,
        now: Timestamp,
        actions: &mut Vec<RingAction>,
    ) {
        let id = LeaseId::Shard(shard);
        if let Some(held) = self.held.get_mut(&shard) {
            if !is_wanted && !std::mem::replace(&mut held.is_draining, true) {
                actions.push(RingAction::Drain(shard));
            }
            let is_draining = held.is_draining;
            let is_due = now >= held.renewed.after(self.options.lease / RENEWALS);
            let Some(known) = self.known.get(&id) else {
                return;
            };
            let version = known.lease.version.clone();
            let transitions = known.lease.transitions;
            if is_draining && !self.busy.contains(&shard) {
                if self.may_write(&id, now) {
                    actions.push(RingAction::Release { lease: id, version });
                }
            } else if is_due && self.may_write(&id, now) {
                actions.push(RingAction::Claim {
                    lease: id,
                    version: Some(version),
                    transitions,
                });
            }
            return;
        }
        let is_mine = self.is_mine(&id);
        if self.is_leaving || self.busy.contains(&shard) || !(is_wanted || is_mine) {
            return;
        }
        let (version, transitions) = match self.known.get(&id) {
            None => (None, 0),
            // The answer to an earlier claim was lost.
            Some(Known { lease, .. }) if is_mine => {
                (Some(lease.version.clone()), lease.transitions)
            }
            Some(Known { lease, since, .. }) => {
                let ends = since.after(lease.duration).after(self.options.patience);
                if lease.holder.is_some() && now < ends {
                    return;
                }
                (
                    Some(lease.version.clone()),
                    lease.transitions.saturating_add(1),
                )
            }
        };
        if self.may_write(&id, now) {
            actions.push(RingAction::Claim {
                lease: id,
                version,
                transitions,
            });
        }
    }

    fn is_mine(&self, id: &LeaseId) -> bool {
        let known = self.known.get(id);
        known.is_some_and(|known| known.lease.holder.as_ref() == Some(&self.options.host))
    }

    fn act_on_hosts(&mut self, now: Timestamp, actions: &mut Vec<RingAction>) {
        let own = LeaseId::Host(self.options.host.clone());
        if self.is_leaving {
            if let Some(known) = self.known.get(&own) {
                let version = known.lease.version.clone();
                if self.may_write(&own, now) {
                    actions.push(RingAction::Remove {
                        lease: own,
                        version,
                    });
                }
            }
            return;
        }
        let is_due = self
            .alive
            .is_none_or(|alive| now >= alive.after(self.options.lease / RENEWALS));
        if (is_due || !self.known.contains_key(&own)) && self.may_write(&own, now) {
            let version = self
                .known
                .get(&own)
                .map(|known| known.lease.version.clone());
            actions.push(RingAction::Claim {
                lease: own,
                version,
                transitions: 0,
            });
        }
        let forgotten: Vec<(LeaseId, String)> = self
            .known
            .iter()
            .filter(|(id, known)| {
                let span = known.lease.duration * FORGOTTEN_AFTER;
                matches!(id, LeaseId::Host(_)) && now >= known.since.after(span)
            })
            .map(|(id, known)| (id.clone(), known.lease.version.clone()))
            .collect();
        for (lease, version) in forgotten {
            if self.may_write(&lease, now) {
                actions.push(RingAction::Remove { lease, version });
            }
        }
    }

    /// Whether the lease may be written now; then it is being written.
    fn may_write(&mut self, id: &LeaseId, now: Timestamp) -> bool {
        if self.again.get(id).is_some_and(|at| now < *at) {
            return false;
        }
        self.writing.insert(id.clone())
    }
}

/// Whether a version is newer than another. Where they are no numbers, whatever differs is.
fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
}

/// Returns whether a version is older than another. Versions that are not numbers cannot be compared.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
