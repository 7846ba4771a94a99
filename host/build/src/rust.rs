//! Modules in Rust: a crate with the library type `cdylib`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::component::{self, Imports};
use crate::error::BuildError;
use crate::module::{Compiled, Workshop};
use crate::rust_toolchain::Toolchain;

const SDK: &str = "configurator-sdk";

/// What matters of a crate's manifest.
#[derive(Deserialize)]
struct Manifest {
    package: Option<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Option<toml::Value>,
}

/// What matters of a lock file.
#[derive(Deserialize, Default)]
struct Lock {
    #[serde(default)]
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
}

/// A line that cargo writes.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

pub(crate) fn build(workshop: &mut Workshop<'_>) -> Result<Compiled, BuildError> {
    let folder = workshop.folder.to_owned();
    let path = folder.join("Cargo.toml");
    let manifest: Manifest = workshop.manifest("Cargo.toml")?;
    let package = manifest.package.ok_or_else(|| {
        BuildError::manifest(
            &path,
            "it is that of a workspace: name the folder of one of its crates",
        )
    })?;
    let toolchain = Toolchain::find()?;
    workshop.step(&format!("{toolchain}"));
    let mut command = toolchain.command(&folder);
    command.args([
        "--release",
        "--lib",
        "--message-format=json-render-diagnostics",
    ]);
    let said = workshop.run(&mut command)?;
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let own = messages.filter(|message: &Message| {
        message.reason == "compiler-artifact" && message.manifest_path == path
    });
    let is_core = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "wasm");
    let core = own.flat_map(|message| message.filenames).find(is_core);
    let core = core.ok_or_else(|| {
        BuildError::manifest(
            &path,
            "it makes no WebAssembly: under [lib], it needs crate-type = [\"cdylib\"]",
        )
    })?;
    let core = fs::read(&core).map_err(BuildError::file("read", &core))?;
    let component = component::encode(&core, Imports::Nothing);
    let version = package.version.and_then(|version| match version {
        toml::Value::String(version) => Some(version),
        // Inherited from a workspace.
        _ => None,
    });
    Ok(Compiled {
        component: component.map_err(|message| workshop.refused(&package.name, message))?,
        name: package.name,
        version,
        compiler: toolchain.version().to_owned(),
        sdk: (SDK.to_owned(), sdk_version(&folder)),
    })
}

/// As it is locked, here or in the workspace above.
fn sdk_version(folder: &Path) -> String {
    let locks = folder.ancestors().map(|folder| folder.join("Cargo.lock"));
    let lock = locks
        .filter_map(|path| fs::read_to_string(path).ok())
        .next();
    let lock: Lock = lock
        .and_then(|text| toml::from_str(&text).ok())
        .unwrap_or_default();
    let found = lock.package.into_iter().find(|locked| locked.name == SDK);
    found.map(|locked| locked.version).unwrap_or_default()
}
