//! The storage that all Pods share.

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::{Value, json};

use crate::cluster::{CLAIM, Cluster, Parameters};
use crate::ensure::{Wanted, step};
use crate::field::text;
use crate::plan::Plan;

/// The claim of the storage.
pub fn claim(cluster: &Cluster, parameters: &Parameters, plan: &Plan) -> Wanted {
    let name = cluster.name_of("data");
    Wanted {
        resource: CLAIM,
        object: json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": cluster.metadata_of(&name, json!({})),
            "spec": {
                "storageClassName": parameters.storage_class,
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": plan.storage}},
            },
        }),
    }
}

/// Claims the storage, and waits until it is bound.
///
/// # Errors
/// When it was lost, with the code `STORAGE_LOST`.
pub fn prepare_storage(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let claim = claim(&Cluster::of(input)?, &input.parameters()?, &plan);
    step(input, &[claim], is_bound)
}

/// Whether a claim has its storage.
///
/// # Errors
/// When it was lost, with the code `STORAGE_LOST`.
pub fn is_bound(claim: &Value) -> Result<bool, HandlerError> {
    match text(claim, "/status/phase") {
        "Lost" => Err(HandlerError::fatal("the storage was lost").code("STORAGE_LOST")),
        phase => Ok(phase == "Bound"),
    }
}
