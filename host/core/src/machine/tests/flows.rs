//! Flows: thresholds, recovery, history, and one that meets another.

use expect_test::expect;

use super::*;
use crate::machine::phase::{ErrorCode, Remedy};

/// A cluster that is installed by a flow, and changed by another.
fn cluster(install: Flow, modify: Flow) -> Machine {
    machine(vec![
        active(
            "Creating",
            Some(flow_node(install)),
            "Running",
            "Interrupted",
        ),
        active(
            "Modifying",
            Some(flow_node(modify)),
            "Running",
            "Interrupted",
        ),
        stable("Running", &[("changed", "Modifying")]),
        stable("Interrupted", &[("changed", "Modifying")]),
    ])
}

fn install() -> Flow {
    flow(
        "install",
        ["storage", "rw-pod", "ro-pods"]
            .into_iter()
            .map(|name| with_retry(leaf(name), Some(2), Some(10)))
            .collect(),
    )
}

fn interrupted(install: Flow, modify: Flow) -> Play {
    let mut play = Play::begun(cluster(install, modify));
    play.done("Creating/storage");
    play.fail("Creating/rw-pod");
    play.pass(10);
    play.fail("Creating/rw-pod");
    assert_eq!(play.state.phase, "Interrupted");
    play
}

#[test]
fn a_step_that_reaches_its_threshold_interrupts_the_flow() {
    let mut play = interrupted(install(), flow("modify", vec![leaf("m")]));
    check(
        &mut play,
        expect![[r#"
        PhaseEntered { from: "", to: "Creating" }
        FlowStarted { flow: "install" }
        StepStarted { path: "Creating/storage" }
        enter Creating/storage 1/1 Entered
        persist
        StepEnded { path: "Creating/storage", error: None, took: 0ns }
        StepStarted { path: "Creating/rw-pod" }
        enter Creating/rw-pod 1/1 Entered
        persist
        StepFailed { path: "Creating/rw-pod", error: "oh no", failures: 1 }
        enter Creating/rw-pod 1/2 Retry
        persist
        StepEnded { path: "Creating/rw-pod", error: Some("still failing after 2 attempts: oh no"), took: 10s }
        FlowFailed { flow: "install", message: "still failing after 2 attempts: oh no" }
        PhaseEntered { from: "Creating", to: "Interrupted" }
        check 0
    "#]],
    );
    play.command("c1", Verb::Resume(None));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c1" }
        FlowResumed { flow: "install", from: FailedStep }
        PhaseEntered { from: "Interrupted", to: "Creating" }
        enter Creating/rw-pod 1/1 Retry
    "#]],
    );
    play.done("Creating/rw-pod");
    play.done("Creating/ro-pods");
    check(
        &mut play,
        expect![[r#"
        persist
        StepEnded { path: "Creating/rw-pod", error: None, took: 0ns }
        StepStarted { path: "Creating/ro-pods" }
        enter Creating/ro-pods 1/1 Entered
        persist
        StepEnded { path: "Creating/ro-pods", error: None, took: 0ns }
        FlowCompleted { flow: "install" }
        PhaseEntered { from: "Creating", to: "Running" }
        check 0
    "#]],
    );
    expect![[r#"
        [
            Execution {
                flow: "install",
                phase: "Creating",
                started: Timestamp(
                    0,
                ),
                ended: Timestamp(
                    10000,
                ),
                error: Some(
                    "still failing after 2 attempts: oh no",
                ),
                steps: [
                    StepRecord {
                        path: "storage",
                        started: Some(
                            Timestamp(
                                0,
                            ),
                        ),
                        ended: Some(
                            Timestamp(
                                0,
                            ),
                        ),
                        entries: 1,
                        error: None,
                        is_skipped: false,
                        output: None,
                    },
                    StepRecord {
                        path: "rw-pod",
                        started: Some(
                            Timestamp(
                                0,
                            ),
                        ),
                        ended: Some(
                            Timestamp(
                                10000,
                            ),
                        ),
                        entries: 1,
                        error: Some(
                            "still failing after 2 attempts: oh no",
                        ),
                        is_skipped: false,
                        output: None,
                    },
                    StepRecord {
                        path: "ro-pods",
                        started: None,
                        ended: None,
                        entries: 0,
                        error: None,
                        is_skipped: false,
                        output: None,
                    },
                ],
            },
            Execution {
                flow: "install",
                phase: "Creating",
                started: Timestamp(
                    10000,
                ),
                ended: Timestamp(
                    10000,
                ),
                error: None,
                steps: [
                    StepRecord {
                        path: "storage",
                        started: Some(
                            Timestamp(
                                0,
                            ),
                        ),
                        ended: Some(
                            Timestamp(
                                0,
                            ),
                        ),
                        entries: 1,
                        error: None,
                        is_skipped: false,
                        output: None,
                    },
                    StepRecord {
                        path: "rw-pod",
                        started: Some(
                            Timestamp(
                                10000,
                            ),
                        ),
                        ended: Some(
                            Timestamp(
                                10000,
                            ),
                        ),
                        entries: 1,
                        error: None,
                        is_skipped: false,
                        output: None,
                    },
                    StepRecord {
                        path: "ro-pods",
                        started: Some(
                            Timestamp(
                                10000,
                            ),
                        ),
                        ended: Some(
                            Timestamp(
                                10000,
                            ),
                        ),
                        entries: 1,
                        error: None,
                        is_skipped: false,
                        output: None,
                    },
                ],
            },
        ]
    "#]]
    .assert_debug_eq(&play.state.history);
}

#[test]
fn a_flow_can_be_recovered_from_its_first_step() {
    let from_first = Flow {
        recover_from: RecoverFrom::FirstStep,
        ..install()
    };
    let mut play = interrupted(from_first, flow("modify", vec![leaf("m")]));
    play.take_log();
    play.command("c1", Verb::Resume(None));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c1" }
        FlowResumed { flow: "install", from: FirstStep }
        PhaseEntered { from: "Interrupted", to: "Creating" }
        StepStarted { path: "Creating/storage" }
        enter Creating/storage 1/1 Entered
    "#]],
    );

    let mut play = interrupted(install(), flow("modify", vec![leaf("m")]));
    play.take_log();
    play.command("c1", Verb::Resume(Some(RecoverFrom::FirstStep)));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c1" }
        FlowResumed { flow: "install", from: FirstStep }
        PhaseEntered { from: "Interrupted", to: "Creating" }
        StepStarted { path: "Creating/storage" }
        enter Creating/storage 1/1 Entered
    "#]],
    );
}

#[test]
fn one_write_is_enough_for_a_step() {
    let steps: Vec<String> = (0..10).map(|number| format!("s{number}")).collect();
    let ten = flow("ten", steps.iter().map(|name| leaf(name)).collect());
    let mut play = Play::begun(at_work(serial("", vec![flow_node(ten)])));
    for step in &steps {
        play.done(&format!("Work/ten/{step}"));
    }
    assert_eq!(play.state.phase, "Done");
    assert_eq!(play.stored, 10);
}

#[test]
fn an_unfinished_flow_is_finished_given_up_or_in_the_way() {
    for (when_unfinished, expected) in [
        (
            WhenUnfinished::Finish,
            expect![[r#"
            persist
            FlowResumed { flow: "install", from: FailedStep }
            PhaseEntered { from: "Interrupted", to: "Creating" }
            enter Creating/rw-pod 1/1 Retry
            persist
            StepEnded { path: "Creating/rw-pod", error: None, took: 0ns }
            StepStarted { path: "Creating/ro-pods" }
            enter Creating/ro-pods 1/1 Entered
            persist
            StepEnded { path: "Creating/ro-pods", error: None, took: 0ns }
            FlowCompleted { flow: "install" }
            PhaseEntered { from: "Creating", to: "Modifying" }
            FlowStarted { flow: "modify" }
            StepStarted { path: "Modifying/m" }
            enter Modifying/m 1/1 Entered
            persist
            StepEnded { path: "Modifying/m", error: None, took: 0ns }
            FlowCompleted { flow: "modify" }
            PhaseEntered { from: "Modifying", to: "Running" }
            check 0
        "#]],
        ),
        (
            WhenUnfinished::Cancel,
            expect![[r#"
            persist
            PhaseEntered { from: "Interrupted", to: "Modifying" }
            FlowStarted { flow: "modify" }
            StepStarted { path: "Modifying/m" }
            enter Modifying/m 1/1 Entered
            persist
            StepEnded { path: "Modifying/m", error: None, took: 0ns }
            FlowCompleted { flow: "modify" }
            PhaseEntered { from: "Modifying", to: "Running" }
            check 0
        "#]],
        ),
        (
            WhenUnfinished::Refuse,
            expect![[r#"
            FlowRefused { flow: "modify", unfinished: "Creating" }
        "#]],
        ),
    ] {
        let modify = Flow {
            when_unfinished,
            ..flow("modify", vec![leaf("m")])
        };
        let mut play = interrupted(install(), modify);
        play.change();
        play.take_log();
        let (token, _) = play.checks.pop().unwrap();
        play.tell(Event::Checked { token, is_so: true });
        let mut order = vec!["Creating/rw-pod", "Creating/ro-pods", "Modifying/m"];
        order.retain(|path| {
            let is_running = play.running.contains_key(*path);
            if is_running {
                play.done(path);
            }
            is_running
        });
        check(&mut play, expected);
    }
}

#[test]
fn an_error_code_calls_a_person_or_a_remedy() {
    let machine = || {
        let mut machine = at_work(leaf(""));
        machine.error_codes = [
            (
                "ENI_BUSY".to_owned(),
                ErrorCode {
                    guidance: "Detach it by hand.".into(),
                    remedy: Remedy::Manual,
                },
            ),
            (
                "QUOTA".to_owned(),
                ErrorCode {
                    guidance: "Ask for more.".into(),
                    remedy: Remedy::Handler {
                        handler: "raise-quota".into(),
                        attempts: 2,
                    },
                },
            ),
        ]
        .into();
        machine
    };
    let with_code = |code: &str| {
        End::Failed(LeafFailure {
            error: NodeError {
                message: "no".into(),
                code: Some(code.into()),
            },
            is_fatal: false,
            is_unknown: false,
            retry_after: None,
        })
    };
    let mut play = Play::begun(machine());
    play.take_log();
    play.end("Work", with_code("ENI_BUSY"));
    check(
        &mut play,
        expect![[r#"
        persist
        ActionNeeded { path: "Work", code: "ENI_BUSY", guidance: "Detach it by hand." }
        StepEnded { path: "Work", error: Some("no"), took: 0ns }
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );

    let mut play = Play::begun(machine());
    play.take_log();
    play.end("Work", with_code("QUOTA"));
    assert_eq!(play.running["Work"].handler, "raise-quota");
    play.done("Work");
    assert_eq!(play.running["Work"].handler, "");
    check(
        &mut play,
        expect![[r#"
        persist
        StepFailed { path: "Work", error: "no", failures: 1 }
        enter Work 1/2 Retry
        persist
        enter Work 1/1 Retry
    "#]],
    );
    play.end("Work", with_code("QUOTA"));
    play.fail("Work");
    check(
        &mut play,
        expect![[r#"
        persist
        StepFailed { path: "Work", error: "no", failures: 1 }
        enter Work 1/2 Retry
        persist
        ActionNeeded { path: "Work", code: "QUOTA", guidance: "Ask for more." }
        StepEnded { path: "Work", error: Some("no; the remedy failed: oh no"), took: 0ns }
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
    assert_eq!(play.state.phase, "Stopped");
}

#[test]
fn a_flow_keeps_the_tree_that_it_has_begun_with() {
    let with = |steps: &[&str]| {
        let steps = steps.iter().map(|name| leaf(name)).collect();
        at_work(flow_node(flow("install", steps)))
    };
    let mut play = Play::begun(with(&["a", "b"]));
    play.done("Work/a");
    let declare = |play: &mut Play, steps: &[&str]| {
        let earlier = std::mem::replace(&mut play.machine, with(steps));
        let digest = play
            .machine
            .lacks("Work", &play.node("Work"))
            .unwrap()
            .to_owned();
        let (_, stored, tree) = earlier.kept().next().unwrap();
        assert_eq!(stored, digest);
        assert_eq!(Node::restored(&digest, "{}"), None);
        let tree = Node::restored(&digest, tree.as_str()).unwrap();
        play.machine.remember(digest, tree);
        assert_eq!(play.machine.lacks("Work", &play.node("Work")), None);
    };
    declare(&mut play, &["a", "c"]);
    play.take_log();
    // Another host goes on.
    play.crash();
    play.fail("Work/b");
    play.pass(60);
    play.done("Work/b");
    assert_eq!(play.state.phase, "Done");
    check(
        &mut play,
        expect![[r#"
        enter Work/b 1/1 Recovered
        persist
        StepFailed { path: "Work/b", error: "oh no", failures: 1 }
        enter Work/b 1/2 Retry
        persist
        StepEnded { path: "Work/b", error: None, took: 60s }
        FlowCompleted { flow: "install" }
        PhaseEntered { from: "Work", to: "Done" }
    "#]],
    );
    // What begins anew does as is declared by then, and so does what a person has go on.
    play.command("1", Verb::Restart);
    play.done("Work/a");
    assert!(play.running.contains_key("Work/c"));
    declare(&mut play, &["a", "d"]);
    play.command("2", Verb::Cancel);
    play.command("3", Verb::Resume(None));
    assert!(play.running.contains_key("Work/d"));
}
