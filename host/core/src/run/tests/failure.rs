//! Resend, restart, park, fail: what a run does when something goes wrong.

use super::*;
use crate::capability::Capabilities;

#[test]
fn a_resend_asks_again_with_the_same_input() {
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => asks([get("node")]),
            _ => asks([put("value", "1"), get("seen"), put("late", "1")]),
        })
    };
    let mut stage = Stage::new(configurator(), &["a"], handler).failing(&[(
        "late",
        &[FaultKind::ResourceMutation, FaultKind::ResourceNotFound],
    )]);
    stage.check(expect![[r#"
        root (attempt 1)
          node
        write (attempt 1) node:ok
          value
          seen
          late: ResourceMutation
        resend after 752 ms, late: ResourceMutation
        write again (attempt 2) node:ok
          keep value
          seen
          late: ResourceNotFound
        resend after 1759 ms, late: ResourceNotFound
        write again (attempt 3) node:ok
          keep value
          seen
          late
        succeeded
    "#]]);
    let [_, first, second, third] = stage.calls.as_slice() else {
        panic!("four calls")
    };
    for (again, attempt) in [(second, 2), (third, 3)] {
        let mut expected = first.clone();
        let input = Arc::make_mut(&mut expected.input);
        input.context.attempt = attempt;
        input.context.cause = Cause::Retry;
        assert_eq!(again, &expected);
    }
}

#[test]
fn what_has_changed_is_sent_again() {
    let handler = |call: &Call| {
        let value = call.input.context.attempt.to_string();
        Ok(asks([
            put("changes", &value),
            put("stays", "1"),
            post("call"),
            get("read"),
            put("bad", "1"),
        ]))
    };
    let mut stage = Stage::new(phases(&["root"]), &["a"], handler)
        .failing(&[("bad", &[FaultKind::ResourceMutation])]);
    stage.check(expect![[r#"
        root (attempt 1)
          changes
          stays
          call
          read
          bad: ResourceMutation
        resend after 752 ms, bad: ResourceMutation
        root again (attempt 2)
          changes
          keep stays
          keep call
          read
          bad
        succeeded
    "#]]);
}

#[test]
fn a_declarative_request_is_handed_over_once() {
    let declared = |name: &str| with(apply(name), |request| request.is_declarative = true);
    let handler = |_: &Call| Ok(asks([declared("config-map"), put("bad", "1")]));
    let mut stage = Stage::new(phases(&["root"]), &["a"], handler)
        .failing(&[("bad", &[FaultKind::ResourceMutation])]);
    stage.check(expect![[r#"
        root (attempt 1)
          config-map
          bad: ResourceMutation
        resend after 752 ms, bad: ResourceMutation
        root again (attempt 2)
          keep config-map
          bad
        succeeded
    "#]]);
}

#[test]
fn the_next_phase_keeps_nothing_of_the_one_before() {
    let handler = |_: &Call| Ok(asks([put("same", "1")]));
    Stage::new(configurator(), &["a"], handler).check(expect![[r#"
        root (attempt 1)
          same
        write (attempt 1) same:ok
          same
        succeeded
    "#]]);
}

#[test]
fn a_conflict_begins_again_at_the_root_phase() {
    let handler = |_: &Call| Ok(asks([put("value", "1")]));
    let mut stage = Stage::new(configurator(), &["a"], handler)
        .failing(&[("value", &[FaultKind::ResourceConflict])]);
    stage.check(expect![[r#"
        root (attempt 1)
          value: ResourceConflict
        restart after 752 ms, 1 failed, value: ResourceConflict
    "#]]);
}

#[test]
fn a_failure_that_cannot_be_retried_ends_the_run() {
    let handler = |_: &Call| Ok(asks([put("value", "1"), put("other", "1")]));
    let mut stage = Stage::new(configurator(), &["a"], handler).failing(&[
        ("value", &[FaultKind::ResourceMutation]),
        ("other", &[FaultKind::ResourcePermission]),
    ]);
    stage.check(expect![[r#"
        root (attempt 1)
          value: ResourceMutation
          other: ResourcePermission
        failed, 1 failed, other: ResourcePermission
    "#]]);
}

#[test]
fn an_outage_of_any_length_consumes_no_attempt() {
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => asks([put("value", "1"), secret(SecretVerb::Get, "s")]),
            _ => nothing(),
        })
    };
    let mut stage = Stage::new(attempts(1), &["a"], handler)
        .failing(&[("s", &[FaultKind::SecretstoreUnavailable; 50])]);
    assert_eq!(stage.play(), Finish::Succeeded);
    let (write, root) = stage.calls.split_last().unwrap();
    assert_eq!(root.len(), 51);
    assert!(
        root.iter().all(|call| call == &root[0]),
        "the input changed during an outage"
    );
    assert_eq!(write.input.context.attempt, 1);
}

#[test]
fn a_run_rests_at_the_sink_that_is_away() {
    let handler = |_: &Call| {
        Ok(asks([
            get("k"),
            put("c", "1"),
            secret(SecretVerb::Get, "s"),
            post("h"),
        ]))
    };
    let mut stage = Stage::new(phases(&["root"]), &["a"], handler).failing(&[
        ("k", &[FaultKind::ApiServerUnavailable]),
        (
            "c",
            &[
                FaultKind::ResourceConflict,
                FaultKind::ConfigstoreUnavailable,
            ],
        ),
        (
            "s",
            &[
                FaultKind::ResourceNotFound,
                FaultKind::ResourceNotFound,
                FaultKind::SecretstoreUnavailable,
            ],
        ),
    ]);
    let patience = Fault::new(FaultKind::HttpUnavailable, "busy")
        .with_retry_after(Some(Duration::from_secs(40)));
    let fine = || Fault::new(FaultKind::ResourceNotFound, "weaker");
    stage
        .sinks
        .faults
        .insert("h".into(), vec![fine(), fine(), fine(), patience]);
    stage.check(expect![[r#"
        root (attempt 1)
          k: ApiServerUnavailable
          c: ResourceConflict
          s: ResourceNotFound
          h: ResourceNotFound
        park at kubernetes for 752 ms, k: ApiServerUnavailable
        root (attempt 1)
          k
          c: ConfigstoreUnavailable
          s: ResourceNotFound
          h: ResourceNotFound
        park at configstore for 1692 ms, c: ConfigstoreUnavailable
        root (attempt 1)
          k
          c
          s: SecretstoreUnavailable
          h: ResourceNotFound
        park at secretstore for 2092 ms, s: SecretstoreUnavailable
        root (attempt 1)
          k
          keep c
          s
          h: HttpUnavailable
        park at http hooks.example.com for 40000 ms, h: HttpUnavailable
        root (attempt 1)
          k
          keep c
          s
          h
        succeeded
    "#]]);
}

#[test]
fn attempts_are_counted_over_every_phase_and_run_out() {
    let handler = |call: &Call| Ok(asks([put(&call.handler, "1")]));
    let mut stage = Stage::new(attempts(4), &["a"], handler).failing(&[
        ("root", &[FaultKind::ResourceMutation; 2]),
        ("write", &[FaultKind::ResourceMutation; 2]),
    ]);
    let Finish::Failed { failure, failures } = stage.check(expect![[r#"
        root (attempt 1)
          root: ResourceMutation
        resend after 752 ms, root: ResourceMutation
        root again (attempt 2)
          root: ResourceMutation
        resend after 1759 ms, root: ResourceMutation
        root again (attempt 3)
          root
        write again (attempt 3) root:ok
          write: ResourceMutation
        resend after 2901 ms, write: ResourceMutation
        write again (attempt 4) root:ok
          write: ResourceMutation
        failed, 4 failed, write: RetryExceedLimit
    "#]]) else {
        panic!("four attempts are used up")
    };
    assert_eq!((failures, failure.reaction), (4, Reaction::Fail));
    expect!["RetryExceedLimit: still failing after 4 attempts: ResourceMutation: it failed"]
        .assert_eq(&failure.fault.to_string());
}

#[test]
fn attempts_of_earlier_runs_count() {
    let handler = |_: &Call| Err(CallFault::Handler(handler_error(false, None)));
    for (failures, expected) in [
        (
            0,
            expect![[r#"
            root (attempt 1)
              the handler returned an error: no node yet
            restart after 752 ms, 1 failed, the handler: ResourceGeneric
        "#]],
        ),
        (
            2,
            expect![[r#"
            root again (attempt 3)
              the handler returned an error: no node yet
            failed, 3 failed, the handler: RetryExceedLimit
        "#]],
        ),
        (
            9,
            expect![[r#"
            root again (attempt 10)
              the handler returned an error: no node yet
            failed, 10 failed, the handler: RetryExceedLimit
        "#]],
        ),
    ] {
        Stage::of(
            RunStart {
                tries: Tries {
                    failures,
                    refusals: 0,
                },
                ..start(attempts(3), &["a"])
            },
            handler,
        )
        .check(expected);
    }
}

#[test]
fn a_wish_to_be_left_alone_takes_the_place_of_the_backoff() {
    let handler = |_: &Call| Ok(asks([put("value", "1")]));
    let mut stage = Stage::new(phases(&["root"]), &["a"], handler);
    let patience = |kind| Fault::new(kind, "later").with_retry_after(Some(Duration::from_secs(99)));
    let faults = vec![
        patience(FaultKind::ResourceMutation),
        patience(FaultKind::ResourceConflict),
    ];
    stage.sinks.faults.insert("value".into(), faults);
    stage.check(expect![[r#"
        root (attempt 1)
          value: ResourceMutation
        resend after 99000 ms, value: ResourceMutation
        root again (attempt 2)
          value: ResourceConflict
        restart after 99000 ms, 2 failed, value: ResourceConflict
    "#]]);
}

#[test]
fn what_becomes_of_a_call_without_output() {
    let message = || "boom".to_owned();
    let faults = [
        CallFault::Handler(handler_error(false, None)),
        CallFault::Handler(handler_error(false, Some(Duration::from_secs(7)))),
        CallFault::Handler(handler_error(true, None)),
        CallFault::Handler(handler_error(true, Some(Duration::from_secs(7)))),
        CallFault::Trap { message: message() },
        CallFault::Deadline {
            deadline: Duration::from_secs(1),
            message: message(),
        },
        CallFault::Memory {
            limit: 64,
            message: message(),
        },
        CallFault::Stack { message: message() },
        CallFault::Host { message: message() },
        CallFault::InputTooLarge { size: 2, limit: 1 },
        CallFault::OutputTooLarge { size: 2, limit: 1 },
        CallFault::StatusTooLarge { size: 2, limit: 1 },
        CallFault::InvalidOutput { message: message() },
        CallFault::UnknownHandler {
            name: "x".into(),
            available: "root".into(),
        },
    ];
    let mut table = String::new();
    for fault in faults {
        let mut stage = Stage::new(configurator(), &["a"], |_| Err(fault.clone()));
        let (end, failure) = match stage.play() {
            Finish::Restart { after, failure, .. } => {
                (format!("restart after {}", millis(after)), failure)
            }
            Finish::Failed { failure, .. } => ("failed".to_owned(), failure),
            other => panic!("{other:?}"),
        };
        table += &format!("{end}: {}\n", failure.fault);
        let mut batch = Stage::new(in_batches(configurator()), &["a", "b"], |_| {
            Err(fault.clone())
        });
        assert!(matches!(batch.play(), Finish::Split { .. }));
        assert_eq!(batch.run.failures(), 0);
    }
    expect![[r#"
        restart after 752 ms: ResourceGeneric: phase "root": the handler returned an error: no node yet
        restart after 7000 ms: ResourceGeneric: phase "root": the handler returned an error: no node yet
        failed: ResourceGeneric: phase "root": the handler returned an error: no node yet
        failed: ResourceGeneric: phase "root": the handler returned an error: no node yet
        restart after 752 ms: ResourceGeneric: phase "root": the handler trapped: boom
        restart after 752 ms: ResourceGeneric: phase "root": the handler passed its deadline of 1s: boom
        restart after 752 ms: ResourceGeneric: phase "root": the handler passed its memory limit of 64 bytes: boom
        restart after 752 ms: ResourceGeneric: phase "root": the handler's stack overflowed: boom
        restart after 752 ms: ResourceGeneric: phase "root": the host could not make the call: boom
        failed: ResourceGeneric: phase "root": the input has 2 bytes; limits.inputSize allows 1
        failed: ResourceGeneric: phase "root": the output has 2 bytes or more; limits.outputSize allows 1
        failed: ResourceGeneric: phase "root": a status has 2 bytes; the host's setting max_status_size allows 1
        failed: ResourceGeneric: phase "root": the output is invalid: boom
        failed: ResourceGeneric: phase "root": the module has no handler "x"; it has: root
    "#]].assert_eq(&table);
}

#[test]
fn nothing_of_an_invalid_output_is_done() {
    for (output, expected) in [
        (
            asks([get("a"), get("a")]),
            expect![[r#"
            root (attempt 1)
            failed, 1 failed, the handler: ResourceGeneric
        "#]],
        ),
        (
            HandlerOutput {
                next: Some("write".into()),
                ..asks([put("a", "1")])
            },
            expect![[r#"
                root (attempt 1)
                failed, 1 failed, the handler: UnsupportedResourceOperation
            "#]],
        ),
    ] {
        let output = HandlerOutput {
            statuses: vec![status("{}")],
            events: vec![event("Said")],
            ..output
        };
        let mut stage = Stage::new(configurator(), &["a"], |_| Ok(output.clone()));
        stage.check(expected);
        assert_eq!((stage.statuses().len(), stage.events().len()), (0, 0));
    }
}

#[test]
fn one_request_that_may_not_be_sent_stops_them_all() {
    let read_only = Capabilities {
        configstore: Vec::new(),
        ..Capabilities::everything()
    };
    let asking = |_: &Call| Ok(asks([apply("a"), put("b", "1"), get("c")]));

    let mut own = start(configurator(), &["a"]);
    Arc::make_mut(&mut own.configurator).capabilities = read_only.clone();
    Stage::of(own, asking).check(expect![[r#"
        root (attempt 1)
        failed, 1 failed, b: ResourcePermission
    "#]]);

    let ceiling = RunStart {
        ceiling: Arc::new(Ceiling::of_host(Arc::new(read_only))),
        ..start(configurator(), &["a"])
    };
    Stage::of(ceiling, asking).check(expect![[r#"
        root (attempt 1)
        failed, 1 failed, b: ResourcePermission
    "#]]);
}

#[test]
fn a_failure_caught_in_the_last_phase_fails_it() {
    let caught = |request| with(request, |it| it.on_error = Some(OnError::CatchError));
    let handler = |_: &Call| Ok(asks([caught(get("a"))]));
    let mut stage = Stage::new(attempts(2), &["a"], handler)
        .failing(&[("a", &[FaultKind::ResourceNotFound; 3])]);
    stage.check(expect![[r#"
        root (attempt 1)
          a: ResourceNotFound
        write (attempt 1) a:ResourceNotFound
          a: ResourceNotFound
        resend after 752 ms, a: ResourceNotFound
        write again (attempt 2) a:ResourceNotFound
          a: ResourceNotFound
        failed, 2 failed, a: RetryExceedLimit
    "#]]);
}

#[test]
fn a_serial_phase_stops_at_the_first_failure_that_nothing_catches() {
    let caught = |request| with(request, |it| it.on_error = Some(OnError::CatchError));
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => serial(asks([caught(put("a", "1")), put("b", "1"), put("c", "1")])),
            _ => nothing(),
        })
    };
    let mut stage = Stage::new(configurator(), &["a"], handler).failing(&[
        ("a", &[FaultKind::ResourcePermission; 2]),
        ("b", &[FaultKind::ResourceMutation]),
    ]);
    stage.check(expect![[r#"
        root (attempt 1)
          a: ResourcePermission
          b: ResourceMutation
          c: NotSent
        resend after 752 ms, b: ResourceMutation
        root again (attempt 2)
          a: ResourcePermission
          b
          c
        write again (attempt 2) a:ResourcePermission b:ok c:ok
        succeeded
    "#]]);
}

#[test]
fn results_that_nobody_asked_for_fail_the_run() {
    let (mut run, _) = Run::start(start(configurator(), &["a"]), at(0));
    let step = run.on_results(Vec::new(), at(0));
    assert!(
        matches!(step, Step::Finish(Finish::Failed { .. })),
        "{step:?}"
    );
}

#[test]
fn a_failure_of_the_host_waits_as_long_as_the_server_asked() {
    let failing = |kind: FaultKind, retry_after| {
        let fault = Fault::new(kind, "later").with_retry_after(retry_after);
        plan::Failure::of_request("status", fault)
    };
    let wish = Some(Duration::from_secs(99));
    let mut table = String::new();
    for (kind, retry_after) in [
        (FaultKind::ResourceConflict, None),
        (FaultKind::ResourceConflict, wish),
        (FaultKind::ResourceMutation, wish),
        (FaultKind::ApiServerUnavailable, wish),
        (FaultKind::ResourcePermission, wish),
    ] {
        let (mut before, _) = Run::start(start(configurator(), &["a"]), at(0));
        let (mut after, _) = Run::start(start(configurator(), &["a"]), at(0));
        let text = |finish: &Finish| match finish {
            Finish::Restart { after, .. } => format!("restart after {}", millis(*after)),
            Finish::Failed { .. } => "failed".into(),
            other => format!("{other:?}"),
        };
        let first = match before.on_host_failure(failing(kind, retry_after)) {
            Step::Finish(finish) => text(&finish),
            Step::Pause(Pause::Park { after, .. }) => {
                format!("park for {}", millis(after))
            }
            other => format!("{other:?}"),
        };
        let last = text(&after.begin_again(failing(kind, retry_after)));
        table += &format!("{kind}: before its requests {first}; after them {last}\n");
    }
    expect![[r#"
        ResourceConflict: before its requests restart after 752 ms; after them restart after 752 ms
        ResourceConflict: before its requests restart after 99000 ms; after them restart after 99000 ms
        ResourceMutation: before its requests restart after 99000 ms; after them restart after 99000 ms
        ApiServerUnavailable: before its requests park for 99000 ms; after them restart after 99000 ms
        ResourcePermission: before its requests failed; after them failed
    "#]].assert_eq(&table);
}

#[test]
fn phases_that_cannot_rest_begin_again_after_the_same_wait() {
    let (mut run, _) = Run::start(start(configurator(), &["a"]), at(0));
    let fault = Fault::new(FaultKind::ConfigstoreUnavailable, "away");
    let failure = host_failure(fault, Reaction::Park);
    let after = Duration::from_secs(3);
    for pause in [
        Pause::Park {
            after,
            failure: failure.clone(),
            tries: run.tries(),
        },
        Pause::Resend {
            after,
            failure: failure.clone(),
            tries: run.tries(),
        },
    ] {
        let expected = Finish::Restart {
            after,
            failure: failure.clone(),
            tries: run.tries(),
        };
        assert_eq!(run.end_in_place_of(pause), expected);
    }
}
