//! `cargo xtask test` and `cargo xtask ci`.

use anyhow::Result;

use crate::{cargo, controlplane, debian, guests, kopf, languages, packages};

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
        // The program builds modules in other languages than Rust.
        cargo::run(&["test", "--workspace", "--no-run"])?;
        guests::build(&[])?;
        let tools = languages::tools()?;
        guests::build_others(&tools)?;
        languages::test(&tools)?;
        packages::check(&tools)?;
        controlplane::build()?;
        controlplane::clients()?;
        kopf::install()?;
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
