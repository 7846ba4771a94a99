//! The Rust toolchain that builds modules, installed where it is missing and that is possible.

use std::process::Command;

use anyhow::{Result, ensure};
use configurator_build::rust_toolchain::{TARGET, Toolchain, debian_misses};

use crate::{cargo, debian};

/// Finds a toolchain, and installs what is missing where that is possible.
///
/// In this order: the ordinary one, if it has the target; Debian's, if it is complete; the ordinary one, if rustup can
/// add the target; Debian's, if its packages can be installed.
pub fn provide() -> Result<Toolchain> {
    if let Ok(found) = Toolchain::find(&cargo::workspace()) {
        return Ok(found);
    }
    eprintln!("guests: the target {TARGET} is not installed: trying `rustup target add {TARGET}`");
    let added = Command::new("rustup")
        .args(["target", "add", TARGET])
        .status()
        .is_ok_and(|status| status.success());
    if added && let Ok(found) = Toolchain::find(&cargo::workspace()) {
        return Ok(found);
    }
    let packages = Toolchain::DEBIAN_PACKAGES.join(" ");
    let by_hand = format!(
        "To build modules, run one of these, then this task again:\n  \
         rustup target add {TARGET}\n  \
         sudo apt-get update && sudo apt-get install --yes {packages}"
    );
    debian::install(&Toolchain::DEBIAN_PACKAGES, &by_hand)?;
    let misses = debian_misses();
    ensure!(
        misses.is_empty(),
        "the packages {packages} are installed, and yet {misses:?} is missing.\n{by_hand}"
    );
    Ok(Toolchain::find(&cargo::workspace())?)
}
