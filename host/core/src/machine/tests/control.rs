//! What a person can do.

use expect_test::expect;

use super::*;
use crate::document::Document;

fn steps() -> Play {
    let mut play = Play::begun(at_work(serial("", vec![leaf("a"), leaf("b"), leaf("c")])));
    play.done("Work/a");
    play.take_log();
    play
}

#[test]
fn a_command_acts_once() {
    let mut play = steps();
    play.command("c1", Verb::Cancel);
    check(
        &mut play,
        expect![[r#"
        abandon Work/b
        persist
        CommandDone { uid: "c1" }
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
    play.command("c2", Verb::Resume(None));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c2" }
        PhaseEntered { from: "Stopped", to: "Work" }
        enter Work/b 1/1 Retry
    "#]],
    );
    play.command("c1", Verb::Cancel);
    check(&mut play, expect![[""]]);
}

#[test]
fn a_phase_can_be_begun_anew() {
    let mut play = steps();
    play.command("c1", Verb::Restart);
    check(
        &mut play,
        expect![[r#"
        abandon Work/b
        persist
        CommandDone { uid: "c1" }
        PhaseEntered { from: "Work", to: "Work" }
        StepStarted { path: "Work/a" }
        enter Work/a 1/1 Entered
    "#]],
    );
    play.fail_for_good("Work/a");
    play.take_log();
    play.command("c2", Verb::Restart);
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c2" }
        PhaseEntered { from: "Stopped", to: "Work" }
        StepStarted { path: "Work/a" }
        enter Work/a 1/1 Entered
    "#]],
    );
    for path in ["Work/a", "Work/b", "Work/c"] {
        play.done(path);
    }
    assert_eq!(play.state.phase, "Done");
    play.take_log();
    play.command("c3", Verb::Restart);
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c3" }
        PhaseEntered { from: "Done", to: "Work" }
        StepStarted { path: "Work/a" }
        enter Work/a 1/1 Entered
    "#]],
    );
}

#[test]
fn a_node_can_be_skipped() {
    let mut play = steps();
    play.command("c1", skip("Work/b"));
    check(
        &mut play,
        expect![[r#"
        abandon Work/b
        persist
        CommandDone { uid: "c1" }
        StepEnded { path: "Work/b", error: None, took: 0ns }
        StepStarted { path: "Work/c" }
        enter Work/c 1/1 Entered
    "#]],
    );
    assert_eq!(
        play.node("Work/b").skipped.unwrap(),
        "by hand; skipped by ann"
    );
    for (number, path) in ["Work/a", "Work/nothing", "Elsewhere/a"].iter().enumerate() {
        play.command(&format!("d{number}"), skip(path));
    }
    check(
        &mut play,
        expect![[r#"
        persist
        CommandRefused { uid: "d0", why: "\"Work/a\" is done" }
        persist
        CommandRefused { uid: "d1", why: "there is no node \"Work/nothing\"" }
        persist
        CommandRefused { uid: "d2", why: "\"Elsewhere/a\" is not in the phase that is under way, nor in one that was broken off" }
    "#]],
    );
    play.fail_for_good("Work/c");
    play.command("c2", skip("Work/c"));
    play.take_log();
    play.command("c3", Verb::Resume(None));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c3" }
        PhaseEntered { from: "Stopped", to: "Work" }
        PhaseEntered { from: "Work", to: "Done" }
    "#]],
    );
}

#[test]
fn what_is_skipped_passes_on_what_it_would_have_got() {
    let mut play = Play::begun(machine(vec![
        active("A", Some(leaf("")), "B", ""),
        active("B", Some(parallel("", vec![leaf("p"), leaf("q")])), "C", ""),
        active("C", Some(leaf("")), "", ""),
    ]));
    let args = vec![("arg".to_owned(), Document::null())];
    let output = LeafOutput {
        args: args.clone(),
        ..LeafOutput::default()
    };
    play.end("A", End::Output(Box::new(output)));
    play.command("c1", skip("B/p"));
    play.command("c2", skip("B/q"));
    assert_eq!(play.running["C"].args, args);
}

#[test]
fn the_mark_on_the_object_cancels_once() {
    let mut play = steps();
    let marked = |is_changed| Event::Observed {
        is_changed,
        is_cancelled: true,
    };
    play.tell(marked(true));
    check(
        &mut play,
        expect![[r#"
        abandon Work/b
        persist
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
    play.command("c1", Verb::Resume(None));
    play.tell(marked(false));
    assert_eq!(play.state.phase, "Work");
    play.observe();
    play.tell(marked(true));
    assert_eq!(play.state.phase, "Stopped");

    let mut play = Play::new(at_work(leaf("")));
    play.tell(marked(true));
    check(
        &mut play,
        expect![[r#"
        persist
        PhaseEntered { from: "", to: "Work" }
        PhaseEntered { from: "Work", to: "Stopped" }
    "#]],
    );
}

#[test]
fn a_command_that_is_refused_calls_nothing_off() {
    let once = NodeKind::Leaf {
        handler: "once".into(),
        once: true,
    };
    let children = vec![Node::new("once", once), leaf("a"), leaf("b")];
    let mut play = Play::begun(at_work(parallel("", children)));
    let token = play.running["Work/once"].token;
    play.tell(Event::Sending { token });
    play.end("Work/a", wait_for("go"));
    play.take_log();
    play.command("c1", Verb::Restart);
    play.command("c2", skip("Work"));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandRefused { uid: "c1", why: "requests are under way that may be sent but once" }
        persist
        CommandRefused { uid: "c2", why: "requests are under way that may be sent but once" }
    "#]],
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut play = Play::begun(machine(vec![
        active("Work", Some(leaf("")), "", ""),
        terminal("Done"),
    ]));
    play.take_log();
    play.command("c1", Verb::Resume(None));
    play.fail_for_good("Work");
    play.command("c2", Verb::Cancel);
    check(
        &mut play,
        expect![[r#"
        persist
        CommandRefused { uid: "c1", why: "the phase \"Work\" is under way" }
        persist
        StepEnded { path: "Work", error: Some("oh no"), took: 0ns }
        persist
        CommandRefused { uid: "c2", why: "nothing is under way" }
    "#]],
    );
    // Nothing follows, so it stays; a person lets it go on.
    play.command("c3", Verb::Resume(None));
    play.done("Work");
    play.command("c4", Verb::Resume(None));
    check(
        &mut play,
        expect![[r#"
        persist
        CommandDone { uid: "c3" }
        PhaseEntered { from: "Work", to: "Work" }
        enter Work 1/1 Retry
        persist
        StepEnded { path: "Work", error: None, took: 0ns }
        persist
        CommandRefused { uid: "c4", why: "nothing was broken off" }
    "#]],
    );
}
