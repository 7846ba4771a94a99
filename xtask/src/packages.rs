//! The packages of the SDKs, as each ecosystem publishes them. Go and C publish their sources: what their tests compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::languages::{Tools, run};
use crate::{cache, cargo};

/// Makes each package, installs it where nothing else of the SDK is, and uses it.
///
/// # Errors
/// When a package cannot be made, or lacks what its users need; what the tool wrote stands above.
pub fn check(tools: &Tools) -> Result<()> {
    rust().context("the package of guest-sdk/rust")?;
    javascript().context("the package of guest-sdk/javascript")?;
    python(tools).context("the package of guest-sdk/python")
}

fn rust() -> Result<()> {
    // cargo compiles what it has packed.
    let package = ["package", "--package", "configurator-sdk", "--allow-dirty"];
    cargo::run(&package)?;
    let listed = cargo::command()
        .args(package)
        .arg("--list")
        .current_dir(cargo::workspace())
        .output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    for file in ["LICENSE", "README.md", "wit/handler.wit"] {
        let is_there = listed.lines().any(|line| line == file);
        ensure!(is_there, "{file} is not in it");
    }
    Ok(())
}

fn javascript() -> Result<()> {
    let folder = empty("npm")?;
    let sources = cargo::workspace().join("guest-sdk/javascript");
    eprintln!("xtask: packing guest-sdk/javascript");
    let mut pack = Command::new("npm");
    pack.args(["pack", "--loglevel=error", "--pack-destination"])
        .arg(&folder)
        .current_dir(&sources);
    run(&mut pack)?;
    fs::write(folder.join("package.json"), r#"{"private": true}"#)?;
    let mut install = Command::new("npm");
    install
        .args(["install", "--offline", "--no-package-lock", "--no-audit"])
        .args(["--no-fund", "--loglevel=error"])
        .arg(packed(&folder, "tgz")?)
        .current_dir(&folder);
    run(&mut install)?;
    let package = folder.join("node_modules/configurator-sdk");
    holds(&package, "LICENSE")?;
    for source in sources.join("src").read_dir()?.flatten() {
        holds(&package.join("src"), source.file_name())?;
    }
    let uses = "
        import { handlers, Input, Output, request } from 'configurator-sdk';
        import { CONFIG_MAP } from 'configurator-sdk/kubernetes';
        import 'configurator-sdk/configstore';
        import 'configurator-sdk/secretstore';
        import 'configurator-sdk/http';
        import 'configurator-sdk/extension';
    ";
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval", uses])
        .current_dir(&folder);
    run(&mut node)
}

fn python(tools: &Tools) -> Result<()> {
    let folder = empty("python")?;
    eprintln!("xtask: packing guest-sdk/python");
    // The build writes beside its sources.
    let sources = folder.join("sources");
    copy(&cargo::workspace().join("guest-sdk/python"), &sources)?;
    let python = tools.python_venv.join("bin/python");
    let pip = || {
        let mut command = Command::new(&python);
        command
            .args(["-m", "pip", "--quiet", "--no-input"])
            .arg("--disable-pip-version-check");
        command
    };
    run(pip()
        .args(["wheel", "--no-deps", "--wheel-dir"])
        .arg(&folder)
        .arg(&sources))?;
    let site = folder.join("site");
    run(pip()
        .args(["install", "--no-deps", "--no-index", "--target"])
        .arg(&site)
        .arg(packed(&folder, "whl")?))?;
    let version = env!("CARGO_PKG_VERSION");
    let about = site.join(format!("configurator_sdk-{version}.dist-info"));
    holds(&about, "licenses/LICENSE")?;
    let uses = "
import importlib.resources
from configurator_sdk import Input, Output, handler, request
from configurator_sdk.kubernetes import CONFIG_MAP
assert importlib.resources.files('configurator_sdk').joinpath('py.typed').is_file()
";
    run(Command::new(&python)
        .args(["-c", uses])
        .env("PYTHONPATH", &site)
        .current_dir(&folder))
}

fn holds(folder: &Path, file: impl AsRef<Path>) -> Result<()> {
    let path = folder.join(file);
    ensure!(path.is_file(), "{} is not in it", path.display());
    Ok(())
}

/// A folder of the cache with nothing in it.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = cache::dir()?.join("packages").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied)?;
        } else {
            fs::copy(&path, &copied).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

fn packed(folder: &Path, extension: &str) -> Result<PathBuf> {
    let entries = folder.read_dir()?.flatten().map(|entry| entry.path());
    let mut found = entries.filter(|path| path.extension().is_some_and(|is| is == extension));
    let package = found.next();
    package.with_context(|| format!("there is no .{extension} in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> String {
        fs::read_to_string(cargo::workspace().join(file)).unwrap()
    }

    #[test]
    fn every_package_brings_the_licence() {
        for language in ["c", "go", "javascript", "python", "rust"] {
            let file = format!("guest-sdk/{language}/LICENSE");
            assert_eq!(read(&file), read("LICENSE"), "{file}");
        }
    }

    #[test]
    fn every_package_says_the_version_of_the_workspace() {
        let version = env!("CARGO_PKG_VERSION");
        for (file, said) in [
            ("javascript/package.json", r#""version": "N.N.N","#),
            ("python/pyproject.toml", r#"version = "N.N.N""#),
            ("go/version.go", r#"const Version = "N.N.N""#),
            (
                "c/include/configurator_sdk.h",
                r#"#define CONFIGURATOR_SDK_VERSION "N.N.N""#,
            ),
        ] {
            let said = said.replace("N.N.N", version);
            let text = read(&format!("guest-sdk/{file}"));
            assert!(
                text.lines().any(|line| line.trim() == said),
                "{file}: {said}"
            );
        }
    }
}
