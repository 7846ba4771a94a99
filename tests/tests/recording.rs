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
use configurator_core::request::Operation;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_host::recording::{DEFAULT_RECORDINGS, Exactness, Recorder, Recording};
use configurator_tests::guests;
use configurator_tests::program::Program;
use configurator_tests::world::{Place, World};
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "hunter22-and-more";

/// Asks for a secret, and puts what it was told of it under a key.
fn configurator(record: Option<bool>) -> Value {
    let mut object = json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "Configurator",
        "metadata": {"name": "scripted"},
        "spec": {
            "watch": {"version": "v1", "kind": "ConfigMap", "namespaces": ["shop"]},
            "module": {"file": "scripted.wasm"},
            "phases": [{"name": "root"}, {"name": "write", "handler": "root"}],
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
    let recorder = Recorder::new(folder, DEFAULT_RECORDINGS)?;
    let recorder = match records_all {
        true => recorder,
        false => recorder.where_asked(),
    };
    let world = World::start_at(&Place::default(), |builder| builder.recorder(recorder)).await?;
    let value = Document::parse(json!({"password": SECRET}).to_string())?;
    world.secrets.create("login", value).await.unwrap();
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await?;
    world.apply(&configurator(record)).await?;
    for name in ["a", "b"] {
        world
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}}))
            .await?;
    }
    world.settled(&["scripted"]).await?;
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
        // The second call has seen the secret, and what is kept of it is of another of the same length.
        let seen: Vec<bool> = recording
            .calls
            .iter()
            .map(|call| call.has_stand_ins)
            .collect();
        assert_eq!(seen, [false, true]);
        assert!(recording.calls.iter().all(|call| call.results.len() == 1));
        assert_eq!(recording.replay(&guest, &module, Exactness::Bytes), []);
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
    let text = String::from_utf8(strange.stderr)?;
    assert!(text.contains("it is no recording"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_run_becomes_a_scenario_in_which_the_same_happens() -> Result<()> {
    let folder = TempDir::new()?;
    recorded(folder.path(), None, true).await?.stop().await?;
    let found = Recording::find(folder.path())?;
    let scenarios = TempDir::new()?;
    fs::write(
        scenarios.path().join("configurator.yaml"),
        configurator(None).to_string(),
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
