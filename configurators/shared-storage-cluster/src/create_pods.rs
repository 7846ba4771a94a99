//! The Pods of the database.

use configurator_sdk::{HandlerError, Input, Output};

use crate::ensure::{Wanted, pod_is_ready, step};
use crate::pod::Pods;

/// Makes the Pod that writes, and waits until it is ready.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn create_rw_pod(input: &Input) -> Result<Output, HandlerError> {
    create(input, Pods::rw)
}

/// Makes the Pods that read, and waits until they are ready.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn create_ro_pods(input: &Input) -> Result<Output, HandlerError> {
    create(input, Pods::ro)
}

fn create(input: &Input, names: fn(&Pods) -> Vec<String>) -> Result<Output, HandlerError> {
    let pods = Pods::of(input)?;
    let wanted = names(&pods).into_iter().map(|name| pods.pod(&name));
    let wanted: Vec<Wanted> = wanted.collect::<Result<_, _>>()?;
    step(input, &wanted, pod_is_ready)
}
