use std::collections::BTreeSet;
use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::desired::DesiredSet;
use crate::document::Document;
use crate::fixtures::{apply, asks, document, get, key, kubernetes, post, put, secret};
use crate::handler::{Event, EventType, HandlerError, Progress, StatusUpdate, Wake};
use crate::request::{
    ConfigAppConf, ConfigBasic, ConfigRequest, ConfigResource, ConfigTwoLayers, ConfigType,
    HttpRequest, Readiness, SecretVerb,
};

mod applies;
mod sinks;

/// What the check says about an output of a run of `ns/a` and `ns/b`, of which none was applied to.
fn verdict(output: &HandlerOutput, is_batch: bool) -> String {
    let members = [key("a"), key("b")];
    let members = if is_batch {
        &members[..]
    } else {
        &members[..1]
    };
    let rules = OutputRules {
        members,
        is_batch,
        max_requests: 10,
        applied: &BTreeMap::new(),
        is_leaf: false,
        sets: SetRule::Undeclared,
        partition: "ns",
    };
    match check(output, rules) {
        Ok(()) => "ok".into(),
        Err(fault) => fault.to_string(),
    }
}

#[track_caller]
fn check_one(output: &HandlerOutput, expected: Expect) {
    expected.assert_eq(&verdict(output, false));
}

#[track_caller]
fn check_batch(output: &HandlerOutput, expected: Expect) {
    expected.assert_eq(&verdict(output, true));
}

/// One line for each case: what it is, and what the check says about it.
#[track_caller]
fn check_table<What: AsRef<str>>(
    cases: impl IntoIterator<Item = (What, HandlerOutput)>,
    expected: Expect,
) {
    let lines = cases
        .into_iter()
        .map(|(what, output)| format!("{}: {}\n", what.as_ref(), verdict(&output, false)));
    expected.assert_eq(&lines.collect::<String>());
}

fn with(mut request: Request, change: impl FnOnce(&mut Request)) -> Request {
    change(&mut request);
    request
}

/// A request `r` at the config store.
fn to_config(operations: impl Into<Vec<ConfigOperation>>) -> HandlerOutput {
    let config = ConfigRequest {
        is_transaction: true,
        operations: operations.into(),
        partition: None,
    };
    asks([Request::new("r", Operation::Config(config))])
}

/// A request `r` to an HTTP endpoint.
fn to_http(method: &str, url: &str) -> HandlerOutput {
    let http = HttpRequest {
        method: method.into(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
    };
    asks([Request::new("r", Operation::Http(http))])
}

fn error() -> HandlerError {
    HandlerError {
        message: "no".into(),
        fatal: false,
        retry_after: None,
        code: None,
    }
}

fn basic(verb: ConfigVerb, value: Option<&str>) -> ConfigOperation {
    ConfigOperation::Basic(ConfigBasic {
        verb,
        key: "k".into(),
        value: value.map(Into::into),
    })
}

#[test]
fn an_output_of_every_sink_is_valid() {
    let output = HandlerOutput {
        pass_through_args: vec![
            ("a".into(), Document::null()),
            ("b".into(), Document::null()),
        ],
        statuses: vec![StatusUpdate {
            of: None,
            status: document(" {\"phase\": \"x\"}"),
        }],
        events: vec![event(None)],
        data: Some(Document::null()),
        progress: Some(Progress {
            percent: 100,
            message: String::new(),
        }),
        output: Some(Document::null()),
        details: Some(Document::null()),
        ..asks([
            get("get"),
            apply("apply"),
            put("put", "1"),
            secret(SecretVerb::Get, "s"),
            post("p"),
        ])
    };
    check_one(&output, expect!["ok"]);
    check_one(&HandlerOutput::default(), expect!["ok"]);
}

#[test]
fn a_result_key_is_used_once() {
    let in_group =
        |name: &str, group: &str| with(get(name), |request| request.group_by = Some(group.into()));
    check_table(
        [
            (
                "one group of many",
                asks([in_group("a", "g"), in_group("b", "g"), get("c")]),
            ),
            ("two of one name", asks([get("a"), get("b"), get("a")])),
            (
                "two of one name in two groups",
                asks([in_group("a", "g"), in_group("a", "h")]),
            ),
            (
                "a request named as a later group",
                asks([get("g"), in_group("a", "g")]),
            ),
            (
                "a request named as an earlier group",
                asks([in_group("a", "g"), get("g")]),
            ),
            (
                "a request named as its own group",
                asks([in_group("g", "g")]),
            ),
        ],
        expect![[r#"
            one group of many: ok
            two of one name: ResourceGeneric: the output is invalid: two requests are named "a"
            two of one name in two groups: ResourceGeneric: the output is invalid: two requests are named "a"
            a request named as a later group: ResourceGeneric: the output is invalid: the request "g" has the name of the group that the request "a" is in
            a request named as an earlier group: ResourceGeneric: the output is invalid: the request "g" has the name of the group that the request "a" is in
            a request named as its own group: ResourceGeneric: the output is invalid: the request "g" has the name of the group that the request "g" is in
        "#]],
    );
}

#[test]
fn a_name_has_1_to_256_bytes() {
    let grouped = |group: String| asks([with(get("a"), |request| request.group_by = Some(group))]);
    check_table(
        [
            ("256 bytes", asks([get(&"n".repeat(256))])),
            ("257 bytes", asks([get(&"n".repeat(257))])),
            ("258 bytes in 129 letters", asks([get(&"é".repeat(129))])),
            ("none", asks([get("")])),
            ("a group of 256 bytes", grouped("g".repeat(256))),
            ("a group of 257 bytes", grouped("g".repeat(257))),
            ("a group without a name", grouped(String::new())),
        ],
        expect![[r#"
            256 bytes: ok
            257 bytes: ResourceGeneric: the output is invalid: the name "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"… of a request or group must have 1 to 256 bytes
            258 bytes in 129 letters: ResourceGeneric: the output is invalid: the name "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"… of a request or group must have 1 to 256 bytes
            none: ResourceGeneric: the output is invalid: the name "" of a request or group must have 1 to 256 bytes
            a group of 256 bytes: ok
            a group of 257 bytes: ResourceGeneric: the output is invalid: the name "gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg"… of a request or group must have 1 to 256 bytes
            a group without a name: ResourceGeneric: the output is invalid: the name "" of a request or group must have 1 to 256 bytes
        "#]],
    );
}

#[test]
fn what_a_module_wrote_cannot_make_a_message_long() {
    let long = "x".repeat(100_000);
    let arg = || (long.clone(), Document::null());
    for output in [
        asks([get(&long)]),
        asks([with(get("a"), |request| {
            request.group_by = Some(long.clone())
        })]),
        HandlerOutput {
            pass_through_args: vec![arg(), arg()],
            ..HandlerOutput::default()
        },
        to_http(&format!("a{long}"), "https://a.example"),
        to_http("GET", &long),
        asks(
            [
                apply("a"),
                with(apply("a"), |request| request.name = "b".into()),
            ]
            .map(|request| {
                with(request, |request| {
                    if let Operation::Kubernetes(kubernetes) = &mut request.operation {
                        kubernetes.name.clone_from(&long);
                    }
                })
            }),
        ),
        to_config([ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Get,
            key: long.clone(),
            value: None,
        })]),
    ] {
        let message = verdict(&output, false);
        assert_ne!(message, "ok");
        assert!(
            message.len() < 1000,
            "{} bytes: {message:.200}",
            message.len()
        );
    }
}

#[test]
fn requests_are_counted() {
    let many = |count: usize| asks((0..count).map(|n| get(&n.to_string())).collect::<Vec<_>>());
    check_table(
        [("10", many(10)), ("11", many(11))],
        expect![[r#"
            10: ok
            11: ResourceGeneric: the output is invalid: 11 requests; limits.requests allows 10
        "#]],
    );
}

#[test]
fn the_outcome_is_done_or_failed_without_requests() {
    let ends = |outcome| HandlerOutput {
        outcome,
        ..HandlerOutput::default()
    };
    check_table(
        [
            ("done", ends(Outcome::Done)),
            ("failed", ends(Outcome::Failed(error()))),
            (
                "failed with requests",
                HandlerOutput {
                    outcome: Outcome::Failed(error()),
                    ..asks([get("a")])
                },
            ),
            ("again", ends(Outcome::Again(None))),
            (
                "again later",
                ends(Outcome::Again(Some(Duration::from_secs(1)))),
            ),
            ("wait", ends(Outcome::Wait(Wake::default()))),
            ("stop", ends(Outcome::Stop)),
            (
                "next",
                HandlerOutput {
                    next: Some("write".into()),
                    ..HandlerOutput::default()
                },
            ),
            (
                "desired",
                HandlerOutput {
                    desired: Some(DesiredSet::default()),
                    ..HandlerOutput::default()
                },
            ),
            (
                "a removal from a plan",
                HandlerOutput {
                    remove_from_plan: vec!["a".into()],
                    ..HandlerOutput::default()
                },
            ),
            (
                "a read",
                HandlerOutput {
                    reads: vec![get("a")],
                    ..HandlerOutput::default()
                },
            ),
        ],
        expect![[r#"
            done: ok
            failed: ok
            failed with requests: ResourceGeneric: the output is invalid: an outcome `failed` must come without requests
            again: UnsupportedResourceOperation: the output asks for too much: the outcome `again` is valid in nodes of a machine only
            again later: UnsupportedResourceOperation: the output asks for too much: the outcome `again` is valid in nodes of a machine only
            wait: UnsupportedResourceOperation: the output asks for too much: the outcome `wait` is valid in nodes of a machine only
            stop: UnsupportedResourceOperation: the output asks for too much: the outcome `stop` is not valid outside a pipeline
            next: UnsupportedResourceOperation: the output asks for too much: `next` is valid in nodes of a machine only
            desired: UnsupportedResourceOperation: the output asks for too much: `desired` needs `spec.sets`, which the Configurator does not have
            a removal from a plan: UnsupportedResourceOperation: the output asks for too much: `remove-from-plan` and `reads` are not valid outside a pipeline
            a read: UnsupportedResourceOperation: the output asks for too much: `remove-from-plan` and `reads` are not valid outside a pipeline
        "#]],
    );
}

#[test]
fn what_belongs_to_other_modes_is_refused() {
    check_table(
        [
            (
                "once",
                asks([with(put("a", "1"), |request| request.once = true)]),
            ),
            (
                "depends-on",
                asks([with(get("a"), |request| {
                    request.depends_on = vec!["b".into()]
                })]),
            ),
            (
                "ready-when",
                asks([with(get("a"), |request| {
                    request.ready_when = Some(Readiness::Exists)
                })]),
            ),
        ],
        expect![[r#"
            once: UnsupportedResourceOperation: request "a": the output asks for too much: `once` is valid in nodes of a machine only
            depends-on: ResourceGeneric: the output is invalid: request "a": `depends-on` and `ready-when` are valid with the strategy `graph` only
            ready-when: ResourceGeneric: the output is invalid: request "a": `depends-on` and `ready-when` are valid with the strategy `graph` only
        "#]],
    );
}

#[test]
fn requests_of_a_graph_have_an_order() {
    fn after(mut request: Request, names: &[&str]) -> Request {
        request.depends_on = names.iter().map(|name| (*name).to_owned()).collect();
        request
    }
    let graph = |requests: Vec<Request>| {
        let mut output = asks(requests);
        output.requests.execute_strategy = ExecuteStrategy::Graph;
        output
    };
    let ready = |request| with(request, |it| it.ready_when = Some(Readiness::Exists));
    let declarative = |request| with(request, |it: &mut Request| it.is_declarative = true);
    let delete = Request::new(
        "a",
        Operation::Kubernetes(kubernetes(KubernetesVerb::Delete, "a")),
    );
    check_table(
        [
            ("no requests", graph(Vec::new())),
            ("one", graph(vec![get("a")])),
            (
                "two",
                graph(vec![after(get("b"), &["a", "a"]), ready(apply("a"))]),
            ),
            ("unknown", graph(vec![after(get("a"), &["b"])])),
            ("itself", graph(vec![after(get("a"), &["a"])])),
            (
                "circle",
                graph(vec![
                    get("z"),
                    after(get("a"), &["c", "z"]),
                    after(get("b"), &["a"]),
                    after(get("c"), &["b"]),
                ]),
            ),
            (
                "after a declarative one",
                graph(vec![declarative(apply("a")), after(get("b"), &["a"])]),
            ),
            (
                "a declarative one after another",
                graph(vec![get("a"), after(declarative(apply("b")), &["a"])]),
            ),
            (
                "a declarative one that is ready",
                graph(vec![declarative(ready(apply("a")))]),
            ),
            ("a key that is ready", graph(vec![ready(put("a", "1"))])),
            (
                "an object that is deleted is ready",
                graph(vec![ready(delete)]),
            ),
        ],
        expect![[r#"
            no requests: ok
            one: ok
            two: ok
            unknown: ResourceGeneric: the output is invalid: request "a": `depends-on` names "b", and no request of this output has that name
            itself: ResourceGeneric: the output is invalid: request "a": it depends on itself: "a" → "a"
            circle: ResourceGeneric: the output is invalid: request "a": it depends on itself: "a" → "c" → "b" → "a"
            after a declarative one: ResourceGeneric: the output is invalid: request "a": it is declarative, so no request may depend on it
            a declarative one after another: ok
            a declarative one that is ready: ResourceGeneric: the output is invalid: request "a": `ready-when` needs an object to be ready: it is for requests that read or write one Kubernetes object, do not delete it, and are not declarative
            a key that is ready: ResourceGeneric: the output is invalid: request "a": `ready-when` needs an object to be ready: it is for requests that read or write one Kubernetes object, do not delete it, and are not declarative
            an object that is deleted is ready: ResourceGeneric: the output is invalid: request "a": `ready-when` needs an object to be ready: it is for requests that read or write one Kubernetes object, do not delete it, and are not declarative
        "#]],
    );
}

#[test]
fn a_declarative_request_changes_something() {
    let declarative = |request| asks([with(request, |request| request.is_declarative = true)]);
    check_table(
        [
            ("apply", declarative(apply("a"))),
            ("put", declarative(put("a", "1"))),
            ("http", declarative(post("a"))),
            ("get", declarative(get("a"))),
            ("secret get", declarative(secret(SecretVerb::Get, "a"))),
        ],
        expect![[r#"
            apply: ok
            put: ok
            http: ok
            get: ResourceGeneric: request "a": the output is invalid: a declarative request must change something: nobody sees its answer
            secret get: ResourceGeneric: request "a": the output is invalid: a declarative request must change something: nobody sees its answer
        "#]],
    );
}

#[test]
fn a_timeout_is_not_zero() {
    let within = |timeout| asks([with(get("a"), |request| request.timeout = Some(timeout))]);
    check_table(
        [
            ("1 ms", within(Duration::from_millis(1))),
            ("zero", within(Duration::ZERO)),
        ],
        expect![[r#"
            1 ms: ok
            zero: ResourceGeneric: request "a": the output is invalid: a timeout of zero leaves no time to answer
        "#]],
    );
}

#[test]
fn pass_through_arguments_have_names_of_their_own() {
    let passes = |names: &[&str]| HandlerOutput {
        pass_through_args: names
            .iter()
            .map(|name| ((*name).into(), Document::null()))
            .collect(),
        ..HandlerOutput::default()
    };
    check_table(
        [
            ("two names", passes(&["a", "b"])),
            ("a name twice", passes(&["a", "b", "a"])),
        ],
        expect![[r#"
            two names: ok
            a name twice: ResourceGeneric: the output is invalid: two pass-through arguments are named "a"
        "#]],
    );
}

fn event(of: Option<ObjectRef>) -> Event {
    Event {
        of,
        event_type: EventType::Normal,
        reason: "Seen".into(),
        message: String::new(),
    }
}

fn says(statuses: &[Option<ObjectRef>], events: &[Option<ObjectRef>]) -> HandlerOutput {
    let status = |of: &Option<ObjectRef>| StatusUpdate {
        of: of.clone(),
        status: Document::empty_object(),
    };
    HandlerOutput {
        statuses: statuses.iter().map(status).collect(),
        events: events.iter().cloned().map(event).collect(),
        ..HandlerOutput::default()
    }
}

#[test]
fn of_names_an_object_of_the_run() {
    let of = |name: &str| asks([with(get("r"), |request| request.of = Some(key(name)))]);
    check_table(
        [
            ("a request of it", of("a")),
            ("a request of another", of("b")),
            ("a status of it", says(&[Some(key("a"))], &[])),
            ("a status of another", says(&[Some(key("b"))], &[])),
            ("an event of another", says(&[], &[Some(key("b"))])),
        ],
        expect![[r#"
            a request of it: ok
            a request of another: ResourceGeneric: request "r": the output is invalid: names ns/b in `of`, which is not in this run
            a status of it: ok
            a status of another: ResourceGeneric: the output is invalid: a status names ns/b in `of`, which is not in this run
            an event of another: ResourceGeneric: the output is invalid: an event names ns/b in `of`, which is not in this run
        "#]],
    );
}

#[test]
fn in_a_batch_a_status_and_an_event_name_their_object() {
    let of = |name: &str| asks([with(get("r"), |request| request.of = Some(key(name)))]);
    check_batch(&of("b"), expect!["ok"]);
    check_batch(
        &of("c"),
        expect![[
            r#"ResourceGeneric: request "r": the output is invalid: names ns/c in `of`, which is not in this run"#
        ]],
    );
    check_batch(&asks([get("r")]), expect!["ok"]);
    check_batch(
        &says(&[Some(key("a")), Some(key("b"))], &[Some(key("b"))]),
        expect!["ok"],
    );
    check_batch(
        &says(&[Some(key("a")), None], &[]),
        expect![
            "ResourceGeneric: the output is invalid: a status of a batch must name its object in `of`"
        ],
    );
    check_batch(
        &says(&[], &[None]),
        expect![
            "ResourceGeneric: the output is invalid: an event of a batch must name its object in `of`"
        ],
    );
    check_batch(
        &says(&[Some(key("c"))], &[]),
        expect![
            "ResourceGeneric: the output is invalid: a status names ns/c in `of`, which is not in this run"
        ],
    );
}

#[test]
fn a_status_is_an_object() {
    let cases = ["{}", "\n{\"a\": 1}", "[]", "null", "\"{\""].map(|text| {
        let status = StatusUpdate {
            of: None,
            status: document(text),
        };
        (
            format!("{text:?}"),
            HandlerOutput {
                statuses: vec![status],
                ..HandlerOutput::default()
            },
        )
    });
    check_table(
        cases,
        expect![[r#"
        "{}": ok
        "\n{\"a\": 1}": ok
        "[]": ResourceGeneric: the output is invalid: a status must be a JSON object
        "null": ResourceGeneric: the output is invalid: a status must be a JSON object
        "\"{\"": ResourceGeneric: the output is invalid: a status must be a JSON object
    "#]],
    );
}

/// A request with a name and perhaps a group of a few letters, so that they often meet.
fn named_request() -> impl Strategy<Value = Request> {
    let word = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]);
    (word(), prop::option::weighted(0.3, word())).prop_map(|(name, group)| {
        with(get(name), |request| {
            request.group_by = group.map(Into::into)
        })
    })
}

proptest! {
    #[test]
    fn names_are_valid_when_every_key_has_one_meaning(
        requests in prop::collection::vec(named_request(), 0..6),
    ) {
        let names: BTreeSet<&str> = requests.iter().map(|request| request.name.as_str()).collect();
        let groups: BTreeSet<&str> =
            requests.iter().filter_map(|request| request.group_by.as_deref()).collect();
        let is_valid = names.len() == requests.len() && names.is_disjoint(&groups);
        let verdict = verdict(&asks(requests.clone()), false);
        prop_assert_eq!(verdict == "ok", is_valid, "{}", verdict);
    }
}
