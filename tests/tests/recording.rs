//! Runs that are kept, and whose calls are made again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[path = "../../host/guest/tests/fixture/mod.rs"]
mod fixture;

use std::fs;
use std::path::Path;

use anyhow::Result;
use configurator_core::document::Document;
use configurator_core::partition::Partition;
use configurator_core::request::Operation;
use configurator_guest::log::no_log;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_host::recording::{
    DEFAULT_RECORDINGS, Exactness, MODULES, Recorder, Recording, Replayed, module_path,
};
use configurator_tests::configurator;
use configurator_tests::guests;
use configurator_tests::machine::{Machine, definition};
use configurator_tests::program::Program;
use configurator_tests::world::{Place, Servers, World, apply};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "hunter22-and-more";

/// Asks for a secret, and puts what it was told of it under a key.
fn configurator(record: Option<bool>) -> Value {
    let mut object = json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": "scripted"},
        "spec": {
            "watch": {"apiVersion": "v1", "kind": "ConfigMap", "namespaces": ["shop"]},
            "module": {"file": "scripted.wasm"},
            "chain": {"phases": [{"name": "root"}, {"name": "write", "handler": "root"}]},
            "parameters": {
                "root": {"requests": [{"name": "secret", "readSecret": "login"}]},
                "write": {"requests": [{"name": "put", "put": {"key": "seen/{name}", "value": "{results}"}}]},
            },
            "capabilities": {
                "configstore": [{"prefixes": ["basic/"], "verbs": ["get", "create", "update"]}],
                "secretstore": [{"names": ["login"], "verbs": ["get"]}],
            },
        },
    });
    if let Some(record) = record {
        object["spec"]["record"] = record.into();
    }
    object
}

/// A host that keeps the runs of two objects there.
async fn recorded(folder: &Path, record: Option<bool>, records_all: bool) -> Result<World> {
    recorded_of(folder, &configurator(record), records_all).await
}

/// As [`recorded`], of this Configurator.
async fn recorded_of(folder: &Path, configurator: &Value, records_all: bool) -> Result<World> {
    let servers = Place::default().open().await?;
    recorded_on(servers, folder, configurator, records_all).await
}

/// As [`recorded_of`], on these servers.
async fn recorded_on(
    servers: Servers,
    folder: &Path,
    configurator: &Value,
    records_all: bool,
) -> Result<World> {
    let recorder = Recorder::new(folder, DEFAULT_RECORDINGS)?;
    let recorder = match records_all {
        true => recorder,
        false => recorder.where_asked(),
    };
    let world = World::start_on(servers, |builder| builder.recorder(recorder)).await?;
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await?;
    let metadata = &configurator["metadata"];
    let (partition, key) = match metadata["namespace"].as_str() {
        None => (Partition::default(), "scripted".to_owned()),
        Some(namespace) => {
            let namespaces = world.objects("v1", "Namespace", "").await?;
            let uid = namespaces.get(namespace).await?.uid().unwrap();
            (
                Partition::of_namespace(namespace, &uid),
                format!("{namespace}/scripted"),
            )
        }
    };
    let value = Document::parse(json!({"password": SECRET}).to_string())?;
    let secret = partition.secret("login");
    world.secrets.create(&secret, value).await.unwrap();
    world.apply(configurator).await?;
    for name in ["a", "b"] {
        world
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}, "data": {"copy": SECRET}}))
            .await?;
    }
    world.settled(&[&key]).await?;
    Ok(world)
}

fn runtime() -> GuestRuntime {
    GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        ..GuestOptions::default()
    })
    .unwrap()
}

#[tokio::test]
async fn a_parameter_from_a_secret_is_not_recorded() -> Result<()> {
    let folder = TempDir::new()?;
    let mut configurator = configurator(None);
    let spec = &mut configurator["spec"];
    spec["chain"] = json!({"phases": [{"name": "root"}]});
    spec["parameters"] = json!({"root": {"requests": [{"name": "put", "put": {"key": "seen/{name}", "value": "{parameter}"}}]}});
    let secret =
        json!({"namespace": "vault", "name": "login", "key": "password", "parameter": "parameter"});
    spec["parametersFrom"] = json!([{"secret": secret}]);
    let servers = Place::default().open().await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}});
    apply(&servers.cluster.client, &namespace).await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "vault", "name": "login"}, "stringData": {"password": SECRET}});
    apply(&servers.cluster.client, &secret).await?;
    let world = recorded_on(servers, folder.path(), &configurator, true).await?;
    let written = world.keys().await?;
    assert!(!written.is_empty(), "nothing is written");
    assert!(
        written.iter().all(|(_, value)| value.contains(SECRET)),
        "{written:?}"
    );
    world.stop().await?;
    let found = Recording::find(folder.path())?;
    assert_eq!(found.len(), 2);
    for path in &found {
        let text = fs::read_to_string(path)?;
        assert!(!text.contains("hunter22"), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn what_was_recorded_can_be_made_again_and_has_no_secret() -> Result<()> {
    let folder = TempDir::new()?;
    let world = recorded(folder.path(), None, true).await?;
    let written = world.keys().await?;
    assert!(
        written.iter().all(|(_, value)| value.contains(SECRET)),
        "{written:?}"
    );
    world.stop().await?;

    let found = Recording::find(folder.path())?;
    assert_eq!(found.len(), 2);
    let guest = runtime();
    let bytes = fs::read(guests::folder()?.join("scripted.wasm"))?;
    let module = guest.load_blocking(&bytes, "scripted.wasm")?;
    for path in &found {
        let text = fs::read_to_string(path)?;
        assert!(
            !text.contains(SECRET) && !text.contains("hunter22"),
            "{text}"
        );
        let recording = Recording::read(path)?;
        assert_eq!(recording.module, module.digest().to_string());
        assert_eq!(recording.end, "succeeded");
        let phases: Vec<&str> = recording
            .calls
            .iter()
            .map(|call| &*call.input.context.phase)
            .collect();
        assert_eq!(phases, ["root", "write"]);
        // Both have seen it, the first before it was known to be one: what is kept of them is of another of the same length.
        assert!(recording.calls.iter().all(|call| call.has_stand_ins));
        assert!(recording.calls.iter().all(|call| call.results.len() == 1));
        let replayed = recording.replay(&guest, &module, Exactness::Bytes);
        assert_eq!(replayed, Replayed::default());
    }
    Ok(())
}

#[tokio::test]
async fn a_configurator_may_ask_for_it_or_refuse_it() -> Result<()> {
    for (record, records_all, runs) in [
        (None, false, 0),
        (Some(true), false, 2),
        (Some(false), true, 0),
    ] {
        let folder = TempDir::new()?;
        recorded(folder.path(), record, records_all)
            .await?
            .stop()
            .await?;
        let found = match folder.path().join("scripted").exists() {
            true => Recording::find(folder.path())?.len(),
            false => 0,
        };
        assert_eq!(found, runs, "{record:?} {records_all}");
    }
    Ok(())
}

#[tokio::test]
async fn the_program_tells_how_another_module_differs() -> Result<()> {
    let folder = TempDir::new()?;
    recorded(folder.path(), None, true).await?.stop().await?;
    let replay = || Program::new("replay").arg(folder.path());
    let same = replay().output()?;
    let text = String::from_utf8(same.stdout)?;
    assert!(same.status.success(), "{text}");
    assert_eq!(text, "✓ 2 runs with 4 calls, 0 of them with a difference\n");

    let other = folder.path().join("other.wasm");
    fs::write(&other, fixture::Guest::new().build())?;
    let differs = replay().arg("--module").arg(&other).output()?;
    let text = String::from_utf8(differs.stdout)?;
    assert_eq!(differs.status.code(), Some(1), "{text}");
    assert!(
        text.contains("handler root") && text.contains("-  "),
        "{text}"
    );
    assert!(
        text.ends_with("2 runs with 4 calls, 2 of them with a difference\n"),
        "{text}"
    );

    let none = TempDir::new()?;
    let empty = Program::new("replay").arg(none.path()).output()?;
    let text = String::from_utf8(empty.stderr)?;
    assert!(text.contains("there are no recordings in"), "{text}");
    fs::write(none.path().join("a.json"), "{}")?;
    let strange = Program::new("replay").arg(none.path()).output()?;
    assert_eq!(strange.status.code(), Some(1));
    let text = String::from_utf8(strange.stdout)?;
    assert!(text.contains("it is no recording"), "{text}");
    Ok(())
}

/// Changes the text of a recording.
fn change(path: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut recording: Value = serde_json::from_slice(&fs::read(path)?)?;
    change(&mut recording);
    Ok(fs::write(path, recording.to_string())?)
}

#[tokio::test]
async fn runs_that_cannot_be_made_again_hold_up_no_others() -> Result<()> {
    let folder = TempDir::new()?;
    recorded(folder.path(), None, true).await?.stop().await?;
    let found = Recording::find(folder.path())?;
    assert!(folder.path().join(MODULES).is_dir());
    let replay = || -> Result<(Option<i32>, String)> {
        let output = Program::new("replay").arg(folder.path()).output()?;
        Ok((output.status.code(), String::from_utf8(output.stdout)?))
    };
    change(&found[0], |recording| {
        let key = "/calls/1/result/Ok/requests/resourceRequests/0/operation/config/operations/0/basic/key";
        *recording.pointer_mut(key).unwrap() = "seen/other".into();
    })?;
    let (status, text) = replay()?;
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("seen/other"), "{text}");
    assert!(
        text.ends_with("✗ 2 runs with 4 calls, 1 of them with a difference\n"),
        "{text}"
    );

    let gone = format!("sha256:{}", "0".repeat(64));
    change(&found[0], |recording| {
        recording["module"] = gone.clone().into()
    })?;
    let (status, text) = replay()?;
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("cannot read the module"), "{text}");
    assert!(
        text.ends_with(
            "✗ 1 runs with 2 calls, 0 of them with a difference\n  1 runs could not be made again\n"
        ),
        "{text}"
    );

    fs::write(
        module_path(folder.path(), &gone),
        fixture::Guest::new().build(),
    )?;
    let (status, text) = replay()?;
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("and not the module that was recorded"),
        "{text}"
    );
    Ok(())
}

/// A limit is a fact of the machine where the recorded module has met it, and a fault of one that did not.
#[tokio::test]
async fn a_new_module_that_passes_a_limit_is_a_difference() -> Result<()> {
    let folder = TempDir::new()?;
    recorded(folder.path(), None, true).await?.stop().await?;
    let mut recording = Recording::read(&Recording::find(folder.path())?[0])?;
    recording.limits.deadline = std::time::Duration::from_millis(50);
    let guest = runtime();
    let endless = fixture::Guest::new()
        .body("(loop $again (br $again))")
        .build();
    let deep = fixture::Guest::new()
        .items("(func $deep (call $deep))")
        .body("(call $deep)")
        .build();
    for module in [endless, deep] {
        let module = guest.load_blocking(&module, "other")?;
        let replayed = recording.replay(&guest, &module, Exactness::Values);
        assert_eq!((replayed.differences.len(), replayed.not_compared), (2, 0));
        let same = recording.replay(&guest, &module, Exactness::Bytes);
        assert_eq!((same.differences.len(), same.not_compared), (0, 2));
        let mut limited = recording.clone();
        for call in &mut limited.calls {
            let input = &call.input;
            let report =
                guest.call_blocking(&module, &call.handler, input, &limited.limits, no_log());
            call.result = report.result;
        }
        let other = fixture::Guest::new().build();
        let other = guest.load_blocking(&other, "another")?;
        let replayed = limited.replay(&guest, &other, Exactness::Values);
        assert_eq!((replayed.differences.len(), replayed.not_compared), (0, 2));
    }
    Ok(())
}

/// Every call of these is made again, and gives the same.
fn check_replays(folder: &Path, module: &str) -> Result<Vec<Recording>> {
    let guest = runtime();
    let bytes = fs::read(guests::folder()?.join(module))?;
    let module = guest.load_blocking(&bytes, module)?;
    let found = Recording::find(folder)?;
    let recordings = found.iter().map(|path| Recording::read(path));
    let recordings: Vec<Recording> = recordings.collect::<Result<_, _>>()?;
    for recording in &recordings {
        let replayed = recording.replay(&guest, &module, Exactness::Bytes);
        assert_eq!(replayed, Replayed::default());
    }
    Ok(recordings)
}

/// What is kept of runs whose instances are used again comes from instances of its own, and these count only calls that are made for objects.
#[tokio::test]
async fn runs_of_instances_that_are_used_again_can_be_made_again() -> Result<()> {
    let folder = TempDir::new()?;
    let mut counting = configurator(None);
    counting["spec"]["instancePolicy"] = "Reuse".into();
    counting["spec"]["parameters"]["write"]["requests"][0]["put"]["key"] = "seen-{calls}".into();
    let world = recorded_of(folder.path(), &counting, true).await?;
    let keys: Vec<String> = world
        .keys()
        .await?
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    world.stop().await?;
    // Four calls in one instance: the second of each run is an odd one.
    assert_eq!(keys.len(), 2);
    for key in &keys {
        let number = key.rsplit('-').next().unwrap().parse::<u32>()?;
        assert!(number < 4, "{keys:?}");
    }
    let recordings = check_replays(folder.path(), "scripted.wasm")?;
    assert_eq!(recordings.len(), 2);
    for recording in recordings {
        assert!(recording.calls.iter().all(|call| call.has_stand_ins));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_a_machine_can_be_made_again() -> Result<()> {
    let folder = TempDir::new()?;
    let recorder = Recorder::new(folder.path(), DEFAULT_RECORDINGS)?;
    let world = World::start_at(&Place::default(), |builder| builder.recorder(recorder)).await?;
    let value = Document::parse(json!({"password": SECRET}).to_string())?;
    world.secrets.create("login", value).await.unwrap();
    world.apply(&definition("Thing")).await?;
    let machine = configurator::of(
        "things",
        json!({
            "watch": {"apiVersion": "example.org/v1", "kind": "Thing"},
            "module": {"file": "scripted.wasm"},
            "machine": {
                "phases": [
                    {"name": "Work", "onDone": "Done", "serial": [
                        {"name": "read", "handler": "root", "parameters": {"scripts": [
                            {"requests": [{"name": "secret", "readSecret": "login"}], "again": true},
                            {"requests": [{"name": "put", "put": {"key": "seen", "value": "{last}"}}]},
                        ]}},
                        {"name": "write", "handler": "root", "parameters": {"script": {
                            "requests": [{"name": "put", "put": {"key": "written", "value": "{run}"}}],
                        }}},
                    ]},
                    {"name": "Done", "terminal": true},
                ],
            },
            "capabilities": {
                "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update"]}],
                "secretstore": [{"names": ["login"], "verbs": ["get"]}],
            },
        }),
    );
    world.apply(&machine).await?;
    world
        .apply(&json!({
            "apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"name": "one", "namespace": "default"}, "spec": {"copy": SECRET},
        }))
        .await?;
    let things = Machine::of(
        &world.client,
        "things",
        "example.org/v1",
        "Thing",
        "default",
    )
    .await?;
    things.until_phase("one", "Done").await?;
    world.settled(&["things"]).await?;
    world.stop().await?;
    let recordings = check_replays(folder.path(), "scripted.wasm")?;
    assert!(recordings.len() >= 3, "{}", recordings.len());
    // The entry that has read it and all after it know it.
    let text = serde_json::to_string(&recordings)?;
    assert!(!text.contains(SECRET), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_run_becomes_a_scenario_in_which_the_same_happens() -> Result<()> {
    check_scenario(&configurator(None)).await
}

#[tokio::test]
async fn a_run_of_a_namespaced_configurator_becomes_a_scenario_in_which_the_same_happens()
-> Result<()> {
    let mut configurator = configurator(None);
    configurator["kind"] = "Configurator".into();
    configurator["metadata"]["namespace"] = "shop".into();
    let watch = configurator["spec"]["watch"].as_object_mut();
    watch.unwrap().remove("namespaces");
    check_scenario(&configurator).await
}

/// Makes a scenario of a recorded run of this Configurator, and runs it.
async fn check_scenario(configurator: &Value) -> Result<()> {
    let folder = TempDir::new()?;
    recorded_of(folder.path(), configurator, true)
        .await?
        .stop()
        .await?;
    let found = Recording::find(folder.path())?;
    let scenarios = TempDir::new()?;
    fs::write(
        scenarios.path().join("configurator.yaml"),
        configurator.to_string(),
    )?;
    let scenario = scenarios.path().join("seen.yaml");
    let made = Program::new("record")
        .arg("to-scenario")
        .arg(&found[0])
        .arg("-o")
        .arg(&scenario)
        .args("--configurator configurator.yaml")
        .output()?;
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let simulate = |update: bool| {
        let program = Program::new("simulate")
            .arg(&scenario)
            .arg("--modules")
            .arg(guests::folder().unwrap());
        match update {
            true => program.arg("--update").output(),
            false => program.output(),
        }
    };
    let accepted = simulate(true)?;
    assert!(
        accepted.status.success(),
        "{}",
        String::from_utf8_lossy(&accepted.stdout)
    );
    assert!(simulate(false)?.status.success());
    let golden = fs::read_to_string(scenarios.path().join("seen.golden.yaml"))?;
    let recording = Recording::read(&found[0])?;
    let output = recording.calls[1].result.as_ref().unwrap();
    let Operation::Config(put) = &output.requests.resource_requests[0].operation else {
        panic!("the second phase puts a key");
    };
    // What the handler wrote then, it writes again, with the stand-in of the secret.
    let letters = |text: &str| text.replace(|one: char| !one.is_alphanumeric(), "");
    let written = letters(put.operations[0].value().unwrap());
    let (_, stand_in) = written.split_once("password").unwrap();
    let (stand_in, _) = stand_in.split_once("version").unwrap();
    let stand_in = format!("password{stand_in}");
    assert!(letters(&golden).contains(&stand_in), "{golden}\n{stand_in}");
    Ok(())
}
