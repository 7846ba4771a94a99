//! Development tasks: `cargo xtask …`.

mod bench;
mod controlplane;
mod demo;
mod guests;
mod install;
mod kopf;
mod test;

mod cache;
mod cargo;
mod debian;
mod languages;
mod packages;
mod toolchain;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Show the main job, from nothing: modules are built, objects appear, are configured, change and go.
    Demo(demo::Demo),
    /// Build the program, and put it where cargo puts programs.
    Install(install::Install),
    /// Set up what tests need, and run every test.
    Test(test::Test),
    /// Check everything: format, lints, documentation, tests.
    Ci(test::Ci),
    /// Measure what things cost.
    Bench(bench::Bench),
    /// Start real servers: etcd, a Kubernetes control plane, Vault.
    Controlplane(controlplane::Controlplane),
    /// Build handler modules to components, and print where they are.
    Guests(guests::Guests),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Demo(demo) => demo.run(),
        Task::Install(install) => install.run(),
        Task::Test(test) => test.run(),
        Task::Ci(ci) => ci.run(),
        Task::Bench(bench) => bench.run(),
        Task::Controlplane(controlplane) => controlplane.run(),
        Task::Guests(guests) => guests.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
