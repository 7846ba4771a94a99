//! What a program says when it is asked something.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a program writes to standard output, which may be nothing, where it can be run and succeeds.
pub(crate) fn answer<P: AsRef<OsStr>>(
    program: P,
    arguments: &[&str],
    folder: &Path,
) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}
