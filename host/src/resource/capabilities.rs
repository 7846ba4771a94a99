//! What the requests of a Configurator may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
