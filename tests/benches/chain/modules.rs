//! What a call costs in each language: the root handler of workload-config on a Deployment of 4 KiB, in a batch of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use configurator_core::handler::{CallLimits, HandlerInput, ResourceObject};
use configurator_guest::bytes::ModuleBytes;
use configurator_guest::log::no_log;
use configurator_guest::module::Module;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_tests::guests;

use crate::measure::median;

/// As the program calls them.
const LANGUAGES: [&str; 5] = ["rust", "go", "javascript", "python", "c"];
/// Languages take turns, so that a busy minute of the machine is none of one of them.
const TURNS: usize = 7;
const CALLS: usize = 300;
/// Calls of an instance that is reused.
const REUSE: u32 = 100;

struct Language {
    name: &'static str,
    bytes: ModuleBytes,
    module: Arc<Module>,
    fresh: Vec<f64>,
    reused: Vec<f64>,
    start: Vec<f64>,
}

struct Other {
    name: String,
    bytes: ModuleBytes,
    start: Vec<f64>,
}

/// Prints a table, and a line for each figure. Of the other modules, which are files, only the start is measured.
pub fn measure<'a>(others: impl Iterator<Item = &'a str>) -> Result<()> {
    let object = std::fs::read_to_string(
        guests::workspace().join("configurators/workload-config/testdata/deployment.json"),
    )?;
    let input = crate::input(ResourceObject::Batch(vec![crate::watched(
        object.trim_end(),
    )?]));
    let cache = tempfile::tempdir()?;
    let guest = runtime(&cache)?;
    let mut languages = LANGUAGES
        .into_iter()
        .map(|name| language(&guest, name))
        .collect::<Result<Vec<Language>>>()?;
    let mut others = others
        .map(|file| other(&guest, file))
        .collect::<Result<Vec<Other>>>()?;
    for turn in 0..TURNS {
        eprintln!("modules: turn {} of {TURNS}", turn + 1);
        for other in &mut others {
            other.start.push(start(&cache, &other.bytes)?);
        }
        for language in &mut languages {
            language.start.push(start(&cache, &language.bytes)?);
            let fresh = CallLimits::default();
            language
                .fresh
                .push(calls(&guest, &language.module, &input, fresh)?);
            let reused = CallLimits {
                instance_calls: REUSE,
                ..fresh
            };
            language
                .reused
                .push(calls(&guest, &language.module, &input, reused)?);
        }
    }
    println!(
        "| language | module, KiB | start from the cache, ms | fresh instance and call, µs | call of a reused instance, µs |"
    );
    println!("|---|---|---|---|---|");
    let mut figures = Vec::new();
    for language in languages {
        let Language {
            name,
            bytes,
            fresh,
            reused,
            start,
            ..
        } = language;
        let (fresh, reused, start) = (median(fresh), median(reused), median(start));
        println!(
            "| {name} | {} | {start:.1} | {fresh:.1} | {reused:.1} |",
            bytes.len() >> 10
        );
        figures.push(format!(
            "fresh instance and call, median us, {name}: {fresh:.1}"
        ));
        figures.push(format!(
            "reused instance call, median us, {name}: {reused:.1}"
        ));
        figures.push(format!(
            "start from the cache, median ms, {name}: {start:.1}"
        ));
    }
    for Other { name, bytes, start } in others {
        let start = median(start);
        println!("| {name} | {} | {start:.1} | | |", bytes.len() >> 10);
        figures.push(format!(
            "start from the cache, median ms, {name}: {start:.1}"
        ));
    }
    println!("\n{}", figures.join("\n"));
    Ok(())
}

fn runtime(cache: &tempfile::TempDir) -> Result<GuestRuntime> {
    Ok(GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        module_cache: Some(cache.path().to_owned()),
        ..GuestOptions::default()
    })?)
}

fn language(guest: &GuestRuntime, name: &'static str) -> Result<Language> {
    let folder = guests::folder()?;
    let folder = match name {
        "rust" => folder,
        other => folder.join(other),
    };
    let path = folder.join("workload_config.wasm");
    let bytes = read(&path)?;
    eprintln!("modules: compiling {name}");
    let module = guest.load_blocking(bytes.clone(), name)?;
    Ok(Language {
        name,
        bytes,
        module,
        fresh: Vec::new(),
        reused: Vec::new(),
        start: Vec::new(),
    })
}

fn other(guest: &GuestRuntime, file: &str) -> Result<Other> {
    let path = Path::new(file);
    let bytes = read(path)?;
    eprintln!("modules: compiling {file}");
    guest.load_blocking(bytes.clone(), file)?;
    Ok(Other {
        name: path.file_name().unwrap_or_default().display().to_string(),
        bytes,
        start: Vec::new(),
    })
}

/// With its digest, which whoever fetches a module has verified.
fn read(path: &Path) -> Result<ModuleBytes> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(bytes.into())
}

/// Milliseconds from a verified module to its description in a new runtime that finds it in the cache.
fn start(cache: &tempfile::TempDir, bytes: &ModuleBytes) -> Result<f64> {
    let guest = runtime(cache)?;
    let since = Instant::now();
    guest.load_blocking(bytes.clone(), "a module")?;
    Ok(since.elapsed().as_secs_f64() * 1e3)
}

/// The median of a call in microseconds, on this thread.
fn calls(
    guest: &GuestRuntime,
    module: &Arc<Module>,
    input: &HandlerInput,
    limits: CallLimits,
) -> Result<f64> {
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let since = Instant::now();
        let report = guest.call_blocking(module, "root", input, &limits, no_log());
        took.push(since.elapsed().as_secs_f64() * 1e6);
        report.result.map_err(|fault| anyhow::anyhow!("{fault}"))?;
    }
    Ok(median(took))
}
