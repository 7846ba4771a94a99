//! Checks a Configurator before anything is fetched in its name.

use std::sync::Arc;

use configurator_core::configurator::Configurator;
use configurator_core::document::Document;
use configurator_core::partition::Partition;
use kube::Client;

use super::account::check_account;
use super::load::check_memory;
use super::policy::check_policy;
use super::quotas::check_configurators;
use super::remaining_sets::check_sets;
use crate::controller::parameters::SourcedParameters;
use crate::controller::policies::NamespacePolicy;
use crate::controller::status::Refusal;
use crate::declaration::{self, FlowSet};
use crate::host::Shared;
use crate::impersonation::acting_as;
use crate::objects;
use crate::resource;
use crate::sinks::partitions::namespace_uid;

/// A Configurator whose policies and ServiceAccount allow that its module is fetched.
pub(super) struct Checked {
    pub(super) configurator: Configurator,
    pub(super) policy: Arc<NamespacePolicy>,
    /// Reads and watches as the ServiceAccount.
    pub(super) client: Client,
    /// The parameters from other objects, if there are any.
    pub(super) parameters: Option<SourcedParameters>,
}

/// Checks the declaration, the policies for the namespace, the quota of Configurators, the ServiceAccount and the sets that remain, and reads
/// the parameters.
pub(super) async fn check(
    shared: &Shared,
    flows: &FlowSet,
    resource: &resource::Configurator,
) -> Result<Checked, Refusal> {
    let key = resource.key();
    let mut configurator = declaration::check(resource, flows)
        .map_err(|error| Refusal::new("Invalid", error.to_string()))?;
    configurator.retry.max_retry_after = shared.max_retry_after;
    configurator.limits.status_size = shared.max_status_size;
    let policy = shared.policies.wait_for(&key.namespace).await;
    check_policy(&policy, &mut configurator, resource)?;
    check_configurators(shared, &policy, resource).await?;
    check_account(shared, &configurator, &resource.spec).await?;
    check_sets(shared, resource).await?;
    if !key.namespace.is_empty() {
        let uid = namespace_uid(&shared.client, &key.namespace).await;
        let uid = uid.map_err(|error| {
            Refusal::for_now(
                "NamespaceUnknown",
                format!(
                    "the namespace {} cannot be read; the host retries: {}",
                    key.namespace,
                    objects::explained(&error)
                ),
            )
        })?;
        if uid != policy.uid {
            let message = format!(
                "the namespace {} has just been created again; the host retries",
                key.namespace
            );
            return Err(Refusal::denied("NamespaceUnknown", message));
        }
        configurator.partition = Partition::of_namespace(&key.namespace, &uid);
    }
    let sources = &resource.spec.parameters_from;
    let client = acting_as(&shared.client, configurator.service_account.as_ref());
    let sourced = SourcedParameters::read(&client, &policy.ceiling, sources).await?;
    if !sources.is_empty() {
        configurator.secrets = sourced.secrets();
        configurator.parameters = Document::of(&sourced.merged_under(&resource.spec.parameters))
            .map_err(|error| Refusal::new("Invalid", format!("spec.parametersFrom: {error}")))?;
    }
    check_memory(&configurator, shared.guest.memory().limit())?;
    Ok(Checked {
        configurator,
        policy,
        client,
        parameters: (!sources.is_empty()).then_some(sourced),
    })
}
