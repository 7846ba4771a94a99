//! What the requests of a Configurator may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules that grant what requests may do. Requests that no rule grants are refused.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CapabilitiesSpec {
    /// Rules for requests to the Kubernetes API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes: Vec<KubernetesRuleSpec>,
    /// Rules for requests to the config store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configstore: Vec<ConfigstoreRuleSpec>,
    /// Rules for requests to the secret store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secretstore: Vec<SecretstoreRuleSpec>,
    /// Rules for HTTP requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRuleSpec>,
    /// Rules for requests to extensions of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension: Vec<ExtensionRuleSpec>,
}

/// Grants verbs on Kubernetes resources. In each list, `*` stands for any number of characters, and an empty list matches nothing. Patterns do not
/// match the API groups of RBAC, admission, certificates, the definitions of kinds and configurator.dev, nor subresources such as
/// `pods/exec` and `serviceaccounts/token`: name them in full.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesRuleSpec {
    /// API groups. "" is the core group.
    pub api_groups: Vec<String>,
    /// Resources, by their plural names, such as `configmaps`.
    pub resources: Vec<String>,
    /// Subresources, such as `status`. If there are any, the rule does not grant the resource itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<String>,
    /// Namespaces. `*` grants all namespaces, and cluster-scoped resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names of objects. Defaults to all.
    #[serde(default = "every_name", skip_serializing_if = "is_every_name")]
    pub names: Vec<String>,
    /// Verbs. With the verb `watch`, a handler of a machine may wait for changes of objects.
    pub verbs: Vec<KubernetesVerbSpec>,
}

/// A verb on Kubernetes resources.
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

/// Grants verbs on keys of the config store.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ConfigstoreRuleSpec {
    /// Namespaces whose partitions the rule is for, by their full names. Only in a ClusterConfigurator. Defaults to the Configurator's own
    /// partition. In a policy, `*` stands for any number of characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Prefixes of keys, such as `resources/pod/`.
    pub prefixes: Vec<String>,
    /// Verbs. A `put` needs `update`.
    pub verbs: Vec<ConfigVerbSpec>,
}

/// A verb on keys of the config store.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the verbs of the protocol")]
pub enum ConfigVerbSpec {
    Get,
    Create,
    Update,
    Delete,
}

/// Grants verbs on secrets of the secret store.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct SecretstoreRuleSpec {
    /// Namespaces whose partitions the rule is for, by their full names. Only in a ClusterConfigurator. Defaults to the Configurator's own
    /// partition. In a policy, `*` stands for any number of characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names of secrets. `*` stands for any number of characters.
    pub names: Vec<String>,
    /// Verbs.
    pub verbs: Vec<SecretVerbSpec>,
}

/// A verb on secrets of the secret store.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the verbs of the protocol")]
pub enum SecretVerbSpec {
    Get,
    Create,
    Update,
    Delete,
}

/// Grants methods on HTTP hosts.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct HttpRuleSpec {
    /// Host names, with `:port` unless it is the default port of the scheme. `*` stands for any number of characters.
    pub hosts: Vec<String>,
    /// Methods, in upper case.
    pub methods: Vec<String>,
}

/// Grants verbs on targets of extensions, which the embedder of the host adds. In each list, `*` stands for any number of characters.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionRuleSpec {
    /// Names of extensions.
    pub extensions: Vec<String>,
    /// Targets: addresses within the extension.
    pub targets: Vec<String>,
    /// Verbs of the extension.
    pub verbs: Vec<String>,
}

fn every_name() -> Vec<String> {
    vec!["*".to_owned()]
}

/// A default in an item of a list would make `kubectl apply` see a change each time.
fn is_every_name(names: &Vec<String>) -> bool {
    *names == every_name()
}
