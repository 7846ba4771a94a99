//! Checks of the account.

use configurator_sdk::{HandlerError, Input, Output};

use crate::cloud::{Cloud, Consulted};
use crate::inventory::Account;

/// The access key must belong to the account.
///
/// # Errors
/// Fatal, when it does not.
pub fn secret_app_id(input: &Input) -> Result<Output, HandlerError> {
    let cloud = Cloud::of(input)?;
    let account: Account = match cloud.consult(&["/account".to_owned()])? {
        Consulted::NotYet(output) => return Ok(*output),
        Consulted::Answers(answers) => match answers.first() {
            Some(answer) => answer.read()?,
            None => return Err(HandlerError::fatal("the answer is missing")),
        },
    };
    if account.app_id != cloud.spec.app_id {
        let message = format!(
            "the access key {} belongs to the account {}, not to {}",
            cloud.spec.secret_id, account.app_id, cloud.spec.app_id
        );
        return Err(HandlerError::fatal(message));
    }
    Ok(Output::new())
}
