//! The phase of Deployments that are gone. It needs their names, namespaces and uids, and nothing else of them.

use configurator_sdk::{HandlerError, Input, Output, Request};

use crate::deployment::Identified;

/// Deletes the entry of each Deployment of the batch. That of a newer Deployment of the same name has another uid, and stays.
///
/// # Errors
/// Fatal, when an object of the batch is not one of the API.
pub fn cleanup(input: &Input) -> Result<Output, HandlerError> {
    let mut output = Output::new();
    for object in input.objects() {
        let Identified { metadata } = object.parse()?;
        let name = metadata.request_name("config");
        output.push(Request::new(name, metadata.entry().delete()).of(metadata.object_ref()));
    }
    Ok(output)
}
