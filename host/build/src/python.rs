//! Modules in Python: a project with a `pyproject.toml`.

mod immortal;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::answer::answer;
use crate::component::{self, Imports};
use crate::contract::WORLD;
use crate::error::BuildError;
use crate::language::Language;
use crate::module::{Compiled, Workshop};
use crate::{sdk, tool, venv};

/// Installs what builds a module into its folder.
pub(crate) const INSTALL: &str =
    "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1";
/// The module that the component begins with.
const ENTRY: &str = "configurator_entry";
/// What that says. The import of the module declares its handlers.
const ENTRY_SOURCE: &str = include_str!("python/entry.py.in");

#[derive(Deserialize)]
struct Manifest {
    project: Project,
    #[serde(default)]
    tool: Tools,
}

#[derive(Deserialize)]
struct Project {
    name: String,
    version: Option<String>,
}

#[derive(Deserialize, Default)]
struct Tools {
    #[serde(default)]
    configurator: Own,
}

/// `[tool.configurator]`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Own {
    /// The Python module that declares the handlers. By default named after the project.
    module: Option<String>,
    /// Where Python modules are, below the folder. By default the folder and its `sdk`.
    paths: Option<Vec<String>>,
}

pub(crate) fn build(workshop: &mut Workshop<'_>) -> Result<Compiled, BuildError> {
    let Manifest {
        project,
        tool: Tools { configurator: own },
    } = workshop.manifest("pyproject.toml")?;
    let folder = workshop.folder.to_owned();
    let module = own
        .module
        .unwrap_or_else(|| project.name.replace(['-', '.'], "_"));
    let paths = own
        .paths
        .unwrap_or_else(|| vec![".".to_owned(), "sdk".to_owned()]);
    let venvs = venv::of(&folder, workshop.tools.python_venv.as_deref());
    let program = program(&venvs)?;
    let compiler = answer(&program, &["--version"], &folder).unwrap_or_default();
    let compiler = compiler.rsplit(' ').next().unwrap_or_default().to_owned();
    workshop.step(&format!("componentize-py {compiler}"));
    let wit = workshop.contract()?;
    let entry = ENTRY_SOURCE.replace("MODULE", &module);
    let entry = workshop.write(&format!("python/{ENTRY}.py"), entry.as_bytes())?;
    let made = workshop.work.join("module.wasm");
    let mut command = Command::new(&program);
    command
        .arg("--wit-path")
        .arg(&wit)
        .args(["--world", WORLD, "componentize", ENTRY, "--output"])
        .arg(&made);
    if let Some(parent) = entry.parent() {
        command.arg("--python-path").arg(parent);
    }
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
    for path in &paths {
        command.arg("--python-path").arg(path);
    }
    // The order of sets is part of what is pre-initialised. Where Python fails, its own traceback says enough.
    command
        .current_dir(&folder)
        .env("PYTHONHASHSEED", "0")
        .env("RUST_BACKTRACE", "0");
    // Packages are those of the environment that the program is from, and not what this machine happens to have.
    if let Some(venv) = venvs.iter().find(|venv| program.starts_with(venv)) {
        command.env("VIRTUAL_ENV", venv);
    }
    workshop.run(&mut command)?;
    let component = fs::read(&made).map_err(BuildError::file("read", &made))?;
    component::check(&component, Imports::Wasi)
        .map_err(|message| workshop.refused(&project.name, message))?;
    let component = immortal::immortalise(&component)
        .map_err(|message| workshop.refused(&project.name, message))?;
    Ok(Compiled {
        component,
        name: project.name,
        version: project.version,
        compiler,
        sdk: (
            "configurator-sdk (Python)".to_owned(),
            sdk_version(&paths, &venvs),
        ),
    })
}

/// That of the package where Python finds it: below one of the paths, or in an environment.
fn sdk_version(paths: &[PathBuf], venvs: &[PathBuf]) -> String {
    let libraries = venvs.iter().map(|venv| venv.join("lib"));
    let versions = libraries.filter_map(|lib| lib.read_dir().ok()).flatten();
    let installed = versions
        .flatten()
        .map(|python| python.path().join("site-packages"));
    let sites = paths.iter().cloned().chain(installed);
    let files = sites.map(|site| site.join("configurator_sdk/__init__.py"));
    sdk::of_sources(files, "__version__ = ")
}

/// componentize-py: that of an environment, or the one on the PATH.
fn program(venvs: &[PathBuf]) -> Result<PathBuf, BuildError> {
    let within = |venv: &PathBuf| {
        [
            venv.join("bin/componentize-py"),
            venv.join("Scripts/componentize-py.exe"),
        ]
    };
    let candidates: Vec<PathBuf> = venvs
        .iter()
        .flat_map(within)
        .chain(["componentize-py".into()])
        .collect();
    tool::find(&candidates).ok_or_else(|| BuildError::MissingTool {
        language: Language::Python,
        what: "componentize-py".to_owned(),
        why: format!("it is neither in {}, nor on the PATH", venv::PLACE),
        install: INSTALL.to_owned(),
    })
}
