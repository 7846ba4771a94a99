//! The Pods of the database.

use configurator_sdk::{HandlerError, Input, Output};

use crate::cluster::{Cluster, Parameters};
use crate::ensure::{Wanted, pod_is_ready, step};
use crate::plan::Plan;
use crate::pod::pod;

/// Makes the Pod that writes, and waits until it is ready.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn create_rw_pod(input: &Input) -> Result<Output, HandlerError> {
    create(input, |cluster, _| vec![cluster.name_of("rw")])
}

/// Makes the Pods that read, and waits until they are ready.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn create_ro_pods(input: &Input) -> Result<Output, HandlerError> {
    create(input, |cluster, plan| cluster.ro_pods(plan.ro_replicas))
}

fn create(
    input: &Input,
    names: impl Fn(&Cluster, &Plan) -> Vec<String>,
) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let parameters: Parameters = input.parameters()?;
    let plan = Plan::of(input)?;
    let names = names(&cluster, &plan);
    let pods = names
        .iter()
        .map(|name| pod(&cluster, &parameters, &plan, name));
    let pods: Vec<Wanted> = pods.collect::<Result<_, _>>()?;
    step(input, &pods, pod_is_ready)
}
