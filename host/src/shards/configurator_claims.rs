//! Claims of Configurators by groups of hosts.
//!
//! Hosts with the same `sharding.name` are a group and share the objects of their Configurators. Groups can have scopes that overlap, so a
//! Lease for each Configurator names the group that runs it, and in an annotation the hosts of the group that entered themselves. A host runs a
//! Configurator only once it is entered, and leaves when its runs have ended. Another group takes over when no host is left, or when the
//! Leases of all that are left have run out. Nobody renews a claim: the hosts' own Leases say who lives.
//!
//! A host that hangs and wakes up must not go on with a claim that is another's by then. So whoever takes over first takes the Leases of the hosts
//! that are gone from them, on the versions that have not changed for one and a half of their durations. Their renewals then fail, and they
//! enter themselves anew before the next run. Fences keep their late writes out of the config store.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use configurator_core::fault::Fault;
use configurator_core::request::ObjectRef;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{
    Api, DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::election::{LABEL as GROUP_LABEL, fence_name, shard_of_lease, wall_clock};
use super::{ConfiguratorClaim, Shards};
use crate::controller::status::MANAGER;
use crate::sinks::configstore::{ConfigStore, StandingFence};

/// Prefix of the names of claims; the uid of the Configurator follows. All groups use the same.
const PREFIX: &str = "configurator-claim-";
/// Label of claims; its value is the name of the group.
const LABEL: &str = "configurator.dev/claimed-by";
/// Annotation with the hosts that have entered themselves, separated by commas.
const HOSTS: &str = "configurator.dev/hosts";
/// Annotation with the kind, namespace and name of the Configurator, for people.
const CONFIGURATOR: &str = "configurator.dev/configurator";
/// How long it is remembered which version of a Lease was seen first. Longer than one and a half of any duration.
const FORGET: Duration = Duration::from_secs(24 * 3600);
/// How often a claim is tried that others change meanwhile.
const ATTEMPTS: u32 = 5;

/// The claims of the Configurators of a cluster, as the hosts of one group see them.
pub(crate) struct ConfiguratorClaims {
    shards: Arc<Shards>,
    leases: Api<Lease>,
    store: Arc<dyn ConfigStore>,
    /// The versions of Leases of other groups, by name, and when each was first seen.
    seen: Mutex<HashMap<String, (String, Instant)>>,
}

/// Why a claim could not be made or released.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimFault {
    /// Another group has it.
    #[error("the hosts of the group {0:?} run it")]
    Elsewhere(String),
    /// The API server refused it, or did not answer.
    #[error("its claim: {0}")]
    Api(#[from] kube::Error),
    /// The fences of hosts that are gone could not be raised.
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

impl ConfiguratorClaims {
    /// The claims in the namespace of the group's Leases. All groups of a cluster must have this namespace in common.
    pub(crate) fn new(shards: Arc<Shards>, client: Client, store: Arc<dyn ConfigStore>) -> Self {
        Self {
            leases: Api::namespaced(client, &shards.sharding.namespace),
            shards,
            store,
            seen: Mutex::default(),
        }
    }

    /// The wait before a claim that another group has is looked at again.
    pub(crate) fn interval(&self) -> Duration {
        self.shards.sharding.lease / 3
    }

    /// Enters this host in the claim of a Configurator, or only looks who has the claim if this host has no shards. Records in `claim` what is known
    /// then.
    ///
    /// # Errors
    /// When another group has it, or a server fails. A later call can succeed.
    pub(crate) async fn claim(
        &self,
        claim: &ConfiguratorClaim,
        key: &ObjectRef,
        uid: &str,
    ) -> Result<(), ClaimFault> {
        let tenure = self.shards.tenure();
        let enters = self.shards.has_any();
        let mut attempt = 1;
        let made = loop {
            match self.try_claim(key, uid, enters).await {
                Err(fault) if fault.is_conflict() && attempt < ATTEMPTS => attempt += 1,
                made => break made,
            }
        };
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
        let mut claimed = found.as_ref().map_or_else(
            || Claimed {
                version: None,
                group: None,
                hosts: BTreeSet::new(),
                transitions: 0,
            },
            Claimed::of,
        );
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

    /// Removes this host from the claim of a Configurator, and the claim if no other host is entered. Nothing of the Configurator may be under way
    /// here.
    ///
    /// # Errors
    /// When a server fails. A later call can succeed.
    pub(crate) async fn release(
        &self,
        claim: &ConfiguratorClaim,
        uid: &str,
    ) -> Result<(), ClaimFault> {
        let mut attempt = 1;
        let released = loop {
            match self.try_release(uid).await {
                Err(fault) if fault.is_conflict() && attempt < ATTEMPTS => attempt += 1,
                released => break released,
            }
        };
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
            return Ok(self.delete(&lease).await?);
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

    /// Removes those of these claims whose Configurator does not have any of these uids, unless they have changed since.
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
                match self.delete(&claim).await {
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

    /// Returns whether none of these Leases has changed for one and a half of its duration. So long a request can be on its way.
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

    /// Takes their Leases from hosts that are gone: whoever wakes up finds out that it lost them. Then nothing more of them comes through to the
    /// config store.
    async fn take(&self, group: &str, leases: &[Lease]) -> Result<(), ClaimFault> {
        for lease in leases {
            let name = lease.name_any();
            let Some(shard) = shard_of_lease(group, &name) else {
                self.delete(lease).await?;
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

    /// Removes hosts of this group that have no Leases any more.
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

    /// Deletes a Lease, unless it has changed since it was read.
    async fn delete<K: kube::Resource>(&self, lease: &K) -> Result<(), kube::Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: lease.meta().resource_version.clone(),
                uid: None,
            }),
            ..DeleteParams::default()
        };
        let deleted = self.leases.delete(&lease.name_any(), &params).await;
        deleted.map(drop)
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
