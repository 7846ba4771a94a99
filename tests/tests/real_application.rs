//! A real application, applied as its users apply it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::ops::ControlFlow;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use configurator_apiserver::ServeOptions;
use configurator_store::{Store, StoreOptions};
use configurator_tests::guests;
use configurator_tests::world::{Place, World};
use tokio_util::sync::CancellationToken;

/// Runs kubectl, and returns what it printed.
fn kubectl(kubeconfig: &std::path::Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .output()
        .context("kubectl is needed: `cargo xtask test` installs it")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "kubectl {arguments:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_deployment_is_configured_and_applying_twice_changes_nothing() -> Result<()> {
    let Some(manifest) = guests::shared_data("online-boutique.yaml") else {
        return Ok(());
    };
    let manifest = manifest.display().to_string();
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    for flags in [
        &["apply", "-f", &manifest][..],
        &["apply", "--server-side", "-f", &manifest][..],
    ] {
        let world = World::start_at(&place, |builder| builder).await?;
        let stop = CancellationToken::new();
        let options = ServeOptions {
            addr: "127.0.0.1:0".parse()?,
            token: None,
        };
        let (served, serving) = world
            .server
            .clone()
            .context("the API is embedded")?
            .serve(options, stop.clone().cancelled_owned())
            .await?;
        let serving = tokio::spawn(serving);
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, served.kubeconfig())?;
        world.configure("workload-config", |_| {}).await?;
        let run = |arguments: Vec<String>| {
            let kubeconfig = kubeconfig.clone();
            tokio::task::spawn_blocking(move || {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                kubectl(&kubeconfig, &arguments)
            })
        };
        let applying = || flags.iter().map(ToString::to_string).collect::<Vec<_>>();
        run(applying()).await??;
        let names = run(vec![
            "get".into(),
            "deployments".into(),
            "-o".into(),
            "name".into(),
        ])
        .await??;
        let names: Vec<&str> = names
            .lines()
            .filter_map(|line| line.split('/').nth(1))
            .collect();
        assert_eq!(names.len(), 12, "{names:?}");
        let expected: Vec<String> = names
            .iter()
            .map(|name| format!("resources/workload/default/Deployment/{name}"))
            .collect();
        world
            .until("every Deployment is configured", || async {
                let keys: Vec<String> = world
                    .keys()
                    .await?
                    .into_iter()
                    .map(|(key, _)| key)
                    .collect();
                Ok(keys == expected)
            })
            .await?;
        world.settled(&["workload-config"]).await?;

        let before = world.keys().await?;
        let again = run(applying()).await??;
        if flags.len() == 3 {
            assert!(
                again.lines().all(|line| line.ends_with("unchanged")),
                "{again}"
            );
        }
        world.settled(&["workload-config"]).await?;
        assert_eq!(world.keys().await?, before);
        stop.cancel();
        serving.await?;
        world.stop().await?;
    }

    // A host that starts on what is there runs everything once more, and writes nothing.
    let stored = || -> Result<_> {
        let store = Store::open(&folder.path().join("config.redb"), StoreOptions::default())?;
        store.read(|stored| {
            let mut entries = String::new();
            stored.scan(b"", None, &mut |key, value| {
                let (key, value) = (key.escape_ascii(), value.escape_ascii());
                entries.push_str(&format!("{key} = {value}\n"));
                ControlFlow::Continue(())
            })?;
            anyhow::Ok((stored.revision(), entries))
        })?
    };
    let before = stored()?;
    let world = World::start_at(&place, |builder| builder).await?;
    world.settled(&["workload-config"]).await?;
    world.stop().await?;
    let after = stored()?;
    assert_eq!(after, before);
    Ok(())
}
