//! Claims Configurators for a group of hosts, by Leases.
//!
//! Hosts with the same `sharding.name` are a group and share the objects of their Configurators. The scopes of groups can overlap, so a Lease
//! for each Configurator names the group that runs it. An annotation of the Lease lists the hosts of the group that run it. A host adds itself
//! before its first run, and removes itself after its last run has ended. Another group takes over if no host is listed, or if the Leases of
//! all listed hosts have expired. Claims are not renewed.
//!
//! A host that was suspended must not continue with a claim that another group has taken over. So the new group first takes the expired Leases
//! of the listed hosts away from them. It does so on the versions that have not changed for one and a half times their duration. A suspended
//! host then fails to renew them, and must add itself to the claim again before its next run. The new group also raises the fences of these
//! hosts, so the config store refuses their late writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use configurator_core::fault::Fault;
use configurator_core::request::ObjectRef;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::leases::{self, GROUP_LABEL, fence_name, wall_clock};
use super::{ConfiguratorClaim, Shards};
use crate::controller::status::MANAGER;
use crate::sinks::configstore::{ConfigStore, StandingFence};

/// Prefix of the names of claims; the uid of the Configurator follows. All groups use the same.
const PREFIX: &str = "configurator-claim-";
/// Label of claims; its value is the name of the group.
const LABEL: &str = "configurator.dev/claimed-by";
/// Annotation with the hosts that run the Configurator, separated by commas.
const HOSTS: &str = "configurator.dev/hosts";
/// Annotation with the kind, namespace and name of the Configurator, for people.
const CONFIGURATOR: &str = "configurator.dev/configurator";
/// The time after which a seen version of a Lease is forgotten. It is longer than one and a half times any duration of a Lease.
const FORGET: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of attempts to change a Lease that other hosts change at the same time.
const ATTEMPTS: u32 = 5;

/// Makes and releases the claims of one group of hosts.
pub(crate) struct ClaimClient {
    shards: Arc<Shards>,
    leases: Api<Lease>,
    store: Arc<dyn ConfigStore>,
    /// The version of each Lease of other groups, by name, and the time at which this version was first seen.
    seen: Mutex<HashMap<String, (String, Instant)>>,
}

/// A claim could not be made or released.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimFault {
    /// Another group has claimed the Configurator.
    #[error("the hosts of the group {0:?} run it")]
    Elsewhere(String),
    /// The API server refused the request, or did not answer.
    #[error("its claim: {0}")]
    Api(#[from] kube::Error),
    /// The fences of the hosts of another group could not be raised.
    #[error("its claim: {0}")]
    Store(Fault),
}

impl ClaimFault {
    /// Whether the Lease has changed since it was read.
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if matches!(status.code, 404 | 409))
    }
}

/// A claim as it was read.
#[derive(Default)]
struct Claimed {
    version: Option<String>,
    /// `None`: nobody has it.
    group: Option<String>,
    hosts: BTreeSet<String>,
    transitions: i32,
}

impl Claimed {
    fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let hosts = lease.annotations().get(HOSTS);
        let hosts = hosts.into_iter().flat_map(|hosts| hosts.split(','));
        Self {
            version: lease.resource_version(),
            group: spec.holder_identity.filter(|group| !group.is_empty()),
            hosts: hosts
                .filter(|host| !host.is_empty())
                .map(str::to_owned)
                .collect(),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

impl ClaimClient {
    /// Uses the namespace of the group's Leases. All groups of a cluster must have this namespace in common.
    pub(crate) fn new(shards: Arc<Shards>, client: Client, store: Arc<dyn ConfigStore>) -> Self {
        Self {
            leases: Api::namespaced(client, &shards.sharding.namespace),
            shards,
            store,
            seen: Mutex::default(),
        }
    }

    /// Returns the wait before a failed claim is tried again.
    pub(crate) fn interval(&self) -> Duration {
        self.shards.sharding.lease / 3
    }

    /// Adds this host to the claim of a Configurator. If this host has no shards, only checks that no other group has the claim. Records the
    /// result in `claim`.
    ///
    /// # Errors
    /// When another group has the claim, or a server fails. A later call can succeed.
    pub(crate) async fn claim(
        &self,
        claim: &ConfiguratorClaim,
        key: &ObjectRef,
        uid: &str,
    ) -> Result<(), ClaimFault> {
        let tenure = self.shards.tenure();
        let enters = self.shards.has_any();
        let made = repeated(|| self.try_claim(key, uid, enters)).await;
        match &made {
            Ok(()) if enters => claim.enter(tenure),
            Ok(()) => claim.stand_by(),
            Err(ClaimFault::Elsewhere(_)) => claim.lose(),
            Err(ClaimFault::Api(_) | ClaimFault::Store(_)) => {}
        }
        made
    }

    async fn try_claim(&self, key: &ObjectRef, uid: &str, enters: bool) -> Result<(), ClaimFault> {
        let name = name_of(uid);
        let found = self.leases.get_opt(&name).await?;
        let own = &self.shards.sharding.name;
        let mut claimed = found.as_ref().map(Claimed::of).unwrap_or_default();
        if let Some(group) = claimed.group.as_ref().filter(|group| *group != own) {
            let left = self.leases_of(group, &claimed.hosts).await?;
            if !self.have_run_out(group, &left) {
                return Err(ClaimFault::Elsewhere(group.clone()));
            }
            if enters {
                self.take(group, &left).await?;
            }
            claimed.hosts.clear();
        }
        if !enters {
            return Ok(());
        }
        self.forget_ended(&mut claimed.hosts).await?;
        claimed.hosts.insert(self.shards.identity().to_owned());
        let body = self.body(key, &name, &claimed);
        if found.is_some() {
            let params = PatchParams::default();
            let patch = Patch::Merge(&body);
            self.leases.patch(&name, &params, &patch).await?;
        } else {
            let lease = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
            self.leases.create(&PostParams::default(), &lease).await?;
        }
        Ok(())
    }

    /// Removes this host from the claim of a Configurator, and deletes the claim if no other host is listed. All runs of the Configurator on this
    /// host must have ended.
    ///
    /// # Errors
    /// When a server fails. A later call can succeed.
    pub(crate) async fn release(
        &self,
        claim: &ConfiguratorClaim,
        uid: &str,
    ) -> Result<(), ClaimFault> {
        let released = repeated(|| self.try_release(uid)).await;
        if released.is_ok() {
            claim.stand_by();
        }
        released
    }

    async fn try_release(&self, uid: &str) -> Result<(), ClaimFault> {
        let name = name_of(uid);
        let Some(lease) = self.leases.get_opt(&name).await? else {
            return Ok(());
        };
        let mut claimed = Claimed::of(&lease);
        if claimed.group.as_ref() != Some(&self.shards.sharding.name)
            || !claimed.hosts.remove(self.shards.identity())
        {
            return Ok(());
        }
        self.forget_ended(&mut claimed.hosts).await?;
        if claimed.hosts.is_empty() {
            return Ok(leases::delete(&self.leases, &name, claimed.version).await?);
        }
        let body = json!({"metadata": {
            "resourceVersion": claimed.version,
            "annotations": {HOSTS: joined(&claimed.hosts)},
        }});
        let params = PatchParams::default();
        let patch = Patch::Merge(&body);
        self.leases.patch(&name, &params, &patch).await?;
        Ok(())
    }

    /// Returns the claims of this group.
    ///
    /// # Errors
    /// When the API server fails.
    pub(crate) async fn list(&self) -> Result<Vec<PartialObjectMeta<Lease>>, kube::Error> {
        let own = format!("{LABEL}={}", self.shards.sharding.name);
        let params = ListParams::default().labels(&own);
        Ok(self.leases.list_metadata(&params).await?.items)
    }

    /// Deletes the claims of Configurators with other uids than these. A claim that has changed since it was listed stays.
    ///
    /// # Errors
    /// When the API server fails.
    pub(crate) async fn remove_others(
        &self,
        claims: Vec<PartialObjectMeta<Lease>>,
        uids: &BTreeSet<String>,
    ) -> Result<(), kube::Error> {
        for claim in claims {
            let name = claim.name_any();
            let uid = name.strip_prefix(PREFIX);
            if uid.is_some_and(|uid| !uids.contains(uid)) {
                match leases::delete(&self.leases, &name, claim.resource_version()).await {
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    deleted => deleted?,
                }
            }
        }
        Ok(())
    }

    /// Returns the Leases of a group that these hosts hold.
    async fn leases_of(
        &self,
        group: &str,
        hosts: &BTreeSet<String>,
    ) -> Result<Vec<Lease>, kube::Error> {
        if hosts.is_empty() {
            return Ok(Vec::new());
        }
        let labels = format!("{GROUP_LABEL}={group}");
        let leases = self
            .leases
            .list(&ListParams::default().labels(&labels))
            .await?;
        let is_theirs = |lease: &Lease| holder(lease).is_some_and(|host| hosts.contains(host));
        Ok(leases.into_iter().filter(is_theirs).collect())
    }

    /// Returns whether each of these Leases has been unchanged for one and a half times its duration. A request of its holder can be under way
    /// for that long.
    fn have_run_out(&self, group: &str, leases: &[Lease]) -> bool {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, (_, since)| now.duration_since(*since) < FORGET);
        let mut have_run_out = true;
        for lease in leases {
            let version = lease.resource_version().unwrap_or_default();
            let name = format!("{group}/{}", lease.name_any());
            let (known, since) = seen.entry(name).or_insert_with(|| (version.clone(), now));
            if *known != version {
                (*known, *since) = (version, now);
            }
            let seconds = lease.spec.as_ref();
            let seconds = seconds.and_then(|spec| spec.lease_duration_seconds);
            let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let lease = seconds.map_or(self.shards.sharding.lease, Duration::from_secs);
            have_run_out &= now.duration_since(*since) >= lease * 3 / 2;
        }
        have_run_out
    }

    /// Takes these expired Leases away from their holders, and raises the fences of the shards among them.
    async fn take(&self, group: &str, leases: &[Lease]) -> Result<(), ClaimFault> {
        for lease in leases {
            let name = lease.name_any();
            let Some(shard) = leases::shard_of(group, &name) else {
                leases::delete(&self.leases, &name, lease.resource_version()).await?;
                continue;
            };
            let body = json!({
                "metadata": {"resourceVersion": lease.resource_version()},
                "spec": {"holderIdentity": null},
            });
            let params = PatchParams::default();
            let patch = Patch::Merge(&body);
            self.leases.patch(&name, &params, &patch).await?;
            let spec = lease.spec.as_ref();
            let transitions = spec.and_then(|spec| spec.lease_transitions);
            let transitions = transitions.and_then(|number| u32::try_from(number).ok());
            let raise = async {
                let store = self.store.as_ref();
                let standing = StandingFence::read(store, &fence_name(group, shard)).await?;
                let fence = standing.next(self.shards.identity(), transitions.unwrap_or_default());
                fence.raise(store, &standing).await
            };
            if !raise.await.map_err(ClaimFault::Store)? {
                // A host of the group has raised it meanwhile.
                return Err(ClaimFault::Elsewhere(group.to_owned()));
            }
        }
        Ok(())
    }

    /// Removes the hosts of this group that hold no Lease.
    async fn forget_ended(&self, hosts: &mut BTreeSet<String>) -> Result<(), kube::Error> {
        let members = self.shards.members();
        let is_unknown = |host: &String| host != self.shards.identity() && !members.contains(host);
        if hosts.iter().any(is_unknown) {
            let left = self.leases_of(&self.shards.sharding.name, hosts).await?;
            let there: BTreeSet<&str> = left.iter().filter_map(holder).collect();
            hosts.retain(|host| !is_unknown(host) || there.contains(host.as_str()));
        }
        Ok(())
    }

    fn body(&self, key: &ObjectRef, name: &str, claimed: &Claimed) -> Value {
        let group = &self.shards.sharding.name;
        let now = wall_clock(&self.shards.clock);
        let mut spec = json!({"holderIdentity": group, "renewTime": now});
        if let Some(spec) = spec.as_object_mut()
            && claimed.group.as_ref() != Some(group)
        {
            let is_first = claimed.version.is_none();
            let transitions = claimed.transitions.saturating_add(i32::from(!is_first));
            spec.insert("acquireTime".into(), now);
            spec.insert("leaseTransitions".into(), transitions.into());
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "resourceVersion": claimed.version,
                "labels": {LABEL: group, "app.kubernetes.io/managed-by": MANAGER},
                "annotations": {
                    HOSTS: joined(&claimed.hosts),
                    CONFIGURATOR: key.to_string(),
                },
            },
            "spec": spec,
        })
    }
}

/// Repeats an attempt if other hosts have changed the Lease between its read and its write.
async fn repeated<F>(mut attempt: impl FnMut() -> F) -> Result<(), ClaimFault>
where
    F: Future<Output = Result<(), ClaimFault>>,
{
    let mut attempts = 1;
    loop {
        match attempt().await {
            Err(fault) if fault.is_conflict() && attempts < ATTEMPTS => attempts += 1,
            done => return done,
        }
    }
}

fn name_of(uid: &str) -> String {
    format!("{PREFIX}{uid}")
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

fn joined(hosts: &BTreeSet<String>) -> String {
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    hosts.join(",")
}
