//! The root phase.

use std::collections::BTreeSet;

use configurator_sdk::kubernetes::NAMESPACE;
use configurator_sdk::{HandlerError, Input, Output, Request};

use crate::deployment::Identified;

/// The keys under which results arrive together.
pub mod groups {
    /// The Namespaces, each once.
    pub const NAMESPACES: &str = "namespaces";
    /// The stored entries, one for each Deployment.
    pub const ENTRIES: &str = "entries";
}

/// The name of the request for a Namespace.
pub fn namespace_request(name: &str) -> String {
    ["namespace/", name].concat()
}

/// Asks for each Namespace of the batch once, and for the entry of each Deployment.
///
/// Failures join their groups. An entry that is absent is the ordinary case of a new Deployment.
///
/// # Errors
/// Fatal, when an object of the batch is not one of the API. The host then halves the batch until it is alone.
pub fn root(input: &Input) -> Result<Output, HandlerError> {
    let mut namespaces = BTreeSet::new();
    let mut entries = Vec::with_capacity(input.objects().len());
    for object in input.objects() {
        let Identified { metadata } = object.parse()?;
        let name = metadata.request_name("entry");
        let request = Request::new(name, metadata.entry().get())
            .group_by(groups::ENTRIES)
            .of(metadata.object_ref());
        entries.push(request);
        namespaces.insert(metadata.namespace);
    }
    let namespaces = namespaces.iter().map(|name| {
        Request::new(namespace_request(name), NAMESPACE.get(&**name).cached())
            .group_by(groups::NAMESPACES)
    });
    Ok(Output::new()
        .with_requests(namespaces)
        .with_requests(entries))
}
