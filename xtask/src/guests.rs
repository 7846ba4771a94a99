//! `cargo xtask guests`: handler modules as components.
//!
//! A guest is a workspace member in one of [`FOLDERS`] that is built as a `cdylib`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::toolchain::Toolchain;
use crate::{cache, cargo, component};

/// Where guests are, below the workspace.
const FOLDERS: [&str; 3] = ["configurators", "examples", "tests/modules"];

/// Builds handler modules to components, in the cache folder.
#[derive(clap::Args)]
pub struct Guests {
    /// Packages to build. Default: all.
    names: Vec<String>,
}

impl Guests {
    /// Builds them and prints the paths, one a line.
    pub fn run(self) -> Result<()> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        for path in build(&names)? {
            println!("{}", path.display());
        }
        Ok(())
    }
}

/// Builds the guests of these package names, or all where there are none, and returns the components in that order.
///
/// What has not changed is not built again, and a component that comes out the same is not written again. Progress
/// goes to standard error.
pub fn build(names: &[&str]) -> Result<Vec<PathBuf>> {
    let root = cargo::workspace();
    let guests = chosen(known(&root)?, names)?;
    if guests.is_empty() {
        return Ok(Vec::new());
    }
    let folder = cache::dir()?.join("guests");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;

    let start = Instant::now();
    let toolchain = Toolchain::find()?;
    step(&format!("toolchain: {toolchain}"), start);

    let start = Instant::now();
    let target = folder.join(format!("target-{}", toolchain.version()));
    let packages: Vec<&str> = guests.iter().map(|guest| guest.package.as_str()).collect();
    eprintln!("guests: building {}", packages.join(", "));
    toolchain.build(&root, &target, &packages)?;
    step(&format!("built {}", packages.join(", ")), start);

    let cores = target
        .join(crate::toolchain::TARGET)
        .join(crate::toolchain::PROFILE);
    guests
        .iter()
        .map(|guest| componentize(guest, &cores, &folder))
        .collect()
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
    let bytes = component::encode(&core)
        .with_context(|| format!("{} does not become a component", guest.package))?;
    let path = folder.join(format!("{}.wasm", guest.stem));
    let same = fs::read(&path).is_ok_and(|old| old == bytes);
    if !same {
        // Written aside and renamed, so that a host that reloads the file never sees half of it.
        let aside = folder.join(format!(".{}.wasm.{}", guest.stem, std::process::id()));
        fs::write(&aside, &bytes)
            .and_then(|()| fs::rename(&aside, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let unchanged = if same { ", unchanged" } else { "" };
    step(
        &format!(
            "{}: {} kB{unchanged}",
            guest.package,
            bytes.len().div_ceil(1000)
        ),
        start,
    );
    Ok(path)
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
