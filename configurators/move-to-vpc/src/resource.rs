//! The resource, as far as handlers read it.

use std::collections::BTreeMap;

use configurator_sdk::{HandlerError, Input};
use serde::Deserialize;

/// A `MoveToVpc`.
#[derive(Debug, Deserialize)]
pub struct MoveToVpc {
    /// What is wanted.
    pub spec: Spec,
    /// What has become of it.
    #[serde(default)]
    status: Status,
}

/// What is wanted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The account.
    pub app_id: String,
    /// Its access key.
    pub secret_id: String,
    /// The name of the secret that has the other half of it.
    pub secret_key: String,
    /// Where both networks are.
    pub region: String,
    /// The network that the instances are in.
    pub src_vpc_id: String,
    /// The network that they go to.
    pub dst_vpc_id: String,
    /// The instances; empty: all of the source network.
    #[serde(default)]
    pub instances: Vec<String>,
    /// Whether private addresses stay the same.
    pub keep_ips: bool,
    /// Whether a person is to confirm before anything is changed.
    #[serde(default)]
    pub manually_confirm: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    reasons: BTreeMap<String, String>,
}

impl MoveToVpc {
    /// Whether the status says why this phase has failed.
    pub fn has_reason(&self, phase: &str) -> bool {
        self.status.reasons.contains_key(phase)
    }

    /// The object of the call.
    ///
    /// # Errors
    /// Fatal, when it lacks a field.
    pub fn of(input: &Input) -> Result<MoveToVpc, HandlerError> {
        input.object()
    }
}
