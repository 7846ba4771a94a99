//! Modules in JavaScript and TypeScript: a package of npm.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::answer::answer;
use crate::component::{self, Imports};
use crate::contract::WORLD;
use crate::error::BuildError;
use crate::language::Language;
use crate::module::{Compiled, Workshop};
use crate::{sdk, tool};

const INSTALL_NODE: &str =
    "see https://nodejs.org/en/download, or, on Debian: sudo apt-get install nodejs npm";
/// The oldest major version that runs the packages.
const OLDEST_NODE: u32 = 20;
const INSTALL_PACKAGES: &str = "npm install --save-dev componentize-qjs@0.4 esbuild";
/// Programs of npm that the script needs, as folders of `node_modules`.
const PACKAGES: [&str; 2] = ["componentize-qjs", "esbuild"];
/// Bundles the sources and makes the component.
const SCRIPT: &str = include_str!("javascript/componentize.mjs");

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: Option<String>,
    /// The file whose default export are the handlers.
    main: Option<String>,
    #[serde(default)]
    dependencies: HashMap<String, String>,
}

pub(crate) fn build(workshop: &mut Workshop<'_>) -> Result<Compiled, BuildError> {
    let folder = workshop.folder.to_owned();
    let path = folder.join("package.json");
    let text = fs::read_to_string(&path).map_err(BuildError::file("read", &path))?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| BuildError::manifest(&path, error))?;
    let main = main_of(&folder, manifest.main)?;
    let node = tool::need(
        Language::JavaScript,
        "Node.js",
        &["node".into()],
        INSTALL_NODE,
    )?;
    let compiler = answer(&node, &["--version"], &folder).unwrap_or_default();
    if is_older(&compiler, OLDEST_NODE) {
        return Err(BuildError::MissingTool {
            language: Language::JavaScript,
            what: format!("Node.js {OLDEST_NODE} or newer"),
            why: format!("{} is {compiler}", node.display()),
            install: INSTALL_NODE.to_owned(),
        });
    }
    let modules = node_modules(&folder, workshop.tools.node_modules.as_deref())?;
    workshop.step(&format!("node {compiler}"));
    let wit = workshop.contract()?;
    let script = write_script(&modules)?;
    let made = workshop.work.join("module.wasm");
    let mut command = Command::new(node);
    command
        .arg(script)
        .arg(&folder)
        .arg(main)
        .arg(&wit)
        .arg(WORLD)
        .arg(workshop.work)
        .arg(&made)
        .current_dir(&folder);
    workshop.run(&mut command)?;
    let component = fs::read(&made).map_err(BuildError::file("read", &made))?;
    component::check(&component, Imports::Wasi)
        .map_err(|message| workshop.refused(&manifest.name, message))?;
    Ok(Compiled {
        component,
        name: manifest.name,
        version: manifest.version,
        compiler: compiler.trim_start_matches('v').to_owned(),
        sdk: (
            "configurator-sdk (JavaScript)".to_owned(),
            sdk_version(
                &folder,
                &manifest.dependencies,
                workshop.tools.node_modules.as_deref(),
            ),
        ),
    })
}

/// Whether a version such as `v18.20.4` is before this one; what is no version is not.
fn is_older(version: &str, oldest: u32) -> bool {
    let major = version.trim_start_matches('v').split('.').next();
    major
        .and_then(|major| major.parse::<u32>().ok())
        .is_some_and(|major| major < oldest)
}

/// That of the package where the bundle takes it from: where Node.js finds it, or the folder that the manifest names.
fn sdk_version(
    folder: &Path,
    dependencies: &HashMap<String, String>,
    given: Option<&Path>,
) -> String {
    let installed = folder.ancestors().map(|folder| folder.join("node_modules"));
    let installed = installed.map(|modules| modules.join(sdk::NAME));
    let named = dependencies.get(sdk::NAME);
    let named = named.and_then(|place| Some(folder.join(place.strip_prefix("file:")?)));
    let given = given.map(|modules| modules.join(sdk::NAME));
    let packages = installed.chain(named).chain(given);
    sdk::of_packages(packages.map(|package| package.join("package.json")))
}

/// The folder that has the packages: the module's, one of a workspace above it, or the given one.
fn node_modules(folder: &Path, given: Option<&Path>) -> Result<PathBuf, BuildError> {
    let own = folder.ancestors().map(|folder| folder.join("node_modules"));
    let mut missing = PACKAGES[0];
    for modules in own.chain(given.map(Path::to_owned)) {
        let lacks = |package: &&&str| !modules.join(package).is_dir();
        match PACKAGES.iter().find(lacks) {
            None => return Ok(modules),
            Some(package) => missing = package,
        }
    }
    Err(BuildError::MissingTool {
        language: Language::JavaScript,
        what: format!("the package {missing}"),
        why: format!("it is in no node_modules of {} or above", folder.display()),
        install: INSTALL_PACKAGES.to_owned(),
    })
}

/// Writes the script into the folder of the packages, because where a script lies is where its imports are looked for.
fn write_script(modules: &Path) -> Result<PathBuf, BuildError> {
    let folder = modules.join(".cache/configurator");
    fs::create_dir_all(&folder).map_err(BuildError::file("make", &folder))?;
    let path = folder.join("componentize.mjs");
    if !fs::read(&path).is_ok_and(|old| old == SCRIPT.as_bytes()) {
        fs::write(&path, SCRIPT).map_err(BuildError::file("write", &path))?;
    }
    Ok(path)
}

/// The file that `main` names, or the first of the usual ones.
fn main_of(folder: &Path, main: Option<String>) -> Result<PathBuf, BuildError> {
    let usual = ["index.ts", "src/index.ts", "index.js", "src/index.js"];
    let candidates = match &main {
        Some(main) => vec![main.as_str()],
        None => usual.to_vec(),
    };
    let found = candidates.iter().map(|name| folder.join(name));
    found
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let path = folder.join("package.json");
            let message = format!(
                "there is no {}: `main` names the file that exports the handlers",
                candidates.join(", ")
            );
            BuildError::manifest(path, message)
        })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn with_packages(modules: &Path, packages: &[&str]) {
        for package in packages {
            fs::create_dir_all(modules.join(package)).unwrap();
        }
    }

    #[test]
    fn old_versions_are_known_by_their_numbers() {
        assert!(is_older("v18.20.4", 20));
        for other in ["v20.0.0", "v100.1.0", "", "nightly"] {
            assert!(!is_older(other, 20), "{other}");
        }
    }

    #[test]
    fn packages_nearer_to_the_module_come_first() {
        let root = tempfile::tempdir().unwrap();
        let module = root.path().join("modules/one");
        fs::create_dir_all(&module).unwrap();
        let (above, given) = (root.path().join("node_modules"), root.path().join("given"));
        with_packages(&given, &PACKAGES);
        assert_eq!(node_modules(&module, Some(&given)).unwrap(), given);
        with_packages(&above, &PACKAGES);
        assert_eq!(node_modules(&module, Some(&given)).unwrap(), above);
        // One package of the two is none of them.
        with_packages(&module.join("node_modules"), &PACKAGES[1..]);
        assert_eq!(node_modules(&module, Some(&given)).unwrap(), above);
    }

    #[test]
    fn a_package_that_is_missing_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        with_packages(&root.path().join("node_modules"), &PACKAGES[..1]);
        let error = node_modules(root.path(), None).unwrap_err().to_string();
        let error = error.replace(&root.path().display().to_string(), "FOLDER");
        expect![[r#"
            to build a module in JavaScript, the package componentize-qjs is needed, and is not there: it is in no node_modules of FOLDER or above
            npm install --save-dev componentize-qjs@0.4 esbuild"#]].assert_eq(&error);
    }

    #[test]
    fn the_handlers_are_in_the_main_file_or_a_usual_one() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let error = main_of(root.path(), None).unwrap_err().to_string();
        assert!(
            error.ends_with("`main` names the file that exports the handlers"),
            "{error}"
        );
        fs::write(at("index.js"), "").unwrap();
        assert_eq!(main_of(root.path(), None).unwrap(), at("index.js"));
        fs::write(at("index.ts"), "").unwrap();
        assert_eq!(main_of(root.path(), None).unwrap(), at("index.ts"));
        assert!(main_of(root.path(), Some("lib.js".to_owned())).is_err());
    }
}
