//! Checks that a Configurator can act as its ServiceAccount, and that the ServiceAccount has the rights to start it.

use configurator_core::configurator::Configurator;

use crate::controller::rights::is_allowed;
use crate::controller::status::Refusal;
use crate::host::Shared;
use crate::impersonation::{self, ImpersonationError, acting_as};
use crate::objects;
use crate::resource::ConfiguratorSpec;
use crate::rights::{Rights, Watched};

/// Checks that the API server accepts the impersonation, and that the ServiceAccount may read the module and the parameters.
pub(super) async fn check_account(
    shared: &Shared,
    configurator: &Configurator,
    spec: &ConfiguratorSpec,
) -> Result<(), Refusal> {
    let Some(account) = &configurator.service_account else {
        return Ok(());
    };
    let client = acting_as(&shared.client, Some(account));
    impersonation::check(&client, account).await.map_err(
        |ImpersonationError { is_answer, why }| {
            let message = format!("the host cannot act as the {account}; it retries: {why}");
            Refusal {
                is_denial: is_answer,
                ..Refusal::for_now("CannotImpersonate", message)
            }
        },
    )?;
    let mut rights = Rights::default();
    rights.module(&spec.module);
    rights.parameters(&spec.parameters_from);
    check_rights(shared, configurator, &rights).await
}

/// Checks that the ServiceAccount may list and watch the watched objects.
pub(super) async fn check_watching(
    shared: &Shared,
    configurator: &Configurator,
    watched: &Watched,
) -> Result<(), Refusal> {
    let mut rights = Rights::default();
    rights.reads(configurator, watched);
    check_rights(shared, configurator, &rights).await
}

async fn check_rights(
    shared: &Shared,
    configurator: &Configurator,
    rights: &Rights,
) -> Result<(), Refusal> {
    let Some(account) = &configurator.service_account else {
        return Ok(());
    };
    let client = acting_as(&shared.client, Some(account));
    for right in rights.each() {
        match is_allowed(&client, &right).await {
            Ok(true) => {}
            Ok(false) => {
                let message = format!(
                    "the {account} may not {right}: grant it by a Role and a RoleBinding; the host asks again"
                );
                return Err(Refusal::denied("ServiceAccountForbidden", message));
            }
            Err(error) => {
                let message = format!(
                    "the API cannot be asked whether the {account} may {right}; it is asked again: {}",
                    objects::explained(&error)
                );
                return Err(Refusal::for_now("CannotAsk", message));
            }
        }
    }
    Ok(())
}
