//! The way of `docs/languages.md`, from `configurator new` to a change in a running host, step by step in each language.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use configurator_tests::guests;
use configurator_tests::program::{Program, Running};

/// How long a build may take: those of Python take the longest.
const BUILD: Duration = Duration::from_secs(120);

/// A new module in a folder of its own, and a host that runs it.
struct Walk {
    folder: PathBuf,
    /// The file with the handler, and what it says when it is well.
    handler: PathBuf,
    text: String,
}

impl Walk {
    fn begin(language: &str, handler: &str) -> Result<Self> {
        // Not a new folder each time: what cargo keeps of a folder would stay for ever.
        let folder = guests::cache()?.join("walks").join(language);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let mut walk = Self {
            handler: folder.join("greeter").join(handler),
            text: String::new(),
            folder,
        };
        let said = walk
            .program("new")
            .args(language)
            .arg("greeter")
            .succeeds()?;
        ensure!(said.contains("cd greeter"), "{said}");
        walk.text = fs::read_to_string(&walk.handler)?;
        ensure!(walk.text.contains("hello, "), "{}", walk.text);
        Ok(walk)
    }

    /// The program, where this module is; tools are those that `cargo xtask test` has installed.
    fn program(&self, subcommand: &str) -> Program {
        let tools = guests::cache().unwrap_or_default().join("languages");
        let crates = self.folder.with_file_name("target");
        Program::new(subcommand)
            .folder(&self.folder)
            .env("CONFIGURATOR_NODE_MODULES", tools.join("npm/node_modules"))
            .env("CONFIGURATOR_PYTHON_VENV", tools.join("venv"))
            .env("CARGO_TARGET_DIR", crates)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder)
            .stdin(Stdio::null());
        command
    }

    fn kubectl(&self, arguments: &str) -> Result<()> {
        let output = self.command(arguments).output();
        let output = output.context("kubectl is needed: `cargo xtask test` installs it")?;
        ensure!(output.status.success(), "kubectl {arguments}: {output:?}");
        Ok(())
    }

    /// Saves the handler as an editor does.
    fn save(&self, text: &str) -> Result<()> {
        Ok(fs::write(&self.handler, text)?)
    }
}

/// Goes the whole way. `broken` is a line that does not compile, and `complaint` a part of what the compiler says of it.
fn check(language: &str, handler: &str, broken: &str, complaint: &str) -> Result<()> {
    let walk = Walk::begin(language, handler)?;
    let built = walk.program("build").arg("greeter").succeeds()?;
    ensure!(built.contains("✓ greeter"), "{built}");
    ensure!(
        Path::new(&walk.folder)
            .join("greeter/greeter.wasm")
            .is_file()
    );
    let played = walk.program("simulate").arg("greeter").succeeds()?;
    ensure!(played.contains("1 passed, 0 failed"), "{played}");

    let dev = walk
        .program("dev")
        .args("greeter --listen 127.0.0.1:0 --data-dir data")
        .start()?;
    let is_served = |text: &str| text.contains("the API is served");
    dev.until_stdout_within("the API is served", BUILD, is_served)?;
    walk.program("kubeconfig")
        .args("--data-dir data -o kubeconfig")
        .succeeds()?;
    walk.kubectl("create namespace shop")?;
    let greetings = "get configmaps -A --field-selector metadata.name=hello --watch";
    let shown = "-o jsonpath={.data.greeting}{\"\\n\"}";
    let greetings = Running::start(walk.command(&format!("{greetings} {shown}")))?;
    let until_greeted = |greeting: &str| {
        let is_there = |text: &str| text.lines().any(|line| line == greeting);
        let greeted = greetings.until_stdout_within(greeting, BUILD, is_there);
        greeted.with_context(|| format!("{}{}", dev.stdout(), dev.stderr()))
    };
    until_greeted("hello, shop")?;

    walk.save(&format!("{}{broken}\n", walk.text))?;
    let complaints = dev.until_complained_within("what was built before goes on running", BUILD)?;
    ensure!(complaints.contains(complaint), "{complaints}");
    let told = walk.program("build").arg("greeter").fails()?;
    ensure!(
        told.contains(complaint) && told.contains("has failed"),
        "{told}"
    );
    walk.kubectl("create namespace bakery")?;
    until_greeted("hello, bakery")?;

    let since = Instant::now();
    walk.save(&walk.text.replace("hello, ", "welcome, "))?;
    until_greeted("welcome, shop")?;
    println!(
        "edit to effect, ms, {language}: {}",
        since.elapsed().as_millis()
    );
    // Its scenario has recorded the other greeting.
    let advice = "when this is what you want: configurator simulate";
    dev.until_printed(advice)?;
    let accepted = walk
        .program("simulate")
        .args("greeter --update")
        .succeeds()?;
    ensure!(accepted.contains("1 passed, 0 failed"), "{accepted}");
    Ok(())
}

#[test]
fn rust() -> Result<()> {
    check("rust", "src/lib.rs", "fn broken( {", "error: ")
}

#[test]
fn go() -> Result<()> {
    check("go", "hello.go", "func broken( {", "syntax error")
}

#[test]
fn javascript() -> Result<()> {
    check("javascript", "index.ts", "const = 1;", "index.ts")
}

#[test]
fn python() -> Result<()> {
    check("python", "greeter.py", "def broken(:", "SyntaxError")
}

#[test]
fn c() -> Result<()> {
    check("c", "greeter.c", "int broken( {", "error: ")
}
