//! `configurator kubeconfig`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use super::embedded::write_private;

/// Prints the kubeconfig of the host that runs, or ran last, on this data folder; or writes it to a file.
///
/// # Errors
/// When no host has served the API from this folder.
pub fn write(data_dir: &Path, output: Option<&Path>) -> anyhow::Result<ExitCode> {
    let file = data_dir.join("kubeconfig");
    anyhow::ensure!(
        file.exists(),
        "no host has served the API from {folder} yet; start one with `configurator run --data-dir {folder} --listen 127.0.0.1:0`",
        folder = data_dir.display()
    );
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    match output {
        Some(output) => write_private(output, &text)?,
        None => print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}
