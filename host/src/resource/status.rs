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
    /// The digest of the module that runs; while another is tried, of that which most objects have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_digest: Option<String>,
    /// The digest of the one that ran before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_module_digest: Option<String>,
    /// The module that is tried on some objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStatus>,
    /// The module that was tried and was not good enough; it is not tried again.
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

/// A module that is tried.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// Its digest.
    pub digest: String,
    /// On how many of a hundred objects.
    pub percent: u8,
    /// Since when.
    pub since: String,
    /// How many of its runs have ended.
    pub runs: u32,
    /// How many of these were faulty.
    pub faults: u32,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub awaits: String,
}

/// What one of several hosts says of a module that is tried.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HostCanaryStatus {
    /// Its digest.
    pub digest: String,
    /// How many of its runs have ended there.
    pub runs: u32,
    /// How many of these were faulty.
    pub faults: u32,
    /// On how many objects it is tried there; absent until all are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u32>,
    /// Those of them whose first run of it is yet to end.
    pub awaited: u32,
}

/// A module that was not good enough.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolledBackStatus {
    /// Its digest.
    pub digest: String,
    /// How it was.
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
    /// The digest of the module that its objects have; while another is tried, of that which most have. What one host takes for all objects
    /// after a trial, the others take as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_digest: Option<String>,
    /// The module that is tried on some of its objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<HostCanaryStatus>,
    /// The module that was not good enough; the other hosts give it up as well.
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
