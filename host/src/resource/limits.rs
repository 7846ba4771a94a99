//! Limits of calls, and how failures are retried.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of each call of a handler.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSpec {
    /// CPU time of a call. A call may take ten times as long in wall time.
    #[serde(default = "default_deadline")]
    pub deadline: Duration,
    /// Linear memory of an instance, such as `64Mi`.
    #[serde(default = "default_memory")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub memory: String,
    /// Size of the input of a call.
    #[serde(default = "default_input_size")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub input_size: String,
    /// Size of the output of a call.
    #[serde(default = "default_output_size")]
    #[schemars(regex(pattern = "^[0-9]+(Ki|Mi|Gi)?$"))]
    pub output_size: String,
    /// With `instancePolicy: Reuse`, the number of calls that an instance serves before it is replaced.
    #[serde(default = "default_instance_calls")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub instance_calls: u32,
    /// The largest number of requests in the output of a call.
    #[serde(default = "default_requests")]
    #[schemars(range(min = 1, max = 100_000))]
    pub requests: u32,
}

/// How failed runs are retried.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RetrySpec {
    /// The largest number of attempts of a run, the first one included.
    #[serde(default = "default_attempts")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_attempts: u32,
    /// The wait after the first failure. It doubles with each further one.
    #[serde(default = "default_initial_delay")]
    pub initial_delay: Duration,
    /// The longest wait between two attempts.
    #[serde(default = "default_max_delay")]
    pub max_delay: Duration,
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
