//! Machines: what is under way in a phase when another module is swapped in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use configurator_host::module_source::{Copies, DEFAULT_COPIES, ModuleDirectory, ModuleSources};
use configurator_host::observer::Notice;
use configurator_host::recording::{DEFAULT_RECORDINGS, Recorder, Recording, module_path};
use configurator_tests::gate::{Gate, Pass};
use configurator_tests::guests::{digest, variant};
use configurator_tests::machine::{Machine, definition};
use configurator_tests::witness::Witness;
use configurator_tests::world::{Place, World};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::swap::scripted;
use configurator_tests::shelf::Shelf;

/// A step of the phase Work.
fn step(name: &str, script: Value) -> Value {
    json!({"name": name, "handler": "root", "parameters": {"script": script}})
}

/// Ends when it is told to go on.
fn pause() -> Value {
    let scripts = json!([{"wait": {"signals": ["go"]}}, {}]);
    json!({"name": "pause", "handler": "root", "parameters": {"scripts": scripts}})
}

fn put(key: &str) -> Value {
    let request = json!({"name": "put", "put": {"key": key, "value": "1"}});
    step(key, json!({"requests": [request]}))
}

fn configurator(work: Value, upgrade: &str) -> Value {
    json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": "scripted"},
        "spec": {
            "watch": {"apiVersion": "example.org/v1", "kind": "Thing"},
            "module": {"file": "scripted.wasm"},
            "machine": {
                "moduleUpgrade": upgrade,
                "requeueAfter": "10ms",
                "phases": [
                    {"name": "Work", "onDone": "More", "serial": work},
                    {"name": "More", "onDone": "Done", "serial": [put("more")]},
                    {"name": "Done", "terminal": true},
                ],
            },
            "capabilities": {"configstore": [{"prefixes": ["basic/"], "verbs": ["get", "create", "update"]}]},
        },
    })
}

/// A host with one Thing in such a machine.
struct Shop {
    world: World,
    machine: Machine,
}

impl Shop {
    async fn start(world: World, configurator: &Value) -> Result<Self> {
        world.apply(&definition("Thing")).await?;
        world.apply(configurator).await?;
        let thing = json!({
            "apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"namespace": "default", "name": "one"}, "spec": {},
        });
        world.apply(&thing).await?;
        let machine = Machine::of(
            &world.client,
            "scripted",
            "example.org/v1",
            "Thing",
            "default",
        );
        Ok(Self {
            machine: machine.await?,
            world,
        })
    }

    /// Returns when it waits to be told to go on.
    async fn until_pausing(&self) -> Result<()> {
        let pausing = "/status/state/Work/state/pause/startTime";
        let is_so = |thing: &Value| thing.pointer(pausing).is_some();
        self.machine.until("one", "it waits", is_so).await?;
        self.world.settled(&["scripted"]).await
    }

    async fn stop(self) -> Result<()> {
        // It speaks to the API as well.
        drop(self.machine);
        self.world.stop().await
    }

    async fn go(&self) -> Result<()> {
        let go = json!({"signal": {"name": "go"}});
        assert_eq!(self.machine.command("one", "Signal", go).await?, "done");
        Ok(())
    }
}

/// Which handlers were called, each with the module that it was of.
fn called(witness: &Witness) -> String {
    let names = [1, 2].map(|number| digest(&variant(&scripted(), number)));
    let mut text = String::new();
    for (phase, module) in witness.passes().into_iter().flat_map(|pass| pass.calls) {
        let number = names.iter().position(|name| *name == module).unwrap();
        text += &format!("{phase}: {}\n", ["one", "two"][number]);
    }
    text
}

async fn swapped(witness: &Witness) {
    let is_swapped = |notice: &Notice| matches!(notice, Notice::Swapped { .. });
    witness.next(0, is_swapped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_ends_on_its_module_and_the_next_is_of_the_new_one() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one), Witness::new());
    let gate = Gate::new(Pass::Held);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder
            .modules(shelf.clone())
            .observer(witness.clone())
            .decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    let work = json!([put("first"), put("second")]);
    let shop = Shop::start(world, &configurator(work, "NextEntry")).await?;
    gate.arrivals(1).await;
    shelf.put(Ok(two));
    swapped(&witness).await;
    gate.set(Pass::Open);
    shop.machine.until_phase("one", "Done").await?;
    expect![[r#"
        Work: one
        Work: two
        More: two
    "#]]
    .assert_eq(&called(&witness));
    shop.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_phase_ends_on_the_module_that_it_began_with() -> Result<()> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let (shelf, witness) = (Shelf::with(one), Witness::new());
    let world = crate::swap::world(&shelf, &witness).await?;
    let work = json!([pause(), put("after")]);
    let shop = Shop::start(world, &configurator(work, "Pinned")).await?;
    shop.until_pausing().await?;
    shelf.put(Ok(two));
    swapped(&witness).await;
    shop.go().await?;
    shop.machine.until_phase("one", "Done").await?;
    expect![[r#"
        Work: one
        Work: one
        Work: one
        More: two
    "#]]
    .assert_eq(&called(&witness));
    shop.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_phase_leaves_a_module_that_was_rolled_back() -> Result<()> {
    let good = variant(&scripted(), 1);
    let (shelf, witness) = (Shelf::with(good.clone()), Witness::new());
    let world = crate::swap::world(&shelf, &witness).await?;
    let mut configurator = configurator(json!([pause(), put("after")]), "Pinned");
    let canary = json!({"percent": 99, "duration": "1h", "minRuns": 1, "maxFaults": 0});
    configurator["spec"]["module"]["rollout"] = json!({"canary": canary});
    configurator["spec"]["retry"] = json!({"initialDelay": "10ms", "maxDelay": "10ms"});
    let shop = Shop::start(world, &configurator).await?;
    shop.until_pausing().await?;
    shelf.put(Ok(crate::canary::broken()));
    witness
        .next(0, |notice| matches!(notice, Notice::CanaryStarted { .. }))
        .await;
    // Enough objects that the canary handles some of them.
    let things: Vec<String> = (0..6).map(|number| format!("t{number}")).collect();
    for name in &things {
        let thing = json!({
            "apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"namespace": "default", "name": name}, "spec": {},
        });
        shop.world.apply(&thing).await?;
    }
    witness
        .next(0, |notice| matches!(notice, Notice::RolledBack { .. }))
        .await;
    for name in &things {
        let go = json!({"signal": {"name": "go"}});
        let pausing = "/status/state/Work/state/pause/startTime";
        let waits = |thing: &Value| {
            let failed = thing.pointer("/status/state/Work/state/pause/error");
            thing.pointer(pausing).is_some() && failed.is_none()
        };
        shop.machine.until(name, "it waits", waits).await?;
        assert_eq!(shop.machine.command(name, "Signal", go).await?, "done");
        shop.machine.until_phase(name, "Done").await?;
    }
    shop.stop().await
}

/// A host in this folder, with the file `scripted.wasm` and, where it has any, copies of what was fetched.
/// It records into the folder `runs`.
async fn host_in(folder: &TempDir, witness: &Witness, has_copies: bool) -> Result<World> {
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    let files = ModuleDirectory::new(folder.path()).every(Duration::from_millis(10));
    let mut modules = ModuleSources::new().files(files);
    if has_copies {
        let copies = Copies::open(folder.path().join("copies"), DEFAULT_COPIES)?;
        modules = modules.copies(Arc::new(copies));
    }
    let recorder = Recorder::new(folder.path().join("runs"), DEFAULT_RECORDINGS)?;
    World::start_at(&place, |builder| {
        let builder = builder.modules(modules).observer(witness.clone());
        builder.recorder(recorder)
    })
    .await
}

/// A host is started again with another module, while a pinned phase is under way.
async fn restarted(has_copies: bool, witness: &Witness) -> Result<(TempDir, Shop)> {
    let (one, two) = (variant(&scripted(), 1), variant(&scripted(), 2));
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scripted.wasm");
    std::fs::write(&file, &one)?;
    let work = json!([pause(), put("after")]);
    let configurator = configurator(work, "Pinned");
    let world = host_in(&folder, witness, has_copies).await?;
    let shop = Shop::start(world, &configurator).await?;
    shop.until_pausing().await?;
    shop.stop().await?;

    // What is recorded is of the host that has not begun it.
    std::fs::remove_dir_all(folder.path().join("runs"))?;
    std::fs::write(&file, &two)?;
    let world = host_in(&folder, witness, has_copies).await?;
    let shop = Shop::start(world, &configurator).await?;
    shop.until_pausing().await?;
    Ok((folder, shop))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_phase_goes_on_after_a_restart_with_a_copy_of_its_module() -> Result<()> {
    let witness = Witness::new();
    let (folder, shop) = restarted(true, &witness).await?;
    shop.go().await?;
    shop.machine.until_phase("one", "Done").await?;
    expect![[r#"
        Work: one
        Work: one
        Work: one
        More: two
    "#]]
    .assert_eq(&called(&witness));
    shop.stop().await?;
    let runs = folder.path().join("runs");
    let found = Recording::find(&runs)?;
    assert!(found.len() >= 2, "{found:?}");
    let mut modules = BTreeSet::new();
    for file in found {
        modules.insert(Recording::read(&file)?.module);
    }
    for number in [1, 2] {
        let bytes = variant(&scripted(), number);
        let name = digest(&bytes);
        assert!(modules.contains(&name), "{modules:?}");
        assert_eq!(std::fs::read(module_path(&runs, &name))?, bytes);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_phase_whose_module_is_gone_says_so_and_can_begin_anew() -> Result<()> {
    let witness = Witness::new();
    let (_folder, shop) = restarted(false, &witness).await?;
    shop.go().await?;
    let failed = "/status/state/Work/state/pause/error";
    let has_failed = |thing: &Value| thing.pointer(failed).is_some();
    shop.machine.until("one", "it fails", has_failed).await?;
    let thing = shop.machine.get("one").await?;
    let names = [1, 2].map(|number| digest(&variant(&scripted(), number)));
    let shown = thing.pointer(failed).unwrap().to_string();
    let shown = shown.replace(&names[0], "ONE").replace(&names[1], "TWO");
    let check = |said: &str, expected: Expect| expected.assert_eq(said);
    check(
        &shown,
        expect![[
            r#""the phase has begun with the module ONE and stays on it (spec.machine.moduleUpgrade is Pinned), but it is not to be had: the source has TWO instead, and there is no copy. Put it back, or have the phase begin anew by a Command with verb Restart""#
        ]],
    );
    assert_eq!(
        shop.machine.command("one", "Restart", json!({})).await?,
        "done"
    );
    shop.until_pausing().await?;
    shop.go().await?;
    shop.machine.until_phase("one", "Done").await?;
    check(
        &called(&witness),
        expect![[r#"
        Work: one
        Work: two
        Work: two
        Work: two
        More: two
    "#]],
    );
    shop.stop().await
}
