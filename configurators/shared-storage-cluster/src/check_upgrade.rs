//! Whether another version is wanted.

use configurator_sdk::{HandlerError, Input, Output};

use crate::cluster::Cluster;

/// Is done when the version that is wanted is none that the cluster has.
///
/// # Errors
/// Fatal, when the object lacks a field.
pub fn check_upgrade(input: &Input) -> Result<Output, HandlerError> {
    let Cluster { spec, status, .. } = Cluster::of(input)?;
    Ok(match status.version {
        Some(version) if version != spec.version => Output::new(),
        _ => Output::new().again(),
    })
}
