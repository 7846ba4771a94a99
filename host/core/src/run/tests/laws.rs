//! What is true of every run, shown by random scripts.

use super::*;

/// One request of a random script.
#[derive(Debug, Clone)]
struct ScriptedRequest {
    what: u8,
    changes: bool,
    of: Option<usize>,
    on_error: Option<OnError>,
    group: bool,
    bootstrap: bool,
    faults: Vec<FaultKind>,
}

/// What one phase of a random script does: how its first calls fail, and what it asks for after that.
#[derive(Debug, Clone)]
struct ScriptedPhase {
    call_faults: Vec<CallFault>,
    serial: bool,
    drops: bool,
    requests: Vec<ScriptedRequest>,
}

fn scripted_request() -> impl Strategy<Value = ScriptedRequest> {
    let on_error = prop::option::of(prop::sample::select(vec![
        OnError::Fail,
        OnError::CatchError,
        OnError::DropError,
    ]));
    // No sink says that a request was not sent.
    let kinds = FaultKind::ALL
        .into_iter()
        .filter(|kind| *kind != FaultKind::NotSent);
    // Mostly what is worth another attempt, or no script would get far.
    let worth = kinds.clone().filter(|kind| kind.is_retryable());
    let kinds: Vec<FaultKind> = kinds.chain(worth.clone()).chain(worth).collect();
    let faults = prop::collection::vec(prop::sample::select(kinds), 0..4);
    (
        0..5u8,
        any::<bool>(),
        prop::option::of(0..3usize),
        on_error,
        any::<(bool, bool)>(),
        faults,
    )
        .prop_map(
            |(what, changes, of, on_error, (group, bootstrap), faults)| ScriptedRequest {
                what,
                changes,
                of,
                on_error,
                group,
                bootstrap,
                faults,
            },
        )
}

fn scripted_phase() -> impl Strategy<Value = ScriptedPhase> {
    let call_fault = prop::sample::select(vec![
        CallFault::Handler(handler_error(false, None)),
        CallFault::Trap {
            message: "unreachable".into(),
        },
        CallFault::Handler(handler_error(true, None)),
    ]);
    let call_faults = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec(call_fault, 1..3),
    ];
    let requests = prop::collection::vec(scripted_request(), 0..5);
    (call_faults, any::<(bool, bool)>(), requests).prop_map(
        |(call_faults, (serial, drops), requests)| ScriptedPhase {
            call_faults,
            serial,
            drops,
            requests,
        },
    )
}

impl ScriptedPhase {
    /// The output for the objects that are left. Names are those of the places, so that none comes twice.
    fn output(&self, position: usize, call: usize, left: &[ObjectRef]) -> HandlerOutput {
        let request = |(n, scripted): (usize, &ScriptedRequest)| {
            let name = format!("p{position}r{n}");
            let value = if scripted.changes {
                call.to_string()
            } else {
                "1".into()
            };
            let request = match scripted.what {
                0 => get(&name),
                1 => apply(&name),
                2 => put(&name, &value),
                3 => post(&name),
                _ => secret(SecretVerb::Get, &name),
            };
            with(request, |request| {
                let object = scripted.of.map(|n| key(["a", "b", "c"][n]));
                request.of = object.filter(|object| left.contains(object));
                request.on_error = scripted.on_error;
                request.group_by = scripted.group.then(|| "group".into());
                request.bootstrap_dep = scripted.bootstrap;
            })
        };
        let mut output = asks(
            self.requests
                .iter()
                .enumerate()
                .map(request)
                .collect::<Vec<_>>(),
        );
        if self.serial {
            output = serial(output);
        }
        if self.drops {
            output.requests.batch_error_strategy = BatchErrorStrategy::DropError;
        }
        output
    }

    fn faults(&self) -> usize {
        self.call_faults.len()
            + self
                .requests
                .iter()
                .map(|it| it.faults.len())
                .sum::<usize>()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What is true of every run is asserted by the stage, with every step.
    #[test]
    fn every_run_ends_and_does_nothing_twice(
        script in prop::collection::vec(scripted_phase(), 1..4),
        is_batch: bool,
        max_attempts in 1..6u32,
    ) {
        let names: &[&str] = if is_batch { &["a", "b", "c"] } else { &["a"] };
        let phase_names: Vec<String> = (0..script.len()).map(|n| format!("p{n}")).collect();
        let mut configurator = phases(&phase_names.iter().map(String::as_str).collect::<Vec<_>>());
        configurator.retry.max_attempts = max_attempts;
        if is_batch {
            configurator = in_batches(configurator);
        }
        let mut pending = script.clone();
        let mut calls = 0;
        let left = std::cell::RefCell::new(Vec::new());
        let mut stage = Stage::new(configurator, names, |call| {
            calls += 1;
            let position: usize = call.handler[1..].parse().unwrap();
            let phase = &mut pending[position];
            if phase.call_faults.is_empty() {
                Ok(phase.output(position, calls, &left.borrow()))
            } else {
                Err(phase.call_faults.remove(0))
            }
        });
        for (position, phase) in script.iter().enumerate() {
            for (n, request) in phase.requests.iter().enumerate() {
                let faults = request.faults.iter().map(|kind| Fault::new(*kind, "it failed"));
                stage.sinks.faults.insert(format!("p{position}r{n}"), faults.collect());
            }
        }
        // Every call but the first of a phase follows a fault; a call takes at most three steps.
        let faults: usize = script.iter().map(ScriptedPhase::faults).sum();
        let bound = 3 * (script.len() + faults) + 1;
        let mut finish = None;
        for _ in 0..bound {
            *left.borrow_mut() = stage.run.members().iter().map(|it| it.key.clone()).collect();
            finish = stage.advance();
            if finish.is_some() {
                break;
            }
        }
        let Some(finish) = finish else {
            return Err(TestCaseError::fail(format!("not over after {bound} steps:\n{}", stage.text)));
        };
        let accounted = stage.run.members().len() + stage.departed.len();
        prop_assert_eq!(accounted, names.len(), "an object is lost:\n{}", stage.text);
        prop_assert!(stage.run.failures() <= max_attempts);
        match finish {
            Finish::Split { .. } => prop_assert!(is_batch),
            Finish::Restart { tries, .. } => prop_assert!(tries.failures < max_attempts),
            Finish::Failed { failures, .. } => prop_assert!(failures <= max_attempts),
            Finish::Succeeded | Finish::Rest { .. } => {}
        }
        if !is_batch {
            prop_assert!(stage.departed.is_empty());
        }
    }
}
