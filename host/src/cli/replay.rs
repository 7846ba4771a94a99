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
use super::terminal::{BAD, FAINT, GOOD};
use crate::recording::{Difference, Exactness, Recording, module_path};

/// What is made again, and with which module.
#[derive(Args)]
pub struct ReplayArgs {
    /// The folder of `run --record`, or one file of it.
    recordings: PathBuf,
    /// With this module in place of the recorded ones: shows how what it asks for differs.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// Makes them again. Fails where one gives something else.
///
/// # Errors
/// When a recording or a module cannot be read.
pub fn replay(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let found = Recording::find(&args.recordings)?;
    anyhow::ensure!(
        !found.is_empty(),
        "there are no recordings in {}: `configurator run --record DIR` makes them",
        args.recordings.display()
    );
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        module_cache: user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("modules")),
        ..GuestOptions::default()
    })?;
    let other = match &args.module {
        None => None,
        Some(file) => Some(load(&guest, file)?),
    };
    let mut modules = HashMap::new();
    let (mut calls, mut differing) = (0, 0);
    for path in &found {
        let recording = Recording::read(path)?;
        let (module, exactness) = match &other {
            Some(module) => (module.clone(), Exactness::Values),
            None => {
                let folder = folder_of(path, &recording);
                let file = module_path(&folder, &recording.module);
                let module = match modules.get(&recording.module) {
                    Some(module) => Arc::clone(module),
                    None => load(&guest, &file)?,
                };
                modules.insert(recording.module.clone(), module.clone());
                (module, Exactness::Bytes)
            }
        };
        calls += recording.calls.len();
        let differences = recording.replay(&guest, &module, exactness);
        if !differences.is_empty() {
            differing += 1;
            show(&recording, path, &differences);
        }
    }
    let (runs, style) = (found.len(), if differing == 0 { GOOD } else { BAD });
    let mark = if differing == 0 { "✓" } else { "✗" };
    anstream::println!(
        "{style}{mark}{style:#} {runs} runs with {calls} calls, {differing} of them with a difference"
    );
    Ok(match differing {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Recordings of a Configurator are in a folder of its name, beside that of the modules.
fn folder_of(path: &Path, recording: &Recording) -> PathBuf {
    let own = path.parent().unwrap_or(Path::new("."));
    let above = match own
        .file_name()
        .is_some_and(|name| *name == *recording.configurator)
    {
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
