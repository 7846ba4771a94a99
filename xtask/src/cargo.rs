//! The cargo that tasks call.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::cache;

/// The program that runs this task, or the one on the path.
pub fn program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// cargo, as it was called from a terminal: without what the cargo that runs this task says of this task. Some build
/// scripts look at that, and would build everything above them again at each change between the two.
pub fn command() -> Command {
    let mut command = Command::new(program());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || matches!(
                &*text,
                "CARGO_CRATE_NAME" | "CARGO_BIN_NAME" | "CARGO_PRIMARY_PACKAGE"
            )
        {
            command.env_remove(name);
        }
    }
    command
}

/// The root of the workspace: of the checkout that cargo was called in, because several may share one build folder.
pub fn workspace() -> PathBuf {
    let xtask =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&xtask)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Runs cargo in the workspace, with its builds in the cache folder. What it prints is shown.
pub fn run(arguments: &[&str]) -> Result<()> {
    run_with(arguments, &[])
}

/// As [`run`], with these variables in its environment.
pub fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let line = format!("cargo {}", arguments.join(" "));
    eprintln!("xtask: {line}");
    let since = Instant::now();
    let status = command()
        .args(arguments)
        .current_dir(workspace())
        .env("CARGO_TARGET_DIR", cache::target()?)
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("cannot run {line}"))?;
    eprintln!("xtask: {line}: {:.0?}", since.elapsed());
    ensure!(status.success(), "{line} failed: its messages are above");
    Ok(())
}
