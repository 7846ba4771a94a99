//! The way of `docs/languages.md`, from `configurator new` to a change in a running host, step by step in each language.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use configurator_tests::guests;
use configurator_tests::program::{Program, Running};

/// How long a build may take: those of Python take the longest.
const BUILD: Duration = Duration::from_secs(120);

/// How a language's way differs from that of the others.
struct Way {
    language: &'static str,
    /// The file with the handler.
    handler: &'static str,
    /// The test of the documentation.
    test: &'static str,
    /// A line that does not compile, and a part of what the compiler says of it.
    broken: &'static str,
    complaint: &'static str,
    /// The version that the component has, where its manifest says one.
    version: &'static str,
}

/// A new module in a folder of its own, and a host that runs it.
struct Walk {
    /// That of the module, in which everything is done.
    folder: PathBuf,
    /// The file with the handler, and what it says when it is well.
    handler: PathBuf,
    text: String,
}

impl Walk {
    fn begin(way: &Way) -> Result<Self> {
        // Not a new folder each time: what cargo keeps of a folder would stay for ever.
        let above = guests::cache()?.join("walks").join(way.language);
        if above.exists() {
            fs::remove_dir_all(&above)?;
        }
        fs::create_dir_all(&above)?;
        let new = Program::new("new").args(way.language).arg("greeter");
        let said = new.folder(&above).succeeds()?;
        ensure!(said.contains("cd greeter"), "{said}");
        let folder = above.join("greeter");
        let handler = folder.join(way.handler);
        let text = fs::read_to_string(&handler)?;
        ensure!(text.contains("hello, "), "{text}");
        let walk = Self {
            folder,
            handler,
            text,
        };
        walk.install(way.language)?;
        Ok(walk)
    }

    /// As `npm install` and `pip install` would: what `cargo xtask test` has installed is there.
    fn install(&self, language: &str) -> Result<()> {
        let tools = guests::cache()?.join("languages");
        let link = |from: &Path, to: &str| symlink(from, self.folder.join(to));
        match language {
            "javascript" => {
                let modules = self.folder.join("node_modules");
                fs::create_dir(&modules)?;
                link(&self.folder.join("sdk"), "node_modules/configurator-sdk")?;
                for entry in tools.join("npm/node_modules").read_dir()? {
                    let entry = entry?;
                    let name = entry.file_name();
                    if name != "configurator-sdk" && name != ".cache" {
                        symlink(entry.path(), modules.join(name))?;
                    }
                }
            }
            "python" | "c" => link(&tools.join("venv"), ".venv")?,
            _ => {}
        }
        Ok(())
    }

    /// The program, where this module is.
    fn program(&self, subcommand: &str) -> Program {
        Program::new(subcommand)
            .folder(&self.folder)
            .env("CARGO_TARGET_DIR", self.crates())
    }

    fn crates(&self) -> PathBuf {
        guests::cache().unwrap_or_default().join("walks/target")
    }

    /// A line of the documentation, in the module's folder.
    fn shell(&self, line: &str) -> Result<()> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.crates())
            .env("GOFLAGS", "")
            .stdin(Stdio::null());
        let output = shell.output()?;
        ensure!(output.status.success(), "{line}: {output:?}");
        Ok(())
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", self.folder.join("data/kubeconfig"))
            .env("HOME", self.folder.join("data"))
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

/// Goes the whole way.
fn check(way: &Way) -> Result<()> {
    let walk = Walk::begin(way)?;
    walk.shell(way.test)?;
    let identity = "-c user.name=a -c user.email=a@b.c";
    walk.shell(&format!(
        "git init --quiet && git add . && git {identity} commit --quiet --message new"
    ))?;
    let built = walk.program("build").succeeds()?;
    ensure!(built.contains("✓ greeter"), "{built}");
    let inspected = walk.program("inspect").arg("greeter.wasm").succeeds()?;
    for said in [
        "name    greeter\n",
        &format!("version {}", way.version),
        "source  ",
        &format!("configurator-sdk{} 0.1.0", way.sdk()),
    ] {
        ensure!(inspected.contains(said), "{said}: {inspected}");
    }
    ensure!(!inspected.contains("-dirty"), "{inspected}");
    let played = walk.program("simulate").arg(".").succeeds()?;
    ensure!(played.contains("1 passed, 0 failed"), "{played}");

    let dev = walk
        .program("dev")
        .args("--listen 127.0.0.1:0 --data-dir data")
        .start()?;
    let is_served = |text: &str| text.contains("the API is served");
    dev.until_stdout_within("the API is served", BUILD, is_served)?;
    walk.program("kubeconfig")
        .args("--data-dir data -o data/kubeconfig")
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

    walk.save(&format!("{}{}\n", walk.text, way.broken))?;
    let complaints = dev.until_complained_within("what was built before goes on running", BUILD)?;
    ensure!(complaints.contains(way.complaint), "{complaints}");
    let told = walk.program("build").fails()?;
    ensure!(
        told.contains(way.complaint) && told.contains("has failed"),
        "{told}"
    );
    walk.kubectl("create namespace bakery")?;
    until_greeted("hello, bakery")?;

    let since = Instant::now();
    walk.save(&walk.text.replace("hello, ", "welcome, "))?;
    until_greeted("welcome, shop")?;
    println!(
        "edit to effect, ms, {}: {}",
        way.language,
        since.elapsed().as_millis()
    );
    // Its scenario has recorded the other greeting.
    let advice = "when this is what you want: configurator simulate";
    dev.until_printed(advice)?;
    let accepted = walk.program("simulate").args(". --update").succeeds()?;
    ensure!(accepted.contains("1 passed, 0 failed"), "{accepted}");

    // Objects that the host keeps below the folder are no sources, and the Configurator is one.
    let declaration = walk.folder.join("configurator.yaml");
    let declared = fs::read_to_string(&declaration)?;
    let narrower = declared.replace(
        "kind: Namespace}",
        "kind: Namespace, fieldSelector: metadata.name!=other}",
    );
    ensure!(narrower != declared, "{declared}");
    fs::write(&declaration, narrower)?;
    dev.until_printed("configurator.yaml applied")?;
    let mut watched =
        walk.command("get clusterconfigurator greeter -o jsonpath={.spec.watch.fieldSelector}");
    let watched = watched.output()?;
    ensure!(watched.stdout == b"metadata.name!=other", "{watched:?}");
    let builds = dev.stdout().matches(" kB, ").count();
    ensure!(builds <= 4, "{}", dev.stdout());
    Ok(())
}

impl Way {
    /// How the component calls the language of its SDK.
    fn sdk(&self) -> &'static str {
        match self.language {
            "go" => " (Go)",
            "javascript" => " (JavaScript)",
            "python" => " (Python)",
            "c" => " (C)",
            _ => "",
        }
    }
}

#[test]
fn rust() -> Result<()> {
    check(&Way {
        language: "rust",
        handler: "src/lib.rs",
        test: "cargo test --quiet",
        broken: "fn broken( {",
        complaint: "error: ",
        version: "0.1.0",
    })
}

#[test]
fn go() -> Result<()> {
    check(&Way {
        language: "go",
        handler: "hello.go",
        test: "go test ./...",
        broken: "func broken( {",
        complaint: "syntax error",
        version: "0.0.0-2",
    })
}

#[test]
fn javascript() -> Result<()> {
    check(&Way {
        language: "javascript",
        handler: "index.ts",
        test: "npm test",
        broken: "const = 1;",
        complaint: "index.ts",
        version: "0.1.0",
    })
}

#[test]
fn python() -> Result<()> {
    check(&Way {
        language: "python",
        handler: "greeter.py",
        test: "PYTHONPATH=sdk python3 -m unittest",
        broken: "def broken(:",
        complaint: "SyntaxError",
        version: "0.1.0",
    })
}

#[test]
fn c() -> Result<()> {
    check(&Way {
        language: "c",
        handler: "greeter.c",
        test: "CC=\".venv/bin/python-zig cc\" sh sdk/test.sh .",
        broken: "int broken( {",
        complaint: "error: ",
        version: "0.1.0",
    })
}
