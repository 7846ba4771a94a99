//! The Rust toolchain that builds modules.
//!
//! The ordinary one, with rustup's `wasm32-unknown-unknown`; or, where that cannot be had, Debian's, which comes with the
//! sources of the standard library and builds it for the target.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt};

use anyhow::{Context, Result, ensure};

use crate::debian;

/// The target of all modules.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// The profile of all modules; in the workspace's manifest.
pub const PROFILE: &str = "guest";

/// Bytes of the module's stack. Rust's default of 1 MiB is memory that every fresh instance would have for nothing.
const STACK: usize = 256 * 1024;

const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_LINKER: &str = "/usr/bin/wasm-ld-19";

/// A toolchain that can build modules.
#[derive(Debug)]
pub struct Toolchain {
    kind: Kind,
    /// Such as `1.95.0`.
    version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Debian,
}

impl Toolchain {
    /// Finds a toolchain, and installs what is missing where that is possible.
    ///
    /// In this order: the ordinary one, if it has the target; Debian's, if it is complete; the ordinary one, if rustup can
    /// add the target; Debian's, if its packages can be installed.
    pub fn find() -> Result<Toolchain> {
        if has_target() {
            return Toolchain::of(Kind::Ordinary);
        }
        if debian_misses().is_empty() {
            return Toolchain::of(Kind::Debian);
        }
        eprintln!(
            "guests: the target {TARGET} is not installed: trying `rustup target add {TARGET}`"
        );
        let added = Command::new("rustup")
            .args(["target", "add", TARGET])
            .status()
            .is_ok_and(|status| status.success());
        if added && has_target() {
            return Toolchain::of(Kind::Ordinary);
        }
        install_debian()?;
        Toolchain::of(Kind::Debian)
    }

    /// Such as `1.95.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Builds packages of the workspace to core modules, below `target`.
    pub fn build(&self, workspace: &Path, target: &Path, packages: &[&str]) -> Result<()> {
        let mut command = match self.kind {
            Kind::Ordinary => Command::new(cargo()),
            Kind::Debian => {
                let mut command = Command::new(DEBIAN_CARGO);
                command
                    .env("RUSTC", DEBIAN_RUSTC)
                    // The sources of the standard library are built with the stable compiler that they came with.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER)
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env_remove("RUSTC_WRAPPER")
                    .env_remove("RUSTC_WORKSPACE_WRAPPER");
                command
            }
        };
        command.args([
            "build",
            "--locked",
            "--target",
            TARGET,
            "--profile",
            PROFILE,
        ]);
        for package in packages {
            command.args(["--package", package]);
        }
        if self.kind == Kind::Debian {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        let status = command
            .current_dir(workspace)
            .env("CARGO_TARGET_DIR", target)
            .env(
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
                format!("-Clink-arg=-zstack-size={STACK}"),
            )
            // The flags of a native build mean nothing here, and would replace those above.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {:?}", command.get_program()))?;
        ensure!(
            status.success(),
            "cargo could not build {}: its messages are above",
            packages.join(", ")
        );
        Ok(())
    }

    fn of(kind: Kind) -> Result<Toolchain> {
        let rustc = match kind {
            Kind::Ordinary => rustc(),
            Kind::Debian => DEBIAN_RUSTC.into(),
        };
        let said = output(&rustc, &["--version"])
            .with_context(|| format!("cannot run {}", rustc.display()))?;
        let version = version_of(&said)
            .with_context(|| format!("{} has no version: {said}", rustc.display()))?;
        Ok(Toolchain {
            kind,
            version: version.to_owned(),
        })
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Ordinary => write!(f, "rustc {} with the target {TARGET}", self.version),
            Kind::Debian => write!(
                f,
                "Debian's rustc {} with a standard library built for {TARGET}",
                self.version
            ),
        }
    }
}

/// `rustc 1.95.0 (59807616e 2026-04-14)` to `1.95.0`.
fn version_of(said: &str) -> Option<&str> {
    said.split_whitespace()
        .nth(1)
        .filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Whether the ordinary toolchain has the standard library of the target.
fn has_target() -> bool {
    let folder = output(&rustc(), &["--print", "target-libdir", "--target", TARGET]);
    folder.is_some_and(|folder| holds_std(Path::new(folder.trim())))
}

fn holds_std(folder: &Path) -> bool {
    let Ok(files) = folder.read_dir() else {
        return false;
    };
    files
        .flatten()
        .any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// What Debian's toolchain lacks.
fn debian_misses() -> Vec<PathBuf> {
    let mut needed: Vec<PathBuf> = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_LINKER]
        .map(PathBuf::from)
        .into();
    if let Some(sysroot) = output(&DEBIAN_RUSTC.into(), &["--print", "sysroot"]) {
        needed.push(Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std"));
    }
    needed.retain(|path| !path.exists());
    needed
}

fn install_debian() -> Result<()> {
    let packages = DEBIAN_PACKAGES.join(" ");
    let by_hand = format!(
        "To build modules, run one of these, then this task again:\n  \
         rustup target add {TARGET}\n  \
         sudo apt-get update && sudo apt-get install --yes {packages}"
    );
    debian::install(&DEBIAN_PACKAGES, &by_hand)?;
    let misses = debian_misses();
    ensure!(
        misses.is_empty(),
        "the packages {packages} are installed, and yet {misses:?} is missing.\n{by_hand}"
    );
    Ok(())
}

/// What a program prints, if it can be run and succeeds.
fn output(program: &OsString, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_version_is_the_second_word() {
        assert_eq!(
            version_of("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)"),
            Some("1.96.0")
        );
        assert_eq!(version_of("rustc 1.97.0-nightly"), Some("1.97.0-nightly"));
        assert_eq!(version_of("rustc: command not found"), None);
        assert_eq!(version_of(""), None);
    }

    #[test]
    fn a_target_is_there_when_its_standard_library_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!holds_std(&folder.path().join("absent")));
        assert!(!holds_std(folder.path()));
        fs::write(folder.path().join("libstd-0a1b.rlib"), "").unwrap();
        assert!(holds_std(folder.path()));
    }
}
