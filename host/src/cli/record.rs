//! `configurator record`: what is made of recordings.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::terminal::{FAINT, NAME};
use crate::recording::Recording;

/// What is made of recordings.
#[derive(Args)]
pub struct RecordArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Turn a recorded run into a scenario: a test in which the same happens.
    ToScenario {
        /// The recording: a file in the folder of `run --record`.
        recording: PathBuf,
        /// File to write. Default: standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Path of the Configurator, relative to the scenario.
        #[arg(long, value_name = "FILE", default_value = "../configurator.yaml")]
        configurator: String,
    },
}

/// Makes it.
///
/// # Errors
/// When the recording cannot be read, or the scenario cannot be written.
pub fn record(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let Command::ToScenario {
        recording,
        output,
        configurator,
    } = &args.command;
    let scenario = Recording::read(recording)?.to_scenario(configurator);
    let text = serde_saphyr::to_string(&scenario)?;
    let Some(output) = output else {
        print!("{text}");
        return Ok(ExitCode::SUCCESS);
    };
    fs::write(output, text).with_context(|| format!("cannot write {}", output.display()))?;
    anstream::println!("{NAME}{}{NAME:#}", output.display());
    anstream::println!(
        "{FAINT}read it, then record what it does with `configurator simulate {} --update`{FAINT:#}",
        output.display()
    );
    Ok(ExitCode::SUCCESS)
}
