//! Modules in C: sources with a `module.toml`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use wit_bindgen_core::Files;

use crate::answer::answer;
use crate::component::{self, Imports};
use crate::error::BuildError;
use crate::language::Language;
use crate::module::{Compiled, Workshop};
use crate::{contract, sdk, tool, venv};

/// Installs a compiler into a module's folder.
pub(crate) const INSTALL_ZIG: &str =
    "python3 -m venv .venv && .venv/bin/pip install ziglang==0.17.1";
const INSTALL: &str = "python3 -m venv .venv && .venv/bin/pip install ziglang==0.17.1\nor set WASI_SDK_PATH to a WASI SDK: https://github.com/WebAssembly/wasi-sdk";
/// Bytes of the module's stack.
const STACK: usize = 256 * 1024;
/// What a module has in place of the C library's own, and what is between the SDK and the bindings that are made of the contract.
const GLUE: [(&str, &str); 9] = [
    ("libc.c", include_str!("c/libc.c")),
    ("component.h", include_str!("c/component.h")),
    ("component.c", include_str!("c/component.c")),
    ("component_config.c", include_str!("c/component_config.c")),
    ("component_desired.c", include_str!("c/component_desired.c")),
    ("component_input.c", include_str!("c/component_input.c")),
    ("component_output.c", include_str!("c/component_output.c")),
    (
        "component_requests.c",
        include_str!("c/component_requests.c"),
    ),
    ("component_text.c", include_str!("c/component_text.c")),
];
/// What is compiled before the sources. The linker takes the first definition that it finds, and what replaces a part of the C library comes
/// before what asks for it.
const COMPILED: [&str; 10] = [
    "libc.c",
    "component.c",
    "component_config.c",
    "component_desired.c",
    "component_input.c",
    "component_output.c",
    "component_requests.c",
    "component_text.c",
    "configurator.c",
    "configurator_component_type.o",
];
/// The module that a core module imports WASI from.
const WASI: &[u8] = b"wasi_snapshot_preview1";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    name: String,
    version: Option<String>,
    /// The folder of the SDK, from that of the module.
    #[serde(default = "sdk")]
    sdk: PathBuf,
}

fn sdk() -> PathBuf {
    "sdk".into()
}

pub(crate) fn build(workshop: &mut Workshop<'_>) -> Result<Compiled, BuildError> {
    let manifest: Manifest = workshop.manifest("module.toml")?;
    let folder = workshop.folder.to_owned();
    let sources = sources(&folder, &manifest.sdk)?;
    let (mut command, compiler) = compiler(workshop)?;
    workshop.step(&compiler);
    let bindings = bindings(workshop)?;
    let core = workshop.work.join("core.wasm");
    command
        // Assertions stay: they cost little, and say why a module traps.
        .args(["-mexec-model=reactor", "-O2", "-UNDEBUG", "-g0"])
        .args(["-Wall", "-Wextra", "-Wno-missing-field-initializers"])
        .arg(format!("-Wl,-z,stack-size={STACK}"))
        .arg("-Wl,--strip-debug")
        .arg("-I")
        .arg(&bindings)
        .arg("-I")
        .arg(manifest.sdk.join("include"))
        .args(COMPILED.map(|name| bindings.join(name)))
        .args(&sources)
        .arg("-o")
        .arg(&core)
        .current_dir(&folder);
    workshop.run(&mut command)?;
    let core = fs::read(&core).map_err(BuildError::file("read", &core))?;
    let component = component::encode(&core, imports(&core));
    let header = folder
        .join(&manifest.sdk)
        .join("include/configurator_sdk.h");
    let sdk = sdk::of_sources([header], "#define CONFIGURATOR_SDK_VERSION ");
    Ok(Compiled {
        component: component.map_err(|message| workshop.refused(&manifest.name, message))?,
        name: manifest.name,
        version: manifest.version,
        compiler,
        sdk: ("configurator-sdk (C)".to_owned(), sdk),
    })
}

/// What is made of the contract, and what connects it with the SDK, in a folder.
fn bindings(workshop: &mut Workshop<'_>) -> Result<PathBuf, BuildError> {
    let (mut resolve, world) = contract::resolve(&workshop.contract()?)?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default()
        .build()
        .generate(&mut resolve, world, &mut files)
        .map_err(|error| workshop.refused("the contract", format!("{error:#}")))?;
    for (name, content) in files.iter() {
        let mut content = content.to_vec();
        if name.ends_with(".c") {
            // Nobody can mend what is generated.
            content.splice(
                0..0,
                *b"#pragma clang diagnostic ignored \"-Weverything\"\n",
            );
        }
        workshop.write(&format!("bindings/{name}"), &content)?;
    }
    for (name, content) in GLUE {
        workshop.write(&format!("bindings/{name}"), content.as_bytes())?;
    }
    Ok(workshop.work.join("bindings"))
}

/// What it imports beside logging, which is nothing unless it calls a function of the C library that asks the system.
fn imports(core: &[u8]) -> Imports {
    match core.windows(WASI.len()).any(|bytes| bytes == WASI) {
        true => Imports::Wasi,
        false => Imports::Nothing,
    }
}

/// Those of the module, which lie in its folder and in `src`, and those of the SDK. Their paths begin at the folder: what they say of themselves
/// (`__FILE__`) is the same everywhere.
fn sources(folder: &Path, sdk: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let manifest = folder.join("module.toml");
    let mut sources = in_c(folder, Path::new(""));
    sources.extend(in_c(folder, Path::new("src")));
    if sources.is_empty() {
        let why = "there is no source beside it or in src that ends in .c";
        return Err(BuildError::manifest(manifest, why));
    }
    let of_sdk = in_c(folder, &sdk.join("src"));
    if of_sdk.is_empty() {
        let why = format!(
            "the SDK is not in {}: say where it is, with `sdk`",
            sdk.display()
        );
        return Err(BuildError::manifest(manifest, why));
    }
    sources.extend(of_sdk);
    Ok(sources)
}

/// Sources below a folder, in the same order everywhere: the same component.
fn in_c(folder: &Path, below: &Path) -> Vec<PathBuf> {
    let files = folder
        .join(below)
        .read_dir()
        .into_iter()
        .flatten()
        .flatten();
    let files = files.map(|file| below.join(file.file_name()));
    let is_c = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "c");
    let mut sources: Vec<PathBuf> = files.filter(is_c).collect();
    sources.sort();
    sources
}

/// One that knows the target, as far as its own arguments; and what it says it is.
fn compiler(workshop: &Workshop<'_>) -> Result<(Command, String), BuildError> {
    let folder = workshop.folder;
    if let Some(sdk) = std::env::var_os("WASI_SDK_PATH") {
        let clang = Path::new(&sdk).join("bin/clang");
        let version = answer(&clang, &["--version"], folder);
        if let Some(version) = version {
            let mut command = Command::new(clang);
            // The stack below the data, as zig has it: one that is too deep traps, and writes over nothing.
            command.args(["--target=wasm32-wasip1", "-Wl,--stack-first"]);
            let version = version.lines().next().unwrap_or_default().to_owned();
            return Ok((command, version));
        }
    }
    let venvs = venv::of(folder, workshop.tools.python_venv.as_deref());
    let installed = venvs.iter().map(|venv| venv.join("bin/python-zig"));
    let zigs: Vec<PathBuf> = installed
        .chain(["zig", "python-zig"].map(PathBuf::from))
        .collect();
    let zig = tool::find(&zigs).ok_or_else(|| BuildError::MissingTool {
        language: Language::C,
        what: "zig, or a WASI SDK".to_owned(),
        why: format!("zig is neither in {}, nor on the PATH", venv::PLACE),
        install: INSTALL.to_owned(),
    })?;
    let version = answer(&zig, &["version"], folder).unwrap_or_default();
    let mut command = Command::new(zig);
    command.args(["cc", "-target", "wasm32-wasi"]);
    Ok((command, format!("zig {version}")))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(files: &[&str], expected: Expect) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = match sources(folder.path(), Path::new("sdk")) {
            Ok(sources) => sources
                .iter()
                .map(|one| format!("{}\n", one.display()))
                .collect(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&found.replace(&folder.path().display().to_string(), "FOLDER"));
    }

    #[test]
    fn sources_are_compiled_in_the_same_order_everywhere() {
        check(
            &[
                "b.c",
                "a.c",
                "a.h",
                "src/z.c",
                "tests/a_test.c",
                "sdk/src/y.c",
                "sdk/src/x.c",
                "sdk/tests/main.c",
            ],
            expect![[r#"
                a.c
                b.c
                src/z.c
                sdk/src/x.c
                sdk/src/y.c
            "#]],
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        check(
            &["README.md"],
            expect!["FOLDER/module.toml: there is no source beside it or in src that ends in .c"],
        );
        check(
            &["a.c"],
            expect!["FOLDER/module.toml: the SDK is not in sdk: say where it is, with `sdk`"],
        );
    }

    #[test]
    fn only_what_asks_the_system_gets_wasi() {
        assert_eq!(imports(b"\0asm env log"), Imports::Nothing);
        assert_eq!(
            imports(b"\0asm wasi_snapshot_preview1 fd_write"),
            Imports::Wasi
        );
    }
}
