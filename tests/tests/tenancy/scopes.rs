//! Configurators of the same name in two namespaces and for the cluster do not meet.

use anyhow::{Context as _, Result};
use configurator_core::request::ObjectRef;
use configurator_host::resource::command::{Command, CommandPhase};
use configurator_host::resource::{Configurator, ConfiguratorStatus, get};
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::machine::definition;
use configurator_tests::world::{Place, Servers, World};
use expect_test::{Expect, expect};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::team;

pub const TEAMS: [&str; 2] = ["team-a", "team-b"];

/// A Configurator of ConfigMaps in this namespace; without one, a ClusterConfigurator. Its requests are those of the script.
fn greeter(namespace: Option<&str>, script: Value) -> Value {
    let watch = json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}});
    let mut rule =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["apply", "get"]});
    if namespace.is_none() {
        rule["namespaces"] = json!(TEAMS);
    }
    let mut greeter =
        configurator::scripted("greeter", watch, script, json!({"kubernetes": [rule]}));
    place(&mut greeter, namespace);
    greeter
}

pub fn place(configurator: &mut Value, namespace: Option<&str>) {
    match namespace {
        Some(namespace) => {
            configurator["kind"] = "Configurator".into();
            configurator["metadata"]["namespace"] = namespace.into();
        }
        None => configurator["spec"]["watch"]["namespaces"] = json!(TEAMS),
    }
}

/// Applies a ConfigMap with this suffix beside the object.
fn mark(suffix: &str) -> Value {
    json!({"name": "mark", "apply": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{{name}}-{suffix}"), "namespace": "{namespace}"},
        "data": {"by": suffix},
    }})
}

fn config_map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"handled": "yes"}},
    })
}

/// A host, a namespace for each team, and a policy that allows what teams ask for.
pub async fn with_teams(servers: Servers) -> Result<World> {
    let world = World::start_on(servers, |builder| builder).await?;
    for name in TEAMS {
        team(&world, name, json!({"tenant": "yes"})).await?;
    }
    let any = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["watch", "get", "list", "patch", "delete", "create", "replace", "apply"]});
    let rules = json!({
        "kubernetes": [any],
        "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
        "secretstore": [{"names": ["*"], "verbs": ["get", "create", "delete"]}],
    });
    let policy = json!({
        "apiVersion": "configurator.dev/v1alpha1", "kind": "ConfiguratorPolicy",
        "metadata": {"name": "teams"},
        "spec": {"namespaceSelector": {"matchLabels": {"tenant": "yes"}}, "capabilities": rules},
    });
    world.apply(&policy).await?;
    Ok(world)
}

async fn status(world: &World, namespace: &str) -> Result<ConfiguratorStatus> {
    let key = ObjectRef {
        namespace: namespace.into(),
        name: "greeter".into(),
    };
    let found = get(&world.client, &key).await?;
    Ok(found
        .with_context(|| key.to_string())?
        .status
        .unwrap_or_default())
}

/// The ConfigMaps of a team with their managers, and the finalizers of those that are handled.
async fn drawn(world: &World, namespace: &str) -> Result<String> {
    let maps = world.objects("v1", "ConfigMap", namespace).await?;
    let mut lines = Vec::new();
    for map in maps.list(&Default::default()).await? {
        let name = map.name_any();
        if name.starts_with("kube-") {
            continue;
        }
        let managers = map.managed_fields().iter();
        let managers = managers.filter_map(|entry| entry.manager.clone());
        let mut managers: Vec<String> = managers.filter(|name| name.contains("cfgr/")).collect();
        managers.sort();
        managers.dedup();
        let mut finalizers = map.finalizers().to_vec();
        finalizers.sort();
        lines.push(format!("{name}: {managers:?} {finalizers:?}"));
    }
    lines.sort();
    Ok(lines.join("\n"))
}

async fn check(world: &World, namespace: &str, expected: Expect) -> Result<()> {
    expected.assert_eq(&drawn(world, namespace).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_handles_the_objects_of_its_scope() -> Result<()> {
    each_has_its_scope(Place::default().open().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_handles_the_objects_of_its_scope_on_real_servers() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    each_has_its_scope(plane.about().servers().await?).await
}

async fn each_has_its_scope(servers: Servers) -> Result<()> {
    let world = with_teams(servers).await?;
    for (namespace, suffix) in [
        (Some("team-a"), "a"),
        (Some("team-b"), "b"),
        (None, "cluster"),
    ] {
        let mut greeter = greeter(namespace, json!({"requests": [mark(suffix)]}));
        greeter["spec"]["deletion"] = json!({"by": "Finalizer", "phases": [{"name": "root"}]});
        world.apply(&greeter).await?;
    }
    for namespace in TEAMS {
        world.apply(&config_map(namespace, "one")).await?;
    }
    let all = ["team-a/greeter", "team-b/greeter", "greeter"];
    world.settled(&all).await?;
    world
        .until("each has written its own", || async {
            let marks = [("team-a", "one-a"), ("team-b", "one-b")];
            for (namespace, name) in marks {
                let maps = world.objects("v1", "ConfigMap", namespace).await?;
                for name in [name, "one-cluster"] {
                    if maps.get_opt(name).await?.is_none() {
                        return Ok(false);
                    }
                }
            }
            Ok(true)
        })
        .await?;
    world.settled(&all).await?;
    check(&world, "team-a", expect![[r#"
        one-a: ["cfgr/team-a/greeter"] []
        one-cluster: ["ccfgr/greeter"] []
        one: ["ccfgr/greeter", "cfgr/team-a/greeter"] ["configurator.dev/greeter", "team-a.configurator.dev/greeter"]"#]]).await?;
    check(&world, "team-b", expect![[r#"
        one-b: ["cfgr/team-b/greeter"] []
        one-cluster: ["ccfgr/greeter"] []
        one: ["ccfgr/greeter", "cfgr/team-b/greeter"] ["configurator.dev/greeter", "team-b.configurator.dev/greeter"]"#]]).await?;
    world
        .until("the statuses count the objects of each scope", || async {
            let mut objects = Vec::new();
            for namespace in ["team-a", "team-b", ""] {
                let counts = status(&world, namespace).await?.counts;
                objects.push(counts.map_or(0, |counts| counts.objects));
            }
            Ok(objects == [1, 1, 2])
        })
        .await?;

    // What goes with one of them is its own.
    let configurators: Api<Configurator> = Api::namespaced(world.client.clone(), "team-a");
    configurators
        .delete("greeter", &DeleteParams::default())
        .await?;
    world
        .until("the Configurator of team-a is gone", || async {
            Ok(configurators.get_opt("greeter").await?.is_none())
        })
        .await?;
    let maps = world.objects("v1", "ConfigMap", "team-a").await?;
    assert_eq!(
        maps.get("one").await?.finalizers(),
        ["configurator.dev/greeter"]
    );
    assert!(maps.get_opt("one-a").await?.is_some());
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_another_namespace_are_refused() -> Result<()> {
    let world = with_teams(Place::default().open().await?).await?;
    let mut script = mark("a");
    script["apply"]["metadata"]["namespace"] = "team-b".into();
    world
        .apply(&greeter(Some("team-a"), json!({"requests": [script]})))
        .await?;
    world.apply(&config_map("team-a", "one")).await?;
    world
        .until("the object is given up", || async {
            Ok(!status(&world, "team-a").await?.failures.is_empty())
        })
        .await?;
    let failures = status(&world, "team-a").await?.failures;
    expect![[r#"spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [team-b], names: [one-a], verbs: [apply]}"#]].assert_eq(&failures[0].message);
    check(&world, "team-b", expect![[""]]).await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_without_namespaces_is_not_watched_by_a_team() -> Result<()> {
    let world = with_teams(Place::default().open().await?).await?;
    let mut nodes = greeter(Some("team-a"), json!({}));
    nodes["spec"]["watch"] = json!({"apiVersion": "v1", "kind": "Node"});
    world.apply(&nodes).await?;
    let stalled = || async {
        let status = status(&world, "team-a").await?;
        let mut conditions = status.conditions.into_iter();
        let found = conditions.find(|condition| condition.type_ == "Stalled");
        Ok::<_, anyhow::Error>(found.filter(|condition| condition.status == "True"))
    };
    world
        .until("it is stalled", || async { Ok(stalled().await?.is_some()) })
        .await?;
    let condition = stalled().await?.context("the condition")?;
    assert_eq!(condition.reason, "WatchNotAllowed");
    expect!["spec.watch: objects of the kind Node have no namespace, and a Configurator watches only its namespace: use a ClusterConfigurator"].assert_eq(&condition.message);
    world.stop().await
}

/// A machine for Things, with its states in ConfigMaps, that waits for an approval.
fn machine(namespace: Option<&str>) -> Value {
    let pause = json!({"scripts": [{"wait": {"signals": ["approved"]}}, {}]});
    let spec = json!({
        "watch": {"apiVersion": "example.org/v1", "kind": "Thing"},
        "module": {"file": "scripted.wasm"},
        "machine": {
            "state": {"in": "ConfigMap"},
            "phases": [
                {"name": "Working", "serial": [{"name": "pause", "handler": "root", "parameters": pause}], "onDone": "Done"},
                {"name": "Done", "terminal": true},
            ],
        },
    });
    let mut machine = configurator::of("greeter", spec);
    place(&mut machine, namespace);
    machine
}

/// What a Command came to.
async fn command(world: &World, kind: &str) -> Result<CommandPhase> {
    let commands: Api<Command> = Api::namespaced(world.client.clone(), "team-a");
    let command: Command = serde_json::from_value(json!({
        "apiVersion": "configurator.dev/v1alpha1", "kind": "Command",
        "metadata": {"generateName": "approve-"},
        "spec": {
            "configurator": {"kind": kind, "name": "greeter"},
            "target": {"kind": "Thing", "name": "one"},
            "verb": "Approve", "requestedBy": "ann",
        },
    }))?;
    let made = commands.create(&PostParams::default(), &command).await?;
    let name = made.name_any();
    let phase = || async {
        let status = commands.get(&name).await?.status.unwrap_or_default();
        Ok::<_, anyhow::Error>(status.phase.filter(|phase| *phase != CommandPhase::Pending))
    };
    world
        .until("the Command is answered", || async {
            Ok(phase().await?.is_some())
        })
        .await?;
    phase().await?.context("the phase")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_of_one_object_keep_their_states_apart() -> Result<()> {
    let world = with_teams(Place::default().open().await?).await?;
    world.apply(&definition("Thing")).await?;
    for namespace in [Some("team-a"), None] {
        world.apply(&machine(namespace)).await?;
    }
    let thing = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": "team-a"}});
    world.apply(&thing).await?;
    let maps = world.objects("v1", "ConfigMap", "team-a").await?;
    let things = world.objects("example.org/v1", "Thing", "team-a").await?;
    let uid = things.get("one").await?.uid().context("a uid")?;
    let phases = || async {
        let mut phases = Vec::new();
        for prefix in ["cfgr", "ccfgr"] {
            let map: Option<DynamicObject> =
                maps.get_opt(&format!("{prefix}-greeter-{uid}")).await?;
            let phase = map.map(|map| {
                map.data["data"]["phase"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            });
            phases.push(phase.unwrap_or_default());
        }
        Ok::<_, anyhow::Error>(phases)
    };
    let until = async |expected: [&str; 2]| {
        let are_so = || async { Ok(phases().await? == expected) };
        world.until(&format!("{expected:?}"), are_so).await
    };
    until(["Working", "Working"]).await?;
    world.settled(&["team-a/greeter", "greeter"]).await?;
    assert_eq!(command(&world, "Configurator").await?, CommandPhase::Done);
    until(["Done", "Working"]).await?;
    assert_eq!(
        command(&world, "ClusterConfigurator").await?,
        CommandPhase::Done
    );
    until(["Done", "Done"]).await?;
    world.stop().await
}
