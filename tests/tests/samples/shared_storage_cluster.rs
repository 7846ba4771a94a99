//! `configurators/shared-storage-cluster` on machines where things go wrong.

use anyhow::Result;
use configurator_core::time::Timestamp;
use configurator_host::clock::VirtualClock;
use configurator_host::controller::call_mode::CallMode;
use configurator_host::shards::Sharding;
use configurator_tests::world::{Place, Servers, World};
use expect_test::{Expect, expect};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::clusters::{Clusters, declare};

async fn start(servers: Servers) -> Result<(World, Clusters)> {
    let world = World::start_on(servers, |builder| builder).await?;
    declare(&world.client).await?;
    let clusters = Clusters::of(&world.client).await?;
    Ok((world, clusters))
}

async fn embedded() -> Result<(World, Clusters)> {
    start(Place::default().open().await?).await
}

/// What there is in the name of a cluster as it is by default.
fn made() -> Expect {
    expect![[r#"
        ConfigMap db-manager
        ConfigMap db-meta
        ConfigMap db-topology db-ro-0,db-ro-1
        PersistentVolumeClaim db-data 10Gi
        Pod db-manager registry.example.org/cluster-manager:1
        Pod db-ro-0 registry.example.org/shared-db:1.0.0 500m
        Pod db-ro-1 registry.example.org/shared-db:1.0.0 500m
        Pod db-rw registry.example.org/shared-db:1.0.0 500m
        Service db-ro
        Service db-rw"#]]
}

/// Whether the flow that makes the cluster waits for a Pod.
fn one_of_two_is_ready(cluster: &Value) -> bool {
    let step = &cluster["status"]["state"]["Creating"]["state"]["CreateRoPods"];
    step["progress"]["percent"] == 50
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_made_modified_upgraded_and_expanded() -> Result<()> {
    a_cluster_lives(Place::default().open().await?).await
}

pub async fn a_cluster_lives(servers: Servers) -> Result<()> {
    let (world, clusters) = start(servers).await?;
    clusters.ask(json!({})).await?;
    clusters.until("Running").await?;
    expect![[r#"
        Running
          Creating: done
            AddToClusterManager: done
            CreateClusterManager: done, progress {"message":"2 are ready","percent":100}
            CreateRoPods: done, progress {"message":"2 are ready","percent":100}
            CreateRwPod: done, progress {"message":"1 are ready","percent":100}
            InitMeta: done
            PrepareStorage: done, progress {"message":"1 are ready","percent":100}
            UpdateRunningStatus: done
    "#]]
    .assert_eq(&clusters.machine.drawn("db").await?);
    made().assert_eq(&clusters.things().await?);
    assert!(world.has_secret("db-default.db").await?);

    clusters
        .ask(json!({"classInfo": {"className": "large"}}))
        .await?;
    clusters
        .until_running_with("classInfo/className", json!("large"))
        .await?;
    expect![[r#"
        ConfigMap db-manager
        ConfigMap db-meta
        ConfigMap db-topology db-ro-0,db-ro-1
        PersistentVolumeClaim db-data 10Gi
        Pod db-manager registry.example.org/cluster-manager:1
        Pod db-ro-0 registry.example.org/shared-db:1.0.0 8
        Pod db-ro-1 registry.example.org/shared-db:1.0.0 8
        Pod db-rw registry.example.org/shared-db:1.0.0 8
        Service db-ro
        Service db-rw"#]]
    .assert_eq(&clusters.things().await?);

    let upgraded = json!({"classInfo": {"className": "large"}, "version": "1.1.0"});
    clusters.ask(upgraded).await?;
    clusters
        .until_running_with("version", json!("1.1.0"))
        .await?;

    clusters
        .ask(json!({
            "classInfo": {"className": "large"},
            "version": "1.1.0",
            "roReplicas": 1,
            "storage": {"size": "20Gi"},
        }))
        .await?;
    clusters
        .until_running_with("storage/size", json!("20Gi"))
        .await?;
    expect![[r#"
        ConfigMap db-manager
        ConfigMap db-meta
        ConfigMap db-topology db-ro-0
        PersistentVolumeClaim db-data 20Gi
        Pod db-manager registry.example.org/cluster-manager:1
        Pod db-ro-0 registry.example.org/shared-db:1.1.0 8
        Pod db-rw registry.example.org/shared-db:1.1.0 8
        Service db-ro
        Service db-rw"#]]
    .assert_eq(&clusters.things().await?);

    // The password goes with the cluster.
    let delete = DeleteParams::background();
    clusters.machine.api.delete("db", &delete).await?;
    let is_gone = || async { Ok(clusters.machine.api.get_opt("db").await?.is_none()) };
    world.until("the cluster is gone", is_gone).await?;
    assert!(!world.has_secret("db-default.db").await?);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_has_failed_is_made_again() -> Result<()> {
    let (world, clusters) = embedded().await?;
    clusters.infrastructure.fail("db-ro-1");
    clusters.ask(json!({})).await?;
    clusters.until("Running").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_is_interrupted_goes_on_at_the_step_that_failed() -> Result<()> {
    let (world, clusters) = embedded().await?;
    clusters.ask(json!({})).await?;
    clusters.until("Running").await?;
    clusters.infrastructure.miss("2.0.0");
    clusters.ask(json!({"version": "2.0.0"})).await?;
    clusters.until("Interrupt").await?;
    expect![[r#"
        Interrupt
          Creating: done
            AddToClusterManager: done
            CreateClusterManager: done, progress {"message":"2 are ready","percent":100}
            CreateRoPods: done, progress {"message":"2 are ready","percent":100}
            CreateRwPod: done, progress {"message":"1 are ready","percent":100}
            InitMeta: done
            PrepareStorage: done, progress {"message":"1 are ready","percent":100}
            UpdateRunningStatus: done
          Upgrading: fatal, error {"code":"IMAGE_PULL_FAILED","message":"the image registry.example.org/shared-db:2.0.0 of the Pod db-ro-0 is not to be had"}
            CheckVersion: done
            RebuildPods: fatal, error {"code":"IMAGE_PULL_FAILED","message":"the image registry.example.org/shared-db:2.0.0 of the Pod db-ro-0 is not to be had"}
              Plan: done
              RebuildRoPods: fatal, error {"code":"IMAGE_PULL_FAILED","message":"the image registry.example.org/shared-db:2.0.0 of the Pod db-ro-0 is not to be had"}, guidance "The image of a Pod is not to be had. Push it, or correct `spec.version`, delete the Pod, then resume.\n", progress {"message":"0 of 2 are new","percent":0}
    "#]].assert_eq(&clusters.machine.drawn("db").await?);
    clusters.infrastructure.push("2.0.0", "db-ro-0").await?;
    let answer = clusters.machine.command("db", "Resume", json!({})).await?;
    assert_eq!(answer, "done");
    clusters
        .until_running_with("version", json!("2.0.0"))
        .await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_cancelled_is_interrupted_and_can_be_resumed() -> Result<()> {
    let (world, clusters) = embedded().await?;
    clusters.infrastructure.hold("db-ro-1");
    clusters.ask(json!({})).await?;
    clusters
        .machine
        .until("db", "a Pod is missing", one_of_two_is_ready)
        .await?;
    clusters.annotate(json!({"cancelled": "true"})).await?;
    clusters.until("Interrupt").await?;
    clusters.annotate(json!({"cancelled": null})).await?;
    clusters.infrastructure.release("db-ro-1").await?;
    let answer = clusters.machine.command("db", "Resume", json!({})).await?;
    assert_eq!(answer, "done");
    clusters.until("Running").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_version_is_refused_until_the_wish_is_taken_back() -> Result<()> {
    let (world, clusters) = embedded().await?;
    clusters.ask(json!({})).await?;
    clusters.until("Running").await?;
    clusters.ask(json!({"version": "0.9.0"})).await?;
    clusters.until("Interrupt").await?;
    let cluster = clusters.machine.get("db").await?;
    let step = &cluster["status"]["state"]["Upgrading"]["state"]["CheckVersion"];
    expect![[r#"
        {"code":"DOWNGRADE","message":"0.9.0 is older than 1.0.0, which the cluster has"}
        "An older version may not read what the newer has stored. Set `spec.version` to the one that the cluster has, or to a newer one,\nthen resume.\n""#]].assert_eq(&format!("{}\n{}", step["error"], step["guidance"]));
    clusters.ask(json!({})).await?;
    let answer = clusters.machine.command("db", "Resume", json!({})).await?;
    assert_eq!(answer, "done");
    clusters.until("Running").await?;
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn another_host_goes_on_where_the_leader_was() -> Result<()> {
    let servers = Place::default().open().await?;
    let join = |name: &str| {
        let mut sharding = Sharding::new("default", name);
        sharding.shards = 1;
        World::start_on(servers.clone(), |builder| {
            builder
                .sharding(sharding)
                .clock(VirtualClock::starting_at(Timestamp::from_millis(0)))
                .call_mode(CallMode::Inline)
        })
    };
    let mut other = join("first").await?;
    declare(&other.client).await?;
    let mut world = join("second").await?;
    let clusters = Clusters::of(&world.client).await?;
    clusters.infrastructure.hold("db-ro-1");
    clusters.ask(json!({})).await?;
    clusters
        .machine
        .until("db", "a Pod is missing", one_of_two_is_ready)
        .await?;
    let leads = |world: &World| world.metric("configurator_shards ").ends_with(" 1");
    let one_leads = || async { Ok(leads(&other) != leads(&world)) };
    other.until("one of them leads", one_leads).await?;
    if leads(&world) {
        std::mem::swap(&mut other, &mut world);
    }
    other.kill().await?;
    clusters.infrastructure.release("db-ro-1").await?;
    clusters.until("Running").await?;
    assert!(leads(&world));
    made().assert_eq(&clusters.things().await?);
    world.stop().await
}
