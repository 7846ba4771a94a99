//! `configurator dev`: a module while it is being written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use configurator_build::{Build, BuildError, Built, Language, Tools};
use configurator_guest::functions::CompiledFunctions;
use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::watch;

use super::build::{shown, tell, work_folder};
use super::manifests;
use super::run::{self, Renewed, RunArgs};
use super::simulate::Player;
use super::terminal::{BAD, FAINT, GOOD};

/// How long nothing must be written before what was written is built: editors write in several steps.
const QUIET: Duration = Duration::from_millis(50);
/// How long is waited for that at most.
const MAX_QUIET: Duration = Duration::from_secs(2);
/// How often the host looks whether the module is another.
const LOOK: Duration = Duration::from_millis(100);
/// The Configurator of a module, in its folder.
const DECLARATION: &str = "configurator.yaml";
/// Folders in which nobody writes sources, beside hidden ones.
const NO_SOURCES: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Work on a module.
#[derive(Args)]
pub struct DevArgs {
    /// Folder with the sources of the module, its `configurator.yaml` and its scenarios.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Language of the module, if the folder has manifests of several languages.
    #[arg(long)]
    language: Option<Language>,
    #[command(flatten)]
    run: Box<RunArgs>,
}

/// Builds a module, plays its scenarios, and runs it in a host of its own; and all of that anew with each change of its sources. A change of its
/// Configurator is applied as well.
///
/// # Errors
/// When something that builds it is missing, or the host cannot run.
pub fn dev(args: DevArgs) -> anyhow::Result<ExitCode> {
    let DevArgs {
        folder,
        language,
        mut run,
    } = args;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot find {}", folder.display()))?;
    let declaration = folder.join(DECLARATION);
    anyhow::ensure!(
        declaration.is_file(),
        "{} is not there: it declares what the module is for, and `configurator new` makes one",
        declaration.display()
    );
    check_source(&declaration)?;
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
    let (declared, renewals) = watch::channel(());
    let made = run.settings()?.own_folders()?;
    let mut workbench = Workbench::new(folder, language, made, functions.clone())?;
    // Until it has been built once there is nothing to run.
    while !workbench.work()? {
        anyhow::ensure!(workbench.wait(&changed), "its folder cannot be watched");
    }
    run.with_module(
        Renewed {
            file: declaration,
            changed: renewals,
        },
        LOOK,
        functions,
    );
    thread::Builder::new().name("dev".into()).spawn(move || {
        while workbench.wait(&changed) {
            match workbench.work() {
                Ok(true) if workbench.is_declared_anew() => {
                    declared.send_replace(());
                }
                Ok(_) => {}
                Err(error) => anstream::eprintln!("{BAD}✗{BAD:#} {error:#}"),
            }
        }
    })?;
    let ended = run::run(*run);
    drop(watcher);
    ended
}

/// What is built is a file, and is another with each change.
fn check_source(declaration: &Path) -> anyhow::Result<()> {
    let manifests = manifests::read(&[declaration.to_owned()])?;
    for manifest in manifests
        .iter()
        .filter(|manifest| manifest.is_configurator())
    {
        let has = |name: &str| manifest.object.pointer(name).is_some();
        anyhow::ensure!(
            has("/spec/module/file") && !has("/spec/module/digest"),
            "{}: spec.module has to be `{{file: …}}`, without a digest: `dev` runs what it builds. Where other hosts have the module from is for their manifest",
            declaration.display()
        );
    }
    Ok(())
}

/// What is done with each change.
struct Workbench {
    build: Build,
    player: Player,
    /// Folders in which the host keeps its files.
    made: Vec<PathBuf>,
    has_built: bool,
    /// The Configurator as it was last applied.
    declaration: Vec<u8>,
}

impl Workbench {
    fn new(
        folder: PathBuf,
        language: Option<Language>,
        made: Vec<PathBuf>,
        functions: CompiledFunctions,
    ) -> anyhow::Result<Self> {
        let mut workbench = Self {
            player: Player::new(Some(functions))?,
            made,
            has_built: false,
            declaration: Vec::new(),
            build: Build {
                folder,
                language,
                output: None,
                cache: work_folder(),
                // What is not committed yet has no revision that means anything.
                with_revision: false,
                tools: Tools::from_env(),
            },
        };
        workbench.is_declared_anew();
        Ok(workbench)
    }

    /// Builds, and plays the scenarios. The host takes over what was built by itself. Returns whether it compiles.
    ///
    /// # Errors
    /// When what stands in the way is not in the sources.
    fn work(&mut self) -> Result<bool, BuildError> {
        let since = Instant::now();
        match self.build.run(&mut shown) {
            Ok(built) => {
                tell(&built, since);
                self.has_built = true;
                self.play(&built);
                Ok(true)
            }
            Err(error @ (BuildError::Failed { .. } | BuildError::Manifest { .. })) => {
                let then = match self.has_built {
                    true => "what was built before goes on running",
                    false => "it runs when it has been built",
                };
                anstream::eprintln!("{BAD}✗{BAD:#} {error}; {then}");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the Configurator is another than when this was asked last.
    fn is_declared_anew(&mut self) -> bool {
        let now = fs::read(self.build.folder.join(DECLARATION)).unwrap_or_default();
        let is_other = now != self.declaration;
        self.declaration = now;
        is_other
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
        let last = Instant::now() + MAX_QUIET;
        let mut until = Instant::now() + QUIET;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match changed.recv_timeout(left) {
                Ok(event) if self.concerns(&event) => until = last.min(Instant::now() + QUIET),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        true
    }

    /// Whether something is written that the module or its scenarios are made of.
    fn concerns(&self, event: &notify::Result<notify::Event>) -> bool {
        let Ok(event) = event else {
            // Events were lost; better once too often.
            return true;
        };
        let is_written = !matches!(event.kind, EventKind::Access(_));
        event.need_rescan() || (is_written && event.paths.iter().any(|path| self.is_source(path)))
    }

    fn is_source(&self, path: &Path) -> bool {
        if self.made.iter().any(|folder| path.starts_with(folder)) {
            return false;
        }
        let Ok(path) = path.strip_prefix(&self.build.folder) else {
            return false;
        };
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_made = name.ends_with(".wasm") || name.ends_with('~');
        !is_made && !parts.any(|part| part.starts_with('.') || NO_SOURCES.contains(&&*part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_builds_write_is_no_change() {
        let made = vec!["/module/data".into()];
        let functions = CompiledFunctions::new();
        let workbench = Workbench::new("/module".into(), None, made, functions).unwrap();
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
            "/module/.venv/lib/a.py",
            "/module/sdk/__pycache__/a.pyc",
            "/module/src/.lib.rs.swp",
            "/module/data/objects.redb",
            "/elsewhere/lib.rs",
        ] {
            assert!(!workbench.is_source(Path::new(other)), "{other}");
        }
    }
}
