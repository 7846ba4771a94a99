//! Workloads: objects with a template of Pods.

use serde_json::{Map, Value};

use crate::object::Object;

/// The Pods of a workload.
pub(super) struct Workload<'a> {
    pub(super) pod_spec: &'a Value,
    labels: Option<&'a Map<String, Value>>,
}

impl<'a> Workload<'a> {
    /// `None`: the object has no Pods.
    pub(super) fn of(object: &'a Object) -> Option<Self> {
        let template = match (&*object.group, &*object.kind) {
            ("", "Pod") => "",
            ("", "ReplicationController")
            | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job") => "/spec/template",
            ("batch", "CronJob") => "/spec/jobTemplate/spec/template",
            _ => return None,
        };
        let template = object.content.pointer(template)?;
        Some(Self {
            pod_spec: template.get("spec")?,
            labels: template
                .pointer("/metadata/labels")
                .and_then(Value::as_object),
        })
    }

    /// Returns whether its Pods have all these labels. An empty selector matches none.
    pub(super) fn has(&self, labels: &Map<String, Value>) -> bool {
        let has = |(name, value)| self.labels.and_then(|labels| labels.get(name)) == Some(value);
        !labels.is_empty() && labels.iter().all(has)
    }
}
