//! A new module that is rolled out as a canary.

use std::collections::BTreeSet;

use anyhow::Result;
use configurator_core::canary::Fraction;
use configurator_host::observer::Notice;
use configurator_tests::guests::{digest, variant};
use configurator_tests::witness::{Pass, Witness};
use configurator_tests::world::World;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::fixture::{Guest, handler};
use crate::swap::{condition, config_map, configurator, event, scripted, status, world};
use configurator_tests::shelf::Shelf;

/// Enough objects that a canary of 50 % handles some of them, but not all.
const OBJECTS: usize = 24;

pub fn with_canary(canary: Value) -> Value {
    let mut object = configurator();
    object["spec"]["module"]["rollout"] = json!({"canary": canary});
    object
}

/// A module that has the handlers, and fails.
pub fn broken() -> Vec<u8> {
    Guest::new()
        .describe(json!({"handlers": [handler("root")]}))
        .body("unreachable")
        .build()
}

/// Starts a host on one module, with objects that have had their runs.
async fn running(shelf: &Shelf, witness: &Witness, canary: Value) -> Result<World> {
    let world = world(shelf, witness).await?;
    world.apply(&with_canary(canary)).await?;
    for number in 0..OBJECTS {
        world.apply(&config_map(&format!("a{number}"), "1")).await?;
    }
    world
        .until("a run of each", async || {
            Ok(witness.passes().len() == OBJECTS)
        })
        .await?;
    world.settled(&["scripted"]).await?;
    Ok(world)
}

/// Returns the names of the objects that a canary of this percentage handles.
async fn canary_objects(world: &World, percent: u8) -> Result<BTreeSet<String>> {
    let api = world.objects("v1", "ConfigMap", "shop").await?;
    let all = api.list(&ListParams::default()).await?;
    let canary = Fraction::new(percent);
    let had = all
        .iter()
        .filter(|object| canary.contains(object.metadata.uid.as_deref().unwrap_or_default()));
    Ok(had
        .map(|object| {
            format!(
                "shop/{}",
                object.metadata.name.as_deref().unwrap_or_default()
            )
        })
        .collect())
}

/// The objects that have had a run of this module.
fn run_by(witness: &Witness, module: &[u8]) -> BTreeSet<String> {
    let module = digest(module);
    let of_it = witness.passes().into_iter();
    let of_it = of_it.filter(|pass| pass.module() == module);
    of_it.map(|pass| pass.object).collect()
}

/// A set of ConfigMaps of these names.
fn set_of(names: &[&str]) -> String {
    let entry = |name: &&str| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        json!({"name": name, "object": object})
    };
    let entries: Vec<Value> = names.iter().map(entry).collect();
    json!({"entries": entries}).to_string()
}

#[tokio::test]
async fn a_canary_deletes_no_members_of_sets_before_it_is_promoted() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one), Witness::new());
    let world = world(&shelf, &witness).await?;
    let declared = |duration: &str| {
        let canary = json!({"percent": 99, "duration": duration, "minRuns": 1});
        let mut object = with_canary(canary);
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["shop"], "verbs": ["get", "apply", "delete", "watch"]});
        object["spec"]["watch"]["labelSelector"] = json!({"matchLabels": {"owner": "yes"}});
        object["spec"]["sets"] = json!({});
        object["spec"]["chain"] = json!({"phases": [{"name": "root"}]});
        object["spec"]["parameters"] = json!({"root": {"desiredAt": "/data/set"}});
        object["spec"]["capabilities"] = json!({"kubernetes": [rule]});
        object
    };
    let owner = |name: &str, names: &[&str]| {
        let mut owner = config_map(name, "1");
        owner["metadata"]["labels"] = json!({"owner": "yes"});
        owner["data"] = json!({"set": set_of(names)});
        owner
    };
    let members = async || {
        let api = world.objects("v1", "ConfigMap", "shop").await?;
        let its = ListParams::default().labels("applyset.kubernetes.io/part-of");
        let all = api.list(&its).await?.into_iter();
        anyhow::Ok(
            all.filter_map(|object| object.metadata.name)
                .collect::<Vec<_>>(),
        )
    };
    world.apply(&declared("1h")).await?;
    // The canary handles nearly every object.
    let mut name = "web".to_owned();
    loop {
        let bare = config_map(&name, "1");
        world.apply(&bare).await?;
        if canary_objects(&world, 99)
            .await?
            .contains(&format!("shop/{name}"))
        {
            break;
        }
        name.push('-');
        name.push('1');
    }
    world.apply(&owner(&name, &["a", "b"])).await?;
    world
        .until("both members", async || Ok(members().await? == ["a", "b"]))
        .await?;
    shelf.put(Ok(two.clone()));
    world
        .until("a run of the canary", async || {
            Ok(!run_by(&witness, &two).is_empty())
        })
        .await?;
    world.apply(&owner(&name, &["a", "c"])).await?;
    world
        .until("the new member", async || {
            Ok(members().await?.contains(&"c".to_owned()))
        })
        .await?;
    world.settled(&["scripted"]).await?;
    assert_eq!(members().await?, ["a", "b", "c"]);

    world.apply(&declared("0s")).await?;
    world
        .until("the member that was left goes", async || {
            Ok(members().await? == ["a", "c"])
        })
        .await?;
    world.stop().await
}

#[tokio::test]
async fn a_canary_handles_its_objects_and_then_all() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let canary = json!({"percent": 50, "duration": "1h", "minRuns": 1});
    let world = running(&shelf, &witness, canary).await?;
    let handled = canary_objects(&world, 50).await?;
    assert!(!handled.is_empty() && handled.len() < OBJECTS);

    shelf.put(Ok(two.clone()));
    world
        .until("runs of the canary", async || {
            Ok(run_by(&witness, &two) == handled)
        })
        .await?;
    world
        .until("the status says so", async || {
            let status = status(&world).await?;
            let runs = status["canary"]["runs"].as_u64();
            Ok(status["moduleDigest"] == digest(&one)
                && status["canary"]["digest"] == digest(&two)
                && status["canary"]["percent"] == 50
                && status["canary"]["awaits"]
                    .as_str()
                    .unwrap_or_default()
                    .starts_with("until ")
                && runs == u64::try_from(handled.len()).ok())
        })
        .await?;
    // Objects that change meanwhile keep their modules.
    for number in 0..OBJECTS {
        world.apply(&config_map(&format!("a{number}"), "2")).await?;
    }
    world
        .until("each has one more", async || {
            Ok(witness.passes().len() == 2 * OBJECTS + handled.len())
        })
        .await?;
    assert_eq!(run_by(&witness, &two), handled);

    // A shorter duration promotes it.
    let done = json!({"percent": 50, "duration": "0s", "minRuns": 1});
    world.apply(&with_canary(done)).await?;
    world
        .until("all have had it", async || {
            Ok(run_by(&witness, &two).len() == OBJECTS)
        })
        .await?;
    world
        .until("the status says so", async || {
            let status = status(&world).await?;
            Ok(status["moduleDigest"] == digest(&two)
                && status["previousModuleDigest"] == digest(&one)
                && status["canary"].is_null())
        })
        .await?;
    world.stop().await
}

/// A rollback names the canary, which is pinned already.
#[tokio::test]
async fn a_rollback_to_a_pinned_canary_makes_it_the_module_of_all_objects() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let canary = json!({"percent": 50, "duration": "1h", "minRuns": 1});
    let world = running(&shelf, &witness, canary.clone()).await?;
    shelf.put(Ok(two.clone()));
    let mut pinned = with_canary(canary);
    pinned["spec"]["module"]["digest"] = digest(&two).into();
    world.apply(&pinned).await?;
    witness
        .next(0, |notice| matches!(notice, Notice::CanaryStarted { .. }))
        .await;
    world.settled(&["scripted"]).await?;
    assert_eq!(status(&world).await?["moduleDigest"], digest(&one));

    // As `configurator rollback --to` does: nothing but the annotation is new.
    pinned["metadata"]["annotations"] = json!({"configurator.dev/rollback": digest(&two)});
    world.apply(&pinned).await?;
    world
        .until("all have it", async || {
            let status = status(&world).await?;
            let is_it = status["moduleDigest"] == digest(&two) && status["canary"].is_null();
            Ok(is_it && run_by(&witness, &two).len() == OBJECTS)
        })
        .await?;
    assert_eq!(status(&world).await?["previousModuleDigest"], digest(&one));
    world.stop().await
}

#[tokio::test]
async fn a_faulty_canary_is_rolled_back() -> Result<()> {
    let (good, bad) = (variant(&scripted(), 1), broken());
    let (shelf, witness) = (Shelf::with(good.clone()), Witness::new());
    let canary = json!({"percent": 50, "duration": "1h", "minRuns": 1, "maxFaults": 0});
    let world = running(&shelf, &witness, canary).await?;
    let handled = canary_objects(&world, 50).await?;

    shelf.put(Ok(bad.clone()));
    witness
        .next(0, |notice| matches!(notice, Notice::RolledBack { .. }))
        .await;
    // Its objects have a run of the previous module. No other object has had a run of the canary.
    world
        .until("runs of the previous module", async || {
            let well = |object: &String| {
                let passes = witness.passes_of(object);
                let last = passes.last().map(|pass| pass.module().to_owned());
                last == Some(digest(&good))
            };
            Ok(run_by(&witness, &bad).is_subset(&handled) && handled.iter().all(well))
        })
        .await?;
    world
        .until("the status says so", async || {
            let status = status(&world).await?;
            let loaded = condition(&status, "ModuleLoaded");
            Ok(status["moduleDigest"] == digest(&good)
                && status["rolledBack"]["digest"] == digest(&bad)
                && status["canary"].is_null()
                && loaded["reason"] == "RolledBack"
                && condition(&status, "Degraded")["status"] == "True")
        })
        .await?;
    let said = event(&world, "ModuleRolledBack").await?;
    assert!(said.contains("runs failed"), "{said}");

    // It does not become a canary again when something else changes. Another module does.
    let canaries = |notices: &[Notice]| {
        let of_it = |notice: &&Notice| matches!(notice, Notice::CanaryStarted { digest: canary, .. } if *canary == digest(&bad));
        notices.iter().filter(of_it).count()
    };
    let mut changed = with_canary(json!({"percent": 50, "duration": "0s", "minRuns": 1}));
    changed["spec"]["concurrency"] = 3.into();
    world.apply(&changed).await?;
    world
        .until("it runs with what has changed", async || {
            Ok(status(&world).await?["observedGeneration"] == 2)
        })
        .await?;
    assert_eq!(canaries(&witness.notices()), 1);
    let next = variant(&scripted(), 3);
    shelf.put(Ok(next.clone()));
    world
        .until("all have the next", async || {
            Ok(status(&world).await?["moduleDigest"] == digest(&next))
        })
        .await?;
    world
        .until("nothing is wrong any more", async || {
            Ok(status(&world).await?["rolledBack"].is_null())
        })
        .await?;
    world.stop().await
}

#[tokio::test]
async fn one_run_of_each_of_a_few_canary_objects_is_enough() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one), Witness::new());
    let canary = json!({"percent": 50, "duration": "0s", "minRuns": 1000});
    let world = running(&shelf, &witness, canary).await?;
    shelf.put(Ok(two.clone()));
    world
        .until("all have it", async || {
            Ok(status(&world).await?["moduleDigest"] == digest(&two))
        })
        .await?;
    world.settled(&["scripted"]).await?;
    for number in 0..OBJECTS {
        let passes = witness.passes_of(&format!("shop/a{number}"));
        let modules: Vec<&str> = passes.iter().skip(1).map(|pass| pass.module()).collect();
        assert_eq!(modules, [digest(&two)]);
    }
    world.stop().await
}

#[tokio::test]
async fn a_canary_without_objects_is_promoted() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let world = world(&shelf, &witness).await?;
    world.apply(&with_canary(json!({"duration": "0s"}))).await?;
    world
        .until("it runs", async || {
            Ok(status(&world).await?["moduleDigest"] == digest(&one))
        })
        .await?;
    shelf.put(Ok(two.clone()));
    world
        .until("the canary is promoted", async || {
            Ok(status(&world).await?["moduleDigest"] == digest(&two))
        })
        .await?;
    let is_start = |notice: &&Notice| matches!(notice, Notice::CanaryStarted { .. });
    assert_eq!(witness.notices().iter().filter(is_start).count(), 1);
    world.stop().await
}

#[tokio::test]
async fn objects_that_leave_the_canary_return_to_the_stable_module() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one.clone()), Witness::new());
    let of = |percent: u8| json!({"percent": percent, "duration": "1h", "minRuns": 1000});
    let world = running(&shelf, &witness, of(80)).await?;
    let (larger, smaller) = (
        canary_objects(&world, 80).await?,
        canary_objects(&world, 20).await?,
    );
    shelf.put(Ok(two.clone()));
    world
        .until("runs of the canary", async || {
            Ok(run_by(&witness, &two) == larger)
        })
        .await?;
    world.apply(&with_canary(of(20))).await?;
    world
        .until("each is where it should be", async || {
            Ok(larger.iter().all(|object| {
                let module = if smaller.contains(object) { &two } else { &one };
                let passes = witness.passes_of(object);
                passes.last().map(Pass::module) == Some(&digest(module))
            }))
        })
        .await?;
    world.stop().await
}

#[tokio::test]
async fn a_batch_has_objects_of_one_module() -> Result<()> {
    // It takes one object or many, and asks for nothing.
    let quiet = Guest::new().build();
    let (one, two) = (variant(&quiet, 1), variant(&quiet, 2));
    let (shelf, witness) = (Shelf::with(one), Witness::new());
    let world = world(&shelf, &witness).await?;
    let mut object = with_canary(json!({"percent": 50, "duration": "1h"}));
    object["spec"]["chain"]["batch"] = json!({"maxSize": 100, "maxDelay": "50ms"});
    world.apply(&object).await?;
    for number in 0..OBJECTS {
        world.apply(&config_map(&format!("a{number}"), "1")).await?;
    }
    world.settled(&["scripted"]).await?;
    let handled = canary_objects(&world, 50).await?;
    shelf.put(Ok(two.clone()));
    world
        .until("runs of the canary", async || {
            Ok(run_by(&witness, &two).len() >= handled.len())
        })
        .await?;
    for number in 0..OBJECTS {
        world.apply(&config_map(&format!("a{number}"), "2")).await?;
    }
    world.settled(&["scripted"]).await?;
    assert_eq!(run_by(&witness, &two), handled);
    world.stop().await
}
