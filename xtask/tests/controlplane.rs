//! `cargo xtask controlplane`, run as a person runs it. It needs `kubectl` on the PATH; `cargo xtask test` builds the servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use configurator_tests::program::Running;
use rustix::process::{Pid, Signal, kill_process_group};

/// How long the servers may take to start: they are built beforehand.
const PATIENCE: Duration = Duration::from_secs(120);

/// The output of kubectl in a shell that has run the printed `export` lines.
fn kubectl(exports: &str, home: &Path, arguments: &str) -> Result<String> {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{exports}\nkubectl {arguments}"))
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "kubectl {arguments}: {complaint}; `cargo xtask test` installs it"
    );
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_servers_run_until_an_interrupt() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    // A terminal gives each command a process group, and sends an interrupt to all of it.
    command
        .arg("controlplane")
        .stdin(Stdio::null())
        .process_group(0);
    let mut controlplane = Running::start(command)?;
    controlplane.until_complained_within("controlplane: ready", PATIENCE)?;
    let exports = controlplane.until_printed("VAULT_TOKEN=")?;
    let kubeconfig = exports
        .lines()
        .find_map(|line| line.strip_prefix("export KUBECONFIG="))
        .context("no KUBECONFIG is printed")?;
    assert!(Path::new(kubeconfig).is_file(), "{exports}");

    let kubectl = |arguments: &str| kubectl(&exports, home.path(), arguments);
    kubectl("create configmap hello --from-literal=greeting=hi")?;
    assert_eq!(
        kubectl("get configmap hello --output jsonpath={.data.greeting}")?,
        "hi"
    );
    assert!(!controlplane.has_ended()?, "{}", controlplane.stderr());

    let group = Pid::from_raw(controlplane.id().try_into()?).context("a process has an id")?;
    kill_process_group(group, Signal::INT)?;
    let status = controlplane.ended_within(PATIENCE)?;
    assert!(status.success(), "{status}: {}", controlplane.stderr());
    assert!(!Path::new(kubeconfig).exists(), "{kubeconfig} is left");
    Ok(())
}
