//! `cargo xtask bench`: what things cost.

use anyhow::Result;
use clap::Subcommand;

use crate::{cargo, guests};

/// Measures. Each prints a table, and at its end a line `name: value` for each figure.
#[derive(clap::Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A run through both phases of pod-config, on durable embedded stores.
    Chain,
}

impl Bench {
    /// Builds what is measured, optimised, and measures it.
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Chain => {
                guests::build(&["pod-config", "nothing"])?;
                cargo::run(&[
                    "bench",
                    "--package",
                    "configurator-tests",
                    "--bench",
                    "chain",
                ])
            }
        }
    }
}
