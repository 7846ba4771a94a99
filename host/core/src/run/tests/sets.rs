//! Handlers that return a set.

use super::*;
use crate::configurator::SetOptions;
use crate::desired::{Content, DesiredEntry};

fn with_sets() -> Configurator {
    Configurator {
        sets: Some(Box::new(SetOptions {
            poll_interval: Duration::from_mins(1),
            max_watches: 500,
            ending: None,
            idle_after: Duration::from_mins(1),
            adopted_managers: Arc::default(),
            max_prune_percent: 50,
            prune_from: 5,
            max_entries: 1000,
        })),
        ..configurator()
    }
}

fn set_of(name: &str) -> Option<DesiredSet> {
    let object =
        document(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#);
    Some(DesiredSet {
        entries: vec![DesiredEntry::new(name, Content::Kubernetes(object))],
        ..DesiredSet::default()
    })
}

/// The handler of the phase `root` puts a value and returns a set.
fn root_returns_a_set(call: &Call) -> Result<HandlerOutput, CallFault> {
    Ok(match call.handler.as_str() {
        "root" => HandlerOutput {
            desired: set_of("web"),
            pass_through_args: vec![("n".to_owned(), document("1"))],
            ..asks([put("first", "1")])
        },
        _ => HandlerOutput::default(),
    })
}

#[track_caller]
fn check(
    handler: impl FnMut(&Call) -> Result<HandlerOutput, CallFault>,
    outcomes: impl IntoIterator<Item = SetOutcome>,
    expected: Expect,
) {
    let mut stage = Stage::new(with_sets(), &["a"], handler);
    stage.sets.extend(outcomes);
    stage.play();
    expected.assert_eq(&stage.text);
}

fn waiting(seconds: Option<i64>) -> SetOutcome {
    SetOutcome::Waiting {
        wake_at: seconds.map(|seconds| at(1000 * seconds)),
    }
}

#[test]
fn requests_go_first_and_the_next_phase_begins_when_the_set_is_ready() {
    let result = RequestResult {
        request_name: "web".to_owned(),
        sink: SinkName::Kubernetes,
        is_declarative: false,
        query_objects: Vec::new(),
        created: at(0),
        finished: Some(at(0)),
        error: None,
        http_response: None,
    };
    let ready = SetOutcome::Ready(vec![("web".to_owned(), ResultEntry::One(result))]);
    check(
        root_returns_a_set,
        [waiting(None), waiting(Some(60)), ready],
        expect![[r#"
            root (attempt 1)
              first
            set of web: waiting
            wait for members
            set of web: waiting
            wait for members for 55000 ms
            set of web: ready
            write (attempt 1) n=1 first:ok web:ok
            succeeded
        "#]],
    );
}

#[test]
fn a_set_that_fails_fails_its_phase() {
    let fault = Fault::new(FaultKind::ResourceGeneric, "web cannot be ready");
    let failure = Failure {
        reaction: Reaction::Fail,
        ..Failure::of_request("web", fault)
    };
    check(
        root_returns_a_set,
        [SetOutcome::Failed(failure)],
        expect![[r#"
            root (attempt 1)
              first
            set of web: web: ResourceGeneric
            failed, 1 failed, web: ResourceGeneric
        "#]],
    );
}

#[test]
fn a_run_has_one_set() {
    let always = |_: &Call| {
        Ok(HandlerOutput {
            desired: set_of("web"),
            ..HandlerOutput::default()
        })
    };
    check(
        always,
        [],
        expect![[r#"
        root (attempt 1)
        set of web: ready
        write (attempt 1)
        failed, 1 failed, the handler: UnsupportedResourceOperation
    "#]],
    );
}

#[test]
fn the_members_of_a_deleted_object_go_after_the_phases_of_its_deletion() {
    let start = RunStart {
        chain: Chain::Deletion,
        ..start(with_sets(), &["a"])
    };
    let mut stage = Stage::of(start, |_| Ok(HandlerOutput::default()));
    stage.sets.extend([waiting(None)]);
    stage.play();
    expect![[r#"
        cleanup (attempt 1)
        dismantle: waiting
        wait for members
        dismantle: ready
        succeeded
    "#]]
    .assert_eq(&stage.text);
}
