//! The root phase.

use configurator_sdk::configstore::Entry;
use configurator_sdk::kubernetes::{NAMESPACE, NODE};
use configurator_sdk::{HandlerError, Input, Output, Request};

use crate::owner::Workload;
use crate::pod::Pod;

/// Names of the requests, which are those of the results.
pub mod results {
    /// The Pod's Node. Absent until the Pod is scheduled.
    pub const NODE: &str = "node";
    /// The Pod's Namespace.
    pub const NAMESPACE: &str = "namespace";
    /// The Pod's workload. Absent where it has none, or one of an unknown kind.
    pub const WORKLOAD: &str = "workload";
    /// The entry under the Pod's name in the config store. It may be that of an older Pod.
    pub const ENTRY: &str = "entry";
}

/// Asks for the Pod's Node, Namespace, workload and stored configuration.
///
/// Any of them may be absent: failures are caught, and the next phase tells absence from other failures. What is read
/// of the cluster may come from the host's watch cache; of the config store, it is what is stored.
///
/// # Errors
/// Fatal, when the object is no Pod of the API.
pub fn root(input: &Input) -> Result<Output, HandlerError> {
    let pod: Pod<'_> = input.object()?;
    let metadata = &pod.metadata;
    let mut output = Output::new();
    if let Some(node) = pod.node_name() {
        output.push(Request::new(results::NODE, NODE.get(node).cached()).catch_error());
    }
    output.push(
        Request::new(
            results::NAMESPACE,
            NAMESPACE.get(&*metadata.namespace).cached(),
        )
        .catch_error(),
    );
    if let Some(Workload {
        name,
        resource: Some(resource),
        ..
    }) = Workload::of(&pod)
    {
        let workload = resource.get((&*metadata.namespace, name)).cached();
        output.push(Request::new(results::WORKLOAD, workload).catch_error());
    }
    let entry = Entry::pod(&*metadata.namespace, &*metadata.name).get();
    output.push(Request::new(results::ENTRY, entry).catch_error());
    Ok(output)
}
