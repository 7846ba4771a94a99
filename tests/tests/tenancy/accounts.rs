//! A Configurator reads and writes objects with the rights of its ServiceAccount.

use anyhow::{Context as _, Result};
use configurator_core::request::ObjectRef;
use configurator_host::cluster::Cluster;
use configurator_host::resource::{ConfiguratorStatus, get};
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, World};
use expect_test::{Expect, expect};
use kube::Client;
use kube::api::DeleteParams;
use kube::client::Body;
use serde_json::{Value, json};

use super::scopes::{place, with_teams};

/// Rights of a ServiceAccount of team-a.
async fn grant(world: &World, name: &str, account: &str, verbs: &[&str]) -> Result<()> {
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
    super::grant(world, "team-a", name, account, rules).await
}

async fn revoke(world: &World, name: &str) -> Result<()> {
    let bindings = world
        .objects("rbac.authorization.k8s.io/v1", "RoleBinding", "team-a")
        .await?;
    bindings.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// A Configurator of team-a that applies a ConfigMap beside each ConfigMap with the label.
fn copier(account: Option<&str>) -> Value {
    let watch = json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}});
    let script = json!({"requests": [{"name": "copy", "apply": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "{name}-copy", "namespace": "{namespace}"},
    }}]});
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["apply"]});
    let mut copier = configurator::scripted("copier", watch, script, json!({"kubernetes": [rule]}));
    place(&mut copier, Some("team-a"));
    if let Some(account) = account {
        copier["spec"]["serviceAccountName"] = account.into();
    }
    copier
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "team-a", "labels": {"handled": "yes"}},
    })
}

async fn status(world: &World) -> Result<ConfiguratorStatus> {
    let key = ObjectRef {
        namespace: "team-a".into(),
        name: "copier".into(),
    };
    let found = get(&world.client, &key)
        .await?
        .context("the Configurator")?;
    Ok(found.status.unwrap_or_default())
}

/// Awaits the condition Ready with this reason, and returns its message.
async fn ready(world: &World, reason: &str) -> Result<String> {
    let found = || async {
        let conditions = status(world).await?.conditions;
        let ready = conditions.into_iter().find(|found| found.type_ == "Ready");
        Ok::<_, anyhow::Error>(ready.filter(|ready| ready.reason == reason))
    };
    world
        .until(&format!("Ready says {reason}"), || async {
            Ok(found().await?.is_some())
        })
        .await?;
    Ok(found().await?.context("the condition")?.message)
}

async fn check_ready(world: &World, reason: &str, expected: Expect) -> Result<()> {
    expected.assert_eq(&ready(world, reason).await?);
    Ok(())
}

async fn copied(world: &World, name: &str) -> Result<()> {
    let maps = world.objects("v1", "ConfigMap", "team-a").await?;
    let name = format!("{name}-copy");
    world
        .until(&format!("{name} is there"), || async {
            Ok(maps.get_opt(&name).await?.is_some())
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rights_are_those_of_the_service_account() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    let world = with_teams(plane.about().servers().await?).await?;
    let own = "configurator";
    revoke(&world, own).await?;
    world.apply(&copier(None)).await?;
    world.apply(&object("one")).await?;

    // The host may do everything, and the ServiceAccount nothing.
    check_ready(&world, "ServiceAccountForbidden", expect!["the ServiceAccount team-a/default may not list configmaps in team-a: grant it by a Role and a RoleBinding; the host asks again"]).await?;

    // It may read, so the Configurator runs, and the server refuses what it writes.
    grant(&world, "reads", "default", &["list", "watch"]).await?;
    world
        .until("the object is given up", || async {
            Ok(!status(&world).await?.failures.is_empty())
        })
        .await?;
    let failure = &status(&world).await?.failures[0];
    expect![[r#"apply configmaps team-a/one-copy: configmaps "one-copy" is forbidden: User "system:serviceaccount:team-a:default" cannot patch resource "configmaps" in API group "" in the namespace "team-a" (Forbidden)"#]].assert_eq(&failure.message);

    // The right is found, and what was given up is tried again.
    grant(&world, "writes", "default", &["create", "patch"]).await?;
    copied(&world, "one").await?;

    // A watch that has begun would go on.
    revoke(&world, "reads").await?;
    ready(&world, "ServiceAccountForbidden").await?;
    world.apply(&object("two")).await?;
    grant(&world, "reads", "default", &["list", "watch"]).await?;
    copied(&world, "two").await?;

    // With another ServiceAccount, other rights hold.
    world.apply(&copier(Some("robot"))).await?;
    check_ready(&world, "ServiceAccountForbidden", expect!["the ServiceAccount team-a/robot may not list configmaps in team-a: grant it by a Role and a RoleBinding; the host asks again"]).await?;
    grant(
        &world,
        "robot",
        "robot",
        &["list", "watch", "create", "patch"],
    )
    .await?;
    revoke(&world, "writes").await?;
    world.apply(&object("three")).await?;
    copied(&world, "three").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_is_read_with_the_rights_of_the_service_account() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    let world = with_teams(plane.about().servers().await?).await?;
    let digest = format!("sha256:{:064}", 0);
    let mut of_map = copier(Some("reader"));
    of_map["spec"]["module"] = json!({"configMap": {"name": "module"}, "digest": digest});
    world.apply(&of_map).await?;
    check_ready(&world, "ServiceAccountForbidden", expect!["the ServiceAccount team-a/reader may not get configmaps module in team-a: grant it by a Role and a RoleBinding; the host asks again"]).await?;
    grant(&world, "reader", "reader", &["get"]).await?;
    check_ready(
        &world,
        "ModuleNotFound",
        expect!["the module has no source that this host knows: name one of file"],
    )
    .await?;

    let mut of_registry = copier(Some("reader"));
    let secret = json!({"name": "registry"});
    of_registry["spec"]["module"] =
        json!({"oci": {"reference": "localhost:1/module:1", "pullSecret": secret}});
    world.apply(&of_registry).await?;
    check_ready(&world, "ServiceAccountForbidden", expect!["the ServiceAccount team-a/reader may not get secrets registry in team-a: grant it by a Role and a RoleBinding; the host asks again"]).await?;
    world.stop().await
}

/// Between the host and the API is something that drops what the host says about whom it acts as.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_that_takes_requests_for_the_hosts_is_refused() -> Result<()> {
    let mut servers = Place::default().open().await?;
    let client = servers.cluster.client.clone();
    let forgetful = tower::service_fn(move |mut request: http::Request<Body>| {
        request.headers_mut().remove("impersonate-user");
        let client = client.clone();
        async move { client.send(request).await.map_err(tower::BoxError::from) }
    });
    servers.cluster = Cluster::from(Client::new(forgetful, "default"));
    let world = with_teams(servers).await?;
    world.apply(&copier(None)).await?;
    check_ready(&world, "CannotImpersonate", expect![[r#"the host cannot act as the ServiceAccount team-a/default; it retries: the API server takes its requests as those of "kubernetes-admin" in the groups ["system:masters", "system:authenticated"]"#]]).await?;
    world.stop().await
}
