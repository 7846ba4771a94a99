//! Cases that other engines publish as their tests, in the words of this one: the workflows of the Java Operator SDK, and the waves of
//! gitops-engine. A condition that is not met is an entry that the set leaves out.

use expect_test::{Expect, expect};

use super::server::{Server, graph, key};
use crate::graph::observation::{Health, Rejection, RejectionKind};
use crate::graph::plan::Pruning;

fn rejected() -> Rejection {
    Rejection {
        kind: RejectionKind::Permanent,
        message: "the server says no".to_owned(),
    }
}

/// Applies a set after an earlier one. `rejected` names members whose writes and deletions the server rejects.
#[track_caller]
fn check(before: &[&str], after: &[&str], rejecting: &[&str], expected: Expect) {
    let mut server = Server {
        pruning: Pruning::Confirmed,
        ..Server::default()
    };
    if !before.is_empty() {
        server.run(&graph(before));
        server.version = 2;
    }
    for name in rejecting {
        server.rejections.insert(key(name), rejected());
    }
    expected.assert_eq(&server.run(&graph(after)));
}

/// Deletes the owner of a set.
#[track_caller]
fn check_deletion(before: &[&str], rejecting: &[&str], expected: Expect) {
    let mut server = Server::default();
    server.run(&graph(before));
    for name in rejecting {
        server.rejections.insert(key(name), rejected());
    }
    expected.assert_eq(&server.delete());
}

// ---- Java Operator SDK: reconciliation ----

#[test]
fn a_diamond_is_reconciled_from_its_top_to_its_bottom() {
    check(
        &[],
        &["dr1", "dr2: dr1", "dr3: dr1", "dr4: dr3 dr2"],
        &[],
        expect![[r#"
            observe dr1 dr2 dr3 dr4
            record dr1 dr2 dr3 dr4
            create dr1
            confirm dr1; create dr2 dr3
            confirm dr2 dr3; create dr4
            confirm dr4
            ready
        "#]],
    );
}

#[test]
fn what_depends_on_an_error_is_not_reconciled() {
    check(
        &[],
        &["dr1", "error: dr1", "dr2: error"],
        &["error"],
        expect![[r#"
            observe dr1 error dr2
            record dr1 error dr2
            create dr1
            confirm dr1; create error
            failed
              error: failed: the server says no
              dr2: blocked: waits for error: the server says no
        "#]],
    );
}

#[test]
fn one_branch_has_an_error_and_the_other_completes() {
    check(
        &[],
        &["dr1", "error: dr1", "dr2: dr1", "dr3: dr2"],
        &["error"],
        expect![[r#"
            observe dr1 error dr2 dr3
            record dr1 error dr2 dr3
            create dr1
            confirm dr1; create error dr2
            confirm dr2; create dr3
            confirm dr3
            failed
              error: failed: the server says no
        "#]],
    );
}

#[test]
fn one_of_two_dependencies_has_an_error() {
    check(
        &[],
        &["dr1", "error", "dr2: error dr1"],
        &["error"],
        expect![[r#"
            observe dr1 error dr2
            record dr1 error dr2
            create dr1 error
            confirm dr1
            failed
              error: failed: the server says no
              dr2: blocked: waits for error: the server says no
        "#]],
    );
}

#[test]
fn a_parent_that_is_not_ready_blocks_what_has_two_parents() {
    let mut server = Server::default();
    let waits = Health::Waiting("is not ready".to_owned());
    server.healths.insert(key("dr2"), waits);
    expect![[r#"
        observe dr1 dr2 dr3
        record dr1 dr2 dr3
        create dr1 dr2
        confirm dr1 dr2
        progressing
          dr2: waiting: is not ready
          dr3: blocked: waits for dr2: is not ready
    "#]]
    .assert_eq(&server.run(&graph(&["dr1", "dr2", "dr3: dr1 dr2"])));
}

#[test]
fn a_condition_that_is_not_met_deletes_what_depends_on_it() {
    check(
        &["dr1", "dr2: dr1", "deleter: dr2", "deleter2: deleter"],
        &["dr1"],
        &[],
        expect![[r#"
            record dr1; remove deleter deleter2 dr2; mark deleter2
            delete deleter2
            forget deleter2
            mark deleter
            delete deleter
            forget deleter
            mark dr2
            delete dr2
            forget dr2
            ready
        "#]],
    );
}

#[test]
fn a_deletion_is_in_reverse_order() {
    check(
        &["dr1", "d1: dr1", "d2: d1", "d3: d1", "d4: d3"],
        &["dr1"],
        &[],
        expect![[r#"
            record dr1; remove d1 d2 d3 d4; mark d2 d4
            delete d2 d4
            forget d2 d4
            mark d3
            delete d3
            forget d3
            mark d1
            delete d1
            forget d1
            ready
        "#]],
    );
}

#[test]
fn a_diamond_whose_middle_cannot_be_deleted_keeps_its_top() {
    check(
        &["d1", "d2: d1", "error: d1", "d3: error d2", "other"],
        &["other"],
        &["error"],
        expect![[r#"
            remove d1 d2 d3 error; mark d3
            delete d3
            forget d3
            mark d2 error
            delete d2 error
            forget d2
            failed
              - error: Failed("the server says no")
              - d1: after error
        "#]],
    );
}

// ---- Java Operator SDK: clean-up ----

#[test]
fn a_diamond_is_cleaned_up_from_its_bottom_to_its_top() {
    check_deletion(
        &["dd1", "dr1: dd1", "dd2: dd1", "dd3: dr1 dd2"],
        &[],
        expect![[r#"
            delete dd3
            forget dd3
            delete dd2 dr1
            forget dd2 dr1
            delete dd1
            forget dd1
            complete
        "#]],
    );
}

#[test]
fn nothing_is_deleted_before_what_depends_on_it() {
    check_deletion(
        &["dd1", "dd2: dd1", "dd3: dd2", "error: dd2"],
        &["error"],
        expect![[r#"
            delete dd3 error
            forget dd3
            failed
              - error: Failed("the server says no")
              - dd2: after error
              - dd1: after error
        "#]],
    );
}

#[test]
fn a_deletion_waits_until_the_object_is_gone() {
    let mut server = Server::default();
    server.run(&graph(&["dd1", "dd2: dd1", "dd3: dd1", "dd4: dd2 dd3"]));
    // A finalizer holds it.
    server.get("dd3").is_terminating = true;
    server.observe_all();
    expect![[r#"
        delete dd4
        forget dd4
        delete dd2
        forget dd2
        progressing
          - dd3: Waiting("ConfigMap shop/dd3 is being deleted; its finalizers are not complete")
          - dd1: after dd3
    "#]]
    .assert_eq(&server.delete());
}

// ---- gitops-engine: waves ----

const WAVES: [&str; 5] = ["w0", "w1: w0", "w2: w1", "w3: w2", "w4: w3"];

#[test]
fn waves_that_are_all_pruned_go_from_the_last_to_the_first() {
    let mut before = WAVES.to_vec();
    before.push("other");
    check(
        &before,
        &["other"],
        &[],
        expect![[r#"
        remove w0 w1 w2 w3 w4; mark w4
        delete w4
        forget w4
        mark w3
        delete w3
        forget w3
        mark w2
        delete w2
        forget w2
        mark w1
        delete w1
        forget w1
        mark w0
        delete w0
        forget w0
        ready
    "#]],
    );
}

#[test]
fn waves_that_are_pruned_in_part_keep_their_order() {
    check(
        &WAVES,
        &["w0", "w2: w0"],
        &[],
        expect![[r#"
        record w0 w2; remove w1 w3 w4; mark w4
        delete w4
        forget w4
        mark w3
        delete w3
        forget w3
        mark w1
        delete w1
        forget w1
        ready
    "#]],
    );
}

#[test]
fn what_is_pruned_is_pruned_last() {
    check(
        &["w0", "old"],
        &["w0", "w1: w0", "w2: w1"],
        &[],
        expect![[r#"
            record w0; observe w1 w2; remove old
            record w1 w2
            create w1
            confirm w1; create w2
            confirm w2; mark old
            delete old
            forget old
            ready
        "#]],
    );
}
