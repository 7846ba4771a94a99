//! Rules of what makes Pods: Deployments and their like, Jobs, autoscalers.

use serde_json::Value;

use super::{
    pod_rules,
    rules::{Report, list, text},
};
use crate::{FieldError, metadata};

impl Report {
    pub(super) fn workload(&mut self, kind: &str, spec: &Value, old: Option<&Value>) {
        self.not_negative(spec, "replicas", "spec");
        self.not_negative(spec, "minReadySeconds", "spec");
        self.not_negative(spec, "revisionHistoryLimit", "spec");
        self.not_negative(spec, "progressDeadlineSeconds", "spec");
        let seconds = |name: &str| spec.get(name).and_then(Value::as_i64);
        if kind == "Deployment"
            && let Some(deadline) = seconds("progressDeadlineSeconds")
            && deadline <= seconds("minReadySeconds").unwrap_or(0)
        {
            self.invalid(
                "spec.progressDeadlineSeconds",
                &deadline.into(),
                "must be greater than minReadySeconds",
            );
        }
        let strategy = spec.get("strategy").unwrap_or(&Value::Null);
        if kind == "Deployment"
            && text(strategy, "type") == "Recreate"
            && strategy.get("rollingUpdate").is_some()
        {
            self.errors.push(FieldError::forbidden(
                "spec.strategy.rollingUpdate",
                "may not be specified when strategy `type` is 'Recreate'",
            ));
        }
        match kind {
            "Deployment" => self.one_of(
                spec.get("strategy").unwrap_or(&Value::Null),
                "type",
                "spec.strategy",
                &["Recreate", "RollingUpdate"],
            ),
            "StatefulSet" | "DaemonSet" => {
                self.one_of(
                    spec.get("updateStrategy").unwrap_or(&Value::Null),
                    "type",
                    "spec.updateStrategy",
                    &["OnDelete", "RollingUpdate"],
                );
            }
            _ => {}
        }
        self.one_of(
            spec,
            "podManagementPolicy",
            "spec",
            &["OrderedReady", "Parallel"],
        );
        self.matching_selector(kind, spec);
        self.template(
            spec.get("template").unwrap_or(&Value::Null),
            "spec.template",
            &["Always"],
        );
        let Some(old) = old else { return };
        if kind == "StatefulSet" {
            let frozen = |s: &Value| {
                let mut s = s.clone();
                if let Value::Object(map) = &mut s {
                    for name in [
                        "replicas",
                        "ordinals",
                        "template",
                        "updateStrategy",
                        "revisionHistoryLimit",
                        "persistentVolumeClaimRetentionPolicy",
                        "minReadySeconds",
                    ] {
                        map.remove(name);
                    }
                }
                s
            };
            if frozen(spec) != frozen(old) {
                self.errors.push(FieldError::forbidden(
                    "spec",
                    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                     'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
                ));
            }
        } else {
            self.immutable(spec.get("selector"), old.get("selector"), "spec.selector");
        }
    }

    fn matching_selector(&mut self, kind: &str, spec: &Value) {
        let Some(selector) = spec.get("selector") else {
            if kind != "DaemonSet" {
                self.required("spec.selector", "");
            }
            self.unmatched(spec);
            return;
        };
        self.selector(selector, "spec.selector");
        let map = selector.get("matchLabels").and_then(Value::as_object);
        if map.is_none_or(serde_json::Map::is_empty)
            && list(selector, "matchExpressions").is_empty()
        {
            self.invalid(
                "spec.selector",
                selector,
                format!("empty selector is invalid for {}", kind.to_lowercase()),
            );
            return;
        }
        let labels = spec
            .pointer("/template/metadata/labels")
            .cloned()
            .unwrap_or_else(|| serde_json::json!({}));
        if !selects(selector, &labels) {
            self.unmatched(spec);
        }
    }

    fn unmatched(&mut self, spec: &Value) {
        let labels = spec
            .pointer("/template/metadata/labels")
            .unwrap_or(&Value::Null);
        self.invalid(
            "spec.template.metadata.labels",
            labels,
            "`selector` does not match template `labels`",
        );
    }

    fn selector(&mut self, selector: &Value, path: &str) {
        self.selector_labels(selector.get("matchLabels"), &format!("{path}.matchLabels"));
        for (at, rule) in list(selector, "matchExpressions").iter().enumerate() {
            let path = format!("{path}.matchExpressions[{at}]");
            let values = list(rule, "values").len();
            match text(rule, "operator") {
                "In" | "NotIn" if values == 0 => {
                    self.required(
                        format!("{path}.values"),
                        "must be specified when `operator` is 'In' or 'NotIn'",
                    );
                }
                "Exists" | "DoesNotExist" if values > 0 => self.errors.push(FieldError::forbidden(
                    format!("{path}.values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )),
                "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
                _ => self.invalid(
                    format!("{path}.operator"),
                    rule.get("operator").unwrap_or(&"".into()),
                    "not a valid selector operator",
                ),
            }
        }
    }

    fn template(&mut self, template: &Value, path: &str, restart: &[&str]) {
        metadata::labels(
            template.pointer("/metadata/labels"),
            &format!("{path}.metadata.labels"),
            &mut self.errors,
        );
        let spec = template.get("spec").unwrap_or(&Value::Null);
        let path = format!("{path}.spec");
        pod_rules::spec(self, spec, &path);
        if let Some(policy) = spec.get("restartPolicy")
            && ["Always", "Never", "OnFailure"].contains(&policy.as_str().unwrap_or_default())
            && !policy.as_str().is_some_and(|p| restart.contains(&p))
        {
            let place = format!("{path}.restartPolicy");
            self.errors.push(match restart {
                // What is the default elsewhere is as good as absent.
                ["OnFailure", "Never"] if policy == "Always" => {
                    FieldError::required(place, "valid values: \"OnFailure\", \"Never\"")
                }
                _ => FieldError::not_supported(place, policy, restart.iter().copied()),
            });
        }
    }

    pub(super) fn job(&mut self, spec: &Value, old: Option<&Value>, path: &str) {
        for name in [
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
        ] {
            self.not_negative(spec, name, path);
        }
        self.template(
            spec.get("template").unwrap_or(&Value::Null),
            &format!("{path}.template"),
            &["OnFailure", "Never"],
        );
        if let Some(old) = old {
            for name in ["template", "selector", "completionMode", "podFailurePolicy"] {
                self.immutable(spec.get(name), old.get(name), &format!("{path}.{name}"));
            }
            if text(spec, "completionMode") != "Indexed" {
                self.immutable(
                    spec.get("completions"),
                    old.get("completions"),
                    &format!("{path}.completions"),
                );
            }
        }
    }

    pub(super) fn cron_job(&mut self, spec: &Value) {
        let schedule = text(spec, "schedule");
        let fields: Vec<&str> = schedule.split_whitespace().collect();
        if schedule.is_empty() {
            self.required("spec.schedule", "");
        } else if !schedule.starts_with('@') && fields.len() != 5 {
            let detail = format!(
                "expected exactly 5 fields, found {}: [{}]",
                fields.len(),
                fields.join(" ")
            );
            self.invalid("spec.schedule", &schedule.into(), detail);
        }
        self.one_of(
            spec,
            "concurrencyPolicy",
            "spec",
            &["Allow", "Forbid", "Replace"],
        );
        self.not_negative(spec, "successfulJobsHistoryLimit", "spec");
        self.not_negative(spec, "failedJobsHistoryLimit", "spec");
        self.job(
            spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null),
            None,
            "spec.jobTemplate.spec",
        );
    }

    pub(super) fn autoscaler(&mut self, spec: &Value) {
        let number = |name: &str| spec.get(name).and_then(Value::as_i64);
        let (min, max) = (
            number("minReplicas").unwrap_or(1),
            number("maxReplicas").unwrap_or(0),
        );
        if min < 1 {
            self.invalid(
                "spec.minReplicas",
                &min.into(),
                "must be greater than or equal to 1",
            );
        }
        if max < 1 {
            self.invalid("spec.maxReplicas", &max.into(), "must be greater than 0");
        } else if max < min {
            self.invalid(
                "spec.maxReplicas",
                &max.into(),
                "must be greater than or equal to `minReplicas`",
            );
        }
        for name in ["kind", "name"] {
            if text(spec.get("scaleTargetRef").unwrap_or(&Value::Null), name).is_empty() {
                self.required(format!("spec.scaleTargetRef.{name}"), "");
            }
        }
    }
}

/// Whether a label selector matches labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let pairs = selector.get("matchLabels").and_then(Value::as_object);
    pairs
        .into_iter()
        .flatten()
        .all(|(k, v)| labels.get(k) == Some(v))
        && list(selector, "matchExpressions").iter().all(|rule| {
            let value = labels.get(text(rule, "key"));
            let among = || value.is_some_and(|v| list(rule, "values").contains(v));
            match text(rule, "operator") {
                "In" => among(),
                "NotIn" => !among(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => true,
            }
        })
}
