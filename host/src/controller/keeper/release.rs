//! Removes the finalizers that a Configurator placed. A finalizer of its own holds the Configurator until then.

use std::time::Duration;

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::ObjectRef;
use configurator_core::service_account::ServiceAccount;
use kube::api::{ApiResource, Patch, PatchParams};
use kube::discovery::{self, Scope};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::Keeper;
use super::remaining_sets::remaining_set;
use crate::controller::finalizer::Finalizer;
use crate::controller::report::KeeperReport;
use crate::controller::status;
use crate::events::{HostEvent, Subject};
use crate::impersonation::acting_as;
use crate::kubernetes_faults::is_of_another;
use crate::objects;
use crate::resource;
use crate::resource::SetsDeletionSpec;
use crate::resource::object_set::ObjectSet;

/// The finalizer that holds a Configurator until its own finalizers are removed from all objects.
const OWN_FINALIZER: &str = "configurator.dev/release";
/// The wait before the removal of finalizers is retried.
const RELEASE_AGAIN: Duration = Duration::from_secs(5);
/// The time between two checks whether other hosts still run a Configurator that is being deleted.
const OTHERS_AGAIN: Duration = Duration::from_secs(1);

/// The time between two checks whether a Configurator that is being deleted still has sets.
const SETS_AGAIN: Duration = Duration::from_secs(2);

impl Keeper {
    /// Removes the finalizers that an earlier generation placed, if the current one places none.
    pub(super) async fn release_earlier(&mut self) {
        let Some(kind) = self.kind_to_release.take() else {
            return;
        };
        let resource = self.desired.borrow().clone();
        if !is_held(&resource) {
            return;
        }
        if let Err(error) = self.release_objects(&resource, Some(*kind)).await {
            tracing::warn!(
                configurator = %resource.key(),
                error,
                "the finalizers of an earlier generation could not be removed; the host retries at its next start"
            );
        }
    }

    /// Removes the finalizer from every object of the kind, and then from the Configurator. Without a kind there are no objects.
    async fn release_objects(
        &mut self,
        resource: &resource::Configurator,
        kind: Option<ApiResource>,
    ) -> Result<(), String> {
        if let Some(kind) = kind {
            let policy = self.shared.policies.of(&resource.key().namespace);
            let account = policy.account_of(resource).ok().flatten();
            release_of_kind(&self.shared.client, account.as_ref(), &resource.key(), kind)
                .await
                .map_err(|fault| fault.to_string())?;
        }
        unhold(&self.shared.client, resource)
            .await
            .map_err(|error| error.to_string())
    }

    /// Whether a Configurator that is being deleted must wait, because it still has sets. Then it is looked at again.
    pub(super) async fn is_blocked(&mut self, resource: &resource::Configurator) -> bool {
        let found = match remaining_set(&self.shared.client, resource).await {
            Ok(found) => found,
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(configurator = %resource.key(), error, "the ObjectSets cannot be listed; the host retries");
                self.look_again = Some(self.shared.clock.now().after(SETS_AGAIN));
                return true;
            }
        };
        if let Some(found) = &found {
            self.tell_of_sets(resource, found);
            self.look_again = Some(self.shared.clock.now().after(SETS_AGAIN));
        }
        found.is_some()
    }

    /// Says in an Event why a Configurator stays, once for each value of `spec.deletion.sets`.
    fn tell_of_sets(&mut self, resource: &resource::Configurator, set: &ObjectSet) {
        let policy = resource.spec.deletion.sets;
        if !self.voice.speaks() || self.told_of_sets.replace(policy) == Some(policy) {
            return;
        }
        let owner = &set.spec.owner;
        let goes = match policy {
            _ if resource.spec.sets.is_none() => {
                "it stays until spec.sets is put back, and the sets are gone"
            }
            SetsDeletionSpec::Block => {
                "it stays until their owners are deleted, or spec.deletion.sets is Delete or Orphan"
            }
            SetsDeletionSpec::Delete => "it stays until their members are deleted",
            SetsDeletionSpec::Orphan => {
                "it stays until their members, which are not deleted, have lost their marks"
            }
        };
        let message =
            format!("the Configurator is being deleted and still has sets, one of {owner}: {goes}");
        tracing::info!(configurator = %resource.key(), "{message}");
        let uid = resource.uid().unwrap_or_default();
        let subject = Subject::configurator(&resource.key(), &uid);
        let event = HostEvent::warning(subject, "SetsRemain", message);
        self.shared.publisher.publish(event);
    }

    /// Releases a Configurator that is being deleted: removes the finalizers from its objects, then its own.
    pub(super) async fn release(&mut self, resource: &resource::Configurator) {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        self.known.running = None;
        self.rights.end();
        self.reporter.say(KeeperReport {
            is_bootstrapped: true,
            is_settled: false,
            reads_in_vain: false,
        });
        self.voice.fall_silent().await;
        if !is_held(resource) {
            return;
        }
        // Another host may still place finalizers.
        if !self.voice.speaks() || !self.voice.others().is_empty() {
            self.look_again = Some(self.shared.clock.now().after(OTHERS_AGAIN));
            return;
        }
        let kind = match resource.spec.watch.group_version_kind() {
            Some(kind) => discovery::pinned_kind(&self.shared.client, &kind)
                .await
                .ok(),
            None => None,
        };
        // A Configurator with a namespace has no objects without one.
        let is_possible =
            |scope: &Scope| resource.key().namespace.is_empty() || *scope == Scope::Namespaced;
        let kind = kind.filter(|(_, capabilities)| is_possible(&capabilities.scope));
        let kind = kind.map(|(kind, _)| kind);
        if let Err(error) = self.release_objects(resource, kind).await {
            tracing::warn!(
                configurator = %resource.key(),
                error,
                "the finalizers could not be removed; the host retries"
            );
            self.look_again = Some(self.shared.clock.now().after(RELEASE_AGAIN));
        }
    }
}

/// Removes the finalizer as its ServiceAccount, or else as the host: if a namespace is deleted, the rights of the ServiceAccount can go first.
async fn release_of_kind(
    host: &Client,
    account: Option<&ServiceAccount>,
    configurator: &ObjectRef,
    kind: ApiResource,
) -> Result<(), Fault> {
    let release = |client: Client| {
        let finalizer = Finalizer::new(client, kind.clone(), configurator);
        async move { finalizer.release_all().await }
    };
    match release(acting_as(host, account)).await {
        Err(fault) if account.is_some() && fault.kind == FaultKind::ResourcePermission => {
            release(host.clone()).await
        }
        released => released,
    }
}

/// Whether a finalizer of the host is on the Configurator.
pub(super) fn is_held(resource: &resource::Configurator) -> bool {
    resource
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == OWN_FINALIZER)
}

pub(super) async fn hold(client: &Client, key: &ObjectRef) -> Result<(), kube::Error> {
    let kind = resource::kind_of(key);
    let body = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": key.name, "finalizers": [OWN_FINALIZER]},
    });
    objects::of(client.clone(), &kind, &key.namespace)
        .patch(
            &key.name,
            &PatchParams::apply(status::MANAGER).force(),
            &Patch::Apply(&body),
        )
        .await
        .map(drop)
}

async fn unhold(client: &Client, resource: &resource::Configurator) -> Result<(), kube::Error> {
    let key = resource.key();
    let remaining: Vec<&String> = resource
        .finalizers()
        .iter()
        .filter(|finalizer| *finalizer != OWN_FINALIZER)
        .collect();
    let body = json!({"metadata": {"uid": resource.uid(), "finalizers": remaining}});
    let api = objects::of(client.clone(), &resource::kind_of(&key), &key.namespace);
    let params = PatchParams::default();
    match api.patch(&key.name, &params, &Patch::Merge(&body)).await {
        Err(kube::Error::Api(status)) if status.code == 404 || is_of_another(&status) => Ok(()),
        patched => patched.map(drop),
    }
}
