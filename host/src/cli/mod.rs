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
mod sets;
mod settings;
mod simulate;
mod table;
mod telemetry;
pub mod terminal;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use configurator_core::request::ObjectRef;
use configurator_guest::compiler::compile;

/// Runs Kubernetes controllers as sandboxed WebAssembly modules.
#[derive(Parser)]
#[command(name = "configurator", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a module: a handler, its unit test, its Configurator and a scenario.
    New(build::NewArgs),
    /// Compile a module's sources to a WebAssembly component.
    Build(build::BuildArgs),
    /// Build, test and run a module, again on every change.
    Dev(dev::DevArgs),
    /// Run the host, on an embedded API and stores or on a cluster.
    Run(Box<run::RunArgs>),
    /// Test modules without a cluster: play scenarios against scripted servers in virtual time.
    Simulate(simulate::SimulateArgs),
    /// Check Configurators and settings without running anything.
    Validate(validate::ValidateArgs),
    /// Show a module's handlers, imports, digest and size.
    Inspect {
        /// The module: a component file.
        module: PathBuf,
    },
    /// Push a module to an OCI registry, signed or not.
    Push(registry::PushArgs),
    /// Pull a module from an OCI registry.
    Pull(registry::PullArgs),
    /// Turn recorded runs into tests.
    Record(record::RecordArgs),
    /// Repeat the handler calls of recorded runs, with the recorded module or with another one.
    Replay(replay::ReplayArgs),
    /// List, verify and prune the cache of compiled modules.
    Cache(cache::CacheArgs),
    /// Pin a Configurator to the module it ran before.
    Rollback(rollback::RollbackArgs),
    /// Inspect and control the machines of objects.
    Flow(flow::FlowArgs),
    /// Approve what an object waits for: the same as `flow approve`.
    Approve {
        /// Kubeconfig of the cluster. Default: the cluster of the Pod this runs in.
        #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
        kubeconfig: Option<PathBuf>,
        #[command(flatten)]
        object: flow::Object,
        #[command(flatten)]
        giver: flow::Giver,
    },
    /// Show the workflow of an object: the same as `flow show`.
    Show {
        /// Kubeconfig of the cluster. Default: the cluster of the Pod this runs in.
        #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
        kubeconfig: Option<PathBuf>,
        #[command(flatten)]
        object: flow::Object,
    },
    /// Inspect desired sets: members, their states, and what they wait for.
    Sets(sets::SetsArgs),
    /// Compile the module on standard input to machine code, as a host has it done. Not for people.
    #[command(hide = true)]
    CompileModule {
        /// The limits of the compiler, and the options of the host.
        numbers: Vec<u64>,
    },
    /// Print the CustomResourceDefinitions of the host.
    Crds,
    /// Print the RBAC rules that the host needs to run these Configurators.
    Rbac(rbac::RbacArgs),
    /// Print the kubeconfig of the embedded API, or write it to a file.
    Kubeconfig {
        /// Data folder of the host.
        #[arg(long, value_name = "DIR", env = "CONFIGURATOR_DATA_DIR")]
        data_dir: PathBuf,
        /// File to write. Default: standard output.
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
        Command::Approve {
            kubeconfig,
            object,
            giver,
        } => flow::approve(kubeconfig, object, giver),
        Command::Show { kubeconfig, object } => flow::show(kubeconfig, object),
        Command::Sets(args) => sets::sets(&args),
        Command::CompileModule { numbers } => {
            compile(&numbers).map(ExitCode::from).map_err(Into::into)
        }
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

/// The Configurator that a person writes as `NAMESPACE/NAME`, or the ClusterConfigurator that is written as `NAME`.
fn key_of(text: &str) -> anyhow::Result<ObjectRef> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [name] if !name.is_empty() => Ok(ObjectRef::cluster_scoped(name)),
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok(ObjectRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => anyhow::bail!(
            "{text:?} names no Configurator: write NAMESPACE/NAME, or NAME of a ClusterConfigurator"
        ),
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
