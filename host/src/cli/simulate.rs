//! `configurator simulate`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use configurator_guest::functions::CompiledFunctions;
use configurator_guest::options::GuestOptions;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::settings::user_folder;
use super::terminal::{BAD, FAINT, GOOD, WAITING};
use crate::simulator::explore::{Exploration, Explored};
use crate::simulator::scenario::Scenario;
use crate::simulator::{Simulator, SimulatorError};

/// Play scenarios.
#[derive(Args)]
pub struct SimulateArgs {
    /// Scenario files, or folders with scenarios.
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Update the golden files.
    #[arg(long)]
    update: bool,
    /// Only scenarios whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Folders with modules, in addition to those that the scenarios name. Repeatable; the variable separates them with colons.
    #[arg(
        long,
        value_name = "DIR",
        env = "CONFIGURATOR_MODULES",
        value_delimiter = ':'
    )]
    modules: Vec<PathBuf>,
    /// Write a JUnit report to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Explore each passing scenario: play it again with every fault at every request, and with pairs of faults.
    #[arg(long)]
    explore: bool,
    /// Maximum number of handler calls for each scenario.
    #[arg(long, value_name = "N", default_value_t = Exploration::default().max_calls, requires = "explore")]
    calls: usize,
    /// Seed for choosing pairs of faults. Default: random, and printed so that a run can be repeated.
    #[arg(long, value_name = "N", requires = "explore")]
    seed: Option<u64>,
}

struct Played {
    name: String,
    description: String,
    took: Duration,
    mistakes: Vec<String>,
    explored: Option<Explored>,
}

/// Plays the scenarios and prints what is not as it should be. One that cannot be read or played fails, and the others are played.
///
/// # Errors
/// When there is no scenario.
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            files.extend(Scenario::files(path)?);
        } else {
            files.push(path.clone());
        }
    }
    anyhow::ensure!(
        !files.is_empty(),
        "there are no scenarios here; they are YAML files in folders named `scenarios`"
    );
    if let Some(text) = &args.filter {
        files.retain(|file| Scenario::name_of(file).contains(text.as_str()));
        anyhow::ensure!(
            !files.is_empty(),
            "no scenario here has {text:?} in its name"
        );
    }
    let here = std::env::current_dir()?;
    let folders = args.modules.iter().map(|folder| here.join(folder));
    let player = Player {
        modules: folders.collect(),
        ..Player::new(None)?
    };
    let exploration = match args.explore {
        true => Some(Exploration {
            seed: args.seed.map_or_else(seed, Ok)?,
            max_calls: args.calls,
        }),
        false => None,
    };
    if let Some(exploration) = &exploration {
        anstream::println!(
            "exploring with --seed {} and at most {} calls of each scenario",
            exploration.seed,
            exploration.max_calls
        );
    }
    let mut played = Vec::new();
    for file in files {
        let (one, is_changed) = player.play(&file, args.update, exploration.as_ref());
        print(&one, is_changed);
        played.push(one);
    }
    if let Some(file) = &args.junit {
        write_junit(file, &played)?;
    }
    let failed = played.iter().filter(|one| !one.mistakes.is_empty()).count();
    anstream::println!("{} passed, {failed} failed", played.len() - failed);
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Few digits, so that they are easy to repeat.
fn seed() -> anyhow::Result<u64> {
    let mut seed = [0; 4];
    getrandom::fill(&mut seed).context("the system has no random numbers")?;
    Ok(u32::from_le_bytes(seed).into())
}

/// Plays scenarios one after another.
pub(super) struct Player {
    simulator: Simulator,
    /// Folders with modules, beside those that the scenarios name.
    modules: Vec<PathBuf>,
}

impl Player {
    pub(super) fn new(functions: Option<CompiledFunctions>) -> anyhow::Result<Self> {
        let cache = user_folder("XDG_CACHE_HOME", ".cache");
        let simulator = Simulator::with_options(GuestOptions {
            parallel_calls: 1,
            // The result must not depend on the memory of the machine.
            memory: u64::MAX,
            module_cache: cache.map(|cache| cache.join("modules")),
            functions,
            ..GuestOptions::default()
        })?;
        Ok(Self {
            simulator,
            modules: Vec::new(),
        })
    }

    /// Plays those of a folder, and prints what fails. Returns how many pass, and how many do not.
    pub(super) fn play_all(&self, folder: &Path) -> anyhow::Result<(usize, usize)> {
        let (mut passed, mut failed) = (0, 0);
        let folder = folder.join("scenarios");
        if !folder.try_exists()? {
            return Ok((passed, failed));
        }
        for file in Scenario::files(&folder)? {
            let (one, _) = self.play(&file, false, None);
            if one.mistakes.is_empty() {
                passed += 1;
            } else {
                failed += 1;
                print(&one, false);
            }
        }
        Ok((passed, failed))
    }

    /// Plays one, explores it where it passes, and returns whether what was recorded of it was changed. That it cannot be read or played is its
    /// mistake.
    fn play(&self, file: &Path, update: bool, exploration: Option<&Exploration>) -> (Played, bool) {
        let since = Instant::now();
        let mut played = Played {
            name: Scenario::name_of(file),
            description: String::new(),
            took: Duration::ZERO,
            mistakes: Vec::new(),
            explored: None,
        };
        let judged = self.judge(file, update, exploration, &mut played);
        let is_changed = judged.unwrap_or_else(|error| {
            played.mistakes.push(error.to_string());
            false
        });
        played.took = since.elapsed();
        (played, is_changed)
    }

    fn judge(
        &self,
        file: &Path,
        update: bool,
        exploration: Option<&Exploration>,
        played: &mut Played,
    ) -> Result<bool, SimulatorError> {
        let mut scenario = Scenario::read(file)?;
        scenario.modules.extend(self.modules.iter().cloned());
        played.description.clone_from(&scenario.description);
        let outcome = self.simulator.play(&scenario)?;
        let is_changed = update && outcome.accept(&scenario)?;
        played.mistakes = match update {
            true => outcome.unmet(&scenario),
            false => outcome.mistakes(&scenario)?,
        };
        if let Some(exploration) = exploration
            && played.mistakes.is_empty()
        {
            let explored = self.simulator.explore(&scenario, exploration)?;
            let findings = explored.findings.iter().map(ToString::to_string);
            played.mistakes.extend(findings);
            played.explored = Some(explored);
        }
        Ok(is_changed)
    }
}

fn print(played: &Played, is_changed: bool) {
    let Played {
        name,
        description,
        took,
        mistakes,
        explored,
    } = played;
    let (style, mark) = if mistakes.is_empty() {
        (GOOD, "✓")
    } else {
        (BAD, "✗")
    };
    let changed = if is_changed {
        format!(" {WAITING}accepted{WAITING:#}")
    } else {
        String::new()
    };
    let about = match &**description {
        "" => String::new(),
        about => format!(" {about}"),
    };
    anstream::println!("{style}{mark}{style:#} {name}{changed} {FAINT}{took:.1?}{about}{FAINT:#}");
    if let Some(explored) = explored {
        let Explored {
            singles,
            pairs,
            calls,
            entropy,
            unplayable,
            ..
        } = explored;
        anstream::println!(
            "  {FAINT}{} of {} worlds with one fault, {} of {} with two, {calls} calls{FAINT:#}",
            singles.worlds,
            singles.of,
            pairs.worlds,
            pairs.of,
        );
        for one in entropy {
            anstream::println!("  {WAITING}{one}{WAITING:#}");
        }
        for why in unplayable {
            anstream::println!("  {WAITING}a world could not be played: {why}{WAITING:#}");
        }
    }
    for mistake in mistakes {
        for line in mistake.lines() {
            let style = match line.as_bytes().first() {
                Some(b'+') => GOOD,
                Some(b'-') => BAD,
                _ => anstyle::Style::new(),
            };
            anstream::println!("  {style}{line}{style:#}");
        }
    }
}

fn write_junit(file: &Path, played: &[Played]) -> anyhow::Result<()> {
    let mut report = Report::new("configurator simulate");
    let mut suite = TestSuite::new("scenarios");
    for one in played {
        let status = if one.mistakes.is_empty() {
            TestCaseStatus::success()
        } else {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let text = one.mistakes.join("\n");
            status.set_message(text.lines().next().unwrap_or_default());
            status.set_description(text);
            status
        };
        let mut case = TestCase::new(one.name.clone(), status);
        case.set_time(one.took);
        suite.add_test_case(case);
    }
    report.add_test_suite(suite);
    let text = report
        .to_string()
        .context("the JUnit report cannot be written")?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
