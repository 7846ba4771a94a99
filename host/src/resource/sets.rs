//! The limits of desired sets.

use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of desired sets.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SetsSpec {
    /// The largest share of the members, in percent, that one change of a set may delete. A larger change is refused as a whole.
    #[serde(default = "default_max_prune")]
    #[schemars(range(min = 0, max = 100))]
    pub max_prune_percent: u32,
    /// Fewer members than this may be deleted whatever share they are.
    #[serde(default = "default_prune_from")]
    pub prune_from: u32,
    /// The most entries of a set. A larger set is refused as a whole.
    #[serde(default = "default_max_entries")]
    #[schemars(range(min = 1, max = 20000))]
    pub max_entries: u32,
    /// The time between two reads of members whose changes no watch reports: those in the config store and the secret store, and objects that
    /// the host does not watch. Those in the stores that are not ready are read every 5 seconds. At least `1s`.
    #[serde(default = "default_poll_interval")]
    pub poll_interval: Duration,
    /// The most watches of members. A watch covers one kind in one namespace. A ClusterConfigurator with members of a kind in 8 namespaces or
    /// more has one watch for all namespaces, if RBAC allows it. The host lists everything else every `pollInterval`: kinds and namespaces
    /// beyond this number, and those that RBAC does not let it watch.
    #[serde(default = "default_max_watches")]
    #[schemars(range(min = 1))]
    pub max_watches: u32,
    /// The time without events after which the host keeps only a summary of a complete set in memory. A later change of a member costs one more
    /// read of the inventory. At least `1s`.
    #[serde(default = "default_idle_after")]
    pub idle_after: Duration,
    /// The field managers that give up their fields when an object becomes a member by `on-existing: adopt`, with `*` for any number of
    /// characters. The host removes the fields that they have set and the entry does not mention. Other managers keep their fields. The default
    /// names those of kubectl and Helm, and those of sets that have released the object.
    #[serde(default = "default_adopted_managers")]
    #[schemars(length(max = 64))]
    pub adopted_managers: Vec<String>,
}

fn default_max_prune() -> u32 {
    50
}

fn default_prune_from() -> u32 {
    5
}

fn default_max_entries() -> u32 {
    1000
}

fn default_poll_interval() -> Duration {
    std::time::Duration::from_mins(1).into()
}

fn default_max_watches() -> u32 {
    500
}

fn default_idle_after() -> Duration {
    std::time::Duration::from_mins(1).into()
}

fn default_adopted_managers() -> Vec<String> {
    [
        "before-first-apply",
        "helm",
        "kubectl",
        "kubectl-client-side-apply",
        "kubectl-create",
        "cfgr/*/released",
        "ccfgr/*/released",
    ]
    .map(str::to_owned)
    .to_vec()
}

impl Default for SetsSpec {
    fn default() -> Self {
        Self {
            max_prune_percent: default_max_prune(),
            prune_from: default_prune_from(),
            max_entries: default_max_entries(),
            poll_interval: default_poll_interval(),
            max_watches: default_max_watches(),
            idle_after: default_idle_after(),
            adopted_managers: default_adopted_managers(),
        }
    }
}
