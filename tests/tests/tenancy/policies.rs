//! What a ConfiguratorPolicy allows, Configurators of its namespaces can do, from the next request on.

use anyhow::{Context as _, Result};
use configurator_core::request::ObjectRef;
use configurator_host::host::Unselected;
use configurator_host::resource::{ConfiguratorStatus, get};
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, Servers, World};
use expect_test::{Expect, expect};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::scopes::place;
use super::team;

fn key() -> ObjectRef {
    ObjectRef {
        namespace: "team-a".into(),
        name: "worker".into(),
    }
}

/// A Configurator of team-a that does what the script says for each ConfigMap with the label.
fn worker(script: &Value) -> Value {
    let watch = json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}});
    let verbs = json!(["get", "apply", "delete"]);
    let rules = json!({
        "kubernetes": [{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": verbs}],
        "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
        "secretstore": [{"names": ["*"], "verbs": ["get", "create", "delete"]}],
    });
    let mut worker = configurator::scripted("worker", watch, script.clone(), rules);
    worker["spec"]["retry"] = json!({"maxAttempts": 1});
    place(&mut worker, Some("team-a"));
    worker
}

/// A policy for namespaces with the label `tenant: yes`.
fn policy(name: &str, spec: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "configurator.dev/v1alpha1", "kind": "ConfiguratorPolicy",
        "metadata": {"name": name}, "spec": spec,
    });
    policy["spec"]["namespaceSelector"] = json!({"matchLabels": {"tenant": "yes"}});
    policy
}

/// Rules that let ConfigMaps be watched and applied, and a value be stored.
fn rules() -> Value {
    json!({
        "kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch", "get", "apply"]}],
        "configstore": [{"prefixes": ["basic/"], "verbs": ["update"]}],
    })
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "team-a", "labels": {"handled": "yes"}},
    })
}

async fn start(servers: Servers) -> Result<World> {
    let world = World::start_on(servers, |builder| builder.unselected(Unselected::Denied)).await?;
    team(&world, "team-a", json!({"tenant": "yes"})).await?;
    Ok(world)
}

async fn status(world: &World) -> Result<ConfiguratorStatus> {
    let found = get(&world.client, &key())
        .await?
        .context("the Configurator")?;
    Ok(found.status.unwrap_or_default())
}

/// Awaits the condition Ready with a message that has these words, and returns it with its reason.
async fn until(world: &World, words: &str) -> Result<String> {
    let found = || async {
        let conditions = status(world).await?.conditions;
        let ready = conditions.into_iter().find(|found| found.type_ == "Ready");
        let ready = ready.map(|ready| format!("{}: {}", ready.reason, ready.message));
        Ok::<_, anyhow::Error>(ready.filter(|ready| ready.contains(words)))
    };
    world
        .until(&format!("Ready says {words}"), || async {
            Ok(found().await?.is_some())
        })
        .await?;
    found().await?.context("the condition")
}

async fn check(world: &World, words: &str, expected: Expect) -> Result<()> {
    expected.assert_eq(&until(world, words).await?);
    Ok(())
}

/// Awaits that the object is given up, and returns why.
async fn given_up(world: &World, name: &str) -> Result<String> {
    let found = || async {
        let failures = status(world).await?.failures;
        let failure = failures.into_iter().find(|failure| failure.name == name);
        Ok::<_, anyhow::Error>(failure.map(|failure| failure.message))
    };
    world
        .until(&format!("{name} is given up"), || async {
            Ok(found().await?.is_some())
        })
        .await?;
    found().await?.context("the failure")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_limits_what_a_team_can_do() -> Result<()> {
    a_policy_limits(Place::default().open().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_limits_what_a_team_can_do_on_real_servers() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    a_policy_limits(plane.about().servers().await?).await
}

async fn a_policy_limits(servers: Servers) -> Result<()> {
    let world = start(servers).await?;
    let copy = json!({"name": "copy", "apply": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "{name}-copy", "namespace": "{namespace}"},
    }});
    let script = json!({"requests": [copy]});
    world.apply(&worker(&script)).await?;
    world.apply(&object("one")).await?;
    check(&world, "no ConfiguratorPolicy", expect!["PolicyDenied: no ConfiguratorPolicy selects the namespace team-a: an administrator of the cluster can create one"]).await?;

    world
        .apply(&policy("b", json!({"capabilities": {}})))
        .await?;
    check(&world, "the ConfiguratorPolicy b", expect![[r#"WatchNotAllowed: spec.watch: the ConfiguratorPolicy b has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [team-a], verbs: [watch]}"#]]).await?;
    world
        .apply(&policy("b", json!({"capabilities": rules()})))
        .await?;
    until(&world, "Running").await?;
    world.settled(&["team-a/worker"]).await?;
    let maps = world.objects("v1", "ConfigMap", "team-a").await?;
    assert!(maps.get_opt("one-copy").await?.is_some());

    // The rules of two policies must both allow a request.
    let secret = json!({"requests": [{"name": "secret", "secret": "{name}"}]});
    world.apply(&worker(&secret)).await?;
    world.apply(&object("two")).await?;
    expect!["the ConfiguratorPolicy b has no rule that allows secretstore: {names: [two], verbs: [create]}"].assert_eq(&given_up(&world, "two").await?);
    let mut all = rules();
    all["secretstore"] = json!([{"names": ["*"], "verbs": ["create", "get"]}]);
    world
        .apply(&policy("a", json!({"capabilities": all})))
        .await?;
    world.apply(&object("three")).await?;
    expect!["the ConfiguratorPolicy b has no rule that allows secretstore: {names: [three], verbs: [create]}"].assert_eq(&given_up(&world, "three").await?);
    world
        .apply(&policy("b", json!({"capabilities": all})))
        .await?;
    // What was given up is tried again.
    world
        .until("nothing is given up", || async {
            Ok(status(&world).await?.failures.is_empty())
        })
        .await?;

    // Limits, and whom Configurators act as.
    let limits = json!({"memory": "32Mi", "deadline": "10s"});
    world
        .apply(&policy("a", json!({"capabilities": all, "limits": limits})))
        .await?;
    check(&world, "limits", expect!["PolicyDenied: spec.limits.memory: is 64Mi, and the ConfiguratorPolicies of the namespace allow 32Mi at most"]).await?;
    world
        .apply(&policy(
            "a",
            json!({"capabilities": all, "serviceAccounts": ["team-*"]}),
        ))
        .await?;
    check(&world, "ServiceAccount", expect!["PolicyDenied: the ConfiguratorPolicy a does not let Configurators act as the ServiceAccount team-a/default: set spec.serviceAccountName to another one"]).await?;

    // A policy that is invalid denies.
    world
        .apply(&policy("a", json!({"capabilities": all})))
        .await?;
    until(&world, "Running").await?;
    let unsure = json!({"capabilities": all, "limits": {"deadline": "-1s"}});
    world.apply(&policy("a", unsure)).await?;
    check(&world, "invalid", expect!["PolicyDenied: the ConfiguratorPolicy a is invalid: spec.limits.deadline: must not be negative"]).await?;

    // The namespace is not selected any more.
    world
        .apply(&policy("a", json!({"capabilities": all})))
        .await?;
    until(&world, "Running").await?;
    team(&world, "team-a", json!({"tenant": "no"})).await?;
    until(&world, "no ConfiguratorPolicy").await?;
    team(&world, "team-a", json!({"tenant": "yes"})).await?;
    until(&world, "Running").await?;
    let policies = world
        .objects("configurator.dev/v1alpha1", "ConfiguratorPolicy", "")
        .await?;
    for name in ["a", "b"] {
        policies.delete(name, &DeleteParams::default()).await?;
    }
    until(&world, "no ConfiguratorPolicy").await?;
    world.stop().await
}
