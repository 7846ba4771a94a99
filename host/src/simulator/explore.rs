//! Looks for faults that a module does not stand.
//!
//! A scenario is played once as it is, and then again and again: each request that comes to the sinks meets each fault once, and then two of
//! them come together, chosen by chance. After each of these the host starts again, and what it comes to must be what it came to without
//! faults.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::backoff::mix;
use configurator_core::fault::FaultKind;
use configurator_core::handler::{CallFault, CallLimits, HandlerInput};
use configurator_core::request::SinkName;
use configurator_guest::digest::Digest;
use configurator_guest::log::no_log;
use configurator_guest::module::Module;
use configurator_guest::runtime::GuestRuntime;
use serde_json::Value;

use super::SimulatorError;
use super::faults::{SeenRequest, TOUCHED};
use super::outcome::Outcome;
use super::play::{End, Played, Unsettled, play_and_look};
use super::record::{MadeCall, Recorder};
use super::scenario::{InjectedAnswer, InjectedFault, Scenario, Step, default_message};
use crate::recording::said;

/// A world with a fault may take this many times the calls of one without, and [`SPARE_CALLS`].
const MANY_CALLS: usize = 20;
const SPARE_CALLS: usize = 200;
/// Of the scenario as it is.
const FIRST_CALLS: usize = 10_000;
/// The clock of a call that is made again shows another time.
const LATER: Duration = Duration::from_millis(40_271_803);
/// Faults of one request at its first so many times.
const TIMES: u32 = 2;
/// The most calls that a call is made again.
const REPEATS: usize = 4;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exploration {
    /// Decides which faults come together. The same seed finds the same.
    pub seed: u64,
    /// The most calls of handlers, those that are made again among them.
    pub max_calls: usize,
}

impl Default for Exploration {
    fn default() -> Self {
        Self {
            seed: 1,
            max_calls: 2_000,
        }
    }
}

/// What a module does that it should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// A handler traps, or gives what is no output.
    Traps,
    /// A handler does not come to its end, or is called without end.
    Loops,
    /// After one fault that goes by, the world is not what it would be without.
    NeverConverges,
    /// Nothing is left to do, and yet another start of the host changes something.
    WritesAgain,
    /// A handler gives something else for the same input.
    Differs,
}

impl FindingKind {
    /// In a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traps => "traps",
            Self::Loops => "loops",
            Self::NeverConverges => "never converges",
            Self::WritesAgain => "writes again",
            Self::Differs => "differs",
        }
    }
}

/// Something that was found, in the first world in which it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Who does it, and what happens.
    pub what: String,
    /// The faults that the scenario needs beside its own.
    pub faults: Vec<InjectedFault>,
    /// In how many worlds it was found.
    pub worlds: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.what)?;
        if self.worlds > 1 {
            write!(f, " (in {} worlds)", self.worlds)?;
        }
        if !self.faults.is_empty() {
            let faults = BTreeMap::from([("faults", &self.faults)]);
            let text = serde_saphyr::to_string(&faults).map_err(|_| fmt::Error)?;
            write!(f, "\nto see it, add to the scenario:")?;
            for line in text.trim_end().lines() {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

/// A handler whose output depends on the clock or on chance. Where that comes to something, it is a [`Finding`] as well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entropy {
    /// The handler.
    pub handler: String,
    /// Whether another time changes its output.
    pub is_of_clock: bool,
    /// Whether another seed changes it.
    pub is_of_seed: bool,
    /// The first place of the output that differs, as in `requests.resourceRequests[0].name`.
    pub place: String,
}

impl fmt::Display for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = match (self.is_of_clock, self.is_of_seed) {
            (true, false) => "the clock",
            (false, true) => "chance",
            _ => "the clock and chance",
        };
        write!(
            f,
            "handler {} depends on {on}: {}",
            self.handler, self.place
        )
    }
}

/// How many of how many worlds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Those that were played to their end.
    pub worlds: usize,
    /// Those that there are.
    pub of: usize,
}

/// What an exploration came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explored {
    /// Everything that was found, each once.
    pub findings: Vec<Finding>,
    /// Handlers that depend on the clock or on chance.
    pub entropy: Vec<Entropy>,
    /// Worlds with one fault.
    pub singles: Tried,
    /// Worlds with two.
    pub pairs: Tried,
    /// Calls of handlers, those that were made again among them.
    pub calls: usize,
    /// Why worlds could not be played, each once.
    pub unplayable: BTreeSet<String>,
}

pub(super) fn explore(
    guest: &GuestRuntime,
    scenario: &Scenario,
    exploration: &Exploration,
) -> Result<Explored, SimulatorError> {
    let mut explorer = Explorer {
        guest,
        scenario,
        chance: exploration.seed,
        max_calls: exploration.max_calls,
        module: None,
        checked: BTreeSet::new(),
        found: BTreeMap::new(),
        entropy: BTreeMap::new(),
        explored: Explored::default(),
    };
    explorer.explore()?;
    let Explorer {
        mut explored,
        found,
        entropy,
        ..
    } = explorer;
    explored.findings = found.into_values().collect();
    explored.entropy = entropy.into_values().collect();
    Ok(explored)
}

struct Explorer<'a> {
    guest: &'a GuestRuntime,
    scenario: &'a Scenario,
    chance: u64,
    max_calls: usize,
    module: Option<Arc<Module>>,
    /// Calls that were made again already, but for their time, chance and run.
    checked: BTreeSet<Digest>,
    /// By kind, and who does what.
    found: BTreeMap<(FindingKind, String), Finding>,
    entropy: BTreeMap<String, Entropy>,
    explored: Explored,
}

/// What has come of a world with faults.
enum World {
    /// It was played to its end, and these requests came.
    Played(Vec<SeenRequest>),
    /// It could not be set up.
    Unplayable,
    /// All calls that there may be were made before its end.
    Cut,
}

/// What the world is without a fault, to which those with a fault are held.
struct Base {
    max_calls: usize,
    is_machine: bool,
    /// Whether something is deleted, for which there is no second time when it was given up.
    deletes: bool,
    end: End,
}

impl Explorer<'_> {
    fn explore(&mut self) -> Result<(), SimulatorError> {
        let Some((played, calls)) = self.play(&[], FIRST_CALLS)? else {
            return Ok(());
        };
        let requests = played.requests;
        let end = match played.end {
            Ok(end) => end,
            Err(unsettled) => {
                self.find(FindingKind::Loops, unsettled.to_string(), &[]);
                return Ok(());
            }
        };
        self.judge_writes(&end, &requests, &[]);
        let base = Base {
            max_calls: calls * MANY_CALLS + SPARE_CALLS,
            is_machine: played.is_machine,
            deletes: deletes(&self.scenario.steps),
            end,
        };

        let mut known = BTreeSet::new();
        let mut waiting: VecDeque<InjectedFault> = self.faults_of(&requests, &mut known).into();
        let (mut singles, mut unplayable) = (Vec::new(), 0);
        while let Some(fault) = waiting.pop_front() {
            match self.try_out(&base, std::slice::from_ref(&fault)) {
                World::Played(requests) => {
                    // What a handler does about a fault can meet one as well.
                    waiting.extend(self.faults_of(&requests, &mut known));
                    singles.push(fault);
                }
                World::Unplayable => unplayable += 1,
                World::Cut => {
                    waiting.push_front(fault);
                    break;
                }
            }
        }
        self.explored.singles = Tried {
            worlds: singles.len(),
            of: singles.len() + unplayable + waiting.len(),
        };
        self.pairs(&base, &singles);
        Ok(())
    }

    fn pairs(&mut self, base: &Base, singles: &[InjectedFault]) {
        let all = singles.len() * singles.len().saturating_sub(1) / 2;
        let (mut tried, mut worlds) = (BTreeSet::new(), 0);
        while tried.len() < all {
            let (one, other) = (self.below(singles.len()), self.below(singles.len()));
            let pair = (one.min(other), one.max(other));
            if one == other || !tried.insert(pair) {
                continue;
            }
            let (Some(one), Some(other)) = (singles.get(pair.0), singles.get(pair.1)) else {
                continue;
            };
            match self.try_out(base, &[one.clone(), other.clone()]) {
                World::Played(_) => worlds += 1,
                World::Unplayable => {}
                World::Cut => break,
            }
        }
        self.explored.pairs = Tried { worlds, of: all };
    }

    const fn calls_left(&self) -> usize {
        self.max_calls.saturating_sub(self.explored.calls)
    }

    fn below(&mut self, end: usize) -> usize {
        self.chance = mix(self.chance);
        usize::try_from(self.chance % end.max(1) as u64).unwrap_or_default()
    }

    /// Every fault that these requests can meet and that is not known yet: first of one request of each name, then of the others.
    fn faults_of(
        &self,
        requests: &[SeenRequest],
        known: &mut BTreeSet<(String, String, u32)>,
    ) -> Vec<InjectedFault> {
        let mut points = Vec::new();
        for request in requests {
            let same = points
                .iter()
                .filter(|(_, other, _): &&(usize, &SeenRequest, u32)| {
                    other.request == request.request
                })
                .count();
            for after in 0..request.times.min(TIMES) {
                let point = (request.request.clone(), request.object.clone(), after);
                if known.insert(point) {
                    points.push((same, request, after));
                }
            }
        }
        points.sort_by_key(|(same, _, after)| (*same, *after));
        points
            .into_iter()
            .flat_map(|(_, request, after)| faults(request, after))
            .collect()
    }

    /// Plays the scenario with these faults.
    fn try_out(&mut self, base: &Base, faults: &[InjectedFault]) -> World {
        let played = match self.play(faults, base.max_calls) {
            Ok(Some((played, _))) => played,
            Ok(None) => return World::Cut,
            Err(error) => {
                self.explored.unplayable.insert(error.to_string());
                return World::Unplayable;
            }
        };
        match &played.end {
            Err(unsettled) => self.find(FindingKind::Loops, unsettled.to_string(), faults),
            Ok(end) => {
                if state(&end.outcome) == state(&base.end.outcome) {
                    self.judge_writes(end, &played.requests, faults);
                }
                self.judge_end(base, end, faults);
            }
        }
        World::Played(played.requests)
    }

    /// Once nothing is left to do, nothing changes any more.
    fn judge_writes(&mut self, end: &End, requests: &[SeenRequest], faults: &[InjectedFault]) {
        if !end.outcome.failures.is_empty() {
            return;
        }
        for request in requests.iter().filter(|request| request.has_changed) {
            let what = format!(
                "request {} changes something each time that the host starts, though nothing else has changed",
                request.request
            );
            self.find(FindingKind::WritesAgain, what, faults);
        }
    }

    /// A fault that has gone by leaves nothing behind.
    fn judge_end(&mut self, base: &Base, end: &End, faults: &[InjectedFault]) {
        let (Some(wanted), Some(found)) = (&base.end.again, &end.again) else {
            return;
        };
        // A machine may end in another phase, which is no mistake.
        let is_given_up = end.outcome.failures != base.end.outcome.failures;
        if base.is_machine || (is_given_up && base.deletes) {
            return;
        }
        if found.failures != wanted.failures {
            let more = found.failures.keys();
            let more = more.filter(|object| !wanted.failures.contains_key(*object));
            // Faults of the scenario's own may go on.
            for object in more.filter(|_| self.scenario.faults.is_empty()) {
                let what =
                    format!("{object} is given up, and so it is after another start of the host");
                self.find(FindingKind::NeverConverges, what, faults);
            }
            return;
        }
        if let Some(place) = difference(&state(wanted), &state(found)) {
            let what = format!("the world ends otherwise, at {place}");
            self.find(FindingKind::NeverConverges, what, faults);
        }
    }

    /// Plays the scenario with these faults, judges its calls, and returns how many there were; `None`: all calls that there may be were not enough.
    fn play(
        &mut self,
        faults: &[InjectedFault],
        max_calls: usize,
    ) -> Result<Option<(Played, usize)>, SimulatorError> {
        let left = self.calls_left();
        if left == 0 {
            return Ok(None);
        }
        let recorder = Arc::new(Recorder::of_calls(max_calls.min(left)));
        let played = play_and_look(self.guest, self.scenario, faults, &recorder, true);
        let calls = recorder.take_calls();
        self.explored.calls += calls.len();
        let played = played?;
        if self.module.is_none()
            && let Some(bytes) = &played.module
        {
            self.module = self.guest.load_blocking(bytes.clone(), "the module").ok();
        }
        for call in &calls {
            self.judge_call(call, faults);
        }
        let is_cut = left < max_calls && matches!(played.end, Err(Unsettled::Calls(_)));
        Ok((!is_cut).then_some((played, calls.len())))
    }

    fn judge_call(&mut self, call: &MadeCall, faults: &[InjectedFault]) {
        let handler = &call.handler;
        if let Err(fault) = &call.result {
            let kind = match fault {
                CallFault::Handler(_) => None,
                CallFault::Deadline { .. } => Some(FindingKind::Loops),
                CallFault::Trap { .. }
                | CallFault::Memory { .. }
                | CallFault::Stack { .. }
                | CallFault::OutputTooLarge { .. }
                | CallFault::StatusTooLarge { .. }
                | CallFault::InvalidOutput { .. }
                | CallFault::UnknownHandler { .. } => Some(FindingKind::Traps),
                // The handler was not called.
                CallFault::InputTooLarge { .. } | CallFault::Host { .. } => return,
            };
            if let Some(kind) = kind {
                let text = match fault {
                    // Without how long it took, which is another time each time.
                    CallFault::Deadline { deadline, .. } => {
                        format!("it passed its deadline of {deadline:?}")
                    }
                    fault => fault.to_string(),
                };
                let first = text.lines().next().unwrap_or_default();
                self.find(kind, format!("handler {handler}: {first}"), faults);
                return;
            }
        }
        let Some(module) = self.module.clone() else {
            return;
        };
        if self.calls_left() < REPEATS || !self.checked.insert(fingerprint(handler, &call.input)) {
            return;
        }
        let limits = CallLimits {
            instance_calls: 1,
            ..call.limits
        };
        let guest = self.guest;
        let mut calls = 0;
        let mut differs = |change: &dyn Fn(&mut HandlerInput)| {
            calls += 1;
            let mut input = HandlerInput::clone(&call.input);
            change(&mut input);
            let report = guest.call_blocking(&module, handler, &input, &limits, no_log());
            if matches!(report.result, Err(CallFault::Deadline { .. })) {
                return None;
            }
            difference(&said(&call.result), &said(&report.result))
        };
        let later = |input: &mut HandlerInput| {
            input.context.now = input.context.now.after(LATER);
        };
        // As hosts choose them.
        let reseeded = |input: &mut HandlerInput| {
            input.context.seed = mix(input.context.seed) >> 11;
        };
        let same = differs(&|_| {});
        let other = differs(&|input| {
            later(input);
            reseeded(input);
        });
        let entropy = match (&same, other) {
            (None, Some(place)) => Some(Entropy {
                handler: handler.clone(),
                is_of_clock: differs(&later).is_some(),
                is_of_seed: differs(&reseeded).is_some(),
                place,
            }),
            _ => None,
        };
        self.explored.calls += calls;
        if let Some(place) = same {
            let what =
                format!("handler {handler} gives something else for the same input: {place}");
            self.find(FindingKind::Differs, what, faults);
        }
        if let Some(entropy) = entropy {
            let known = self
                .entropy
                .entry(handler.clone())
                .or_insert_with(|| entropy.clone());
            known.is_of_clock |= entropy.is_of_clock;
            known.is_of_seed |= entropy.is_of_seed;
        }
    }

    fn find(&mut self, kind: FindingKind, what: String, faults: &[InjectedFault]) {
        let found = self.found.entry((kind, what.clone()));
        let finding = found.or_insert_with(|| Finding {
            kind,
            what,
            faults: faults.to_vec(),
            worlds: 0,
        });
        finding.worlds += 1;
    }
}

/// Every fault that a request can meet when it has come `after` times.
fn faults(request: &SeenRequest, after: u32) -> Vec<InjectedFault> {
    let fault = InjectedFault {
        request: request.request.clone(),
        object: request.object.clone(),
        attempts: Vec::new(),
        after,
        times: Some(1),
        kind: None,
        answer: None,
        message: default_message(),
        status: None,
        retry_after: None,
    };
    let fits = |kind: &FaultKind| kind.sink().is_none_or(|sink| sink == request.sink);
    let kinds = FaultKind::ALL
        .into_iter()
        .filter(fits)
        .map(|kind| InjectedFault {
            kind: Some(kind),
            status: status(kind, request.sink),
            ..fault.clone()
        });
    let answers = [
        (request.is_list, InjectedAnswer::Empty),
        (request.is_contended, InjectedAnswer::Conflicting),
    ];
    let answers = answers
        .into_iter()
        .filter_map(|(is_possible, answer)| is_possible.then_some(answer))
        .map(|answer| InjectedFault {
            answer: Some(answer),
            ..fault.clone()
        });
    kinds.chain(answers).collect()
}

/// What servers that speak HTTP say of it.
fn status(kind: FaultKind, sink: SinkName) -> Option<u16> {
    if sink == SinkName::Configstore {
        return None;
    }
    match kind {
        FaultKind::ResourceNotFound => Some(404),
        FaultKind::ResourceConflict => Some(409),
        FaultKind::ResourceMutation => Some(422),
        FaultKind::ResourcePermission => Some(403),
        FaultKind::ApiServerUnavailable
        | FaultKind::SecretstoreUnavailable
        | FaultKind::HttpUnavailable
        | FaultKind::ExtensionUnavailable => Some(503),
        _ => None,
    }
}

fn deletes(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Delete(_) => true,
        Step::Restart { meanwhile } => deletes(meanwhile),
        Step::Apply(_) | Step::Status(_) | Step::Config(_) | Step::Secrets(_) | Step::Wait(_) => {
            false
        }
    })
}

/// The world at the end, without what a writer who came between has left.
fn state(outcome: &Outcome) -> Value {
    let mut objects = serde_json::Map::new();
    for object in &outcome.objects {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(annotations) = metadata
                .get_mut("annotations")
                .and_then(Value::as_object_mut)
        {
            annotations.remove(TOUCHED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        let part = |pointer: &str| crate::objects::text(&object, pointer);
        let name = format!(
            "{} {}/{}",
            part("/kind"),
            part("/metadata/namespace"),
            part("/metadata/name")
        );
        objects.insert(name, object);
    }
    serde_json::json!({"objects": objects, "config": outcome.config, "secrets": outcome.secrets})
}

/// The call, without what is another in each run.
fn fingerprint(handler: &str, input: &HandlerInput) -> Digest {
    let mut input = input.clone();
    input.context.now = configurator_core::time::Timestamp::default();
    input.context.seed = 0;
    input.context.run_id = String::new();
    let text = serde_json::to_vec(&(handler, input)).unwrap_or_default();
    Digest::of(&text)
}

/// The first place at which two values differ. It names no values, which may be secret.
fn difference(one: &Value, other: &Value) -> Option<String> {
    let place = |own: &str, rest: String| match rest.as_str() {
        "" => own.to_owned(),
        rest if rest.starts_with('[') => format!("{own}{rest}"),
        rest => format!("{own}.{rest}"),
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            names.into_iter().find_map(|name| {
                let rest = match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => difference(one, other)?,
                    _ => String::new(),
                };
                Some(place(name, rest))
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut items = one.iter().zip(other).enumerate();
            items.find_map(|(index, (one, other))| {
                Some(place(&format!("[{index}]"), difference(one, other)?))
            })
        }
        (one, other) => (one != other).then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "as expect! gives it")]
    fn check(sink: SinkName, is_list: bool, is_contended: bool, expected: Expect) {
        let request = SeenRequest {
            request: "one".into(),
            object: "default/web".into(),
            sink,
            is_list,
            is_contended,
            times: 1,
            has_changed: false,
        };
        let met = faults(&request, 1).into_iter().map(|fault| {
            assert_eq!((fault.after, fault.times), (1, Some(1)));
            let kind = fault.kind.map(|kind| kind.name().to_owned());
            let answer = fault.answer.map(|answer| format!("{answer:?}"));
            let status = fault.status.map(|status| format!(" {status}"));
            kind.or(answer).unwrap_or_default() + &status.unwrap_or_default() + "\n"
        });
        expected.assert_eq(&met.collect::<String>());
    }

    #[test]
    fn a_request_meets_every_kind_of_fault_that_its_sink_has() {
        check(
            SinkName::Kubernetes,
            true,
            false,
            expect![[r#"
            RetryExceedLimit
            ResourceGeneric
            ResourceNotFound 404
            ResourceConflict 409
            ResourceMutation 422
            ResourcePermission 403
            UnsupportedResourceOperation
            ApiServerUnavailable 503
            OutcomeUnknown
            NotSent
            Empty
        "#]],
        );
        check(
            SinkName::Configstore,
            false,
            true,
            expect![[r#"
            RetryExceedLimit
            ResourceGeneric
            ResourceNotFound
            ResourceConflict
            ResourceMutation
            ResourcePermission
            UnsupportedResourceOperation
            ConfigstoreUnavailable
            OutcomeUnknown
            NotSent
            Conflicting
        "#]],
        );
        check(
            SinkName::Secretstore,
            false,
            false,
            expect![[r#"
            RetryExceedLimit
            ResourceGeneric
            ResourceNotFound 404
            ResourceConflict 409
            ResourceMutation 422
            ResourcePermission 403
            UnsupportedResourceOperation
            SecretstoreUnavailable 503
            OutcomeUnknown
            NotSent
        "#]],
        );
        check(
            SinkName::Http,
            true,
            true,
            expect![[r#"
            RetryExceedLimit
            ResourceGeneric
            ResourceNotFound 404
            ResourceConflict 409
            ResourceMutation 422
            ResourcePermission 403
            UnsupportedResourceOperation
            HttpUnavailable 503
            OutcomeUnknown
            NotSent
            Empty
            Conflicting
        "#]],
        );
    }
}
