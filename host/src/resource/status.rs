//! What the host reports about a Configurator.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the host says of a Configurator.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguratorStatus {
    /// The generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
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
    /// Ready, ModuleLoaded, Bootstrapped, Degraded, Permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Numbers of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsStatus>,
    /// Objects that were given up, the newest last; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureStatus>,
    /// Objects that a server has refused for now, those that were refused last at the end; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<DelayStatus>,
    /// Where hosts share the objects: what each says of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hosts: Vec<HostStatus>,
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

/// What one of several hosts says of its objects.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// How the host is called in Leases.
    pub name: String,
    /// The generation that it speaks of.
    pub observed_generation: i64,
    /// How many shards it has.
    pub shards: u16,
    /// Whether its objects are listed.
    pub is_listed: bool,
    /// Whether those that existed when it started have settled.
    pub is_bootstrapped: bool,
    /// Numbers of its objects.
    pub counts: CountsStatus,
    /// What is wrong there, as the reason and message of the condition Degraded.
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
    /// Of its objects that were given up, the newest last; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureStatus>,
    /// Of its objects that a server has refused for now, those that were refused last at the end; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<DelayStatus>,
}

/// What is wrong at a host.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DegradedStatus {
    /// One CamelCase word.
    pub reason: String,
    /// What happened.
    pub message: String,
}

/// Numbers of objects.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CountsStatus {
    /// That exist.
    pub objects: u64,
    /// That were given up.
    pub failed: u64,
    /// That a server has refused for now. They are tried again, however long it takes.
    #[serde(default)]
    pub delayed: u64,
}

/// An object that was given up. It is tried again at its next change or resync.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatus {
    /// Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's identity.
    pub uid: String,
    /// The request that failed; empty when it was the handler itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The kind of fault.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// Attempts that failed.
    pub attempts: u32,
    /// When it was given up.
    pub time: String,
}

/// An object that a server has refused for now, or not answered. It is tried again after a growing wait; no attempt is charged.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DelayStatus {
    /// Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's identity.
    pub uid: String,
    /// The request that was refused; empty when it was one of the host's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The kind of fault.
    pub kind: String,
    /// What the server said.
    pub message: String,
    /// How often in a row it was refused.
    pub refusals: u32,
    /// When it was refused last.
    pub time: String,
}
