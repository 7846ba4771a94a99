use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::capability::{ConfigstoreRule, KubernetesRule};
use crate::ceiling::Ceiling;
use crate::fixtures::{answered, apply, at, configurator_key, get, key, post, put, secret};
use crate::request::{BatchErrorStrategy, ConfigVerb, KubernetesVerb, SecretVerb};

mod laws;

fn with(mut request: Request, change: impl FnOnce(&mut Request)) -> Request {
    change(&mut request);
    request
}

fn requests(resource_requests: impl Into<Vec<Request>>) -> Requests {
    Requests {
        resource_requests: resource_requests.into(),
        ..Requests::default()
    }
}

/// A plan where everything is allowed and nothing was sent before.
fn free(requests: Requests) -> Plan {
    let everything = Capabilities::everything();
    planned(requests, &Kept::new(), &everything, &everything)
}

fn planned(
    requests: Requests,
    kept: &Kept,
    capabilities: &Capabilities,
    ceiling: &Capabilities,
) -> Plan {
    let ceiling = &Ceiling::of_host(Arc::new(ceiling.clone()));
    let configurator = configurator_key();
    let rules = PlanRules {
        configurator: &configurator,
        capabilities,
        ceiling,
        namespace: "ns",
        entry: EntryId {
            run: "run",
            phase: "root",
            number: 1,
        },
    };
    Plan::of(requests, kept, rules).expect("the requests can be sent")
}

/// The result of a request that a sink failed with a fault of this kind.
fn failed_with(request: &Request, kind: FaultKind) -> RequestResult {
    failed(request, Fault::new(kind, "it failed"), at(0))
}

/// One line for each step: what becomes of it.
fn actions(plan: &Plan) -> String {
    let line = |step: &PlannedStep| {
        let action = match &step.action {
            PlannedAction::Send(_) => "send".to_owned(),
            PlannedAction::Keep(result) => format!("keep {:?}", result.query_objects),
            PlannedAction::Await(awaited) => format!("await {:?}", awaited.result.query_objects),
            PlannedAction::Refuse(fault) => format!("refuse, {fault}"),
        };
        format!("{}: {action}\n", step.request.name)
    };
    plan.steps.iter().map(line).collect()
}

/// One line for each result: whether it failed, and with what.
fn faults(results: &[RequestResult]) -> String {
    let line = |result: &RequestResult| {
        let fault = result
            .error
            .as_ref()
            .map_or_else(|| "ok".to_owned(), ToString::to_string);
        format!("{}: {fault}\n", result.request_name)
    };
    results.iter().map(line).collect()
}

fn failure_text(failure: &Failure) -> String {
    format!(
        "{} {} -> {:?}",
        failure.request_name, failure.fault.kind, failure.reaction
    )
}

/// What is read out of a conclusion, one fact a line.
fn shown(conclusion: &Conclusion) -> String {
    let one = |result: &RequestResult| match &result.error {
        None => result.request_name.clone(),
        Some(fault) => format!("{} ({})", result.request_name, fault.kind),
    };
    let mut text = String::new();
    for (name, entry) in &conclusion.entries {
        text += &match entry {
            ResultEntry::One(result) => format!("{name} = {}\n", one(result)),
            ResultEntry::Group(results) => {
                format!(
                    "{name} = [{}]\n",
                    results.iter().map(one).collect::<Vec<_>>().join(", ")
                )
            }
        };
    }
    if let Some(failure) = &conclusion.failure {
        text += &format!("fails: {}\n", failure_text(failure));
    }
    for (object, failure) in &conclusion.charged {
        text += &format!("leaves: {object}, {}\n", failure_text(failure));
    }
    if conclusion.is_incomplete {
        text += "incomplete\n";
    }
    text
}

/// Concludes from requests and the fault of each, `None` for success. Not the last phase.
#[track_caller]
fn check(is_batch: bool, settled: &[(Request, Option<FaultKind>)], expected: Expect) {
    expected.assert_eq(&shown(&concluded(settled, false, is_batch)));
}

fn concluded(
    settled: &[(Request, Option<FaultKind>)],
    is_last: bool,
    is_batch: bool,
) -> Conclusion {
    let plan = free(requests(
        settled
            .iter()
            .map(|(request, _)| request.clone())
            .collect::<Vec<_>>(),
    ));
    let results = settled.iter().map(|(request, fault)| match fault {
        None => answered(request),
        Some(kind) => failed_with(request, *kind),
    });
    conclude(&plan, results.collect(), is_last, is_batch)
}

// What may be sent.

#[test]
fn nothing_is_sent_that_is_not_listed_twice() {
    let configmaps = Capabilities {
        kubernetes: vec![KubernetesRule {
            api_groups: vec![String::new()],
            resources: vec!["configmaps".into()],
            verbs: vec![KubernetesVerb::Get, KubernetesVerb::Apply],
            ..KubernetesRule::of_any_object()
        }],
        ..Capabilities::default()
    };
    let ceiling = Capabilities {
        kubernetes: vec![KubernetesRule {
            verbs: vec![KubernetesVerb::Get],
            ..configmaps.kubernetes[0].clone()
        }],
        configstore: vec![ConfigstoreRule {
            prefixes: vec!["basic/".into()],
            verbs: vec![ConfigVerb::Update],
            ..ConfigstoreRule::default()
        }],
        ..Capabilities::default()
    };
    let asked = requests([get("get"), apply("apply"), put("put", "1"), post("post")]);
    let plan = planned(asked, &Kept::new(), &configmaps, &ceiling);
    expect![[r#"
        get: send
        apply: refuse, ResourcePermission: the policy of this host has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [ns], names: [apply], verbs: [apply]}
        put: refuse, ResourcePermission: spec.capabilities has no rule that allows configstore: {prefixes: [basic/put], verbs: [update]}
        post: refuse, ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [hooks.example.com], methods: [POST]}
    "#]].assert_eq(&actions(&plan));
}

#[test]
fn one_that_may_not_be_sent_stops_all_unless_it_is_caught() {
    let nothing_secret = Capabilities {
        secretstore: Vec::new(),
        ..Capabilities::everything()
    };
    let check = |on_error, expected: Expect| {
        let refused = with(secret(SecretVerb::Get, "secret"), |it| {
            it.on_error = on_error
        });
        let kept = put("kept", "1");
        let known = (kept.operation.clone(), answered(&kept));
        let known = Kept::from([("kept".to_owned(), known)]);
        let asked = requests([get("a"), kept, refused, put("b", "1")]);
        let plan = planned(asked, &known, &nothing_secret, &Capabilities::everything());
        let results = plan.refused(at(7));
        let text = results
            .as_deref()
            .map_or_else(|| "goes on\n".to_owned(), faults);
        expected.assert_eq(&text);
        let results = results.unwrap_or_default();
        let unsent = results.iter().filter(|result| result.error.is_some());
        assert!(
            unsent
                .into_iter()
                .all(|result| result.finished == Some(at(7)))
        );
    };
    check(
        None,
        expect![[r#"
        a: NotSent: not sent, because the request "secret" failed
        kept: ok
        secret: ResourcePermission: spec.capabilities has no rule that allows secretstore: {names: [secret], verbs: [get]}
        b: NotSent: not sent, because the request "secret" failed
    "#]],
    );
    check(
        Some(OnError::CatchError),
        expect![[r#"
        goes on
    "#]],
    );
    check(
        Some(OnError::DropError),
        expect![[r#"
        goes on
    "#]],
    );
}

// What is not sent again.

#[test]
fn a_success_is_kept_when_name_and_operation_are_unchanged() {
    let before = [
        put("same", "1"),
        put("other-value", "1"),
        put("renamed", "1"),
        post("http"),
        get("read"),
    ];
    let earlier = free(requests(before.clone()));
    let results: Vec<RequestResult> = before.iter().map(answered).collect();
    let mut kept = Kept::new();
    keep_successes(&earlier, &results, &mut kept);
    let now = [
        put("same", "1"),
        put("other-value", "2"),
        with(put("renamed", "1"), |request| {
            request.name = "new-name".into()
        }),
        with(put("new", "1"), |request| request.name = "renamed".into()),
        post("http"),
        get("read"),
    ];
    let everything = Capabilities::everything();
    let plan = planned(requests(now), &kept, &everything, &everything);
    expect![[r#"
        same: keep [{"of":"same"}]
        other-value: send
        new-name: send
        renamed: send
        http: keep [{"of":"http"}]
        read: send
    "#]]
    .assert_eq(&actions(&plan));
}

#[test]
fn only_a_success_is_kept_and_the_newest_one() {
    let first = [put("a", "1"), put("b", "1"), get("c")];
    let mut kept = Kept::new();
    let results = [
        answered(&first[0]),
        failed_with(&first[1], FaultKind::ResourceMutation),
        answered(&first[2]),
    ];
    keep_successes(&free(requests(first)), &results, &mut kept);
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["a"]);

    let changed = put("a", "2");
    keep_successes(
        &free(requests([changed.clone()])),
        &[answered(&changed)],
        &mut kept,
    );
    let everything = Capabilities::everything();
    for (request, is_kept) in [(put("a", "1"), false), (changed, true)] {
        let plan = planned(requests([request]), &kept, &everything, &everything);
        assert_eq!(
            matches!(plan.steps[0].action, PlannedAction::Keep(_)),
            is_kept
        );
    }
}

#[test]
fn what_was_kept_may_be_forbidden_by_now() {
    let request = put("a", "1");
    let kept = Kept::from([(
        "a".to_owned(),
        (request.operation.clone(), answered(&request)),
    )]);
    let nothing = Capabilities::default();
    let plan = planned(
        requests([request]),
        &kept,
        &Capabilities::everything(),
        &nothing,
    );
    assert!(matches!(plan.steps[0].action, PlannedAction::Refuse(_)));
}

// The order.

#[test]
fn what_readiness_depends_on_goes_first() {
    let first = |name: &str| with(get(name), |request| request.bootstrap_dep = true);
    let check = |asked: Vec<Request>, waves: &[&[usize]]| {
        assert_eq!(free(requests(asked)).waves(), waves);
    };
    check(vec![], &[]);
    check(vec![get("a"), get("b")], &[&[0, 1]]);
    check(vec![first("a"), first("b")], &[&[0, 1]]);
    check(
        vec![get("a"), first("b"), get("c"), first("d")],
        &[&[1, 3], &[0, 2]],
    );
}

#[test]
fn only_serial_is_serial() {
    for strategy in [ExecuteStrategy::Serial, ExecuteStrategy::Parallel] {
        let plan = free(Requests {
            execute_strategy: strategy,
            ..requests([get("a")])
        });
        assert_eq!(plan.is_serial, strategy == ExecuteStrategy::Serial);
    }
}

// What results mean.

#[test]
fn what_becomes_of_a_failure() {
    let mut table = String::new();
    for group in [None, Some("group")] {
        for on_error in [
            None,
            Some(OnError::Fail),
            Some(OnError::CatchError),
            Some(OnError::DropError),
        ] {
            for batch in [
                BatchErrorStrategy::CatchError,
                BatchErrorStrategy::DropError,
            ] {
                for is_last in [false, true] {
                    let request = with(put("r", "1"), |request| {
                        request.group_by = group.map(Into::into);
                        request.on_error = on_error;
                    });
                    let asked = Requests {
                        batch_error_strategy: batch,
                        ..requests([request.clone()])
                    };
                    let results = vec![failed_with(&request, FaultKind::ResourceMutation)];
                    let conclusion = conclude(&free(asked), results, is_last, false);
                    let meaning = shown(&conclusion).trim_end().replace('\n', "; ");
                    let on_error = on_error.map_or("-".into(), |it| format!("{it:?}"));
                    let place = if is_last { "last" } else { "not last" };
                    table += &format!(
                        "{}, {on_error}, {batch:?}, {place}: {}\n",
                        group.unwrap_or("-"),
                        if meaning.is_empty() {
                            "nothing"
                        } else {
                            &meaning
                        }
                    );
                }
            }
        }
    }
    expect![[r#"
        -, -, CatchError, not last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, -, CatchError, last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, -, DropError, not last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, -, DropError, last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, Fail, CatchError, not last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, Fail, CatchError, last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, Fail, DropError, not last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, Fail, DropError, last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, CatchError, CatchError, not last: r = r (ResourceMutation)
        -, CatchError, CatchError, last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, CatchError, DropError, not last: r = r (ResourceMutation)
        -, CatchError, DropError, last: r = r (ResourceMutation); fails: r ResourceMutation -> Resend
        -, DropError, CatchError, not last: nothing
        -, DropError, CatchError, last: nothing
        -, DropError, DropError, not last: nothing
        -, DropError, DropError, last: nothing
        group, -, CatchError, not last: group = [r (ResourceMutation)]
        group, -, CatchError, last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, -, DropError, not last: group = []
        group, -, DropError, last: group = []
        group, Fail, CatchError, not last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, Fail, CatchError, last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, Fail, DropError, not last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, Fail, DropError, last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, CatchError, CatchError, not last: group = [r (ResourceMutation)]
        group, CatchError, CatchError, last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, CatchError, DropError, not last: group = [r (ResourceMutation)]
        group, CatchError, DropError, last: group = [r (ResourceMutation)]; fails: r ResourceMutation -> Resend
        group, DropError, CatchError, not last: group = []
        group, DropError, CatchError, last: group = []
        group, DropError, DropError, not last: group = []
        group, DropError, DropError, last: group = []
    "#]].assert_eq(&table);
}

#[test]
fn the_longest_wait_that_a_server_asked_for_counts_whichever_failure_is_the_strongest() {
    let settled = ["a", "b", "c"].map(|name| put(name, "1"));
    let waits = [Some(1), Some(3), None];
    let kinds = [
        FaultKind::ApiServerUnavailable,
        FaultKind::ResourceMutation,
        FaultKind::ConfigstoreUnavailable,
    ];
    let results = settled.iter().zip(kinds).zip(waits);
    let results = results.map(|((request, kind), wait)| {
        let mut result = failed_with(request, kind);
        let fault = result.error.as_mut().unwrap();
        fault.retry_after = wait.map(Duration::from_secs);
        result
    });
    let results: Vec<RequestResult> = results.collect();
    let plan = free(requests(settled.to_vec()));
    let failure = conclude(&plan, results, false, false).failure.unwrap();
    assert_eq!(failure.fault.kind, FaultKind::ApiServerUnavailable);
    assert_eq!(failure.fault.retry_after, Some(Duration::from_secs(3)));
}

#[test]
fn the_strongest_failure_counts_and_of_equals_the_first() {
    use FaultKind::{
        ApiServerUnavailable, ConfigstoreUnavailable, ResourceConflict, ResourceMutation,
        ResourceNotFound, ResourcePermission,
    };
    let mut table = String::new();
    for kinds in [
        vec![ResourceNotFound, ResourceMutation],
        vec![ResourceMutation, ResourceConflict, ResourceMutation],
        vec![ResourceConflict, ApiServerUnavailable],
        vec![ApiServerUnavailable, ConfigstoreUnavailable],
        vec![ApiServerUnavailable, ResourcePermission, ResourceConflict],
    ] {
        let settled = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| (put(&n.to_string(), "1"), Some(*kind)));
        let conclusion = concluded(&settled.collect::<Vec<_>>(), false, false);
        table += &format!(
            "{kinds:?}: {}\n",
            failure_text(&conclusion.failure.unwrap())
        );
    }
    expect![[r#"
        [ResourceNotFound, ResourceMutation]: 0 ResourceNotFound -> Resend
        [ResourceMutation, ResourceConflict, ResourceMutation]: 1 ResourceConflict -> Restart
        [ResourceConflict, ApiServerUnavailable]: 1 ApiServerUnavailable -> Park
        [ApiServerUnavailable, ConfigstoreUnavailable]: 0 ApiServerUnavailable -> Park
        [ApiServerUnavailable, ResourcePermission, ResourceConflict]: 1 ResourcePermission -> Fail
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_group_stands_where_its_first_member_stood() {
    let grouped = |name: &str, group: &str| with(get(name), |it| it.group_by = Some(group.into()));
    let dropped = |name: &str, group: &str| {
        with(grouped(name, group), |it| {
            it.on_error = Some(OnError::DropError)
        })
    };
    check(
        false,
        &[
            (grouped("g1", "g"), Some(FaultKind::ResourceNotFound)),
            (get("a"), None),
            (dropped("h1", "h"), Some(FaultKind::ResourceNotFound)),
            (grouped("g2", "g"), None),
            (
                with(get("b"), |it| it.on_error = Some(OnError::DropError)),
                Some(FaultKind::ResourceNotFound),
            ),
            (dropped("g3", "g"), Some(FaultKind::ResourceGeneric)),
            (get("c"), None),
        ],
        expect![[r#"
            g = [g1 (ResourceNotFound), g2]
            a = a
            h = []
            c = c
        "#]],
    );
}

#[test]
fn in_a_batch_a_failure_is_charged_to_its_object() {
    let of = |name: &str, object: &str| with(get(name), |it| it.of = Some(key(object)));
    let settled = [
        (of("a1", "a"), Some(FaultKind::ResourceNotFound)),
        (of("b1", "b"), None),
        (of("a2", "a"), Some(FaultKind::ResourceConflict)),
        (of("a3", "a"), None),
        (get("shared"), None),
        (
            with(of("b2", "b"), |it| it.on_error = Some(OnError::CatchError)),
            Some(FaultKind::ResourceGeneric),
        ),
    ];
    check(
        true,
        &settled,
        expect![[r#"
        b1 = b1
        shared = shared
        b2 = b2 (ResourceGeneric)
        leaves: ns/a, a2 ResourceConflict -> Restart
    "#]],
    );
    check(
        false,
        &settled,
        expect![[r#"
        a1 = a1 (ResourceNotFound)
        b1 = b1
        a2 = a2 (ResourceConflict)
        a3 = a3
        shared = shared
        b2 = b2 (ResourceGeneric)
        fails: a2 ResourceConflict -> Restart
    "#]],
    );
}

#[test]
fn an_outage_is_nobodys_fault() {
    let of = |name: &str, object: &str| with(get(name), |it| it.of = Some(key(object)));
    check(
        true,
        &[
            (of("a1", "a"), Some(FaultKind::ApiServerUnavailable)),
            (of("b1", "b"), Some(FaultKind::ResourcePermission)),
            (of("c1", "c"), None),
        ],
        expect![[r#"
            c1 = c1
            leaves: ns/a, a1 ApiServerUnavailable -> Park
            leaves: ns/b, b1 ResourcePermission -> Fail
        "#]],
    );
}

#[test]
fn what_was_not_sent_fails_nothing_by_itself() {
    let of = |name: &str, object: &str| with(get(name), |it| it.of = Some(key(object)));
    let not_sent = Some(FaultKind::NotSent);
    check(
        false,
        &[
            (get("a"), Some(FaultKind::ResourceNotFound)),
            (get("b"), not_sent),
        ],
        expect![[r#"
            a = a (ResourceNotFound)
            b = b (NotSent)
            fails: a ResourceNotFound -> Resend
            incomplete
        "#]],
    );
    check(
        true,
        &[
            (of("a1", "a"), Some(FaultKind::ResourceNotFound)),
            (of("b1", "b"), not_sent),
        ],
        expect![[r#"
            b1 = b1 (NotSent)
            leaves: ns/a, a1 ResourceNotFound -> Resend
            incomplete
        "#]],
    );
    check(
        true,
        &[
            (of("a1", "a"), Some(FaultKind::ResourceNotFound)),
            (get("shared"), not_sent),
        ],
        expect![[r#"
            shared = shared (NotSent)
            leaves: ns/a, a1 ResourceNotFound -> Resend
            incomplete
        "#]],
    );
}

#[test]
fn a_batch_is_complete_when_only_the_culprits_requests_were_not_sent() {
    let of = |name: &str, object: &str| with(get(name), |it| it.of = Some(key(object)));
    check(
        true,
        &[
            (of("b1", "b"), None),
            (of("a1", "a"), Some(FaultKind::ResourceNotFound)),
            (of("a2", "a"), Some(FaultKind::NotSent)),
        ],
        expect![[r#"
            b1 = b1
            leaves: ns/a, a1 ResourceNotFound -> Resend
        "#]],
    );
}

#[test]
fn an_outage_of_a_store_is_not_caught_but_that_of_an_endpoint_is() {
    for (kind, is_caught) in [
        (FaultKind::ApiServerUnavailable, false),
        (FaultKind::ConfigstoreUnavailable, false),
        (FaultKind::SecretstoreUnavailable, false),
        (FaultKind::HttpUnavailable, true),
        (FaultKind::ExtensionUnavailable, true),
        (FaultKind::ResourceNotFound, true),
    ] {
        assert_eq!(
            kind.is_outage(),
            !is_caught && kind != FaultKind::ResourceNotFound,
            "{kind}"
        );
    }
}
