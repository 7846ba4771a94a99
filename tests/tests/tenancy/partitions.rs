//! Teams use the stores under the same names, and do not meet.

use anyhow::{Context as _, Result};
use configurator_core::layers::Write;
use configurator_core::request::ObjectRef;
use configurator_host::resource::get;
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, Servers, World};
use expect_test::{Expect, expect};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};

use super::scopes::{TEAMS, place, with_teams};

/// A Configurator that stores a value and a secret, and writes what it finds under the names of them all beside its object.
fn keeper(namespace: Option<&str>) -> Value {
    let watch = json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}});
    let by = namespace.unwrap_or("cluster");
    let script = json!({"requests": [
        {"name": "put", "put": {"key": "shared", "value": by}},
        {"name": "secret", "secret": "shared"},
    ]});
    let mut rule =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["apply", "get"]});
    if namespace.is_none() {
        rule["namespaces"] = json!(TEAMS);
    }
    let rules = json!({
        "kubernetes": [rule],
        "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
        "secretstore": [{"names": ["*"], "verbs": ["get", "create", "delete"]}],
    });
    let mut keeper = configurator::scripted("keeper", watch, script, rules);
    place(&mut keeper, namespace);
    keeper
}

fn object(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": namespace, "labels": {"handled": "yes"}},
    })
}

async fn uid_of(world: &World, namespace: &str) -> Result<String> {
    let namespaces = world.objects("v1", "Namespace", "").await?;
    namespaces.get(namespace).await?.uid().context("a uid")
}

/// The keys with their values, with names instead of uids.
async fn drawn(world: &World, uids: &[(String, &str)]) -> Result<String> {
    let mut lines = Vec::new();
    for (key, value) in world.keys().await? {
        let uids = uids.iter();
        let key = uids.fold(key, |key, (uid, name)| key.replace(uid.as_str(), name));
        lines.push(format!("{key}: {value}"));
    }
    Ok(lines.join("\n"))
}

async fn check(world: &World, uids: &[(String, &str)], expected: Expect) -> Result<()> {
    expected.assert_eq(&drawn(world, uids).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_has_its_part_of_the_stores() -> Result<()> {
    each_has_its_part(Place::default().open().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_has_its_part_of_real_stores() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    each_has_its_part(plane.about().servers().await?).await
}

async fn each_has_its_part(servers: Servers) -> Result<()> {
    let world = with_teams(servers.clone()).await?;
    for namespace in [Some("team-a"), Some("team-b"), None] {
        world.apply(&keeper(namespace)).await?;
    }
    for namespace in TEAMS {
        world.apply(&object(namespace)).await?;
    }
    let (a, b) = (
        uid_of(&world, "team-a").await?,
        uid_of(&world, "team-b").await?,
    );
    let uids = [(a.clone(), "A"), (b.clone(), "B")];
    let secrets = [
        "shared".to_owned(),
        format!("namespaces/team-a/{a}/shared"),
        format!("namespaces/team-b/{b}/shared"),
    ];
    world
        .until("each has stored its own", || async {
            for secret in &secrets {
                if !world.has_secret(secret).await? {
                    return Ok(false);
                }
            }
            Ok(world.keys().await?.len() == 3)
        })
        .await?;
    check(
        &world,
        &uids,
        expect![[r#"
        basic/shared: cluster
        namespaces/team-a/A/basic/shared: team-a
        namespaces/team-b/B/basic/shared: team-b"#]],
    )
    .await?;

    // A namespace that is created again has nothing of the earlier one.
    let namespaces: Api<DynamicObject> = world.objects("v1", "Namespace", "").await?;
    namespaces
        .delete("team-a", &DeleteParams::default())
        .await?;
    world
        .until("what team-a has stored is gone", || async {
            Ok(!world.has_secret(&secrets[1]).await? && world.keys().await?.len() == 2)
        })
        .await?;
    check(
        &world,
        &uids,
        expect![[r#"
        basic/shared: cluster
        namespaces/team-b/B/basic/shared: team-b"#]],
    )
    .await?;
    world
        .until("the namespace is gone", || async {
            Ok(namespaces.get_opt("team-a").await?.is_none())
        })
        .await?;
    // A request that was sent before can take effect later.
    let late = Write::Put(format!("namespaces/team-a/{a}/basic/late"), "1".to_owned());
    servers.config.write(vec![late], &[]).await?;
    world
        .until("what came late is gone", || async {
            Ok(world.keys().await?.len() == 2)
        })
        .await?;

    // What goes while no host is there is removed when one starts.
    world.stop().await?;
    let api: Api<DynamicObject> = Api::all_with(
        servers.cluster.client.clone(),
        &kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&()),
    );
    api.delete("team-b", &DeleteParams::default()).await?;
    let world = World::start_on(servers, |builder| builder).await?;
    world
        .until("what team-b has stored is gone", || async {
            Ok(!world.has_secret(&secrets[2]).await? && world.keys().await?.len() == 1)
        })
        .await?;
    check(&world, &uids, expect!["basic/shared: cluster"]).await?;
    world.stop().await
}

/// A ClusterConfigurator with these requests, and rules for the partitions of team-a and of a namespace that does not exist.
fn visitor(requests: Value) -> Value {
    let mut visitor = keeper(None);
    visitor["spec"]["parameters"] = json!({"root": {"requests": requests}});
    let namespaces = json!(["team-a", "nobody"]);
    visitor["spec"]["capabilities"]["configstore"] =
        json!([{"namespaces": namespaces, "prefixes": ["basic/"], "verbs": ["update"]}]);
    visitor["spec"]["capabilities"]["secretstore"] =
        json!([{"namespaces": namespaces, "names": ["*"], "verbs": ["get", "create"]}]);
    visitor
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_configurator_enters_a_partition_by_a_rule() -> Result<()> {
    enters_a_partition(Place::default().open().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_configurator_enters_a_partition_of_real_stores_by_a_rule() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    enters_a_partition(plane.about().servers().await?).await
}

async fn enters_a_partition(servers: Servers) -> Result<()> {
    let world = with_teams(servers).await?;
    let requests = json!([
        {"name": "put", "partition": "team-a", "put": {"key": "greeting", "value": "1"}},
        {"name": "secret", "partition": "team-a", "secret": "given"},
    ]);
    world.apply(&visitor(requests)).await?;
    let namespaces: Api<DynamicObject> = world.objects("v1", "Namespace", "").await?;
    // A namespace that is created again has another partition.
    for round in 0..2 {
        let mut handled = object("team-b");
        handled["metadata"]["annotations"] = json!({"round": round.to_string()});
        world.apply(&handled).await?;
        let uid = uid_of(&world, "team-a").await?;
        let partition = format!("namespaces/team-a/{uid}");
        world
            .until("the partition has both", || async {
                let has_secret = world.has_secret(&format!("{partition}/given")).await?;
                let keys = world.keys().await?;
                let greeting = format!("{partition}/basic/greeting");
                Ok(has_secret && keys.len() == 1 && keys[0].0 == greeting)
            })
            .await?;
        namespaces
            .delete("team-a", &DeleteParams::default())
            .await?;
        world
            .until("the namespace and its partition are gone", || async {
                Ok(namespaces.get_opt("team-a").await?.is_none() && world.keys().await?.is_empty())
            })
            .await?;
        super::team(&world, "team-a", json!({"tenant": "yes"})).await?;
    }
    world.stop().await
}

/// Waits until the object of the ClusterConfigurator is given up, and returns why.
async fn failure(world: &World) -> Result<String> {
    let key = ObjectRef::cluster_scoped("keeper");
    let failure = || async {
        let found = get(&world.client, &key)
            .await?
            .context("the Configurator")?;
        let failures = found.status.unwrap_or_default().failures;
        Ok::<_, anyhow::Error>(failures.first().map(|failure| failure.message.clone()))
    };
    world
        .until("the object is given up", || async {
            Ok(failure().await?.is_some())
        })
        .await?;
    failure().await?.context("a failure")
}

/// Checks why an object is given up of which this is asked.
async fn check_denied(requests: Value, expected: Expect) -> Result<()> {
    let world = with_teams(Place::default().open().await?).await?;
    let mut visitor = visitor(requests);
    visitor["spec"]["retry"] = json!({"maxAttempts": 1});
    world.apply(&visitor).await?;
    world.apply(&object("team-b")).await?;
    expected.assert_eq(&failure(&world).await?);
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_configurator_enters_no_other_partition() -> Result<()> {
    check_denied(
        json!([{"name": "read", "partition": "team-b", "readSecret": "given"}]),
        expect!["spec.capabilities has no rule that allows secretstore: {namespaces: [team-b], names: [given], verbs: [get]}"],
    )
    .await?;
    check_denied(
        json!([{"name": "read", "partition": "nobody", "readSecret": "given"}]),
        expect![[r#"still failing after 1 attempt: ResourceNotFound: get the namespace nobody: namespaces "nobody" not found (NotFound)"#]],
    )
    .await?;
    // A rule for another partition is none for the own.
    check_denied(
        json!([{"name": "read", "readSecret": "given"}]),
        expect![
            "spec.capabilities has no rule that allows secretstore: {names: [given], verbs: [get]}"
        ],
    )
    .await?;
    check_denied(
        json!([{"name": "put", "partition": "team-a/x", "put": {"key": "greeting", "value": "1"}}]),
        expect![[r#"request "put": the output is invalid: `partition` is no name of a namespace: "team-a/x""#]],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_configurator_names_no_secret_of_a_team() -> Result<()> {
    let world = with_teams(Place::default().open().await?).await?;
    let uid = uid_of(&world, "team-a").await?;
    let secret = format!("namespaces/team-a/{uid}/shared");
    let mut thief = keeper(None);
    thief["spec"]["parameters"] =
        json!({"root": {"requests": [{"name": "read", "readSecret": secret}]}});
    world.apply(&thief).await?;
    world.apply(&object("team-a")).await?;
    let message = failure(&world).await?.replace(&uid, "UID");
    expect!["spec.capabilities has no rule that allows secretstore: {names: [namespaces/team-a/UID/shared], verbs: [get]}"].assert_eq(&message);
    world.stop().await
}
