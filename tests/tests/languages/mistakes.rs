//! Mistakes at `configurator new` and `configurator build`: each message says what to do.

use std::fs;
use std::path::Path;

use anyhow::Result;
use configurator_tests::guests;
use configurator_tests::program::Program;
use expect_test::{Expect, expect};
use tempfile::TempDir;

/// What the program says in this folder, with what differs from place to place left out.
fn said(program: Program, folder: &Path) -> Result<String> {
    let text = program.folder(folder).fails()?;
    let folder = folder.canonicalize()?.display().to_string();
    let cache = guests::cache()?.display().to_string();
    let text = text.replace(&folder, "FOLDER").replace(&cache, "CACHE");
    // The folder of a build has the name of the module's, and a digest of where it is.
    let parts = text.split('/').map(|part| match part.rsplit_once('-') {
        Some((name, digest)) if u64::from_str_radix(digest, 16).is_ok() => format!("{name}-DIGEST"),
        _ => part.to_owned(),
    });
    Ok(parts.collect::<Vec<String>>().join("/"))
}

fn check(program: Program, folder: &TempDir, expected: Expect) -> Result<()> {
    expected.assert_eq(&said(program, folder.path())?);
    Ok(())
}

/// The program as whoever has no tools but these runs it.
fn poor(subcommand: &str, path: &str) -> Program {
    Program::new(subcommand)
        .env("PATH", path)
        .env("WASI_SDK_PATH", "")
}

fn make(folder: &TempDir, language: &str) -> Result<()> {
    let made = Program::new("new").arg(language).arg("greeter");
    made.folder(folder.path()).succeeds().map(drop)
}

#[test]
fn a_new_module_has_a_name_a_language_and_a_place() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let new = |arguments: &str| Program::new("new").args(arguments);
    check(
        new("python Greeter"),
        &folder,
        expect![[r#"
        error: "Greeter" is no name for a module: lower-case letters, digits and hyphens, a letter first, at most 50 characters
    "#]],
    )?;
    check(
        new("python class"),
        &folder,
        expect![[r#"
        error: "class" cannot be the name of a module in Python, where it means something else: choose another, such as class-config
    "#]],
    )?;
    check(
        new("cobol greeter"),
        &folder,
        expect![[r#"
        error: invalid value 'cobol' for '<LANGUAGE>': "cobol" is none of rust, go, javascript, typescript, python, c

        For more information, try '--help'.
    "#]],
    )?;
    make(&folder, "go")?;
    check(
        new("python greeter"),
        &folder,
        expect![[r#"
        error: greeter is not empty: a new module needs a folder of its own
    "#]],
    )?;
    fs::write(folder.path().join("file"), "")?;
    check(
        new("python greeter --folder file/greeter"),
        &folder,
        expect![[r#"
            error: cannot make file/greeter: Not a directory (os error 20)
        "#]],
    )?;
    // As on a disk that is full.
    let full = "trap '' XFSZ; ulimit -f 0 || exit 9";
    check(
        Program::after(full, "new").args("c other"),
        &folder,
        expect![[r#"
            error: no space is left for other/.gitignore: File too large (os error 27). Free some and try again
        "#]],
    )?;
    // What was written until then is not in the way.
    Program::new("new")
        .args("c other")
        .folder(folder.path())
        .succeeds()?;
    check(
        Program::after(full, "build").arg("other").env(
            "CONFIGURATOR_PYTHON_VENV",
            guests::cache()?.join("languages/venv"),
        ),
        &folder,
        expect![[r#"
            … zig 0.17.1
            error: no space is left for CACHE/build/other-DIGEST/wit/desired.wit: File too large (os error 27). Free some and try again
        "#]],
    )
}

#[test]
fn a_folder_that_is_no_module_says_what_would_make_it_one() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let build = || Program::new("build");
    check(
        build(),
        &folder,
        expect![[r#"
        error: FOLDER is no module: it has none of Cargo.toml, go.mod, package.json, pyproject.toml, module.toml. `configurator new LANGUAGE NAME` makes one
    "#]],
    )?;
    check(
        build().arg("nowhere"),
        &folder,
        expect![[r#"
        error: cannot find nowhere: No such file or directory (os error 2)
    "#]],
    )?;
    fs::write(folder.path().join("go.mod"), "")?;
    fs::write(folder.path().join("package.json"), "")?;
    check(
        build(),
        &folder,
        expect![[r#"
        error: FOLDER has manifests of several languages: go.mod, package.json. Say which is meant, with `--language`
    "#]],
    )?;
    check(
        build().args("--language javascript"),
        &folder,
        expect![[r#"
            error: FOLDER/package.json: EOF while parsing a value at line 1 column 0
        "#]],
    )?;
    check(
        build().args("--language c"),
        &folder,
        expect![[r#"
        error: cannot read FOLDER/module.toml: No such file or directory (os error 2)
    "#]],
    )
}

#[test]
fn a_tool_that_is_missing_is_named_with_the_command_that_installs_it() -> Result<()> {
    let nothing = tempfile::tempdir()?;
    let path = nothing.path().display().to_string();
    for (language, expected) in [
        (
            "javascript",
            expect![[r#"
            error: to build a module in JavaScript, Node.js is needed, and is not there: node cannot be run
            see https://nodejs.org/en/download, or, on Debian: sudo apt-get install nodejs npm
        "#]],
        ),
        (
            "python",
            expect![[r#"
            error: to build a module in Python, componentize-py is needed, and is not there: it is neither in the `.venv` of the module's folder or one above, nor on the PATH
            python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1
        "#]],
        ),
        (
            "c",
            expect![[r#"
            error: to build a module in C, zig, or a WASI SDK is needed, and is not there: zig is neither in the `.venv` of the module's folder or one above, nor on the PATH
            python3 -m venv .venv && .venv/bin/pip install ziglang==0.17.1
            or set WASI_SDK_PATH to a WASI SDK: https://github.com/WebAssembly/wasi-sdk
        "#]],
        ),
    ] {
        let folder = tempfile::tempdir()?;
        make(&folder, language)?;
        check(poor("build", &path).arg("greeter"), &folder, expected)?;
    }
    Ok(())
}
