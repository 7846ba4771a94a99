//! Programs that compile: found, or asked for; run, and heard.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::error::BuildError;
use crate::language::Language;

/// Bytes of what a program says that are kept for the error.
const MAX_OUTPUT: usize = 1 << 20;

/// Told what goes on, line by line.
pub(crate) type Say<'s> = dyn FnMut(&str) + 's;

/// The first of these programs that is there; each is looked for as it is, and on the PATH.
pub(crate) fn find(candidates: &[PathBuf]) -> Option<PathBuf> {
    candidates.iter().find_map(|name| which::which(name).ok())
}

/// One of these programs.
///
/// # Errors
/// When none is there; with the commands that install it.
pub(crate) fn need(
    language: Language,
    what: &str,
    candidates: &[PathBuf],
    install: &str,
) -> Result<PathBuf, BuildError> {
    find(candidates).ok_or_else(|| {
        let names: Vec<String> = candidates
            .iter()
            .map(|name| name.display().to_string())
            .collect();
        BuildError::MissingTool {
            language,
            what: what.to_owned(),
            why: match names.as_slice() {
                [one] => format!("{one} cannot be run"),
                several => format!("neither {} can be run", several.join(" nor ")),
            },
            install: install.to_owned(),
        }
    })
}

/// Runs it to its end, and returns what it wrote to standard output. What it writes to standard error is told.
///
/// # Errors
/// When it cannot be run or fails.
pub(crate) fn run(command: &mut Command, say: &mut Say<'_>) -> Result<String, BuildError> {
    let shown = shown(command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(BuildError::file("run", command.get_program()))?;
    let said = child.stdout.take().map(|stdout| {
        thread::spawn(move || {
            let mut said = String::new();
            let mut stdout = BufReader::new(stdout);
            let _ = stdout.read_to_string(&mut said);
            said
        })
    });
    let mut output = String::new();
    if let Some(stderr) = child.stderr.take() {
        let (lines, told) = mpsc::sync_channel(64);
        thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        for line in told {
            say(&line);
            if output.len() < MAX_OUTPUT {
                output.push_str(&line);
                output.push('\n');
            }
        }
    }
    let status = child
        .wait()
        .map_err(BuildError::file("run", command.get_program()))?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    if status.success() {
        return Ok(said);
    }
    // Some compilers complain on standard output.
    if output.trim().is_empty() {
        said.lines().for_each(&mut *say);
        output.clone_from(&said);
    }
    Err(BuildError::Failed {
        command: shown,
        status: status.to_string(),
        output,
    })
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_a_compiler_writes_is_told_and_kept() {
        let mut told = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo 'a.c:1: no' >&2; exit 3"]);
        let error = run(&mut command, &mut |line| told.push(line.to_owned())).unwrap_err();
        assert_eq!(told, ["a.c:1: no"]);
        expect!["`sh -c echo out; echo 'a.c:1: no' >&2; exit 3` has failed (exit status: 3)"]
            .assert_eq(&error.to_string());
        let BuildError::Failed { output, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(output, "a.c:1: no\n");
    }

    #[test]
    fn a_program_that_is_missing_is_asked_for() {
        let candidates = ["no-such-compiler", "nor-this"].map(PathBuf::from);
        let error = need(Language::C, "a C compiler", &candidates, "pip install zig").unwrap_err();
        expect![[r#"
            to build a module in C, a C compiler is needed, and is not there: neither no-such-compiler nor nor-this can be run
            pip install zig"#]]
        .assert_eq(&error.to_string());
    }
}
