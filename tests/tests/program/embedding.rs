//! The example of a host inside a program of one's own.

use std::process::Command;

use anyhow::{Result, ensure};
use configurator_tests::guests;
use configurator_tests::program::{Running, beside_tests};

#[test]
fn the_example_of_embedding_runs_to_its_end_and_is_short() -> Result<()> {
    let example = beside_tests("examples/embed");
    if !example.is_file() {
        let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(guests::workspace())
            .args([
                "build",
                "--package",
                "configurator-examples",
                "--example",
                "embed",
            ])
            .status()?;
        ensure!(built.success(), "the example does not build");
    }
    let mut command = Command::new(example);
    command
        .arg(guests::folder()?)
        .arg(guests::workspace().join("examples/rust-hello/configurator.yaml"));
    let mut running = Running::start(command)?;
    let status = running.ended()?;
    assert!(status.success(), "{}", running.stderr());
    assert_eq!(running.stdout(), "every object has been configured\n");
    assert_eq!(running.stderr(), "");

    let text = std::fs::read_to_string(guests::workspace().join("examples/embed.rs"))?;
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = text.lines().filter(is_code).count();
    assert!(lines <= 40, "{lines} lines of code");
    Ok(())
}
