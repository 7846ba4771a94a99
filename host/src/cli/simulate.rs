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
use crate::simulator::Simulator;
use crate::simulator::explore::{Exploration, Explored};
use crate::simulator::scenario::Scenario;

/// Play scenarios.
#[derive(Args)]
pub struct SimulateArgs {
    /// Folders with scenarios, or scenario files.
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Accept what happens as what is to happen.
    #[arg(long)]
    update: bool,
    /// Only scenarios with this in their name.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Folders with modules, beside those that the scenarios name. Repeatable; colons part them in the variable.
    #[arg(
        long,
        value_name = "DIR",
        env = "CONFIGURATOR_MODULES",
        value_delimiter = ':'
    )]
    modules: Vec<PathBuf>,
    /// Write a JUnit report here.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Play each scenario that passes again and again, with every fault at every request, and with two.
    #[arg(long)]
    explore: bool,
    /// The most calls of handlers for each scenario.
    #[arg(long, value_name = "N", default_value_t = Exploration::default().max_calls, requires = "explore")]
    calls: usize,
    /// Decides which faults come together. Without it, chance does, and says how it can be repeated.
    #[arg(long, value_name = "N", requires = "explore")]
    seed: Option<u64>,
}

struct Played {
    scenario: Scenario,
    took: Duration,
    mistakes: Vec<String>,
    explored: Option<Explored>,
}

/// Plays the scenarios and prints what is not as it should be.
///
/// # Errors
/// When a scenario cannot be read, or there is none.
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let mut scenarios = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            scenarios.extend(Scenario::find(path)?);
        } else {
            scenarios.push(Scenario::read(path)?);
        }
    }
    anyhow::ensure!(
        !scenarios.is_empty(),
        "there are no scenarios here; they are YAML files in folders named `scenarios`"
    );
    if let Some(text) = &args.filter {
        scenarios.retain(|scenario| scenario.name().contains(text.as_str()));
        anyhow::ensure!(
            !scenarios.is_empty(),
            "no scenario here has {text:?} in its name"
        );
    }
    let player = Player::new(None)?;
    let exploration = Exploration {
        seed: args.seed.map_or_else(seed, Ok)?,
        max_calls: args.calls,
    };
    if args.explore {
        anstream::println!(
            "exploring with --seed {} and at most {} calls of each scenario",
            exploration.seed,
            exploration.max_calls
        );
    }
    let mut played = Vec::new();
    for mut scenario in scenarios {
        let here = std::env::current_dir()?;
        scenario
            .modules
            .extend(args.modules.iter().map(|folder| here.join(folder)));
        let (mut one, is_changed) = player.play(scenario, args.update);
        if args.explore && one.mistakes.is_empty() {
            player.explore(&mut one, &exploration);
        }
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
pub(super) struct Player(Simulator);

impl Player {
    pub(super) fn new(functions: Option<CompiledFunctions>) -> anyhow::Result<Self> {
        let cache = user_folder("XDG_CACHE_HOME", ".cache");
        Ok(Self(Simulator::with_options(GuestOptions {
            parallel_calls: 1,
            module_cache: cache.map(|cache| cache.join("modules")),
            functions,
            ..GuestOptions::default()
        })?))
    }

    /// Plays those of a folder, and prints what fails. Returns how many pass, and how many do not.
    pub(super) fn play_all(&self, folder: &Path) -> anyhow::Result<(usize, usize)> {
        let (mut passed, mut failed) = (0, 0);
        let folder = folder.join("scenarios");
        if !folder.try_exists()? {
            return Ok((passed, failed));
        }
        for scenario in Scenario::find(&folder)? {
            let (one, _) = self.play(scenario, false);
            if one.mistakes.is_empty() {
                passed += 1;
            } else {
                failed += 1;
                print(&one, false);
            }
        }
        Ok((passed, failed))
    }

    /// Plays one, and returns whether what was recorded of it was changed. That it cannot be played is its mistake.
    fn play(&self, scenario: Scenario, update: bool) -> (Played, bool) {
        let since = Instant::now();
        let judged = self.0.play(&scenario).and_then(|outcome| {
            Ok(if update {
                let is_changed = outcome.accept(&scenario)?;
                (outcome.unmet(&scenario), is_changed)
            } else {
                (outcome.mistakes(&scenario)?, false)
            })
        });
        let (mistakes, is_changed) =
            judged.unwrap_or_else(|error| (vec![error.to_string()], false));
        let played = Played {
            took: since.elapsed(),
            mistakes,
            scenario,
            explored: None,
        };
        (played, is_changed)
    }

    /// Explores one that passes.
    fn explore(&self, played: &mut Played, exploration: &Exploration) {
        let since = Instant::now();
        match self.0.explore(&played.scenario, exploration) {
            Ok(explored) => {
                let findings = explored.findings.iter().map(ToString::to_string);
                played.mistakes.extend(findings);
                played.explored = Some(explored);
            }
            Err(error) => played.mistakes.push(error.to_string()),
        }
        played.took += since.elapsed();
    }
}

fn print(played: &Played, is_changed: bool) {
    let Played {
        scenario,
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
    anstream::println!(
        "{style}{mark}{style:#} {}{changed} {FAINT}{took:.1?} {}{FAINT:#}",
        scenario.name(),
        scenario.description
    );
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
        let mut case = TestCase::new(one.scenario.name(), status);
        case.set_time(one.took);
        suite.add_test_case(case);
    }
    report.add_test_suite(suite);
    let text = report
        .to_string()
        .context("the JUnit report cannot be written")?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
