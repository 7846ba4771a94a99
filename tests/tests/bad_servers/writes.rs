//! Writes that a real server refuses in its own way.

use anyhow::Result;
use configurator_host::kubernetes_faults::is_of_another;
use configurator_host::resource::ClusterConfigurator;
use configurator_tests::configurator::scripted;
use configurator_tests::world::{Place, World};
use expect_test::{Expect, expect};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A Configurator of Pods with this script, which gives up early.
fn writing(script: Value) -> Value {
    let mut writing = scripted(
        "writing",
        json!({"apiVersion": "v1", "kind": "Pod", "namespaces": ["default"], "fields": [".metadata.labels"]}),
        script,
        json!({"kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["apply"]}]}),
    );
    writing["spec"]["retry"] =
        json!({"maxAttempts": 2, "initialDelay": "100ms", "maxDelay": "100ms"});
    writing
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "written", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "c"}]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_of_the_wrong_type_are_given_up_and_park_nothing() -> Result<()> {
    let cluster = Cluster::new().await?;
    let servers = cluster.servers(cluster.client.clone()).await?;
    let world = World::start_on(servers, |builder| builder).await?;
    cluster.apply(&pod()).await?;
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "wrong", "namespace": "default"}, "data": {"a": {"b": 1}}});
    let check = async |script: Value, expected: Expect| -> Result<()> {
        cluster.apply(&writing(script)).await?;
        let all: Api<ClusterConfigurator> = Api::all(cluster.client.clone());
        let mut told = String::new();
        cluster
            .until("it is given up", async || {
                let found = all.get("writing").await?;
                let status = found.status.unwrap_or_default();
                let is_new = status.observed_generation == found.metadata.generation;
                for failed in status.failures.iter().filter(|_| is_new) {
                    told = format!("{}: {}", failed.kind, failed.message);
                }
                Ok(!told.is_empty())
            })
            .await?;
        expected.assert_eq(&told);
        let degraded = cluster
            .until_condition("writing", "Degraded", "True ObjectsFailed")
            .await?;
        assert!(degraded.contains("1 object was given up"), "{degraded}");
        Ok(())
    };
    let request = json!({"requests": [{"name": "wrong", "apply": wrong}]});
    check(request, expect!["RetryExceedLimit: still failing after 2 attempts: ResourceMutation: apply configmaps default/wrong: 500 Internal Server Error; the server's message is withheld, because no rule grants `get` on the object"]).await?;
    check(json!({"status": {"phase": {"is": 5}}}), expect![[r#"RetryExceedLimit: still failing after 2 attempts: ResourceMutation: the status of default/written: failed to create typed patch object (/written; /v1, Kind=Pod): .status.phase: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"is":5}}"#]]).await?;
    world.stop().await
}

/// What a server says of each kind of change that is held to a uid which is not the object's.
async fn changes_of_another(client: &Client) -> Result<String> {
    let pods: Api<DynamicObject> =
        configurator_host::objects::api(client, "v1", "Pod", "default").await?;
    let apply = PatchParams::apply("test").force();
    let uid = "00000000-0000-0000-0000-000000000000";
    let mut merge = json!({"metadata": {"uid": uid, "labels": {"a": "b"}}});
    let whole = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "written", "uid": uid}, "status": {"message": "seen"}});
    let mut told = String::new();
    let mut note = |what: &str, answer: Result<DynamicObject, kube::Error>| match answer {
        Err(kube::Error::Api(status)) => {
            told += &format!("{what}: {} {}\n", status.code, is_of_another(&status));
        }
        answer => told += &format!("{what}: {answer:?}\n"),
    };
    let plain = PatchParams::default();
    let answer = pods.patch("written", &plain, &Patch::Merge(&merge)).await;
    note("merge", answer);
    let version = pods.get("written").await?.metadata.resource_version;
    merge["metadata"]["resourceVersion"] = json!(version);
    let answer = pods.patch("written", &plain, &Patch::Merge(&merge)).await;
    note("merge at a version", answer);
    let answer = pods.patch("written", &apply, &Patch::Apply(&whole)).await;
    note("apply", answer);
    let answer = pods
        .patch_status("written", &apply, &Patch::Apply(&whole))
        .await;
    note("apply of the status", answer);
    let absent = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "absent", "uid": uid},
        "spec": {"containers": [{"name": "c", "image": "c"}]}});
    let answer = pods.patch("absent", &apply, &Patch::Apply(&absent)).await;
    note("apply to what is absent", answer);
    Ok(told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_another_object_is_known_as_one() -> Result<()> {
    let cluster = Cluster::new().await?;
    cluster.apply(&pod()).await?;
    let real = changes_of_another(&cluster.client).await?;
    expect![[r#"
        merge: 422 true
        merge at a version: 422 true
        apply: 422 true
        apply of the status: 422 true
        apply to what is absent: 409 true
    "#]]
    .assert_eq(&real);
    let world = World::start_at(&Place::default(), |builder| builder).await?;
    world.apply(&pod()).await?;
    assert_eq!(changes_of_another(&world.client).await?, real);
    world.stop().await
}
