//! The program `configurator`, as tests run it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The key of secret stores in tests.
pub const SECRET_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A command line of the program.
pub struct Program {
    command: Command,
}

impl Program {
    /// The program with this subcommand. `cargo xtask test` has built it beside the tests.
    #[must_use]
    pub fn new(subcommand: &str) -> Self {
        let mut command = Command::new(path());
        command
            .arg(subcommand)
            .stdin(Stdio::null())
            .env("NO_COLOR", "1");
        Self { command }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// One more variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it, and shows nothing of what it prints.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(mut self) -> Result<Child> {
        let program = format!("{:?}", self.command);
        self.command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| program)
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn output(mut self) -> Result<Output> {
        let program = format!("{:?}", self.command);
        self.command
            .output()
            .with_context(|| format!("{program}; build it with `cargo build --bin configurator`"))
    }

    /// Runs it to its end and returns what it printed.
    ///
    /// # Errors
    /// When it cannot be started, or says that it failed.
    pub fn succeeds(self) -> Result<String> {
        let output = self.output()?;
        let text = printed(&output);
        ensure!(output.status.success(), "it failed: {text}");
        Ok(text)
    }

    /// Runs it to its end and returns what it printed.
    ///
    /// # Errors
    /// When it cannot be started, or says that it succeeded.
    pub fn fails(self) -> Result<String> {
        let output = self.output()?;
        let text = printed(&output);
        ensure!(!output.status.success(), "it succeeded: {text}");
        Ok(text)
    }
}

fn printed(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The program lies beside the folder with the tests.
fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    test.ancestors()
        .nth(2)
        .map(|folder| folder.join("configurator"))
        .unwrap_or_default()
}
