//! Configurators of teams, each in its namespace, beside one of the whole cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod accounts;
mod attempts;
mod how_to;
mod partitions;
mod policies;
mod scopes;

use anyhow::Result;
use configurator_tests::world::World;
use serde_json::{Value, json};

/// Grants rights in a namespace to a ServiceAccount of it, by a Role and a RoleBinding of this name.
async fn grant(
    world: &World,
    namespace: &str,
    name: &str,
    account: &str,
    rules: Value,
) -> Result<()> {
    let of = |kind: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
        })
    };
    let mut role = of("Role");
    role["rules"] = rules;
    world.apply(&role).await?;
    let mut binding = of("RoleBinding");
    binding["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    binding["subjects"] =
        json!([{"kind": "ServiceAccount", "name": account, "namespace": namespace}]);
    world.apply(&binding).await
}

/// A namespace with labels, whose ServiceAccount `default` may use ConfigMaps and things.
async fn team(world: &World, name: &str, labels: Value) -> Result<()> {
    let metadata = json!({"name": name, "labels": labels});
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await?;
    let verbs = json!(["get", "list", "watch", "create", "patch"]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
        {"apiGroups": ["example.org"], "resources": ["things"], "verbs": verbs},
    ]);
    grant(world, name, "configurator", "default", rules).await
}
