//! Checks of the account.

use configurator_sdk::{HandlerError, Input, Output};

use crate::check::check;
use crate::inventory::Account;

/// The access key must belong to the account.
///
/// # Errors
/// Fatal, when it does not.
pub fn secret_app_id(input: &Input) -> Result<Output, HandlerError> {
    check(
        input,
        |_| ["/account".to_owned()],
        |spec, [account]| {
            let account: Account = account.read()?;
            Ok((account.app_id != spec.app_id).then(|| {
                format!(
                    "the access key {} belongs to the account {}, not to {}",
                    spec.secret_id, account.app_id, spec.app_id
                )
            }))
        },
    )
}
