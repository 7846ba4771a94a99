//! `configurator build` and `configurator new`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use configurator_build::{Build, BuildError, Built, Language, Progress, Scaffold, Tools};

use super::settings::user_folder;
use super::terminal::{BAD, FAINT, GOOD, NAME};

/// Build a module.
#[derive(Args)]
pub struct BuildArgs {
    /// Folder with the sources of the module.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Where to write the component: a file, or an existing folder. Default: the module's folder.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Language of the module, if the folder has manifests of several languages.
    #[arg(long)]
    language: Option<Language>,
    /// Leave the git revision out of the component, so that the same sources always give the same digest.
    #[arg(long)]
    no_revision: bool,
}

/// Make a module.
#[derive(Args)]
pub struct NewArgs {
    /// Language: rust, go, javascript, typescript, python or c.
    language: Language,
    /// Name of the module: lower-case letters, digits and hyphens.
    name: String,
    /// Folder to create. Default: the name of the module.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Builds a module, and shows what its compiler says.
///
/// # Errors
/// When it cannot be built; the error says what to do.
pub fn build(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    let since = Instant::now();
    let build = Build {
        folder: args.folder.clone(),
        language: args.language,
        output: args.output.clone(),
        cache: work_folder(),
        with_revision: !args.no_revision,
        tools: Tools::from_env(),
    };
    match build.run(&mut shown) {
        Ok(built) => {
            tell(&built, since);
            Ok(ExitCode::SUCCESS)
        }
        // What the compiler has said stands above.
        Err(error @ BuildError::Failed { .. }) => {
            anstream::eprintln!("{BAD}✗{BAD:#} {error}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}

/// Where builds keep what they make on the way.
pub(super) fn work_folder() -> PathBuf {
    user_folder("XDG_CACHE_HOME", ".cache")
        .unwrap_or_else(std::env::temp_dir)
        .join("build")
}

/// A line of a build.
pub(super) fn shown(progress: Progress<'_>) {
    match progress {
        Progress::Step(step) => anstream::eprintln!("{FAINT}…{FAINT:#} {step}"),
        Progress::Said(line) => anstream::eprintln!("  {line}"),
    }
}

/// What was built.
pub(super) fn tell(built: &Built, since: Instant) {
    let Built {
        path,
        size,
        language,
        metadata,
    } = built;
    let version = metadata.version.as_deref().unwrap_or_default();
    anstream::println!(
        "{GOOD}✓{GOOD:#} {NAME}{}{NAME:#} {version} {FAINT}({language}, {} kB, {:.1?}){FAINT:#} {}",
        metadata.name,
        size.div_ceil(1000),
        since.elapsed(),
        path.display()
    );
}

/// Makes a module, and says how to go on.
///
/// # Errors
/// When there is something where it would be, or it cannot be written.
pub fn new(args: &NewArgs) -> anyhow::Result<ExitCode> {
    let NewArgs {
        language,
        name,
        folder,
    } = args;
    let mut scaffold = Scaffold::within(Path::new(""), *language, name);
    if let Some(folder) = folder {
        scaffold.folder.clone_from(folder);
    }
    let files = scaffold.make()?;
    for file in files.iter().filter(|file| !file.starts_with("sdk")) {
        anstream::println!("{FAINT}+{FAINT:#} {}", scaffold.folder.join(file).display());
    }
    anstream::println!(
        "{FAINT}+{FAINT:#} {} {FAINT}(the SDK){FAINT:#}",
        scaffold.folder.join("sdk").display()
    );
    anstream::println!("\n{GOOD}✓{GOOD:#} {NAME}{name}{NAME:#}, a module in {language}. Now:\n");
    let mut steps = vec![format!("cd {}", scaffold.folder.display())];
    steps.extend(language.preparation().map(str::to_owned));
    steps.push("configurator build        # its sources to a component".to_owned());
    steps.push("configurator simulate .   # its scenarios, without a cluster".to_owned());
    for step in steps {
        anstream::println!("  {step}");
    }
    Ok(ExitCode::SUCCESS)
}
