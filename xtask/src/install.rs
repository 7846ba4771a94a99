//! `cargo xtask install`.

use std::path::PathBuf;

use anyhow::Result;

use crate::{cargo, debian};

/// Builds the program `configurator`, optimised, and puts it where cargo puts programs.
#[derive(clap::Args)]
pub struct Install {
    /// Put it into `bin` of this folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Install {
    /// Installs it. One that is there already is replaced.
    pub fn run(self) -> Result<()> {
        debian::protoc()?;
        let mut arguments = vec!["install", "--path", "host", "--locked", "--force"];
        let root = self.root.map(std::path::absolute).transpose()?;
        let root = root.as_deref().map(|folder| folder.to_string_lossy());
        if let Some(folder) = &root {
            arguments.extend(["--root", folder]);
        }
        cargo::run(&arguments)
    }
}
