//! Where parameters of a Configurator come from.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ConfigMap or a Secret with parameters: one of `configMap` and `secret`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.configMap) != has(self.secret)")
        .message("must have either a configMap or a secret")
)]
pub struct ParametersSourceSpec {
    /// A ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ParametersReference>,
    /// A Secret. Its values are kept out of logs, Events, statuses and recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<ParametersReference>,
}

/// Which keys of a ConfigMap or a Secret are parameters. Each parameter is a string.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ParametersReference {
    /// The namespace. Defaults to that of the Configurator. A ClusterConfigurator must state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// A key whose value is a parameter. Defaults to all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub key: Option<String>,
    /// The name of the parameter that has the value of `key`. Defaults to the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub parameter: Option<String>,
    /// Whether the Configurator runs without the object, or the key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}
