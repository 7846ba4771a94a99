//! `cargo xtask bench`: what things cost.

use anyhow::Result;
use clap::Subcommand;

use crate::{cargo, debian, guests};

/// Measures. Each prints a table, and at its end a line `name: value` for each figure.
#[derive(clap::Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A run through both phases of pod-config, on durable embedded stores.
    Chain {
        /// Parts to measure: call, chain, host. Default: all.
        parts: Vec<String>,
    },
}

impl Bench {
    /// Builds what is measured, optimised, and measures it.
    pub fn run(self) -> Result<()> {
        debian::protoc()?;
        match self.what {
            What::Chain { parts } => {
                guests::build(&["pod-config", "nothing"])?;
                let mut arguments = vec![
                    "bench",
                    "--package",
                    "configurator-tests",
                    "--bench",
                    "chain",
                    "--",
                ];
                arguments.extend(parts.iter().map(String::as_str));
                cargo::run(&arguments)
            }
        }
    }
}
