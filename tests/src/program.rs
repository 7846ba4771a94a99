//! The program `configurator`, and others, as tests run them.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// The key of secret stores in tests.
pub const SECRET_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// How long anything may take before a test gives up waiting.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A command line of the program.
pub struct Program {
    command: Command,
}

impl Program {
    /// The program with this subcommand. `cargo xtask test` has built it beside the tests.
    #[must_use]
    pub fn new(subcommand: &str) -> Self {
        Self::of(Command::new(path()), subcommand)
    }

    /// The program as `bash` starts it after these lines: for limits that only a shell sets.
    #[must_use]
    pub fn after(lines: &str, subcommand: &str) -> Self {
        let mut command = Command::new("bash");
        command
            .arg("-c")
            .arg(format!("{lines}\nexec \"$0\" \"$@\""))
            .arg(path());
        Self::of(command, subcommand)
    }

    fn of(mut command: Command, subcommand: &str) -> Self {
        command
            .arg(subcommand)
            .stdin(Stdio::null())
            .env("NO_COLOR", "1");
        // Settings of whoever runs the tests are not those of a test.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CONFIGURATOR_") {
                command.env_remove(name);
            }
        }
        Self { command }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments, one for each word.
    #[must_use]
    pub fn args(mut self, words: &str) -> Self {
        self.command.args(words.split_whitespace());
        self
    }

    /// One more variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// More variables of its environment.
    #[must_use]
    pub fn envs(mut self, variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.command.envs(variables);
        self
    }

    /// One variable less.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// The folder that it runs in.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
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

    /// Starts it, and listens to what it prints.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(self) -> Result<Running> {
        Running::start(self.command)
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
    beside_tests("configurator")
}

/// A file of the folder that cargo builds into.
#[must_use]
pub fn beside_tests(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    test.ancestors()
        .nth(2)
        .map(|folder| folder.join(name))
        .unwrap_or_default()
}

/// A process under way. It is killed when this is dropped, so also when a test fails.
pub struct Running {
    child: Child,
    stdout: Heard,
    stderr: Heard,
}

impl Running {
    /// Starts a command, and listens to what it prints.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let stdout = Heard::of(child.stdout.take());
        let stderr = Heard::of(child.stderr.take());
        Ok(Self {
            child,
            stdout,
            stderr,
        })
    }

    /// The way to its standard input, where the command has one.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has complained of so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Returns what was printed when this is part of it.
    ///
    /// # Errors
    /// When it ends without it, or that takes longer than [`PATIENCE`].
    pub fn until_printed(&self, part: &str) -> Result<String> {
        self.until_stdout(part, |text| text.contains(part))
    }

    /// Returns what was printed when `holds` is true of it.
    ///
    /// # Errors
    /// As [`until_printed`](Self::until_printed).
    pub fn until_stdout(&self, what: &str, holds: impl Fn(&str) -> bool) -> Result<String> {
        self.until_stdout_within(what, PATIENCE, holds)
    }

    /// As [`until_stdout`](Self::until_stdout), with patience of its own.
    ///
    /// # Errors
    /// When it takes longer.
    pub fn until_stdout_within(
        &self,
        what: &str,
        patience: Duration,
        holds: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let found = self.stdout.until(patience, holds);
        found.with_context(|| format!("{what:?} was not printed; complaints: {}", self.stderr()))
    }

    /// Returns the complaints when this is part of them.
    ///
    /// # Errors
    /// When it ends without it, or that takes longer than [`PATIENCE`].
    pub fn until_complained(&self, part: &str) -> Result<String> {
        self.until_complained_within(part, PATIENCE)
    }

    /// As [`until_complained`](Self::until_complained), with patience of its own.
    ///
    /// # Errors
    /// When it takes longer.
    pub fn until_complained_within(&self, part: &str, patience: Duration) -> Result<String> {
        let found = self.stderr.until(patience, |text| text.contains(part));
        found.with_context(|| format!("{part:?} was no complaint; printed: {}", self.stdout()))
    }

    /// Sends a signal, such as `TERM`.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn signal(&self, name: &str) -> Result<()> {
        // The shell has `kill` built in, wherever there is a shell.
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.id())])
            .status()?;
        ensure!(sent.success(), "SIG{name} could not be sent");
        Ok(())
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Returns its exit status when it has ended and everything that it printed has been heard.
    ///
    /// # Errors
    /// When it takes longer than [`PATIENCE`].
    pub fn ended(&mut self) -> Result<ExitStatus> {
        self.ended_within(PATIENCE)
    }

    /// As [`ended`](Self::ended), with patience of its own.
    ///
    /// # Errors
    /// When it takes longer.
    pub fn ended_within(&mut self, patience: Duration) -> Result<ExitStatus> {
        let status = until("the process ends", patience, || self.child.try_wait())?;
        self.stdout.until_closed(PATIENCE)?;
        self.stderr.until_closed(PATIENCE)?;
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns what `look` finds, once it finds something.
///
/// # Errors
/// When that takes longer than `patience`, or looking fails.
pub fn until<T, E>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T>
where
    E: Into<anyhow::Error>,
{
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look().map_err(Into::into)? {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What comes out of a pipe.
struct Heard {
    shared: Arc<(Mutex<Told>, Condvar)>,
}

#[derive(Default)]
struct Told {
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Heard {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let shared = Arc::new((Mutex::new(Told::default()), Condvar::new()));
        let listener = shared.clone();
        std::thread::spawn(move || {
            let (told, news) = &*listener;
            let mut chunk = [0; 4096];
            let mut pipe = pipe;
            loop {
                // An error ends it as the end of the process does.
                let read = pipe
                    .as_mut()
                    .map_or(0, |pipe| pipe.read(&mut chunk).unwrap_or(0));
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.bytes.extend(chunk.iter().take(read));
                told.is_closed = read == 0;
                news.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { shared }
    }

    fn text(&self) -> String {
        let told = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&told.bytes).into_owned()
    }

    fn until(&self, patience: Duration, holds: impl Fn(&str) -> bool) -> Result<String> {
        let (told, news) = &*self.shared;
        let deadline = Instant::now() + patience;
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let text = String::from_utf8_lossy(&told.bytes).into_owned();
            if holds(&text) {
                return Ok(text);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if told.is_closed || left.is_zero() {
                bail!("printed: {text}");
            }
            told = news
                .wait_timeout(told, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn until_closed(&self, patience: Duration) -> Result<()> {
        let (told, news) = &*self.shared;
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, _) = news
            .wait_timeout_while(told, patience, |told| !told.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        ensure!(
            told.is_closed,
            "the process ended, but a child of it goes on printing"
        );
        Ok(())
    }
}
