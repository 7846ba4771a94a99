//! The program is built with the library that all tests use. Its tests are in `tests/tests/program`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

#[test]
fn it_says_which_version_it_is() {
    let program = Command::new(env!("CARGO_BIN_EXE_configurator"))
        .arg("--version")
        .output()
        .unwrap();
    let said = String::from_utf8(program.stdout).unwrap();
    assert_eq!(
        said,
        format!("configurator {}\n", env!("CARGO_PKG_VERSION"))
    );
}
