//! The workload that a Pod belongs to.

use configurator_sdk::kubernetes::{
    DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, Resource, STATEFUL_SET,
};

use crate::pod::Pod;

/// A workload, as far as the Pod tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload<'a> {
    /// Such as `Deployment`.
    pub kind: &'a str,
    /// Its name, in the Pod's namespace.
    pub name: &'a str,
    /// Where the API serves it; nothing for a kind that is not known here.
    pub resource: Option<Resource>,
}

impl<'a> Workload<'a> {
    /// The Pod's controller; of a ReplicaSet that a Deployment made, the Deployment.
    ///
    /// The Deployment is derived, not asked for: its ReplicaSet has its name, a dash, and the hash that the Pod carries
    /// as a label. That saves a request and a phase for the commonest kind of Pod.
    pub fn of(pod: &'a Pod<'_>) -> Option<Workload<'a>> {
        let owners = pod.metadata.owner_references.as_deref()?;
        let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
        let resource = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("apps/v1", "ReplicaSet") => {
                if let Some(name) = deployment(pod, &owner.name) {
                    return Some(Workload {
                        kind: DEPLOYMENT.kind,
                        name,
                        resource: Some(DEPLOYMENT),
                    });
                }
                Some(REPLICA_SET)
            }
            ("apps/v1", "StatefulSet") => Some(STATEFUL_SET),
            ("apps/v1", "DaemonSet") => Some(DAEMON_SET),
            ("batch/v1", "Job") => Some(JOB),
            _ => None,
        };
        Some(Workload {
            kind: &owner.kind,
            name: &owner.name,
            resource,
        })
    }
}

fn deployment<'a>(pod: &Pod<'_>, replica_set: &'a str) -> Option<&'a str> {
    let hash = pod.metadata.labels.as_ref()?.pod_template_hash.as_deref()?;
    let name = replica_set.strip_suffix(hash)?.strip_suffix('-')?;
    (!hash.is_empty() && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(labels: Value, owners: Value, expected: Expect) {
        let text = json!({"metadata": {
            "name": "p", "namespace": "n", "uid": "u", "labels": labels, "ownerReferences": owners,
        }})
        .to_string();
        let pod: Pod<'_> = serde_json::from_str(&text).unwrap();
        let found = Workload::of(&pod).map_or("none".to_owned(), |workload| {
            let plural = workload
                .resource
                .map_or("(unknown)", |resource| resource.plural);
            format!("{} {} {plural}", workload.kind, workload.name)
        });
        expected.assert_eq(&found);
    }

    fn owner(api_version: &str, kind: &str, name: &str) -> Value {
        json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": "o", "controller": true}])
    }

    #[test]
    fn the_deployment_behind_a_replica_set_is_derived() {
        let hash = json!({"pod-template-hash": "7c4d"});
        check(
            hash.clone(),
            owner("apps/v1", "ReplicaSet", "web-7c4d"),
            expect!["Deployment web deployments"],
        );
        check(
            hash.clone(),
            owner("apps/v1", "ReplicaSet", "web-front-7c4d"),
            expect!["Deployment web-front deployments"],
        );
        check(
            hash.clone(),
            owner("apps/v1", "ReplicaSet", "web"),
            expect!["ReplicaSet web replicasets"],
        );
        check(
            hash,
            owner("apps/v1", "ReplicaSet", "-7c4d"),
            expect!["ReplicaSet -7c4d replicasets"],
        );
        check(
            Value::Null,
            owner("apps/v1", "ReplicaSet", "web-7c4d"),
            expect!["ReplicaSet web-7c4d replicasets"],
        );
    }

    #[test]
    fn other_controllers_are_taken_as_they_are() {
        check(
            Value::Null,
            owner("apps/v1", "StatefulSet", "db"),
            expect!["StatefulSet db statefulsets"],
        );
        check(
            Value::Null,
            owner("apps/v1", "DaemonSet", "log"),
            expect!["DaemonSet log daemonsets"],
        );
        check(
            Value::Null,
            owner("batch/v1", "Job", "once"),
            expect!["Job once jobs"],
        );
        check(
            Value::Null,
            owner("example.com/v1", "Crew", "c"),
            expect!["Crew c (unknown)"],
        );
    }

    #[test]
    fn an_owner_that_is_no_controller_does_not_count() {
        check(Value::Null, Value::Null, expect!["none"]);
        check(
            Value::Null,
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n-1"}]),
            expect!["none"],
        );
    }
}
