//! Where the module of a Configurator comes from, and how another one takes over.

use configurator_core::request::ObjectRef;
use kube::KubeSchema;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of the module: one of `file`, `configMap` and `oci`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.file), has(self.configMap), has(self.oci)].exists_one(named, named)")
        .message("a module needs one source: file, configMap or oci"),
    validation = Rule::new("!has(self.configMap) || has(self.digest)")
        .message("a module in a ConfigMap needs a digest")
)]
pub struct ModuleSpec {
    /// A file in the module directory of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSpec>,
    /// An artifact in an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSpec>,
    /// The digest that the module must have: `sha256:` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// How a new module takes over.
    #[serde(default, skip_serializing_if = "RolloutSpec::is_at_once")]
    pub rollout: RolloutSpec,
}

impl ModuleSpec {
    /// The objects that the source names, each with its field and the plural of its kind: `configMap`, and `oci.pullSecret`.
    pub fn references(&self) -> impl Iterator<Item = (&'static str, &'static str, ObjectRef)> {
        let map = self.config_map.as_ref();
        let map = map.map(|map| ("configMap", "configmaps", &map.namespace, &map.name));
        let secret = self.oci.as_ref().and_then(|oci| oci.pull_secret.as_ref());
        let secret =
            secret.map(|secret| ("oci.pullSecret", "secrets", &secret.namespace, &secret.name));
        let references = map.into_iter().chain(secret);
        references.map(|(field, plural, namespace, name)| {
            let object = ObjectRef {
                namespace: namespace.clone(),
                name: name.clone(),
            };
            (field, plural, object)
        })
    }

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
    /// The namespace. Defaults to that of the Configurator. A ClusterConfigurator must state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The key in `binaryData`.
    #[serde(default = "default_module_key")]
    #[schemars(length(min = 1))]
    pub key: String,
}

/// A module in a registry.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OciSpec {
    /// The reference of the artifact, such as `ghcr.io/team/greeter:1.2`, or `ghcr.io/team/greeter@sha256:…` to pin it.
    #[schemars(length(min = 1))]
    pub reference: String,
    /// The time between two checks whether the tag has moved; at least 1s. A pinned reference is not checked.
    #[serde(default = "default_oci_interval")]
    interval: Duration,
    /// A Secret of type `kubernetes.io/dockerconfigjson` with the credentials for the registry.
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

/// A Secret.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The namespace. Defaults to that of the Configurator. A ClusterConfigurator must state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// How a new module takes over: for all objects at once, or for some of them first.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    /// The new module handles some of the objects first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanarySpec>,
}

impl RolloutSpec {
    /// Returns whether a new module handles all objects at once.
    #[must_use]
    pub const fn is_at_once(&self) -> bool {
        self.canary.is_none()
    }
}

/// A canary: the new module handles some of the objects, and is then promoted to all objects or rolled back.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CanarySpec {
    /// The percentage of objects that it handles. A hash of their uids chooses them.
    #[serde(default = "default_canary_percent")]
    #[schemars(range(min = 1, max = 99))]
    pub percent: u8,
    /// The shortest time before a promotion.
    #[serde(default = "default_canary_duration")]
    pub duration: Duration,
    /// The least number of finished runs before a promotion; in a machine, of entries of handlers. If it handles fewer objects, one run of each is enough.
    #[serde(default = "default_canary_runs")]
    pub min_runs: u32,
    /// The highest percentage of faulty runs. The canary is rolled back when it exceeds this.
    #[serde(default = "default_canary_faults")]
    #[schemars(range(max = 100))]
    pub max_faults: u8,
}

/// How long an instance of the module is used.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InstancePolicySpec {
    /// Each call has its own instance, so no call sees data of another one.
    #[default]
    Fresh,
    /// An instance serves several calls. This is faster for languages whose runtime starts slowly. Global variables of a handler keep their values
    /// for the next call, which may be of another object.
    Reuse,
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
