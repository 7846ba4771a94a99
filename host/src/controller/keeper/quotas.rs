//! Checks a Configurator against the quotas of its namespace.

use configurator_core::configurator::Configurator;
use kube::api::{ApiResource, ListParams};

use super::Keeper;
use crate::controller::policies::NamespacePolicy;
use crate::controller::status::Refusal;
use crate::host::Shared;
use crate::impersonation::acting_as;
use crate::objects;
use crate::resource;

/// The reason if a quota is used up.
pub(super) const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// The number of objects per page when they are counted.
const PAGE_SIZE: u32 = 500;

/// Checks the quota of Configurators.
pub(super) async fn check_configurators(
    shared: &Shared,
    policy: &NamespacePolicy,
    resource: &resource::Configurator,
) -> Result<(), Refusal> {
    let Some(quota) = policy.quotas.configurators else {
        return Ok(());
    };
    shared.quota_usage.wait_until_listed().await;
    match policy.exceeds_configurators(&shared.quota_usage, resource) {
        false => Ok(()),
        true => Err(Refusal::denied(
            QUOTA_EXCEEDED,
            format!(
                "the quota of Configurators in the namespace is {quota}, and as many are older: delete one of them, or ask an administrator of the cluster for a higher quota"
            ),
        )),
    }
}

/// Checks the quota of objects: counts the objects that the Configurator selects, up to a page more than the quota leaves.
pub(super) async fn check_objects(
    shared: &Shared,
    policy: &NamespacePolicy,
    resource: &resource::Configurator,
    configurator: &Configurator,
    kind: &ApiResource,
) -> Result<(), Refusal> {
    let Some(left) = policy.objects_left(&shared.quota_usage, resource) else {
        return Ok(());
    };
    let key = resource.key();
    let client = acting_as(&shared.client, configurator.service_account.as_ref());
    let api = objects::of(client, kind, &key.namespace);
    let watch = &configurator.watch;
    let mut params = ListParams::default()
        .limit(PAGE_SIZE)
        .labels(&watch.label_selector)
        .fields(&watch.field_selector);
    let mut objects = 0_u64;
    let usage = &shared.quota_usage;
    loop {
        let page = api.list_metadata(&params).await.map_err(|error| {
            Refusal::for_now(
                "WatchFailed",
                format!(
                    "the objects cannot be listed; the host retries: {}",
                    objects::explained(&error)
                ),
            )
        })?;
        objects = objects.saturating_add(page.items.len() as u64);
        if objects > left {
            // Younger Configurators do not take what is left.
            usage.set_objects(&key, &resource.metadata, objects);
            let quota = policy.quotas.objects.unwrap_or_default();
            return Err(Refusal::denied(
                QUOTA_EXCEEDED,
                format!(
                    "the quota of watched objects in the namespace is {quota}. Older Configurators leave {left}, and spec.watch selects more"
                ),
            ));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => {
                usage.set_objects(&key, &resource.metadata, objects);
                return Ok(());
            }
        }
    }
}

impl Keeper {
    /// Updates and returns whether older Configurators use up the quota of Configurators.
    pub(super) fn look_at_quota(&mut self, resource: &resource::Configurator) -> bool {
        let usage = &self.shared.quota_usage;
        self.is_over_quota = self.policy.exceeds_configurators(usage, resource);
        self.is_over_quota
    }

    /// Returns whether it runs, and has more objects than the quota leaves. While it is loaded, this is about to be checked.
    pub(super) fn has_too_many_objects(&self, resource: &resource::Configurator) -> bool {
        let left = self.policy.objects_left(&self.shared.quota_usage, resource);
        let has_more = left.is_some_and(|left| self.objects() > left);
        self.worker.is_some() && self.loading.is_none() && has_more
    }

    /// Returns the number of its objects on all hosts.
    pub(super) fn objects(&self) -> u64 {
        let own = self.known.report.counts.objects as u64;
        let others = self.voice.others();
        let others = others.iter().map(|other| other.counts.objects);
        others.fold(own, u64::saturating_add)
    }
}
