//! The health of Kubernetes objects, by their status.
//!
//! The rules are those of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus`), which kubectl, Flux and others use, with these differences:
//! - a Job is ready when it is complete, not when it has started: entries that depend on a migration need its end;
//! - a Pod that cannot be scheduled is waited for, since a node may be added; set a timeout to give up;
//! - an APIService is ready when it is available.
//!
//! A PersistentVolumeClaim is ready when it is bound. One whose StorageClass waits for its first consumer is never bound before a Pod uses it,
//! so an entry for it needs the readiness `exists`.

use serde_json::Value;

use super::observation::Health;
use crate::field::{self, text};
use crate::request::group_of;

/// Returns the health of an object.
///
/// `is_status_older`: the object's status has not changed since the host's last write that changed its generation. It counts for objects
/// without `status.observedGeneration` whose conditions would otherwise describe the state before that write.
#[must_use]
pub fn health(object: &Value, is_status_older: bool) -> Health {
    if let Some(health) = unobserved(object).or_else(|| declared(object)) {
        return health;
    }
    let group = group_of(text(object, "/apiVersion"));
    match (group, text(object, "/kind")) {
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => volume_claim(object),
        ("", "Service") => service(object),
        ("" | "apps", "ReplicationController" | "ReplicaSet") => replica_set(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => by_condition(object, "Available"),
        _ => by_ready_condition(object, is_status_older),
    }
}

/// Returns whether an object exists and its controller has seen its newest generation. Objects without `status.observedGeneration` count as
/// seen.
#[must_use]
pub fn observed(object: &Value) -> Health {
    unobserved(object).unwrap_or(Health::Ready)
}

fn unobserved(object: &Value) -> Option<Health> {
    let generation = field::at(object, "/metadata/generation")?.as_i64()?;
    let observed = field::at(object, "/status/observedGeneration")?.as_i64()?;
    (observed < generation).then(|| {
        Health::Waiting(format!(
            "its controller has seen generation {observed}; the newest is {generation}"
        ))
    })
}

/// The conditions by which controllers state their progress whatever the kind.
fn declared(object: &Value) -> Option<Health> {
    let stalled = condition(object, "Stalled").filter(|condition| condition.is("True"));
    let reconciling = condition(object, "Reconciling").filter(|condition| condition.is("True"));
    match (stalled, reconciling) {
        (Some(stalled), _) => Some(Health::Failed(stalled.message())),
        (None, Some(reconciling)) => Some(Health::Waiting(reconciling.message())),
        (None, None) => None,
    }
}

struct Condition<'a>(&'a Value);

impl Condition<'_> {
    fn is(&self, status: &str) -> bool {
        text(self.0, "/status") == status
    }

    fn reason(&self) -> &str {
        text(self.0, "/reason")
    }

    /// `Available: MinimumReplicasUnavailable: Deployment does not have minimum availability.`
    fn message(&self) -> String {
        let parts = ["/type", "/reason", "/message"].map(|path| text(self.0, path));
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(": ")
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<Condition<'a>> {
    let conditions = field::at(object, "/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|condition| text(condition, "/type") == kind);
    found.map(Condition)
}

fn number(value: &Value, path: &str) -> Option<i64> {
    field::at(value, path).and_then(Value::as_i64)
}

fn status(object: &Value, field: &str) -> i64 {
    number(object, &format!("/status/{field}")).unwrap_or(0)
}

/// Returns a wait if fewer than all replicas have reached a stage.
fn behind(reached: i64, wanted: i64, stage: &str) -> Option<Health> {
    (reached < wanted)
        .then(|| Health::Waiting(format!("{reached} of {wanted} replicas are {stage}")))
}

fn surplus(replicas: i64, wanted: i64, what: &str) -> Option<Health> {
    let surplus = replicas - wanted;
    (surplus > 0).then(|| Health::Waiting(format!("{surplus} {what} replicas are still running")))
}

fn by_condition(object: &Value, kind: &str) -> Health {
    match condition(object, kind) {
        Some(condition) if condition.is("True") => Health::Ready,
        Some(condition) => Health::Waiting(condition.message()),
        None => Health::Waiting(format!("it has no condition {kind} yet")),
    }
}

fn by_ready_condition(object: &Value, is_status_older: bool) -> Health {
    let has_observed = field::at(object, "/status/observedGeneration").is_some();
    match condition(object, "Ready") {
        None => Health::Ready,
        Some(_) if is_status_older && !has_observed => {
            Health::Waiting("its status is older than the last change".to_owned())
        }
        Some(condition) if condition.is("True") => Health::Ready,
        Some(condition) => Health::Waiting(condition.message()),
    }
}

fn pod(object: &Value) -> Health {
    match text(object, "/status/phase") {
        "Succeeded" => Health::Ready,
        "Failed" => Health::Failed(format!(
            "the Pod failed: {}",
            text(object, "/status/reason")
        )),
        "Running" => match (condition(object, "Ready"), crash_loop(object)) {
            (Some(ready), _) if ready.is("True") => Health::Ready,
            (_, Some(container)) => {
                Health::Failed(format!("the container {container} crashes again and again"))
            }
            (Some(ready), None) => Health::Waiting(ready.message()),
            (None, None) => Health::Waiting("the Pod is running and not ready".to_owned()),
        },
        _ => match condition(object, "PodScheduled").filter(|condition| condition.is("False")) {
            Some(unscheduled) => Health::Waiting(unscheduled.message()),
            None => Health::Waiting("the Pod has not started".to_owned()),
        },
    }
}

fn crash_loop(object: &Value) -> Option<&str> {
    let containers = field::at(object, "/status/containerStatuses")?.as_array()?;
    let is_crashing =
        |container: &&Value| text(container, "/state/waiting/reason") == "CrashLoopBackOff";
    let container = containers.iter().find(is_crashing)?;
    Some(text(container, "/name"))
}

fn volume_claim(object: &Value) -> Health {
    match text(object, "/status/phase") {
        "Bound" => Health::Ready,
        "Lost" => Health::Failed("the volume of the claim is lost".to_owned()),
        _ => Health::Waiting("the claim is not bound".to_owned()),
    }
}

fn service(object: &Value) -> Health {
    let is_balanced = text(object, "/spec/type") == "LoadBalancer";
    if is_balanced && text(object, "/spec/clusterIP").is_empty() {
        return Health::Waiting("the Service has no cluster IP".to_owned());
    }
    Health::Ready
}

fn replica_set(object: &Value) -> Health {
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let failure = condition(object, "ReplicaFailure").filter(|condition| condition.is("True"));
    if let Some(failure) = failure {
        return Health::Waiting(failure.message());
    }
    (behind(status(object, "fullyLabeledReplicas"), wanted, "labelled"))
        .or_else(|| behind(status(object, "availableReplicas"), wanted, "available"))
        .or_else(|| behind(status(object, "readyReplicas"), wanted, "ready"))
        .or_else(|| surplus(status(object, "replicas"), wanted, "surplus"))
        .unwrap_or(Health::Ready)
}

fn deployment(object: &Value) -> Health {
    let progressing = condition(object, "Progressing");
    if let Some(progressing) = &progressing
        && progressing.reason() == "ProgressDeadlineExceeded"
    {
        return Health::Failed(progressing.message());
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let replicas = status(object, "replicas");
    let updated = status(object, "updatedReplicas");
    (behind(replicas, wanted, "created"))
        .or_else(|| behind(updated, wanted, "updated"))
        .or_else(|| surplus(replicas, updated, "outdated"))
        .or_else(|| behind(status(object, "availableReplicas"), updated, "available"))
        .or_else(|| behind(status(object, "readyReplicas"), wanted, "ready"))
        .or_else(|| {
            // Without a deadline there is no such condition.
            let is_new = progressing
                .as_ref()
                .is_some_and(|progressing| progressing.reason() != "NewReplicaSetAvailable");
            is_new.then(|| Health::Waiting("the new ReplicaSet is not available".to_owned()))
        })
        .unwrap_or_else(|| by_condition(object, "Available"))
}

fn stateful_set(object: &Value) -> Health {
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Health::Ready;
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let replicas = status(object, "replicas");
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    let updated = status(object, "updatedReplicas");
    let waits = (behind(replicas, wanted, "created"))
        .or_else(|| behind(status(object, "readyReplicas"), wanted, "ready"))
        .or_else(|| surplus(replicas, wanted, "surplus"));
    if let Some(waits) = waits {
        return waits;
    }
    if partition > 0 {
        let to_update = (wanted - partition).max(0);
        return behind(updated, to_update, "updated").unwrap_or(Health::Ready);
    }
    if text(object, "/status/currentRevision") != text(object, "/status/updateRevision") {
        return behind(updated, wanted, "updated")
            .unwrap_or_else(|| Health::Waiting("the update is not complete".to_owned()));
    }
    Health::Ready
}

fn daemon_set(object: &Value) -> Health {
    if number(object, "/status/observedGeneration").is_none() {
        return Health::Waiting("its controller has not seen it".to_owned());
    }
    let wanted = status(object, "desiredNumberScheduled");
    (behind(
        status(object, "currentNumberScheduled"),
        wanted,
        "scheduled",
    ))
    .or_else(|| behind(status(object, "updatedNumberScheduled"), wanted, "updated"))
    .or_else(|| behind(status(object, "numberAvailable"), wanted, "available"))
    .or_else(|| behind(status(object, "numberReady"), wanted, "ready"))
    .unwrap_or(Health::Ready)
}

fn job(object: &Value) -> Health {
    let is_true = |kind| condition(object, kind).filter(|condition| condition.is("True"));
    match (is_true("Complete"), is_true("Failed")) {
        (Some(_), _) => Health::Ready,
        (None, Some(failed)) => Health::Failed(failed.message()),
        (None, None) => {
            let wanted = number(object, "/spec/completions").unwrap_or(1);
            let reached = status(object, "succeeded");
            Health::Waiting(format!("{reached} of {wanted} completions are reached"))
        }
    }
}

fn definition(object: &Value) -> Health {
    let is_false = |kind| condition(object, kind).filter(|condition| condition.is("False"));
    match (is_false("NamesAccepted"), is_false("Established")) {
        (Some(refused), _) => Health::Failed(refused.message()),
        // `NotAccepted` lasts for a moment after the names have been accepted.
        (None, Some(refused)) if !["Installing", "NotAccepted"].contains(&refused.reason()) => {
            Health::Failed(refused.message())
        }
        (None, _) => by_condition(object, "Established"),
    }
}

#[cfg(test)]
mod tests;
