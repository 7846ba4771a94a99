//! `cargo xtask test` and `cargo xtask ci`.

use std::process::Command;

use anyhow::Result;

use crate::{cargo, guests};

/// Sets up what tests need and runs every test: fast ones first, the program as a whole last.
#[derive(clap::Args)]
pub struct Test {}

impl Test {
    /// Runs the tests.
    pub fn run(self) -> Result<()> {
        guests::build(&[])?;
        kubectl()?;
        cargo::run(&[
            "build",
            "--package",
            "configurator-host",
            "--bin",
            "configurator",
        ])?;
        cargo::run(&["test", "--workspace"])
    }
}

/// Everything that a change must pass: format, lints, documentation, tests.
#[derive(clap::Args)]
pub struct Ci {}

impl Ci {
    /// Runs the checks.
    pub fn run(self) -> Result<()> {
        cargo::run(&["fmt", "--all", "--check"])?;
        cargo::run(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ])?;
        cargo::run_with(
            &["doc", "--workspace", "--no-deps"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        )?;
        Test {}.run()
    }
}

/// kubectl is a client that nobody here wrote: the embedded API is tested with it.
fn kubectl() -> Result<()> {
    let is_there = |program: &str| {
        Command::new(program)
            .args(["version", "--client"])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if is_there("kubectl") {
        return Ok(());
    }
    eprintln!("xtask: kubectl is not installed: trying `apt-get install kubernetes-client`");
    for arguments in [
        &["update"][..],
        &["install", "--yes", "kubernetes-client"][..],
    ] {
        let done = Command::new("apt-get")
            .args(arguments)
            .status()
            .is_ok_and(|status| status.success());
        anyhow::ensure!(
            done,
            "kubectl could not be installed: install it and put it on the PATH, then run this again"
        );
    }
    Ok(())
}
