//! Whether the cluster is to be made.

use configurator_sdk::{HandlerError, Input, Output};

use crate::cluster::Cluster;

/// Is done when the cluster was never made.
///
/// # Errors
/// Fatal, when the object lacks a field.
pub fn check_install(input: &Input) -> Result<Output, HandlerError> {
    let status = Cluster::of(input)?.status;
    Ok(match status.cluster_status.as_str() {
        "" | "Init" | "Creating" => Output::new(),
        _ => Output::new().again(),
    })
}
