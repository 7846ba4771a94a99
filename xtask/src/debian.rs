//! What tasks need of Debian's packages.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Installs packages, when this is Debian and the user may.
///
/// # Errors
/// When that is not so, or apt fails; `by_hand` says what to do then.
pub fn install(packages: &[&str], by_hand: &str) -> Result<()> {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    ensure!(
        is_root && Path::new("/usr/bin/apt-get").exists(),
        "{} cannot be installed here.\n{by_hand}",
        packages.join(" ")
    );
    eprintln!("xtask: installing {}", packages.join(" "));
    let install = [
        &["install", "--yes", "--no-install-recommends"][..],
        packages,
    ]
    .concat();
    for arguments in [&["update"][..], &install] {
        let status = Command::new("/usr/bin/apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("cannot run apt-get")?;
        ensure!(
            status.success(),
            "`apt-get {}` failed.\n{by_hand}",
            arguments.join(" ")
        );
    }
    Ok(())
}

/// Installs the packages unless this program can be run.
///
/// # Errors
/// As [`install`].
pub fn provide(program: &str, arguments: &[&str], packages: &[&str], why: &str) -> Result<()> {
    let is_there = || {
        Command::new(program)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if is_there() {
        return Ok(());
    }
    let by_hand = format!("Install {program} ({why}) and put it on the PATH, then run this again.");
    install(packages, &by_hand)?;
    ensure!(is_there(), "{program} still cannot be run.\n{by_hand}");
    Ok(())
}

/// protoc, which generates the client of etcd while the host is built, with the files that it includes.
///
/// # Errors
/// As [`install`].
pub fn protoc() -> Result<()> {
    let includes = Path::new("/usr/include/google/protobuf/descriptor.proto");
    if std::env::var_os("PROTOC").is_some() {
        return Ok(());
    }
    let packages = ["protobuf-compiler", "libprotobuf-dev"];
    let why = "it generates the client of etcd";
    if Path::new("/usr/bin/protoc").exists() && !includes.exists() {
        return install(&packages, "Install the include files of protobuf.");
    }
    provide("protoc", &["--version"], &packages, why)
}
