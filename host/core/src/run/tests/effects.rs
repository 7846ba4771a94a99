//! Statuses, Events and secrets: what is left of a run beside its requests.

use super::*;

#[test]
fn statuses_and_events_count_once_their_phase_has_gone_through() {
    let handler = |call: &Call| {
        let place = format!("{}{}", call.handler, call.input.context.attempt);
        Ok(HandlerOutput {
            statuses: vec![status(&format!("{{\"at\": {place:?}}}"))],
            events: vec![event(&place)],
            ..asks([put(&call.handler, "1")])
        })
    };
    let mut stage = Stage::new(configurator(), &["a"], handler).failing(&[
        ("root", &[FaultKind::ResourceMutation]),
        (
            "write",
            &[
                FaultKind::ConfigstoreUnavailable,
                FaultKind::ResourceConflict,
            ],
        ),
    ]);
    let mut events = Vec::new();
    while stage.advance().is_none() {
        events.extend(stage.events());
    }
    assert_eq!(events, ["root2"]);
    assert_eq!(stage.statuses(), [r#"{"at": "root2"}"#]);
    assert!(stage.statuses().is_empty(), "statuses are taken once");
}

#[test]
fn statuses_wait_for_the_end_in_the_order_of_the_phases() {
    let handler = |call: &Call| {
        let text = format!("{{\"at\": {:?}}}", call.handler);
        Ok(HandlerOutput {
            statuses: vec![status(&text), status("{}")],
            ..nothing()
        })
    };
    let mut stage = Stage::new(configurator(), &["a"], handler);
    stage.play();
    assert_eq!(
        stage.statuses(),
        [r#"{"at": "root"}"#, "{}", r#"{"at": "write"}"#, "{}"]
    );
}

#[test]
fn what_a_handler_says_when_it_fails_is_kept() {
    for fatal in [false, true] {
        let mut stage = Stage::new(configurator(), &["a"], |_| {
            Ok(HandlerOutput {
                outcome: Outcome::Failed(handler_error(fatal, None)),
                statuses: vec![status("{}")],
                events: vec![event("NoNode")],
                ..nothing()
            })
        });
        let finish = stage.play();
        assert_eq!(matches!(finish, Finish::Failed { .. }), fatal, "{finish:?}");
        assert_eq!((stage.statuses().len(), stage.events().len()), (1, 1));
    }
}

#[test]
fn a_trap_says_nothing() {
    let mut stage = Stage::new(configurator(), &["a"], |call| match call.handler.as_str() {
        "root" => Ok(HandlerOutput {
            events: vec![event("Seen")],
            ..nothing()
        }),
        _ => Err(CallFault::Trap {
            message: "unreachable".into(),
        }),
    });
    stage.play();
    assert_eq!(stage.events(), ["Seen"]);
}

#[test]
fn each_answer_of_the_secret_store_is_remembered_once() {
    let caught = |request| with(request, |it| it.on_error = Some(OnError::CatchError));
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => asks([
                secret(SecretVerb::Get, "read"),
                secret(SecretVerb::Create, "made"),
                caught(secret(SecretVerb::Get, "absent")),
                get("config-map"),
                put("away", "1"),
            ]),
            _ => asks([secret(SecretVerb::Get, "late")]),
        })
    };
    let mut stage = Stage::new(configurator(), &["a"], handler).failing(&[
        ("away", &[FaultKind::ConfigstoreUnavailable; 20]),
        ("absent", &[FaultKind::ResourceNotFound; 21]),
    ]);
    assert_eq!(stage.play(), Finish::Succeeded);
    let secrets: Vec<&str> = stage.run.secrets().iter().map(Document::as_str).collect();
    assert_eq!(
        secrets,
        [r#"{"of":"read"}"#, r#"{"of":"made"}"#, r#"{"of":"late"}"#]
    );
}

#[test]
fn an_answer_of_a_run_that_fails_is_remembered_as_well() {
    let handler = |_: &Call| Ok(asks([secret(SecretVerb::Get, "read"), put("bad", "1")]));
    let mut stage = Stage::new(configurator(), &["a"], handler)
        .failing(&[("bad", &[FaultKind::ResourcePermission])]);
    stage.play();
    assert_eq!(stage.run.secrets().len(), 1);
}
