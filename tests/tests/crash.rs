//! The program is killed at random points and started again: every object ends configured, nothing is half-written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use configurator_core::backoff::{mix, spread};
use configurator_host::sinks::configstore::{ConfigStore as _, EmbeddedConfigStore};
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey, SecretStore as _};
use configurator_store::{Store, StoreOptions};
use configurator_tests::program::Program;
use configurator_tests::{guests, program};
use serde_json::Value;

const PODS: usize = 20;
const KILLS: u64 = 50;

/// A shop of Pods whose configuration carries the number of the round.
fn manifest(round: u64) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, annotations: {{config.configurator.dev/round: \"{round}\"}}}}\n"
    );
    for pod in 0..PODS {
        text += &format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: web-{pod}, namespace: shop, annotations: {{config.configurator.dev/own: \"{round}\"}}}}\n\
             spec: {{containers: [{{name: c, image: \"web:1\"}}]}}\n"
        );
    }
    text
}

fn program(folder: &Path) -> Result<Program> {
    let workspace = guests::workspace();
    Ok(Program::new("run")
        .arg("--data-dir")
        .arg(folder.join("data"))
        .arg("--modules")
        .arg(guests::folder()?)
        .arg("-f")
        .arg(workspace.join("configurators/pod-config/configurator.yaml"))
        .arg("-f")
        .arg(folder.join("shop.yaml"))
        .env("CONFIGURATOR_SECRET_KEY", program::SECRET_KEY))
}

async fn contents(
    folder: &Path,
) -> Result<(BTreeMap<String, String>, Vec<(String, u64)>, Vec<u64>)> {
    let data = folder.join("data");
    let config = EmbeddedConfigStore::open(&data.join("config.redb"))?;
    let mut keys: BTreeMap<String, String> = config.scan("").await?.into_iter().collect();
    keys.retain(|key, _| !key.starts_with("ledger/"));
    let key = SealingKey::from_text(program::SECRET_KEY, "the test")?;
    let secrets = EmbeddedSecretStore::open(&data.join("secrets.redb"), &key).await?;
    let mut versions = Vec::new();
    for name in secrets.names().await? {
        let secret = secrets.get(&name).await?.context("a secret vanished")?;
        versions.push((name, secret.version));
    }
    drop((config, secrets));
    let mut revisions = Vec::new();
    for file in ["config.redb", "secrets.redb"] {
        revisions.push(Store::open(&data.join(file), StoreOptions::default())?.revision()?);
    }
    Ok((keys, versions, revisions))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_fifty_times_every_object_ends_configured() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    std::fs::write(folder.join("shop.yaml"), manifest(0))?;
    // How long a whole pass takes decides where the kills fall.
    let since = Instant::now();
    program(folder)?.arg("--until-settled").succeeds()?;
    let whole = since.elapsed().max(Duration::from_millis(200));
    for round in 1..=KILLS {
        std::fs::write(folder.join("shop.yaml"), manifest(round))?;
        let mut running = program(folder)?.spawn()?;
        tokio::time::sleep(spread(whole, mix(round))).await;
        running.kill()?;
        running.wait()?;
    }
    program(folder)?.arg("--until-settled").succeeds()?;
    let (keys, secrets, revisions) = contents(folder).await?;

    let mut expected: Vec<String> = Vec::new();
    for pod in 0..PODS {
        for key in ["own", "round"] {
            let key = format!("appconf/shop/web-{pod}/{key}");
            assert_eq!(
                keys.get(&key).map(String::as_str),
                Some(KILLS.to_string().as_str()),
                "{key}"
            );
            expected.push(key);
        }
        let entry: Value = serde_json::from_str(&keys[&format!("resources/pod/shop/web-{pod}")])?;
        let value: Value = serde_json::from_str(entry["value"].as_str().unwrap_or_default())?;
        assert_eq!(value["config"]["own"], KILLS.to_string());
        expected.push(format!("resources/pod/shop/web-{pod}"));
        expected.push(format!("two/pods.shop.Pod.web-{pod}"));
        expected.push(format!("two/pods.shop.Pod.web-{pod}/web-{pod}"));
    }
    expected.sort();
    assert_eq!(
        keys.keys().cloned().collect::<Vec<_>>(),
        expected,
        "no key is missing, and none is there twice"
    );
    assert_eq!(secrets.len(), PODS);
    assert!(
        secrets.iter().all(|(_, version)| *version == 1),
        "no secret was written twice: {secrets:?}"
    );

    // Nothing is left to do: another start writes nothing.
    program(folder)?.arg("--until-settled").succeeds()?;
    assert_eq!(contents(folder).await?.2, revisions);
    Ok(())
}
