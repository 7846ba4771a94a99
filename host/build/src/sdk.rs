//! The version of the SDK that a module is written with, as the SDK says it; empty where it cannot be found.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The SDK's name in a language that has a name for packages.
pub(crate) const NAME: &str = "configurator-sdk";

/// What matters of a lock file of cargo.
#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<Package>,
}

/// A package that is locked, or that describes itself.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// As it is locked, in the folder of a crate or in that of the workspace above.
pub(crate) fn of_crate(folder: &Path) -> String {
    let mut locks = folder.ancestors().map(|folder| folder.join("Cargo.lock"));
    let lock = locks.find_map(|path| fs::read_to_string(path).ok());
    let lock = lock.and_then(|text| toml::from_str::<Lock>(&text).ok());
    let locked = lock.into_iter().flat_map(|lock| lock.package);
    let mut own = locked.filter(|package| package.name == NAME);
    own.next()
        .map(|package| package.version)
        .unwrap_or_default()
}

/// Of the package that is the first of these files to be there.
pub(crate) fn of_packages(manifests: impl IntoIterator<Item = PathBuf>) -> String {
    let packages = manifests.into_iter().filter_map(|path| {
        let text = fs::read(path).ok()?;
        serde_json::from_slice::<Package>(&text).ok()
    });
    let mut own = packages.filter(|package| package.name == NAME);
    own.next()
        .map(|package| package.version)
        .unwrap_or_default()
}

/// As the first of these files that has a line with the mark says it, in quotes.
pub(crate) fn of_sources(files: impl IntoIterator<Item = PathBuf>, mark: &str) -> String {
    let said = files.into_iter().find_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(mark))?;
        let mut parts = line.split('"');
        let version = parts.nth(1)?;
        parts.next()?;
        Some(version.to_owned())
    });
    said.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sdk_says_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let absent = folder.path().join("absent");

        let python = file("__init__.py", "import a\n__version__ = \"1.2.3\"\n");
        let found = of_sources([absent.clone(), python], "__version__ = ");
        assert_eq!(found, "1.2.3");
        let half = file("half.h", "#define VERSION \"1.2\n#define OTHER\n");
        assert_eq!(of_sources([half], "#define VERSION "), "");

        let other = file("other.json", r#"{"name": "other", "version": "9.9.9"}"#);
        let own = file(
            "own.json",
            r#"{"name": "configurator-sdk", "version": "2.0.0"}"#,
        );
        assert_eq!(of_packages([absent, other, own]), "2.0.0");

        let locked = "[[package]]\nname = \"configurator-sdk\"\nversion = \"0.3.0\"\n";
        file("Cargo.lock", locked);
        assert_eq!(of_crate(&folder.path().join("crate")), "0.3.0");
    }
}
