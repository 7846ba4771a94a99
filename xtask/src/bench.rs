//! `cargo xtask bench`: what things cost.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Subcommand;

use crate::{cargo, controlplane, debian, guests, languages};

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
        /// On real servers instead, beside a bare loop that sends the same requests.
        #[arg(long, conflicts_with = "parts")]
        real: bool,
        /// Keep the figures in the tree. Without this, those are named that are more than 10 % worse than the kept ones.
        #[arg(long, conflicts_with = "real")]
        keep: bool,
    },
    /// Flows of ten steps that do nothing, on durable embedded stores, beside a Temporal server.
    Flow {
        /// Without the Temporal server.
        #[arg(long)]
        alone: bool,
    },
    /// 100,000 flows that wait, on durable embedded stores, and a restart of the host.
    Waits,
    /// A call in each language: in a fresh instance and in one that is reused; the start of its module from the cache, and of one with the
    /// runtime of Firefox; and a swap under load.
    Modules {
        /// Other components too: how long each takes to start from the cache.
        files: Vec<PathBuf>,
    },
    /// Healthy objects beside poisoned ones: how long they wait, for each kind of poison, with and without it.
    Fairness {
        /// Kinds to measure, as the table names them. Default: all.
        kinds: Vec<String>,
    },
    /// Plans of large sets, and sets on the embedded API and on a real control plane.
    Graph,
    /// 100,000 objects of a real control plane: start to ready beside a bare watcher, and memory of an idle object.
    Objects,
}

impl Bench {
    /// Builds what is measured, optimised, and measures it.
    pub fn run(self) -> Result<()> {
        debian::protoc()?;
        let parts = match self.what {
            What::Chain {
                mut parts,
                real: false,
                keep,
            } => {
                if keep {
                    parts.push("keep".to_owned());
                }
                parts
            }
            What::Chain { real: true, .. } => {
                controlplane::build()?;
                vec!["real".to_owned()]
            }
            What::Flow { alone: true } => vec!["flow".to_owned()],
            What::Flow { alone: false } => {
                let temporal = controlplane::temporal()?;
                vec![
                    "flow".to_owned(),
                    format!("temporal={}", temporal.display()),
                ]
            }
            What::Waits => vec!["waits".to_owned()],
            What::Modules { mut files } => {
                guests::build(&["workload-config"])?;
                cargo::run(&["build", "--package", "configurator-host"])?;
                guests::build_others(&languages::tools()?)?;
                files.push(languages::starlingmonkey()?);
                let mut parts = vec!["modules".to_owned()];
                for file in files {
                    // The measurement runs in another folder.
                    let file = file
                        .canonicalize()
                        .with_context(|| file.display().to_string())?;
                    parts.push(format!("module={}", file.display()));
                }
                parts
            }
            What::Fairness { kinds } => {
                let kinds = kinds.into_iter().map(|kind| format!("kind={kind}"));
                std::iter::once("fairness".to_owned())
                    .chain(kinds)
                    .collect()
            }
            What::Graph => {
                controlplane::build()?;
                controlplane::clients()?;
                vec!["graph".to_owned()]
            }
            What::Objects => {
                controlplane::build()?;
                vec!["objects".to_owned()]
            }
        };
        guests::build(&["pod-config", "nothing", "scripted"])?;
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
