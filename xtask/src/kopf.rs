//! kopf, a framework for operators in Python, as a client of the API in tests.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::{cache, cargo, debian};

/// What is installed, below the workspace.
const REQUIREMENTS: &str = "tests/servers/kopf/requirements.txt";

/// Installs kopf into the cache folder, for `PYTHONPATH`, unless it is there already.
///
/// # Errors
/// When there is no Python with pip, or pip fails.
pub fn install() -> Result<PathBuf> {
    debian::provide(
        "python3",
        &["-m", "pip", "--version"],
        &["python3", "python3-pip"],
        "a client of the tests is written in Python",
    )?;
    let requirements = cargo::workspace().join(REQUIREMENTS);
    let wanted = fs::read(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    // Some packages hold machine code for one version of Python.
    let python = Command::new("python3").args(["-VV"]).output()?.stdout;
    let digest: String = Sha256::new()
        .chain_update(&wanted)
        .chain_update(&python)
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let folder = cache::dir()?.join("kopf");
    let stamp = folder.join(".digest");
    if fs::read_to_string(&stamp).is_ok_and(|old| old == digest) {
        return Ok(folder);
    }
    eprintln!("xtask: installing kopf by pip");
    let aside = folder.with_extension(std::process::id().to_string());
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--root-user-action=ignore"])
        .args(["--no-deps", "--only-binary", ":all:", "--requirement"])
        .arg(&requirements)
        .arg("--target")
        .arg(&aside)
        .stdin(Stdio::null())
        .status()
        .context("cannot run pip")?;
    ensure!(
        status.success(),
        "pip could not install kopf: its messages are above"
    );
    fs::write(aside.join(".digest"), digest)?;
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    fs::rename(&aside, &folder).with_context(|| format!("cannot write {}", folder.display()))?;
    Ok(folder)
}
