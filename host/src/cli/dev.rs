//! `configurator dev`: a module while it is being written.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use configurator_build::{Build, BuildError, Built, Tools};
use configurator_guest::functions::CompiledFunctions;
use notify::{EventKind, RecursiveMode, Watcher as _};

use super::build::{shown, tell, work_folder};
use super::run::{self, RunArgs};
use super::simulate::Player;
use super::terminal::{BAD, FAINT, GOOD};

/// How long nothing must be written before what was written is built: editors write in several steps.
const QUIET: Duration = Duration::from_millis(50);
/// How often the host looks whether the module is another.
const LOOK: Duration = Duration::from_millis(100);
/// Folders in which nobody writes sources.
const NO_SOURCES: [&str; 5] = ["target", "node_modules", "__pycache__", ".venv", ".git"];

/// Work on a module.
#[derive(Args)]
pub struct DevArgs {
    /// The folder of its sources, with its `configurator.yaml` and its scenarios.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    run: Box<RunArgs>,
}

/// Builds a module, plays its scenarios, and runs it in a host of its own; and all of that anew with each change of its sources.
///
/// # Errors
/// When it cannot be built the first time, or the host cannot run.
pub fn dev(args: DevArgs) -> anyhow::Result<ExitCode> {
    let DevArgs { folder, mut run } = args;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot find {}", folder.display()))?;
    let declaration = folder.join("configurator.yaml");
    anyhow::ensure!(
        declaration.is_file(),
        "{} is not there: it declares what the module is for, and `configurator new` makes one",
        declaration.display()
    );
    // Listened to before the first build, so that what is written during it is seen.
    let (changes, changed) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event| {
        // Nobody listens any more at the end.
        let _ = changes.send(event);
    })?;
    watcher
        .watch(&folder, RecursiveMode::Recursive)
        .with_context(|| format!("cannot watch {}", folder.display()))?;
    // The scenarios and the host have it compiled once.
    let functions = CompiledFunctions::new();
    let workbench = Workbench::new(folder, functions.clone())?;
    anyhow::ensure!(
        workbench.work(),
        "the module must build once before it can run"
    );
    run.with_module(declaration, LOOK, functions);
    thread::Builder::new().name("dev".into()).spawn(move || {
        while workbench.wait(&changed) {
            workbench.work();
        }
    })?;
    let ended = run::run(*run);
    drop(watcher);
    ended
}

/// What is done with each change.
struct Workbench {
    build: Build,
    player: Player,
}

impl Workbench {
    fn new(folder: PathBuf, functions: CompiledFunctions) -> anyhow::Result<Self> {
        Ok(Self {
            player: Player::new(Some(functions))?,
            build: Build {
                folder,
                language: None,
                output: None,
                cache: work_folder(),
                // What is not committed yet has no revision that means anything.
                with_revision: false,
                tools: Tools::from_env(),
            },
        })
    }

    /// Builds, and plays the scenarios. The host takes over what was built by itself. Returns whether it was.
    fn work(&self) -> bool {
        let since = Instant::now();
        match self.build.run(&mut shown) {
            Ok(built) => {
                tell(&built, since);
                self.play(&built);
                true
            }
            Err(error @ BuildError::Failed { .. }) => {
                anstream::eprintln!("{BAD}✗{BAD:#} {error}; what was built before goes on running");
                false
            }
            Err(error) => {
                anstream::eprintln!("{BAD}✗{BAD:#} {error}");
                false
            }
        }
    }

    fn play(&self, built: &Built) {
        match self.player.play_all(&self.build.folder) {
            Ok((0, 0)) => anstream::println!(
                "{FAINT}there are no scenarios in {}{FAINT:#}",
                self.build.folder.join("scenarios").display()
            ),
            Ok((passed, 0)) => anstream::println!("{GOOD}✓{GOOD:#} {passed} scenarios"),
            Ok((passed, failed)) => anstream::println!(
                "{BAD}✗{BAD:#} {failed} of {} scenarios; when this is what you want: configurator simulate {} --update",
                passed + failed,
                self.build.folder.display()
            ),
            Err(error) => anstream::eprintln!("{BAD}✗{BAD:#} {}: {error:#}", built.metadata.name),
        }
    }

    /// Returns when a source has changed and nothing follows for a moment; false when there is nothing more to come.
    fn wait(&self, changed: &mpsc::Receiver<notify::Result<notify::Event>>) -> bool {
        loop {
            match changed.recv() {
                Ok(event) if self.concerns(&event) => break,
                Ok(_) => {}
                Err(mpsc::RecvError) => return false,
            }
        }
        while changed.recv_timeout(QUIET).is_ok() {}
        true
    }

    /// Whether something is written that the module or its scenarios are made of.
    fn concerns(&self, event: &notify::Result<notify::Event>) -> bool {
        let Ok(event) = event else {
            // Events were lost; better once too often.
            return true;
        };
        !matches!(event.kind, EventKind::Access(_))
            && event.paths.iter().any(|path| self.is_source(path))
    }

    fn is_source(&self, path: &Path) -> bool {
        let Ok(path) = path.strip_prefix(&self.build.folder) else {
            return false;
        };
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_made = name.ends_with(".wasm") || name.starts_with('.') || name.ends_with('~');
        !is_made && !parts.any(|part| NO_SOURCES.contains(&&*part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_builds_write_is_no_change() {
        let workbench = Workbench::new("/module".into(), CompiledFunctions::new()).unwrap();
        for source in [
            "/module/src/lib.rs",
            "/module/sdk/a.py",
            "/module/scenarios/a.yaml",
        ] {
            assert!(workbench.is_source(Path::new(source)), "{source}");
        }
        for other in [
            "/module/my_module.wasm",
            "/module/.my_module.wasm.7",
            "/module/target/release/x.d",
            "/module/node_modules/a/index.js",
            "/module/sdk/__pycache__/a.pyc",
            "/module/src/.lib.rs.swp",
            "/elsewhere/lib.rs",
        ] {
            assert!(!workbench.is_source(Path::new(other)), "{other}");
        }
    }
}
