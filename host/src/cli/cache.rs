//! `configurator cache`: modules that were compiled, as their operator sees them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use configurator_guest::cache::{CacheFolder, CachedModule};
use configurator_guest::options::GuestOptions;
use jiff::{SignedDuration, Timestamp};

use super::settings::user_folder;
use super::terminal::{BAD, FAINT, GOOD};

/// Said of what this build of the host does not use.
const OTHER_BUILD: &str = "not for this host";

/// What is done with the folder of modules that were compiled.
#[derive(Args)]
pub struct CacheArgs {
    #[command(subcommand)]
    command: Command,
    /// Folder of the cache. Default: that of the host of this user.
    #[arg(
        long,
        value_name = "DIR",
        env = "CONFIGURATOR_MODULE_CACHE",
        global = true
    )]
    module_cache: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// List the cached modules: digest, size and time of last use.
    List,
    /// Read every file, and fail if one that this host would use is damaged or untrusted.
    Verify,
    /// Remove files that this host would not use: files of other builds, damaged ones, leftovers of a crash.
    Prune {
        /// Also remove modules unused for this long, such as 720h or "30 minutes".
        #[arg(long, value_name = "SPAN")]
        unused_for: Option<SignedDuration>,
        /// Also remove the least recently used modules until the cache has at most this many bytes.
        #[arg(long, value_name = "BYTES")]
        max_size: Option<u64>,
        /// Remove everything.
        #[arg(long)]
        all: bool,
    },
}

/// Does it.
///
/// # Errors
/// When the folder cannot be used, or something cannot be removed.
pub fn cache(args: &CacheArgs) -> anyhow::Result<ExitCode> {
    let folder = args.module_cache.clone();
    let folder = folder.or_else(|| Some(user_folder("XDG_CACHE_HOME", ".cache")?.join("modules")));
    let folder = folder.context("there is no cache folder: name one by --module-cache")?;
    let cache = CacheFolder::open(&GuestOptions {
        parallel_calls: 1,
        module_cache: Some(folder),
        ..GuestOptions::default()
    })?;
    let modules = cache.list().context("the cache cannot be read")?;
    match &args.command {
        Command::List => {
            for module in modules.iter().rev() {
                let note = if module.fits { "" } else { OTHER_BUILD };
                line(module, note);
            }
            let size: u64 = modules.iter().map(|module| module.size).sum();
            anstream::println!("{FAINT}{}, {size} bytes{FAINT:#}", files(modules.len()));
            Ok(ExitCode::SUCCESS)
        }
        Command::Verify => {
            let mut code = ExitCode::SUCCESS;
            for module in &modules {
                if module.module.is_some() && !module.fits {
                    anstream::println!("{FAINT}- {}: {OTHER_BUILD}{FAINT:#}", named(module));
                    continue;
                }
                match cache.verify(module) {
                    None => anstream::println!("{GOOD}✓{GOOD:#} {}", named(module)),
                    Some(why) => {
                        code = ExitCode::FAILURE;
                        anstream::println!("{BAD}✗{BAD:#} {}: {why}", named(module));
                    }
                }
            }
            Ok(code)
        }
        Command::Prune {
            unused_for,
            max_size,
            all,
        } => {
            let oldest = unused_for.map(|span| Timestamp::now().as_second() - span.as_secs());
            let goes = |module: &CachedModule| {
                *all || !module.fits
                    || oldest.is_some_and(|oldest| module.used < oldest)
                    || cache.verify(module).is_some()
            };
            let (mut gone, mut kept): (Vec<_>, Vec<_>) = modules.into_iter().partition(goes);
            let mut size: u64 = kept.iter().map(|module| module.size).sum();
            while max_size.is_some_and(|most| size > most) && !kept.is_empty() {
                let module = kept.remove(0);
                size -= module.size;
                gone.push(module);
            }
            for module in &gone {
                let removed = cache.remove(module);
                removed.with_context(|| format!("{} cannot be removed", module.file))?;
                line(module, "removed");
            }
            anstream::println!("{FAINT}left: {}, {size} bytes{FAINT:#}", files(kept.len()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn files(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        _ => format!("{count} files"),
    }
}

fn named(module: &CachedModule) -> String {
    let digest = module.module.as_ref().map(ToString::to_string);
    digest.unwrap_or_else(|| module.file.clone())
}

fn line(module: &CachedModule, note: &str) {
    let used = Timestamp::from_second(module.used).unwrap_or_default();
    let text = format!("{} {:>10} {used} {note}", named(module), module.size);
    anstream::println!("{}", text.trim_end());
}
