//! The Pods of the database.

use configurator_sdk::kubernetes::POD;
use configurator_sdk::{HandlerError, Input};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Parameters, ROLE};
use crate::ensure::Wanted;
use crate::plan::Plan;

/// The annotation that says what a Pod was made for. One that was made for something else is made anew.
pub const MADE_FOR: &str = "db.example.org/made-for";

/// What the Pods of a cluster are made of.
pub struct Pods {
    /// Whose they are.
    pub cluster: Cluster,
    /// What they are to be.
    pub plan: Plan,
    parameters: Parameters,
}

impl Pods {
    /// Those that the flow works for.
    ///
    /// # Errors
    /// Fatal, when the object or the parameters lack a field, or no step has left a plan.
    pub fn of(input: &Input) -> Result<Pods, HandlerError> {
        Ok(Pods {
            cluster: Cluster::of(input)?,
            plan: Plan::of(input)?,
            parameters: input.parameters()?,
        })
    }

    /// The name of the one that writes.
    pub fn rw(&self) -> Vec<String> {
        vec![self.cluster.name_of("rw")]
    }

    /// The names of those that read.
    pub fn ro(&self) -> Vec<String> {
        self.cluster.ro_pods(self.plan.ro_replicas)
    }

    /// The Pod of this name.
    ///
    /// # Errors
    /// Fatal, when the class is unknown.
    pub fn pod(&self, name: &str) -> Result<Wanted, HandlerError> {
        let Pods {
            cluster,
            plan,
            parameters,
        } = self;
        let resources = plan.resources(parameters)?;
        let role = match name == cluster.name_of("rw") {
            true => "rw",
            false => "ro",
        };
        let image = [&parameters.image, ":", &plan.version].concat();
        let mut metadata = cluster.metadata_of(name, json!({ ROLE: role }));
        if let Value::Object(fields) = &mut metadata {
            fields.insert(
                "annotations".to_owned(),
                json!({ MADE_FOR: made_for(plan) }),
            );
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {
                "containers": [{
                    "name": "database",
                    "image": image,
                    "args": ["--role", role],
                    "envFrom": [{"configMapRef": {"name": cluster.name_of("meta")}}],
                    "resources": resources,
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "volumes": [{
                    "name": "data",
                    "persistentVolumeClaim": {"claimName": cluster.name_of("data")},
                }],
            },
        });
        Ok(Wanted {
            resource: POD,
            object,
        })
    }
}

/// What Pods of this plan are made for.
pub fn made_for(plan: &Plan) -> String {
    [&plan.class_name, " ", &plan.version].concat()
}

/// What this Pod was made for.
pub fn was_made_for(pod: &Value) -> &str {
    let annotations = pod.pointer("/metadata/annotations");
    let made_for = annotations.and_then(|annotations| annotations.get(MADE_FOR));
    made_for.and_then(Value::as_str).unwrap_or_default()
}
