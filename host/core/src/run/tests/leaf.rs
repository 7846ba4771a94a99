//! The entry of a machine's leaf.

use super::*;
use crate::handler::HandlerState;

fn entry() -> Entry {
    Entry {
        token: 7,
        role: Role::Node,
        path: "InFlight/attach".into(),
        visit: 3,
        handler: "attach-enis".into(),
        entry: 2,
        attempt: 4,
        cause: Cause::Timer,
        last: Some(HandlerState {
            data: Some(document("1")),
            ..HandlerState::default()
        }),
        outputs: vec![("clone".into(), document("2"))],
        args: vec![("enis".into(), document("3"))],
        parameters: vec![document(r#"{"a":1,"b":2}"#), document(r#"{"b":3}"#)],
        once: false,
        deadline: None,
    }
}

fn leaf<'a>(
    entry: Entry,
    handler: impl FnMut(&Call) -> Result<HandlerOutput, CallFault> + 'a,
) -> Stage<'a> {
    let start = start(
        Configurator {
            parameters: document(r#"{"b":0,"c":0}"#),
            ..configurator()
        },
        &["a"],
    );
    let results = vec![("eni".into(), ResultEntry::One(answered(&get("eni"))))];
    Stage::at_step(
        Run::enter_leaf(start, "InFlight", entry, results, at(0)),
        handler,
    )
}

/// What became of it, and how the entry ended.
#[track_caller]
fn check(stage: &mut Stage<'_>, expected: Expect) {
    stage.play();
    let (end, results) = stage.run.take_end().unwrap();
    let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
    let end = match end {
        End::Output(output) => format!("{:?} {:?}", output.outcome, output.data),
        End::Failed(failure) => format!("{failure:?}"),
    };
    expected.assert_eq(&format!("{}{end}\nresults {names:?}\n", stage.text));
}

#[test]
fn it_sees_what_the_machine_tells_it() {
    let mut stage = leaf(entry(), |_| Ok(HandlerOutput::default()));
    check(
        &mut stage,
        expect![[r#"
        attach-enis again (attempt 4) enis=3 eni:ok
        succeeded
        Done None
        results []
    "#]],
    );
    let input = &stage.calls[0].input;
    assert_eq!(input.last, entry().last);
    assert_eq!(input.outputs, entry().outputs);
    assert_eq!(input.pass_through_args, entry().args);
    let context = &input.context;
    assert_eq!(context.phase, "InFlight");
    assert_eq!(context.node, "InFlight/attach");
    assert_eq!((context.entry, context.attempt), (2, 4));
    assert_eq!(context.cause, Cause::Timer);
    assert_eq!(context.parameters.as_str(), r#"{"a":1,"b":3,"c":0}"#);
    // The same for every entry until the phase begins anew.
    let id = |visit| {
        let entry = Entry { visit, ..entry() };
        leaf(entry, |_| Ok(HandlerOutput::default()))
            .run
            .id()
            .to_owned()
    };
    assert_eq!(id(3), context.run_id);
    assert_ne!(id(4), context.run_id);
}

#[test]
fn it_may_ask_to_be_entered_again() {
    let mut stage = leaf(entry(), |_| {
        Ok(HandlerOutput {
            outcome: Outcome::Again(Some(Duration::from_secs(5))),
            next: Some("Elsewhere".into()),
            data: Some(document("4")),
            ..asks([get("node"), put("value", "1")])
        })
    });
    check(
        &mut stage,
        expect![[r#"
        attach-enis again (attempt 4) enis=3 eni:ok
          node
          value
        succeeded
        Again(Some(5s)) Some(4)
        results ["node", "value"]
    "#]],
    );
}

#[test]
fn what_fails_ends_it_and_what_waits_for_a_sink_rests() {
    for kind in [
        FaultKind::ResourceMutation,
        FaultKind::ResourceConflict,
        FaultKind::ResourcePermission,
        FaultKind::OutcomeUnknown,
    ] {
        let mut stage =
            leaf(entry(), |_| Ok(asks([put("value", "1")]))).failing(&[("value", &[kind])]);
        stage.play();
        let Some((End::Failed(failure), _)) = stage.run.take_end() else {
            panic!("{kind} is a failure");
        };
        let is_fatal = kind.reaction() == Reaction::Fail;
        assert_eq!(failure.is_fatal, is_fatal, "{kind}");
        assert_eq!(failure.is_unknown, kind == FaultKind::OutcomeUnknown);
    }
    let mut stage = leaf(entry(), |_| Ok(asks([put("value", "1")])))
        .failing(&[("value", &[FaultKind::ConfigstoreUnavailable])]);
    check(
        &mut stage,
        expect![[r#"
            attach-enis again (attempt 4) enis=3 eni:ok
              value: ConfigstoreUnavailable
            park at configstore for 798 ms, value: ConfigstoreUnavailable
            attach-enis again (attempt 4) enis=3 eni:ok
              value
            succeeded
            Done None
            results ["value"]
        "#]],
    );
}

#[test]
fn an_error_of_the_handler_keeps_its_code() {
    let error = || HandlerError {
        message: "the interface is busy".into(),
        fatal: false,
        retry_after: Some(Duration::from_secs(9)),
        code: Some("ENI_BUSY".into()),
    };
    let mut stage = leaf(entry(), |_| Err(CallFault::Handler(error())));
    check(
        &mut stage,
        expect![[r#"
        attach-enis again (attempt 4) enis=3 eni:ok
          the handler returned an error: the interface is busy
        failed, 4 failed, the handler: ResourceGeneric
        LeafFailure { error: NodeError { message: "the interface is busy", code: Some("ENI_BUSY") }, is_fatal: false, is_unknown: false, retry_after: Some(9s) }
        results ["eni"]
    "#]],
    );
    // An outcome keeps its notes as well.
    let mut stage = leaf(entry(), |_| {
        Ok(HandlerOutput {
            outcome: Outcome::Failed(error()),
            data: Some(document("5")),
            ..HandlerOutput::default()
        })
    });
    check(
        &mut stage,
        expect![[r#"
        attach-enis again (attempt 4) enis=3 eni:ok
        failed, 4 failed, the handler: ResourceGeneric
        Failed(HandlerError { message: "the interface is busy", fatal: false, retry_after: Some(9s), code: Some("ENI_BUSY") }) Some(5)
        results ["eni"]
    "#]],
    );
}

#[test]
fn an_entry_that_cannot_rest_fails_and_may_be_made_again() {
    let mut stage = leaf(entry(), |_| Ok(asks([put("value", "1")])));
    let before: u64 = stage
        .run
        .results
        .iter()
        .map(|(_, entry)| entry.size())
        .sum();
    assert_eq!(stage.run.size_of_answers(), before);
    assert!(before > 0);
    let fault = Fault::new(FaultKind::ConfigstoreUnavailable, "away");
    let pause = Pause::Park {
        after: Duration::from_secs(3),
        failure: host_failure(fault, Reaction::Park),
        tries: stage.run.tries(),
    };
    let finish = stage.run.end_in_place_of(pause);
    assert!(matches!(finish, Finish::Failed { failures: 4, .. }));
    let Some((End::Failed(failure), _)) = stage.run.take_end() else {
        panic!("the entry has failed");
    };
    expect![[r#"
        LeafFailure { error: NodeError { message: "ConfigstoreUnavailable: away", code: None }, is_fatal: false, is_unknown: false, retry_after: Some(3s) }"#]]
    .assert_eq(&format!("{failure:?}"));
}
