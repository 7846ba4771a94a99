//! Runs the commands of `docs/tenancy.md` against a real control plane.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use configurator_tests::controlplane::{About, ControlPlane};
use configurator_tests::guests;
use configurator_tests::program::{Program, beside_tests};

/// Returns the commands of each step.
fn steps(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1);
    let commands = blocks.filter_map(|block| block.split_once("```"));
    commands.map(|(commands, _)| commands.to_owned()).collect()
}

/// Runs commands of the page in a folder.
fn run(commands: &str, folder: &Path, about: &About) -> Result<String> {
    let program = beside_tests("configurator");
    let programs = program.parent().context("the folder of the program")?;
    let path = std::env::var("PATH")?;
    let output = Command::new("sh")
        .args(["-e", "-c", commands])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("KUBECONFIG", &about.kubernetes.kubeconfig)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{commands}: {told}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_gets_its_namespace_in_ten_steps() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    let about = plane.about();
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let module = "disruption_budget.wasm";
    std::fs::copy(guests::folder()?.join(module), folder.join(module))?;

    let page = std::fs::read_to_string(guests::workspace().join("docs/tenancy.md"))?;
    let steps = steps(&page);
    ensure!(steps.len() == 10, "{steps:#?}");
    let (install, others) = steps.split_first().context("the first step")?;
    run(install, folder, about)?;
    let host = Program::new("run")
        .arg("--kubeconfig")
        .arg(&about.kubernetes.kubeconfig)
        .args("--data-dir data")
        .folder(folder)
        .start()?;
    for commands in others {
        let done = run(commands, folder, about);
        done.with_context(|| format!("the host: {}{}", host.stdout(), host.stderr()))?;
    }

    // What the page says of the team's limits.
    let refused = |commands: &str| run(commands, folder, about).unwrap_err().to_string();
    let told = refused("kubectl label namespace team-a tenant=no --overwrite --as ann");
    ensure!(told.contains("Forbidden"), "{told}");
    let told = refused("kubectl get configuratorpolicies --as ann");
    ensure!(told.contains("Forbidden"), "{told}");
    Ok(())
}
