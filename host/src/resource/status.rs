//! What the host reports about a Configurator.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a Configurator, as its hosts report it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguratorStatus {
    /// The generation that the conditions describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How objects pass through the phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ModeStatus>,
    /// The first 12 digits of `moduleDigest`, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The digest of the module that runs. During a canary, the digest of the stable module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_digest: Option<String>,
    /// The digest of the module that ran before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_module_digest: Option<String>,
    /// The canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStatus>,
    /// The canary that was rolled back last. It does not become a canary again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<RolledBackStatus>,
    /// The conditions Ready, Reconciling, Stalled, ModuleLoaded, Bootstrapped, Degraded and Permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The numbers of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsStatus>,
    /// Objects that failed, the newest last; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureStatus>,
    /// Objects that are delayed because a server refused a request for now, the newest refusal last; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<DelayStatus>,
    /// The report of each host, if several hosts share the objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hosts: Vec<HostStatus>,
}

/// How objects pass through the phases.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeStatus {
    /// Each run passes the phases of a chain.
    Chain,
    /// Each object is in one of the phases of a machine.
    Machine,
}

/// A canary.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// Its digest.
    pub digest: String,
    /// The percentage of objects that it handles.
    pub percent: u8,
    /// When it started.
    pub since: String,
    /// The number of its finished runs.
    pub runs: u32,
    /// How many of them were faulty.
    pub faults: u32,
    /// What its promotion waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub awaits: String,
}

/// The progress of a canary on one of several hosts.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HostCanaryStatus {
    /// Its digest.
    pub digest: String,
    /// The number of its finished runs there.
    pub runs: u32,
    /// How many of them were faulty.
    pub faults: u32,
    /// The number of objects that it handles there; absent until all objects are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u32>,
    /// How many of them have not finished a run of it yet.
    pub awaited: u32,
}

/// A canary that was rolled back.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolledBackStatus {
    /// Its digest.
    pub digest: String,
    /// Why.
    pub message: String,
}

/// The report of one of several hosts on its objects.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// The name of the host in its Leases.
    pub name: String,
    /// The generation that the report describes.
    pub observed_generation: i64,
    /// The number of its shards.
    pub shards: u16,
    /// Whether it has listed its objects.
    pub is_listed: bool,
    /// Whether all objects that existed at its start have settled.
    pub is_bootstrapped: bool,
    /// The numbers of its objects.
    pub counts: CountsStatus,
    /// Why it is degraded, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<DegradedStatus>,
    /// The digest of the module that its objects have. During a canary, the digest of the stable module. When one host promotes the canary, the
    /// others follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_digest: Option<String>,
    /// The progress of the canary on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<HostCanaryStatus>,
    /// The canary that was rolled back last. The other hosts roll it back as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<RolledBackStatus>,
    /// Its objects that failed, the newest last; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureStatus>,
    /// Its objects that are delayed because a server refused a request for now, the newest refusal last; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<DelayStatus>,
}

/// Why a host is degraded.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DegradedStatus {
    /// The reason, in CamelCase.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// The numbers of objects.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CountsStatus {
    /// Existing objects.
    pub objects: u64,
    /// Objects that failed.
    pub failed: u64,
    /// Objects that are delayed because a server refused a request for now. They are retried without limit.
    #[serde(default)]
    pub delayed: u64,
}

/// An object that failed. It is processed again at its next change or resync.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatus {
    /// The namespace of the object. Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object.
    pub uid: String,
    /// The request that failed. Empty if the handler failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The kind of fault.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The number of failed attempts.
    pub attempts: u32,
    /// When it failed.
    pub time: String,
}

/// An object that is delayed because a server refused a request for now, or did not answer. It is retried after a growing wait. This consumes no
/// attempt.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DelayStatus {
    /// The namespace of the object. Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object.
    pub uid: String,
    /// The request that was refused. Empty if it was a request of the host itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The kind of fault.
    pub kind: String,
    /// The message of the server.
    pub message: String,
    /// The number of consecutive refusals.
    pub refusals: u32,
    /// When it was last refused.
    pub time: String,
}
