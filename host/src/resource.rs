//! The Configurator resource, as it is written in YAML. What it means once it has been checked is
//! [`configurator_core::configurator::Configurator`].

pub mod command;
pub mod flow;
pub mod machine;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::Duration;
use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::machine::{
    ErrorCodeSpec, FlowSpec, ModeSpec, ModuleUpgradeSpec, PhaseSpec, StateSpec, any_object,
};

/// What is watched, which module decides, in which phases, and with which rights.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "configurator.dev",
    version = "v1alpha1",
    kind = "Configurator",
    plural = "configurators",
    shortname = "cfgr",
    status = "ConfiguratorStatus",
    printcolumn = r#"{"name":"Watches","type":"string","jsonPath":".spec.watch.kind"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Objects","type":"integer","jsonPath":".status.counts.objects"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.counts.failed"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.phases.all(p, self.phases.exists_one(q, q.name == p.name))")
        .message("each phase must have a name of its own")
        .field_path(".phases"),
    validation = Rule::new("self.deletion.by != 'Finalizer' || !(self.watch.group == '' && self.watch.kind in ['Pod', 'Node', 'Namespace'])")
        .message("a finalizer is never placed on Pods, Nodes or Namespaces: use deletion.by: Ledger")
        .field_path(".deletion.by")
)]
pub struct ConfiguratorSpec {
    /// True: no new runs begin. Deletions that a finalizer holds are dealt with all the same.
    #[serde(default)]
    pub suspend: bool,
    /// What is watched.
    pub watch: WatchSpec,
    /// True: handlers get a list of objects.
    #[serde(default)]
    pub is_batch: bool,
    /// How batches are collected. Only with isBatch.
    #[serde(default)]
    pub batch: BatchSpec,
    /// The Wasm component that has the handlers.
    pub module: ModuleSpec,
    /// Fresh: every call gets an instance of its own. Reuse: an instance serves `limits.instanceCalls` of them.
    #[serde(default)]
    pub instance: InstanceSpec,
    /// Whether runs are kept, so that their calls can be made again; by default when the host is told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<bool>,
    /// Handed to every call.
    #[serde(default)]
    #[schemars(schema_with = "any_object")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// How an object goes through the phases.
    #[serde(default)]
    pub mode: ModeSpec,
    /// Mode Machine: where the state of an object is kept; by default in its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSpec>,
    /// Mode Machine: the phase where an object begins; by default the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_phase: Option<String>,
    /// Mode Machine: the wait before a failure that is not fatal is tried again; by default a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
    /// Mode Machine: which module a phase that is under way goes on with when another is swapped in; by default the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_upgrade: Option<ModuleUpgradeSpec>,
    /// Mode Chain: the chain; the first is the root phase, which gets the object only. Mode Machine: the phases that an object
    /// can be in.
    #[schemars(length(min = 1, max = 64))]
    pub phases: Vec<PhaseSpec>,
    /// Mode Machine: steps that phases use, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, FlowSpec>,
    /// Mode Machine: what is done about errors of handlers, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_codes: BTreeMap<String, ErrorCodeSpec>,
    /// What happens when an object goes.
    #[serde(default)]
    pub deletion: DeletionSpec,
    /// What requests may do. Nothing is allowed that is not listed; the host's own policy is the ceiling.
    #[serde(default)]
    pub capabilities: CapabilitiesSpec,
    /// Limits of one call.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The most runs at one time, and the most requests of one run side by side.
    #[serde(default = "default_concurrency")]
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: u32,
    /// How failures are retried.
    #[serde(default)]
    pub retry: RetrySpec,
}

/// What is watched.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WatchSpec {
    /// Empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version.
    #[schemars(length(min = 1))]
    pub version: String,
    /// The kind.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Empty: all namespaces.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// As in `kubectl get -l`.
    #[serde(default)]
    pub label_selector: String,
    /// As in `kubectl get --field-selector`.
    #[serde(default)]
    pub field_selector: String,
    /// Which events start runs.
    #[serde(default = "default_events")]
    pub events: Vec<EventSpec>,
    /// How long an object may be left alone; "0s": for ever.
    #[serde(default = "default_resync")]
    pub resync_period: Duration,
    /// JSONPaths kept of each object; empty keeps all but managedFields. What is dropped is neither stored nor shown.
    #[serde(default)]
    pub fields: Vec<String>,
}

/// An event that starts runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// The object appeared, or the host met it for the first time.
    Added,
    /// It changed.
    Modified,
    /// It is gone. Best effort: the host may have been down; see deletion for what does not miss any.
    Deleted,
}

/// How batches are collected.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BatchSpec {
    /// The most objects of one batch.
    #[serde(default = "default_batch_size")]
    #[schemars(range(min = 1, max = 10000))]
    pub max_size: u32,
    /// The longest that an object waits for others.
    #[serde(default = "default_batch_delay")]
    pub max_delay: Duration,
}

/// Where the module comes from: one of `file`, `configMap` and `oci`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.file), has(self.configMap), has(self.oci)].exists_one(named, named)")
        .message("a module needs one source: file, configMap or oci"),
    validation = Rule::new("!has(self.configMap) || has(self.digest)")
        .message("a module in a ConfigMap needs a digest")
)]
pub struct ModuleSpec {
    /// A file under the host's module directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Binary data of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSpec>,
    /// An OCI artifact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSpec>,
    /// `sha256:` and 64 hexadecimal digits: the module's bytes must have this digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// How another module takes over.
    #[serde(default, skip_serializing_if = "RolloutSpec::is_at_once")]
    pub rollout: RolloutSpec,
}

/// How another module takes over: for all objects at once, or for some of them first.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    /// It is tried on some of the objects first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanarySpec>,
}

impl RolloutSpec {
    /// Whether all objects have it at once.
    #[must_use]
    pub const fn is_at_once(&self) -> bool {
        self.canary.is_none()
    }
}

/// How a module is tried. It is taken for all objects when it was good enough, and for none when it was not.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CanarySpec {
    /// On how many of a hundred objects, which are chosen by a hash of their uids.
    #[serde(default = "default_canary_percent")]
    #[schemars(range(min = 1, max = 99))]
    pub percent: u8,
    /// How long at least.
    #[serde(default = "default_canary_duration")]
    pub duration: Duration,
    /// How many of its runs must have ended at least; in mode Machine, entries of handlers. Where it is tried on fewer objects, one of each.
    #[serde(default = "default_canary_runs")]
    pub min_runs: u32,
    /// How many of a hundred of them may be faulty.
    #[serde(default = "default_canary_faults")]
    #[schemars(range(max = 100))]
    pub max_faults: u8,
}

impl ModuleSpec {
    /// What people call it: the file, the place of the ConfigMap, or the reference.
    #[must_use]
    pub fn place(&self) -> String {
        if let Some(ConfigMapSpec {
            namespace,
            name,
            key,
        }) = &self.config_map
        {
            return format!("{namespace}/{name}/{key}");
        }
        let oci = self.oci.as_ref().map(|oci| &oci.reference);
        self.file.as_ref().or(oci).cloned().unwrap_or_default()
    }
}

/// A module in a ConfigMap.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSpec {
    /// Its namespace.
    #[schemars(length(min = 1))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its key of `binaryData`.
    #[serde(default = "default_module_key")]
    #[schemars(length(min = 1))]
    pub key: String,
}

/// A module in a registry.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OciSpec {
    /// Its name there: `ghcr.io/team/greeter:1.2`, or pinned as in `ghcr.io/team/greeter@sha256:…`.
    #[schemars(length(min = 1))]
    pub reference: String,
    /// How often a tag is resolved anew; at least 1s. Nothing that is pinned is asked for again.
    #[serde(default = "default_oci_interval")]
    interval: Duration,
    /// A Secret of type `kubernetes.io/dockerconfigjson` that has the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<SecretReference>,
}

impl OciSpec {
    /// How often a tag is resolved anew.
    #[must_use]
    pub fn interval(&self) -> std::time::Duration {
        self.interval.into()
    }
}

/// A Secret in a namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Its namespace.
    #[schemars(length(min = 1))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// How long an instance of the module lives.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InstanceSpec {
    /// For one call: no call sees anything of another.
    #[default]
    Fresh,
    /// For several calls: faster, where the runtime of a language takes long to begin. What a handler leaves in its globals is there
    /// in the next call, of whichever object.
    Reuse,
}

/// One stage of the deletion chain.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPhaseSpec {
    /// Unique in its chain.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The handler's name; by default the phase's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
}

/// What happens when an object goes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionSpec {
    /// How a deletion is noticed.
    #[serde(default)]
    pub by: DeletionBySpec,
    /// The chain that is run; empty: nothing is done.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub phases: Vec<DeletionPhaseSpec>,
    /// How long a finalizer may hold an object.
    #[serde(default = "default_deletion_timeout")]
    pub timeout: Duration,
}

/// How a deletion is noticed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeletionBySpec {
    /// The objects handled are recorded in the config store; what is missing is found at start and at a new listing.
    #[default]
    Ledger,
    /// A finalizer holds the object until the phases are done. For kinds of one's own.
    Finalizer,
}

/// What requests may do.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CapabilitiesSpec {
    /// At the Kubernetes API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes: Vec<KubernetesRuleSpec>,
    /// At the config store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configstore: Vec<ConfigstoreRuleSpec>,
    /// At the secret store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secretstore: Vec<SecretstoreRuleSpec>,
    /// At HTTP endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRuleSpec>,
}

/// Allows verbs on Kubernetes resources. In each list of names, `*` stands for any run of characters.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesRuleSpec {
    /// API groups; "" is the core group.
    pub groups: Vec<String>,
    /// Plural names.
    pub resources: Vec<String>,
    /// Empty: the resource itself only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<String>,
    /// Empty: all, and cluster-scoped resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The verbs. With `watch`, in mode Machine, a handler may wait for a change.
    pub verbs: Vec<KubernetesVerbSpec>,
}

/// A verb of the kubernetes sink, or `watch`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the verbs of the protocol")]
pub enum KubernetesVerbSpec {
    Get,
    List,
    Patch,
    Delete,
    Create,
    Replace,
    Apply,
    Watch,
}

/// Allows verbs on keys of the config store.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ConfigstoreRuleSpec {
    /// Beginnings of keys: `resources/pod/`.
    pub prefixes: Vec<String>,
    /// The verbs; `put` is `update`.
    pub verbs: Vec<ConfigVerbSpec>,
}

/// A verb of the configstore sink.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the verbs of the protocol")]
pub enum ConfigVerbSpec {
    Get,
    Create,
    Update,
    Delete,
}

/// Allows verbs on secrets.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct SecretstoreRuleSpec {
    /// Names; `*` stands for any run of characters.
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<SecretVerbSpec>,
}

/// A verb of the secretstore sink.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the verbs of the protocol")]
pub enum SecretVerbSpec {
    Get,
    Create,
    Delete,
}

/// Allows methods on HTTP hosts.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct HttpRuleSpec {
    /// Host names, with `:port` where it is not the scheme's own; `*` stands for any run of characters.
    pub hosts: Vec<String>,
    /// Methods, upper case.
    pub methods: Vec<String>,
}

/// Limits of one call.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSpec {
    /// CPU time of one call; ten times this in wall time.
    #[serde(default = "default_deadline")]
    pub deadline: Duration,
    /// Linear memory of the module.
    #[serde(default = "default_memory")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub memory: String,
    /// Size of the input.
    #[serde(default = "default_input_size")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub input_size: String,
    /// Size of the output.
    #[serde(default = "default_output_size")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub output_size: String,
    /// With `instance: Reuse`: calls that one instance serves.
    #[serde(default = "default_instance_calls")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub instance_calls: u32,
    /// The most requests of one output.
    #[serde(default = "default_requests")]
    #[schemars(range(min = 1, max = 100_000))]
    pub requests: u32,
}

/// How failures are retried.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RetrySpec {
    /// Attempts of one run in all.
    #[serde(default = "default_attempts")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_attempts: u32,
    /// The wait after the first failure.
    #[serde(default = "default_initial_delay")]
    pub initial_delay: Duration,
    /// The longest wait.
    #[serde(default = "default_max_delay")]
    pub max_delay: Duration,
}

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

/// The CustomResourceDefinitions of the kinds that a host knows: Configurator, Flow and Command.
#[must_use]
pub fn definitions() -> Vec<serde_json::Value> {
    let definitions = [
        Configurator::crd(),
        flow::Flow::crd(),
        command::Command::crd(),
    ];
    let definitions = definitions.into_iter().map(|definition| {
        let mut definition = serde_json::to_value(definition).unwrap_or_default();
        know_formats(&mut definition);
        definition
    });
    definitions.collect()
}

/// Numbers without a sign have a minimum; of their formats, Kubernetes knows none and warns.
fn know_formats(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(fields) => {
            if let Some(serde_json::Value::String(format)) = fields.get_mut("format")
                && format.starts_with("uint")
            {
                "int64".clone_into(format);
            }
            fields.values_mut().for_each(know_formats);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(know_formats),
        _ => {}
    }
}

fn default_concurrency() -> u32 {
    4
}
fn default_events() -> Vec<EventSpec> {
    vec![EventSpec::Added, EventSpec::Modified]
}
fn default_module_key() -> String {
    "module.wasm".to_owned()
}

const fn default_canary_percent() -> u8 {
    10
}

fn default_canary_duration() -> Duration {
    std::time::Duration::from_secs(10 * 60).into()
}

const fn default_canary_runs() -> u32 {
    20
}

const fn default_canary_faults() -> u8 {
    5
}

fn default_oci_interval() -> Duration {
    std::time::Duration::from_secs(5 * 60).into()
}

fn default_resync() -> Duration {
    std::time::Duration::from_secs(10 * 60 * 60).into()
}
fn default_batch_size() -> u32 {
    100
}
fn default_batch_delay() -> Duration {
    std::time::Duration::from_millis(200).into()
}
fn default_deletion_timeout() -> Duration {
    std::time::Duration::from_secs(600).into()
}
fn default_deadline() -> Duration {
    std::time::Duration::from_secs(1).into()
}
fn default_memory() -> String {
    "64Mi".into()
}
fn default_input_size() -> String {
    "4Mi".into()
}
fn default_instance_calls() -> u32 {
    100
}

fn default_output_size() -> String {
    "1Mi".into()
}
fn default_requests() -> u32 {
    1000
}
fn default_attempts() -> u32 {
    10
}
fn default_initial_delay() -> Duration {
    std::time::Duration::from_secs(1).into()
}
fn default_max_delay() -> Duration {
    std::time::Duration::from_secs(60).into()
}

impl Default for BatchSpec {
    fn default() -> Self {
        Self {
            max_size: default_batch_size(),
            max_delay: default_batch_delay(),
        }
    }
}

impl Default for DeletionSpec {
    fn default() -> Self {
        Self {
            by: DeletionBySpec::default(),
            phases: Vec::new(),
            timeout: default_deletion_timeout(),
        }
    }
}

impl Default for LimitsSpec {
    fn default() -> Self {
        Self {
            deadline: default_deadline(),
            memory: default_memory(),
            input_size: default_input_size(),
            output_size: default_output_size(),
            instance_calls: default_instance_calls(),
            requests: default_requests(),
        }
    }
}

impl Default for RetrySpec {
    fn default() -> Self {
        Self {
            max_attempts: default_attempts(),
            initial_delay: default_initial_delay(),
            max_delay: default_max_delay(),
        }
    }
}
