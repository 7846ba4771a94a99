//! What a ConfiguratorPolicy allows, Configurators of its namespaces can do, from the next request on.

use std::time::{Duration, Instant};

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
    status_of(world, "worker").await
}

async fn status_of(world: &World, name: &str) -> Result<ConfiguratorStatus> {
    let key = ObjectRef {
        namespace: "team-a".into(),
        name: name.into(),
    };
    let found = get(&world.client, &key).await?;
    let found = found.with_context(|| key.to_string())?;
    Ok(found.status.unwrap_or_default())
}

/// Awaits the condition Ready with a message that has these words, and returns it with its reason.
async fn until(world: &World, words: &str) -> Result<String> {
    until_of(world, "worker", words).await
}

/// As [`until`], of the Configurator with this name.
async fn until_of(world: &World, name: &str, words: &str) -> Result<String> {
    let found = || async {
        let conditions = status_of(world, name).await?.conditions;
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
    check_of(world, "worker", words, expected).await
}

async fn check_of(world: &World, name: &str, words: &str, expected: Expect) -> Result<()> {
    expected.assert_eq(&until_of(world, name, words).await?);
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

fn named(name: &str) -> Value {
    let mut named = worker(&json!({"requests": []}));
    named["metadata"]["name"] = name.into();
    named
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_lets_the_oldest_configurators_run() -> Result<()> {
    a_quota_lets_the_oldest_run(Place::default().open().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_lets_the_oldest_configurators_run_on_real_servers() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    a_quota_lets_the_oldest_run(plane.about().servers().await?).await
}

async fn a_quota_lets_the_oldest_run(servers: Servers) -> Result<()> {
    let world = start(servers).await?;
    let one = json!({"capabilities": rules(), "quotas": {"configurators": 1}});
    world.apply(&policy("teams", one)).await?;
    world.apply(&named("worker")).await?;
    until(&world, "Running").await?;
    // Those of the same second are ordered by their uids.
    until_created_later(&world).await?;
    world.apply(&named("younger")).await?;
    check_of(&world, "younger", "QuotaExceeded", expect!["QuotaExceeded: the quota of Configurators in the namespace is 1, and as many are older: delete one of them, or ask an administrator of the cluster for a higher quota"]).await?;
    until(&world, "Running").await?;
    let kind = "configurator.dev/v1alpha1";
    let all = world.objects(kind, "Configurator", "team-a").await?;
    all.delete("worker", &DeleteParams::default()).await?;
    until_of(&world, "younger", "Running").await?;

    // Objects count once for each Configurator, from the oldest on.
    for name in ["one", "two", "three"] {
        world.apply(&object(name)).await?;
    }
    let some = json!({"capabilities": rules(), "quotas": {"objects": 5}});
    world.apply(&policy("teams", some)).await?;
    until_of(&world, "younger", "Running").await?;
    world.settled(&["team-a/younger"]).await?;
    until_created_later(&world).await?;
    world.apply(&named("youngest")).await?;
    check_of(&world, "youngest", "QuotaExceeded", expect!["QuotaExceeded: the quota of watched objects in the namespace is 5. Older Configurators leave 2, and spec.watch selects more"]).await?;
    let maps = world.objects("v1", "ConfigMap", "team-a").await?;
    maps.delete("one", &DeleteParams::default()).await?;
    until_of(&world, "youngest", "Running").await?;

    // Objects that come later end the youngest.
    world
        .settled(&["team-a/younger", "team-a/youngest"])
        .await?;
    world.apply(&object("four")).await?;
    until_of(&world, "youngest", "QuotaExceeded").await?;
    until_of(&world, "younger", "Running").await?;

    // The lowest quota of several policies applies, and ends what runs.
    let none = json!({"capabilities": rules(), "quotas": {"configurators": 0}});
    world.apply(&policy("none", none)).await?;
    until_of(&world, "younger", "QuotaExceeded").await?;
    world.stop().await
}

/// Awaits that what is created now has a later `creationTimestamp` than what there is.
async fn until_created_later(world: &World) -> Result<()> {
    let probe = |name: &str| {
        let metadata = json!({"name": name, "namespace": "team-a"});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    let maps = world.objects("v1", "ConfigMap", "team-a").await?;
    world.apply(&probe("earlier")).await?;
    let earlier = maps.get("earlier").await?.metadata.creation_timestamp;
    let later = || async {
        maps.delete("later", &DeleteParams::default()).await.ok();
        world.apply(&probe("later")).await?;
        let later = maps.get("later").await?.metadata.creation_timestamp;
        Ok::<_, anyhow::Error>(later > earlier)
    };
    world.until("the next second", later).await?;
    for name in ["earlier", "later"] {
        maps.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_limits_how_often_runs_begin() -> Result<()> {
    let world = start(Place::default().open().await?).await?;
    let slow = json!({"capabilities": rules(), "quotas": {"runsPerSecond": 2}});
    world.apply(&policy("teams", slow)).await?;
    let all = ["team-a/one", "team-a/other"];
    for name in ["one", "other"] {
        world.apply(&named(name)).await?;
        until_of(&world, name, "Running").await?;
    }
    let began = Instant::now();
    for number in 0..6 {
        world.apply(&object(&format!("object-{number}"))).await?;
    }
    world
        .until("all objects are there", || async {
            let mut objects = 0;
            for name in ["one", "other"] {
                let counts = status_of(&world, name).await?.counts;
                objects += counts.map_or(0, |counts| counts.objects);
            }
            Ok(objects == 12)
        })
        .await?;
    world.settled(&all).await?;
    // Of 12 runs, four can begin at once: two of the second that has passed, and one that each Configurator has reserved.
    assert!(began.elapsed() >= Duration::from_secs(4));
    world.stop().await
}
