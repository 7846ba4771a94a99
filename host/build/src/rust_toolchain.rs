//! The toolchain of Rust that can build modules.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::answer::answer;
use crate::error::BuildError;
use crate::language::Language;

/// The target of all modules.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// Bytes of the module's stack. Rust's default of 1 MiB is memory that every fresh instance would have for nothing.
const STACK: usize = 256 * 1024;

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_LINKER: &str = "/usr/bin/wasm-ld-19";

/// A toolchain that can build modules: the ordinary one, with rustup's target; or, where that cannot be had, Debian's, which comes with
/// the sources of the standard library and builds it for the target.
#[derive(Debug)]
pub struct Toolchain {
    kind: Kind,
    version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Debian,
}

impl Toolchain {
    /// The Debian packages that are a toolchain together.
    pub const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

    /// Finds the one for this folder, which may have a `rust-toolchain.toml`.
    ///
    /// # Errors
    /// When there is none that has the target; with the commands that install it.
    pub fn find(folder: &Path) -> Result<Self, BuildError> {
        let found = match (has_target(folder), debian_misses().is_empty()) {
            (true, _) => Self::of(Kind::Ordinary, folder),
            (false, true) => Self::of(Kind::Debian, folder),
            (false, false) => None,
        };
        found.ok_or_else(|| {
            let rustc = rustc();
            let is_there = answer(&rustc, &["--version"], folder).is_some();
            missing(&rustc.to_string_lossy(), is_there)
        })
    }

    fn of(kind: Kind, folder: &Path) -> Option<Self> {
        let rustc = match kind {
            Kind::Ordinary => rustc(),
            Kind::Debian => DEBIAN_RUSTC.into(),
        };
        let said = answer(rustc, &["--version"], folder)?;
        let version = version_of(&said)?.to_owned();
        Some(Self { kind, version })
    }

    /// Such as `1.95.0`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `cargo build` for the target, in this folder; what to build is the caller's.
    #[must_use]
    pub fn command(&self, folder: &Path) -> Command {
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
        command.args(["build", "--target", TARGET]);
        if self.kind == Kind::Debian {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        command
            .current_dir(folder)
            .env(
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
                format!("-Clink-arg=-zstack-size={STACK}"),
            )
            // The flags of a native build mean nothing here, and would replace those above.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }
}

impl std::fmt::Display for Toolchain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = &self.version;
        match self.kind {
            Kind::Ordinary => write!(f, "rustc {version} with the target {TARGET}"),
            Kind::Debian => write!(
                f,
                "Debian's rustc {version} with a standard library built for {TARGET}"
            ),
        }
    }
}

fn missing(rustc: &str, is_there: bool) -> BuildError {
    let (why, rustup) = match is_there {
        true => (format!("{rustc} has no such target"), ""),
        false => (
            format!("{rustc} cannot be run"),
            "see https://rustup.rs, and then: ",
        ),
    };
    BuildError::MissingTool {
        language: Language::Rust,
        what: format!("rustc with the target {TARGET}"),
        why,
        install: format!(
            "{rustup}rustup target add {TARGET}\nor, on Debian: sudo apt-get install {}",
            Toolchain::DEBIAN_PACKAGES.join(" ")
        ),
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

/// Whether the ordinary toolchain of this folder has the standard library of the target.
fn has_target(folder: &Path) -> bool {
    let arguments = ["--print", "target-libdir", "--target", TARGET];
    let folder = answer(rustc(), &arguments, folder);
    folder.is_some_and(|folder| holds_std(Path::new(&folder)))
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
#[must_use]
pub fn debian_misses() -> Vec<PathBuf> {
    let mut needed: Vec<PathBuf> = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_LINKER]
        .map(PathBuf::from)
        .into();
    if let Some(sysroot) = answer(DEBIAN_RUSTC, &["--print", "sysroot"], Path::new(".")) {
        needed.push(Path::new(&sysroot).join("lib/rustlib/src/rust/library/std"));
    }
    needed.retain(|path| !path.exists());
    needed
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::*;

    #[test]
    fn what_is_missing_can_be_installed() {
        expect![[r#"
            to build a module in Rust, rustc with the target wasm32-unknown-unknown is needed, and is not there: rustc has no such target
            rustup target add wasm32-unknown-unknown
            or, on Debian: sudo apt-get install rustc-web cargo-web rust-web-src lld-19"#]]
        .assert_eq(&missing("rustc", true).to_string());
        expect![[r#"
            to build a module in Rust, rustc with the target wasm32-unknown-unknown is needed, and is not there: rustc cannot be run
            see https://rustup.rs, and then: rustup target add wasm32-unknown-unknown
            or, on Debian: sudo apt-get install rustc-web cargo-web rust-web-src lld-19"#]]
        .assert_eq(&missing("rustc", false).to_string());
    }

    #[test]
    fn the_version_is_the_second_word() {
        let debian = "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)";
        assert_eq!(version_of(debian), Some("1.96.0"));
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
