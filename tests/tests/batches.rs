//! Batches: one bad object harms nobody else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use anyhow::Result;
use configurator_host::resource::ClusterConfigurator;
use configurator_tests::world::World;
use kube::api::Api;
use serde_json::{Value, json};

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "image:1"}]},
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_of_a_hundred_the_one_that_always_fails_is_alone_in_failing() -> Result<()> {
    let world = World::start().await?;
    for number in 0..99 {
        world.apply(&deployment(&format!("good-{number}"))).await?;
    }
    world.apply(&deployment("bad")).await?;
    world
        .configure("workload-config", |object| {
            object["spec"]["capabilities"]["configstore"][0]["prefixes"] =
                json!(["resources/workload/default/Deployment/good-"]);
        })
        .await?;
    let api: Api<ClusterConfigurator> = Api::all(world.client.clone());
    world
        .until("the bad one is shown", || async {
            let found = api.get("workload-config").await?;
            Ok(found
                .status
                .is_some_and(|status| !status.failures.is_empty()))
        })
        .await?;
    world.settled(&["workload-config"]).await?;
    assert_eq!(world.keys().await?.len(), 99);
    let failures = api
        .get("workload-config")
        .await?
        .status
        .unwrap_or_default()
        .failures;
    let failed: Vec<&str> = failures
        .iter()
        .map(|failure| failure.name.as_str())
        .collect();
    assert_eq!(failed, ["bad"]);
    assert_eq!(failures[0].kind, "ResourcePermission");
    world.stop().await
}
