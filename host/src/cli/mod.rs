//! The program `configurator`.

mod build;
mod cache;
mod dev;
mod embedded;
mod escape;
mod flow;
mod inspect;
mod kubeconfig;
mod manifests;
mod policy;
mod probes;
mod rbac;
mod record;
mod registry;
mod replay;
mod rollback;
mod run;
mod servers;
mod settings;
mod simulate;
mod telemetry;
pub mod terminal;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs Wasm handlers that turn cluster objects into configuration, secrets and further objects.
#[derive(Parser)]
#[command(name = "configurator", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a module: a handler, its unit test, its Configurator and a scenario, in a folder.
    New(build::NewArgs),
    /// Compile a module's sources to a component, in any of the languages.
    Build(build::BuildArgs),
    /// Work on a module: build it, play its scenarios and run it, and all of that anew with each change.
    Dev(dev::DevArgs),
    /// Run the host: on an embedded API and stores, or on a cluster.
    Run(Box<run::RunArgs>),
    /// Test modules without a cluster: play scenarios with scripted servers and virtual time.
    Simulate(simulate::SimulateArgs),
    /// Check manifests of Configurators, and settings, without running anything.
    Validate(validate::ValidateArgs),
    /// Show what a module offers: handlers, imports, digest, size.
    Inspect {
        /// The module.
        module: PathBuf,
    },
    /// Put a module into a registry of OCI artifacts, and sign it.
    Push(registry::PushArgs),
    /// Get a module from a registry of OCI artifacts.
    Pull(registry::PullArgs),
    /// Make something of recorded runs.
    Record(record::RecordArgs),
    /// Make the calls of recorded runs again: with their own module bit for bit, with another one to see what differs.
    Replay(replay::ReplayArgs),
    /// See, check and clear the folder of modules that were compiled.
    Cache(cache::CacheArgs),
    /// Pin a Configurator to the module that it ran before.
    Rollback(rollback::RollbackArgs),
    /// See what machines are doing, and tell them what to do.
    Flow(flow::FlowArgs),
    /// The tree of an object's machine: as `flow show`.
    Show {
        /// The cluster; by default the one whose Pod this is.
        #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
        kubeconfig: Option<PathBuf>,
        #[command(flatten)]
        object: flow::Object,
    },
    /// Print the CustomResourceDefinitions: Configurator, Flow, Command.
    Crds,
    /// Print the rights that the host needs in a cluster to run these Configurators, and no others.
    Rbac(rbac::RbacArgs),
    /// Print the kubeconfig for the embedded API of a running host, or write it to a file.
    Kubeconfig {
        /// The host's data folder.
        #[arg(long, value_name = "DIR", env = "CONFIGURATOR_DATA_DIR")]
        data_dir: PathBuf,
        /// Where to write it.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    silence_caught_panics();
    let done = match cli.command {
        Command::New(args) => build::new(&args),
        Command::Build(args) => build::build(&args),
        Command::Dev(args) => dev::dev(args),
        Command::Run(args) => run::run(*args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Inspect { module } => inspect::inspect(&module),
        Command::Push(args) => registry::push(&args),
        Command::Pull(args) => registry::pull(&args),
        Command::Record(args) => record::record(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Cache(args) => cache::cache(&args),
        Command::Rollback(args) => rollback::rollback(&args),
        Command::Flow(args) => flow::flow(&args),
        Command::Show { kubeconfig, object } => flow::show(kubeconfig, object),
        Command::Crds => manifests::print_crds(),
        Command::Rbac(args) => rbac::rbac(&args),
        Command::Kubeconfig { data_dir, output } => kubeconfig::write(&data_dir, output.as_deref()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            let text = explained(&error);
            anstream::eprintln!("{}error:{:#} {text}", terminal::BAD, terminal::BAD);
            ExitCode::FAILURE
        }
    }
}

/// The error with its causes. Many errors tell their cause themselves, so what has been said is not said again.
fn explained(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// A damaged store file makes redb panic. The store catches that and says which file it is, so the panic is no news.
fn silence_caught_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_caught = panic
            .location()
            .is_some_and(|place| place.file().contains("/redb-"));
        if is_caught {
            tracing::debug!("{panic}");
        } else {
            usual(panic);
        }
    }));
}
