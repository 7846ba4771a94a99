//! Modules in Go: a Go module whose package at its root declares handlers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use wit_bindgen_core::Files;
use wit_component::StringEncoding;

use crate::answer::answer;
use crate::component::{self, Imports};
use crate::error::BuildError;
use crate::language::Language;
use crate::module::{Compiled, Workshop};
use crate::preinitialise::preinitialise;
use crate::{contract, sdk, tool};

const INSTALL: &str = "see https://go.dev/doc/install, or, on Debian: sudo apt-get install golang";
/// The main program, the glue between the bindings and the SDK, and what the bindings' generator expects of its own package.
const FILES: [(&str, &str); 11] = [
    ("go.mod", include_str!("go/go.mod.in")),
    ("main.go", include_str!("go/main.go.in")),
    (
        "export_configurator_handler_handler/module.go",
        include_str!("go/module.go.in"),
    ),
    (
        "export_configurator_handler_handler/input.go",
        include_str!("go/input.go.in"),
    ),
    (
        "export_configurator_handler_handler/output.go",
        include_str!("go/output.go.in"),
    ),
    ("pkg/go.mod", include_str!("go/pkg/go.mod.in")),
    ("pkg/wit/types/types.go", include_str!("go/pkg/types.go.in")),
    (
        "pkg/wit/runtime/memory.go",
        include_str!("go/pkg/memory.go.in"),
    ),
    (
        "pkg/wit/runtime/instance.go",
        include_str!("go/pkg/instance.go.in"),
    ),
    (
        "pkg/wit/runtime/chance.go",
        include_str!("go/pkg/chance.go.in"),
    ),
    (
        "pkg/wit/runtime/ready.go",
        include_str!("go/pkg/ready.go.in"),
    ),
];

/// The SDK's path.
const SDK: &str = "configurator.dev/sdk";

/// The oldest version of the language that what is written beside the module is in.
const LANGUAGE: &str = "1.24";

/// Makes a module ready for its memory to be kept, and says whether it may; in `go/pkg/ready.go.in`.
const READY: &str = "configurator_ready";

/// Where the generator takes what keeps memory from, and where it is here: in `go/pkg/memory.go.in`.
const RUNTIME: &str = "\"runtime\"";
const OWN_RUNTIME: &str = "runtime \"go.bytecodealliance.org/pkg/wit/runtime\"";

/// What `go mod edit -json` says.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest {
    module: Module,
    go: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Module {
    path: String,
}

pub(crate) fn build(workshop: &mut Workshop<'_>) -> Result<Compiled, BuildError> {
    let folder = workshop.folder.to_owned();
    let go = tool::need(
        Language::Go,
        "Go",
        &["go".into(), PathBuf::from("/usr/local/go/bin/go")],
        INSTALL,
    )?;
    let version = answer(&go, &["env", "GOVERSION"], &folder).unwrap_or_default();
    let own = version.trim_start_matches("go");
    if version.starts_with("go1") && later(own, LANGUAGE) != own {
        return Err(BuildError::MissingTool {
            language: Language::Go,
            what: format!("Go {LANGUAGE} or newer"),
            why: format!("{} is {version}", go.display()),
            install: INSTALL.to_owned(),
        });
    }
    workshop.step(&version);
    let mut describe = Command::new(&go);
    describe.args(["mod", "edit", "-json"]).current_dir(&folder);
    let said = workshop.run(&mut describe)?;
    let manifest: Manifest = serde_json::from_str(&said)
        .map_err(|error| BuildError::manifest(folder.join("go.mod"), error))?;
    let path = manifest.module.path;
    let name = name_of(&path).to_owned();

    // What another version of this program has left would be compiled as well.
    let _ = fs::remove_dir_all(workshop.work.join("go"));
    let (mut resolve, world) = contract::resolve(&workshop.contract()?)?;
    let mut files = Files::default();
    wit_bindgen_go::Opts {
        format: wit_bindgen_go::Format::False,
        ..wit_bindgen_go::Opts::default()
    }
    .build()
    .generate(&mut resolve, world, &mut files)
    .map_err(|error| workshop.refused("the contract", format!("{error:#}")))?;
    for (file, content) in files.iter() {
        // The generator has a version of the language of its own in it, which may be newer than that of the module.
        if file != "go.mod" {
            let content = String::from_utf8_lossy(content).replace(RUNTIME, OWN_RUNTIME);
            workshop.write(&format!("go/{file}"), content.as_bytes())?;
        }
    }
    let language = later(manifest.go.as_deref().unwrap_or_default(), LANGUAGE);
    for (file, content) in FILES {
        let content = content
            .replace("MODULE", &path)
            .replace("LANGUAGE", language);
        workshop.write(&format!("go/{file}"), content.as_bytes())?;
    }
    let quoted = serde_json::to_string(&folder).unwrap_or_default();
    // The workspace has the replacements of the user's module, the SDK's among them.
    let work = format!(
        "go {language}\n\nuse .\n\nuse {quoted}\n\nreplace go.bytecodealliance.org/pkg => ./pkg\n"
    );
    workshop.write("go/go.work", work.as_bytes())?;
    let core = workshop.work.join("core.wasm");
    let found = answer(&go, &["list", "-m", "-f", "{{.Dir}}", SDK], &folder);
    let version_of = found.map(|sdk| Path::new(&sdk).join("version.go"));
    let sdk = sdk::of_sources(version_of, "const Version = ");
    let mut command = Command::new(go);
    command
        .args(["build", "-buildmode=c-shared", "-trimpath"])
        .args(["-ldflags=-s -w -checklinkname=0", "-o"])
        .arg(&core)
        .arg(".")
        .current_dir(workshop.work.join("go"))
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env("GOWORK", workshop.work.join("go/go.work"))
        .env("GOFLAGS", "");
    workshop.run(&mut command)?;
    let core = fs::read(&core).map_err(BuildError::file("read", &core))?;
    let mut core = started(workshop, &name, core)?;
    let component = wit_component::embed_component_metadata(
        &mut core,
        &resolve,
        world,
        StringEncoding::UTF8,
        false,
    )
    .map_err(|error| format!("{error:#}"))
    .and_then(|()| component::encode(&core, Imports::Wasi));
    Ok(Compiled {
        component: component.map_err(|message| workshop.refused(&name, message))?,
        name,
        version: None,
        compiler: version.trim_start_matches("go").to_owned(),
        sdk: ("configurator-sdk (Go)".to_owned(), sdk),
    })
}

/// The module with its runtime started, which takes most of the time of a call otherwise.
fn started(workshop: &mut Workshop<'_>, name: &str, core: Vec<u8>) -> Result<Vec<u8>, BuildError> {
    workshop.step("start of the runtime");
    let (started, written) =
        preinitialise(&core, READY).map_err(|message| workshop.refused(name, message))?;
    for line in written.lines() {
        workshop.say(line);
    }
    Ok(started.unwrap_or_else(|| {
        workshop.say(
            "this version of Go seeds its generators only once: every call starts the runtime anew",
        );
        core
    }))
}

/// The last part of a module's path, but for one that only says which major version it is: `greeter` of `example.com/greeter/v2`.
fn name_of(path: &str) -> &str {
    let is_major = |part: &str| {
        let number = part.strip_prefix('v').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [_, .., name, major] if is_major(major) => name,
        [.., name] => name,
        [] => path,
    }
}

/// The later of two versions of the language.
fn later<'v>(one: &'v str, other: &'v str) -> &'v str {
    let numbers = |version: &str| -> Vec<u32> {
        let parts = version.split('.');
        // As in `25rc1`.
        let digits = parts.map(|part| part.split(|c: char| !c.is_ascii_digit()).next());
        let number = |digits: Option<&str>| digits.and_then(|digits| digits.parse().ok());
        digits.map(|digits| number(digits).unwrap_or(0)).collect()
    };
    match numbers(one) > numbers(other) {
        true => one,
        false => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_called_as_the_last_part_of_its_path() {
        for (path, expected) in [
            ("greeter", "greeter"),
            ("example.com/greeter", "greeter"),
            ("example.com/greeter/v2", "greeter"),
            ("example.com/v2", "v2"),
            ("example.com/values", "values"),
        ] {
            assert_eq!(name_of(path), expected, "{path}");
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(later("1.9", "1.24"), "1.24");
        assert_eq!(later("1.25.3", "1.25"), "1.25.3");
        assert_eq!(later("", "1.24"), "1.24");
        assert_eq!(later("1.25rc1", "1.24"), "1.25rc1");
    }
}
