//! `configurator replay`: the calls of runs that were recorded, made again.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use configurator_guest::module::Module;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use similar::TextDiff;

use super::settings::user_folder;
use super::terminal::{BAD, FAINT, GOOD, WAITING};
use crate::recording::{Difference, Exactness, Recording, module_path};
use crate::resource::segment_of;

/// What is made again, and with which module.
#[derive(Args)]
pub struct ReplayArgs {
    /// Folder of `run --record`, or one file in it.
    recordings: PathBuf,
    /// Use this module instead of the recorded ones, and show how its requests differ.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// Makes them again. Fails where one gives something else, or cannot be made.
///
/// # Errors
/// When the folder, or the module that is named, cannot be read.
pub fn replay(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let found = Recording::find(&args.recordings)?;
    anyhow::ensure!(
        !found.is_empty(),
        "there are no recordings in {}: `configurator run --record DIR` makes them",
        args.recordings.display()
    );
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        // The result must not depend on the memory of the machine.
        memory: u64::MAX,
        module_cache: user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("modules")),
        ..GuestOptions::default()
    })?;
    let other = match &args.module {
        None => None,
        Some(file) => Some(load(&guest, file)?),
    };
    let mut modules = HashMap::new();
    let mut made = Made::default();
    for path in &found {
        let recording = match Recording::read(path) {
            Ok(recording) => recording,
            Err(error) => {
                made.unread += 1;
                anstream::println!("{BAD}✗{BAD:#} {error}");
                continue;
            }
        };
        let (module, exactness) = match &other {
            Some(module) => (Ok(module.clone()), Exactness::Values),
            None => {
                let file = module_path(&folder_of(path, &recording), &recording.module);
                let known = modules
                    .entry(file.clone())
                    .or_insert_with(|| recorded(&guest, &file, &recording.module));
                (known.clone(), Exactness::Bytes)
            }
        };
        match module {
            Ok(module) => {
                let replayed = recording.replay(&guest, &module, exactness);
                made.runs += 1;
                made.calls += recording.calls.len();
                made.not_compared += replayed.not_compared;
                if !replayed.differences.is_empty() {
                    made.differing += 1;
                    show(&recording, path, &replayed.differences);
                }
            }
            Err(error) => {
                made.unread += 1;
                anstream::println!(
                    "{BAD}✗{BAD:#} {} {FAINT}{}{FAINT:#}\n  {error}",
                    recording.configurator,
                    path.display()
                );
            }
        }
    }
    made.tell();
    Ok(match made.is_good() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// What has come of it so far.
#[derive(Default)]
struct Made {
    runs: usize,
    calls: usize,
    differing: usize,
    not_compared: usize,
    /// Runs that cannot be made again.
    unread: usize,
}

impl Made {
    const fn is_good(&self) -> bool {
        self.differing == 0 && self.unread == 0
    }

    fn tell(&self) {
        let Self {
            runs,
            calls,
            differing,
            not_compared,
            unread,
        } = self;
        let (style, mark) = if self.is_good() {
            (GOOD, "✓")
        } else {
            (BAD, "✗")
        };
        anstream::println!(
            "{style}{mark}{style:#} {runs} runs with {calls} calls, {differing} of them with a difference"
        );
        if *not_compared > 0 {
            anstream::println!(
                "  {WAITING}{not_compared} calls are not compared: a limit of the machine was exceeded{WAITING:#}"
            );
        }
        if *unread > 0 {
            anstream::println!("  {BAD}{unread} runs could not be made again{BAD:#}");
        }
    }
}

/// The module that was recorded, if it is still there and still that.
fn recorded(guest: &GuestRuntime, file: &Path, digest: &str) -> Result<Arc<Module>, String> {
    let module = load(guest, file).map_err(|error| format!("{error:#}"))?;
    let found = module.digest().to_string();
    match found == digest {
        true => Ok(module),
        false => Err(format!(
            "{} is {found}, and not the module that was recorded",
            file.display()
        )),
    }
}

/// Recordings of a Configurator are in a folder of its name, beside that of the modules.
fn folder_of(path: &Path, recording: &Recording) -> PathBuf {
    let own = path.parent().unwrap_or(Path::new("."));
    let segment = segment_of(&recording.configurator);
    let above = match own.file_name().is_some_and(|name| *name == *segment) {
        true => own.parent().unwrap_or(Path::new(".")),
        false => own,
    };
    above.to_owned()
}

fn load(guest: &GuestRuntime, file: &Path) -> anyhow::Result<Arc<Module>> {
    let bytes =
        fs::read(file).with_context(|| format!("cannot read the module {}", file.display()))?;
    Ok(guest.load_blocking(&bytes, &file.display().to_string())?)
}

fn show(recording: &Recording, path: &Path, differences: &[Difference]) {
    let objects = recording.objects.join(", ");
    anstream::println!(
        "{BAD}✗{BAD:#} {} {objects} {FAINT}{}{FAINT:#}",
        recording.configurator,
        path.display()
    );
    for Difference {
        call,
        node,
        handler,
        recorded,
        found,
    } in differences
    {
        anstream::println!("  call {} of {node}, handler {handler}", call + 1);
        let diff = TextDiff::from_lines(recorded, found);
        let diff = diff
            .unified_diff()
            .context_radius(2)
            .header("recorded", "now")
            .to_string();
        for line in diff.lines() {
            anstream::println!("  {line}");
        }
    }
}
