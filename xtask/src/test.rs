//! `cargo xtask test` and `cargo xtask ci`.

use anyhow::Result;

use crate::{cargo, controlplane, debian, guests, kopf};

/// Sets up what tests need and runs every test: fast ones first, the program as a whole last.
#[derive(clap::Args)]
pub struct Test {}

impl Test {
    /// Runs the tests.
    pub fn run(self) -> Result<()> {
        debian::protoc()?;
        debian::provide(
            "kubectl",
            &["version", "--client"],
            &["kubernetes-client"],
            "a client that nobody here wrote",
        )?;
        guests::build(&[])?;
        controlplane::build()?;
        controlplane::clients()?;
        kopf::install()?;
        // The program is built with them, for its own test in `host/tests`.
        cargo::run(&["test", "--workspace"])
    }
}

/// Everything that a change must pass: format, lints, documentation, tests.
#[derive(clap::Args)]
pub struct Ci {}

impl Ci {
    /// Runs the checks.
    pub fn run(self) -> Result<()> {
        debian::protoc()?;
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
