//! Checks a Configurator against the policies for its namespace.

use configurator_core::configurator::Configurator;

use crate::controller::policies::NamespacePolicy;
use crate::controller::status::Refusal;
use crate::resource;

/// Checks the Configurator against the policies for its namespace, and sets the ServiceAccount that it acts as and its weight.
pub(super) fn check_policy(
    policy: &NamespacePolicy,
    configurator: &mut Configurator,
    resource: &resource::Configurator,
) -> Result<(), Refusal> {
    let denied = |message: String| Refusal::denied("PolicyDenied", message);
    if let Some(why) = &policy.denied {
        return Err(denied(why.clone()));
    }
    configurator.service_account = policy
        .account_of(resource)
        .map_err(|error| Refusal::new("Invalid", error.to_string()))?;
    if let Some(account) = &configurator.service_account
        && let Some(name) = policy.forbids_account(&account.name)
    {
        return Err(denied(format!(
            "the ConfiguratorPolicy {name} does not let Configurators act as the {account}: set spec.serviceAccountName to another one"
        )));
    }
    configurator.limits.weight = policy.weight;
    let limits = policy.limits.check(configurator);
    limits.map_err(|error| denied(error.to_string()))?;
    for (_, plural, object) in resource.spec.module.references() {
        policy
            .ceiling
            .check(|rules| rules.check_reference(plural, &object))
            .map_err(|fault| denied(format!("spec.module: {}", fault.message)))?;
    }
    Ok(())
}
