//! Modules in Rust: a crate with the library type `cdylib`.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::component::{self, Imports};
use crate::error::BuildError;
use crate::module::{Compiled, Workshop};
use crate::rust_toolchain::Toolchain;
use crate::sdk;

/// What matters of a crate's manifest.
#[derive(Deserialize)]
struct Manifest {
    package: Option<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

/// A line that cargo writes.
#[derive(Deserialize)]
struct Message {
    reason: String,
    /// As in `path+file:///modules/greeter#0.1.0`, or `…/greeter#other-name@0.1.0`.
    #[serde(default)]
    package_id: String,
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
    let toolchain = Toolchain::find(&folder)?;
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
    let mut made = own.flat_map(|message| {
        let version = version_of(&message.package_id);
        let files = message.filenames.into_iter().filter(is_core);
        files.map(move |file| (file, version.clone()))
    });
    let (core, version) = made.next().ok_or_else(|| {
        BuildError::manifest(
            &path,
            "it makes no WebAssembly: under [lib], it needs crate-type = [\"cdylib\"]",
        )
    })?;
    let core = fs::read(&core).map_err(BuildError::file("read", &core))?;
    let component = component::encode(&core, Imports::Nothing);
    Ok(Compiled {
        component: component.map_err(|message| workshop.refused(&package.name, message))?,
        name: package.name,
        version,
        compiler: toolchain.version().to_owned(),
        sdk: (sdk::NAME.to_owned(), sdk::of_crate(&folder)),
    })
}

/// That of the package of this id, also where its manifest inherits it from a workspace.
fn version_of(package_id: &str) -> Option<String> {
    let (_, named) = package_id.rsplit_once('#')?;
    let version = named.rsplit('@').next()?;
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_its_version_in_its_id() {
        for (id, expected) in [
            ("path+file:///modules/greeter#0.1.0", Some("0.1.0")),
            (
                "path+file:///modules/a#greeter@1.2.3-rc.1",
                Some("1.2.3-rc.1"),
            ),
            ("path+file:///modules/greeter", None),
            ("", None),
        ] {
            assert_eq!(version_of(id).as_deref(), expected, "{id}");
        }
    }
}
