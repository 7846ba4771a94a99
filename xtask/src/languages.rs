//! The tools of the languages that modules are written in, and the unit tests of their SDKs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use configurator_build::Language;
use sha2::{Digest as _, Sha256};

use crate::{cache, cargo, debian};

/// What is installed, below the workspace.
const SOURCES: &str = "tests/modules/tools";

/// Where the tools are.
pub struct Tools {
    /// A folder of packages of npm.
    pub node_modules: PathBuf,
    /// A virtual environment of Python; zig is in it.
    pub python_venv: PathBuf,
}

/// Provides the tools of all languages but Rust, in the cache folder: packages of npm and of Python, the latter with a C compiler.
///
/// # Errors
/// When Node.js, Python or Go are missing and cannot be installed, or a package cannot.
pub fn tools() -> Result<Tools> {
    let why = "modules in JavaScript are built with it";
    debian::provide("node", &["--version"], &["nodejs", "npm"], why)?;
    debian::provide("npm", &["--version"], &["npm"], why)?;
    let why = "modules in Python are built with it";
    debian::provide(
        "python3",
        &["-m", "venv", "--help"],
        &["python3", "python3-venv"],
        why,
    )?;
    let why = "modules in Go are built with it";
    debian::provide("go", &["version"], &["golang"], why)?;
    Ok(Tools {
        node_modules: packages("npm", SOURCES)?,
        python_venv: python_venv()?,
    })
}

/// Makes workload-config in JavaScript with the runtime of Firefox, which is as large as runtimes get, and returns its file.
///
/// # Errors
/// When the packages cannot be installed, or the module cannot be made.
pub fn starlingmonkey() -> Result<PathBuf> {
    let sources = "tests/benches/starlingmonkey";
    let modules = packages("starlingmonkey", sources)?;
    let workspace = cargo::workspace();
    // Packages are looked for beside the script.
    let script = modules.with_file_name("componentize.mjs");
    fs::copy(workspace.join(sources).join("componentize.mjs"), &script)?;
    let module = modules.with_file_name("starlingmonkey.wasm");
    eprintln!("xtask: making {}", module.display());
    let mut node = Command::new("node");
    node.arg(script)
        .arg(workspace.join("configurators/workload-config/javascript/src/index.js"))
        .arg(workspace.join("guest-sdk/javascript"))
        .arg(workspace.join("wit"))
        .arg(&module);
    run(&mut node)?;
    Ok(module)
}

/// Packages of npm, by the folder below the workspace whose manifest asks for them.
fn packages(name: &str, sources: &str) -> Result<PathBuf> {
    let manifest = cargo::workspace().join(sources).join("package.json");
    let files = [manifest.clone()];
    let folder = installed(name, &files, &["node", "--version"], |folder| {
        fs::copy(&manifest, folder.join("package.json"))?;
        // Without a lock: it would have to name the packages of platforms that not every registry has.
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund"])
            .arg("--loglevel=error")
            .current_dir(folder);
        run(&mut npm)
    })?;
    Ok(folder.join("node_modules"))
}

fn python_venv() -> Result<PathBuf> {
    let requirements = cargo::workspace().join(SOURCES).join("requirements.txt");
    let files = [requirements.clone()];
    installed("venv", &files, &["python3", "-VV"], |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", "--only-binary", ":all:"])
            .arg("--requirement")
            .arg(&requirements);
        run(&mut pip)
    })
}

/// A folder of the cache that is made of these files and by this program; anew where they have changed.
fn installed(
    name: &str,
    files: &[PathBuf],
    program: &[&str],
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    if let [program, arguments @ ..] = program {
        digest.update(Command::new(program).args(arguments).output()?.stdout);
    }
    let digest: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let folder = cache::dir()?.join("languages").join(name);
    let stamp = folder.join(".digest");
    if fs::read_to_string(&stamp).is_ok_and(|old| old == digest) {
        return Ok(folder);
    }
    eprintln!("xtask: installing what builds modules: {name}");
    // An environment of Python knows where it lies, and cannot be moved. Without the stamp, half of it is no harm.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    install(&folder)?;
    fs::write(stamp, digest)?;
    Ok(folder)
}

/// Runs a tool, whose messages are shown.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(
        status.success(),
        "{:?} has failed: its messages are above",
        command.get_program()
    );
    Ok(())
}

/// Runs the unit tests of the SDKs, of the examples and of the configurators in other languages than Rust, each in the runner of its language.
///
/// # Errors
/// When one fails; what it wrote stands above.
pub fn test(tools: &Tools) -> Result<()> {
    let workspace = cargo::workspace();
    for language in Language::ALL {
        let name = language.name();
        let folders = [
            format!("guest-sdk/{name}"),
            format!("examples/{name}-hello"),
            format!("configurators/workload-config/{name}"),
        ];
        for folder in folders {
            let path = workspace.join(&folder);
            let commands = match language {
                // Members of the workspace, which cargo tests.
                Language::Rust => continue,
                Language::Go => vec![go()],
                Language::JavaScript => javascript(&workspace, &path, tools)?,
                Language::Python => python(&workspace, tools),
                Language::C => vec![c(&workspace, &path, tools)],
            };
            eprintln!("xtask: testing {folder}");
            for mut command in commands {
                let tested = run(command.current_dir(&path));
                tested.with_context(|| format!("the tests of {folder}"))?;
            }
        }
    }
    Ok(())
}

fn go() -> Command {
    let mut command = Command::new("go");
    command
        .args(["test", "./..."])
        .env("GOFLAGS", "")
        .env("GOWORK", "off");
    command
}

/// Tests are bundled aside, so that the SDK is found without an installation into the checkout; the SDK's types are checked as well.
fn javascript(workspace: &Path, folder: &Path, tools: &Tools) -> Result<Vec<Command>> {
    let modules = &tools.node_modules;
    let sdk = workspace.join("guest-sdk/javascript");
    if folder == sdk {
        let mut tests = Command::new("node");
        tests.arg("--test");
        let mut types = Command::new(modules.join(".bin/tsc"));
        types.args(["--noEmit", "--project", "types"]);
        return Ok(vec![tests, types]);
    }
    let link = modules.join("configurator-sdk");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&sdk, &link)
        .with_context(|| format!("cannot link {}", link.display()))?;
    let bundles = modules.join(".cache/tests");
    let mut bundle = Command::new(modules.join(".bin/esbuild"));
    bundle
        .args(tests_in(folder)?)
        .args(["--bundle", "--platform=node", "--format=esm"])
        .args(["--out-extension:.js=.mjs", "--log-level=warning"])
        .arg(format!("--outdir={}", bundles.display()))
        .env("NODE_PATH", modules);
    let mut tests = Command::new("node");
    tests
        .arg("--test")
        .args(tests_in(folder)?.iter().map(|test| {
            let name = test.file_stem().unwrap_or_default();
            bundles.join(name).with_added_extension("mjs")
        }));
    Ok(vec![bundle, tests])
}

/// Files such as `index.test.ts`, in the folder or its `test`.
fn tests_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for place in [folder.to_owned(), folder.join("test")] {
        let entries = place.read_dir().into_iter().flatten().flatten();
        let is_test = |path: &PathBuf| {
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().ends_with(".test")
        };
        tests.extend(entries.map(|entry| entry.path()).filter(is_test));
    }
    ensure!(!tests.is_empty(), "{} has no tests", folder.display());
    Ok(tests)
}

/// The SDK is found where it lies, as by the build; the types of what is no test are checked as well.
fn python(workspace: &Path, tools: &Tools) -> Vec<Command> {
    let sdk = workspace.join("guest-sdk/python");
    let python = || {
        let mut command = Command::new(tools.python_venv.join("bin/python"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let mut tests = python();
    tests
        .args(["-m", "unittest", "discover", "--quiet"])
        .env("PYTHONPATH", &sdk);
    let mut types = python();
    types
        .args(["-m", "mypy", "--strict", "--no-error-summary"])
        .args(["--exclude", "(^|/)tests?[/_]", "."])
        .arg("--cache-dir")
        .arg(tools.python_venv.join(".cache/mypy"))
        .env("MYPYPATH", &sdk);
    vec![tests, types]
}

fn c(workspace: &Path, folder: &Path, tools: &Tools) -> Command {
    let sdk = workspace.join("guest-sdk/c");
    let compiler = tools.python_venv.join("bin/python-zig");
    let mut command = Command::new("sh");
    command
        .arg(sdk.join("test.sh"))
        .env("CC", format!("{} cc", compiler.display()));
    if folder != sdk {
        command.arg(folder);
    }
    command
}
