//! What a flow is to bring about.

use configurator_sdk::{HandlerError, Input, Output};
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, Parameters};

/// What the cluster is to be when the flow is done. The flow's first step settles it, so that all steps work for the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// How large its Pods are.
    pub class_name: String,
    /// The version of the database.
    pub version: String,
    /// How many Pods read.
    pub ro_replicas: u32,
    /// How much it stores.
    pub storage: String,
}

impl Plan {
    /// That of a cluster that is to be made: all that is wanted.
    pub fn whole(cluster: &Cluster) -> Plan {
        Plan {
            class_name: cluster.spec.class_info.class_name.clone(),
            version: cluster.spec.version.clone(),
            ro_replicas: cluster.spec.ro_replicas,
            storage: cluster.spec.storage.size.clone(),
        }
    }

    /// The plan that the flow follows: what its first step has left.
    ///
    /// # Errors
    /// Fatal, when none has.
    pub fn of(input: &Input) -> Result<Plan, HandlerError> {
        let makes = |path: &str| matches!(path.rsplit('/').next(), Some("InitMeta" | "Plan"));
        let made = input.outputs.iter().rev().find(|(path, _)| makes(path));
        match made {
            Some((path, _)) => input.output_of(path),
            None => input.output_of("Plan"),
        }
    }

    /// The resources of a Pod.
    ///
    /// # Errors
    /// Fatal, with the code `UNKNOWN_CLASS`, when the Configurator knows no such class.
    pub fn resources<'a>(
        &self,
        parameters: &'a Parameters,
    ) -> Result<&'a serde_json::Value, HandlerError> {
        parameters.classes.get(&self.class_name).ok_or_else(|| {
            let known: Vec<&str> = parameters.classes.keys().map(String::as_str).collect();
            let message = format!(
                "there is no class {:?}; there are {}",
                self.class_name,
                known.join(", ")
            );
            HandlerError::fatal(message).code("UNKNOWN_CLASS")
        })
    }
}

/// Settles what is to be changed: of what the node's parameter `changes` names, what is wanted; of all else, what there is.
///
/// # Errors
/// Fatal, when the cluster was never made, or the wanted class is unknown.
pub fn plan(input: &Input) -> Result<Output, HandlerError> {
    let cluster = Cluster::of(input)?;
    let parameters: Parameters = input.parameters()?;
    let Plan {
        class_name,
        version,
        ro_replicas,
        storage,
    } = Plan::whole(&cluster);
    let is_about = |field: &str| parameters.changes.iter().any(|change| change == field);
    let status = cluster.status;
    let never = || HandlerError::fatal("the status does not say what the cluster is");
    let class_info = status.class_info.ok_or_else(never)?;
    let plan = Plan {
        class_name: if is_about("classInfo") {
            class_name
        } else {
            class_info.class_name
        },
        version: if is_about("version") {
            version
        } else {
            status.version.ok_or_else(never)?
        },
        ro_replicas: if is_about("roReplicas") {
            ro_replicas
        } else {
            status.ro_replicas.ok_or_else(never)?
        },
        storage: if is_about("storage") {
            storage
        } else {
            status.storage.ok_or_else(never)?.size
        },
    };
    plan.resources(&parameters)?;
    Ok(Output::new().output(serde_json::to_string(&plan)?))
}
