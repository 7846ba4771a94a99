//! Rows of Pods and of what makes them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    age::{human_duration, seconds_since, since},
    builtin::{age, condition, count, flag, int, labels, list, name, or_none, selector, str, text},
};

pub(super) fn pod(o: &Value, now: Timestamp) -> Vec<Value> {
    let summary = PodSummary::of(o);
    let restarts = match summary.last_restart {
        Some(time) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, since(Some(time), now))
        }
        _ => summary.restarts.to_string(),
    };
    let or = |pointer: &str| json!(or_none(str(o, pointer).to_owned()));
    let gates = list(o, "/spec/readinessGates");
    let open = gates
        .iter()
        .filter(|g| condition(o, str(g, "/conditionType")) == Some("True"))
        .count();
    let gates = if gates.is_empty() {
        "<none>".to_owned()
    } else {
        format!("{open}/{}", gates.len())
    };
    vec![
        name(o),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        age(o, now),
        or("/status/podIPs/0/ip"),
        or("/spec/nodeName"),
        or("/status/nominatedNodeName"),
        json!(gates),
    ]
}

/// What a Pod's containers amount to.
struct PodSummary<'a> {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<&'a Value>,
}

impl<'a> PodSummary<'a> {
    fn of(o: &'a Value) -> PodSummary<'a> {
        let init = list(o, "/spec/initContainers");
        let sidecar = |name: &str| {
            init.iter()
                .any(|c| str(c, "/name") == name && str(c, "/restartPolicy") == "Always")
        };
        let mut summary = PodSummary {
            reason: match str(o, "/status/reason") {
                "" => str(o, "/status/phase").to_owned(),
                reason => reason.to_owned(),
            },
            ready: 0,
            total: count(o, "/spec/containers")
                + init
                    .iter()
                    .filter(|c| str(c, "/restartPolicy") == "Always")
                    .count(),
            restarts: 0,
            last_restart: None,
        };
        let scheduled = list(o, "/status/conditions")
            .iter()
            .find(|c| str(c, "/type") == "PodScheduled");
        if scheduled.is_some_and(|c| str(c, "/reason") == "SchedulingGated") {
            "SchedulingGated".clone_into(&mut summary.reason);
        }
        let (mut side_restarts, mut side_last) = (0, None);
        let mut initializing = false;
        for (at, status) in list(o, "/status/initContainerStatuses").iter().enumerate() {
            summary.count_restarts(status);
            let is_sidecar = sidecar(str(status, "/name"));
            if is_sidecar {
                side_restarts += int(status, "/restartCount");
                side_last = later(
                    side_last,
                    status.pointer("/lastState/terminated/finishedAt"),
                );
            }
            let terminated = status.pointer("/state/terminated");
            if terminated.is_some_and(|t| int(t, "/exitCode") == 0) {
                continue;
            }
            if is_sidecar && flag(status, "/started") {
                summary.ready += usize::from(flag(status, "/ready"));
                continue;
            }
            let waiting = str(status, "/state/waiting/reason");
            summary.reason = match terminated {
                Some(t) => format!("Init:{}", exit(t)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{at}/{}", init.len()),
            };
            initializing = true;
            break;
        }
        if !initializing || condition(o, "Initialized") == Some("True") {
            summary.restarts = side_restarts;
            summary.last_restart = side_last;
            summary.containers(o);
        }
        if o.pointer("/metadata/deletionTimestamp").is_some() {
            if str(o, "/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !matches!(str(o, "/status/phase"), "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    fn containers(&mut self, o: &'a Value) {
        let (mut running, mut error) = (false, None);
        for status in list(o, "/status/containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waiting = str(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status.pointer("/state/terminated") {
                self.reason = exit(terminated);
                if int(terminated, "/exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if flag(status, "/ready") && status.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && condition(o, "Ready") == Some("True") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(error) = error {
                self.reason = error;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }

    fn count_restarts(&mut self, status: &'a Value) {
        self.restarts += int(status, "/restartCount");
        self.last_restart = later(
            self.last_restart,
            status.pointer("/lastState/terminated/finishedAt"),
        );
    }
}

/// Why a container ended.
fn exit(terminated: &Value) -> String {
    match (str(terminated, "/reason"), int(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", int(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Times in one format sort as text.
fn later<'a>(a: Option<&'a Value>, b: Option<&'a Value>) -> Option<&'a Value> {
    if b.and_then(Value::as_str) > a.and_then(Value::as_str) {
        b
    } else {
        a
    }
}

/// The names and the images of containers.
fn containers(o: &Value, pointer: &str) -> [Value; 2] {
    let join = |field: &str| {
        let all: Vec<&str> = list(o, pointer).iter().map(|c| str(c, field)).collect();
        json!(all.join(","))
    };
    [join("/name"), join("/image")]
}

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(super) fn deployment(o: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(o, TEMPLATE);
    vec![
        name(o),
        json!(format!(
            "{}/{}",
            int(o, "/status/readyReplicas"),
            int(o, "/spec/replicas")
        )),
        json!(int(o, "/status/updatedReplicas")),
        json!(int(o, "/status/availableReplicas")),
        age(o, now),
        names,
        images,
        json!(selector(o, "/spec/selector")),
    ]
}

pub(super) fn replica_set(o: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(o, TEMPLATE);
    // The old kind selects by plain labels.
    let selector = if o.pointer("/spec/selector/matchLabels").is_some()
        || o.pointer("/spec/selector/matchExpressions").is_some()
    {
        selector(o, "/spec/selector")
    } else {
        labels(o, "/spec/selector")
    };
    vec![
        name(o),
        json!(int(o, "/spec/replicas")),
        json!(int(o, "/status/replicas")),
        json!(int(o, "/status/readyReplicas")),
        age(o, now),
        names,
        images,
        json!(selector),
    ]
}

pub(super) fn stateful_set(o: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(o, TEMPLATE);
    vec![
        name(o),
        json!(format!(
            "{}/{}",
            int(o, "/status/readyReplicas"),
            int(o, "/spec/replicas")
        )),
        age(o, now),
        names,
        images,
    ]
}

pub(super) fn daemon_set(o: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(o, TEMPLATE);
    vec![
        name(o),
        json!(int(o, "/status/desiredNumberScheduled")),
        json!(int(o, "/status/currentNumberScheduled")),
        json!(int(o, "/status/numberReady")),
        json!(int(o, "/status/updatedNumberScheduled")),
        json!(int(o, "/status/numberAvailable")),
        json!(labels(o, "/spec/template/spec/nodeSelector")),
        age(o, now),
        names,
        images,
        json!(selector(o, "/spec/selector")),
    ]
}

pub(super) fn job(o: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = int(o, "/status/succeeded");
    let completions = match o.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(all) => format!("{succeeded}/{all}"),
        None => match int(o, "/spec/parallelism") {
            many if many > 1 => format!("{succeeded}/1 of {many}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let end = o
        .pointer("/status/completionTime")
        .and_then(Value::as_str)
        .and_then(|t| t.parse().ok())
        .unwrap_or(now);
    let duration = seconds_since(o.pointer("/status/startTime"), end)
        .map(human_duration)
        .unwrap_or_default();
    let holds = |kind: &str| condition(o, kind) == Some("True");
    let status = if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if o.pointer("/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
            .into_iter()
            .find(|kind| holds(kind))
            .unwrap_or("Running")
    };
    let [names, images] = containers(o, TEMPLATE);
    vec![
        name(o),
        json!(status),
        json!(completions),
        json!(duration),
        age(o, now),
        names,
        images,
        json!(selector(o, "/spec/selector")),
    ]
}

pub(super) fn cron_job(o: &Value, now: Timestamp) -> Vec<Value> {
    let last = o
        .pointer("/status/lastScheduleTime")
        .map_or_else(|| "<none>".to_owned(), |t| since(Some(t), now));
    let [names, images] = containers(o, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        name(o),
        text(o, "/spec/schedule"),
        json!(or_none(str(o, "/spec/timeZone").to_owned())),
        json!(flag(o, "/spec/suspend")),
        json!(count(o, "/status/active")),
        json!(last),
        age(o, now),
        names,
        images,
        json!(selector(o, "/spec/jobTemplate/spec/selector")),
    ]
}

pub(super) fn pod_template(o: &Value, _now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(o, "/template/spec/containers");
    vec![
        name(o),
        names,
        images,
        json!(labels(o, "/template/metadata/labels")),
    ]
}

pub(super) fn autoscaler(o: &Value, now: Timestamp) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        str(o, "/spec/scaleTargetRef/kind"),
        str(o, "/spec/scaleTargetRef/name")
    );
    let min = o
        .pointer("/spec/minReplicas")
        .and_then(Value::as_i64)
        .map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
    vec![
        name(o),
        json!(reference),
        json!(targets(o)),
        json!(min),
        json!(int(o, "/spec/maxReplicas")),
        json!(int(o, "/status/currentReplicas")),
        age(o, now),
    ]
}

/// What an autoscaler measures, against what it wants.
fn targets(o: &Value) -> String {
    if let Some(target) = o
        .pointer("/spec/targetCPUUtilizationPercentage")
        .and_then(Value::as_i64)
    {
        let current = o
            .pointer("/status/currentCPUUtilizationPercentage")
            .and_then(Value::as_i64);
        return format!(
            "cpu: {}/{target}%",
            current.map_or_else(|| "<unknown>".to_owned(), |c| format!("{c}%"))
        );
    }
    let specs = list(o, "/spec/metrics");
    let mut shown: Vec<String> = Vec::new();
    for (at, spec) in specs.iter().enumerate().take(2) {
        let (field, named) = match str(spec, "/type") {
            "Resource" => ("resource", true),
            "ContainerResource" => ("containerResource", true),
            "Pods" => ("pods", false),
            "Object" => ("object", false),
            "External" => ("external", false),
            _ => {
                shown.push("<unknown type>".to_owned());
                continue;
            }
        };
        let source = spec.get(field).cloned().unwrap_or_default();
        let status = list(o, "/status/currentMetrics")
            .get(at)
            .and_then(|s| s.get(field))
            .cloned()
            .unwrap_or_default();
        let value = |from: &Value, part: &str, name: &str| {
            from.pointer(&format!("/{part}/{name}")).cloned()
        };
        let words = |v: Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        let average = value(&source, "target", "averageValue");
        let utilization = value(&source, "target", "averageUtilization");
        let (current, target) = if let Some(target) = average {
            (
                value(&status, "current", "averageValue").map(words),
                words(target),
            )
        } else if named {
            let percent = |v: Value| format!("{v}%");
            (
                value(&status, "current", "averageUtilization").map(percent),
                utilization.map_or_else(|| "<auto>".to_owned(), percent),
            )
        } else {
            (
                value(&status, "current", "value").map(words),
                value(&source, "target", "value")
                    .map(words)
                    .unwrap_or_default(),
            )
        };
        let pair = format!(
            "{}/{target}",
            current.unwrap_or_else(|| "<unknown>".to_owned())
        );
        let by_average = source.pointer("/target/averageValue").is_some()
            && matches!(field, "object" | "external");
        shown.push(match (named, by_average) {
            (true, _) => format!("{}: {pair}", str(&source, "/name")),
            (false, true) => format!("{pair} (avg)"),
            (false, false) => pair,
        });
    }
    match (shown.is_empty(), specs.len()) {
        (true, _) => "<none>".to_owned(),
        (false, all) if all > 2 => format!("{} + {} more...", shown.join(", "), all - 2),
        _ => shown.join(", "),
    }
}
