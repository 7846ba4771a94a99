//! What does not go with the object by itself.

use configurator_sdk::secretstore::Secret;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde::Deserialize;

use crate::cluster::password;

/// Deletes the password. It needs the object's name and namespace, and nothing else of it.
///
/// # Errors
/// Fatal, when the object is none of the API.
pub fn cleanup(input: &Input) -> Result<Output, HandlerError> {
    #[derive(Deserialize)]
    struct Gone {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: String,
        name: String,
    }
    let Gone { metadata } = input.object()?;
    let name = password(&metadata.namespace, &metadata.name);
    Ok(Output::new().request(Request::new("password", Secret::new(name).delete())))
}
