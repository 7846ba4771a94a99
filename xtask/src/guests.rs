//! `cargo xtask guests`: handler modules as components.
//!
//! A guest in Rust is a workspace member in one of [`FOLDERS`] that is built as a `cdylib`; they are built together. A guest in another language
//! is a folder there, or in a folder there, that is called as its language, or ends so: `configurators/workload-config/go`, `examples/go-hello`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use configurator_build::Language;
use configurator_build::component::{self, Imports};
use configurator_build::rust_toolchain::Toolchain;
use serde::Deserialize;

use crate::languages::Tools;
use crate::{cache, cargo, languages, toolchain};

/// Where guests are, below the workspace.
const FOLDERS: [&str; 3] = ["configurators", "examples", "tests/modules"];
/// Where modules of released versions of the contract are, each a workspace of its own.
const COMPAT: &str = "tests/compat";
/// Names all of these.
const RELEASED: &str = "compat";
/// The profile of guests in Rust; in the workspace's manifest.
const PROFILE: &str = "guest";

/// Builds handler modules to components, in the cache folder.
#[derive(clap::Args)]
pub struct Guests {
    /// Packages to build, which are in Rust, or `compat`. Default: all, in all languages.
    names: Vec<String>,
}

impl Guests {
    /// Builds them and prints the paths, one a line.
    pub fn run(self) -> Result<()> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let mut paths = build(&names)?;
        if names.is_empty() {
            cargo::run(&["build", "--package", "configurator-host"])?;
            paths.extend(build_others(&languages::tools()?)?);
        }
        for path in paths {
            println!("{}", path.display());
        }
        Ok(())
    }
}

/// Builds the guests in Rust of these package names, or all where there are none, and returns the components in that order.
///
/// What has not changed is not built again, and a component that comes out the same is not written again. Progress
/// goes to standard error.
pub fn build(names: &[&str]) -> Result<Vec<PathBuf>> {
    let root = cargo::workspace();
    let folder = folder()?;
    let toolchain = || -> Result<Toolchain> {
        let start = Instant::now();
        let toolchain = toolchain::provide()?;
        step(&format!("toolchain: {toolchain}"), start);
        Ok(toolchain)
    };
    if names == [RELEASED] {
        return build_released(&root, &toolchain()?, &folder);
    }
    let guests = chosen(known(&root)?, names)?;
    if guests.is_empty() {
        return Ok(Vec::new());
    }
    let toolchain = toolchain()?;

    let start = Instant::now();
    let target = folder.join(format!("target-{}", toolchain.version()));
    let packages: Vec<&str> = guests.iter().map(|guest| guest.package.as_str()).collect();
    eprintln!("guests: building {}", packages.join(", "));
    let mut command = toolchain.command(&root);
    command
        .args(["--locked", "--profile", PROFILE])
        .env("CARGO_TARGET_DIR", &target);
    for package in &packages {
        command.args(["--package", package]);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(
        status.success(),
        "cargo could not build {}: its messages are above",
        packages.join(", ")
    );
    step(&format!("built {}", packages.join(", ")), start);

    let target = target.join(configurator_build::rust_toolchain::TARGET);
    let cores = target.join(PROFILE);
    let mut paths = guests
        .iter()
        .map(|guest| componentize(guest, &cores, &folder))
        .collect::<Result<Vec<PathBuf>>>()?;
    if names.is_empty() {
        paths.extend(build_released(&root, &toolchain, &folder)?);
    }
    Ok(paths)
}

/// Builds the modules of released versions of the contract, each with what its own lock file says.
fn build_released(root: &Path, toolchain: &Toolchain, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = folders(&root.join(COMPAT))?;
    sources.sort();
    let mut paths = Vec::new();
    for source in sources {
        let start = Instant::now();
        let version = source.file_name().unwrap_or_default().to_string_lossy();
        let target = folder.join(format!("target-{}-{version}", toolchain.version()));
        let mut command = toolchain.command(&source);
        command
            .args(["--locked", "--release"])
            .env("CARGO_TARGET_DIR", &target);
        let status = command
            .status()
            .with_context(|| format!("cannot run {:?}", command.get_program()))?;
        ensure!(status.success(), "cargo could not build {COMPAT}/{version}");
        step(&format!("built {COMPAT}/{version}"), start);
        let guest = Guest {
            package: format!("compat-{version}"),
            stem: format!("compat_{version}"),
        };
        let cores = target
            .join(configurator_build::rust_toolchain::TARGET)
            .join("release");
        paths.push(componentize(&guest, &cores, folder)?);
    }
    Ok(paths)
}

/// Builds the guests in other languages, each to a folder of its language, and returns these folders' components. The program does it, which
/// must have been built.
///
/// # Errors
/// When the program is missing, or one does not compile.
pub fn build_others(tools: &Tools) -> Result<Vec<PathBuf>> {
    let program = cache::target()?.join("debug/configurator");
    let folder = folder()?;
    let mut paths = Vec::new();
    for (source, language) in others(&cargo::workspace())? {
        let start = Instant::now();
        let name = source.strip_prefix(cargo::workspace()).unwrap_or(&source);
        let output = folder.join(language.name());
        fs::create_dir_all(&output)?;
        let built = Command::new(&program)
            // The digest of a module is that of its sources, so that what is compiled of it is found again.
            .args(["build", "--no-revision", "--language", language.name()])
            .arg("--output")
            .arg(&output)
            .arg(&source)
            .env("CONFIGURATOR_NODE_MODULES", &tools.node_modules)
            .env("CONFIGURATOR_PYTHON_VENV", &tools.python_venv)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(built.success(), "{} could not be built", name.display());
        step(&format!("built {}", name.display()), start);
        paths.push(output);
    }
    paths.dedup();
    Ok(paths)
}

fn folder() -> Result<PathBuf> {
    let folder = cache::dir()?.join("guests");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Guest {
    package: String,
    /// The file name without its ending, as cargo makes it of the library's name.
    stem: String,
}

fn componentize(guest: &Guest, cores: &Path, folder: &Path) -> Result<PathBuf> {
    let start = Instant::now();
    let core = cores.join(format!("{}.wasm", guest.stem));
    let core = fs::read(&core).with_context(|| {
        format!(
            "cannot read {}, which cargo should have made",
            core.display()
        )
    })?;
    let bytes = match component::encode(&core, Imports::Nothing) {
        Ok(bytes) => bytes,
        Err(error) => bail!("{} does not become a component: {error}", guest.package),
    };
    let path = folder.join(format!("{}.wasm", guest.stem));
    component::write(&path, &bytes)?;
    step(
        &format!("{}: {} kB", guest.package, bytes.len().div_ceil(1000)),
        start,
    );
    Ok(path)
}

/// The folders of guests in other languages than Rust, in order.
fn others(root: &Path) -> Result<Vec<(PathBuf, Language)>> {
    let mut found = Vec::new();
    for folder in FOLDERS.map(|folder| root.join(folder)) {
        for inner in folders(&folder)? {
            found.extend(language_of(&inner).map(|language| (inner.clone(), language)));
            for innermost in folders(&inner)? {
                found.extend(language_of(&innermost).map(|language| (innermost, language)));
            }
        }
    }
    found.retain(|(folder, language)| {
        *language != Language::Rust && folder.join(language.manifest()).is_file()
    });
    found.sort();
    Ok(found)
}

/// That of a folder that is called as it, or `LANGUAGE-hello`.
fn language_of(folder: &Path) -> Option<Language> {
    let name = folder.file_name()?.to_str()?;
    let name = name.split_once('-').map_or(name, |(language, _)| language);
    Language::ALL
        .into_iter()
        .find(|language| language.name() == name)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir()).collect())
}

fn known(root: &Path) -> Result<Vec<Guest>> {
    let output = std::process::Command::new(cargo::program())
        .args(["metadata", "--no-deps", "--format-version=1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo: is it on the PATH?")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata = serde_json::from_slice(&output.stdout)
        .context("cannot read the answer of cargo metadata")?;
    Ok(guests_of(metadata, root))
}

/// What matters of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

fn guests_of(metadata: Metadata, root: &Path) -> Vec<Guest> {
    let is_guest = |package: &Package| {
        FOLDERS
            .iter()
            .any(|folder| package.manifest_path.starts_with(root.join(folder)))
    };
    let guest = |package: Package| {
        let mut targets = package.targets.into_iter();
        let library =
            targets.find(|target| target.crate_types.iter().any(|kind| kind == "cdylib"))?;
        Some(Guest {
            package: package.name,
            stem: library.name.replace('-', "_"),
        })
    };
    let mut guests: Vec<Guest> = metadata
        .packages
        .into_iter()
        .filter(is_guest)
        .filter_map(guest)
        .collect();
    guests.sort_by(|a, b| a.package.cmp(&b.package));
    guests
}

fn chosen(known: Vec<Guest>, names: &[&str]) -> Result<Vec<Guest>> {
    if names.is_empty() {
        return Ok(known);
    }
    let choose = |name: &&str| match known
        .iter()
        .find(|guest| guest.package == *name || guest.stem == *name)
    {
        Some(guest) => Ok(guest.clone()),
        None => {
            let known: Vec<&str> = known.iter().map(|guest| guest.package.as_str()).collect();
            bail!(
                "there is no guest `{name}`; there are: {}",
                known.join(", ")
            )
        }
    };
    names.iter().map(choose).collect()
}

fn step(what: &str, start: Instant) {
    eprintln!("guests: {what} ({:.1} s)", start.elapsed().as_secs_f32());
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn metadata() -> Metadata {
        let package = |name: &str, manifest: &str, kind: &str| {
            json!({
                "name": name,
                "manifest_path": manifest,
                "targets": [{"name": name.replace('-', "_"), "crate_types": [kind, "rlib"]}],
            })
        };
        let packages = json!({"packages": [
            package("configurator-host", "/w/host/Cargo.toml", "lib"),
            package("workload-config", "/w/configurators/workload-config/Cargo.toml", "cdylib"),
            package("embed", "/w/examples/embed/Cargo.toml", "bin"),
            package("hostile", "/w/tests/modules/hostile/Cargo.toml", "cdylib"),
        ]});
        serde_json::from_value(packages).unwrap()
    }

    #[test]
    fn guests_are_the_members_that_are_built_as_cdylib_in_the_folders_of_guests() {
        let guests = guests_of(metadata(), Path::new("/w"));
        let found: Vec<_> = guests
            .iter()
            .map(|guest| (guest.package.as_str(), guest.stem.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("hostile", "hostile"),
                ("workload-config", "workload_config")
            ]
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let guests = guests_of(metadata(), Path::new("/w"));
        assert_eq!(chosen(guests.clone(), &[]).unwrap().len(), 2);
        assert_eq!(
            chosen(guests.clone(), &["workload-config"]).unwrap().len(),
            1
        );
        let error = chosen(guests, &["workload"]).unwrap_err();
        expect!["there is no guest `workload`; there are: hostile, workload-config"]
            .assert_eq(&error.to_string());
    }
}
