use expect_test::{Expect, expect};

use super::*;

/// What [kstatus](https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md) makes of conditions, as `kubectl wait`,
/// Flux and Argo CD show it.
fn kstatus(conditions: &[Condition]) -> &'static str {
    let is = |name: &str, status: &str| {
        conditions
            .iter()
            .any(|condition| condition.type_ == name && condition.status == status)
    };
    if is(conditions::RECONCILING, "True") {
        "InProgress"
    } else if is(conditions::STALLED, "True") {
        "Failed"
    } else if is(conditions::READY, "True") {
        "Current"
    } else {
        "InProgress"
    }
}

/// What Argo CD makes of them: of conditions as these, its check for Flux makes this.
fn argo_cd(conditions: &[Condition], is_suspended: bool) -> &'static str {
    if is_suspended {
        return "Suspended";
    }
    let of = |name: &str| {
        let found = conditions.iter().find(|condition| condition.type_ == name);
        found.map_or("", |condition| condition.status.as_str())
    };
    match (of(conditions::READY), of(conditions::RECONCILING)) {
        ("Unknown", "True") => "Progressing",
        ("True", _) => "Healthy",
        _ => "Degraded",
    }
}

#[track_caller]
fn check(known: Known, expected: Expect) {
    let is_suspended = known.is_suspended;
    let status = status_of(&known, &[], &[], Timestamp::default());
    let shown = status.conditions.iter().filter(|condition| {
        let name = condition.type_.as_str();
        [
            conditions::READY,
            conditions::RECONCILING,
            conditions::STALLED,
        ]
        .contains(&name)
    });
    let lines: Vec<String> = shown
        .map(|condition| {
            let Condition {
                type_,
                status,
                reason,
                message,
                ..
            } = condition;
            format!("{type_} {status} {reason}: {message}")
        })
        .collect();
    let said = format!(
        "{}, {}\n{}\n",
        kstatus(&status.conditions),
        argo_cd(&status.conditions, is_suspended),
        lines.join("\n")
    );
    expected.assert_eq(&said);
}

fn running() -> Known {
    let mut known = Known {
        generation: 1,
        running: Some((1, "sha256:1".into())),
        ..Known::default()
    };
    known.report.is_listed = true;
    known
}

fn refusal(may_change: bool) -> Refusal {
    Refusal {
        reason: "ModuleNotFound",
        message: "there is no a.wasm".into(),
        may_change,
        is_denial: false,
    }
}

#[test]
fn the_newest_generation_is_ready_or_reconciled_or_stalled() {
    check(
        Known::default(),
        expect![[r#"
            InProgress, Progressing
            Ready Unknown Loading: the module is being loaded
            Reconciling True Loading: the module is being loaded
            Stalled False AsExpected: 
        "#]],
    );
    check(
        running(),
        expect![[r#"
            Current, Healthy
            Ready True Running: runs start when objects change
            Reconciling False AsExpected: 
            Stalled False AsExpected: 
        "#]],
    );
    let mut known = running();
    known.report.is_listed = false;
    check(
        known,
        expect![[r#"
            InProgress, Progressing
            Ready Unknown Listing: the watched objects are being listed
            Reconciling True Listing: the watched objects are being listed
            Stalled False AsExpected: 
        "#]],
    );
    let with_newer = |may_change| Known {
        generation: 2,
        refusal: Some(refusal(may_change)),
        ..running()
    };
    check(
        with_newer(true),
        expect![[r#"
            InProgress, Degraded
            Ready False RunningPrevious: generation 1 continues to run, because the newest one cannot: ModuleNotFound
            Reconciling True ModuleNotFound: there is no a.wasm
            Stalled False AsExpected: 
        "#]],
    );
    check(
        with_newer(false),
        expect![[r#"
            Failed, Degraded
            Ready False RunningPrevious: generation 1 continues to run, because the newest one cannot: ModuleNotFound
            Reconciling False Stalled: 
            Stalled True ModuleNotFound: there is no a.wasm
        "#]],
    );
    let nothing = Known {
        refusal: Some(refusal(false)),
        running: None,
        ..running()
    };
    check(
        nothing,
        expect![[r#"
            Failed, Degraded
            Ready False ModuleNotFound: there is no a.wasm
            Reconciling False Stalled: 
            Stalled True ModuleNotFound: there is no a.wasm
        "#]],
    );
}

#[test]
fn what_others_deny_is_stalled() {
    let denied = Refusal {
        is_denial: true,
        ..refusal(true)
    };
    let known = Known {
        refusal: Some(denied),
        running: None,
        ..running()
    };
    check(
        known,
        expect![[r#"
        Failed, Degraded
        Ready False ModuleNotFound: there is no a.wasm
        Reconciling False Stalled: 
        Stalled True ModuleNotFound: there is no a.wasm
    "#]],
    );
}

#[test]
fn a_suspended_configurator_is_not_ready() {
    let known = Known {
        is_suspended: true,
        ..running()
    };
    check(
        known,
        expect![[r#"
            InProgress, Suspended
            Ready False Suspended: spec.suspend is true: no new runs start
            Reconciling False AsExpected: 
            Stalled False AsExpected: 
        "#]],
    );
}

#[test]
fn a_refused_module_of_the_generation_that_runs_leaves_it_ready() {
    let known = Known {
        refusal: Some(refusal(false)),
        ..running()
    };
    check(
        known,
        expect![[r#"
            Current, Healthy
            Ready True Running: runs start when objects change
            Reconciling False AsExpected: 
            Stalled False AsExpected: 
        "#]],
    );
}

#[test]
fn lists_of_objects_have_a_largest_number_and_size() {
    let failure = |number: usize, message: &str| FailureStatus {
        namespace: String::new(),
        name: format!("object-{number}"),
        uid: String::new(),
        request: String::new(),
        kind: "HandlerError".into(),
        message: message.into(),
        attempts: 1,
        time: format!("2026-01-01T00:00:{:02}Z", number % 60),
    };
    let names = |failures: Vec<FailureStatus>| {
        let first = failures.first().map(|failure| failure.name.clone());
        let last = failures.last().map(|failure| failure.name.clone());
        (failures.len(), first.unwrap(), last.unwrap())
    };
    let mut known = running();
    known.report.failures = (0..30).map(|number| failure(number, "")).collect();
    let mut other = host_status(&running(), "other", 1, 2);
    other.failures = (30..60).map(|number| failure(number, "")).collect();
    let status = status_of(&known, &[other], &[], Timestamp::default());
    assert_eq!(
        names(status.failures),
        (50, "object-10".into(), "object-59".into())
    );

    let long = "é".repeat(1024);
    known.report.failures = (0..50).map(|number| failure(number, &long)).collect();
    let status = status_of(&known, &[], &[], Timestamp::default());
    assert!(serde_json::to_vec(&status.failures).unwrap().len() < MAX_LIST_SIZE + 100);
    assert_eq!(
        names(status.failures),
        (30, "object-20".into(), "object-49".into())
    );
    let of_many = host_status(&known, "one", 1, 64);
    assert_eq!(
        names(of_many.failures),
        (1, "object-49".into(), "object-49".into())
    );
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let second = |seconds: i64| Timestamp::from_millis(seconds * 1000);
    let mut known = running();
    let published = Published::new(&status_of(&known, &[], &[], second(1)));
    known.is_suspended = true;
    let status = status_of(&known, &[], published.transitions(), second(2));
    let since = |name: &str| {
        let mut conditions = status.conditions.iter();
        let found = conditions.find(|condition| condition.type_ == name);
        found.unwrap().last_transition_time.0.as_second()
    };
    assert_eq!(since(conditions::READY), 2);
    assert_eq!(since(conditions::MODULE_LOADED), 1);
    assert!(!published.is(&status));
    assert!(Published::new(&status).is(&status));
}
