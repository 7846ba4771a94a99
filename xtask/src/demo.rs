//! `cargo xtask demo`: the main job, from nothing, with nothing installed.

use anyhow::{Context as _, Result, ensure};

use crate::{cache, cargo, controlplane, debian, guests};

/// Builds the modules and a host, and shows the whole way: objects appear, are configured, change and go, alone and as a set.
#[derive(clap::Args)]
pub struct Demo {
    /// On real servers: a Kubernetes control plane, etcd and Vault.
    #[arg(long)]
    real: bool,
}

impl Demo {
    /// Runs the demo, and prints what to try next.
    pub fn run(self) -> Result<()> {
        debian::protoc()?;
        eprintln!("demo: building the modules");
        let modules = guests::build(&["pod-config", "workload-config", "manifests"])?;
        let folder = modules
            .first()
            .and_then(|module| module.parent())
            .context("there are no modules")?;
        eprintln!("demo: building the host; the first time takes some minutes");
        cargo::run(&[
            "build",
            "--package",
            "configurator-host",
            "--bin",
            "configurator",
        ])?;
        let workspace = cargo::workspace();
        let data = std::env::temp_dir().join(format!("configurator-demo-{}", std::process::id()));
        let servers = self
            .real
            .then(|| controlplane::build()?.start(1))
            .transpose()?;
        if let Some(servers) = &servers {
            std::fs::write(&data, &servers.description)
                .with_context(|| format!("cannot write {}", data.display()))?;
        }
        let status = cargo::command()
            .args([
                "run",
                "--quiet",
                "--package",
                "configurator-examples",
                "--example",
                "demo",
                "--",
            ])
            .arg(&workspace)
            .arg(folder)
            .arg(&data)
            .current_dir(&workspace)
            .env("CARGO_TARGET_DIR", cache::target()?)
            .status()
            .context("cannot run the demo")?;
        let removed = match &servers {
            Some(_) => std::fs::remove_file(&data),
            None => std::fs::remove_dir_all(&data),
        };
        removed.with_context(|| format!("cannot remove {}", data.display()))?;
        drop(servers);
        ensure!(
            status.success(),
            "the demo did not go well: its messages are above"
        );
        let program = cache::target()?.join("debug/configurator");
        println!("\nTry next:");
        println!(
            "  {} run --data-dir demo-data --listen 127.0.0.1:6480 \\\n    --modules {} -f examples/shop/objects.yaml -f configurators/workload-config/configurator.yaml",
            program.display(),
            folder.display()
        );
        println!(
            "  kubectl --kubeconfig demo-data/kubeconfig get clusterconfigurators,deployments"
        );
        println!(
            "  {} simulate configurators --modules {}",
            program.display(),
            folder.display()
        );
        println!(
            "  {} inspect {}",
            program.display(),
            folder.join("pod_config.wasm").display()
        );
        Ok(())
    }
}
