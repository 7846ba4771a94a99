//! The status of a Configurator: conditions, numbers, failures.

mod published;

use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use serde::Serialize;
use serde_json::json;

pub use self::published::{Published, Transition, transitions};
use super::rights::Verdict;
use super::worker::{MAX_LISTED, WorkerReport};
use crate::objects::{self, Written};
use crate::resource::{
    self, CanaryStatus, ConfiguratorStatus, CountsStatus, DegradedStatus, DelayStatus,
    FailureStatus, HostCanaryStatus, HostStatus, ModeStatus, RolledBackStatus,
};

/// The field manager of the status of Configurators.
pub const MANAGER: &str = "configurator-host";

/// The largest size of a list of objects in a status, in bytes. Servers refuse objects above 1.5 MiB or so.
const MAX_LIST_SIZE: usize = 64 << 10;

/// The largest size of the lists of objects of all hosts together, in bytes.
const MAX_HOST_LISTS_SIZE: usize = 512 << 10;

/// The number of digits of a short digest.
const SHORT_DIGEST: usize = 12;

/// Names of conditions.
pub mod conditions {
    /// The newest generation runs, and its objects are listed.
    pub const READY: &str = "Ready";
    /// The host works towards the newest generation.
    pub const RECONCILING: &str = "Reconciling";
    /// The newest generation cannot run until someone changes it.
    pub const STALLED: &str = "Stalled";
    /// The module of this generation was fetched, checked and described.
    pub const MODULE_LOADED: &str = "ModuleLoaded";
    /// Every object that existed at start has settled.
    pub const BOOTSTRAPPED: &str = "Bootstrapped";
    /// Something is wrong that does not stop it.
    pub const DEGRADED: &str = "Degraded";
    /// The cluster allows what it needs.
    pub const PERMITTED: &str = "Permitted";
    /// Each of them.
    pub const ALL: [&str; 7] = [
        READY,
        RECONCILING,
        STALLED,
        MODULE_LOADED,
        BOOTSTRAPPED,
        DEGRADED,
        PERMITTED,
    ];
}

/// Why the newest generation of a Configurator does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, in CamelCase.
    pub reason: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
    /// Whether the cause may disappear without a change of the Configurator, so that the host retries.
    pub may_change: bool,
    /// Whether somebody else does not allow it, so that an earlier generation may not go on either.
    pub is_denial: bool,
}

impl Refusal {
    /// Makes one that only a change of the Configurator ends.
    pub(crate) fn new(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            message,
            may_change: false,
            is_denial: false,
        }
    }

    /// Makes one that the host retries, while an earlier generation goes on.
    pub(crate) fn for_now(reason: &'static str, message: String) -> Self {
        Self {
            may_change: true,
            ..Self::new(reason, message)
        }
    }

    /// Makes one by which somebody else does not allow the Configurator: the host stops an earlier generation, and retries.
    pub(crate) fn denied(reason: &'static str, message: String) -> Self {
        Self {
            is_denial: true,
            ..Self::for_now(reason, message)
        }
    }

    /// Whether it holds until somebody changes something. The host retries all the same if it may not be the Configurator that is changed.
    fn is_final(&self) -> bool {
        self.is_denial || !self.may_change
    }
}

/// What is known of a Configurator.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The newest generation.
    pub generation: i64,
    /// How objects pass through the phases of the newest generation.
    pub mode: Option<ModeStatus>,
    /// The generation that runs, with its module's digest.
    pub running: Option<(i64, String)>,
    /// Whether no new runs begin.
    pub is_suspended: bool,
    /// Why the newest one does not.
    pub refusal: Option<Refusal>,
    /// The digest of the module that most objects have, or had before the host began.
    pub stable: Option<String>,
    /// The digest of the module that ran before.
    pub previous: Option<String>,
    /// The canary, with its progress on all hosts.
    pub canary: Option<CanaryStatus>,
    /// The progress of the canary on this host.
    pub own_canary: Option<HostCanaryStatus>,
    /// The canary that was rolled back last.
    pub rolled_back: Option<RolledBackStatus>,
    /// Why the module that runs may be older than what its source has.
    pub old_module: Option<String>,
    /// What the worker says.
    pub report: WorkerReport,
    /// What the cluster says of its rights.
    pub permitted: Option<Verdict>,
}

impl Known {
    /// Why the newest generation does not run. If only a newer module of the generation that runs was refused, the generation
    /// continues with the module that it has, so there is no obstacle.
    fn obstacle(&self) -> Option<&Refusal> {
        let runs_newest = self
            .running
            .as_ref()
            .is_some_and(|(generation, _)| *generation == self.generation);
        self.refusal.as_ref().filter(|_| !runs_newest)
    }
}

/// The status that says what is known here, and what `others` say that have a part of the objects. Times of conditions
/// that did not change are taken from `before`: since when they have had their statuses.
#[must_use]
pub fn status_of(
    known: &Known,
    others: &[HostStatus],
    before: &[Transition],
    now: Timestamp,
) -> ConfiguratorStatus {
    let conditions = [
        (conditions::READY, told_ready(ready(known, others))),
        (conditions::RECONCILING, told(reconciling(known, others))),
        (conditions::STALLED, told(stalled(known))),
        (conditions::MODULE_LOADED, told(module_loaded(known))),
        (conditions::BOOTSTRAPPED, told(bootstrapped(known, others))),
        (conditions::DEGRADED, told(degraded(known, others))),
        (conditions::PERMITTED, permitted(known)),
    ];
    let conditions = conditions
        .into_iter()
        .map(|(name, (status, reason, message))| {
            let since = Transition::of(before, name, status);
            let since = since.cloned().unwrap_or_else(|| time(now));
            Condition {
                type_: name.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message,
                observed_generation: Some(known.generation),
                last_transition_time: since,
            }
        })
        .collect();
    let digest = module_digest(known);
    ConfiguratorStatus {
        observed_generation: Some(known.generation),
        mode: known.mode,
        module: digest.as_deref().map(short),
        module_digest: digest,
        previous_module_digest: known.previous.clone(),
        canary: known.canary.clone(),
        rolled_back: known.rolled_back.clone(),
        conditions,
        counts: Some(counts(known, others)),
        failures: failures(known, others),
        delayed: delayed(known, others),
        hosts: Vec::new(),
    }
}

/// What this host says for itself, if `hosts` hosts share the objects.
#[must_use]
pub fn host_status(known: &Known, name: &str, shards: u16, hosts: usize) -> HostStatus {
    // Each host has two lists.
    let room = MAX_HOST_LISTS_SIZE / hosts.max(1) / 2;
    let report = &known.report;
    let refusal = known.refusal.as_ref();
    let refusal = refusal.map(|refusal| (true, refusal.reason, refusal.message.clone()));
    let (is_degraded, reason, message) = refusal.unwrap_or_else(|| degraded(known, &[]));
    HostStatus {
        name: name.to_owned(),
        observed_generation: known.generation,
        shards,
        is_listed: report.is_listed,
        is_bootstrapped: report.is_bootstrapped,
        counts: counts(known, &[]),
        degraded: is_degraded.then(|| DegradedStatus {
            reason: reason.to_owned(),
            message,
        }),
        module_digest: module_digest(known),
        canary: known.own_canary.clone(),
        rolled_back: known.rolled_back.clone(),
        failures: newest(report.failures.clone(), |failure| &failure.time, room),
        delayed: newest(report.delayed.clone(), |delay| &delay.time, room),
    }
}

/// Returns the digest of the stable module. While nothing runs, it is the one that ran before the host started, so that a canary can start
/// beside it.
fn module_digest(known: &Known) -> Option<String> {
    let running = known.running.as_ref().map(|(_, digest)| digest);
    running.or(known.stable.as_ref()).cloned()
}

/// The first digits of a digest.
fn short(digest: &str) -> String {
    let digits = digest.rsplit(':').next().unwrap_or_default();
    digits.chars().take(SHORT_DIGEST).collect()
}

fn counts(known: &Known, others: &[HostStatus]) -> CountsStatus {
    let own = known.report.counts;
    let mut counts = CountsStatus {
        objects: own.objects as u64,
        failed: own.failed as u64,
        delayed: own.delayed as u64,
    };
    for other in others {
        counts.objects = counts.objects.saturating_add(other.counts.objects);
        counts.failed = counts.failed.saturating_add(other.counts.failed);
        counts.delayed = counts.delayed.saturating_add(other.counts.delayed);
    }
    counts
}

fn failures(known: &Known, others: &[HostStatus]) -> Vec<FailureStatus> {
    let others = others.iter().flat_map(|other| &other.failures);
    let all = known.report.failures.iter().chain(others).cloned();
    newest(all.collect(), |failure| &failure.time, MAX_LIST_SIZE)
}

fn delayed(known: &Known, others: &[HostStatus]) -> Vec<DelayStatus> {
    let others = others.iter().flat_map(|other| &other.delayed);
    let all = known.report.delayed.iter().chain(others).cloned();
    newest(all.collect(), |delay| &delay.time, MAX_LIST_SIZE)
}

/// The newest of these, the newest last: at most [`MAX_LISTED`], and as many as fit into `room`, in bytes.
fn newest<T: Serialize>(mut all: Vec<T>, time: impl Fn(&T) -> &str, mut room: usize) -> Vec<T> {
    all.sort_by(|one, other| time(one).cmp(time(other)));
    let mut fits = |one: &&T| {
        let size = serde_json::to_vec(one).map_or(0, |text| text.len());
        let rest = room.checked_sub(size);
        room = rest.unwrap_or_default();
        rest.is_some()
    };
    let shown = all.iter().rev().take(MAX_LISTED);
    let shown = shown.take_while(|one| fits(one)).count();
    all.split_off(all.len().saturating_sub(shown))
}

fn ready(known: &Known, others: &[HostStatus]) -> (bool, &'static str, String) {
    match (&known.running, known.obstacle()) {
        (None, Some(refusal)) => (false, refusal.reason, refusal.message.clone()),
        (None, None) => (false, "Loading", "the module is being loaded".into()),
        (Some(_), _) if !known.report.is_listed => match &known.report.watch_error {
            Some(error) => (false, "WatchFailed", error.clone()),
            None => (
                false,
                "Listing",
                "the watched objects are being listed".into(),
            ),
        },
        (Some(_), _) if others.iter().any(|other| !other.is_listed) => (
            false,
            "Listing",
            "the watched objects are being listed by other hosts".into(),
        ),
        (Some((generation, _)), Some(refusal)) => (
            false,
            "RunningPrevious",
            format!(
                "generation {generation} continues to run, because the newest one cannot: {}",
                refusal.reason
            ),
        ),
        (Some(_), None) if known.is_suspended => (
            false,
            "Suspended",
            "spec.suspend is true: no new runs start".into(),
        ),
        (Some(_), None) => (true, "Running", "runs start when objects change".into()),
    }
}

/// As [`told`]. While it is loaded, or its objects are listed, it is unknown whether it will be ready.
fn told_ready(
    (is_ready, reason, message): (bool, &'static str, String),
) -> (&'static str, &'static str, String) {
    match reason {
        "Loading" | "Listing" => ("Unknown", reason, message),
        _ => told((is_ready, reason, message)),
    }
}

fn reconciling(known: &Known, others: &[HostStatus]) -> (bool, &'static str, String) {
    if let Some(refusal) = known.obstacle() {
        return match refusal.is_final() {
            false => (true, refusal.reason, refusal.message.clone()),
            true => (false, "Stalled", String::new()),
        };
    }
    match ready(known, others) {
        (false, reason, message) if reason != "Suspended" => (true, reason, message),
        _ => (false, "AsExpected", String::new()),
    }
}

fn stalled(known: &Known) -> (bool, &'static str, String) {
    match known.obstacle() {
        Some(refusal) if refusal.is_final() => (true, refusal.reason, refusal.message.clone()),
        _ => (false, "AsExpected", String::new()),
    }
}

fn module_loaded(known: &Known) -> (bool, &'static str, String) {
    match (&known.refusal, &known.running) {
        (Some(refusal), Some((generation, _))) => (
            false,
            refusal.reason,
            format!(
                "{}; generation {generation} goes on running",
                refusal.message
            ),
        ),
        (Some(refusal), None) => (false, refusal.reason, refusal.message.clone()),
        (None, Some((_, digest))) if known.rolled_back.is_some() => {
            let message = known.rolled_back.as_ref().map(|one| one.message.as_str());
            let message = message.unwrap_or_default();
            (
                false,
                "RolledBack",
                format!("{message}; {digest} goes on running"),
            )
        }
        (None, Some((_, digest))) => match &known.old_module {
            None => (true, "Loaded", format!("{digest} is loaded")),
            Some(why) => (
                true,
                "SourceUnavailable",
                format!("{digest} is loaded, and may be old: {why}"),
            ),
        },
        (None, None) => (false, "Loading", "the module is being loaded".into()),
    }
}

fn bootstrapped(known: &Known, others: &[HostStatus]) -> (bool, &'static str, String) {
    if known.report.is_bootstrapped && others.iter().all(|other| other.is_bootstrapped) {
        (
            true,
            "Settled",
            "every object that existed at start has had its turn".into(),
        )
    } else {
        (
            false,
            "Settling",
            "not every object that existed at start has had its turn".into(),
        )
    }
}

fn degraded(known: &Known, others: &[HostStatus]) -> (bool, &'static str, String) {
    let report = &known.report;
    if let (Some(refusal), Some(_)) = (&known.refusal, &known.running) {
        return (true, refusal.reason, refusal.message.clone());
    }
    if let Some(rolled_back) = &known.rolled_back {
        return (true, "RolledBack", rolled_back.message.clone());
    }
    if let Some((sink, why)) = report.parked.first_key_value() {
        return (
            true,
            "SinkUnavailable",
            format!("runs are parked until the {sink} sink is back: {why}"),
        );
    }
    match counts(known, others).failed {
        0 => {}
        1 => {
            let message = "1 object was given up; see status.failures";
            return (true, "ObjectsFailed", message.into());
        }
        number => {
            let message = format!("{number} objects were given up; see status.failures");
            return (true, "ObjectsFailed", message);
        }
    }
    match counts(known, others).delayed {
        0 => {}
        1 => {
            let message = "a server has refused 1 object for now; see status.delayed";
            return (true, "ObjectsDelayed", message.into());
        }
        number => {
            let message =
                format!("servers have refused {number} objects for now; see status.delayed");
            return (true, "ObjectsDelayed", message);
        }
    }
    if let Some(object) = report.looping.first() {
        let changing = match report.looping.len() - 1 {
            0 => format!("{object} keeps"),
            1 => format!("{object} and 1 other keep"),
            others => format!("{object} and {others} others keep"),
        };
        let message = format!(
            "{changing} changing because of the runs that answer each change; these runs are spaced out"
        );
        return (true, "HotLoop", message);
    }
    if let Some(error) = &report.watch_error {
        return (true, "WatchFailed", error.clone());
    }
    if let Some((host, degraded)) = others
        .iter()
        .find_map(|other| Some((&other.name, other.degraded.as_ref()?)))
    {
        let message = format!("at {host}: {}: {}", degraded.reason, degraded.message);
        return (true, "HostDegraded", message);
    }
    (false, "AsExpected", String::new())
}

fn permitted(known: &Known) -> (&'static str, &'static str, String) {
    match &known.permitted {
        Some(verdict) => verdict.condition(),
        None => (
            "Unknown",
            "Asking",
            "the cluster is asked what it allows when the Configurator runs".into(),
        ),
    }
}

/// Of what is either so or not.
fn told(
    (is_true, reason, message): (bool, &'static str, String),
) -> (&'static str, &'static str, String) {
    (if is_true { "True" } else { "False" }, reason, message)
}

fn time(now: Timestamp) -> Time {
    Time(
        k8s_openapi::jiff::Timestamp::from_second(now.as_millis().div_euclid(1000))
            .unwrap_or_default(),
    )
}

/// Writes the status by server-side apply.
///
/// # Errors
/// Those of the API.
pub async fn write(
    client: &Client,
    key: &ObjectRef,
    status: &ConfiguratorStatus,
) -> Result<(), kube::Error> {
    apply(client, key, MANAGER, &json!(status)).await
}

/// Writes what a host says for itself; without anything, what it said is taken away. Gone is gone.
///
/// # Errors
/// Those of the API.
pub async fn write_host(
    client: &Client,
    key: &ObjectRef,
    host: &str,
    status: Option<&HostStatus>,
) -> Result<(), kube::Error> {
    let manager = format!("{MANAGER}/{host}");
    let status = status.map_or_else(|| json!({}), |status| json!({"hosts": [status]}));
    match apply(client, key, &manager, &status).await {
        Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(()),
        applied => applied,
    }
}

async fn apply(
    client: &Client,
    key: &ObjectRef,
    manager: &str,
    status: &serde_json::Value,
) -> Result<(), kube::Error> {
    let kind = resource::kind_of(key);
    let body = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": key.name},
        "status": status,
    });
    let params = PatchParams::apply(manager).force();
    let objects = objects::of(client.clone(), &kind, &key.namespace);
    let patch = Patch::Apply(&body);
    let request = Request::new(objects.resource_url());
    let request = request.patch_subresource("status", &key.name, &params, &patch);
    Written::by(client, request).await.map(drop)
}

#[cfg(test)]
mod tests;
