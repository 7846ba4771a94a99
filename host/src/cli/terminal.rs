//! What a person at a terminal sees: one line for each run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use configurator_core::handler::{CallFault, HandlerOutput};
use configurator_core::plan::Plan;
use configurator_core::request::ObjectRef;
use configurator_core::result::RequestResult;
use configurator_core::run::{Call, Finish, Pause, Run};

use super::escape::Escaped;
use crate::observer::{Notice, RunEnd, RunObserver};

/// For what went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// For what went wrong.
pub const BAD: Style = AnsiColor::Red.on_default();
/// For what waits.
pub const WAITING: Style = AnsiColor::Yellow.on_default();
/// For what matters less.
pub const FAINT: Style = AnsiColor::BrightBlack.on_default();
/// For names.
pub const NAME: Style = AnsiColor::Cyan.on_default();

/// Runs whose phases are remembered; more are printed without them.
const MAX_REMEMBERED: usize = 10_000;

/// Prints one line for each run, with its phases and requests. Shows names only, never contents.
#[derive(Default)]
pub struct Terminal {
    runs: Mutex<HashMap<String, Seen>>,
}

struct Seen {
    since: Instant,
    phases: Vec<String>,
}

impl Terminal {
    fn note(&self, run: &Run, phase: Option<String>) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= MAX_REMEMBERED && !runs.contains_key(run.id()) {
            return;
        }
        let seen = runs.entry(run.id().to_owned()).or_insert_with(|| Seen {
            since: Instant::now(),
            phases: Vec::new(),
        });
        seen.phases.extend(phase);
    }
}

impl RunObserver for Terminal {
    fn called(&self, run: &Run, call: &Call, result: &Result<HandlerOutput, CallFault>) {
        let is_quiet =
            matches!(result, Ok(output) if !output.requests.resource_requests.is_empty());
        self.note(run, (!is_quiet).then(|| call.input.context.phase.clone()));
    }

    fn executed(&self, run: &Run, phase: &str, plan: &Plan, results: &[RequestResult]) {
        let failed: Vec<String> = results
            .iter()
            .filter_map(|result| {
                Some(format!(
                    "{} {}",
                    result.request_name,
                    result.error.as_ref()?.kind
                ))
            })
            .collect();
        let number = plan.steps.len();
        let requests = if number == 1 {
            "1 request".to_owned()
        } else {
            format!("{number} requests")
        };
        let failures = match failed.len() {
            0 => String::new(),
            1..=3 => format!(" ({})", failed.join(", ")),
            more => format!(" ({more} failed)"),
        };
        self.note(run, Some(format!("{phase}: {requests}{failures}")));
    }

    fn ended(&self, run: &Run, end: &RunEnd) {
        let seen = self
            .runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(run.id());
        let (phases, took) = match seen {
            Some(seen) => (
                // A run that goes on after a rest may call no handler.
                format!(" {}", seen.phases.join(" → "))
                    .trim_end()
                    .to_owned(),
                format!(" {:.1?}", seen.since.elapsed()),
            ),
            None => (String::new(), String::new()),
        };
        let members = run.members();
        let objects = match members {
            [] => "nothing".to_owned(),
            [one] => one.key.to_string(),
            [first, ..] => format!("{} and {} more", first.key, members.len() - 1),
        };
        let event = members.first().map_or("", |member| member.event.name());
        let (style, mark, why) = match end {
            RunEnd::Finished(Finish::Succeeded | Finish::Rest { .. }) => (GOOD, "✓", String::new()),
            RunEnd::Finished(Finish::Restart { after, failure, .. }) => (
                WAITING,
                "↻",
                format!(" {}; again in {after:.1?}", Escaped(&failure.fault)),
            ),
            RunEnd::Finished(Finish::Failed { failure, .. }) => {
                (BAD, "✗", format!(" {}", Escaped(&failure.fault)))
            }
            RunEnd::Finished(Finish::Split { failure }) => (
                WAITING,
                "÷",
                format!(" {}; halved", Escaped(&failure.fault)),
            ),
            RunEnd::Paused(Pause::Resend { after, failure, .. }) => (
                WAITING,
                "↻",
                format!(" {}; again in {after:.1?}", Escaped(&failure.fault)),
            ),
            RunEnd::Paused(Pause::Members { .. }) => {
                (WAITING, "…", " waits for members of its set".to_owned())
            }
            RunEnd::Paused(Pause::Unready { reason, .. }) => {
                (WAITING, "…", format!(" waits for {}", Escaped(reason)))
            }
            RunEnd::Paused(Pause::Park { failure, .. }) => {
                let sink = failure
                    .server
                    .as_ref()
                    .map_or("", |server| server.sink.name());
                let why = format!(" {}; waits for the {sink} sink", Escaped(&failure.fault));
                (WAITING, "‖", why)
            }
        };
        let name = &run.configurator().key;
        anstream::println!(
            "{style}{mark}{style:#} {NAME}{name}{NAME:#} {objects} {FAINT}{event}{FAINT:#}{phases}{why}{FAINT}{took}{FAINT:#}"
        );
    }

    fn noticed(&self, configurator: &ObjectRef, notice: &Notice) {
        let (style, mark, text) = match notice {
            Notice::Loading { module } => (FAINT, "…", format!("loads {module}")),
            Notice::Started { digest, .. } => (GOOD, "▶", format!("runs {digest:.19}…")),
            Notice::Swapped { digest, .. } => (GOOD, "▶", format!("now runs {digest:.19}…")),
            Notice::CanaryStarted { digest, percent } => {
                let text = format!("runs {digest:.19}… as a canary on {percent} % of the objects");
                (GOOD, "▶", text)
            }
            Notice::RolledBack { message, .. } => (BAD, "✗", message.clone()),
            Notice::Refused { reason, message } => (BAD, "✗", format!("{reason}: {message}")),
            Notice::Bootstrapped { objects } => {
                let text = match objects {
                    0 => "has no objects yet".to_owned(),
                    1 => "its one object has had its turn".to_owned(),
                    _ => format!("all {objects} objects have had their turn"),
                };
                (GOOD, "●", text)
            }
            Notice::Waiting { message } => (WAITING, "…", message.clone()),
            Notice::Stopped => (FAINT, "■", "is gone".to_owned()),
        };
        let text = Escaped(text);
        anstream::println!("{style}{mark}{style:#} {NAME}{configurator}{NAME:#} {text}");
    }
}
