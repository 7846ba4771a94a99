//! Who has a turn, and what follows from how it ended.

use expect_test::expect;
use serde_json::json;

use super::*;
use crate::document::Document;
use crate::fixtures::document;
use crate::machine::apply::awaited;
use crate::machine::memento::Memento;
use crate::machine::state::Seen;
use crate::request::ObjectKey;

#[test]
fn the_children_of_a_serial_node_have_their_turns_one_after_another() {
    let mut play = Play::begun(at_work(serial("", vec![leaf("a"), leaf("b")])));
    check(
        &mut play,
        expect![[r#"
        PhaseEntered { from: "", to: "Work" }
        StepStarted { path: "Work/a" }
        enter Work/a 1/1 Entered
    "#]],
    );
    play.done("Work/a");
    check(
        &mut play,
        expect![[r#"
        persist
        StepEnded { path: "Work/a", error: None, took: 0ns }
        StepStarted { path: "Work/b" }
        enter Work/b 1/1 Entered
    "#]],
    );
    play.done("Work/b");
    check(
        &mut play,
        expect![[r#"
        persist
        StepEnded { path: "Work/b", error: None, took: 0ns }
        PhaseEntered { from: "Work", to: "Done" }
    "#]],
    );
}

#[test]
fn a_failure_that_is_not_fatal_is_tried_again_and_what_is_beside_it_is_called_off() {
    let tree = parallel(
        "",
        vec![
            leaf("a"),
            serial("s", vec![leaf("b"), leaf("c")]),
            leaf("d"),
        ],
    );
    let mut play = Play::begun(at_work(tree));
    play.done("Work/d");
    play.take_log();
    play.fail("Work/s/b");
    check(
        &mut play,
        expect![[r#"
        abandon Work/a
        persist
        StepFailed { path: "Work/s/b", error: "oh no", failures: 1 }
    "#]],
    );
    assert!(play.node("Work").failed);
    assert!(!play.node("Work").fatal);
    play.pass(59);
    check(&mut play, expect![[""]]);
    play.pass(1);
    check(
        &mut play,
        expect![[r#"
        enter Work/a 1/1 Retry
        enter Work/s/b 1/2 Retry
    "#]],
    );
    play.done("Work/s/b");
    play.done("Work/a");
    play.done("Work/s/c");
    assert_eq!(play.state.phase, "Done");
}

#[test]
fn a_change_of_the_object_ends_a_backoff() {
    let mut play = Play::begun(at_work(leaf("")));
    play.fail("Work");
    play.observe();
    play.take_log();
    play.change();
    check(
        &mut play,
        expect![[r#"
        enter Work 1/2 Retry
    "#]],
    );
}

#[test]
fn again_and_waits_count_entries_and_failures_count_attempts() {
    let mut play = Play::begun(at_work(leaf("")));
    play.end("Work", again(10));
    play.pass(10);
    play.fail("Work");
    play.pass(60);
    play.fail("Work");
    play.pass(60);
    play.end("Work", wait_for("go"));
    play.command("c1", Verb::Signal(signal("go")));
    check(
        &mut play,
        expect![[r#"
        PhaseEntered { from: "", to: "Work" }
        StepStarted { path: "Work" }
        enter Work 1/1 Entered
        persist
        enter Work 2/1 Again
        persist
        StepFailed { path: "Work", error: "oh no", failures: 1 }
        enter Work 2/2 Retry
        persist
        StepFailed { path: "Work", error: "oh no", failures: 2 }
        enter Work 2/3 Retry
        persist
        persist
        CommandDone { uid: "c1" }
        enter Work 3/1 Signal(Signal { name: "go", data: None })
    "#]],
    );
}

#[test]
fn an_approval_counts_only_for_those_who_wait_for_it() {
    let mut play = Play::begun(at_work(leaf("")));
    play.take_log();
    play.command("c1", Verb::Approve);
    play.end("Work", wait_for(APPROVED));
    play.command("c2", Verb::Approve);
    check(
        &mut play,
        expect![[r#"
        persist
        CommandRefused { uid: "c1", why: "nothing waits for an approval" }
        persist
        persist
        CommandDone { uid: "c2" }
        enter Work 2/1 Signal(Signal { name: "approved", data: Some({"by":"ann","verified":true}) })
    "#]],
    );
}

#[test]
fn a_signal_that_comes_early_is_kept() {
    let mut play = Play::begun(at_work(leaf("")));
    play.command("c1", Verb::Signal(signal("stop")));
    play.command("c2", Verb::Signal(signal("go")));
    play.take_log();
    play.end("Work", wait_for("go"));
    check(
        &mut play,
        expect![[r#"
        persist
        enter Work 2/1 Signal(Signal { name: "go", data: None })
    "#]],
    );
    assert_eq!(play.state.signals, [signal("stop")]);
}

#[test]
fn who_waits_for_an_object_is_told_of_each_version_once_whatever_is_declared() {
    let object = ObjectKey {
        group: String::new(),
        version: "v1".into(),
        plural: "pods".into(),
        namespace: "shop".into(),
        name: "web".into(),
    };
    let wait = || {
        said(Outcome::Wait(Wake {
            objects: vec![object.clone()],
            ..Wake::default()
        }))
    };
    let changed = |version: &str| {
        Event::Changed(Seen {
            object: object.clone(),
            version: version.to_owned(),
        })
    };
    let mut play = Play::begun(at_work(serial("", vec![leaf("a")])));
    play.end("Work/a", wait());
    let told = |play: &Play| -> Vec<Option<String>> {
        let objects = awaited(&play.machine, &play.state);
        let told = objects.into_iter().map(|(_, seen)| seen.map(str::to_owned));
        told.collect()
    };
    assert_eq!(told(&play), [None]);
    play.tell(changed("1"));
    play.end("Work/a", wait());
    assert_eq!(told(&play), [Some("1".to_owned())]);
    play.take_log();
    play.tell(changed("1"));
    check(&mut play, expect![[""]]);

    // A step was declared before it, so its turn comes later: what it was told is stored at once.
    play.machine = at_work(serial("", vec![leaf("before"), leaf("a")]));
    play.tell(changed("2"));
    check(
        &mut play,
        expect![[r#"
        persist
        StepStarted { path: "Work/before" }
        enter Work/before 1/1 Entered
    "#]],
    );
    assert_eq!(told(&play), []);

    play.done("Work/before");
    play.end("Work/a", wait());
    play.machine = at_work(serial("", vec![leaf("other")]));
    assert_eq!(told(&play), [], "it is not declared any more");
}

#[test]
fn a_node_that_takes_too_long_has_failed_for_good() {
    let limited = Node {
        timeout: Some(Duration::from_secs(100)),
        ..serial("s", vec![leaf("a"), leaf("b")])
    };
    let mut play = Play::begun(at_work(parallel("", vec![limited, leaf("c")])));
    play.end("Work/s/a", again(30));
    play.pass(30);
    play.take_log();
    play.pass(70);
    check(
        &mut play,
        expect![[r#"
        abandon Work/s/a
        abandon Work/c
        persist
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
    assert_eq!(play.state.phase, "Stopped");
    assert!(!play.node("Work/s/a").failed);
}

#[test]
fn a_handler_may_name_the_next_phase() {
    let mut play = Play::begun(at_work(parallel("", vec![leaf("a"), leaf("b")])));
    play.take_log();
    let next = |name: &str| {
        End::Output(Box::new(LeafOutput {
            next: Some(name.into()),
            ..LeafOutput::default()
        }))
    };
    play.end("Work/a", next("Done"));
    check(
        &mut play,
        expect![[r#"
        abandon Work/b
        persist
        StepEnded { path: "Work/a", error: None, took: 0ns }
        PhaseEntered { from: "Work", to: "Done" }
    "#]],
    );

    let mut play = Play::begun(at_work(leaf("")));
    play.take_log();
    play.end("Work", next("Nowhere"));
    check(
        &mut play,
        expect![[r#"
        persist
        StepEnded { path: "Work", error: Some("`next` names \"Nowhere\", which is none of the phases"), took: 0ns }
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
}

#[test]
fn outputs_arguments_and_parameters_are_handed_on() {
    let gives = |output: &str, arg: &str| {
        End::Output(Box::new(LeafOutput {
            output: Some(document(output)),
            args: vec![("arg".into(), document(arg))],
            ..LeafOutput::default()
        }))
    };
    let last = Node {
        parameters: Some(document("2")),
        ..leaf("d")
    };
    let inner = parallel("p", vec![leaf("b"), leaf("c")]);
    let inner = Node {
        parameters: Some(document("1")),
        ..flow_node(flow("f", vec![leaf("a"), inner, last]))
    };
    let tree = serial("", vec![leaf("before"), inner, leaf("after")]);
    let mut play = Play::begun(at_work(tree));
    let mut seen = String::new();
    for (path, output, arg) in [
        ("Work/before", "10", "11"),
        ("Work/f/a", "20", "21"),
        ("Work/f/p/b", "30", "31"),
        ("Work/f/p/c", "40", "41"),
        ("Work/f/d", "50", "51"),
        ("Work/after", "60", "61"),
    ] {
        let entry = play.running.get(path).unwrap();
        let shown = |pairs: &[(String, Document)]| {
            let pair = |(name, value): &(String, Document)| format!("{name}={}", value.as_str());
            pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
        };
        let parameters: Vec<_> = entry.parameters.iter().map(Document::as_str).collect();
        writeln!(
            seen,
            "{path}: outputs [{}] args [{}] parameters {parameters:?}",
            shown(&entry.outputs),
            shown(&entry.args)
        )
        .unwrap();
        play.end(path, gives(output, arg));
    }
    expect![[r#"
        Work/before: outputs [] args [] parameters []
        Work/f/a: outputs [] args [arg=11] parameters ["1"]
        Work/f/p/b: outputs [a=20] args [arg=21] parameters ["1"]
        Work/f/p/c: outputs [a=20] args [arg=21] parameters ["1"]
        Work/f/d: outputs [a=20 p/b=30 p/c=40] args [arg=41] parameters ["1", "2"]
        Work/after: outputs [Work/before=10 Work/f/a=20 Work/f/p/b=30 Work/f/p/c=40 Work/f/d=50] args [arg=51] parameters []
    "#]].assert_eq(&seen);
}

#[test]
fn what_was_under_way_when_the_host_went_is_entered_again() {
    let tree = serial(
        "",
        vec![leaf("a"), parallel("p", vec![leaf("b"), leaf("c")])],
    );
    let mut play = Play::begun(at_work(tree));
    play.done("Work/a");
    play.end("Work/p/b", again(10));
    play.take_log();
    play.crash();
    check(
        &mut play,
        expect![[r#"
        enter Work/p/c 1/1 Recovered
    "#]],
    );
    play.pass(10);
    check(
        &mut play,
        expect![[r#"
        enter Work/p/b 2/1 Again
    "#]],
    );
}

#[test]
fn what_is_stored_can_be_read_by_people() {
    let mut play = Play::begun(at_work(serial(
        "",
        vec![leaf("a"), parallel("p", vec![leaf("b"), leaf("c")])],
    )));
    play.end(
        "Work/a",
        End::Output(Box::new(LeafOutput {
            data: Some(document(
                r#"{ "float": 1.0, "large": 12345678901234567890 }"#,
            )),
            output: Some(document("null")),
            ..LeafOutput::default()
        })),
    );
    play.fail("Work/p/b");
    let (memento, _) = Memento::of(&play.machine, &play.state).unwrap();
    let begun = "1970-01-01T00:00:00.000Z";
    let failed = || json!({"done": false, "startTime": begun, "failed": true, "error": "oh no"});
    let mut nodes = json!({"Work": failed()});
    nodes["Work"]["visit"] = 1.into();
    nodes["Work"]["state"] = json!({
        "a": {"done": true, "startTime": begun, "endTime": begun},
        "p": failed(),
    });
    nodes["Work"]["state"]["p"]["state"] =
        json!({"b": failed(), "c": {"done": false, "startTime": begun}});
    assert_eq!(memento.nodes, nodes);
    expect![[r#"{"machine":{"visit":1,"token":3},"leaves":{"Work/a":{"entry":1,"data":{ "float": 1.0, "large": 12345678901234567890 },"output":null},"Work/p/b":{"turn":{"due":{"at":"1970-01-01T00:01:00.000Z","cause":"retry"}},"entry":1,"failures":1},"Work/p/c":{"turn":{"due":{"at":"1970-01-01T00:01:00.000Z","cause":"retry"}},"entry":1}}}"#]].assert_eq(memento.engine.as_str());
    assert_eq!(memento.into_state().unwrap(), play.state);
}

#[test]
fn what_may_be_sent_but_once_is_stored_before_and_is_unknown_when_its_answer_is_lost() {
    let once = Node::new(
        "once",
        NodeKind::Leaf {
            handler: "bind".into(),
            once: true,
        },
    );
    let mut play = Play::begun(at_work(serial("", vec![once, leaf("b")])));
    let token = play.running["Work/once"].token;
    assert!(play.running["Work/once"].once);
    play.crash();
    // Nothing had been sent.
    check(
        &mut play,
        expect![[r#"
        PhaseEntered { from: "", to: "Work" }
        StepStarted { path: "Work/once" }
        enter Work/once 1/1 Entered
        enter Work/once 1/1 Recovered
    "#]],
    );
    let stale = token;
    play.tell(Event::Sending { token: stale });
    check(&mut play, expect![[""]]);
    let token = play.running["Work/once"].token;
    play.tell(Event::Sending { token });
    check(
        &mut play,
        expect![[r#"
        persist
    "#]],
    );
    // It cannot be called off any more.
    play.command("c1", Verb::Cancel);
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c1" }
    "#]],
    );
    play.crash();
    check(
        &mut play,
        expect![[r#"
        persist
        OutcomeUnknown { path: "Work/once" }
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
    assert!(play.node("Work/once").leaf.is_unknown);
    assert_eq!(play.state.phase, "Stopped");
    play.command("c2", skip("Work/once"));
    play.command("c3", Verb::Resume(None));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c2" }
        StepEnded { path: "Work/once", error: None, took: 0ns }
        persist
        CommandDone { uid: "c3" }
        PhaseEntered { from: "Stopped", to: "Work" }
        StepStarted { path: "Work/b" }
        enter Work/b 1/1 Entered
    "#]],
    );
}

#[test]
fn an_object_in_a_phase_that_does_not_exist_is_left_alone() {
    let mut play = Play::new(at_work(leaf("")));
    play.state.phase = "Elsewhere".into();
    play.change();
    play.tell(Event::Tick);
    check(
        &mut play,
        expect![[r#"
        UnknownPhase { phase: "Elsewhere" }
    "#]],
    );
}

#[test]
fn phases_without_work_do_not_follow_one_another_for_ever() {
    let mut play = Play::begun(machine(vec![
        active("A", None, "B", "B"),
        active("B", None, "A", "A"),
    ]));
    check(
        &mut play,
        expect![[r#"
        persist
        PhaseEntered { from: "", to: "A" }
        PhaseEntered { from: "A", to: "B" }
        PhaseEntered { from: "B", to: "A" }
        PhasesInCircle { phase: "B" }
    "#]],
    );
}

fn signal(name: &str) -> crate::handler::Signal {
    crate::handler::Signal {
        name: name.into(),
        data: None,
    }
}

#[test]
fn leaves_are_beside_those_of_other_branches_of_parallel_nodes() {
    let inner = parallel("p", vec![leaf("c"), leaf("d")]);
    let first = serial("s", vec![leaf("a"), inner]);
    let tree = parallel("Work", vec![first, leaf("b")]);
    let beside = |path| tree.beside(path).join(" ");
    assert_eq!(beside("Work/s/a"), "Work/b");
    assert_eq!(beside("Work/s/p/c"), "Work/s/p/d Work/b");
    assert_eq!(beside("Work/b"), "Work/s/a Work/s/p/c Work/s/p/d");
}

#[test]
fn an_entry_that_is_renewed_begins_again_with_the_same_number() {
    let mut play = Play::begun(at_work(leaf("a")));
    play.take_log();
    let token = play.running.remove("Work").unwrap().token;
    play.tell(Event::Renewed { token });
    check(
        &mut play,
        expect![[r#"
        enter Work 1/1 Recovered
    "#]],
    );
    // It is an entry of its own: what becomes of the one that was dropped does not count.
    play.tell(Event::Renewed { token });
    check(&mut play, expect![[""]]);
}
