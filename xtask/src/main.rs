//! Development tasks: `cargo xtask …`.

mod guests;

mod cache;
mod component;
mod toolchain;

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
    /// Build handler modules to components, and print where they are.
    Guests(guests::Guests),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Guests(guests) => guests.run(),
    }
}
